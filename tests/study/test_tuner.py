"""The loop with a policy and an executor made for the purpose."""

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.display.study_words import spent_words
from scrimp.executors.clock import Clock
from scrimp.executors.executor import Assignment, Deliver, Executor
from scrimp.methods.policy import Decision, Policy, Start
from scrimp.schedulers.scheduler import Finish, Resume, Verdict, Wait
from scrimp.storage.memory import MemoryStorage
from scrimp.study.checkpoint_cleanup import checkpoint_folder
from scrimp.study.ledger import Ledger
from scrimp.study.stopping import MaxTrials
from scrimp.study.tuner import Heartbeat, Tuner, TunerSettings
from scrimp.study_log.events import BudgetGranted, Event, Reported, StudyCreated, TrialAdded
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from scrimp.study_log.record import StudyRecord

PROBLEM = Problem(scrimp.Space(x=scrimp.Float(0, 1)), budget=Budget("epoch", 1, 4))


class Scripted(Policy):
    """Starts three trials with one epoch each, then takes the first to the end; stops the third at
    its first report."""

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        if len(history.trials) < 3:
            return Decision(Start({"x": 0.1 * len(history.trials)}, 2.0))
        first = history.trials[0]
        if first.status == "paused":
            return Decision(Resume(0, 4.0))
        return Decision(Finish() if first.status == "completed" else Wait())

    def review(self, history: History, trial: int) -> Verdict:
        return Verdict.STOP if trial == 2 else Verdict.CONTINUE


class Stepwise(Executor):
    """Two slots; every ``wait`` lets each running trial do one epoch."""

    def __init__(self) -> None:
        self.time = 0.0
        self.running: dict[int, tuple[Assignment, float]] = {}
        self.assignments: list[Assignment] = []
        self.closed = 0

    slots = 2  # type: ignore[assignment]

    @property
    def busy(self) -> int:
        return len(self.running)

    @property
    def clock(self) -> Clock:
        return lambda: self.time

    def start(self, assignment: Assignment) -> None:
        self.assignments.append(assignment)
        self.running[assignment.trial] = (assignment, assignment.begin)

    def stop(self, trial: int) -> None:
        self.running.pop(trial, None)

    def wait(self, deliver: Deliver) -> None:
        self.time += 1.0
        for number, (assignment, done) in list(self.running.items()):
            self.running[number] = (assignment, done + 1)
            metrics: dict[str, float | None] = {"value": 1.0 / (done + 1)}
            report = Reported(
                trial=number,
                step=done + 1,
                metrics=metrics,
                attempt=assignment.attempt,
                time=self.time,
            )
            deliver([report])
            if done + 1 >= assignment.end:
                self.running.pop(number, None)

    def close(self) -> None:
        self.closed += 1


def ledger() -> Ledger:
    created = StudyCreated(
        name="s", problem=PROBLEM.to_json(), method={"name": "x", "settings": {}}
    )
    return Ledger(MemoryStorage().create("s", [created]), lambda: 0.0)


def run(
    settings: TunerSettings | None = None, policy: Policy | None = None
) -> tuple[History, Stepwise]:
    executor, book = Stepwise(), ledger()
    Tuner(book, policy or Scripted(), executor, settings or TunerSettings()).run()
    return book.history, executor


def test_trials_are_started_paused_resumed_stopped_and_completed() -> None:
    history, executor = run()
    assert [trial.status for trial in history.trials] == ["completed", "paused", "stopped"]
    assert [(a.trial, a.attempt, a.begin, a.end) for a in executor.assignments] == [
        (0, 1, 0.0, 2.0),
        (1, 1, 0.0, 2.0),
        (2, 1, 0.0, 2.0),
        (0, 2, 2.0, 4.0),
    ]
    assert [point.step for point in history.trials[0].curve] == [1, 2, 3, 4]
    assert len(history.trials[2].curve) == 1 and "scheduler at 1" in history.trials[2].message
    assert executor.closed == 1


def test_stop_rules_end_the_loop_but_let_running_trials_finish() -> None:
    history, executor = run(TunerSettings(stop=MaxTrials(1)))
    assert history.counts["running"] == 0 and executor.busy == 0


def test_observers_and_callbacks_see_what_happened(tmp_path: Path) -> None:
    lengths: list[int] = []
    finished: list[int] = []
    settings = TunerSettings(
        observe=lambda history: lengths.append(history.length),
        finished=lambda trial: finished.append(trial.id),
        checkpoints=lambda: tmp_path,
    )
    _, executor = run(settings)
    assert lengths == sorted(lengths) and finished == [2, 0]
    assert (
        executor.assignments[1].checkpoint_dir
        == checkpoint_folder(tmp_path, 1)
        == tmp_path / "trial-000001"
    )


def test_what_was_running_is_handed_back_when_something_breaks() -> None:
    class Breaking(Stepwise):
        def wait(self, deliver: Deliver) -> None:
            raise KeyboardInterrupt

    executor, book = Breaking(), ledger()
    with contextlib.suppress(KeyboardInterrupt):
        Tuner(book, Scripted(), executor, TunerSettings()).run()
    assert [trial.status for trial in book.history.trials] == ["stale", "stale"]
    assert executor.closed == 1 and book.store.leases() == []


def test_reports_are_judged_at_their_place_in_the_log() -> None:
    """Another process appends between our report and our reading: the review sees the history up to
    the report only."""
    lengths: list[tuple[int, int]] = []

    class Watching(Scripted):
        def review(self, history: History, trial: int) -> Verdict:
            lengths.append((history.length, len(history.trials[trial].curve)))
            assert isinstance(history.events[-1], Reported) and history.events[-1].trial == trial
            return Verdict.CONTINUE

    class Batched(Stepwise):
        def wait(self, deliver: Deliver) -> None:
            together: list[Event] = []

            def collect(events: Sequence[Event]) -> None:
                together.extend(events)

            super().wait(collect)
            deliver(together)

    executor, book = Batched(), ledger()
    policy: Any = Watching()
    Tuner(book, policy, executor, TunerSettings()).run()
    assert lengths


def test_an_interrupt_between_decision_and_lease_loses_nothing() -> None:
    """Ctrl-C may come at any moment: here, right after a decision was recorded."""

    class Interrupted(Ledger):
        def take(self, deciding: Callable[[], Policy], worker: str) -> Any:
            super().take(deciding, worker)
            raise KeyboardInterrupt

    created = StudyCreated(
        name="s", problem=PROBLEM.to_json(), method={"name": "x", "settings": {}}
    )
    book = Interrupted(MemoryStorage().create("s", [created]), lambda: 0.0)
    with contextlib.suppress(KeyboardInterrupt):
        Tuner(book, Scripted(), Stepwise(), TunerSettings()).run()
    assert [trial.status for trial in book.history.trials] == [
        "stale"
    ] and book.store.leases() == []


def test_a_lease_outlives_its_length_as_long_as_the_heart_beats() -> None:
    problem = Problem(scrimp.Space(x=scrimp.Float(0, 1)))
    created = StudyCreated(
        name="s", problem=problem.to_json(), method={"name": "x", "settings": {}}
    )
    store = MemoryStorage().create(
        "s", [created, TrialAdded(trial=0, config={"x": 0.1}), BudgetGranted(trial=0, budget=1.0)]
    )
    ledger = Ledger(store, lambda: 0.0)
    heartbeat = Heartbeat(ledger, seconds=0.3)
    trial = ledger.history.trials[0]
    heartbeat.add(trial)
    time.sleep(0.7)
    (lease,) = store.leases()
    assert lease.remaining > 0 and heartbeat.trials == [trial]
    heartbeat.remove(trial)
    assert store.leases() == [] and heartbeat.trials == []
    heartbeat.close()


@pytest.mark.parametrize("saves", [False, True])
def test_what_is_trained_again_without_a_checkpoint_is_told_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, saves: bool
) -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        budget=scrimp.Budget("epoch", 1, 9),
        method="asha",
        storage=f"sqlite:///{tmp_path}/s.db",
        seed=0,
    )
    ran = []

    def objective(trial: Any) -> None:
        for epoch in trial.steps():
            ran.append((trial.id, epoch))
            if saves:
                (trial.checkpoint_dir / "state").write_text(str(epoch))
            trial.report(value=trial.params["x"] / epoch)

    study.optimize(objective, n_trials=9)
    record = StudyRecord.of(study.history)
    assert record.spent == len(set(ran)) and record.repeated == len(ran) - len(set(ran))
    assert record.to_json()["repeated"] == record.repeated == study.history.repeated
    told = [line for line in caplog.messages if "saves no checkpoint" in line]
    if saves:
        assert record.repeated == 0 and not told and "repeated" not in spent_words(record)
    else:
        assert record.repeated > 0 and len(told) == 1 and "after 1 epoch" in told[0]
        assert f", {record.repeated:g} repeated" in spent_words(record)
