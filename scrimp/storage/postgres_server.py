"""One PostgreSQL database: the connection of this process, schema steps, what to do when it is
lost, and errors in words.

A lost connection is opened again with growing pauses, and what was being done is done again: so
everything done here must be harmless to repeat. A server that stays connected and answers nothing
counts as lost too (`postgres_watch`). Only a database that was reached before is waited for; a
wrong URL is told at once.

The schema's version is the number of steps applied so far (table ``scrimp_schema``); no table is
version 0, so creating the tables and upgrading them are the same thing. Nothing is created by
looking.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from scrimp.errors import StorageError, Unreachable
from scrimp.storage.forking import Connected
from scrimp.storage.postgres_schema import LOCKS, STEPS
from scrimp.storage.postgres_trust import check_routines, check_tables
from scrimp.storage.postgres_watch import Watch

__all__ = ["Connection", "PostgresServer"]

logger = logging.getLogger("scrimp")

T = TypeVar("T")
Step = str | Callable[[str], str]
Connection = psycopg.Connection[tuple[Any, ...]]

DEFAULTS = {
    "application_name": "scrimp",
    "client_encoding": "utf8",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""Connection options where the URL has none: a server that vanished is noticed within about a
minute."""

SESSION = """
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET jit = off;
SET default_transaction_isolation = 'read committed';
"""
"""Planning takes longer than our queries, and each has an index that is best whatever the
statistics say."""

LOST = ("08", "57P01", "57P02", "57P03", "53300", "40001", "40P01", "57014")
"""States after which trying again helps: connection trouble, shutdown, start, too many connections,
deadlock, a time limit."""


class PostgresServer(Connected):
    """The database at ``url``, shown as ``shown``; ``patience`` is how long a lost connection is
    tried again, in seconds."""

    def __init__(
        self, url: str, shown: str, patience: float = 60.0, steps: Sequence[Step] = STEPS
    ) -> None:
        super().__init__()
        self.shown = shown
        self._url = url
        self._patience = patience
        self._steps = steps
        self._connection: Connection | None = None
        self._reached = False
        self._version = 0
        self._options = self._parsed()
        self._watch = Watch()

    def __reduce__(self) -> tuple[object, ...]:
        return PostgresServer, (self._url, self.shown, self._patience)

    def _parsed(self) -> dict[str, Any]:
        place, _, options = self._url.partition("://")[2].partition("?")
        secret = place.rpartition("@")[0]
        if "@" in options or any(
            mark in secret for mark in "@/ "
        ):  # would be taken for a host or a port, and shown
            raise StorageError(
                f"storage {self.shown!r} has a special character in its user, password or options; "
                "write @ as %40, / as %2F, ? as %3F and a blank as %20"
            )
        try:
            return {**DEFAULTS, **conninfo_to_dict(self._url)}
        except psycopg.Error:  # its text may quote the password
            raise StorageError(
                f"storage {self.shown!r} is no PostgreSQL URL; write"
                " postgresql://user:password@host:5432/database"
            ) from None

    def run(self, action: Callable[[Connection], T], *, create: bool = False) -> T | None:
        """What ``action`` returns, tried again on a new connection when one is lost; None when
        there are no tables yet."""
        with self.lock:
            deadline, pause = time.monotonic() + self._patience, 0.02
            while True:
                try:
                    connection = self._connected(create)
                    with self._watch.over(connection):
                        return action(connection) if self._version else None
                except psycopg.Error as error:
                    words, again = (
                        self._in_words(error),
                        self._may_retry(error) and not self._watch.hurried(),
                    )
                    if self._connection is not None and (again or self._connection.closed):
                        self.close()
                    if not again or time.monotonic() > deadline:
                        raise words from None
                    if pause == 0.02:
                        logger.warning("%s. Asking again for %g s", words, self._patience)
                except (KeyboardInterrupt, SystemExit):
                    self.close()  # in the middle of an answer
                    raise
                time.sleep(pause)
                pause = min(2 * pause, 1.0)

    def hurry_once(self, asked: Callable[[], bool]) -> None:
        """Stop waiting for a server that does not answer once ``asked`` says yes."""
        self._watch.hurried = asked

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _may_retry(self, error: psycopg.Error) -> bool:
        if self._connection is None or self._connection.closed:
            return self._reached
        return (error.sqlstate or "").startswith(LOST)

    def _connected(self, create: bool) -> Connection:
        if self._connection is None:
            soon = {"connect_timeout": "2"} if self._watch.hurried() else {}
            self._connection = psycopg.connect(**{**self._options, **soon}, autocommit=True)
            with self._watch.over(self._connection):
                self._connection.execute(SESSION)
            self._reached, self._version = True, 0
        if not self._version:
            with self._watch.over(self._connection):
                self._version = self._recognised(self._connection)
        if self._version > len(self._steps):
            raise StorageError(
                f"{self.shown} has schema version {self._version}, this scrimp knows"
                f" {len(self._steps)}; upgrade scrimp"
            )
        if self._version < len(self._steps) and (create or self._version):
            self._upgrade(self._connection)
        return self._connection

    def _recognised(self, connection: Connection) -> int:
        """The version of tables that are ours and nothing else; 0 when there are none yet."""
        check_tables(
            connection, self.shown
        )  # first: asking a view for the version would run what hangs on it
        version = self._found_version(connection)
        if version == len(STEPS):
            check_routines(connection, self.shown)
        return version

    def _found_version(self, connection: Connection) -> int:
        (table,) = connection.execute("SELECT to_regclass('scrimp_schema')").fetchone() or (None,)
        if table is None:
            return 0
        (version,) = connection.execute("SELECT max(version) FROM scrimp_schema").fetchone() or (0,)
        return int(version)

    def _upgrade(self, connection: Connection) -> None:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (LOCKS,))
            version = self._found_version(connection)  # asked again: somebody may have been quicker
            if version == 0:
                connection.execute("CREATE TABLE scrimp_schema (version integer NOT NULL)")
            for number, step in enumerate(self._steps[version:], start=version + 1):
                statements = (
                    step if isinstance(step, str) else step(self._schema(connection))
                ).encode()
                connection.execute(statements)
                connection.execute("INSERT INTO scrimp_schema VALUES (%s)", (number,))
        self._version = len(self._steps)

    @staticmethod
    def _schema(connection: Connection) -> str:
        """The schema of the tables, quoted and with its dot."""
        (schema,) = connection.execute(
            "SELECT quote_ident(current_schema()) || '.'"
        ).fetchone() or ("",)
        return str(schema)

    def _in_words(self, error: psycopg.Error) -> StorageError:
        said = " ".join(str(error).split())
        password = str(self._options.get("password") or "")
        if password:
            said = said.replace(password, "…")
        if self._connection is None or self._connection.closed:
            return Unreachable(
                f"{self.shown} cannot be reached: {said}. Check that the server runs, and the URL"
            )
        if isinstance(error, errors.InsufficientPrivilege):
            return StorageError(
                f"{self.shown} may not be used by this user: {said}. Ask for the right to create"
                " tables"
            )
        if isinstance(error, errors.DiskFull):
            return StorageError(
                f"the disk of {self.shown} is full; this batch was not stored: free some space and"
                " go on"
            )
        if isinstance(error, errors.ReadOnlySqlTransaction):
            return StorageError(
                f"{self.shown} cannot be written: it is a read-only server; use the primary one"
            )
        if isinstance(error, errors.UndefinedTable):
            return StorageError(
                f"the tables of scrimp are gone from {self.shown}; restore them, or restart this"
                " process"
            )
        return StorageError(f"{self.shown} cannot be used: {said}")
