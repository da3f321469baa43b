"""The SQLite storage keeps the contract, across threads and processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from scrimp.storage.sqlite import SqliteStorage
from scrimp.storage.store import Storage
from scrimp.testing.durable_storages import DurableStorageBattery


class TestSqliteStorage(DurableStorageBattery):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[Storage]:
        storage = SqliteStorage(tmp_path / "with space & ü?#%.db")
        yield storage
        storage.close()
