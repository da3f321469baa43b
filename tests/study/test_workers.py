"""Joining a study: its totals count, ends on request, and stores that go away."""

import threading
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import ObjectiveError, StorageError, StudyError, Unreachable
from scrimp.executors.command_line import Command
from scrimp.executors.executor import Deliver
from scrimp.executors.live_trial import InProcess, Task
from scrimp.schedulers.scheduler import Finish, Wait
from scrimp.storage.leases import Lease
from scrimp.storage.memory import MemoryStorage
from scrimp.storage.store import EventStore
from scrimp.study import workers
from scrimp.study.run import Run
from scrimp.study.tuner import Tuner, TunerSettings
from scrimp.study.workers import (
    carry_out,
    described,
    end_early,
    imported,
    join_study,
    limit_totals,
    may_continue,
    next_trial,
    resolved,
    work,
)
from scrimp.study_log.events import Lost, Reported, StudyChanged
from scrimp.study_log.limits import Totals
from scrimp.study_log.trial import Trial
from tests.waiting import PATIENCE, eventually

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def study_with(total: int | None, **settings: Any) -> scrimp.Study:
    settings = {"method": "random", "storage": "memory://", "seed": 0, **settings}
    study = scrimp.create_study("s", SPACE, **settings)
    if total is not None:
        study._ledger.append([StudyChanged(totals=Totals(n_trials=total))])
    return study


def test_the_totals_of_the_study_count() -> None:
    study = study_with(5)
    before = study.history.length
    work(study, Run(lambda trial: trial.params["x"]))
    assert study.history.counts["completed"] == 5
    assert not any(isinstance(event, StudyChanged) for event in study.history.events[before:])
    work(study, Run(lambda trial: trial.params["x"]))
    assert len(study.trials) == 5


def test_methods_are_told_of_a_time_limit_and_of_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "work", lambda *given, **settings: None)
    study = study_with(None)
    carry_out(study, "math:sqrt", {"timeout": 60.0})
    totals = study.history.totals
    assert totals.timeout == 60.0 and totals.since is not None
    carry_out(study, "math:sqrt", {"n_trials": 3})
    assert study.history.totals.timeout is None


def test_a_study_without_totals_would_never_end() -> None:
    with pytest.raises(StudyError, match="never end"):
        work(study_with(None), Run(lambda trial: 1.0))
    study = study_with(None)
    work(study, Run(lambda trial: 1.0, stop=scrimp.MaxTrials(2)))
    assert len(study.trials) == 2


def test_asked_to_end_the_trial_goes_back_after_its_step(tmp_path: Path) -> None:
    study = study_with(3, budget=scrimp.Budget("epoch", 5, 5), storage=f"sqlite:///{tmp_path}/s.db")
    asked: list[int] = []

    def objective(trial: Any) -> None:
        for step in trial.steps():
            (trial.checkpoint_dir / "state").write_text(str(step))
            if step == 2:
                asked.append(step)
            trial.report(trial.params["x"])

    work(study, Run(objective, ending=lambda: bool(asked)))
    (trial,) = study.trials
    assert (trial.status, trial.budget) == ("stale", 2.0) and study._ledger.store.leases() == []
    resumed: list[tuple[int, str]] = []

    def rest(trial: Any) -> None:
        for step in trial.steps():
            resumed.append(
                (step, (trial.checkpoint_dir / "state").read_text() if trial.resumed else "")
            )
            (trial.checkpoint_dir / "state").write_text(str(step))
            trial.report(trial.params["x"])

    work(study, Run(rest))
    assert study.history.counts["completed"] == 3 and resumed[0] == (3, "2")
    assert len([event for event in study.history.events if isinstance(event, Reported)]) == 15


def test_a_failure_while_ending_is_no_failure_of_the_trial() -> None:
    """Whoever ends this process ends its children too; an objective that fails by that is taken up
    again elsewhere."""
    study = study_with(1)
    asked: list[int] = []

    def objective(trial: Any) -> float:
        asked.append(1)
        raise ConnectionError("the data loader is gone")

    work(study, Run(objective, ending=lambda: bool(asked)))
    assert study.trials[0].status == "stale" and "data loader" in study.trials[0].message
    work(study, Run(lambda trial: 1.0))
    assert study.trials[0].status == "completed"


def test_a_store_that_goes_away_fails_the_run_and_not_the_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = study_with(2)
    store = study._ledger.store
    append, calls = store.append, []

    def away(events: Any, decision: int | None = None) -> int:
        if isinstance(events[0], Reported):
            calls.append(events)
            raise StorageError("the server is away")
        return append(events, decision)

    with monkeypatch.context() as patch:
        patch.setattr(store, "append", away)
        with pytest.raises(StorageError, match="away"):
            work(study, Run(lambda trial: trial.report(1.0)))
    assert len(calls) == 1, "patience is spent once"
    assert study.trials[0].status == "running" and len(store.leases()) == 1
    store.lease(type(store.leases()[0])(0, 1, "w", "", 0, -1.0))  # the lease runs out
    work(study, Run(lambda trial: 1.0))
    assert study.history.counts["completed"] == 2
    assert [event.trial for event in study.history.events if isinstance(event, Lost)] == [0]


def test_a_worker_that_was_only_slow_is_told_and_counted_once() -> None:
    study = study_with(1, budget=scrimp.Budget("epoch", 3, 3))
    answers: list[bool] = []

    def slow(trial: Any) -> None:
        for step in trial.steps():
            if (
                step == 2
            ):  # too long without a heartbeat: somebody else takes it over and finishes it
                store = study._ledger.store
                store.lease(type(store.leases()[0])(0, 1, "w", "elsewhere", 0, -1.0))
                other = scrimp.Study(store, study._root)
                work(other, Run(lambda trial: [trial.report(0.5) for _ in trial.steps()] and None))
            answers.append(trial.report(0.25))

    work(study, Run(slow))
    assert answers == [True, False]
    (trial,) = study.trials
    assert (trial.status, trial.attempt, trial.budget) == ("completed", 2, 3.0)
    assert [point.metrics["value"] for point in trial.curve] == [0.25, 0.5, 0.5]
    reports = [event for event in study.history.events if isinstance(event, Reported)]
    assert [(event.attempt, event.step) for event in reports] == [
        (1, 1.0),
        (2, 1.0),
        (2, 2.0),
        (2, 3.0),
        (1, 2.0),
    ]
    assert study.history.spent == 3.0


def test_a_trial_that_its_executor_loses_too_often_has_failed() -> None:
    """As a cluster reports actors that die: taken up again, but not for ever."""
    study = study_with(1)

    class Fatal(InProcess):
        def wait(self, deliver: Deliver) -> None:
            assert self._assignment is not None
            lost = Lost(
                trial=self._assignment.trial,
                attempt=self._assignment.attempt,
                message="the actor is gone",
            )
            self._assignment = None
            deliver([lost])

    executor = Fatal(Task(lambda trial: 1.0, ("value",)))
    Tuner(study._ledger, study._deciding(), executor, TunerSettings()).run()
    (trial,) = study.trials
    assert (trial.status, trial.attempt) == ("failed", 3) and "vanished 3 times" in trial.message


def test_a_server_that_is_away_is_waited_for_and_at_last_named() -> None:
    storage = MemoryStorage()
    scrimp.create_study("s", SPACE, storage=storage, seed=0)
    asked: list[int] = []
    said: list[str] = []

    class Away(MemoryStorage):
        def open(self, name: str) -> EventStore:
            asked.append(1)
            if len(asked) <= 2:
                raise Unreachable("postgresql://db cannot be reached")
            return storage.open(name)

    assert join_study("s", Away(), 60.0, said.append).name == "s"
    assert len(asked) == 3 and said == ["postgresql://db cannot be reached. Retrying for 60 s"]
    asked.clear()
    with pytest.raises(Unreachable, match="postgresql://db cannot be reached"):
        join_study("s", Away(), 0.1, said.append)
    with pytest.raises(StudyError, match="no study 't'"):
        join_study("t", MemoryStorage(), 60.0, said.append)


def test_a_waiting_worker_learns_of_news(tmp_path: Path) -> None:
    """It has nothing to do until somebody else's trial is told; then it finishes the study."""
    url = f"sqlite:///{tmp_path}/s.db"
    study = study_with(2, storage=url)
    other = study._ledger.take(study._deciding, "elsewhere:1")
    assert isinstance(other, Trial)
    study._ledger.store.lease(Lease(other.id, 1, "elsewhere:1", "elsewhere", 1, 600.0))
    joining = scrimp.load_study("s", storage=url)
    worker = threading.Thread(target=lambda: work(joining, Run(lambda trial: 1.0)))
    worker.start()
    eventually(lambda: study.history.counts["completed"] >= 1)
    assert worker.is_alive() and study.history.counts == {
        **study.history.counts,
        "running": 1,
        "completed": 1,
    }
    study._ledger.append([Reported(trial=other.id, step=1.0, metrics={"value": 0.5})])
    worker.join(timeout=PATIENCE)
    assert not worker.is_alive() and joining.history.counts["completed"] == 2


def test_there_and_back() -> None:
    assert (
        resolved(described("os.path:join"))
        is imported("os.path:join")
        is __import__("os").path.join
    )
    command = resolved(described(Command("python train.py --lr {lr}", "/data")))
    assert isinstance(command, Command)
    assert command.words == ("python", "train.py", "--lr", "{lr}") and command.folder == "/data"


def test_a_study_records_what_it_evaluates() -> None:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), storage="memory://", seed=0
    )
    assert study.history.objective is None
    study._ledger.append([StudyChanged(objective=described("train:objective"))])
    study._ledger.append([StudyChanged(totals=Totals(n_trials=3))])
    assert study.history.objective == {"function": "train:objective"}


def test_modules_of_the_current_folder_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_of_this_folder.py").write_text(
        "class Task:\n    @staticmethod\n    def run(trial): return 7\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    assert imported("module_of_this_folder:Task.run")(None) == 7


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("train", "module:function"),
        ("train:", "module:function"),
        ("os; import x:y", "module:function"),
        ("../train:objective", "module:function"),
        ("no_such_module:objective", "PYTHONPATH"),
        ("os.path:joyn", "did you mean 'join'"),
        ("os:sep", "function of a trial"),
    ],
)
def test_what_is_refused(path: str, words: str) -> None:
    with pytest.raises(ObjectiveError, match=words.replace("(", r"\(")):
        imported(path)


@pytest.mark.parametrize(
    "record",
    [{}, {"pickle": "gASV"}, {"function": 3}, {"command": "rm"}, {"command": ["rm"], "folder": 3}],
)
def test_other_records_are_refused(record: dict[str, object]) -> None:
    with pytest.raises(ObjectiveError, match="neither a function nor a command"):
        resolved(record)


@pytest.fixture
def study() -> scrimp.Study:
    space, budget = scrimp.Space(x=scrimp.Float(0, 1)), scrimp.Budget("epoch", 1, 9)
    place = "memory://"
    return scrimp.create_study(
        "far", space, metric="loss", budget=budget, method="asha", storage=place, seed=0
    )


def trained(study: scrimp.Study, loss: float) -> Trial:
    trial = next_trial(study)
    assert isinstance(trial, Trial)
    for step in range(int(trial.budget) + 1, int(trial.granted) + 1):
        study.report(trial, step=step, loss=loss)
    return study.trials[trial.id]


def test_it_stays_within_the_totals(study: scrimp.Study) -> None:
    limit_totals(study, 2)
    first = trained(study, 1.0)
    second = next_trial(study)
    assert isinstance(second, Trial) and isinstance(next_trial(study), Wait)
    study.report(second, step=1, loss=0.5)
    assert trained(study, 0.4).id == second.id  # the better of two goes on
    while isinstance(trial := next_trial(study), Trial):
        study.report(trial, step=trial.granted, loss=0.3)
    assert isinstance(trial, Finish) and len(study.trials) == 2
    assert study.trials[first.id].status == "paused"
    limit_totals(study, None)
    assert isinstance(next_trial(study), Trial)


def test_a_total_budget_ends_it(study: scrimp.Study) -> None:
    limit_totals(study, None, 2)
    trained(study, 1.0)
    trained(study, 0.5)
    assert isinstance(next_trial(study), Finish)


def test_a_trial_ends_early(study: scrimp.Study) -> None:
    trial = next_trial(study)
    assert isinstance(trial, Trial)
    assert end_early(study, trial.id, "it had enough").status == "completed"


def test_whether_a_paused_trial_may_go_on(study: scrimp.Study) -> None:
    assert may_continue(study, trained(study, 1.0).id)
