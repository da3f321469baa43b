"""The procedures in the database: answers of bounded size, and what a crash may take back and what
not."""

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec
import psycopg
import pytest

from scrimp.errors import StorageError, TurnLost
from scrimp.storage.event_json import encode
from scrimp.storage.open import open_storage
from scrimp.storage.postgres import READ
from scrimp.storage.postgres_schema import MAX_PAGE_BYTES
from scrimp.storage.store import SharedTurn, Storage
from scrimp.testing.storages import first_event, report_of
from tests.tools.postgres_server import PrivateServer, available


@pytest.fixture(scope="module")
def minimal() -> Iterator[PrivateServer]:
    """A server that writes as little and as late as one may be set to."""
    if not available():
        pytest.skip("no PostgreSQL server is installed here (initdb, pg_ctl)")
    with PrivateServer("wal_level=minimal", "max_wal_senders=0", "wal_writer_delay=10s") as server:
        yield server


@pytest.fixture
def url(minimal: PrivateServer) -> str:
    return minimal.url("t" + uuid.uuid4().hex)


@pytest.fixture
def storage(url: str) -> Iterator[Storage]:
    storage = open_storage(url)
    yield storage
    storage.close()


@pytest.fixture
def crash(url: str) -> Iterator[Callable[[], None]]:
    """The server's own writer sleeps until it is called: then it is killed, and with it goes what
    was not flushed."""
    with psycopg.connect(url, autocommit=True) as connection:
        query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"
        ((writer,),) = connection.execute(query).fetchall()
        os.kill(writer, signal.SIGSTOP)

        def die() -> None:
            os.kill(writer, signal.SIGKILL)
            with suppress(psycopg.Error):
                connection.execute("SELECT pg_sleep(60)")  # until the server ends all connections
            while not _answers(url):
                time.sleep(0.02)

        yield die
    with suppress(ProcessLookupError):
        os.kill(writer, signal.SIGCONT)


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.Error:
        return False
    return True


def append_without_flush(url: str) -> None:
    """What `scrimp_append` does first: the batch can be seen, and is not on disk yet."""
    (line,) = encode([report_of(7)])
    with psycopg.connect(url) as connection:
        connection.execute("SET LOCAL synchronous_commit = off")
        connection.execute("UPDATE scrimp_studies SET length = length + 1")
        connection.execute(
            "INSERT INTO scrimp_events SELECT id, length - 1, NULL, gen_random_uuid(), %s, ''"
            " FROM scrimp_studies",
            (line,),
        )


def test_many_batches_come_in_several_answers(storage: Storage, url: str) -> None:
    store = storage.create("digits", [first_event("digits")])
    (line,) = encode([report_of(7)])
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO scrimp_events SELECT 1, place, NULL, gen_random_uuid(), %s, ''"
            " FROM generate_series(1, 12000) AS place",
            (line,),
        )
        connection.execute("UPDATE scrimp_studies SET length = 12001")
    assert len(store.read()) == 12001 and len(store.read(11999)) == 2
    assert len(store.extend([report_of(8)], 3)) == 11999


def test_what_was_acknowledged_survives_a_crash(
    storage: Storage, crash: Callable[[], None]
) -> None:
    store = storage.create("digits", [first_event("digits")])
    assert store.append([report_of(0)]) == 2
    with store.turn(0):
        assert len(store.extend([report_of(1)], 0, decision=0)) == 3
    crash()
    assert store.read(1) == [report_of(0), report_of(1)]


def test_what_was_read_survives_a_crash(
    storage: Storage, url: str, crash: Callable[[], None]
) -> None:
    """Another's batch that was not on disk yet is, once somebody has seen it: outside a turn, and
    after one."""
    store = storage.create("digits", [first_event("digits")])
    append_without_flush(url)
    assert store.read(1) == [report_of(7)]
    append_without_flush(url)
    with store.turn(2) as news:
        assert news == [report_of(7)]
    crash()
    assert store.read(1) == [report_of(7), report_of(7)]


def test_a_crash_during_a_turn_makes_its_decision_void(
    storage: Storage, url: str, crash: Callable[[], None]
) -> None:
    store = storage.create("digits", [first_event("digits")])
    append_without_flush(url)
    with pytest.raises(TurnLost, match="crashed during a decision"), store.turn(1) as news:
        assert news == [report_of(7)]
        crash()
        store.append([report_of(0)], decision=0)
    assert store.read(1) == []
    assert store.append([report_of(1)], decision=0) == 2


def wait_for_a_decision(url: str) -> None:
    """Ask for a decision, like a process that waits for its turn."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO scrimp_asked SELECT id, gen_random_uuid() FROM scrimp_studies"
        )


def test_decisions_for_others_are_on_disk_when_the_turn_ends(
    storage: Storage, url: str, crash: Callable[[], None]
) -> None:
    store, turn = storage.create("digits", [first_event("digits")]), SharedTurn()
    wait_for_a_decision(url)
    with store.turn(1, turn):
        store.extend([report_of(0)], 1, 0)
        turn.waiting[0]([report_of(1)], 2, 1)
    crash()
    assert store.read(1) == [report_of(0), report_of(1)]


@pytest.mark.parametrize("answered", [False, True])
def test_a_crash_between_decisions_makes_them_void(
    storage: Storage, url: str, crash: Callable[[], None], answered: bool
) -> None:
    store, turn = storage.create("digits", [first_event("digits")]), SharedTurn()
    wait_for_a_decision(url)
    with pytest.raises(TurnLost, match="crashed during a decision"), store.turn(1, turn):
        store.extend([report_of(0)], 1, 0)
        crash()
        if answered:
            turn.waiting[0]([report_of(1)], 2, 1)
    assert store.read(1) == []
    with store.turn(1, turn) as news:
        assert (turn.place, news, list(turn.waiting)) == (None, [], [])


def test_a_crash_that_takes_nothing_back_changes_nothing(
    storage: Storage, crash: Callable[[], None]
) -> None:
    store = storage.create("digits", [first_event("digits")])
    store.append([report_of(7)])
    with store.turn(1) as news:
        assert news == [report_of(7)]
        crash()
        assert store.append([report_of(0)], decision=0) == 3


def test_a_reader_without_rights_to_write(storage: Storage, url: str) -> None:
    store = storage.create("digits", [first_event("digits")])
    store.append([report_of(0), report_of(1)])
    schema = url.rpartition("%3D")[2]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS viewer")
        connection.execute("CREATE ROLE viewer LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO viewer".encode())
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO viewer".encode())
    viewer = open_storage(url.replace("postgres@", "viewer@"))
    assert viewer.open("digits").read() == store.read()
    viewer.close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP OWNED BY viewer; DROP ROLE viewer")


def test_a_page_is_bounded_in_bytes(storage: Storage, url: str) -> None:
    """12 batches of 4 MB are more than a page holds; a single batch that is larger than a page
    still comes."""
    store = storage.create("digits", [first_event("digits")])
    (line,) = encode([msgspec.structs.replace(report_of(1), metrics={"name": 1.0})])
    with psycopg.connect(url) as connection:
        insert = (
            "INSERT INTO scrimp_events SELECT 1, place, NULL, gen_random_uuid(),"
            " replace(%s, 'name', repeat('x', %s)), '' FROM {}"
        )
        connection.execute(insert.format("generate_series(1, 12) AS place").encode(), (line, 2**22))
        connection.execute(
            insert.format("generate_series(13, 13) AS place").encode(), (line, MAX_PAGE_BYTES + 1)
        )
        connection.execute("UPDATE scrimp_studies SET length = 14")
    page = store._asked(READ, 1, 1)[2]  # type: ignore[attr-defined]
    assert page is not None and 2**24 < len(page) <= MAX_PAGE_BYTES
    assert len(store.read()) == 14 and len(store.read(13)) == 1
    assert len(store.extend([report_of(2)], 5)) == 10


@pytest.mark.parametrize(
    ("damage", "where"),
    [
        ("UPDATE scrimp_events SET event = replace(event, '5.0', '6.0') WHERE position = 5", 5),
        ("UPDATE scrimp_events SET checksum = '' WHERE position = 5", 5),
        ("DELETE FROM scrimp_events WHERE position = 3", 4),
        ("DELETE FROM scrimp_events WHERE position > 7", 11),
        (
            (
                "INSERT INTO scrimp_events SELECT 1, 11, NULL, gen_random_uuid(), event, ''"
                " FROM scrimp_events WHERE position = 10"
            ),
            11,
        ),
    ],
)
def test_a_damaged_log_says_so(storage: Storage, url: str, damage: str, where: int) -> None:
    store = storage.create("digits", [first_event("digits")])
    for number in range(1, 11):
        store.append([report_of(number)])
    assert len(storage.open("digits").read()) == 11
    with psycopg.connect(url) as connection:
        assert connection.execute(damage.encode()).rowcount
    with pytest.raises(
        StorageError,
        match=f"what begins with event {where} of study 'digits' is not what was stored",
    ):
        storage.open("digits")
