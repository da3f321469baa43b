"""Studies in a folder that many machines mount, for clusters without a database server.

This is safe on NFS, Lustre and other network file systems, where SQLite files get damaged: it relies
on no locks, only on atomic hard links (see `journal_log`). The file server's clock dates the leases. Each
batch costs two flushes and one name in the folder. A copy of the folder can be opened too, whether
or not copying kept the hard links; `scrimp backup` makes a smaller one.

    storage = JournalStorage("/shared/ann/studies")

    studies/scrimp-journal        the version of the layout
            names/<sha256>        {"number": 0, "name": "digits", "study": "5f0c…"}
            5f0c…/                the study's log
            5f0c…/leases/3-1      the lease of attempt 1 of trial 3; its date is the renewal

Anyone who may write to the folder may write name files, so a name file counts only if it is a small
regular file, named by the digest of the study's name, whose study is a folder of the journal and
not a path. Others are named in a warning and hide no study. A name file that a power cut left empty
is restored from the study's own log, which holds its name.
"""

import errno
import logging
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from hashlib import sha256
from os import PathLike
from pathlib import Path
from weakref import WeakSet

import msgspec

from scrimp.errors import ScrimpError, StorageError
from scrimp.storage.durable_files import PLAIN, flush_folder, open_plain, write_flushed
from scrimp.storage.event_json import Appended, decode
from scrimp.storage.journal_log import JournalLog, explained
from scrimp.storage.leases import MAX_LEASES, Lease
from scrimp.storage.store import (
    IDENTITY,
    EventStore,
    SharedTurn,
    Storage,
    check_name,
    deleted_study,
    existing_study,
    lines_of,
    missing_folder,
    unknown_study,
)
from scrimp.study_log.events import Event, StudyCreated

LAYOUT_VERSION = 1
"""The version of the folder's layout."""

VERSION_FILE = "scrimp-journal"

MAX_DELETION_SECONDS = 10.0
"""The time after which a deletion that is not complete counts as abandoned."""


class JournalStorage(Storage):
    """The studies in ``folder``, which is created with the first study."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        self._folder = self.path = Path(folder).expanduser().absolute()
        self.url = f"journal:///{self._folder}"
        self._names = JournalNames(self._folder)
        self._logs: WeakSet[JournalLog] = WeakSet()

    def __reduce__(self) -> tuple[object, ...]:
        return JournalStorage, (self._folder,)

    def create(self, name: str, events: Sequence[Appended]) -> EventStore:
        check_name(name)
        lines = lines_of(events, first=True)
        study = uuid.uuid4().hex
        with explained(self._folder):
            self._prepare()
            (self._folder / study / "leases").mkdir(parents=True)
            log = self._log(name, study)
            log.append(lines, None)
            try:
                self._names.add(name, study)
            except FileExistsError:
                log.close()
                shutil.rmtree(self._folder / study, ignore_errors=True)
                raise existing_study(name, self.url) from None
        return _JournalStore(log)

    def open(self, name: str) -> EventStore:
        log = self._log(name, self._study(name))
        self._names.check_owner(name, log)
        return _JournalStore(log)

    def names(self) -> list[str]:
        with explained(self._folder):
            self._check()
            return [record.name for record in self._names.all()]

    def delete(self, name: str) -> None:
        study = self._study(name)
        self._names.check_owner(name, self._log(name, study))
        with explained(self._folder):
            gone = self._folder / f"deleted-{study}"
            try:
                # In one step, so that no process sees half of it, and one process deletes it.
                os.replace(self._folder / study, gone)
            except FileNotFoundError:
                # Another process deletes it, or was killed while it did.
                with suppress(FileNotFoundError):
                    os.utime(self._folder)
                    now = self._folder.stat().st_mtime  # the time of the file server
                    if now - gone.stat().st_ctime > MAX_DELETION_SECONDS:
                        self._names.remove(name, study)
                        shutil.rmtree(gone, ignore_errors=True)
                raise deleted_study(name, self.url) from None
            self._names.remove(name, study)
            shutil.rmtree(gone, ignore_errors=True)

    def identity(self) -> str:
        with explained(self._folder):
            self._check()
            with suppress(FileExistsError):
                if not (self._folder / IDENTITY).exists():
                    publish(self._folder / IDENTITY, uuid.uuid4().hex)
            return str(msgspec.json.decode((self._folder / IDENTITY).read_bytes()))

    def close(self) -> None:
        for log in list(self._logs):
            log.close()

    def _log(self, name: str, study: str) -> JournalLog:
        log = JournalLog(self._folder / study, name, self.url)
        self._logs.add(log)
        return log

    def _study(self, name: str) -> str:
        with explained(self._folder):
            self._check()
            record = self._names.find(name)
        if record is None:
            raise unknown_study(name, self.names(), self.url)
        return record.study

    def _prepare(self) -> None:
        """Check the folder, and create what is missing in it."""
        if not self._folder.parent.is_dir():
            raise missing_folder(self._folder, "journal")
        self._folder.mkdir(exist_ok=True)
        self._check()
        (self._folder / "names").mkdir(exist_ok=True)
        with suppress(FileExistsError):
            publish(self._folder / VERSION_FILE, LAYOUT_VERSION)

    def _check(self) -> None:
        """Raise `StorageError` for a folder of something else; an empty or missing one is fine."""
        try:
            # An empty file was cut short by a power cut.
            version = int((self._folder / VERSION_FILE).read_text() or LAYOUT_VERSION)
        except FileNotFoundError:
            others = [path.name for path in self._folder.iterdir()] if self._folder.exists() else []
            if not {VERSION_FILE, "names"} & set(others) and others:
                raise StorageError(
                    f"{self._folder} contains other files; choose a new or an empty folder"
                ) from None
            return
        if version > LAYOUT_VERSION:
            raise StorageError(
                f"{self._folder} has format {version}, this scrimp knows {LAYOUT_VERSION}; upgrade scrimp"
                " to use it"
            )


class _JournalStore(EventStore):
    def __init__(self, log: JournalLog) -> None:
        self.name = log.name
        self._log = log

    def append(self, events: Sequence[Appended], decision: int | None = None) -> int:
        return self._log.append(lines_of(events, decision), decision)

    def read(self, start: int = 0) -> list[Event]:
        with self._log.lock:
            self._log.refresh()
            return decode(self._log.lines[start:], self.name, start)

    @contextmanager
    def turn(self, start: int, shared: SharedTurn | None = None) -> Iterator[list[Event]]:
        with self._log.turn():
            yield self.read(start)

    def lines(self) -> list[bytes]:
        with self._log.lock:
            self._log.refresh()
            return list(self._log.lines)

    def lease(self, lease: Lease) -> None:
        with self._files() as folder:
            held = _newest_attempts(folder).get(lease.trial, 0)
            if held > lease.attempt:
                return
            fresh = folder / f"new-{uuid.uuid4().hex}"
            write_flushed(fresh, msgspec.json.encode(asdict(lease)))
            os.replace(fresh, folder / f"{lease.trial}-{lease.attempt}")
            if held < lease.attempt:
                (folder / f"{lease.trial}-{held}").unlink(missing_ok=True)

    def release(self, trial: int, attempt: int) -> None:
        with suppress(FileNotFoundError), explained(self._log.folder):
            (self._log.folder / "leases" / f"{trial}-{attempt}").unlink(missing_ok=True)

    def leases(self) -> list[Lease]:
        with self._files() as folder:
            clock = os.open(folder / "clock", os.O_WRONLY | os.O_CREAT | PLAIN, 0o666)
            try:
                os.utime(clock)
                now = os.fstat(clock).st_mtime  # the time of the file server
            finally:
                os.close(clock)
            newest = sorted(_newest_attempts(folder).items())[:MAX_LEASES]
            found = (_read_lease(folder, trial, attempt, now) for trial, attempt in newest)
            return [lease for lease in found if lease is not None]

    @contextmanager
    def _files(self) -> Iterator[Path]:
        """Yield the folder of the leases, which exists as long as the study does."""
        folder = self._log.folder / "leases"
        if folder.is_symlink():
            raise StorageError(
                f"{folder} is a link, so scrimp did not write it: remove it, or restore a backup"
            )
        with explained(folder):
            try:
                with suppress(OSError):
                    # Makes a network file system read the folder again.
                    os.utime(folder)
                yield folder
            except FileNotFoundError:
                raise deleted_study(self.name, self._log.url) from None


def _newest_attempts(folder: Path) -> dict[int, int]:
    """Map each trial to the newest attempt that holds a lease."""
    newest: dict[int, int] = {}
    for entry in os.listdir(folder):
        trial, dash, attempt = entry.partition("-")
        if dash and trial.isdecimal() and attempt.isdecimal():
            newest[int(trial)] = max(int(attempt), newest.get(int(trial), 0))
    return newest


def _read_lease(folder: Path, trial: int, attempt: int, now: float) -> Lease | None:
    """Read a lease. Its date is taken from the open file, since a date by name may be cached. A
    file that a power cut left torn is a lease that ran out: its worker lost power too. So is what was
    planted, such as a link or a pipe."""
    try:
        with open_plain(folder / f"{trial}-{attempt}") as file:
            lease = msgspec.json.decode(file.read(), type=Lease)
            date = os.fstat(file.fileno()).st_mtime
            seconds = lease.remaining
            return replace(lease, remaining=seconds + date - now, seconds=seconds, renewal=date)
    except FileNotFoundError:
        return None  # released just now
    except (ValueError, StorageError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.ELOOP:
            raise
        return Lease(trial, attempt, "unknown", "unknown", 0, -1.0)


MAX_NAME_FILE_BYTES = 4096
STUDY_FOLDER = re.compile(r"[0-9a-f]{32}")

logger = logging.getLogger("scrimp")


class NameRecord(msgspec.Struct, frozen=True):
    """The study ``name``, number ``number`` of its journal, with its log in the folder ``study``."""

    number: int
    name: str
    study: str


class JournalNames:
    """The names in the journal at ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._journal = folder
        self._folder = folder / "names"

    def path(self, name: str) -> Path:
        """Return the file for a study's name."""
        return self._folder / _digest(name)

    def find(self, name: str) -> NameRecord | None:
        """Return the record of ``name``, None without one; `StorageError` for a damaged one."""
        with suppress(FileNotFoundError):
            return self._read(self.path(name))
        return None

    def all(self) -> list[NameRecord]:
        """Return all valid records, oldest first; warn of each other one."""
        records = []
        with suppress(FileNotFoundError):
            for path in self._folder.iterdir():
                try:
                    if not path.name.startswith("new-"):
                        records.append(self._read(path))
                except FileNotFoundError:
                    continue  # deleted just now
                except (ScrimpError, OSError) as error:
                    logger.warning("%s", error)
        return sorted(records, key=lambda record: (record.number, record.name))

    def add(self, name: str, study: str) -> None:
        """Add a name; FileExistsError when it is taken."""
        number = 1 + max((record.number for record in self.all()), default=-1)
        publish(self.path(name), NameRecord(number, name, study))

    def remove(self, name: str, study: str) -> None:
        """Remove the name of the deleted ``study``; the name of a later study stays."""
        path, taken = self.path(name), self._folder / f"new-{uuid.uuid4().hex}"
        with suppress(FileNotFoundError):
            if _study_of(path) in (study, None):
                os.replace(path, taken)
                # Another process may have removed it first, and a third used the name again.
                if _study_of(taken) not in (study, None):
                    with suppress(FileExistsError):
                        os.link(taken, path)
                taken.unlink()
                flush_folder(self._folder)

    def check_owner(self, name: str, log: JournalLog) -> None:
        """Raise `StorageError` when the log belongs to a study of another name. A log that cannot
        be read passes: reading it says what is wrong, and the study can still be deleted."""
        first = _first(log)
        if first is not None and first.name != name:
            raise StorageError(
                f"{self.path(name)} names the log of study {first.name!r}; scrimp did not"
                " write it: remove it"
            )

    def _read(self, path: Path) -> NameRecord:
        content = _small_file(path)
        try:
            record = msgspec.json.decode(content, type=NameRecord)
        except ValueError:
            restored = self._restore(path)
            if restored is not None:
                return restored
            raise StorageError(
                f"{path} is damaged, and no log in {self._journal} belongs to it; restore a backup,"
                " or remove the file"
            ) from None
        if not STUDY_FOLDER.fullmatch(record.study) or _digest(record.name) != path.name:
            raise StorageError(f"{path} was not written by scrimp: remove it")
        if (self._journal / record.study).is_symlink():
            raise StorageError(
                f"{self._journal / record.study} is a link, not the folder of a study; remove"
                f" {path}"
            )
        check_name(record.name)
        return record

    def _restore(self, path: Path) -> NameRecord | None:
        """Restore a record that a power cut took, from the log whose study has this digest."""
        for number, study in enumerate(sorted(self._journal.iterdir())):
            if not STUDY_FOLDER.fullmatch(study.name) or study.is_symlink() or not study.is_dir():
                continue
            with suppress(ScrimpError, OSError):
                first = _first(JournalLog(study, "?", str(self._journal)))
                if first is not None and _digest(first.name) == path.name:
                    record = NameRecord(number, first.name, study.name)
                    fresh = path.with_name(f"new-{uuid.uuid4().hex}")
                    with suppress(PermissionError):  # a read-only folder stays as it is
                        write_flushed(fresh, msgspec.json.encode(record))
                        os.replace(fresh, path)
                        flush_folder(path.parent)
                    return record
        return None


def publish(path: Path, record: object) -> None:
    """Create a file with its content in one durable step; FileExistsError when it exists."""
    fresh = path.with_name(f"new-{uuid.uuid4().hex}")
    try:
        write_flushed(fresh, msgspec.json.encode(record))
        os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
    flush_folder(path.parent)


def _study_of(path: Path) -> str | None:
    """Return the study that the name file at ``path`` names; None when it is damaged."""
    try:
        return msgspec.json.decode(_small_file(path), type=NameRecord).study
    except (ScrimpError, ValueError):
        return None


def _first(log: JournalLog) -> StudyCreated | None:
    """Return the first event of the study, None when it was not read."""
    with suppress(ScrimpError):
        match decode(log.first_lines()[:1], "?"):
            case [StudyCreated() as first]:
                return first
    return None


def _digest(name: str) -> str:
    return sha256(name.encode(errors="replace")).hexdigest()


def _small_file(path: Path) -> bytes:
    """Read a small regular file; links are not followed."""
    try:
        with open_plain(path) as file:
            content = file.read(MAX_NAME_FILE_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(
            f"{path} cannot be read ({error.strerror}); remove it, or restore a backup"
        ) from None
    if len(content) > MAX_NAME_FILE_BYTES:
        raise StorageError(
            f"{path} is larger than {MAX_NAME_FILE_BYTES} bytes, so scrimp did not write it: remove it"
        )
    return content
