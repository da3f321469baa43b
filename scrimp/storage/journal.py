"""Studies in a folder that many machines mount, for clusters without a database server.

Where SQLite gets damaged, on NFS, Lustre and their like, this is safe: it needs no locks, only
atomic hard links (`journal_log` tells how). The file server's clock dates the leases. It costs two
flushes per batch and a name in the folder for each. A copy of the folder can be opened too, whether
or not the copying kept hard links; `scrimp backup` makes a smaller one.

    storage = JournalStorage("/shared/ann/studies")

    studies/scrimp-journal        the format's version
            names/<digest>        {"number": 0, "name": "digits", "study": "5f0c…"}
            5f0c…/                the study's log
            5f0c…/leases/3-1      who runs attempt 1 of trial 3; its date is the renewal
"""

import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from weakref import WeakSet

import msgspec

from scrimp.errors import StorageError
from scrimp.history.events import Event
from scrimp.storage.event_json import Appended, decode
from scrimp.storage.flushing import write_flushed
from scrimp.storage.journal_log import JournalLog, explained
from scrimp.storage.journal_names import JournalNames, publish
from scrimp.storage.refusals import (
    check_name,
    deleted_study,
    existing_study,
    lines_of,
    missing_folder,
    unknown_study,
)
from scrimp.storage.store import IDENTITY, EventStore, Lease, Storage

__all__ = ["JournalStorage"]

VERSION = 2
"""1 had no checksums in its logs; it is read as it is, and what is appended has them."""

MARK = "scrimp-journal"


class JournalStorage(Storage):
    """The studies in ``folder``, which the first study creates."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        self._folder = Path(folder).expanduser().absolute()
        self._names = JournalNames(self._folder)
        self._logs: WeakSet[JournalLog] = WeakSet()

    def __reduce__(self) -> tuple[object, ...]:
        return JournalStorage, (self._folder,)

    @property
    def url(self) -> str:
        return f"journal:///{self._folder}"

    @property
    def path(self) -> Path:
        return self._folder

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
            self._names.path(name).unlink(missing_ok=True)
            gone = self._folder / f"deleted-{study}"
            os.replace(self._folder / study, gone)  # at once, so that nobody sees half of it
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
        """Recognise the folder, or make it ours."""
        if not self._folder.parent.is_dir():
            raise missing_folder(self._folder, "journal")
        self._folder.mkdir(exist_ok=True)
        self._check()
        (self._folder / "names").mkdir(exist_ok=True)
        with suppress(FileExistsError):
            publish(self._folder / MARK, VERSION)

    def _check(self) -> None:
        """`StorageError` when the folder is something else; one that is empty or missing may become
        ours."""
        try:
            version = int(
                (self._folder / MARK).read_text() or VERSION
            )  # empty: cut short by a power cut
        except FileNotFoundError:
            others = [path.name for path in self._folder.iterdir()] if self._folder.exists() else []
            if not {MARK, "names"} & set(others) and others:
                raise StorageError(
                    f"{self._folder} holds other files; choose a new or an empty folder"
                ) from None
            return
        if version > VERSION:
            raise StorageError(
                f"{self._folder} has format {version}, this scrimp knows {VERSION}; upgrade scrimp"
                " to use it"
            )


class _JournalStore(EventStore):
    def __init__(self, log: JournalLog) -> None:
        self._log = log

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (self._log.folder, self._log.name, self._log.url)

    @property
    def name(self) -> str:
        return self._log.name

    def append(self, events: Sequence[Appended], decision: int | None = None) -> int:
        return self._log.append(lines_of(events, decision), decision)

    def read(self, start: int = 0) -> list[Event]:
        with self._log.lock:
            self._log.refresh()
            return decode(self._log.lines[start:], self.name, start)

    def lines(self) -> list[bytes]:
        with self._log.lock:
            self._log.refresh()
            return list(self._log.lines)

    def lease(self, lease: Lease) -> None:
        with self._files() as folder:
            held = self._newest(folder).get(lease.trial, 0)
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
            clock = folder / "clock"
            clock.touch()
            now = clock.stat().st_mtime  # the server's time
            found = (
                _read_lease(folder, trial, attempt, now)
                for trial, attempt in self._newest(folder).items()
            )
            return sorted(
                (lease for lease in found if lease is not None), key=lambda lease: lease.trial
            )

    @contextmanager
    def _files(self) -> Iterator[Path]:
        """The folder of the leases, which is there as long as the study is."""
        folder = self._log.folder / "leases"
        with explained(folder):
            try:
                with suppress(OSError):
                    os.utime(folder)  # makes a network file system look at the folder afresh
                yield folder
            except FileNotFoundError:
                raise deleted_study(self.name, self._log.url) from None

    def _newest(self, folder: Path) -> dict[int, int]:
        """Trials to the newest attempt that holds a lease."""
        newest: dict[int, int] = {}
        for entry in os.listdir(folder):
            trial, dash, attempt = entry.partition("-")
            if dash and trial.isdecimal() and attempt.isdecimal():
                newest[int(trial)] = max(int(attempt), newest.get(int(trial), 0))
        return newest


def _reopened(folder: Path, name: str, url: str) -> EventStore:
    return _JournalStore(JournalLog(folder, name, url))


def _read_lease(folder: Path, trial: int, attempt: int, now: float) -> Lease | None:
    """The lease in a file; its date is asked of the open file, since dates by name may be
    remembered ones.

    A file that a power cut left torn is a lease that ran out: its worker lost power too.
    """
    try:
        with (folder / f"{trial}-{attempt}").open("rb") as file:
            lease = msgspec.json.decode(file.read(), type=Lease)
            date = os.fstat(file.fileno()).st_mtime
            return replace(
                lease, remaining=lease.remaining + date - now, seconds=lease.remaining, renewal=date
            )
    except FileNotFoundError:
        return None  # released just now
    except ValueError:
        return Lease(trial, attempt, "unknown", "unknown", 0, -1.0)
