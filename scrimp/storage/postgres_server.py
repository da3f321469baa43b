"""One PostgreSQL database: the connection of this process, its schema version, retries after a lost
connection, and error messages.

A lost connection is opened again with growing pauses, and the action is repeated; so every action
must be harmless to repeat. Only a database that was reached before is retried; a wrong URL fails at
once.

A server that stays connected and never answers (a stalled disk, a frozen machine, a broken load
balancer) counts as lost too. Nothing in the protocol ends such a wait, so a thread watches the call
in flight (`Watch`). When it takes too long, or when this process was asked to end, the thread shuts
the socket, and the call fails like any other lost connection.

The schema's version is the number of steps applied so far (table ``scrimp_schema``). Without that
table it is 0, so creating and upgrading the tables are the same operation. Reading creates nothing.
"""

import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from scrimp.errors import StorageError, Unreachable
from scrimp.storage.forking import Connected
from scrimp.storage.postgres_schema import (
    LOCK_CLASS,
    SCHEMA_STEPS,
    Connection,
    check_routines,
    check_tables,
)

logger = logging.getLogger("scrimp")

T = TypeVar("T")
Step = Callable[[str], str]

DEFAULTS = {
    "application_name": "scrimp",
    "client_encoding": "utf8",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""Connection options where the URL has none. With these a server that vanished is noticed within
about a minute."""

SEARCHED = "SELECT pg_catalog.current_schemas(false)"
"""A query for the schemas of the search path that exist and may be used."""

SESSION = """
SET search_path = pg_catalog, pg_temp;
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET jit = off;
SET default_transaction_isolation = 'read committed';
"""
"""Foreign functions are not found (see `postgres_schema`). Planning takes longer than our queries,
and the index of each is best whatever the statistics say."""

PLACE = """
SELECT quote_ident(nspname) || '.', c.oid FROM unnest(%s::name[]) WITH ORDINALITY AS path (name, number)
JOIN pg_namespace AS n ON nspname = name LEFT JOIN pg_class AS c ON relnamespace = n.oid AND relname = 'scrimp_schema'
ORDER BY c.oid IS NULL, number LIMIT 1
"""
"""A query for the first schema with the tables, else the first of all."""

RETRIED_STATES = ("08", "57P01", "57P02", "57P03", "53300", "40001", "40P01", "57014")
"""States after which a retry helps: connection errors, shutdown, start, too many connections,
deadlock, a time limit."""


def parsed_url(url: str, shown: str) -> dict[str, Any]:
    """Return the options of libpq in ``url``. The errors quote ``shown``, and nothing of libpq,
    whose texts may hold the password."""
    place, _, options = url.partition("://")[2].partition("?")
    secret = place.rpartition("@")[0]
    # Such a character would be taken for the beginning of a host or port, and shown.
    if "@" in options or any(mark in secret for mark in "@/ "):
        raise StorageError(
            f"storage {shown!r} has a special character in its user, password or options; write @"
            " as %40, / as %2F, ? as %3F and a blank as %20"
        )
    try:
        return conninfo_to_dict(url)
    except psycopg.Error:
        raise StorageError(
            f"storage {shown!r} is not a PostgreSQL URL; write"
            " postgresql://user:password@host:5432/database"
        ) from None


class PostgresServer(Connected):
    """The database at ``url``, shown as ``shown``; a lost connection is retried for ``timeout``
    seconds."""

    def __init__(
        self, url: str, shown: str, timeout: float = 60.0, steps: Sequence[Step] = SCHEMA_STEPS
    ) -> None:
        super().__init__()
        self.shown = shown
        self._url = url
        self._timeout = timeout
        self._steps = steps
        self._connection: Connection | None = None
        self._reached = False
        self._version = 0
        self._searched: list[str] = []
        # Read now, since `scrimp run` hides it from the objectives that it runs.
        given = {"password": os.environ["PGPASSWORD"]} if os.environ.get("PGPASSWORD") else {}
        self._options = {**DEFAULTS, **given, **parsed_url(url, shown)}
        self._watch = Watch()

    def __reduce__(self) -> tuple[object, ...]:
        return PostgresServer, (self._url, self.shown, self._timeout)

    def run(self, action: Callable[[Connection], T], *, create: bool = False) -> T | None:
        """Return the result of ``action``, retried on a new connection when one is lost; None when
        there are no tables yet."""
        with self.lock:
            deadline, pause = time.monotonic() + self._timeout, 0.02
            while True:
                try:
                    connection = self._connected(create)
                    with self._watch.over(connection):
                        return action(connection) if self._version else None
                except psycopg.Error as error:
                    words = self._in_words(error)
                    again = self._may_retry(error) and not self._watch.hurried()
                    if self._connection is not None and (again or self._connection.closed):
                        self.close()
                    if not again or time.monotonic() > deadline:
                        raise words from None
                    if pause == 0.02:
                        logger.warning("%s. Retrying for %g s", words, self._timeout)
                except UnicodeDecodeError as error:
                    raise StorageError(
                        f"{self.shown} contains text that is not UTF-8 ({error}); restore a backup"
                    ) from None
                except (KeyboardInterrupt, SystemExit):
                    self.close()  # the answer was read in part
                    raise
                time.sleep(pause)
                pause = min(2 * pause, 1.0)

    def hurry_once(self, asked: Callable[[], bool]) -> None:
        """Stop waiting for a server that does not answer once ``asked`` returns True."""
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
        return (error.sqlstate or "").startswith(RETRIED_STATES)

    def _connected(self, create: bool) -> Connection:
        if self._connection is None:
            soon = {"connect_timeout": "2"} if self._watch.hurried() else {}
            self._connection = Connection.connect(**{**self._options, **soon}, autocommit=True)
            with self._watch.over(self._connection):
                ((self._searched,),) = self._connection.ask(SEARCHED)
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
        """Check that the tables are unchanged and return their version; 0 when there are none
        yet."""
        places = connection.ask(PLACE, (self._searched,))
        connection.schema, table = places[0] if places else ("", None)
        if table is None:
            return 0
        # First, since asking a view for the version would run its code.
        check_tables(connection, self.shown, ["scrimp_schema"])
        ((version,),) = connection.ask("SELECT max(version) FROM {schema}scrimp_schema")
        if version == len(SCHEMA_STEPS):
            check_tables(connection, self.shown)
            check_routines(connection, self.shown)
        return int(version or 0)

    def _upgrade(self, connection: Connection) -> None:
        with connection.transaction():
            connection.ask("SELECT pg_advisory_xact_lock(%s, 0)", (LOCK_CLASS,))
            # Asked again, since another process may have upgraded meanwhile.
            version = self._recognised(connection)
            if not connection.schema:
                raise StorageError(
                    f"{self.shown} cannot be used: no schema of its search_path exists and may be"
                    " used by this user; create one, or ask for the right"
                )
            if version == 0:
                connection.ask("CREATE TABLE {schema}scrimp_schema (version integer NOT NULL)")
            for number, step in enumerate(self._steps[version:], start=version + 1):
                connection.execute(step(connection.schema).encode())
                connection.ask("INSERT INTO {schema}scrimp_schema VALUES (%s)", (number,))
        self._recognised(connection)
        self._version = len(self._steps)

    def _in_words(self, error: psycopg.Error) -> StorageError:
        said = " ".join(str(error).split())
        password = str(self._options.get("password") or "")
        if password:
            said = said.replace(password, "…")
        if self._connection is None or self._connection.closed:
            return Unreachable(
                f"{self.shown} cannot be reached: {said}. Check that the server runs, and the URL"
            )
        match error:
            case errors.InsufficientPrivilege():
                words = f"may not be used by this user: {said}. Ask for the right to create tables"
            case errors.DiskFull():
                words = "cannot be written: its disk is full; this batch was not stored: free some space and run again"
            case errors.ReadOnlySqlTransaction():
                words = "cannot be written: it is a read-only server; use the primary one"
            case errors.UndefinedTable():
                words = "cannot be used: the tables of scrimp are gone; restore them, or restart this process"
            case _:
                words = f"cannot be used: {said}"
        return StorageError(f"{self.shown} {words}")


MAX_ANSWER_SECONDS = 45.0
"""The time after which an unanswered call counts as lost; the longest wait of a healthy one is that
for a turn, 5 s."""

MAX_ANSWER_SECONDS_AT_END = 3.0
"""The time after which an unanswered call counts as lost once this process was asked to end."""

WATCH_PERIOD_SECONDS = 0.5


class Watch:
    """A watch over the calls of one connection at a time; ``hurried`` returns True once this
    process was asked to end."""

    def __init__(
        self, max_seconds: float = MAX_ANSWER_SECONDS, period: float = WATCH_PERIOD_SECONDS
    ) -> None:
        self.hurried: Callable[[], bool] = bool
        self._max_seconds = max_seconds
        self._period = period
        # The socket of the call in flight, and when it began.
        self._call: tuple[int, float] | None = None
        self._lock = threading.Lock()
        # With its process, since threads do not survive a fork.
        self._thread: tuple[int, threading.Thread] | None = None

    @contextmanager
    def over(self, connection: Connection) -> Iterator[None]:
        """Watch the calls on ``connection`` within the block."""
        self._start()
        before, self._call = self._call, (connection.fileno(), time.monotonic())
        try:
            yield
        finally:
            # The lock keeps the watch from shutting a socket whose call has just returned.
            with self._lock:
                self._call = before

    def _start(self) -> None:
        if self._thread is None or self._thread[0] != os.getpid():
            self._lock = threading.Lock()
            thread = threading.Thread(target=self._watch, name="scrimp-postgres-watch", daemon=True)
            self._thread = os.getpid(), thread
            thread.start()

    def _watch(self) -> None:
        while True:
            time.sleep(self._period)
            with self._lock:
                call = self._call
                if call is not None and time.monotonic() - call[1] > self._limit():
                    _shut(call[0])
                    self._call = None

    def _limit(self) -> float:
        return min(self._max_seconds, MAX_ANSWER_SECONDS_AT_END if self.hurried() else math.inf)


def _shut(descriptor: int) -> None:
    """End both directions of a socket without closing it, which is left to its owner."""
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as shared:
        shared.shutdown(socket.SHUT_RDWR)
