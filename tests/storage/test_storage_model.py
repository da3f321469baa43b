"""Every storage against the model of one: any order of calls, several handles, deleted and reopened
studies."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from scrimp.storage.journal import JournalStorage
from scrimp.storage.memory import MemoryStorage
from scrimp.storage.open import open_storage
from scrimp.storage.sqlite import SqliteStorage
from scrimp.storage.store import Storage
from scrimp.testing.postgres_server import PrivateServer
from scrimp.testing.storage_model import storage_machine


def check(open_one: Callable[[], Storage], examples: int, durable: bool = True) -> None:
    machine = storage_machine(open_one, durable=durable, examples=examples)
    run_state_machine_as_test(machine, settings=machine.TestCase.settings)


def test_memory() -> None:
    check(MemoryStorage, 100, durable=False)


def test_sqlite(tmp_path: Path) -> None:
    check(lambda: SqliteStorage(tmp_path / "x.db"), 25)


def test_journal(tmp_path: Path) -> None:
    check(lambda: JournalStorage(tempfile.mkdtemp(dir=tmp_path)), 25)


def test_postgres(server: PrivateServer) -> None:
    url = server.url("model")
    check(lambda: open_storage(url), 25)


def test_the_model_finds_a_storage_that_forgets_decisions() -> None:
    class Forgetful(MemoryStorage):
        def names(self) -> list[str]:
            for store in self._studies.values():
                store._decisions.clear()
            return super().names()

    machine = storage_machine(Forgetful, durable=False, examples=300)
    quick = settings(
        machine.TestCase.settings, phases=[Phase.generate]
    )  # found is enough: no need for the smallest
    with pytest.raises(AssertionError, match="Conflict was due"):
        run_state_machine_as_test(machine, settings=quick)
