"""Trials that a process was given alone, by itself or by another process that decided for it."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
import pytest

import scrimp
from scrimp.errors import StorageError
from scrimp.json_values import Config
from scrimp.methods.policy import Decision, Policy, Start
from scrimp.storage.memory import MemoryStorage, _MemoryStore
from scrimp.storage.store import EventStore, SharedTurn
from scrimp.study.ledger import Ledger
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Ended,
    Enqueued,
    Event,
    Lost,
    Reported,
    Retried,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Trial


class Halves(Policy):
    """Starts x = 1 / (number of trials + 1)."""

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        return Decision(Start({"x": 1.0 / (len(history.trials) + 1)}, 1.0))


@pytest.fixture
def store() -> EventStore:
    problem = Problem(scrimp.Space(x=scrimp.Float(0, 1))).to_json()
    return MemoryStorage().create("s", [StudyCreated(name="s", problem=problem, method={})])


def clock() -> float:
    return 5.0


class Planted(_MemoryStore):
    """A store with ``batch`` appended for whoever asks first, as by another process."""

    batch: Sequence[Event] = ()

    @contextmanager
    def turn(self, start: int, shared: SharedTurn | None = None) -> Iterator[list[Event]]:
        assert shared is not None
        if self.batch:
            shared.place, shared.batch = len(self._events), self.batch
            self._events += self.batch
            self.batch = ()
            yield []
        else:
            yield self.read(start)

    def extend_own(self, events: Sequence[Event], start: int) -> list[Event] | None:
        self.extend(events, start)
        return None


def decided(config: Config, worker: str = "") -> list[Event]:
    """A decision that starts trial 0."""
    return [
        Decided(decision=0, seen=1),
        TrialAdded(trial=0, config=config),
        BudgetGranted(trial=0, budget=1.0, worker=worker),
    ]


def test_a_planted_answer_that_does_not_fit_the_space_is_not_run(store: EventStore) -> None:
    planted = Planted("s", store.read())
    planted.batch = decided({"x": "7; rm -rf /"})
    trial = Ledger(planted, clock).take(Halves, "")
    assert isinstance(trial, Trial) and trial.id == 1 and trial.config == {"x": 0.5}
    first = History.of(planted.read()).trials[0]
    assert first.status == "failed" and "does not fit the space" in first.message


def test_a_configuration_of_a_space_that_has_grown_is_run(store: EventStore) -> None:
    """The process that answered knew the larger space."""
    planted = Planted("s", store.read())
    grown = Problem(scrimp.Space(x=scrimp.Float(0, 9))).to_json()
    ledger = Ledger(planted, clock)
    planted.append([StudyChanged(problem=grown)])
    planted.batch = decided({"x": 7.0})
    trial = ledger.take(Halves, "")
    assert isinstance(trial, Trial) and trial.config == {"x": 7.0}


def test_a_report_on_a_trial_of_this_process_is_known_without_reading(store: EventStore) -> None:
    planted = Planted("s", store.read())
    planted.batch = decided({"x": 0.5})
    ledger = Ledger(planted, clock)
    taken = ledger.take(Halves, "")
    assert isinstance(taken, Trial) and ledger.history.length == 1
    told = ledger.report(taken, [Reported(trial=0, step=1.0, metrics={"value": 0.5}, time=3.0)])
    assert (told.status, told.value, told.ended) == ("completed", 0.5, 3.0)
    assert ledger.history.length == 1 and ledger.known(0) == told
    assert ledger.known(1) is None and ledger.refresh().trials == [told]


def test_a_trial_that_is_tried_again_is_known_without_reading(store: EventStore) -> None:
    planted = Planted("s", store.read())
    planted.append([*decided({"x": 0.5}), Ended(trial=0, status="failed"), Retried(trial=0)])
    ledger = Ledger(planted, clock)
    again = ledger.take(Halves, "")
    assert isinstance(again, Trial) and (again.id, again.attempt) == (0, 2)
    length = ledger.history.length
    report = Reported(trial=0, step=1.0, metrics={"value": 0.5}, attempt=2)
    assert ledger.report(again, [report]).value == 0.5
    assert ledger.history.length == length < len(planted.read())


def test_what_another_process_was_given_is_read(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child has a copy of its parent's ledger."""
    planted = Planted("s", store.read())
    planted.batch = decided({"x": 0.5})
    ledger = Ledger(planted, clock)
    taken = ledger.take(Halves, "")
    assert isinstance(taken, Trial)
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    report = Reported(trial=0, step=1.0, metrics={"value": 0.5})
    assert ledger.report(taken, [report]).value == 0.5
    assert ledger.history.length == len(planted.read())


def test_a_process_that_had_to_read_first_decides_in_its_next_turn(store: EventStore) -> None:
    class Behind(_MemoryStore):
        begins: ClassVar[list[tuple[int, bool]]] = []

        @contextmanager
        def turn(self, start: int, shared: SharedTurn | None = None) -> Iterator[list[Event]]:
            assert shared is not None
            self.begins.append((start, shared.behind))
            shared.behind = not shared.behind
            yield self.read(start)

    behind = Behind("s", store.read())
    ledger = Ledger(behind, clock)
    behind.append([Enqueued(config={"x": 0.25})])
    trial = ledger.take(Halves, "")
    assert isinstance(trial, Trial) and trial.config == {"x": 0.25}
    assert behind.begins == [(1, False), (2, True)]


@pytest.mark.parametrize(
    "batch",
    [
        decided({"x": 0.5}, worker="another"),
        [*decided({"x": 0.5})[:2], Lost(trial=0)],
        [*decided({"x": 0.5})[:2], BudgetGranted(trial=1, budget=1.0)],
        [*decided({"x": 0.5})[:2], BudgetGranted(trial=0, budget=1.0, attempt=2)],
    ],
)
def test_a_planted_answer_without_a_trial_for_this_process_is_refused(
    store: EventStore, batch: list[Event]
) -> None:
    planted = Planted("s", store.read())
    planted.batch = batch
    with pytest.raises(StorageError, match="event 1 of study 's' does not begin the decision"):
        Ledger(planted, clock).take(Halves, "")


def test_a_configuration_that_does_not_fit_is_passed_over_once(store: EventStore) -> None:
    """The next try asks under another key, or it would find the same decision again."""

    class Keyed(_MemoryStore):
        keys: ClassVar[list[object]] = []

        @contextmanager
        def turn(self, start: int, shared: SharedTurn | None = None) -> Iterator[list[Event]]:
            assert shared is not None
            self.keys.append(shared.key)
            yield self.read(start)

    keyed = Keyed("s", store.read())
    keyed.append(
        [
            TrialAdded(trial=0, config={"x": 7.0}),
            BudgetGranted(trial=0, budget=1.0),
            Lost(trial=0),
        ]
    )
    trial = Ledger(keyed, clock).take(Halves, "")
    assert isinstance(trial, Trial) and trial.id == 1
    assert len(set(keyed.keys)) == 2
