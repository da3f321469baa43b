"""The names of a journal's studies: one small file per name, which says in which folder the study's
log is.

    names/<sha256 of the name>      {"number": 0, "name": "digits", "study": "5f0c…"}

Whoever may write to the folder may write here, so nothing is taken on trust: a record counts only
if it is a small plain file whose name is the digest of the study's name, and whose study is the
name of a folder beside it, never a path. What does not count is named in a warning and hides no
other study. A file that a power cut left empty is mended from the study's own log, which knows its
name.
"""

import logging
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from scrimp.errors import ScrimpError, StorageError
from scrimp.history.events import StudyCreated
from scrimp.storage.event_json import decode
from scrimp.storage.flushing import flush_folder, write_flushed
from scrimp.storage.journal_log import JournalLog
from scrimp.storage.plain_file import open_plain
from scrimp.storage.refusals import check_name

__all__ = ["JournalNames", "NameRecord", "publish"]

LARGEST = 4096
FOLDER = re.compile(r"[0-9a-f]{32}")

logger = logging.getLogger("scrimp")


class NameRecord(msgspec.Struct, frozen=True):
    """The study ``name``, the ``number``-th of its journal, has its log in the folder ``study``."""

    number: int
    name: str
    study: str


class JournalNames:
    """The names in the journal at ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._journal = folder
        self._folder = folder / "names"

    def path(self, name: str) -> Path:
        """The file of a study's name."""
        return self._folder / _digest(name)

    def find(self, name: str) -> NameRecord | None:
        """The record of ``name``; None without one, `StorageError` for one that cannot be believed
        or mended."""
        path = self.path(name)
        if not os.path.lexists(path):
            return None
        return self._read(path)

    def all(self) -> list[NameRecord]:
        """All records that can be believed, oldest first; a warning names each of the others."""
        return sorted(self._readable(), key=lambda record: record.number)

    def add(self, name: str, study: str) -> None:
        """Name a study; FileExistsError when the name is taken."""
        publish(
            self.path(name),
            NameRecord(1 + max((record.number for record in self.all()), default=-1), name, study),
        )

    def check_owner(self, name: str, log: JournalLog) -> None:
        """`StorageError` when the log is another study's, to which somebody gave a second name.

        A log that cannot be read passes: whoever reads it says what is wrong, and it can be
        deleted.
        """
        with suppress(ScrimpError, OSError):
            log.refresh()
        first = _first(log)
        if first is not None and first.name != name:
            raise StorageError(
                f"{self.path(name)} names the log of study {first.name!r}; somebody put it there:"
                " remove it"
            )

    def _readable(self) -> Iterator[NameRecord]:
        try:
            found = sorted(
                path for path in self._folder.iterdir() if not path.name.startswith("new-")
            )
        except FileNotFoundError:
            return
        for path in found:
            try:
                yield self._read(path)
            except FileNotFoundError:
                continue  # deleted just now
            except (ScrimpError, OSError) as error:
                logger.warning("%s", error)

    def _read(self, path: Path) -> NameRecord:
        content = _small_file(path)
        try:
            record = msgspec.json.decode(content, type=NameRecord)
        except ValueError:
            mended = self._mended(path)
            if mended is None:
                raise StorageError(
                    f"{path} is damaged, and no log in {self._journal} belongs to it; restore a"
                    " backup, or remove the file"
                ) from None
            return mended
        if not FOLDER.fullmatch(record.study) or _digest(record.name) != path.name:
            raise StorageError(
                f"{path} was not written by scrimp; somebody put it there: remove it"
            )
        if (self._journal / record.study).is_symlink():
            raise StorageError(
                f"{self._journal / record.study} is a link, not the folder of a study; remove"
                f" {path}"
            )
        check_name(record.name)
        return record

    def _mended(self, path: Path) -> NameRecord | None:
        """The record that a power cut took, from the log whose first event says a name with this
        digest."""
        for number, study in enumerate(sorted(self._journal.iterdir())):
            if not FOLDER.fullmatch(study.name) or study.is_symlink() or not study.is_dir():
                continue
            with suppress(ScrimpError, OSError):
                log = JournalLog(study, "?", str(self._journal))
                log.refresh()
                first = _first(log)
                if first is not None and _digest(first.name) == path.name:
                    record = NameRecord(number, first.name, study.name)
                    self._replace(path, record)
                    return record
        return None

    def _replace(self, path: Path, record: NameRecord) -> None:
        """Write the record anew; a folder that may only be read stays as it is."""
        fresh = path.with_name(f"new-{uuid.uuid4().hex}")
        with suppress(PermissionError):
            write_flushed(fresh, msgspec.json.encode(record))
            os.replace(fresh, path)
            flush_folder(path.parent)


def publish(path: Path, record: object) -> None:
    """Create a file with its content in one step, durably; FileExistsError when it is there."""
    fresh = path.with_name(f"new-{uuid.uuid4().hex}")
    try:
        write_flushed(fresh, msgspec.json.encode(record))
        os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
    flush_folder(path.parent)


def _first(log: JournalLog) -> StudyCreated | None:
    """How the study began, as far as the log was read."""
    with suppress(ScrimpError):
        match decode(log.lines[:1], "?"):
            case [StudyCreated() as first]:
                return first
    return None


def _digest(name: str) -> str:
    return sha256(name.encode(errors="replace")).hexdigest()


def _small_file(path: Path) -> bytes:
    """The content of a plain file; links are not followed, and pipes not waited for."""
    try:
        with open_plain(path) as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(
            f"{path} cannot be read ({error.strerror}); remove it, or restore a backup"
        ) from None
    if len(content) > LARGEST:
        raise StorageError(
            f"{path} is larger than {LARGEST} bytes, so scrimp did not write it: remove it"
        )
    return content
