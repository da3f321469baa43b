"""A storage of one prefix keeps the contract, and hides all other studies."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from scrimp.errors import StudyError
from scrimp.service.served_logs import ScopedStorage
from scrimp.storage.memory import MemoryStorage
from scrimp.storage.sqlite import SqliteStorage
from scrimp.storage.store import Storage
from scrimp.testing.storages import StorageBattery, first_event


class TestScopedStorage(StorageBattery):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[Storage]:
        inner = SqliteStorage(tmp_path / "s.db")
        yield ScopedStorage(inner, "")
        inner.close()


def test_other_studies_do_not_exist_in_it() -> None:
    inner = MemoryStorage()
    for name in ("team/a", "other"):
        inner.create(name, [first_event(name)])
    scoped = ScopedStorage(inner, "team/")
    assert scoped.names() == ["team/a"] and scoped.open("team/a").name == "team/a"
    for action in (scoped.open, scoped.delete, lambda name: scoped.create(name, [])):
        with pytest.raises(StudyError, match="no study 'other'") as caught:
            action("other")
        assert "did you mean" not in str(caught.value)
    assert inner.names() == ["team/a", "other"]
