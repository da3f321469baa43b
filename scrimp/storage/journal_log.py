"""The log of one study in a folder of a network file system: one append-only file per writer,
merged on read, no locks.

A writer appends its batch to its own file and flushes it, under the number of the place in the log
that is free next. Then it claims that place: it gives its file a second name, ``00000042`` for
place 42, by a hard link. Making a name is atomic on every network file system, and only one writer
can; whoever is second reads on and tries the next place. So the names say in which order the
batches stand, and which file holds each. A batch without a claim was never acknowledged and is
skipped, so a writer may be killed at any moment. No file is ever changed, locked or removed, and a
stale view only means that a claim fails.

Batches are read under the name of their place, so a copy whose hard links became files of their own
is read the same way. A place that is missing while later ones are there is a gap: such a folder is
damaged, and nothing is appended to it.

    writer-5f0c….log      42 7 2 9ae1…      place 42, decision 7, 2 events, checksum (`chain`)
                          {"event":"noted",...}
                          {"event":"trial_added",...}
    00000042              the same file under its second name
"""

import errno
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from scrimp.errors import ScrimpError, StorageError
from scrimp.storage.chain import link, next_link
from scrimp.storage.flushing import flush_folder
from scrimp.storage.forking import Connected
from scrimp.storage.plain_file import open_plain
from scrimp.storage.refusals import decision_taken, deleted_study

__all__ = ["JournalLog", "explained"]

PATIENCE = 5.0
"""Seconds to wait for bytes that are on the server but not yet seen here."""


@dataclass(frozen=True)
class _Batch:
    """``lines`` that ``decision`` appended; ``checksum`` is missing in what older versions
    wrote."""

    decision: int | None
    lines: list[bytes]
    checksum: bytes | None


@dataclass
class _Writer:
    """What was read of one writer's file: up to ``offset``; batches whose place was not reached
    yet."""

    offset: int = 0
    batches: dict[int, _Batch] = field(default_factory=dict)


class JournalLog(Connected):
    """The log in ``folder``; it belongs to the study ``name`` of the storage ``url``."""

    def __init__(self, folder: Path, name: str, url: str) -> None:
        super().__init__()
        self.folder = folder
        self.name = name
        self.url = url
        self.lines: list[bytes] = []
        self._decisions: set[int] = set()
        self._place = 0
        self._checksum: bytes | None = None
        self._writers: dict[
            int | bytes, _Writer
        ] = {}  # by inode; files of a copy, which share none, by content
        self._own: BinaryIO | None = None

    def close(self) -> None:
        """End this writer's file; the next batch begins another."""
        with self.lock:
            if self._own is not None:
                with suppress(OSError):
                    self._own.close()
                self._own = None

    def refresh(self) -> int:
        """Read what others appended; the length."""
        with self.lock, self._explained():
            with suppress(OSError):
                os.utime(self.folder)  # makes a network file system look at the folder afresh
            places = self._all_places() if self._place == 0 else {}
            last, deadline = max(places, default=-1), time.monotonic() + PATIENCE
            while True:
                while self._place in places or self._named(self._place).exists():
                    self._take(self._batch(places.get(self._place)))
                if last < self._place:
                    break
                if time.monotonic() > deadline:
                    raise self._gap()
                time.sleep(0.05)  # a view of the folder that is behind
            if not self.folder.is_dir():
                raise deleted_study(self.name, self.url)
            return len(self.lines)

    def append(self, lines: list[str], decision: int | None) -> int:
        """Store a batch; the length up to its end."""
        batch = [line.encode() for line in lines]
        with self.lock:
            while True:
                length = self.refresh()
                if not batch:
                    return length
                self._check_free()
                if decision is not None and decision in self._decisions:
                    raise decision_taken(self.name, decision)
                with self._explained():
                    whole = _Batch(decision, batch, link(self._checksum, b"\n".join(batch)))
                    if self._claim(whole):
                        self._take(whole)
                        return len(self.lines)

    def _take(self, batch: _Batch) -> None:
        """The next place of the log."""
        what = f"batch {self._place} of study {self.name!r}"
        self._checksum = next_link(self._checksum, b"\n".join(batch.lines), batch.checksum, what)
        self.lines.extend(batch.lines)
        if batch.decision is not None:
            self._decisions.add(batch.decision)
        self._place += 1

    def _claim(self, batch: _Batch) -> bool:
        """Whether the batch got the next place; False when somebody else has it."""
        try:
            own = self._opened()
            own.write(b"\n".join((_header(self._place, batch), *batch.lines, b"")))
            own.flush()
            os.fsync(own.fileno())
            place = self._named(self._place)
            try:
                os.link(own.name, place)
            except FileExistsError:
                # Ours after all when the answer to a first try was lost on the way.
                if _inode(place) != os.fstat(own.fileno()).st_ino:
                    return False
            flush_folder(self.folder)
        except OSError as error:
            # whatever is half written stays behind, in a file that is never used again
            self.close()
            if error.errno == errno.EMLINK:
                return False  # as many names as a file may have: go on with another file
            raise
        return True

    def _opened(self) -> BinaryIO:
        if self._own is None:
            self._own = (self.folder / f"writer-{uuid.uuid4().hex}.log").open("xb")
        return self._own

    def _named(self, place: int) -> Path:
        return self.folder / f"{place:08d}"

    def _all_places(self) -> dict[int, int]:
        """Places to inodes: one look at the folder tells which file holds each batch."""
        with os.scandir(self.folder) as entries:
            return {int(entry.name): entry.inode() for entry in entries if entry.name.isdigit()}

    def _batch(self, inode: int | None) -> _Batch:
        """The batch at the next place, whose file may be known to have this inode."""
        deadline = time.monotonic() + PATIENCE
        while True:
            writer = self._writers.get(inode) if inode is not None else None
            if writer is None or self._place not in writer.batches:
                writer = self._read_on(self._named(self._place))
            if self._place in writer.batches:
                return writer.batches.pop(self._place)
            if time.monotonic() > deadline:
                raise StorageError(
                    f"batch {self._place} of study {self.name!r} is missing from its file in"
                    f" {self.folder}; it is damaged: restore a backup"
                )
            time.sleep(0.05)  # claimed, so on the server; soon seen here too

    def _read_on(self, path: Path) -> _Writer:
        """Read the whole batches that are new in a file; opening it again shows what others
        flushed."""
        with open_plain(path) as file:
            status = os.fstat(file.fileno())
            if (
                status.st_nlink == 1
            ):  # a copy, which knows its batch and nothing of its writer's other names
                content = file.read()
                writer = self._writers.setdefault(sha256(content).digest(), _Writer())
                data = content[writer.offset :]
            else:
                writer = self._writers.setdefault(status.st_ino, _Writer())
                file.seek(writer.offset)
                data = file.read()
        rows = data.split(b"\n")
        rows.pop()  # what follows the last line's end: nothing, or a line that is not whole yet
        row = 0
        while row < len(rows):
            place, decision, count, checksum = _parsed(rows[row])
            end = row + 1 + count
            if end > len(rows):
                break
            if place >= self._place:  # earlier ones lost their claim
                writer.batches[place] = _Batch(decision, rows[row + 1 : end], checksum)
            writer.offset += sum(map(len, rows[row:end])) + end - row
            row = end
        return writer

    def _check_free(self) -> None:
        """`StorageError` when the next place was lost: a later one is there, which can only have
        been claimed after it.

        The later one is looked for first. A claim of the next place that comes in between is then
        seen, and is no gap.
        """
        deadline = time.monotonic() + PATIENCE
        while self._named(self._place + 1).exists() and not self._named(self._place).exists():
            if time.monotonic() > deadline:
                raise self._gap()
            time.sleep(0.05)  # a view of the folder that is behind

    def _gap(self) -> StorageError:
        return StorageError(
            f"batch {self._place} of study {self.name!r} is missing from {self.folder} while later"
            " ones are there; the folder is damaged, or a copy made while it was in use: restore a"
            " backup"
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        with explained(self.folder):
            try:
                yield
            except FileNotFoundError:
                if self.folder.is_dir():
                    raise
                raise deleted_study(self.name, self.url) from None


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """What went wrong with files in ``folder``, in words."""
    try:
        yield
    except ScrimpError:
        raise
    except ValueError as error:
        raise StorageError(f"a file in {folder} is damaged ({error}); restore a backup") from error
    except OSError as error:
        raise StorageError(_in_words(error, folder)) from error


def _in_words(error: OSError, folder: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of {folder} is full; this batch was not stored: free some space and go on"
    if error.errno in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EXDEV):
        return f"{folder} is on a file system without hard links ({error}); use a PostgreSQL server"
    if error.errno in (errno.EACCES, errno.EROFS):
        return f"{folder} cannot be written; check the permissions of the folder and what is in it"
    return f"{folder} cannot be used: {error}"


def _inode(path: Path) -> int | None:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None


def _header(place: int, batch: _Batch) -> bytes:
    decision = b"-" if batch.decision is None else b"%d" % batch.decision
    return b"%d %s %d %s" % (
        place,
        decision,
        len(batch.lines),
        (batch.checksum or b"").hex().encode(),
    )


def _parsed(header: bytes) -> tuple[int, int | None, int, bytes | None]:
    """Place, decision, number of lines and checksum."""
    place, decision, count, *checksum = header.split()
    return (
        int(place),
        None if decision == b"-" else int(decision),
        int(count),
        bytes.fromhex(checksum[0].decode()) if checksum else None,
    )
