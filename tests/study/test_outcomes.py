"""A broken objective is loud, an ordinary study with failures is not, and what failed can be tried
again."""

import logging
import math
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import BrokenObjective, ObjectiveError, StudyError
from scrimp.executors.command_line import Command
from scrimp.explain.replay import replay
from scrimp.study.outcomes import Alarm, as_catch
from scrimp.study_log.record import StudyRecord
from scrimp.study_log.trial import Trial

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def new_study(**settings: Any) -> scrimp.Study:
    return scrimp.create_study("s", SPACE, method="random", storage="memory://", seed=0, **settings)


def misspelt(trial: Any) -> float:
    return float(trial.params["lr"])


def test_the_first_failures_alike_stop_the_run_from_the_users_exception() -> None:
    study = new_study()
    with pytest.raises(
        ObjectiveError, match=r"first 3 trials .* KeyError.*no parameter 'lr' among x"
    ) as caught:
        study.optimize(misspelt, n_trials=50)
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.traceback and len(study.trials) == 3
    with pytest.raises(StudyError, match=r"all 3 trials failed.*no parameter 'lr'.*retry_failed"):
        _ = study.best_params


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "returned None"),
        ((0.1, 2), "report several by name"),
        ("good", "must be a number"),
        ({"y": 1.0}, "'value'"),
    ],
)
def test_wrong_returns_are_told(result: Any, words: str) -> None:
    study = new_study()
    with pytest.raises(ObjectiveError, match=words):
        study.optimize(lambda trial: result, n_trials=50)
    assert len(study.trials) == 3


def test_numbers_in_messages_do_not_tell_failures_apart() -> None:
    study = new_study()
    with pytest.raises(ObjectiveError, match="3 trials"):
        study.optimize(lambda trial: (trial.params["x"], 2), n_trials=50)


def test_addresses_in_messages_do_not_tell_failures_apart() -> None:
    addresses = iter(("0x7f045c42718f", "0x55c5ec17cefe", "0xdeadbeef", "0x7f045cffffff"))

    def objective(trial: scrimp.LiveTrial) -> float:
        raise RuntimeError(f"<Loader object at {next(addresses)}> is closed")

    with pytest.raises(BrokenObjective, match="the first 3 trials of this run all failed"):
        new_study().optimize(objective, n_trials=10)


def test_fewer_trials_than_three_are_loud_at_the_end() -> None:
    with pytest.raises(ObjectiveError, match="the first trial of this run"):
        new_study().optimize(misspelt, n_trials=1)


def test_a_worker_process_hands_the_traceback_over() -> None:
    study = new_study()
    with pytest.raises(ObjectiveError, match=r"Traceback(.|\n)*in misspelt"):
        study.optimize(misspelt, n_trials=50, workers=2)
    assert len(study.trials) <= 6


def test_the_last_lines_of_a_command_are_told(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import no_such_module_anywhere\n")
    study = scrimp.create_study(
        "s", SPACE, method="random", storage=f"sqlite:///{tmp_path}/s.db", seed=0
    )
    with pytest.raises(ObjectiveError, match=r"exited with code 1(.|\n)*no_such_module_anywhere"):
        study.optimize(Command("{python} train.py", tmp_path), n_trials=50)
    assert len(study.trials) == 3


def test_catch_records_failures() -> None:
    for catch in ((Exception,), KeyError, (KeyError, ValueError)):
        study = new_study().optimize(misspelt, n_trials=5, catch=catch)
        assert study.history.counts["failed"] == 5
    with pytest.raises(ObjectiveError):
        new_study().optimize(misspelt, n_trials=5, catch=ValueError)
    with pytest.raises(StudyError, match="catch is 3"):
        as_catch(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("good", [0, 1, 2])
def test_a_study_in_which_something_works_goes_on(good: int) -> None:
    def objective(trial: Any) -> float:
        if trial.id != good:
            raise MemoryError
        return 1.0

    assert new_study().optimize(objective, n_trials=8).history.counts["failed"] == 7


def test_reports_that_are_not_finite_are_no_alarm() -> None:
    assert new_study().optimize(lambda trial: math.nan, n_trials=5).history.counts["failed"] == 5


def test_failures_behind_a_trial_that_still_runs_wait() -> None:
    alarm = Alarm(slots=4)
    history = new_study().history
    trials = [Trial(id=n, config={}, status="failed", message="no memory") for n in range(9)]
    for trial in trials:
        alarm.began(trial)
    for trial in trials[1:8]:
        alarm.ended(trial, None, reported=False)
        alarm.check(history)
    alarm.ended(trials[8], None, reported=False)
    with pytest.raises(BrokenObjective, match="first 8 trials"):
        alarm.check(history)


def test_mended_trials_are_tried_again_and_do_not_count_twice() -> None:
    study = new_study()
    with pytest.raises(ObjectiveError):
        study.optimize(misspelt, n_trials=6)
    configs = [trial.config for trial in study.trials]
    assert study.retry_failed() == 3 and study.retry_failed() == 0
    study.optimize(lambda trial: trial.params["x"], n_trials=6)
    assert study.history.counts["completed"] == len(study.trials) == 6
    assert [trial.config for trial in study.trials[:3]] == configs
    assert all(outcome.same for outcome in replay(study.history.events))


@pytest.mark.parametrize("method", ["freeze-thaw", "asha", "sync-sh", "hyperband", "dyhpo"])
def test_a_retried_study_decides_like_its_replay(method: str) -> None:
    study = scrimp.create_study(
        "s", SPACE, method=method, budget=scrimp.Budget("epoch", 1, 9), storage="memory://", seed=0
    )
    broken = True

    def objective(trial: Any) -> None:
        for epoch in trial.steps():
            if broken and trial.id % 2:
                raise ValueError("broken")
            trial.report(trial.params["x"] + 1 / epoch)

    study.optimize(objective, n_trials=6)
    assert study.history.counts["failed"] == 3
    broken = False
    assert study.retry_failed() == 3
    study.optimize(objective, n_trials=9)
    assert study.history.counts["failed"] == 0 and len(study.trials) == 9
    assert all(trial.value is not None for trial in study.trials)
    assert [outcome for outcome in replay(study.history.events) if not outcome.same] == []


def test_each_outcome_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def objective(trial: Any) -> float:
        if trial.id >= 1:
            raise ValueError(f"too bad: {trial.id}")
        return 0.5

    with caplog.at_level(logging.INFO, logger="scrimp"):
        new_study(metric="error").optimize(objective, n_trials=3)
    assert caplog.record_tuples == [
        ("scrimp", logging.INFO, "trial 0 completed: error 0.5; best 0.5, trial 0"),
        ("scrimp", logging.WARNING, "trial 1 failed: ValueError: too bad: 1"),
        ("scrimp", logging.INFO, "trial 2 failed like trial 1"),
        (
            "scrimp",
            logging.WARNING,
            "2 of 3 trials failed and count towards n_trials; call study.retry_failed() to retry"
            " them",
        ),
    ]


@pytest.mark.parametrize("catch", [(ValueError,), (Exception,)])
def test_expected_failures_are_not_told_at_the_end(
    catch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def objective(trial: Any) -> float:
        if trial.id == 1:
            raise ValueError("expected")
        return 0.5

    new_study().optimize(objective, n_trials=3, catch=catch)
    assert caplog.messages == ["trial 1 failed: ValueError: expected"]


def test_mended_and_run_again_the_failed_trials_are_named(caplog: pytest.LogCaptureFixture) -> None:
    study = new_study()
    with pytest.raises(ObjectiveError):
        study.optimize(misspelt, n_trials=5)
    caplog.clear()
    study.optimize(lambda trial: trial.params["x"], n_trials=5)
    assert len(caplog.messages) == 1 and "3 of 5 trials failed and count" in caplog.messages[0]
    study.retry_failed()
    caplog.clear()
    study.optimize(lambda trial: trial.params["x"], n_trials=5)
    assert caplog.messages == []


def test_a_run_without_a_finite_value_says_so(caplog: pytest.LogCaptureFixture) -> None:
    study = new_study(metric="loss")
    study.optimize(lambda trial: math.nan, n_trials=4)
    assert caplog.messages[-1].startswith("no trial has a finite value: all 4 trials failed")
    assert "loss is nan" in caplog.messages[-1] and "study.retry_failed()" in caplog.messages[-1]
    assert sum("no trial has" in line for line in caplog.messages) == 1
    study.optimize(lambda trial: 0.5, n_trials=5)
    assert "4 of 5 trials failed" in caplog.messages[-1]


def paused_study(storage: str, method: str = "asha") -> scrimp.Study:
    """A study whose first run leaves paused trials behind."""
    study = scrimp.create_study(
        "paused",
        SPACE,
        method=method,
        budget=scrimp.Budget("epoch", 1, 27),
        storage=storage,
        seed=0,
    )
    study.optimize(train, n_trials=12, total_budget=25)
    assert study.history.counts["paused"] >= 2
    return study


def train(trial: Any) -> None:
    for epoch in trial.steps():
        trial.report(value=trial.params["x"] + 1 / epoch)


def broken_on_resume(trial: Any) -> None:
    raise NameError("name 'modle' is not defined")


@pytest.mark.parametrize("method", ["asha", "freeze-thaw", "hyperband", "dyhpo"])
def test_a_typo_on_resume_stops_the_run_and_loses_no_paused_trial(
    tmp_path: Path, method: str
) -> None:
    study = paused_study(f"sqlite:///{tmp_path}/s.db", method)
    paused = {trial.id for trial in study.history.with_status("paused")}
    with pytest.raises(ObjectiveError, match=r"3 attempts .* in a row.*'modle'") as caught:
        study.optimize(broken_on_resume, n_trials=60)
    assert isinstance(caught.value.__cause__, NameError)
    assert {trial.id for trial in study.history.with_status("paused")} == paused
    # Trials that had never reported anything failed.
    assert study.retry_failed() <= 3 and not StudyRecord.of(study.history).over
    study.optimize(train, n_trials=14)
    assert study.history.counts["failed"] == 0 and not study.history.interrupted
    assert all(outcome.same for outcome in replay(study.history.events))


def test_a_trial_that_fails_when_resumed_is_resumed_first_with_its_grant() -> None:
    study = paused_study("memory://", "freeze-thaw")
    count = len(study.trials)
    with pytest.raises(ObjectiveError, match="stay paused"):
        study.optimize(broken_on_resume, n_trials=count, total_budget=200)
    (waiting,) = study.history.interrupted
    assert study.history.counts["failed"] == 0 and waiting.granted > waiting.budget > 0
    assert "interrupted or failed, so it was tried again" in study.explain(waiting.id).details
    resumed = study.ask()
    assert (resumed.id, resumed.granted) == (waiting.id, waiting.granted)


def test_a_run_stops_after_equal_failures_though_the_study_has_values() -> None:
    study = new_study().optimize(lambda trial: trial.params["x"], n_trials=5)
    with pytest.raises(ObjectiveError, match=r"3 attempts of this run failed in a row.*'lr'"):
        study.optimize(misspelt, n_trials=50)
    assert study.history.counts["failed"] == 3


def test_a_run_in_which_something_worked_needs_ten_equal_failures() -> None:
    def runs_out(trial: Any) -> float:
        if trial.id >= 5:
            raise RuntimeError("no space left on device")
        return 1.0

    study = new_study()
    with pytest.raises(ObjectiveError, match=r"10 attempts of this run failed in a row.*no space"):
        study.optimize(runs_out, n_trials=50)
    assert study.history.counts["failed"] == 10


def saves(trial: Any) -> None:
    """Train with a checkpoint at each step."""
    for epoch in trial.steps():
        (trial.checkpoint_dir / "state").write_text(str(epoch))
        trial.report(value=trial.params["x"] + 1 / epoch)


def cannot_load(trial: Any) -> None:
    if trial.resumed:
        raise NameError("name 'modle' is not defined")
    saves(trial)


@pytest.mark.parametrize("method", ["asha", "mobster-joint", "hyperband", "freeze-thaw"])
@pytest.mark.parametrize("workers", [1, 2])
def test_new_trials_that_work_do_not_hide_that_no_trial_can_be_resumed(
    tmp_path: Path, method: str, workers: int
) -> None:
    study = scrimp.create_study(
        "loads", SPACE, method=method, budget=scrimp.Budget("epoch", 1, 27),
        storage=f"sqlite:///{tmp_path}/s.db", seed=0,
    )  # fmt: skip
    with pytest.raises(ObjectiveError, match=r"to resume a trial failed in a row.*'modle'"):
        study.optimize(cannot_load, n_trials=60, workers=workers)
    assert study.history.counts["failed"] == 0 and len(study.trials) < 25
    paused = {trial.id: trial.budget for trial in study.trials}
    study.optimize(saves, n_trials=len(study.trials) + 3)
    assert study.history.counts["failed"] == 0 and not study.history.interrupted
    assert any(trial.budget > paused[trial.id] for trial in study.trials if trial.id in paused)


def test_one_trial_that_cannot_be_resumed_fails_while_others_work(tmp_path: Path) -> None:
    study = paused_study(f"sqlite:///{tmp_path}/s.db")
    doomed = min(study.history.with_status("paused"), key=lambda trial: trial.value or 0.0).id

    def objective(trial: Any) -> None:
        if trial.id == doomed:
            raise OSError("the checkpoint is damaged")
        train(trial)

    study.optimize(objective, n_trials=30)
    assert study.trials[doomed].status == "failed"
    assert study.history.counts["failed"] == 1 and study.history.counts["completed"] > 0


def test_the_first_trial_that_cannot_be_resumed_stops_one_run_and_fails_in_the_next() -> None:
    study = paused_study("memory://", "sync-hyperband")
    resumed: list[int] = []

    def objective(trial: Any) -> None:
        if trial.id in {other.id for other in study.history.trials if other.curve}:
            resumed.append(trial.id)
            if trial.id == resumed[0]:
                raise OSError("the checkpoint is damaged")
        train(trial)

    with pytest.raises(ObjectiveError, match=r"to resume a trial.*damaged"):
        study.optimize(objective, n_trials=60)
    assert study.trials[resumed[0]].status == "paused"
    study.optimize(objective, n_trials=60)
    assert study.trials[resumed[0]].status == "failed"
    assert study.history.counts["failed"] == 1 and study.history.counts["completed"] > 0
