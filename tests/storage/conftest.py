"""A SQLite file of each test's own, and one private PostgreSQL server, for the tests of storage."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrimp.storage.sqlite import SqliteStorage
from scrimp.study_log.events import Event
from scrimp.testing.storages import first_event, report_of
from tests.tools.postgres_server import PrivateServer, available


@pytest.fixture(scope="session")
def server() -> Iterator[PrivateServer]:
    if not available():
        pytest.skip("no PostgreSQL server is installed here (initdb, pg_ctl)")
    with PrivateServer() as server:
        yield server


@pytest.fixture
def url(server: PrivateServer) -> str:
    """An empty schema of that server."""
    return server.url("t" + uuid.uuid4().hex)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scrimp.db"


@pytest.fixture
def storage(path: Path) -> Iterator[SqliteStorage]:
    storage = SqliteStorage(path, timeout=0.2)
    yield storage
    storage.close()


def fill(storage: SqliteStorage, count: int = 500) -> list[Event]:
    """Store a study of so many reports, and close."""
    events: list[Event] = [first_event("digits"), *(report_of(number) for number in range(count))]
    storage.create("digits", events)
    storage.close()
    return events
