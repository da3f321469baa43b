"""Studies in one SQLite file, the default. Any number of threads and processes of one machine may
share it.

Each batch is one transaction with one flush to disk (write-ahead log, synchronous=FULL): durable
when `append` returns, and never torn, even if the process is killed. A unique index makes decision
numbers unique. SQLite's own clock dates the leases. Every event carries a checksum of itself and
all before it (see `event_json`), which is checked whenever a log is read from its beginning.

    storage = SqliteStorage("scrimp.db")
    store = storage.open("digits")

`SqliteFile` is the connection of this process. Threads share it under a lock; writers would wait
for each other anyway. Reading creates no file; the first study does. The schema's version is the
number of steps applied so far (`PRAGMA user_version`). An empty file is version 0, so creating and
upgrading a database are the same operation.

Files on network file systems are refused (`durable_files.check_local`).
"""

import logging
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from scrimp.errors import StorageError, StudyError
from scrimp.storage.durable_files import check_local
from scrimp.storage.event_json import Appended, check_chain, damaged, decode, link, next_link
from scrimp.storage.forking import Connected
from scrimp.storage.leases import MAX_LEASES, Lease
from scrimp.storage.store import (
    IDENTITY,
    MAX_PAGE_EVENTS,
    EventStore,
    ServedStore,
    Storage,
    check_name,
    decision_taken,
    deleted_study,
    existing_study,
    lines_of,
    missing_folder,
    unknown_study,
)
from scrimp.study_log.events import Event

logger = logging.getLogger("scrimp")

NOW = "(julianday('now') - 2440587.5) * 86400.0"
"""An expression for the seconds since 1970 that every version of SQLite understands."""

LEASE = f"""
INSERT INTO leases (study, trial, attempt, worker, host, pid, started, expires, seconds)
VALUES (?, ?, ?, ?, ?, ?, ?, ? + {NOW}, ?) ON CONFLICT (study, trial) DO UPDATE SET
    (attempt, worker, host, pid, started, expires, seconds) = (excluded.attempt, excluded.worker,
    excluded.host, excluded.pid, excluded.started, excluded.expires, excluded.seconds)
WHERE excluded.attempt >= attempt
"""

BATCHES = """
CREATE TABLE IF NOT EXISTS batches (
    study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE, key BLOB NOT NULL,
    position INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (study, key)
) WITHOUT ROWID
"""
"""The keys of batches that came over a network, in a table that only a server makes."""

T = TypeVar("T")
Row = tuple[Any, ...]

APPLICATION_ID = 0x7363726D
"""The id of scrimp's databases ("scrm") in the header of the file."""

SCHEMA_STEPS = (
    """
    CREATE TABLE studies (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE);
    CREATE TABLE events (
        study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,
        position INTEGER NOT NULL,
        decision INTEGER,
        event TEXT NOT NULL,
        checksum BLOB NOT NULL,
        PRIMARY KEY (study, position)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX decisions ON events (study, decision) WHERE decision IS NOT NULL;
    CREATE TABLE leases (
        study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,
        trial INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        worker TEXT NOT NULL,
        host TEXT NOT NULL,
        pid INTEGER NOT NULL,
        started INTEGER NOT NULL,
        expires REAL NOT NULL,
        seconds REAL NOT NULL,
        PRIMARY KEY (study, trial)
    ) WITHOUT ROWID;
    CREATE TABLE kept (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    """,
)
"""The steps of the schema: step k turns version k into version k + 1. Released steps are never
edited; a change adds a step."""


class SqliteFile(Connected):
    """The database at ``path``; ``timeout``: seconds to wait for the lock of another process."""

    def __init__(
        self, path: Path, timeout: float = 60.0, steps: Sequence[str] = SCHEMA_STEPS
    ) -> None:
        super().__init__()
        self.path = path
        self._timeout = timeout
        self._steps = steps
        self._connection: sqlite3.Connection | None = None
        self._write_ahead = path.with_name(path.name + "-wal")
        self._identities: tuple[tuple[int, ...], ...] = ()
        # An immutable connection serves one query, since it would never see new events.
        self._single_use = False

    def __reduce__(self) -> tuple[object, ...]:
        return SqliteFile, (self.path, self._timeout)

    def rows(self, sql: str, *parameters: object) -> list[Row]:
        """Return the rows of a query; none when there is no file yet."""
        with self.lock, self._explained():
            if self._connection is None and not self.path.exists():
                return []
            connection = self._connected(create=False)
            return self._retry_while_locked(lambda: connection.execute(sql, parameters).fetchall())

    @contextmanager
    def transaction(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """Begin a write transaction: all or nothing, durable when the block ends."""
        with self.lock, self._explained():
            connection = self._connected(create)
            try:
                self._retry_while_locked(lambda: connection.execute("BEGIN IMMEDIATE"))
                yield connection
                self._retry_while_locked(lambda: connection.execute("COMMIT"))
            except BaseException:
                with suppress(sqlite3.Error):
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _connected(self, create: bool) -> sqlite3.Connection:
        if self._single_use:
            self.close()
        if self._connection is None:
            self._check_place(create)
            self._connection, self._identities = self._connect(create), ()
        found = _identity(self.path), _identity(self._write_ahead)
        if any(old not in ((), new) for old, new in zip(self._identities, found, strict=False)):
            # Further writes would go into a file without a name.
            raise StorageError(
                f"{self.path} was removed or replaced while in use; put it back, or restart this"
                " process"
            )
        self._identities = found
        if self._connection.in_transaction:  # an interrupt came between two statements
            self._connection.execute("ROLLBACK")
        return self._connection

    def _check_place(self, create: bool) -> None:
        if self.path.is_dir():
            raise StorageError(
                f"{self.path} is a folder; name a file in it, such as"
                f" sqlite:///{self.path}/scrimp.db"
            )
        if not self.path.parent.is_dir():
            raise missing_folder(self.path, "sqlite")
        if not create and not self.path.exists():
            raise StorageError(f"{self.path} is gone; put it back, or create the study again")
        check_local(self.path)

    def _connect(self, create: bool) -> sqlite3.Connection:
        self._single_use = False
        connection = self._raw(f"mode={'rwc' if create else 'rw'}")
        try:
            self._retry_while_locked(lambda: self._prepare(connection))
        except sqlite3.OperationalError as error:
            connection.close()
            closed = _code(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if create or not closed or self._write_ahead.exists():
                raise
            # The folder is read-only and there is no writer, so the file can be read as it is.
            self._single_use = True
            return self._raw("immutable=1")
        except BaseException:
            connection.close()
            raise
        return connection

    def _raw(self, options: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?{options}",
            uri=True,
            timeout=1.0,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.text_factory = bytes
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check that the file is a scrimp database or empty, and bring its schema up to date."""
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        # One transaction for all questions: another process may create the tables between two.
        connection.execute("BEGIN")
        try:
            version = self._version(connection)
        finally:
            connection.execute("ROLLBACK")
        if version == len(self._steps):
            self._check_tables(connection)
            return
        if version == 0:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Asked again, since another process may have upgraded meanwhile.
            for step in self._steps[self._version(connection) :]:
                for statement in step.split(";"):
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {len(self._steps)}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _version(self, connection: sqlite3.Connection) -> int:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if application or version or tables:
                raise StorageError(
                    f"{self.path} is the database of another program; choose another file"
                )
        if version > len(self._steps):
            raise StorageError(
                f"{self.path} has schema version {version}, this scrimp knows {len(self._steps)};"
                " upgrade scrimp to use it"
            )
        return int(version)

    def _check_tables(self, connection: sqlite3.Connection) -> None:
        """Raise `StorageError` for views and triggers in place of our tables, which may never end,
        and for tables whose columns take other values."""
        found = connection.execute(
            "SELECT name, type, sql FROM sqlite_master WHERE tbl_name IN ('studies', 'events',"
            " 'leases', 'kept') AND type <> 'index'"
        )
        made = {
            name: (kind, " ".join(sql.decode(errors="replace").split()))
            for name, kind, sql in found
        }
        ours = {
            name.encode(): (b"table", " ".join(statement.split()))
            for statement in ";".join(self._steps).split(";")
            if (name := statement.partition("CREATE TABLE ")[2].partition(" ")[0])
        }
        if self._steps == SCHEMA_STEPS and made != ours:
            changed = sorted(name for name in {*made, *ours} if made.get(name) != ours.get(name))
            raise StorageError(
                f"{self.path} was changed by another program:"
                f" {b', '.join(changed).decode(errors='replace')} is not what scrimp made; restore"
                " a backup"
            )

    def _retry_while_locked(self, action: Callable[[], T]) -> T:
        """Run ``action``, and repeat it while the file is locked. The pauses are short, so that
        interrupts are handled."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                locked = _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not locked or time.monotonic() > deadline:
                    raise
                time.sleep(0.005)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._in_words(error) from error
        except OSError as error:
            raise StorageError(
                f"{self.path} cannot be used ({error.strerror}); choose another file"
            ) from error

    def _in_words(self, error: sqlite3.Error) -> StorageError:
        code, path = _code(error), self.path
        permissions = "check the permissions of the file and its folder"
        words = {
            sqlite3.SQLITE_NOTADB: f"{path} is not a database; choose another file",
            sqlite3.SQLITE_CORRUPT: (
                f"{path} is damaged; restore a backup, or save what can be read with "
                f"`sqlite3 {path.name} .recover | sqlite3 saved.db`"
            ),
            sqlite3.SQLITE_READONLY: f"{path} cannot be written; {permissions}",
            sqlite3.SQLITE_PERM: f"{path} cannot be written; {permissions}",
            sqlite3.SQLITE_CANTOPEN: f"{path} cannot be opened; {permissions}",
            sqlite3.SQLITE_FULL: (
                f"the disk of {path} is full; this batch was not stored: free some space and run again"
            ),
            sqlite3.SQLITE_IOERR: (
                f"the disk of {path} failed ({error}); it may be full or broken: check it and run again"
            ),
            sqlite3.SQLITE_BUSY: (
                f"{path} was locked by another process for {self._timeout:g} s; end that process"
            ),
        }
        return StorageError(words.get(code, f"{path} cannot be used: {error}"))


def _text(value: object) -> str | None:
    """Return a text of the file; None when it is none."""
    try:
        return value.decode() if isinstance(value, bytes) else None
    except UnicodeDecodeError:
        return None


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code; 0 for errors of the Python module itself."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _identity(path: Path) -> tuple[int, ...]:
    with suppress(FileNotFoundError):
        status = os.stat(path)
        return status.st_dev, status.st_ino
    return ()


class SqliteStorage(Storage):
    """The studies in the file at ``path``, which is created with the first study; a lock is waited
    for up to ``timeout`` seconds."""

    def __init__(self, path: str | PathLike[str], timeout: float = 60.0) -> None:
        self.path = Path(path).expanduser().absolute()
        self.url = f"sqlite:///{self.path}"
        self._file = SqliteFile(self.path, timeout)

    def create(self, name: str, events: Sequence[Appended]) -> EventStore:
        check_name(name)
        lines = lines_of(events, first=True)
        with self._file.transaction(create=True) as connection:
            try:
                inserted = connection.execute("INSERT INTO studies (name) VALUES (?)", (name,))
                study = inserted.lastrowid
            except sqlite3.IntegrityError:
                raise existing_study(name, self.url) from None
            assert study is not None
            _insert(connection, study, (0, None), lines, None)
        return _SqliteStore(self._file, name, study)

    def open(self, name: str) -> EventStore:
        return _SqliteStore(self._file, name, self._study(name))

    def names(self) -> list[str]:
        names = []
        for study, raw in self._file.rows("SELECT id, name FROM studies ORDER BY id"):
            if (name := _text(raw)) is not None:
                names.append(name)
            else:
                logger.warning("study %r of %s has no readable name: %r", study, self.path, raw)
        return names

    def delete(self, name: str) -> None:
        study = self._study(name)
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM studies WHERE id = ?", (study,))

    def keep(self, key: str, text: str) -> None:
        with self._file.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (key, text))

    def kept(self, key: str) -> str | None:
        found = self._file.rows("SELECT value FROM kept WHERE key = ?", key)
        return _text(found[0][0]) if found else None

    def identity(self) -> str:
        known = self.kept(IDENTITY)
        if known is None:
            with self._file.transaction() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO kept VALUES (?, ?)", (IDENTITY, secrets.token_hex(16))
                )
            known = self.kept(IDENTITY)
        if known is None:
            raise StorageError(f"{self.path} has an unreadable identity; restore a backup")
        return known

    def close(self) -> None:
        self._file.close()

    def _study(self, name: str) -> int:
        found = self._file.rows("SELECT id FROM studies WHERE name = ?", name)
        if not found:
            if not self._file.path.exists():
                raise StudyError(
                    f"no study {name!r}: the file {self.path} does not exist. Name the storage with"
                    " --storage or SCRIMP_STORAGE (in Python storage=...), or change to the folder"
                    " where the study was created"
                )
            raise unknown_study(name, self.names(), self.url)
        return int(found[0][0])


class _SqliteStore(ServedStore):
    def __init__(self, file: SqliteFile, name: str, study: int) -> None:
        self.name, self.identity = name, str(study)
        self._file = file
        self._study = study

    def append(self, events: Sequence[Appended], decision: int | None = None) -> int:
        lines = lines_of(events, decision)
        with self._file.transaction() as connection:
            return self._appended(connection, lines, decision)

    def append_once(
        self, key: UUID, events: Sequence[Appended], decision: int | None = None
    ) -> int:
        lines = lines_of(events, decision)
        with self._file.transaction() as connection:
            connection.execute(BATCHES)
            query = "SELECT position + count FROM batches WHERE study = ? AND key = ?"
            for (length,) in connection.execute(query, (self._study, key.bytes)):
                return int(length)
            end = self._appended(connection, lines, decision)
            row = (self._study, key.bytes, end - len(lines), len(lines))
            connection.execute("INSERT INTO batches VALUES (?, ?, ?, ?)", row)
        return end

    def _appended(
        self, connection: sqlite3.Connection, lines: list[str], decision: int | None
    ) -> int:
        """Insert a batch at the end of the log; return the new length."""
        length, checksum = self._end(connection)
        try:
            _insert(connection, self._study, (length, checksum), lines, decision)
        except sqlite3.IntegrityError:
            if decision is None:
                raise
            raise decision_taken(self.name, decision) from None
        return length + len(lines)

    def batch(self, key: UUID) -> list[Event] | None:
        if not self._file.rows("SELECT 1 FROM sqlite_master WHERE name = 'batches'"):
            return None
        query = "SELECT position, count FROM batches WHERE study = ? AND key = ?"
        found = self._file.rows(query, self._study, key.bytes)
        return self.read(found[0][0])[: found[0][1]] if found else None

    def page(self, start: int) -> tuple[list[str], int]:
        query = (
            "SELECT event, checksum, (SELECT max(position) FROM events WHERE study = ?) FROM events"
            " WHERE study = ? AND position >= ? ORDER BY position LIMIT ?"
        )
        study, begin = self._study, max(start - 1, 0)  # the row before vouches for the first
        found = self._file.rows(query, study, study, begin, MAX_PAGE_EVENTS + start - begin)
        if not found:
            self._check_exists()
            rows = self._file.rows("SELECT count(*) FROM events WHERE study = ?", self._study)
            return [], int(rows[0][0])
        before = found[0][1] if begin < start else None
        for number, (event, checksum, _) in enumerate(found[start - begin :], start):
            before = next_link(before, event, checksum, f"event {number} of study {self.name!r}")
        return [event.decode() for event, _, _ in found[start - begin :]], found[0][2] + 1

    def read(self, start: int = 0) -> list[Event]:
        return decode(self.lines(start), self.name, start)

    def lines(self, start: int = 0) -> list[str]:
        query = (
            "SELECT event, checksum FROM events WHERE study = ? AND position >= ? ORDER BY position"
        )
        found = self._file.rows(query, self._study, start)
        if not found:
            self._check_exists()
        for number, row in enumerate(found, start):
            if not all(isinstance(value, bytes) for value in row):
                raise damaged(f"event {number} of study {self.name!r}")
        if start == 0:
            check_chain(found, self.name)
        return [event for event, _ in found]

    def lease(self, lease: Lease) -> None:
        values = (lease.trial, lease.attempt, lease.worker, lease.host, lease.pid, lease.started)
        with self._file.transaction() as connection:
            self._end(connection)
            connection.execute(LEASE, (self._study, *values, lease.remaining, lease.remaining))

    def release(self, trial: int, attempt: int) -> None:
        with self._file.transaction() as connection:
            connection.execute(
                "DELETE FROM leases WHERE study = ? AND trial = ? AND attempt = ?",
                (self._study, trial, attempt),
            )

    def leases(self) -> list[Lease]:
        query = (
            f"SELECT trial, attempt, worker, host, pid, expires - {NOW}, started, seconds, expires"
            f" FROM leases WHERE study = ? ORDER BY trial LIMIT {MAX_LEASES}"
        )
        found = self._file.rows(query, self._study)
        if not found:
            self._check_exists()
        return [lease for row in found if (lease := _lease(row)) is not None]

    def _end(self, connection: sqlite3.Connection) -> tuple[int, bytes]:
        """Return the length of the log and the checksum of its last event."""
        query = (
            "SELECT position, checksum FROM events WHERE study = ? ORDER BY position DESC LIMIT 1"
        )
        last = connection.execute(query, (self._study,)).fetchone()
        if last is None:  # every study begins with an event
            raise deleted_study(self.name, f"sqlite:///{self._file.path}")
        if not isinstance(last[0], int) or last[0] >= 2**62 or not isinstance(last[1], bytes):
            raise damaged(f"the last event of study {self.name!r}")
        return last[0] + 1, last[1]

    def _check_exists(self) -> None:
        if not self._file.rows("SELECT 1 FROM studies WHERE id = ?", self._study):
            raise deleted_study(self.name, f"sqlite:///{self._file.path}")


def _lease(row: Row) -> Lease | None:
    """Return the lease in a row; one that ran out for values that scrimp would not write, None if
    even its trial is unknown."""
    trial, attempt, worker, host, pid, remaining, started, seconds, expires = row
    if not isinstance(trial, int) or not isinstance(attempt, int):
        return None
    texts = _text(worker), _text(host)
    ids = isinstance(pid, int) and isinstance(started, int)
    times = all(isinstance(time, int | float) for time in (remaining, seconds, expires))
    if None in texts or not ids or not times:
        return Lease(trial, attempt, "unknown", "unknown", 0, -1.0)
    return Lease(
        trial, attempt, str(texts[0]), str(texts[1]), pid, remaining, started, seconds, expires
    )


def _insert(
    connection: sqlite3.Connection,
    study: int,
    end: tuple[int, bytes | None],
    lines: list[str],
    decision: int | None,
) -> None:
    """Insert ``lines`` at the ``end`` of the log; the first carries the number of the decision."""
    length, checksum = end
    rows = []
    for index, line in enumerate(lines):
        checksum = link(checksum, line.encode())
        rows.append((study, length + index, None if index else decision, line, checksum))
    connection.executemany(
        "INSERT INTO events (study, position, decision, event, checksum) VALUES (?, ?, ?, ?, ?)",
        rows,
    )
