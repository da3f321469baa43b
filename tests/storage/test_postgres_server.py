"""The PostgreSQL connection: schema steps, rights, and words that never hold a secret."""

import os
import pickle
import uuid
from collections.abc import Iterator

import psycopg
import pytest

from scrimp.errors import StorageError
from scrimp.storage.open import open_storage, without_secrets
from scrimp.storage.postgres_schema import STEPS
from scrimp.storage.postgres_server import PostgresServer
from scrimp.testing.postgres_server import PrivateServer
from scrimp.testing.storages import first_event, report_of


@pytest.fixture
def url(server: PrivateServer) -> str:
    return server.url("t" + uuid.uuid4().hex)


@pytest.fixture
def database(url: str) -> Iterator[PostgresServer]:
    database = PostgresServer(url, without_secrets(url), patience=0.2)
    yield database
    database.close()


def asked(database: PostgresServer, query: str) -> object:
    return database.run(
        lambda connection: connection.execute(query.encode()).fetchall(), create=True
    )


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
        *STEPS,
        "CREATE TABLE extra AS SELECT max(position) AS x FROM scrimp_events",
        "DROP TABLE scrimp_leases",
    )
    upgraded = PostgresServer(url, "shown", steps=later)
    assert asked(upgraded, "SELECT x FROM extra") == [(1,)]
    assert asked(upgraded, "SELECT max(version) FROM scrimp_schema") == [(len(STEPS) + 2,)]
    assert asked(upgraded, "SELECT to_regclass('scrimp_leases')") == [(None,)]
    upgraded.close()
    again = PostgresServer(url, "shown", steps=later)
    assert asked(again, "SELECT count(*) FROM scrimp_schema") == [
        (len(STEPS) + 2,)
    ]  # each step ran once
    again.close()
    storage.close()
    older = open_storage(url)
    with pytest.raises(
        StorageError,
        match=f"schema version {len(STEPS) + 2}, this scrimp knows {len(STEPS)}; upgrade",
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
            *STEPS,
            "CREATE TABLE extra (x int)",
            "DELETE FROM scrimp_events; SELECT * FROM missing",
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
    assert copy.shown == database.shown and copy._patience == 0.2
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
