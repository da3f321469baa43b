"""Studies in one SQLite file: the default. Any number of threads and processes of one machine may
share it.

Each batch is one transaction with one flush to disk (write-ahead log, synchronous=FULL): durable
when `append` returns, never torn, whoever is killed. Decision numbers are unique by index. SQLite's
own clock dates the leases. Every event carries a checksum of itself and all before it (`chain`),
which is checked whenever a log is read from its beginning.

    storage = SqliteStorage("scrimp.db")
    store = storage.open("digits")
"""

import secrets
import sqlite3
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from scrimp.history.events import Event
from scrimp.storage.chain import check_chain, link
from scrimp.storage.event_json import Appended, decode
from scrimp.storage.refusals import (
    check_name,
    decision_taken,
    deleted_study,
    existing_study,
    lines_of,
    missing_file,
    unknown_study,
)
from scrimp.storage.sqlite_file import SqliteFile
from scrimp.storage.store import IDENTITY, EventStore, Lease, Storage

__all__ = ["SqliteStorage"]

NOW = "(julianday('now') - 2440587.5) * 86400.0"  # seconds since 1970, in every version of SQLite


class SqliteStorage(Storage):
    """The studies in the file at ``path``, which the first study creates; ``patience`` is how long
    to wait for a lock."""

    def __init__(self, path: str | PathLike[str], patience: float = 60.0) -> None:
        self._file = SqliteFile(Path(path).expanduser().absolute(), patience)

    @property
    def url(self) -> str:
        return f"sqlite:///{self._file.path}"

    @property
    def path(self) -> Path:
        return self._file.path

    def create(self, name: str, events: Sequence[Appended]) -> EventStore:
        check_name(name)
        lines = lines_of(events, first=True)
        with self._file.transaction(create=True) as connection:
            try:
                study = connection.execute(
                    "INSERT INTO studies (name) VALUES (?)", (name,)
                ).lastrowid
            except sqlite3.IntegrityError:
                raise existing_study(name, self.url) from None
            assert study is not None
            _insert(connection, study, (0, None), lines, None)
        return _SqliteStore(self._file, name, study)

    def open(self, name: str) -> EventStore:
        return _SqliteStore(self._file, name, self._study(name))

    def names(self) -> list[str]:
        return [
            name.decode() for (name,) in self._file.rows("SELECT name FROM studies ORDER BY id")
        ]

    def delete(self, name: str) -> None:
        study = self._study(name)
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM studies WHERE id = ?", (study,))

    def keep(self, key: str, text: str) -> None:
        with self._file.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (key, text))

    def kept(self, key: str) -> str | None:
        found = self._file.rows("SELECT value FROM kept WHERE key = ?", key)
        return found[0][0].decode() if found else None

    def identity(self) -> str:
        known = self.kept(IDENTITY)
        if known is None:
            with self._file.transaction() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO kept VALUES (?, ?)", (IDENTITY, secrets.token_hex(16))
                )
            known = self.kept(IDENTITY)
        assert known is not None
        return known

    def close(self) -> None:
        self._file.close()

    def _study(self, name: str) -> int:
        found = self._file.rows("SELECT id FROM studies WHERE name = ?", name)
        if not found:
            if not Path(self._file.path).exists():
                raise missing_file(name, str(self._file.path))
            raise unknown_study(name, self.names(), self.url)
        return int(found[0][0])


class _SqliteStore(EventStore):
    def __init__(self, file: SqliteFile, name: str, study: int) -> None:
        self._file = file
        self._name = name
        self._study = study

    @property
    def name(self) -> str:
        return self._name

    def append(self, events: Sequence[Appended], decision: int | None = None) -> int:
        lines = lines_of(events, decision)
        with self._file.transaction() as connection:
            length, checksum = self._end(connection)
            try:
                _insert(connection, self._study, (length, checksum), lines, decision)
            except sqlite3.IntegrityError:
                if decision is None:
                    raise
                raise decision_taken(self._name, decision) from None
        return length + len(lines)

    def read(self, start: int = 0) -> list[Event]:
        return decode(self._lines(start), self._name, start)

    def lines(self) -> list[str]:
        return self._lines(0)

    def _lines(self, start: int) -> list[str]:
        # All columns: a file of an older schema in a folder that may only be read has no checksums.
        query = "SELECT * FROM events WHERE study = ? AND position >= ? ORDER BY position"
        found = self._file.rows(query, self._study, start)
        if not found:
            self._check_exists()
        if start == 0:
            check_chain(((row[3], row[4] if len(row) > 4 else None) for row in found), self._name)
        return [row[3] for row in found]

    def lease(self, lease: Lease) -> None:
        with self._file.transaction() as connection:
            self._end(connection)
            connection.execute(
                "INSERT INTO leases (study, trial, attempt, worker, host, pid, started, expires,"
                f" seconds) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 + {NOW}, ?8) ON CONFLICT (study,"
                " trial) DO UPDATE SET attempt = excluded.attempt, worker = excluded.worker, host"
                " = excluded.host, pid = excluded.pid, started = excluded.started, expires ="
                " excluded.expires, seconds = excluded.seconds WHERE excluded.attempt >= attempt",
                (
                    self._study,
                    lease.trial,
                    lease.attempt,
                    lease.worker,
                    lease.host,
                    lease.pid,
                    lease.started,
                    lease.remaining,
                ),
            )

    def release(self, trial: int, attempt: int) -> None:
        with self._file.transaction() as connection:
            connection.execute(
                "DELETE FROM leases WHERE study = ? AND trial = ? AND attempt = ?",
                (self._study, trial, attempt),
            )

    def leases(self) -> list[Lease]:
        query = (
            f"SELECT trial, attempt, worker, host, pid, expires - {NOW}, started, seconds, expires"
            " FROM leases WHERE study = ? ORDER BY trial"
        )
        found = self._file.rows(query, self._study)
        if not found:
            self._check_exists()
        return [
            Lease(trial, attempt, worker.decode(), host.decode(), *rest)
            for trial, attempt, worker, host, *rest in found
        ]

    def _end(self, connection: sqlite3.Connection) -> tuple[int, bytes | None]:
        """The length of the log, and the checksum of its last event."""
        query = (
            "SELECT position, checksum FROM events WHERE study = ? ORDER BY position DESC LIMIT 1"
        )
        last = connection.execute(query, (self._study,)).fetchone()
        if last is None:  # every study begins with an event
            raise deleted_study(self._name, f"sqlite:///{self._file.path}")
        return last[0] + 1, last[1]

    def _check_exists(self) -> None:
        if not self._file.rows("SELECT 1 FROM studies WHERE id = ?", self._study):
            raise deleted_study(self._name, f"sqlite:///{self._file.path}")


def _insert(
    connection: sqlite3.Connection,
    study: int,
    end: tuple[int, bytes | None],
    lines: list[str],
    decision: int | None,
) -> None:
    """Put ``lines`` at the ``end`` of the log; the batch's first event carries the number of its
    decision."""
    length, checksum = end
    rows = []
    for index, line in enumerate(lines):
        checksum = link(checksum, line.encode())
        rows.append((study, length + index, None if index else decision, line, checksum))
    connection.executemany(
        "INSERT INTO events (study, position, decision, event, checksum) VALUES (?, ?, ?, ?, ?)",
        rows,
    )
