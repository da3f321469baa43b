"""The log of one study in a folder of a network file system: one append-only file per writer,
merged on reading.

A writer appends its batch to its own file and flushes it. Then it claims the next free place in the
log: it gives its file a second name, ``00000042`` for place 42, by a hard link. Creating a name is
atomic on every network file system, so only one writer succeeds; the others read the new batch and
try the next place. So the names give the order of the batches and the file of each, and the batches
of one file follow each other. Writers flush at the same time; only the claims, which take no time,
come one after another. A batch without a claim was never acknowledged and is skipped, so a writer
may be killed at any moment. No batch is ever changed or removed, and a stale view of the folder
only makes a claim fail.

A writer that finds its decision taken reuses the number of its batch, so of several batches with
one number the last counts. The checksum of a batch covers the log as its writer had seen it: the
first ``seen`` places. Copies of the folder whose hard links became separate files are read the same
way. A missing place with later ones present is a gap: the folder is damaged, and nothing is
appended to it.

    writer-5f0c….log      writer 5f0c…
                          3 41 7 2 9ae1…    batch 3 of this writer, 41 places seen, decision 7, 2 events, checksum
                          1 {"event":"decided",...}
                          1 {"event":"trial_added",...}
    00000042              the same file under its second name

Deciders wait for each other (``turn.lock``), since of two that decide at once one does so in vain.
The lock only saves work: where the file system has none, or one is held too long, they go ahead.
"""

import errno
import fcntl
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeVar

from scrimp.errors import ScrimpError, StorageError
from scrimp.storage.durable_files import PLAIN, flush_folder, plain_descriptor
from scrimp.storage.event_json import damaged, link, next_link
from scrimp.storage.forking import Connected
from scrimp.storage.store import decision_taken, deleted_study

T = TypeVar("T")

MAX_VISIBILITY_SECONDS = 5.0
"""The time to wait for bytes or names that are on the server but not visible here yet."""

MAX_TURN_SECONDS = 5.0
"""The time to wait for another process that decides."""

MAX_PAUSE_SECONDS = 0.002
"""The longest pause between two attempts to take the lock."""

STALE_PAUSES = (0.02, 0.1, 0.5)
"""Seconds to wait before using the folder again when the file server has lost track of a file."""

MAX_FIRST_LINE_BYTES = 64


@dataclass(frozen=True)
class _Batch:
    """The ``lines`` that ``decision`` appended after the first ``seen`` places, and the
    ``checksum`` of both."""

    seen: int
    decision: int | None
    lines: list[bytes]
    checksum: bytes


@dataclass
class _Writer:
    """One writer's file, read up to ``offset``: the number of its batches that were ``taken`` into
    the log, and the others by number."""

    offset: int = 0
    taken: int = 0
    batches: dict[int, _Batch] = field(default_factory=dict)


class JournalLog(Connected):
    """The log in ``folder`` of the study ``name`` in the storage ``url``."""

    def __init__(self, folder: Path, name: str, url: str) -> None:
        super().__init__()
        self.folder = folder
        self.name = name
        self.url = url
        self.lines: list[bytes] = []
        self._decisions: set[int] = set()
        # The checksum of the log up to each place.
        self._chain: list[bytes] = []
        # The highest place that was ever seen; one below it that is missing was lost.
        self._seen = -1
        self._writers: dict[bytes, _Writer] = {}
        self._own: BinaryIO | None = None
        self._own_id = b""
        self._thread_turn = threading.Lock()
        self._turn: BinaryIO | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return JournalLog, (self.folder, self.name, self.url)

    @property
    def _place(self) -> int:
        """The next place."""
        return len(self._chain)

    def close(self) -> None:
        """Close this writer's file; the next batch begins another."""
        with self.lock:
            if self._own is not None:
                with suppress(OSError):
                    self._own.close()
                self._own = None

    def refresh(self) -> int:
        """Read the batches that other writers appended; return the length of the log."""
        with self.lock, self._explained():
            return _despite_stale(self._read_new)

    def _read_new(self) -> int:
        with suppress(OSError):
            # Makes a network file system read the folder again.
            os.utime(self.folder)
        places = self._all_places() if not self._chain else {}
        self._seen = max(self._seen, *places, -1)
        deadline = time.monotonic() + MAX_VISIBILITY_SECONDS
        complete: dict[int, _Writer] = {}
        while True:
            while (batch := self._next_batch(places.get(self._place), complete)) is not None:
                self._take(batch)
            if self._seen < self._place:
                break
            if time.monotonic() > deadline:
                raise self._gap()
            # Our view of the folder may be behind.
            time.sleep(0.05)
        if not os.path.isdir(self.folder):
            raise deleted_study(self.name, self.url)
        return len(self.lines)

    def first_lines(self) -> list[bytes]:
        """Return the lines of the first batch, unchecked; none when it cannot be read."""
        with self.lock:
            if not self.lines:
                with suppress(ScrimpError, OSError, ValueError):
                    batch = self._read_on(self._named(0)).batches.get(0)
                    return [] if batch is None else batch.lines
            return self.lines[:1]

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the turn within the block, or until a decision is appended."""
        with self._thread_turn:
            try:
                self._take_turn()
                yield
            finally:
                self._end_turn()

    def _take_turn(self) -> None:
        deadline, pause = time.monotonic() + MAX_TURN_SECONDS, 0.0002
        # Without the file, or with a link or a pipe in its place, there are no turns.
        with suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | PLAIN
            self._turn = os.fdopen(os.open(self.folder / "turn.lock", flags, 0o666), "ab")
        while self._turn is not None:
            try:
                fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if not isinstance(error, BlockingIOError) or time.monotonic() > deadline:
                    self._end_turn()
            time.sleep(pause)
            pause = min(1.5 * pause, MAX_PAUSE_SECONDS)

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            # Not only closed, since a process that was forked meanwhile holds the file, too.
            with suppress(OSError):
                fcntl.flock(turn, fcntl.LOCK_UN)
            turn.close()

    def append(self, lines: list[str], decision: int | None) -> int:
        """Store a batch; return the length of the log up to its end."""
        with self.lock:
            if not lines:
                return self.refresh()
            try:
                length = self._store([line.encode() for line in lines], decision)
            finally:
                if decision is not None:
                    self._end_turn()
            with self._explained():
                _despite_stale(lambda: flush_folder(self.folder))
            return length

    def _store(self, lines: list[bytes], decision: int | None) -> int:
        """Write a batch and claim a place, unflushed; return the length of the log up to its end."""
        batch: _Batch | None = None
        while True:
            self.refresh()
            self._check_free()
            if decision is not None and decision in self._decisions:
                raise decision_taken(self.name, decision)
            with self._explained():
                if batch is None or self._own is None:
                    before = self._chain[-1] if self._chain else None
                    checksum = link(before, b"\n".join(lines))
                    batch = _Batch(self._place, decision, lines, checksum)
                    # Others may append while it is flushed, so the log is read again.
                    self._write(batch)
                elif self._claim(self._own):
                    self._writers[self._own_id].taken += 1
                    self._take(batch)
                    return len(self.lines)

    def _write(self, batch: _Batch) -> None:
        """Write a batch to this writer's file and flush it."""
        try:
            if self._own is None:
                self._own_id = uuid.uuid4().hex.encode()
                self._own = (self.folder / f"writer-{self._own_id.decode()}.log").open("xb")
                self._own.write(b"writer %s\n" % self._own_id)
                self._writers[self._own_id] = _Writer()
            header = _header(self._writers[self._own_id].taken, batch)
            self._own.write(b"\n".join((header, *batch.lines, b"")))
            self._own.flush()
            os.fsync(self._own.fileno())
        except OSError as error:
            # A half-written batch stays in a file that is never used again.
            self.close()
            if error.errno != errno.ESTALE:
                raise

    def _claim(self, own: BinaryIO) -> bool:
        """Claim the next place for the last batch of this writer's file; return False when it is
        another's, or when the file can get no more names and was closed."""
        place = self._named(self._place)
        try:
            os.link(own.name, place)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ESTALE, errno.EMLINK):
                # Whether the batch has a place is not known, so nothing may follow it.
                self.close()
                raise
            # The name is ours if the answer to a first attempt was lost on the way.
            with suppress(FileNotFoundError):
                if os.path.samefile(place, own.name):
                    return True
            if error.errno != errno.EEXIST:
                self.close()
            return False
        return True

    def _take(self, batch: _Batch) -> None:
        """Add the batch at the next place to the log that was read."""
        what = f"batch {self._place} of study {self.name!r}"
        if batch.seen > self._place:
            raise damaged(what)
        before = self._chain[batch.seen - 1] if batch.seen else None
        checksum = next_link(before, b"\n".join(batch.lines), batch.checksum, what)
        self._chain.append(link(self._chain[-1] if self._chain else None, checksum))
        self.lines.extend(batch.lines)
        if batch.decision is not None:
            self._decisions.add(batch.decision)

    def _named(self, place: int) -> str:
        return f"{self.folder}/{place:08d}"

    def _all_places(self) -> dict[int, int]:
        """Map places to inodes; one scan of the folder finds the file of each batch."""
        with os.scandir(self.folder) as entries:
            return {int(entry.name): entry.inode() for entry in entries if entry.name.isdigit()}

    def _next_batch(self, inode: int | None, complete: dict[int, _Writer]) -> _Batch | None:
        """Return the batch at the next place; None when no file has its name.

        ``complete`` has the files, by ``inode``, that were read after the folder was scanned, so
        that each is opened once.
        """
        deadline = time.monotonic() + MAX_VISIBILITY_SECONDS
        writer = None if inode is None else complete.get(inode)
        while True:
            if writer is None:
                try:
                    writer = self._read_on(self._named(self._place))
                except FileNotFoundError:
                    return None
            if writer.taken in writer.batches:
                if inode is not None:
                    complete[inode] = writer
                writer.taken += 1
                return writer.batches.pop(writer.taken - 1)
            if time.monotonic() > deadline:
                raise StorageError(
                    f"batch {self._place} of study {self.name!r} is missing from its file in"
                    f" {self.folder}; it is damaged: restore a backup"
                )
            # The batch was claimed, so it is on the server and will be visible here soon.
            time.sleep(0.05)
            writer = None

    def _read_on(self, path: str) -> _Writer:
        """Read the complete new batches of a file; opening it again shows what was flushed."""
        descriptor = plain_descriptor(path)
        try:
            first, newline, _ = os.pread(descriptor, MAX_FIRST_LINE_BYTES, 0).partition(b"\n")
            if not newline:
                return _Writer()
            word, _, identity = first.partition(b" ")
            if word != b"writer":
                raise ValueError(f"{path} does not begin as a writer's file does")
            writer = self._writers.setdefault(identity, _Writer())
            writer.offset = max(writer.offset, len(first) + 1)
            size = max(os.fstat(descriptor).st_size - writer.offset, 0)
            data = os.pread(descriptor, size, writer.offset)
        finally:
            os.close(descriptor)
        rows = data.split(b"\n")
        rows.pop()  # empty, or a line that is not complete yet
        row = 0
        while row < len(rows):
            number, count, batch = _parsed(rows, row)
            if batch is None:
                break
            if number >= writer.taken:
                writer.batches[number] = batch
            writer.offset += sum(map(len, rows[row : row + 1 + count])) + 1 + count
            row += 1 + count
        return writer

    def _check_free(self) -> None:
        """Raise `StorageError` when the next place was lost: a later one exists, which can only
        have been claimed after it.

        The later place is checked first, so that a claim of the next place in between is seen and
        not taken for a gap.
        """
        deadline = time.monotonic() + MAX_VISIBILITY_SECONDS
        while os.path.exists(self._named(self._place + 1)) and not os.path.exists(
            self._named(self._place)
        ):
            if time.monotonic() > deadline:
                raise self._gap()
            # Our view of the folder may be behind.
            time.sleep(0.05)

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


def _despite_stale(action: Callable[[], T]) -> T:
    """Run ``action``, and again when the file server has lost track of a file."""
    for pause in STALE_PAUSES:
        try:
            return action()
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
        time.sleep(pause)
    return action()


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn errors of files in ``folder`` into `StorageError` with a remedy."""
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
        return f"the disk of {folder} is full; this batch was not stored: free some space and run again"
    if error.errno in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EXDEV):
        return f"{folder} is on a file system without hard links ({error}); use a PostgreSQL server"
    if error.errno in (errno.EACCES, errno.EROFS):
        return f"{folder} cannot be written; check the permissions of the folder and what is in it"
    return f"{folder} cannot be used: {error}"


def _header(number: int, batch: _Batch) -> bytes:
    decision = b"-" if batch.decision is None else b"%d" % batch.decision
    checksum = batch.checksum.hex().encode()
    return b"%d %d %s %d %s" % (number, batch.seen, decision, len(batch.lines), checksum)


def _parsed(rows: list[bytes], row: int) -> tuple[int, int, _Batch | None]:
    """Return the number of the batch that begins at ``row``, how many lines it has, and the batch
    itself; None when it is not complete."""
    number, seen, decision, count, checksum = rows[row].split()
    lines = rows[row + 1 : row + 1 + int(count)]
    if len(lines) < int(count):
        return int(number), int(count), None
    decided = None if decision == b"-" else int(decision)
    batch = _Batch(int(seen), decided, lines, bytes.fromhex(checksum.decode()))
    return int(number), int(count), batch
