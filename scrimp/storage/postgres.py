"""Studies in a PostgreSQL database, for many machines. Needs ``pip install 'scrimp[postgres]'``.

Each batch is one call of a procedure (`postgres_schema`), so one round trip. It first advances the
study's length, which makes other writers of the study wait for its commit: positions have no gaps,
and the order of the log is the order of commits. Every batch carries an id made by the client. When
the connection is lost before the answer, the batch is sent again under the same id, and the
database refuses the second copy if the first one had arrived. The server's clock dates the leases.

    storage = PostgresStorage("postgresql://ann@db.example/hpo", "postgresql://ann@db.example/hpo")
"""

import secrets
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

from psycopg import errors

from scrimp.errors import Conflict, StorageError, TurnLost
from scrimp.storage.event_json import Appended, damaged, decode_text, link
from scrimp.storage.leases import MAX_LEASES, Lease
from scrimp.storage.postgres_schema import FLUSH, LOCK_CLASS, Connection, Row, page_query
from scrimp.storage.postgres_server import PostgresServer
from scrimp.storage.store import (
    IDENTITY,
    EventStore,
    ServedStore,
    SharedTurn,
    Storage,
    check_name,
    decision_taken,
    deleted_study,
    existing_study,
    lines_of,
    unknown_study,
)
from scrimp.study_log.events import BudgetGranted, Decided, Event, TrialAdded

CREATE = """
WITH made AS (
    INSERT INTO {schema}scrimp_studies (name, length, checksum, changed)
    VALUES (%(name)s, %(count)s, %(checksum)s, %(count)s) RETURNING id
)
INSERT INTO {schema}scrimp_events (study, position, batch, event, checksum)
SELECT id, 0, %(batch)s::uuid, %(lines)s, %(checksum)s FROM made RETURNING study
"""

CREATED = """
SELECT study FROM {schema}scrimp_events JOIN {schema}scrimp_studies ON study = id WHERE name = %s AND batch = %s::uuid
"""

APPEND = """
CALL {schema}scrimp_append(%s::bigint, %s::bigint, %s::uuid, %s::text, %s::integer, %s::integer, %s::bigint,
    %s::boolean, %s::boolean, %s::boolean, NULL::bigint, NULL::bigint, NULL::text, NULL::bytea, NULL::bigint)
"""
"""Every argument has its type, so that no other procedure of this name fits better."""

READ, READ_PART = (
    f"""
SELECT length, place, lines, CASE WHEN place IS NOT NULL THEN {FLUSH} END
FROM {{schema}}scrimp_studies, LATERAL ({page_query("id", "%s", share=share)}) AS found WHERE id = %s
"""
    for share in (1, 8)
)
"""Queries for a page of a log, and for a part of one that suits an answer over a network."""

DAMAGED = """
SELECT position FROM (
    SELECT position, checksum,
        substr(sha256(lag(checksum, 1, ''::bytea) OVER log || convert_to(event, 'UTF8')), 1, 16) AS due
    FROM {schema}scrimp_events WHERE study = %(study)s WINDOW log AS (ORDER BY position)
) AS rows WHERE checksum <> due
UNION ALL
SELECT length FROM {schema}scrimp_studies WHERE id = %(study)s AND checksum IS DISTINCT FROM
    (SELECT checksum FROM {schema}scrimp_events WHERE study = %(study)s ORDER BY position DESC LIMIT 1)
ORDER BY 1 LIMIT 1
"""
"""A query for the position of the first batch whose checksum does not match, or of the end of the
log when its last batches are gone."""

TURN = """
CALL {schema}scrimp_turn(%s::bigint, %s::integer, %s::text, %s::bigint, %s::uuid, %s::boolean,
    NULL::bigint, NULL::bigint, NULL::text, NULL::bigint, NULL::uuid[], NULL::boolean)
"""
WITHDRAW = "DELETE FROM {schema}scrimp_asked WHERE study = %s AND batch = %s"
PLACE = (
    f"SELECT position, event, {FLUSH} FROM {{schema}}scrimp_events WHERE study = %s AND batch = %s"
)

END_OF_TURN = f"SELECT pg_advisory_unlock({LOCK_CLASS}, %s), {FLUSH}"
MAX_TURN_WAIT = "5s"
"""The time that other processes wait for a turn to end before they decide without one."""

LEASE = """
INSERT INTO {schema}scrimp_leases AS held (study, trial, attempt, worker, host, pid, started, seconds, expires)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, clock_timestamp() + make_interval(secs => %s))
ON CONFLICT (study, trial) DO UPDATE SET (attempt, worker, host, pid, started, seconds, expires) =
    (excluded.attempt, excluded.worker, excluded.host, excluded.pid, excluded.started, excluded.seconds, excluded.expires)
WHERE excluded.attempt >= held.attempt
"""

LEASES = f"""
SELECT trial, attempt, worker, host, pid, extract(epoch FROM expires - clock_timestamp())::float8, started,
    seconds, extract(epoch FROM expires)::float8
FROM {{schema}}scrimp_studies LEFT JOIN {{schema}}scrimp_leases ON study = id WHERE id = %s ORDER BY trial
LIMIT {MAX_LEASES}
"""


News = tuple[int | None, int | None, str | None]
"""The length of the study (None: deleted), the position of the first batch found, and the lines."""

GONE: News = (None, None, None)


@dataclass(frozen=True)
class _Turn:
    """A turn: the connection that holds it, the lines it ``found`` from ``start`` on, which a crash
    may still take back, and the id of its batch. ``shared`` if it ends with the block, after
    decisions for others."""

    connection: Connection
    start: int
    found: tuple[str | None, ...]
    batch: uuid.UUID
    shared: bool


class PostgresStorage(Storage):
    """The studies in the database at ``url``; ``shown`` is the URL without its password."""

    def __init__(self, url: str, shown: str, timeout: float = 60.0) -> None:
        self.url = shown
        self._server = PostgresServer(url, shown, timeout)

    def create(self, name: str, events: Sequence[Appended]) -> EventStore:
        check_name(name)
        lines = lines_of(events, first=True)
        text = "\n".join(lines)
        batch = {"name": name, "lines": text, "count": len(lines), "batch": str(uuid.uuid4())}
        batch["checksum"] = link(None, text.encode())

        def insert(connection: Connection) -> int:
            try:
                made = connection.ask(CREATE, batch)
            except errors.UniqueViolation:
                made = connection.ask(CREATED, (name, batch["batch"]))
                if not made:
                    raise existing_study(name, self.url) from None
            return int(made[0][0])

        study = self._server.run(insert, create=True)
        assert study is not None
        return _PostgresStore(self._server, name, study)

    def open(self, name: str) -> EventStore:
        study = self._study(name)
        found = self._server.run(lambda connection: connection.ask(DAMAGED, {"study": study}))
        if found:
            raise damaged(f"what begins with event {found[0][0]} of study {name!r}")
        return _PostgresStore(self._server, name, study)

    def names(self) -> list[str]:
        found = _rows(self._server, "SELECT name FROM {schema}scrimp_studies ORDER BY id")
        return [name for (name,) in found]

    def delete(self, name: str) -> None:
        study = self._study(name)

        def delete(connection: Connection) -> None:
            with connection.transaction():
                # The first statement waits for batches that are being appended.
                connection.ask("DELETE FROM {schema}scrimp_studies WHERE id = %s", (study,))
                connection.ask("DELETE FROM {schema}scrimp_events WHERE study = %s", (study,))

        self._server.run(delete)

    def keep(self, key: str, text: str) -> None:
        query = (
            "INSERT INTO {schema}scrimp_kept VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value ="
            " excluded.value"
        )
        self._server.run(lambda connection: connection.ask(query, (key, text)))

    def kept(self, key: str) -> str | None:
        found = _rows(self._server, "SELECT value FROM {schema}scrimp_kept WHERE key = %s", key)
        return str(found[0][0]) if found else None

    def identity(self) -> str:
        known = self.kept(IDENTITY)
        if known is None:
            query = "INSERT INTO {schema}scrimp_kept VALUES (%s, %s) ON CONFLICT (key) DO NOTHING"
            self._server.run(
                lambda connection: connection.ask(query, (IDENTITY, secrets.token_hex(16)))
            )
            known = self.kept(IDENTITY)
        if known is None:
            raise StorageError(f"{self.url} has no tables of scrimp; create the study first")
        return known

    def close(self) -> None:
        self._server.close()

    def _study(self, name: str) -> int:
        found = _rows(self._server, "SELECT id FROM {schema}scrimp_studies WHERE name = %s", name)
        if not found:
            raise unknown_study(name, self.names(), self.url)
        return int(found[0][0])


class _PostgresStore(ServedStore):
    def __init__(self, server: PostgresServer, name: str, study: int) -> None:
        self.name, self.identity = name, str(study)
        self._server = server
        self._study = study
        # An advisory lock of the server, which is released when its holder disconnects.
        self._lock = study % 2**31
        self._thread_turn = threading.Lock()
        self._turn: _Turn | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return _PostgresStore, (self._server, self.name, self._study)

    def append(self, events: Sequence[Appended], decision: int | None = None) -> int:
        return self.append_once(uuid.uuid4(), events, decision)

    def append_once(
        self, key: uuid.UUID, events: Sequence[Appended], decision: int | None = None
    ) -> int:
        length, _, _ = self._stored(lines_of(events, decision), decision, None, key)
        if length is None:
            raise self._deleted()
        return length

    def batch(self, key: uuid.UUID) -> list[Event] | None:
        query = "SELECT event FROM {schema}scrimp_events WHERE study = %s AND batch = %s"
        found = _rows(self._server, query, self._study, str(key))
        return decode_text(found[0][0], self.name) if found else None

    def page(self, start: int) -> tuple[list[str], int]:
        length, first, text = self._asked(READ_PART, start, self._study)
        if length is None:
            raise self._deleted()
        if first != start and start < length:
            begin = self._begin_of_batch(start)
            lines, length = self.page(begin)
            return lines[start - begin :], length
        return [] if text is None else text.split("\n"), length

    def extend(
        self, events: Sequence[Event], start: int, decision: int | None = None
    ) -> list[Event]:
        turn = None if decision is None else self._turn
        key, own = uuid.uuid4() if turn is None else turn.batch, _own(events)
        stored = self._stored(lines_of(events, decision), decision, start, key, own=own)
        return self._events(stored, start)

    def extend_own(self, events: Sequence[Event], start: int) -> list[Event] | None:
        stored = self._stored(lines_of(events), None, start, uuid.uuid4(), own=True)
        return None if stored[0] and stored[2] is None else self._events(stored, start)

    def _answer(
        self, key: uuid.UUID, events: Sequence[Event], start: int, decision: int
    ) -> list[Event]:
        lines, own = lines_of(events, decision), _own(events)
        stored = self._stored(lines, decision, start, key, answer=True, own=own)
        if stored[0] == 0:
            raise Conflict(f"no process waits for decision {decision} of {self.name!r} any more")
        return self._events(stored, start)

    def read(self, start: int = 0) -> list[Event]:
        return self._events(self._asked(READ, start, self._study), start)

    def lines(self) -> list[str]:
        query = "SELECT event FROM {schema}scrimp_events WHERE study = %s ORDER BY position"
        found = _rows(self._server, query, self._study)
        return [line for (text,) in found for line in text.split("\n")]

    def _stored(
        self,
        lines: list[str],
        decision: int | None,
        start: int | None,
        key: uuid.UUID,
        *,
        answer: bool = False,
        own: bool = False,
    ) -> News:
        if not lines:
            return self._asked(READ, 2**62 if start is None else start, self._study)
        batch = str(key)
        turn = None if decision is None else self._turn
        text = "\n".join(lines)

        def insert(connection: Connection) -> News:
            held = turn is not None and self._holds(turn, connection)
            more = turn is not None and held and turn.shared and start is not None
            lock = self._lock if held and not more else None
            values = (
                self._study,
                decision,
                batch,
                text,
                len(lines),
                lock,
                start,
                answer,
                more,
                own,
            )
            try:
                return _news(connection, APPEND, *values)
            except errors.UniqueViolation:
                return self._earlier(connection, values)

        stored = self._server.run(insert) or GONE
        if turn is not None and turn.shared and start is not None:
            self._turn = replace(turn, found=(*turn.found, stored[2]))
        elif turn is not None:
            self._turn = None  # it ended with the batch
        return stored

    def _earlier(self, connection: Connection, values: Row) -> News:
        """Answer a batch that had arrived before; `Conflict` when another batch took the
        decision."""
        _, decision, batch, _, count, _, start, *_ = values
        found = connection.ask(PLACE, (self._study, batch))
        if not found:
            raise decision_taken(self.name, decision) from None
        position = found[0][0]
        begin = position if start is None else start
        _, first, news = _news(connection, READ, begin, self._study)
        return position + count, first, news

    def _events(self, answer: News, start: int) -> list[Event]:
        length, first, lines = answer
        if length is None:
            raise self._deleted()
        if first != start and start < length:
            begin = self._begin_of_batch(start)
            return self.read(begin)[start - begin :]
        events: list[Event] = []
        while lines is not None:
            events += decode_text(lines, self.name, start + len(events))
            if start + len(events) >= length:
                break
            # The answer was one page of several.
            _, _, lines = self._asked(READ, start + len(events), self._study)
        return events

    def _begin_of_batch(self, start: int) -> int:
        """Return the position of the batch in whose middle ``start`` is."""
        query = "SELECT max(position) FROM {schema}scrimp_events WHERE study = %s AND position < %s"
        ((begin,),) = _rows(self._server, query, self._study, start)
        if begin is None:
            raise self._deleted()
        return int(begin)

    @contextmanager
    def turn(self, start: int, shared: SharedTurn | None = None) -> Iterator[list[Event]]:
        with self._thread_turn:
            try:
                news = self._waited(start, shared)
                if shared is not None and shared.place is not None:
                    shared.batch = decode_text(news[2] or "", self.name, shared.place)
                    yield []
                else:
                    yield self._events(news, start)
            except Conflict:
                self._end_turn()
                raise
            except BaseException:
                with suppress(StorageError):
                    self._end_turn()
                    if shared is not None and shared.behind:
                        self._server.run(lambda it: self._withdrawn(it, shared.key))
                raise
            self._end_turn()

    def _waited(self, start: int, shared: SharedTurn | None) -> News:
        """Wait for a turn and return what is new; after too long a wait without a turn."""
        key = None if shared is None else shared.key
        patient = shared is not None and not shared.behind
        place, waiting, behind = None, None, False

        def take(connection: Connection) -> News:
            nonlocal place, waiting, behind
            try:
                values = (self._study, self._lock, MAX_TURN_WAIT, start, key, patient)
                ((*found, place, waiting, behind),) = connection.ask(TURN, values)
            except (errors.LockNotAvailable, errors.QueryCanceled):
                # Cancelled after its turn began, it would hold up all others.
                connection.ask("SELECT pg_advisory_unlock_all()")
                answered = [] if key is None else self._withdrawn(connection, key)
                if not answered:
                    return _news(connection, READ, start, self._study)
                ((place, text, _),) = answered
                return None, place, text
            if place is None and not behind:
                batch = key or uuid.uuid4()
                self._turn = _Turn(connection, start, (found[2],), batch, bool(waiting))
            return tuple(found)

        try:
            news = self._server.run(take) or GONE
        except BaseException:
            if key is not None:
                with suppress(StorageError):
                    self._server.run(lambda connection: self._withdrawn(connection, key))
            raise
        if shared is not None:
            shared.place, shared.behind = place, bool(behind) and place is None
            shared.waiting = [partial(self._answer, other) for other in waiting or ()]
        return news

    def _withdrawn(self, connection: Connection, key: uuid.UUID) -> list[Row]:
        """Take back the request for a decision; return the place and lines of the batch that answered
        it, if one did."""
        connection.ask(WITHDRAW, (self._study, key))
        return connection.ask(PLACE, (self._study, key))

    def _end_turn(self) -> None:
        """Give back a turn that ended without a decision; the events read in it are on disk
        afterwards."""
        turn, self._turn = self._turn, None
        if turn is not None:

            def end(connection: Connection) -> None:
                if self._holds(turn, connection):
                    connection.ask(END_OF_TURN, (self._lock,))

            self._server.run(end)

    def _holds(self, turn: _Turn, connection: Connection) -> bool:
        """Return whether ``connection`` still holds the turn; `TurnLost` when a crash took back
        what was read in it."""
        if connection is turn.connection:
            return True
        _, _, news = _news(connection, READ, turn.start, self._study)
        if not (news or "").startswith("\n".join(filter(None, turn.found))):
            raise TurnLost(
                f"{self._server.shown} crashed during a decision: read again and decide again"
            )
        return False

    def lease(self, lease: Lease) -> None:
        values = (lease.trial, lease.attempt, lease.worker, lease.host, lease.pid, lease.started)

        def take(connection: Connection) -> bool:
            try:
                connection.ask(LEASE, (self._study, *values, lease.remaining, lease.remaining))
            except errors.ForeignKeyViolation:
                return False
            return True

        if not self._server.run(take):
            raise self._deleted()

    def release(self, trial: int, attempt: int) -> None:
        query = "DELETE FROM {schema}scrimp_leases WHERE study = %s AND trial = %s AND attempt = %s"
        self._server.run(lambda connection: connection.ask(query, (self._study, trial, attempt)))

    def leases(self) -> list[Lease]:
        found = _rows(self._server, LEASES, self._study)
        if not found:
            raise self._deleted()
        return [Lease(*row) for row in found if row[0] is not None]

    def hurry_once(self, asked: Callable[[], bool]) -> None:
        self._server.hurry_once(asked)

    def _asked(self, query: str, *parameters: object) -> News:
        """Run a query for news; without tables the study counts as deleted."""
        return self._server.run(lambda connection: _news(connection, query, *parameters)) or GONE

    def _deleted(self) -> Exception:
        return deleted_study(self.name, self._server.shown)


def _own(events: Sequence[Event]) -> bool:
    """Return True for a decision that concerns only the process that it gives a new trial to: it
    keeps no lease, so no other process may resume it."""
    match events:
        case [Decided(), TrialAdded(enqueued=False), BudgetGranted(worker="")]:
            return True
    return False


def _news(connection: Connection, query: str, *parameters: object) -> News:
    found = connection.ask(query, parameters)
    return found[0][:3] if found else GONE


def _rows(server: PostgresServer, query: str, *parameters: object) -> list[Row]:
    """Return the rows of a query; none when there are no tables yet."""
    return server.run(lambda connection: connection.ask(query, parameters)) or []
