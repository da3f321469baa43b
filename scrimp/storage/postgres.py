"""Studies in a PostgreSQL database: for many machines. Needs the extra: ``pip install 'scrimp[postgres]'``.

Each batch is one statement, so one transaction and one round trip. It first advances the study's length, which makes other
writers of the study wait for its commit: positions have no gaps, and the order of the log is the order of commits. Every batch
carries an id made by the client; when the connection is lost before the answer, the batch is sent again under the same id, and
the database refuses the second copy if the first one had arrived. The server's clock dates the leases.

    storage = PostgresStorage("postgresql://ann@db.example/hpo", "postgresql://ann@db.example/hpo")
"""

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psycopg import errors

from scrimp.history.events import Event
from scrimp.storage.event_json import decode
from scrimp.storage.postgres_server import LOCKS, Connection, PostgresServer
from scrimp.storage.refusals import (
    check_name,
    decision_taken,
    deleted_study,
    existing_study,
    lines_of,
    unknown_study,
)
from scrimp.storage.store import EventStore, Lease, Storage

__all__ = ["PostgresStorage"]

# The batch travels as one text, a line per event: arrays of texts are slow to prepare on the client.
INSERT = """
INSERT INTO scrimp_events (study, position, decision, batch, event)
SELECT grown.id, grown.length - %(count)s::bigint + place - 1,
       CASE WHEN place = 1 THEN %(decision)s::bigint END, CASE WHEN place = 1 THEN %(batch)s::uuid END, line
FROM grown, unnest(string_to_array(%(lines)s::text, chr(10))) WITH ORDINALITY AS batch (line, place)
RETURNING study
"""

CREATE = f"""
WITH grown AS (INSERT INTO scrimp_studies (name, length) VALUES (%(name)s, %(count)s) RETURNING id, length) {INSERT}
"""

APPEND = f"""
WITH grown AS (
    UPDATE scrimp_studies SET length = length + %(count)s WHERE id = %(study)s RETURNING id, length
), stored AS ({INSERT})
SELECT length FROM grown
"""

READ = """
SELECT event FROM scrimp_studies LEFT JOIN scrimp_events ON study = id AND position >= %s WHERE id = %s ORDER BY position
"""

LEASE = """
INSERT INTO scrimp_leases AS held (study, trial, attempt, worker, host, pid, started, expires)
VALUES (%s, %s, %s, %s, %s, %s, %s, clock_timestamp() + make_interval(secs => %s))
ON CONFLICT (study, trial) DO UPDATE SET (attempt, worker, host, pid, started, expires) =
    (excluded.attempt, excluded.worker, excluded.host, excluded.pid, excluded.started, excluded.expires)
WHERE excluded.attempt >= held.attempt
"""

LEASES = """
SELECT trial, attempt, worker, host, pid, extract(epoch FROM expires - clock_timestamp())::float8, started
FROM scrimp_studies LEFT JOIN scrimp_leases ON study = id WHERE id = %s ORDER BY trial
"""


TURN = "SELECT set_config('lock_timeout', %s, true), pg_advisory_lock(%s, %s)"
END_OF_TURN = "SELECT pg_advisory_unlock(%s, %s)"
LONGEST_TURN = "5s"
"""How long others wait for a turn to end before they decide without one."""


class PostgresStorage(Storage):
    """The studies in the database at ``url``, which is shown as ``shown``: without its password."""

    def __init__(self, url: str, shown: str, patience: float = 60.0) -> None:
        self._server = PostgresServer(url, shown, patience)

    @property
    def url(self) -> str:
        return self._server.shown

    def create(self, name: str, events: Sequence[Event]) -> EventStore:
        check_name(name)
        batch = {"name": name, **_batch(lines_of(events, first=True), None)}

        def insert(connection: Connection) -> int:
            try:
                (study,) = connection.execute(CREATE, batch).fetchall()[0]
            except errors.UniqueViolation:
                query = (
                    "SELECT study FROM scrimp_events JOIN scrimp_studies ON study = id WHERE name = %s AND batch = %s"
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
        return _PostgresStore(self._server, name, self._study(name))

    def names(self) -> list[str]:
        return [name for (name,) in _rows(self._server, "SELECT name FROM scrimp_studies ORDER BY id")]

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
        query = "INSERT INTO scrimp_kept VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        self._server.run(lambda connection: connection.execute(query, (key, text)))

    def kept(self, key: str) -> str | None:
        found = _rows(self._server, "SELECT value FROM scrimp_kept WHERE key = %s", key)
        return str(found[0][0]) if found else None

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
        self._turn = (LOCKS, study % 2**31)  # an advisory lock of the server, free again when its holder is gone
        self._thread_turn = threading.Lock()
        self._in_turn = False

    def __reduce__(self) -> tuple[Any, ...]:
        return _PostgresStore, (self._server, self._name, self._study)

    @property
    def name(self) -> str:
        return self._name

    def append(self, events: Sequence[Event], decision: int | None = None) -> int:
        lines = lines_of(events, decision)
        if not lines:
            return self._length()
        batch = {"study": self._study, **_batch(lines, decision)}

        def insert(connection: Connection) -> int | None:
            try:
                grown = connection.execute(APPEND, batch).fetchone()
            except errors.UniqueViolation:
                return self._end_of_earlier(connection, batch)
            return None if grown is None else int(grown[0])

        end = self._server.run(insert)
        if end is None:
            raise self._deleted()
        return end

    def _end_of_earlier(self, connection: Connection, batch: dict[str, Any]) -> int:
        """Where the batch ends that had arrived before; `Conflict` when it was not this one that took the decision."""
        query = "SELECT position FROM scrimp_events WHERE study = %s AND batch = %s"
        earlier = connection.execute(query, (self._study, batch["batch"])).fetchone()
        if earlier is None:
            raise decision_taken(self._name, batch["decision"]) from None
        return int(earlier[0]) + int(batch["count"])

    def extend(self, events: Sequence[Event], start: int, decision: int | None = None) -> list[Event]:
        lines = lines_of(events, decision)
        if not lines:
            return self.read(start)
        batch = {"study": self._study, **_batch(lines, decision)}
        ends_turn = self._in_turn and decision is not None

        def insert(connection: Connection) -> list[tuple[Any, ...]]:
            """All in one round trip: others get their turn while this process still waits for the answer."""
            try:
                with connection.pipeline() as pipeline:
                    connection.execute(APPEND, batch)
                    pipeline.sync()  # committed here: whoever has the next turn sees it
                    if ends_turn:
                        connection.execute(END_OF_TURN, self._turn)
                    news = connection.execute(READ, (start, self._study))
            except errors.UniqueViolation:
                self._end_of_earlier(connection, batch)
                news = connection.execute(READ, (start, self._study))
            return news.fetchall()

        found = self._server.run(insert)
        if ends_turn:
            self._in_turn = False
        return self._decoded(found, start)

    def read(self, start: int = 0) -> list[Event]:
        return self._decoded(_rows(self._server, READ, start, self._study), start)

    def _decoded(self, found: list[tuple[Any, ...]] | None, start: int) -> list[Event]:
        if not found:
            raise self._deleted()
        return decode((line for (line,) in found if line is not None), self._name, start)

    @contextmanager
    def turn(self, start: int) -> Iterator[list[Event]]:
        def take(connection: Connection) -> tuple[bool, list[tuple[Any, ...]]]:
            try:
                with connection.pipeline():
                    connection.execute(TURN, (LONGEST_TURN, *self._turn))
                    news = connection.execute(READ, (start, self._study))
                return True, news.fetchall()
            except errors.LockNotAvailable:
                return False, connection.execute(READ, (start, self._study)).fetchall()

        with self._thread_turn:
            self._in_turn, found = self._server.run(take) or (False, [])
            try:
                yield self._decoded(found, start)
            finally:
                if self._in_turn:  # no decision came of it
                    self._in_turn = False
                    self._server.run(lambda connection: connection.execute(END_OF_TURN, self._turn))

    def lease(self, lease: Lease) -> None:
        values = (lease.trial, lease.attempt, lease.worker, lease.host, lease.pid, lease.started, lease.remaining)

        def take(connection: Connection) -> bool:
            try:
                connection.execute(LEASE, (self._study, *values))
            except errors.ForeignKeyViolation:
                return False
            return True

        if not self._server.run(take):
            raise self._deleted()

    def release(self, trial: int, attempt: int) -> None:
        query = "DELETE FROM scrimp_leases WHERE study = %s AND trial = %s AND attempt = %s"
        self._server.run(lambda connection: connection.execute(query, (self._study, trial, attempt)))

    def leases(self) -> list[Lease]:
        found = _rows(self._server, LEASES, self._study)
        if not found:
            raise self._deleted()
        return [Lease(*row) for row in found if row[0] is not None]

    def _length(self) -> int:
        found = _rows(self._server, "SELECT length FROM scrimp_studies WHERE id = %s", self._study)
        if not found:
            raise self._deleted()
        return int(found[0][0])

    def _deleted(self) -> Exception:
        return deleted_study(self._name, self._server.shown)


def _batch(lines: list[str], decision: int | None) -> dict[str, Any]:
    """What a statement needs to store ``lines``, with an id that makes storing them twice impossible."""
    return {"lines": "\n".join(lines), "count": len(lines), "decision": decision, "batch": str(uuid.uuid4())}


def _rows(server: PostgresServer, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """The result of a query; nothing when there are no tables yet."""
    return server.run(lambda connection: connection.execute(query, parameters).fetchall()) or []
