"""Studies in a PostgreSQL database: for many machines. Needs the extra: ``pip install
'scrimp[postgres]'``.

Each batch is one call of a procedure (`postgres_schema`), so one round trip. It first advances the
study's length, which makes other writers of the study wait for its commit: positions have no gaps,
and the order of the log is the order of commits. Every batch carries an id made by the client; when
the connection is lost before the answer, the batch is sent again under the same id, and the
database refuses the second copy if the first one had arrived. The server's clock dates the leases.

    storage = PostgresStorage("postgresql://ann@db.example/hpo", "postgresql://ann@db.example/hpo")
"""

import secrets
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors

from scrimp.errors import Conflict, StorageError, TurnLost
from scrimp.history.events import Event
from scrimp.storage.chain import damaged, link
from scrimp.storage.event_json import Appended, decode_text
from scrimp.storage.postgres_schema import FLUSH, LOCKS, page_query
from scrimp.storage.postgres_server import Connection, PostgresServer
from scrimp.storage.refusals import (
    check_name,
    decision_taken,
    deleted_study,
    existing_study,
    lines_of,
    unknown_study,
)
from scrimp.storage.store import IDENTITY, EventStore, Lease, Storage

__all__ = ["PostgresStorage"]

CREATE = """
WITH made AS (INSERT INTO scrimp_studies (name, length, checksum) VALUES (%(name)s, %(count)s, %(checksum)s) RETURNING id)
INSERT INTO scrimp_events (study, position, batch, event, checksum)
SELECT id, 0, %(batch)s::uuid, %(lines)s, %(checksum)s FROM made RETURNING study
"""

APPEND = "CALL scrimp_append(%s, %s, %s, %s, %s, %s, %s, NULL, NULL, NULL, NULL)"
READ = f"""
SELECT length, place, lines, CASE WHEN place IS NOT NULL THEN {FLUSH} END
FROM scrimp_studies, LATERAL ({page_query("id", "%s")}) AS found WHERE id = %s
"""
DAMAGED = """
SELECT position FROM (
    SELECT position, checksum, lag(checksum) OVER log AS before,
        substr(sha256(coalesce(lag(checksum) OVER log, ''::bytea) || convert_to(event, 'UTF8')), 1, 16) AS due
    FROM scrimp_events WHERE study = %(study)s WINDOW log AS (ORDER BY position)
) AS rows WHERE checksum <> due OR (checksum IS NULL AND before IS NOT NULL)
UNION ALL
SELECT length FROM scrimp_studies WHERE id = %(study)s AND checksum IS DISTINCT FROM
    (SELECT checksum FROM scrimp_events WHERE study = %(study)s ORDER BY position DESC LIMIT 1)
ORDER BY 1 LIMIT 1
"""
"""Where the first batch is whose checksum does not fit (`chain`); the end of the log when its last
batches are gone."""

TURN = "SELECT * FROM scrimp_turn(%s, %s, %s, %s)"
END_OF_TURN = f"SELECT pg_advisory_unlock({LOCKS}, %s), scrimp_flush()"
LONGEST_TURN = "5s"
"""How long others wait for a turn to end before they decide without one."""

LEASE = """
INSERT INTO scrimp_leases AS held (study, trial, attempt, worker, host, pid, started, seconds, expires)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, clock_timestamp() + make_interval(secs => %s))
ON CONFLICT (study, trial) DO UPDATE SET (attempt, worker, host, pid, started, seconds, expires) =
    (excluded.attempt, excluded.worker, excluded.host, excluded.pid, excluded.started, excluded.seconds, excluded.expires)
WHERE excluded.attempt >= held.attempt
"""

LEASES = """
SELECT trial, attempt, worker, host, pid, extract(epoch FROM expires - clock_timestamp())::float8, started,
    coalesce(seconds, 60), extract(epoch FROM expires)::float8
FROM scrimp_studies LEFT JOIN scrimp_leases ON study = id WHERE id = %s ORDER BY trial
"""


News = tuple[int | None, int | None, str | None]
"""The length of the study (None: deleted), the position of the first batch found, and the lines."""

GONE: News = (None, None, None)


@dataclass(frozen=True)
class _Turn:
    """The connection that has the turn, and the lines it ``found`` from ``start`` on: a crash may
    still take them back."""

    connection: Connection
    start: int
    found: str


class PostgresStorage(Storage):
    """The studies in the database at ``url``, which is shown as ``shown``: without its password."""

    def __init__(self, url: str, shown: str, patience: float = 60.0) -> None:
        self._server = PostgresServer(url, shown, patience)

    @property
    def url(self) -> str:
        return self._server.shown

    def create(self, name: str, events: Sequence[Appended]) -> EventStore:
        check_name(name)
        lines = lines_of(events, first=True)
        text = "\n".join(lines)
        checksum = link(None, text.encode())
        batch = {
            "name": name,
            "lines": text,
            "count": len(lines),
            "batch": str(uuid.uuid4()),
            "checksum": checksum,
        }

        def insert(connection: Connection) -> int:
            try:
                (study,) = connection.execute(CREATE, batch).fetchall()[0]
            except errors.UniqueViolation:
                query = (
                    "SELECT study FROM scrimp_events JOIN scrimp_studies ON study = id WHERE name ="
                    " %s AND batch = %s"
                )
                ours = connection.execute(query, (name, batch["batch"])).fetchone()
                if ours is None:
                    raise existing_study(name, self.url) from None
                (study,) = ours
            return int(study)

        study = self._server.run(insert, create=True)
        assert study is not None
        return _PostgresStore(self._server, name, study)

    def open(self, name: str) -> EventStore:
        study = self._study(name)
        found = self._server.run(
            lambda connection: connection.execute(DAMAGED, {"study": study}).fetchone()
        )
        if found is not None:
            raise damaged(f"what begins with event {found[0]} of study {name!r}")
        return _PostgresStore(self._server, name, study)

    def names(self) -> list[str]:
        return [
            name for (name,) in _rows(self._server, "SELECT name FROM scrimp_studies ORDER BY id")
        ]

    def delete(self, name: str) -> None:
        study = self._study(name)

        def delete(connection: Connection) -> None:
            with connection.transaction():
                connection.execute(
                    "DELETE FROM scrimp_studies WHERE id = %s", (study,)
                )  # waits for batches on their way
                connection.execute("DELETE FROM scrimp_events WHERE study = %s", (study,))

        self._server.run(delete)

    def keep(self, key: str, text: str) -> None:
        query = (
            "INSERT INTO scrimp_kept VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value ="
            " excluded.value"
        )
        self._server.run(lambda connection: connection.execute(query, (key, text)))

    def kept(self, key: str) -> str | None:
        found = _rows(self._server, "SELECT value FROM scrimp_kept WHERE key = %s", key)
        return str(found[0][0]) if found else None

    def identity(self) -> str:
        known = self.kept(IDENTITY)
        if known is None:
            query = "INSERT INTO scrimp_kept VALUES (%s, %s) ON CONFLICT (key) DO NOTHING"
            self._server.run(
                lambda connection: connection.execute(query, (IDENTITY, secrets.token_hex(16)))
            )
            known = self.kept(IDENTITY)
        assert known is not None
        return known

    def close(self) -> None:
        self._server.close()

    def _study(self, name: str) -> int:
        found = _rows(self._server, "SELECT id FROM scrimp_studies WHERE name = %s", name)
        if not found:
            raise unknown_study(name, self.names(), self.url)
        return int(found[0][0])


class _PostgresStore(EventStore):
    def __init__(self, server: PostgresServer, name: str, study: int) -> None:
        self._server = server
        self._name = name
        self._study = study
        self._lock = (
            study % 2**31
        )  # an advisory lock of the server, free again when its holder is gone
        self._thread_turn = threading.Lock()
        self._turn: _Turn | None = None
        self._cursor: psycopg.Cursor[tuple[Any, ...]] | None = (
            None  # kept: making one takes as long as a small query
        )

    def __reduce__(self) -> tuple[object, ...]:
        return _PostgresStore, (self._server, self._name, self._study)

    @property
    def name(self) -> str:
        return self._name

    def append(self, events: Sequence[Appended], decision: int | None = None) -> int:
        length, _, _ = self._stored(lines_of(events, decision), decision, None)
        if length is None:
            raise self._deleted()
        return length

    def extend(
        self, events: Sequence[Event], start: int, decision: int | None = None
    ) -> list[Event]:
        return self._events(self._stored(lines_of(events, decision), decision, start), start)

    def read(self, start: int = 0) -> list[Event]:
        return self._events(self._asked(READ, start, self._study), start)

    def lines(self) -> list[str]:
        query = "SELECT event FROM scrimp_events WHERE study = %s ORDER BY position"
        return [
            line for (text,) in _rows(self._server, query, self._study) for line in text.split("\n")
        ]

    def _stored(self, lines: list[str], decision: int | None, start: int | None) -> News:
        if not lines:
            return self._asked(READ, 2**62 if start is None else start, self._study)
        batch = str(uuid.uuid4())
        turn = None if decision is None else self._turn
        text = "\n".join(lines)

        def insert(connection: Connection) -> News:
            held = turn is not None and self._holds(turn, connection)
            values = (
                self._study,
                decision,
                batch,
                text,
                len(lines),
                self._lock if held else None,
                start,
            )
            try:
                return self._row(connection, APPEND, *values)
            except errors.UniqueViolation:
                return self._earlier(connection, values)

        stored = self._server.run(insert)
        if turn is not None:
            self._turn = None  # it ended with the batch
        return stored or GONE

    def _earlier(self, connection: Connection, values: tuple[Any, ...]) -> News:
        """The answer to a batch that had arrived before; `Conflict` when it was not this one that
        took the decision."""
        _, decision, batch, _, count, _, start = values
        query = "SELECT position FROM scrimp_events WHERE study = %s AND batch = %s"
        found = connection.execute(query, (self._study, batch)).fetchone()
        if found is None:
            raise decision_taken(self._name, decision) from None
        _, first, news = self._row(
            connection, READ, found[0] if start is None else start, self._study
        )
        return found[0] + count, first, news

    def _events(self, answer: News, start: int) -> list[Event]:
        length, first, lines = answer
        if length is None:
            raise self._deleted()
        if first != start and start < length:
            return self._from_the_middle(start)
        events: list[Event] = []
        while lines is not None:
            events += decode_text(lines, self._name, start + len(events))
            if start + len(events) >= length:
                break
            _, _, lines = self._asked(
                READ, start + len(events), self._study
            )  # the answer was cut short
        return events

    def _from_the_middle(self, start: int) -> list[Event]:
        """What there is from a position that is not the beginning of a batch."""
        query = "SELECT max(position) FROM scrimp_events WHERE study = %s AND position < %s"
        ((begin,),) = _rows(self._server, query, self._study, start)
        if begin is None:
            raise self._deleted()
        return self.read(begin)[start - begin :]

    @contextmanager
    def turn(self, start: int) -> Iterator[list[Event]]:
        def take(connection: Connection) -> tuple[_Turn | None, News]:
            try:
                found = self._row(connection, TURN, self._study, self._lock, LONGEST_TURN, start)
                return _Turn(connection, start, found[2] or ""), found
            except (errors.LockNotAvailable, errors.QueryCanceled):
                return None, self._row(connection, READ, start, self._study)

        with self._thread_turn:
            self._turn, found = self._server.run(take) or (None, GONE)
            try:
                yield self._events(found, start)
            except Conflict:
                self._end_turn()
                raise
            except BaseException:
                with suppress(StorageError):
                    self._end_turn()
                raise
            self._end_turn()

    def _end_turn(self) -> None:
        """Give the turn back that no decision has ended; what was read in it is on disk after
        that."""
        turn, self._turn = self._turn, None
        if turn is not None:
            self._server.run(
                lambda connection: (
                    self._holds(turn, connection) and connection.execute(END_OF_TURN, (self._lock,))
                )
            )

    def _holds(self, turn: _Turn, connection: Connection) -> bool:
        """Whether ``connection`` holds the turn. Another one does not; `TurnLost` when what was
        read in the turn is gone too."""
        if connection is turn.connection:
            return True
        _, _, news = self._row(connection, READ, turn.start, self._study)
        if not (news or "").startswith(turn.found):
            raise TurnLost(
                f"{self._server.shown} crashed during a decision: read again and decide again"
            )
        return False

    def lease(self, lease: Lease) -> None:
        values = (lease.trial, lease.attempt, lease.worker, lease.host, lease.pid, lease.started)

        def take(connection: Connection) -> bool:
            try:
                connection.execute(LEASE, (self._study, *values, lease.remaining, lease.remaining))
            except errors.ForeignKeyViolation:
                return False
            return True

        if not self._server.run(take):
            raise self._deleted()

    def release(self, trial: int, attempt: int) -> None:
        query = "DELETE FROM scrimp_leases WHERE study = %s AND trial = %s AND attempt = %s"
        self._server.run(
            lambda connection: connection.execute(query, (self._study, trial, attempt))
        )

    def leases(self) -> list[Lease]:
        found = _rows(self._server, LEASES, self._study)
        if not found:
            raise self._deleted()
        return [Lease(*row) for row in found if row[0] is not None]

    def hurry_once(self, asked: Callable[[], bool]) -> None:
        self._server.hurry_once(asked)

    def _asked(self, query: str, *parameters: object) -> News:
        """The news that a query answers; those of a deleted study when there are no tables any
        more."""
        return (
            self._server.run(lambda connection: self._row(connection, query, *parameters)) or GONE
        )

    def _row(self, connection: Connection, query: str, *parameters: object) -> News:
        if self._cursor is None or self._cursor.connection is not connection:
            self._cursor = connection.cursor()
        found = self._cursor.execute(query, parameters).fetchone()
        return GONE if found is None else found[:3]

    def _deleted(self) -> Exception:
        return deleted_study(self._name, self._server.shown)


def _rows(server: PostgresServer, query: str, *parameters: object) -> list[tuple[Any, ...]]:
    """The result of a query; nothing when there are no tables yet."""
    return server.run(lambda connection: connection.execute(query, parameters).fetchall()) or []
