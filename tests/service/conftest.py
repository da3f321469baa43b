"""A server of studies over a SQLite file of each test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.served import Served, served


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(f"sqlite:///{tmp_path}/served.db", tmp_path) as server:
        yield server
