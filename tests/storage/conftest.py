"""One private PostgreSQL server for the tests of storage."""

from collections.abc import Iterator

import pytest

from scrimp.testing.postgres_server import PrivateServer, available


@pytest.fixture(scope="session")
def server() -> Iterator[PrivateServer]:
    if not available():
        pytest.skip("no PostgreSQL server is installed here (initdb, pg_ctl)")
    with PrivateServer() as server:
        yield server
