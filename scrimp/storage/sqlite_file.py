"""One SQLite file: the connection of this process, transactions, schema steps, and errors in words.

Threads share one connection under a lock; writers would wait for each other anyway. Nothing is
created by looking: only a new study makes a new file.

The schema's version is the number of steps applied so far (`PRAGMA user_version`); an empty file is
version 0, so creating a database and upgrading it are the same thing.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from scrimp.errors import StorageError
from scrimp.storage.file_system import check_local
from scrimp.storage.forking import Connected
from scrimp.storage.refusals import missing_folder

__all__ = ["STEPS", "SqliteFile"]

T = TypeVar("T")

APPLICATION = 0x7363726D  # "scrm" in the file's header tells our databases from others

STEPS = (
    """
    CREATE TABLE studies (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE);
    CREATE TABLE events (
        study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,
        position INTEGER NOT NULL,
        decision INTEGER,
        event TEXT NOT NULL,
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
        PRIMARY KEY (study, trial)
    ) WITHOUT ROWID;
    """,
    "CREATE TABLE kept (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "ALTER TABLE events ADD COLUMN checksum BLOB",  # see `chain`; events of before have none
    "ALTER TABLE leases ADD COLUMN seconds REAL NOT NULL DEFAULT 60",
)
"""The schema: step k turns version k into version k + 1. Steps that were released are never edited,
only followed."""


class SqliteFile(Connected):
    """The database at ``path``; ``patience`` is how long to wait for other writers, in seconds."""

    def __init__(self, path: Path, patience: float = 60.0, steps: Sequence[str] = STEPS) -> None:
        super().__init__()
        self.path = path
        self._patience = patience
        self._steps = steps
        self._connection: sqlite3.Connection | None = None
        self._identity = (0, 0)
        self._passing = False  # an immutable connection serves one query: it would never see news

    def __reduce__(self) -> tuple[object, ...]:
        return SqliteFile, (self.path, self._patience)

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """The result of a query; nothing when there is no file yet."""
        with self.lock, self._explained():
            if self._connection is None and not self.path.exists():
                return []
            connection = self._connected(create=False)
            return self._patiently(lambda: connection.execute(sql, parameters).fetchall())

    @contextmanager
    def transaction(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """All or nothing, durable when the block ends; nobody else writes meanwhile."""
        with self.lock, self._explained():
            connection = self._connected(create)
            self._patiently(lambda: connection.execute("BEGIN IMMEDIATE"))
            try:
                yield connection
                self._patiently(lambda: connection.execute("COMMIT"))
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
        if self._passing:
            self.close()
        if self._connection is None:
            self._check_place(create)
            self._connection = self._connect(create)
            self._identity = _identity(self.path)
        elif _identity(self.path) != self._identity:
            # Writing on would go into a file that has no name any more.
            raise StorageError(
                f"{self.path} was removed or replaced while in use; put it back, or restart this"
                " process"
            )
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
        self._passing = False
        connection = self._raw(f"mode={'rwc' if create else 'rw'}")
        try:
            self._patiently(lambda: self._prepare(connection))
        except sqlite3.OperationalError as error:
            connection.close()
            write_ahead = self.path.with_name(self.path.name + "-wal")
            closed = _code(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if create or not closed or write_ahead.exists():
                raise
            # A folder we may not write to, and no writer: the file can be read as it stands.
            self._passing = True
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
        """Recognise the file, or make it ours; bring its schema up to date."""
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        # One moment for all questions: between two of them somebody else may make the file ours.
        connection.execute("BEGIN")
        try:
            version = self._version(connection)
        finally:
            connection.execute("ROLLBACK")
        if version == len(self._steps):
            return
        if version == 0:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            for step in self._steps[
                self._version(connection) :
            ]:  # asked again: somebody may have been quicker
                for statement in step.split(";"):
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {len(self._steps)}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _version(self, connection: sqlite3.Connection) -> int:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
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

    def _patiently(self, action: Callable[[], T]) -> T:
        """Try until nobody is in the way. The pauses are short, so that an interrupt is heard."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if (
                    _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                    or time.monotonic() > deadline
                ):
                    raise
                time.sleep(0.005)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._in_words(error) from error

    def _in_words(self, error: sqlite3.Error) -> StorageError:
        code, path = _code(error), self.path
        words = {
            sqlite3.SQLITE_NOTADB: f"{path} is not a database; choose another file",
            sqlite3.SQLITE_CORRUPT: (
                f"{path} is damaged; restore a backup, or save what can be read with "
                f"`sqlite3 {path.name} .recover | sqlite3 saved.db`"
            ),
            sqlite3.SQLITE_READONLY: (
                f"{path} cannot be written; check the permissions of the file and its folder"
            ),
            sqlite3.SQLITE_PERM: (
                f"{path} cannot be written; check the permissions of the file and its folder"
            ),
            sqlite3.SQLITE_CANTOPEN: (
                f"{path} cannot be opened; check the permissions of the file and its folder"
            ),
            sqlite3.SQLITE_FULL: (
                f"the disk of {path} is full; this batch was not stored: free some space and go on"
            ),
            sqlite3.SQLITE_IOERR: (
                f"the disk of {path} failed ({error}); it may be full or broken: check it and go on"
            ),
            sqlite3.SQLITE_BUSY: (
                f"{path} was locked by another process for {self._patience:g} s; end that process"
            ),
        }
        return StorageError(words.get(code, f"{path} cannot be used: {error}"))


def _code(error: sqlite3.Error) -> int:
    """The primary result code; 0 for errors of the Python module itself."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return 0, 0
    return status.st_dev, status.st_ino
