"""Log and history in step, conflicts, and trials of vanished workers."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import scrimp
from scrimp.errors import Conflict, StorageError, StudyError, TurnLost
from scrimp.executors.clock import wall_clock
from scrimp.explain.replay import replay
from scrimp.methods.policy import Decision, Policy, Start
from scrimp.schedulers.scheduler import Wait
from scrimp.storage.leases import Lease
from scrimp.storage.memory import MemoryStorage, _MemoryStore
from scrimp.storage.store import EventStore, SharedTurn
from scrimp.study import ledger as ledger_module
from scrimp.study.ledger import MAX_LOST_WORKERS, Ledger, Logged
from scrimp.study_log.events import (
    Decided,
    Enqueued,
    Event,
    Reported,
    StudyCreated,
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
    problem = Problem(scrimp.Space(x=scrimp.Float(0, 1)))
    return MemoryStorage().create(
        "s",
        [StudyCreated(name="s", problem=problem.to_json(), method={"name": "x", "settings": {}})],
    )


def clock() -> float:
    return 5.0


def taken(ledger: Ledger) -> Trial:
    trial = ledger.take(Halves, "w")
    assert isinstance(trial, Trial)
    return trial


def test_two_ledgers_see_each_other(store: EventStore) -> None:
    first, second = Ledger(store, clock), Ledger(store, clock)
    assert taken(first).id == 0
    assert taken(second).id == 1
    assert second.history.length == 7 and first.history.length == 4
    assert first.refresh().length == 7
    assert [trial.config["x"] for trial in first.history.trials] == [1.0, 0.5]


def test_a_conflict_is_decided_anew(store: EventStore) -> None:
    first, second = Ledger(store, clock), Ledger(store, clock)

    class Slow(Policy):
        """Somebody else decides while it thinks, the first time."""

        def decide(self, history: History, rng: np.random.Generator) -> Decision:
            if len(history.trials) == 0:
                taken(second)
            return Halves().decide(history, rng)

    trial = first.take(Slow, "w")
    assert isinstance(trial, Trial) and trial.id == 1 and trial.config == {"x": 0.5}
    assert first.history.decisions == 2


def test_append_takes_in_what_came_between(store: EventStore) -> None:
    first, second = Ledger(store, clock), Ledger(store, clock)
    second.append([Enqueued(config={"x": 0.1})])
    history = first.append([Enqueued(config={"x": 0.2})])
    assert list(history.queue) == [{"x": 0.1}, {"x": 0.2}]


def test_reasons_for_having_no_trial_are_passed_on(store: EventStore) -> None:
    class Waiting(Policy):
        def decide(self, history: History, rng: np.random.Generator) -> Decision:
            return Decision(Wait("later"))

    assert Ledger(store, clock).take(Waiting, "w") == Wait("later")


def test_trials_of_vanished_workers_are_released_and_at_last_failed(store: EventStore) -> None:
    ledger = Ledger(store, clock)
    trial = taken(ledger)
    ledger.hold(trial, 60.0)
    ledger.reclaim()
    assert ledger.history.trials[0].status == "running"  # this process lives
    for attempt in range(1, MAX_LOST_WORKERS + 1):
        store.lease(Lease(0, attempt, "w", "elsewhere", 1, -1.0))
        ledger.reclaim()
        expected = "stale" if attempt < MAX_LOST_WORKERS else "failed"
        assert ledger.history.trials[0].status == expected
        if expected == "stale":
            assert taken(ledger).attempt == attempt + 1
    assert "vanished 3 times" in ledger.history.trials[0].message
    assert store.leases() == []


def test_a_trial_that_made_progress_is_taken_up_again_however_often_its_worker_vanishes(
    store: EventStore,
) -> None:
    ledger = Ledger(store, clock)
    taken(ledger)
    for attempt in range(1, 2 * MAX_LOST_WORKERS):
        ledger.append(
            [Reported(trial=0, step=attempt / 100, metrics={"value": 0.5}, attempt=attempt)]
        )
        store.lease(Lease(0, attempt, "w", "elsewhere", 1, -1.0))
        ledger.reclaim()
        assert ledger.history.trials[0].status == "stale"
        assert taken(ledger).attempt == attempt + 1


def test_a_trial_can_be_handed_back(store: EventStore) -> None:
    ledger = Ledger(store, clock)
    trial = taken(ledger)
    ledger.hold(trial, 60.0)
    ledger.give_up(trial, "interrupted")
    assert ledger.history.trials[0].status == "stale" and store.leases() == []


def test_news_of_a_lost_turn_are_forgotten(store: EventStore) -> None:
    """A server that crashes during a turn may take back what it showed: the next try begins with
    what is there."""

    class Crashing(_MemoryStore):
        crashing = True

        @contextmanager
        def turn(self, start: int, shared: object = None) -> Iterator[list[Event]]:
            yield [Enqueued(config={"x": 0.75})] if self.crashing else self.read(start)

        def append(self, events: Sequence[Event], decision: int | None = None) -> int:
            if self.crashing:
                self.crashing = False
                raise TurnLost("gone")
            return super().append(events, decision)

    ledger = Ledger(Crashing("s", store.read()), clock)
    trial = taken(ledger)
    assert trial.id == 0 and trial.config == {"x": 1.0} and not ledger.history.queue
    assert [type(event).__name__ for event in ledger.store.read(1)] == [
        "Decided",
        "TrialAdded",
        "BudgetGranted",
    ]
    noted = ledger.store.read(1)[0]
    assert isinstance(noted, Decided) and noted.seen == 1


def test_a_failing_policy_leaves_the_history_as_it_was(store: EventStore) -> None:
    class Failing(Policy):
        def decide(self, history: History, rng: np.random.Generator) -> Decision:
            raise KeyError("x")

    ledger = Ledger(store, clock)
    store.append([Enqueued(config={"x": 0.75})])
    with pytest.raises(StudyError, match="cannot be taken: 'x'"):
        ledger.take(Failing, "w")
    assert not ledger.history.queue and len(ledger.refresh().queue) == 1


@pytest.mark.parametrize("ahead", [-1e6, 0.0, 1e6])
def test_clocks_of_workers_do_not_matter(tmp_path: Path, ahead: float) -> None:
    """A worker whose clock is eleven days off holds its trial as long as any other, and loses it as
    soon."""
    url = f"sqlite:///{tmp_path}/s.db"
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage=url, seed=0
    )
    away, here = Ledger(study._ledger.store, lambda: wall_clock() + ahead), study._ledger
    trial = away.take(Halves, "elsewhere:1")
    assert isinstance(trial, Trial)
    here.store.lease(Lease(0, 1, "elsewhere:1", "elsewhere", 1, 60.0))
    here.reclaim()
    assert here.refresh().trials[0].status == "running"
    here.store.lease(Lease(0, 1, "elsewhere:1", "elsewhere", 1, -1.0))
    here.reclaim()
    assert here.refresh().trials[0].status == "stale"
    again = here.take(Halves, "here:1")
    assert isinstance(again, Trial) and (again.id, again.attempt) == (0, 2)
    away.append([Reported(trial=0, step=1.0, metrics={"value": 0.5}, attempt=1, time=away.clock())])
    assert here.refresh().trials[0].status == "running" and not here.history.trials[0].curve


SPACE = scrimp.Space(x=scrimp.Float(0.0, 1.0))


def test_the_log_says_name_method_and_what_others_appended() -> None:
    storage = MemoryStorage()
    study = scrimp.create_study("one", SPACE, method="random", storage=storage, seed=0)
    logged = Logged(Ledger(storage.open("one"), wall_clock))
    assert (logged.name, logged.method) == ("one", "random")
    study.ask()
    assert len(logged.history.trials) == 1


def test_studies_and_selections_are_logged() -> None:
    assert issubclass(scrimp.Study, Logged) and issubclass(scrimp.Selection, Logged)


@pytest.mark.parametrize("number", [2000, 10**15 - 1])
def test_a_planted_number_of_a_decision_stops_no_worker(tmp_path: Path, number: int) -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        method="random",
        storage=f"sqlite:///{tmp_path}/s.db",
        seed=0,
    )
    study._ledger.append([Decided(decision=number, seen=1)], number)
    study.optimize(lambda trial: trial.params["x"], n_trials=3, timeout=60)
    assert len(study.trials) == 3
    assert f"the number {number}; the next one is 0" in study.history.ignored[0][1]


def test_a_number_that_is_taken_without_its_decision_ends_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrimp.study.ledger.CONFLICT_PAUSE_SECONDS", 0.0)
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        method="random",
        storage=f"sqlite:///{tmp_path}/s.db",
        seed=0,
    )
    study._ledger.append([Enqueued(config={"x": 0.5})], 0)
    with pytest.raises(StorageError, match=r"decision 0 .* its log does not have it.*verify"):
        study.ask()


@pytest.mark.parametrize("storage", ["memory://", "sqlite:///{}/s.db", "journal:///{}/j"])
def test_threads_share_one_study(tmp_path: Path, storage: str) -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        method="gp:initial=4",
        storage=storage.format(tmp_path),
        seed=0,
    )

    def work(_: int) -> list[int]:
        told = []
        for _ in range(4):
            trial = study.ask()
            study.tell(trial, trial.params["x"])
            study.set_note("done", trial=trial)
            assert study.best_value >= 0.0 and len(study.trials) >= 1
            told.append(trial.id)
        return told

    with ThreadPoolExecutor(8) as pool:
        told = [number for numbers in pool.map(work, range(8)) for number in numbers]
    assert sorted(told) == list(range(32)) == [trial.id for trial in study.trials]
    assert all(outcome.same for outcome in replay(study.history.events))


def test_a_child_uses_the_study_though_a_thread_used_it_at_the_fork(tmp_path: Path) -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        method="random",
        storage=f"sqlite:///{tmp_path}/s.db",
        seed=0,
    )
    done, forked = threading.Event(), threading.Event()

    def write() -> None:
        while not done.is_set():
            study.set_user_attr("now", 1)
            while forked.is_set():  # SQLite would serve who writes without a pause
                done.wait(0.01)

    thread = threading.Thread(target=write)
    thread.start()
    codes = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # ends a child that waits for ever
            study.tell(study.ask(), 1.0)
            os._exit(0)
        forked.set()
        codes.append(os.waitpid(child, 0)[1])
        forked.clear()
    done.set()
    thread.join()
    assert codes == [0] * 3 and len(study.trials) == 3


@pytest.mark.parametrize("number", [-1, 1, 10**9])
def test_a_planted_lease_of_an_unknown_trial_takes_no_trial_away(
    store: EventStore, number: int
) -> None:
    ledger = Ledger(store, clock)
    ledger.hold(taken(ledger), 60.0)
    store.lease(Lease(number, 1, "w", "elsewhere", 1, -1.0))
    ledger.reclaim()
    assert ledger.history.trials[0].status == "running"


def test_the_lease_of_an_earlier_attempt_takes_the_trial_from_no_one(store: EventStore) -> None:
    """The next attempt was decided, and its worker has not taken its lease yet."""
    ledger = Ledger(store, clock)
    ledger.give_up(taken(ledger), "interrupted")
    assert taken(ledger).attempt == 2
    store.lease(Lease(0, 1, "w", "elsewhere", 1, -1.0))
    ledger.reclaim()
    assert ledger.history.trials[0].status == "running" and store.leases() == []


def test_a_lease_that_outlived_its_trial_is_released_without_an_event(store: EventStore) -> None:
    ledger = Ledger(store, clock)
    taken(ledger)
    ended = ledger.append([Reported(trial=0, step=1.0, metrics={"value": 0.5})])
    store.lease(Lease(0, 1, "w", "elsewhere", 1, -1.0))
    ledger.reclaim()
    assert ledger.refresh().events == ended.events and store.leases() == []


class Crowded(_MemoryStore):
    """A store with a turn in which two processes wait. Their decisions fail with ``trouble``."""

    trouble: Exception | None = None

    @contextmanager
    def turn(self, start: int, shared: SharedTurn | None = None) -> Iterator[list[Event]]:
        if shared is not None:
            shared.waiting = [self.answer, self.answer]
        yield self.read(start)

    def answer(self, events: Sequence[Event], start: int, decision: int) -> list[Event]:
        if self.trouble is not None:
            raise self.trouble
        return self.extend(events, start, decision)


@pytest.fixture
def crowded(store: EventStore, monkeypatch: pytest.MonkeyPatch) -> Crowded:
    # However busy the machine is.
    monkeypatch.setattr(ledger_module, "MAX_SECONDS_FOR_OTHERS", 600.0)
    return Crowded("s", store.read())


def asked(store: EventStore, deciding: Callable[[], Policy] = Halves) -> int:
    """The number of trials after one is asked for without a lease."""
    ledger = Ledger(store, clock)
    trial = ledger.take(deciding, "")
    assert isinstance(trial, Trial) and trial.id == 0 and trial.status == "running"
    assert ledger.history.length == len(store.read())
    return len(ledger.history.trials)


def test_a_process_decides_for_those_who_wait_as_they_would(crowded: Crowded) -> None:
    assert asked(crowded) == 3
    alone = Ledger(MemoryStorage().create("s", crowded.read()[:1]), clock)
    for _ in range(3):
        alone.take(Halves, "")
    assert crowded.read() == alone.store.read()


def test_a_loop_decides_for_itself_alone(crowded: Crowded) -> None:
    ledger = Ledger(crowded, clock)
    assert taken(ledger).worker == "w" and len(ledger.history.trials) == 1


@pytest.mark.parametrize("trouble", [Conflict("taken"), StudyError("no")])
def test_who_decides_for_others_leaves_trouble_to_them(
    crowded: Crowded, trouble: Exception
) -> None:
    crowded.trouble = trouble
    assert asked(crowded) == 1


def test_a_crash_after_the_own_decision_makes_it_void(crowded: Crowded) -> None:
    class Crashing(Crowded):
        crashed = False

        def answer(self, events: Sequence[Event], start: int, decision: int) -> list[Event]:
            if self.crashed:
                return super().answer(events, start, decision)
            self.crashed = True
            self._events[1:] = []
            self._decisions.clear()
            raise TurnLost("gone")

    assert asked(Crashing("s", crowded.read())) == 3


def test_decisions_that_take_long_are_left_to_others(
    crowded: Crowded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "MAX_SECONDS_FOR_OTHERS", 0.0)
    assert asked(crowded) == 1


def test_queued_configurations_are_left_to_others(crowded: Crowded) -> None:
    crowded.append([Enqueued(config={"x": 0.25}), Enqueued(config={"x": 0.75})])
    assert asked(crowded) == 1


def test_the_end_of_a_study_is_left_to_others(crowded: Crowded) -> None:
    class Few(Halves):
        def decide(self, history: History, rng: np.random.Generator) -> Decision:
            return super().decide(history, rng) if not history.trials else Decision(Wait("later"))

    assert asked(crowded, Few) == 1


def test_a_decision_that_another_process_took_is_found(store: EventStore) -> None:
    class Answered(_MemoryStore):
        @contextmanager
        def turn(self, start: int, shared: SharedTurn | None = None) -> Iterator[list[Event]]:
            assert shared is not None
            for _ in range(2):
                other.take(Halves, "")
            shared.place, shared.batch = start + 3, self.read(start + 3)
            yield []

    answered = Answered("s", store.read())
    other = Ledger(MemoryStorage().create("s", store.read()), clock)
    other.store = _MemoryStore("s", answered._events)
    ledger = Ledger(answered, clock)
    trial = ledger.take(Halves, "")
    assert isinstance(trial, Trial) and trial.id == 1 and len(answered.read()) == 7
    assert (ledger.history.length, ledger.known(1), ledger.refresh().trials[1]) == (1, trial, trial)


def test_a_log_that_loses_what_is_appended_is_damaged(store: EventStore) -> None:
    class Forgetful(_MemoryStore):
        def extend(
            self, events: Sequence[Event], start: int, decision: int | None = None
        ) -> list[Event]:
            return []

    with pytest.raises(StorageError, match="does not have what was appended"):
        Ledger(Forgetful("s", store.read()), clock).take(Halves, "w")
