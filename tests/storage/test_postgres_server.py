"""The PostgreSQL connection: schema steps, rights, and words that never hold a secret."""

import os
import pickle
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from scrimp.errors import StorageError, Unreachable
from scrimp.storage import postgres_server
from scrimp.storage.open import open_storage, without_secrets
from scrimp.storage.postgres import PostgresStorage
from scrimp.storage.postgres_schema import SCHEMA_STEPS
from scrimp.storage.postgres_server import PostgresServer, Watch
from scrimp.testing.storages import first_event, report_of
from tests.tools.postgres_server import PrivateServer, available


@pytest.fixture
def database(url: str) -> Iterator[PostgresServer]:
    database = PostgresServer(url, without_secrets(url), timeout=0.2)
    yield database
    database.close()


def asked(database: PostgresServer, query: str) -> object:
    return database.run(lambda connection: connection.ask(query), create=True)


def test_nothing_is_created_by_looking(url: str, database: PostgresServer) -> None:
    storage = open_storage(url)
    assert storage.names() == []
    count = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema"
    with psycopg.connect(url) as connection:
        assert connection.execute(count).fetchone() == (0,)
    other = open_storage(url)
    other.create("x", [first_event("x")])
    assert storage.names() == ["x"]  # the tables came after the connection
    storage.close()
    other.close()


def test_an_older_schema_is_upgraded_in_place(url: str, database: PostgresServer) -> None:
    storage = open_storage(url)
    storage.create("digits", [first_event("digits")]).append([report_of(0)])
    later = (
        *SCHEMA_STEPS,
        lambda schema: (
            f"CREATE TABLE {schema}extra AS SELECT max(position) AS x FROM {schema}scrimp_events"
        ),
        lambda schema: f"DROP TABLE {schema}scrimp_leases",
    )
    upgraded = PostgresServer(url, "shown", steps=later)
    assert asked(upgraded, "SELECT x FROM {schema}extra") == [(1,)]
    assert asked(upgraded, "SELECT max(version) FROM {schema}scrimp_schema") == [
        (len(SCHEMA_STEPS) + 2,)
    ]
    assert asked(upgraded, "SELECT to_regclass('{schema}scrimp_leases')") == [(None,)]
    upgraded.close()
    again = PostgresServer(url, "shown", steps=later)
    assert asked(again, "SELECT count(*) FROM {schema}scrimp_schema") == [
        (len(SCHEMA_STEPS) + 2,)
    ]  # each step ran once
    again.close()
    storage.close()
    older = open_storage(url)
    with pytest.raises(
        StorageError,
        match=f"schema version {len(SCHEMA_STEPS) + 2}, this scrimp knows {len(SCHEMA_STEPS)}; upgrade",
    ):
        older.names()
    with pytest.raises(StorageError, match="upgrade scrimp"):
        older.names()
    older.close()


def test_a_failing_upgrade_changes_nothing(url: str) -> None:
    storage = open_storage(url)
    storage.create("digits", [first_event("digits"), report_of(0)])
    broken = PostgresServer(
        url,
        "shown",
        steps=(
            *SCHEMA_STEPS,
            lambda schema: f"CREATE TABLE {schema}extra (x int)",
            lambda schema: f"DELETE FROM {schema}scrimp_events; SELECT * FROM {schema}missing",
        ),
    )
    with pytest.raises(StorageError):
        asked(broken, "SELECT 1")
    broken.close()
    assert len(storage.open("digits").read()) == 2
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT to_regclass('extra')").fetchone() == (None,)
    storage.close()


def test_tables_that_vanish_are_named(url: str) -> None:
    storage = open_storage(url)
    store = storage.create("digits", [first_event("digits")])
    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE scrimp_events, scrimp_leases, scrimp_studies, scrimp_schema")
    with pytest.raises(StorageError, match="the tables of scrimp are gone"):
        store.read()
    storage.close()


def test_a_user_without_rights(server: PrivateServer, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN")
    storage = open_storage(url.replace("postgres@", "guest@"))
    assert storage.names() == []
    with pytest.raises(StorageError, match=r"cannot be used|may not be used by this user"):
        storage.create("x", [first_event("x")])
    storage.close()


def test_a_read_only_server(url: str) -> None:
    storage = open_storage(url)
    store = storage.create("digits", [first_event("digits")])
    closed = open_storage(
        url.replace("options=", "options=-cdefault_transaction_read_only%3Don%20")
    )
    assert closed.open("digits").read() == store.read()
    with pytest.raises(StorageError, match="read-only server"):
        closed.open("digits").append([report_of(0)])
    closed.close()
    storage.close()


def test_a_missing_database(url: str) -> None:
    storage = open_storage(url.replace("/postgres?", "/missing?"))
    with pytest.raises(
        StorageError, match=r'cannot be reached: .*database "missing" does not exist'
    ):
        storage.names()


def test_a_terminated_backend_is_replaced(url: str) -> None:
    storage = open_storage(url)
    store = storage.create("digits", [first_event("digits")])
    with psycopg.connect(url, autocommit=True) as connection:
        for number in range(5):
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ="
                " 'scrimp'"
            )
            assert store.append([report_of(number)]) == 2 + number
    assert len(store.read()) == 6
    storage.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hunter@2@db/hpo",
        "postgresql://ann:hunter/2@db/hpo",
        "postgresql://ann:hunter 2@db/hpo",
        "postgresql://ann:hunter?2@db/hpo",
        "postgresql://ann:hunter%zz@db/hpo",
        "postgresql://db/hpo?unheard=hunter",
        "postgresql://db:99999999/hpo?password=hunter",
        "postgresql://ann:hunter@localhost:1/hpo?connect_timeout=2",
    ],
)
def test_no_secret_is_shown(url: str) -> None:
    with pytest.raises(StorageError) as caught:
        open_storage(url).names()
    error = caught.value
    assert "hunter" not in str(error)
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)


def test_no_connection_crosses_a_fork(database: PostgresServer) -> None:
    asked(database, "SELECT 1")
    child = os.fork()
    if child == 0:  # leaves without running anything of the test framework
        good = database._connection is None and asked(database, "SELECT 1") == [(1,)]
        database.close()
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert asked(database, "SELECT 2") == [(2,)]


def test_pickling(database: PostgresServer) -> None:
    copy = pickle.loads(pickle.dumps(database))
    assert copy.shown == database.shown and copy._timeout == 0.2
    assert asked(copy, "SELECT 3") == [(3,)]
    copy.close()


def test_options_of_the_url_win(server: PrivateServer) -> None:
    options = PostgresServer(
        "postgresql://db/hpo?connect_timeout=3&application_name=mine", "shown"
    )._options
    assert (
        options["connect_timeout"],
        options["application_name"],
        options["keepalives_idle"],
    ) == ("3", "mine", "30")


class Line:
    """A connection as far as a watch knows one."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()

    def fileno(self) -> int:
        return self.ours.fileno()

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


def test_a_silent_call_ends_and_an_answered_one_goes_on() -> None:
    line = Line()
    watch = Watch(max_seconds=0.2, period=0.02)
    for _ in range(5):
        with watch.over(line):  # type: ignore[arg-type]
            line.theirs.send(b"answer")
            assert line.ours.recv(10) == b"answer"
    threading.Event().wait(
        0.5
    )  # longer than the longest answer: nothing is out, so nothing is shut
    line.theirs.send(b"still open")
    assert line.ours.recv(10) == b"still open"
    with watch.over(line):  # type: ignore[arg-type]
        assert line.ours.recv(10) == b""  # shut by the watch; without it this waits for ever
    line.close()


def test_a_call_is_given_up_sooner_once_asked_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_server, "MAX_ANSWER_SECONDS_AT_END", 0.1)
    line, asked = Line(), threading.Event()
    watch = Watch(max_seconds=60.0, period=0.02)
    watch.hurried = asked.is_set
    line.ours.settimeout(0.5)
    with watch.over(line), pytest.raises(TimeoutError):  # type: ignore[arg-type]
        line.ours.recv(10)
    asked.set()
    line.ours.settimeout(10.0)
    with watch.over(line):  # type: ignore[arg-type]
        assert line.ours.recv(10) == b""
    line.close()


def test_the_watch_survives_a_fork() -> None:
    line = Line()
    watch = Watch(max_seconds=0.2, period=0.02)
    with watch.over(line):  # type: ignore[arg-type]
        pass
    child = os.fork()
    if child == 0:
        with watch.over(line):  # type: ignore[arg-type]
            os._exit(0 if line.ours.recv(10) == b"" else 1)
    assert os.waitpid(child, 0)[1] == 0
    line.close()


@pytest.mark.skipif(
    not available(), reason="no PostgreSQL server is installed here (initdb, pg_ctl)"
)
def test_a_frozen_server_is_left_once_asked_to_end() -> None:
    with PrivateServer() as server:
        url = server.url("frozen")
        storage = PostgresStorage(url, without_secrets(url))
        store = storage.create("digits", [first_event("digits")])
        storage._server._watch._look = 0.05
        store.hurry_once(lambda: True)
        post = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = subprocess.run(
            ["pgrep", "-P", str(post)], capture_output=True, text=True
        ).stdout.split()
        everybody = [post, *map(int, children)]
        for process in everybody:
            os.kill(process, signal.SIGSTOP)
        try:
            began = time.monotonic()
            with pytest.raises(Unreachable):
                store.read()
            assert (
                time.monotonic() - began < 55
            )  # far less than the minute of retries; generous for a busy machine
        finally:
            for process in everybody:
                os.kill(process, signal.SIGCONT)
        assert store.read() == [first_event("digits")]
        storage.close()


@pytest.mark.skipif(
    not available(), reason="no PostgreSQL server is installed here (initdb, pg_ctl)"
)
def test_a_statement_timeout_while_waiting_for_a_turn_means_no_turn() -> None:
    with PrivateServer() as server:
        url = server.url("limits")
        limited = url.replace("options=", "options=-cstatement_timeout%3D300%20")
        storage = PostgresStorage(limited, without_secrets(url))
        store = storage.create("digits", [first_event("digits")])
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("SELECT pg_advisory_lock(%s, %s)", (0x7363726D, 1))
            with store.turn(0) as news:
                assert news == [first_event("digits")]
        storage.close()
