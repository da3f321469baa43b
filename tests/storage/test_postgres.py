"""The PostgreSQL storage keeps the contract, and loses or repeats nothing when the network or the
server fails."""

import random
import socket
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from scrimp.errors import Conflict, StorageError, StudyError
from scrimp.storage.open import open_storage
from scrimp.storage.postgres import PostgresStorage
from scrimp.storage.store import Storage
from scrimp.study_log.events import Reported
from scrimp.testing.storages import (
    DurableStorageBattery,
    ServedStoreBattery,
    check_race,
    decide,
    first_event,
    report_of,
)
from tests.tools.postgres_server import PrivateServer, available
from tests.waiting import PATIENCE


@pytest.fixture
def storage(url: str) -> Iterator[Storage]:
    storage = open_storage(url)
    yield storage
    storage.close()


class TestPostgresStorage(DurableStorageBattery, ServedStoreBattery):
    """The URL opens a `PostgresStorage`."""

    @pytest.fixture
    def storage(self, url: str) -> Iterator[Storage]:
        storage = open_storage(url)
        yield storage
        storage.close()


class Network:
    """A socket that passes everything on to the server, until it is told to cut the line.

    ``calls`` and ``answers`` are how many bytes may still pass in each direction; then the line
    goes dead, and the next connection works again: for ever, or for as many bytes of answers as the
    next of the ``plans`` says.
    """

    def __init__(self, folder: Path, target: Path) -> None:
        self.folder = folder
        self._target = target
        self.calls = self.answers = float("inf")
        self.plans: list[int] = []
        self.cuts = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def restore(self) -> None:
        self.calls = float("inf")
        self.answers = self.plans.pop() if self.plans else float("inf")

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(timeout=PATIENCE)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                thread = threading.Thread(target=self._serve, args=(client,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self._target / ".s.PGSQL.5432"))
            back = threading.Thread(target=self._pass, args=(server, client, "answers"))
            back.start()
            self._pass(client, server, "calls")
            back.join()

    def _pass(self, source: socket.socket, sink: socket.socket, name: str) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                left = getattr(self, name)
                if len(data) > left:
                    self.cuts += 1
                    self.restore()
                    sink.sendall(data[: int(left)])
                    break
                setattr(self, name, left - len(data))
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def shaky_url(url: str, server: PrivateServer, network: Network) -> str:
    """The same tables, over the line that may be cut."""
    return url.replace(str(server.folder), str(network.folder))


@pytest.fixture
def network(server: PrivateServer) -> Iterator[Network]:
    with tempfile.TemporaryDirectory() as folder:  # a short name: sockets need one
        network = Network(Path(folder), server.folder)
        yield network
        network.close()


@pytest.fixture
def shaky(shaky_url: str) -> Iterator[Storage]:
    storage = open_storage(shaky_url)
    yield storage
    storage.close()


def test_a_lost_answer_is_not_a_second_append(
    shaky: Storage, storage: Storage, network: Network
) -> None:
    store = shaky.create("digits", [first_event("digits")])
    network.answers = 0
    assert store.append([report_of(0), report_of(1)], decision=0) == 3
    assert network.cuts == 1
    assert storage.open("digits").read(1) == [report_of(0), report_of(1)]
    with pytest.raises(Conflict):
        store.append([report_of(2)], decision=0)


def test_a_lost_call_is_sent_again(shaky: Storage, storage: Storage, network: Network) -> None:
    store = shaky.create("digits", [first_event("digits")])
    network.calls = 0
    assert store.append([report_of(0)]) == 2
    assert network.cuts == 1 and storage.open("digits").read(1) == [report_of(0)]


def test_a_lost_answer_to_a_creation(shaky: Storage, storage: Storage, network: Network) -> None:
    shaky.create("first", [first_event("first")])
    network.answers = 0
    store = shaky.create("digits", [first_event("digits")])
    assert network.cuts == 1
    assert store.append([report_of(0)]) == 2 and storage.names() == ["first", "digits"]
    network.answers = 0
    with pytest.raises(StudyError, match="exists already"):
        shaky.create("first", [first_event("first")])


def test_any_cut_anywhere(shaky: Storage, storage: Storage, network: Network) -> None:
    """80 appends over a line that breaks at random places: each event is stored once, and the
    lengths are true."""
    chance = random.Random(0)
    store = shaky.create("digits", [first_event("digits")])
    for number in range(80):
        if chance.random() < 0.5:
            network.calls = chance.randrange(600)
        else:
            network.answers = chance.randrange(120)
        decision = number if chance.random() < 0.5 else None
        assert store.append([report_of(number), report_of(number, 2.0)], decision) == 3 + 2 * number
    network.restore()
    assert network.cuts > 20
    expected = [report_of(number, step) for number in range(80) for step in (1.0, 2.0)]
    assert storage.open("digits").read(1) == expected == store.read(1)


def test_several_writers_over_a_shaky_line(
    shaky: Storage, shaky_url: str, network: Network
) -> None:
    shaky.create("digits", [first_event("digits")])
    storages = [open_storage(shaky_url) for _ in range(3)]
    stores = [each.open("digits") for each in storages]
    chance = random.Random(1)
    network.plans = [
        2000 + chance.randrange(1500) for _ in range(8)
    ]  # enough to connect and get on a little
    network.restore()
    with ThreadPoolExecutor(3) as pool:
        won = list(pool.map(lambda taker: decide(stores[taker], taker, 40), range(3)))
    for each in storages:
        each.close()
    assert network.cuts == 8
    check_race(shaky.open("digits").read(), won, 40)


def test_the_server_crashes_while_many_write() -> None:
    """Killed twice at bad moments: every acknowledged batch is there once, in order, and none is
    torn."""
    if not available():
        pytest.skip("no PostgreSQL server is installed here (initdb, pg_ctl)")
    with PrivateServer() as server:
        url = server.url()
        storage = open_storage(url)
        storage.create("digits", [first_event("digits")])
        acknowledged: dict[int, int] = {}
        stop = threading.Event()

        def write(writer: int) -> None:
            own = open_storage(url)
            store = own.open("digits")
            while not stop.is_set():
                step = acknowledged.get(writer, 0)
                store.append([report_of(writer, 3.0 * step + k) for k in (1, 2, 3)])
                acknowledged[writer] = step + 1
            own.close()

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            before = sum(acknowledged.values())
            while len(acknowledged) < len(threads) or sum(acknowledged.values()) < before + 40:
                stop.wait(
                    0.01
                    # all of them are connected: a server that is away from the start is another matter
                )
            server.stop("immediate")
            stop.wait(0.1)
            server.start()
        before = sum(acknowledged.values())
        while sum(acknowledged.values()) < before + 20:
            stop.wait(0.01)
        stop.set()
        for thread in threads:
            thread.join()
        steps: dict[int, list[float]] = {}
        for event in storage.open("digits").read(1):
            assert isinstance(event, Reported)
            steps.setdefault(event.trial, []).append(event.step)
        assert {writer: len(found) for writer, found in steps.items()} == {
            w: 3 * n for w, n in acknowledged.items()
        }
        assert all(found == [float(k + 1) for k in range(len(found))] for found in steps.values())
        storage.close()


def test_a_server_that_stays_away_is_named(server: PrivateServer) -> None:
    gone = "postgresql://ann:secret@/postgres?host=/nowhere"
    storage = open_storage(gone)
    with pytest.raises(
        StorageError,
        match=r"postgresql://ann@/postgres cannot be reached: .*Check that the server runs",
    ) as caught:
        storage.names()
    assert "secret" not in str(caught.value)


def test_retries_end_after_the_timeout(shaky_url: str, network: Network) -> None:
    storage = PostgresStorage(shaky_url, "postgresql://shown", timeout=0.3)
    storage.create("digits", [first_event("digits")])
    network.calls = 0
    (network.folder / ".s.PGSQL.5432").unlink()
    with pytest.raises(StorageError, match="postgresql://shown cannot be reached"):
        storage.names()


def test_a_turn_survives_a_lost_line(shaky: Storage, network: Network) -> None:
    store = shaky.create("digits", [first_event("digits")])
    with store.turn(0):
        network.answers = 0
        assert store.append([report_of(0)], decision=0) == 2
    with store.turn(0):
        assert store.append([report_of(1)], decision=1) == 3


def test_length_is_where_the_batch_ended(url: str, storage: Storage) -> None:
    """Two stores take turns: each gets the end of its own batch."""
    one = storage.create("digits", [first_event("digits")])
    other = open_storage(url)
    two = other.open("digits")
    assert [
        one.append([report_of(0)]),
        two.append([report_of(1)] * 3),
        one.append([report_of(2)]),
    ] == [
        2,
        5,
        6,
    ]
    other.close()


@pytest.mark.parametrize("emptied", [False, True])
def test_without_tables_there_is_no_identity(url: str, storage: Storage, emptied: bool) -> None:
    if emptied:
        open_storage(url).create("digits", [first_event("digits")])
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("DELETE FROM scrimp_schema")
    with pytest.raises(StorageError, match="has no tables of scrimp; create the study first"):
        storage.identity()


def test_every_test_has_its_own_tables(storage: Storage) -> None:
    assert storage.names() == []
