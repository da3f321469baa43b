"""The memory storage keeps the contract, privately."""

import pytest

from scrimp.storage.memory import MemoryStorage
from scrimp.storage.store import Storage
from scrimp.testing.storages import StorageBattery, first_event


class TestMemoryStorage(StorageBattery):
    @pytest.fixture
    def storage(self) -> Storage:
        return MemoryStorage()


def test_each_is_private() -> None:
    one, other = MemoryStorage(), MemoryStorage()
    one.create("digits", [first_event("digits")])
    assert other.names() == [] and one.url == "memory://"
