"""Every storage against the model of one: any order of calls, several handles, deleted and reopened
studies."""

import contextlib
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from scrimp.errors import Conflict, StudyError
from scrimp.storage.journal import JournalStorage
from scrimp.storage.leases import Lease
from scrimp.storage.memory import MemoryStorage
from scrimp.storage.open import open_storage
from scrimp.storage.sqlite import SqliteStorage
from scrimp.storage.store import EventStore, Storage
from scrimp.study_log.events import Event
from scrimp.testing.storages import first_event, report_of
from tests.tools.postgres_server import PrivateServer


@dataclass
class _Study:
    """What a study should hold."""

    log: list[Event]
    decisions: set[int] = field(default_factory=set)
    leases: dict[int, tuple[int, str, bool]] = field(default_factory=dict)
    deleted: bool = False


Handle = tuple[EventStore, _Study]

NAMES = st.sampled_from(["a", "c d"])
DECISIONS = st.sampled_from([None, 0, 0, 1, 2])
TRIALS = st.integers(0, 2)
ATTEMPTS = st.integers(1, 3)


class _StorageMachine(RuleBasedStateMachine):
    open_storage: Callable[[], Storage]
    durable: bool
    handles = Bundle("handles")

    def __init__(self) -> None:
        super().__init__()
        self.studies: dict[str, _Study] = {}
        self.counter = 0

    @initialize()
    def begin(self) -> None:
        self.storage = type(self).open_storage()
        for name in self.storage.names():
            self.storage.delete(name)

    def teardown(self) -> None:
        if "storage" in vars(self):
            self.storage.close()

    @rule(target=handles, name=NAMES)
    def create(self, name: str) -> Any:
        if name in self.studies:
            _refuse(StudyError, lambda: self.storage.create(name, [first_event(name)]))
            return multiple()
        self.studies[name] = _Study([first_event(name)])
        return self.storage.create(name, [first_event(name)]), self.studies[name]

    @rule(target=handles, name=NAMES)
    def open(self, name: str) -> Any:
        if name in self.studies:
            return self.storage.open(name), self.studies[name]
        _refuse(StudyError, lambda: self.storage.open(name))
        return multiple()

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if name in self.studies:
            self.storage.delete(name)
            self.studies.pop(name).deleted = True

    @rule()
    def reopen(self) -> None:
        if self.durable:
            again = pickle.loads(pickle.dumps(self.storage))
            self.storage.close()
            self.storage = again

    @rule(handle=handles, count=st.sampled_from([1, 2, 3, 0]), decision=DECISIONS)
    def append(self, handle: Handle, count: int, decision: int | None) -> None:
        store, study = handle
        events: list[Event] = [report_of(self.counter, step + 1.0) for step in range(count)]
        self.counter += 1
        if not events:
            decision = None
        if study.deleted:
            _refuse(StudyError, lambda: store.append(events))
        elif decision in study.decisions:
            _refuse(Conflict, lambda: store.append(events, decision))
        else:
            study.log += events
            if decision is not None:
                study.decisions.add(decision)
            assert store.append(events, decision) == len(study.log)

    @rule(handle=handles, start=st.integers(0, 8))
    def read(self, handle: Handle, start: int) -> None:
        store, study = handle
        if study.deleted:
            _refuse(StudyError, lambda: store.read(start))
        else:
            assert store.read(start) == study.log[start:]

    @rule(handle=handles, trial=TRIALS, attempt=ATTEMPTS, expired=st.booleans())
    def lease(self, handle: Handle, trial: int, attempt: int, expired: bool) -> None:
        store, study = handle
        self.counter += 1
        lease = Lease(
            trial, attempt, f"w{self.counter}", "host", 7, -1000.0 if expired else 1000.0, started=3
        )
        if study.deleted:
            _refuse(StudyError, lambda: store.lease(lease))
        else:
            store.lease(lease)
            if study.leases.get(trial, (0,))[0] <= attempt:
                study.leases[trial] = (attempt, lease.worker, expired)

    @rule(handle=handles, trial=TRIALS, attempt=ATTEMPTS)
    def release(self, handle: Handle, trial: int, attempt: int) -> None:
        store, study = handle
        store.release(trial, attempt)
        if study.leases.get(trial, (0,))[0] == attempt:
            del study.leases[trial]

    @rule(handle=handles)
    def leases(self, handle: Handle) -> None:
        store, study = handle
        if study.deleted:
            _refuse(StudyError, store.leases)
        else:
            found = {
                lease.trial: (lease.attempt, lease.worker, lease.remaining < 0)
                for lease in store.leases()
            }
            assert found == study.leases and list(found) == sorted(found)

    @invariant()
    def names_are_right(self) -> None:
        if "storage" in vars(self):
            assert self.storage.names() == list(self.studies)


def _refuse(kind: type[Exception], use: Callable[[], object]) -> None:
    with contextlib.suppress(kind):
        use()
        raise AssertionError(f"{kind.__name__} was due")


def storage_machine(
    open_storage: Callable[[], Storage], *, durable: bool = True, examples: int = 30
) -> type[RuleBasedStateMachine]:
    """The machine for a storage; every run begins by emptying it. ``durable`` ones are also pickled
    and reopened."""

    class Machine(_StorageMachine):
        pass

    Machine.open_storage = staticmethod(open_storage)
    Machine.durable = durable
    Machine.TestCase.settings = settings(
        max_examples=examples, stateful_step_count=25, deadline=None, database=None
    )
    return Machine


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
