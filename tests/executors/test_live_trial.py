"""What objectives may do, and which events come of it."""

import copy
import errno
import math
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from scrimp.errors import OutputError, ReportError
from scrimp.executors.executor import Assignment
from scrimp.executors.live_trial import LiveTrial, run_objective
from scrimp.study_log.events import Ended, Event, Reported


def run(
    objective: Callable[[LiveTrial], Any],
    *,
    begin: float = 0.0,
    end: float = 1.0,
    goes_on: Callable[[list[Event]], bool] = lambda events: True,
    folder: Path | None = None,
    attempt: int = 1,
) -> list[Event]:
    """All events of one attempt."""
    ticks = iter(range(1000))
    seen: list[Event] = []

    def emit(events: list[Event]) -> bool:
        seen.extend(events)
        return goes_on(events)

    def clock() -> float:
        return float(next(ticks))

    assignment = Assignment(3, {"lr": 0.1}, attempt, begin, end, folder)
    context = LiveTrial(assignment, ("loss",), "seconds", emit, clock)
    return seen + run_objective(objective, context, clock)


def test_a_returned_number_is_reported_at_the_end_of_the_grant() -> None:
    (report,) = run(lambda trial: trial.params["lr"] * 2, end=9.0)
    assert isinstance(report, Reported)
    assert (report.trial, report.step, report.metrics, report.attempt) == (3, 9.0, {"loss": 0.2}, 1)
    assert report.cost is not None and report.cost > 0  # measured, since "seconds" was not reported


def test_reported_cost_is_taken_from_the_cost_metric() -> None:
    (report,) = run(lambda trial: {"loss": 1.0, "seconds": 42.0})
    assert isinstance(report, Reported) and report.cost == 42.0


def test_steps_run_from_the_beginning_to_the_end_of_the_grant() -> None:
    def objective(trial: LiveTrial) -> None:
        for step in trial.steps():
            assert trial.report(loss=1.0 / step) == (step < 4)

    events = run(objective, end=4.0)
    assert [event.step for event in events if isinstance(event, Reported)] == [1, 2, 3, 4]
    assert len(events) == 4  # used up its grant: paused, nothing more to say


def test_a_stopped_trial_ends_its_loop() -> None:
    def objective(trial: LiveTrial) -> None:
        for step in trial.steps():
            trial.report(loss=float(step))

    events = run(objective, end=9.0, goes_on=lambda events: events[0].step < 2)  # type: ignore[union-attr]
    assert [type(event) for event in events] == [Reported, Reported]


def test_resuming_starts_after_the_committed_step(tmp_path: Path) -> None:
    def objective(trial: LiveTrial) -> None:
        seen = (trial.checkpoint_dir / "epochs").read_text() if trial.resumed else ""
        for step in trial.steps():
            seen += f"{step} "
            (trial.checkpoint_dir / "epochs").write_text(seen)
            trial.report(loss=1.0, note=len(seen.split()))

    run(objective, end=3.0, folder=tmp_path / "t")
    events = run(objective, begin=3.0, end=5.0, folder=tmp_path / "t", attempt=2)
    assert [event.step for event in events if isinstance(event, Reported)] == [4, 5]
    assert (tmp_path / "t-2" / "step-5" / "epochs").read_text() == "1 2 3 4 5 "


def test_without_checkpoints_a_resumed_trial_starts_over(tmp_path: Path) -> None:
    def objective(trial: LiveTrial) -> None:
        assert not trial.resumed
        for _ in trial.steps():
            trial.report(loss=1.0)

    events = run(objective, begin=3.0, end=4.0, folder=tmp_path / "t", attempt=2)
    assert [event.step for event in events if isinstance(event, Reported)] == [1, 2, 3, 4]
    assert not (tmp_path / "t").exists()  # no folder for objectives that never ask for one


def test_an_exception_becomes_a_failure_with_its_text() -> None:
    def objective(trial: LiveTrial) -> float:
        raise ValueError("out of memory")

    (ended,) = run(objective)
    assert isinstance(ended, Ended) and ended.status == "failed"
    assert ended.message.startswith("ValueError: out of memory") and "objective" in ended.message


def test_exceptions_that_misbehave_are_failures_too() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def leave(trial: LiveTrial) -> None:
        raise SystemExit(3)

    def unspeakable(trial: LiveTrial) -> None:
        raise Unspeakable

    def undecodable(trial: LiveTrial) -> None:
        raise OSError("caf\udce9.csv")

    for objective, words in (
        (leave, "SystemExit: 3"),
        (unspeakable, "Unspeakable"),
        (undecodable, "caf\\udce9"),
    ):
        (ended,) = run(objective)
        assert isinstance(ended, Ended) and ended.status == "failed" and words in ended.message
        ended.message.encode("utf-8")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_fails_the_trial(value: float) -> None:
    report, ended = run(lambda trial: value)
    assert isinstance(report, Reported) and report.metrics == {"loss": None}
    assert isinstance(ended, Ended) and ended.status == "failed" and str(value) in ended.message


def test_returning_nothing_and_reporting_nothing_is_a_failure() -> None:
    (ended,) = run(lambda trial: None)
    assert (
        isinstance(ended, Ended)
        and ended.status == "failed"
        and "reported nothing" in ended.message
    )


def test_ending_early_completes_the_trial() -> None:
    events = run(lambda trial: trial.report(loss=1.0) and None, end=5.0)
    assert isinstance(events[-1], Ended) and events[-1].status == "completed"


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (lambda trial: trial.report(loss="low"), "'low'"),
        (lambda trial: trial.report(loss=True), "True"),
        (lambda trial: trial.report(loss=None), "None"),
        (lambda trial: trial.report(accuracy=0.9), "'loss' was not reported"),
        (lambda trial: trial.report(1.0, step=0), "step is 0"),
        (lambda trial: trial.report(1.0, step=math.nan), "step is nan"),
        (lambda trial: trial.report(1.0, step=6), "beyond the grant of 5"),
        (lambda trial: trial.report([1.0, 2.0]), "[1.0, 2.0]"),
    ],
)
def test_bad_reports_name_the_value_and_the_rule(
    report: Callable[[LiveTrial], Any], words: str
) -> None:
    (ended,) = run(report, end=5.0)
    assert isinstance(ended, Ended) and ended.status == "failed" and words in ended.message
    assert ReportError.__name__ in ended.message


def test_params_cannot_be_changed_from_inside() -> None:
    def objective(trial: LiveTrial) -> float:
        trial.params["lr"] = 5.0
        return float(trial.params["lr"])

    (report,) = run(objective)
    assert isinstance(report, Reported) and report.metrics["loss"] == 0.1


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        (lambda trial: trial["lr"], "read trial.params['lr']"),
        (lambda trial: trial.params.params, "the parameters themselves, without .params"),
        (lambda trial: trial.params["LR"], "did you mean 'lr'?"),
    ],
)
def test_trials_and_parameters_mixed_up_are_told_apart(objective: Any, words: str) -> None:
    (ended,) = run(objective)
    assert isinstance(ended, Ended) and words in ended.message


def test_a_report_that_fails_its_trial_ends_it_whatever_the_loop_answers() -> None:
    answers: list[bool] = []

    def objective(trial: LiveTrial) -> None:
        for _ in trial.steps():
            answers.append(trial.report(loss=math.nan))
            assert not trial.goes_on

    events = run(objective, end=5.0)
    assert answers == [False] and isinstance(events[-1], Ended)


@pytest.mark.parametrize("told_to_end", [False, True])
def test_states_are_removed_only_after_a_report_that_may_continue(
    tmp_path: Path, told_to_end: bool
) -> None:
    """Another attempt may have taken over from a trial that is told to end."""
    answers = iter([True, not told_to_end, True])

    def objective(trial: LiveTrial) -> None:
        for step in (1, 2):
            (trial.checkpoint_dir / "weights").write_text(str(step))
            assert trial.report(loss=1.0, step=step) == (step == 1 or not told_to_end)

    run(objective, end=5.0, goes_on=lambda events: next(answers), folder=tmp_path / "trial-000003")
    kept = sorted(path.name for path in tmp_path.glob("trial-000003-1/step-*"))
    assert kept == (["step-1", "step-2"] if told_to_end else ["step-2"])


def test_a_trial_that_is_told_to_end_ends_although_its_report_is_good() -> None:
    def objective(trial: LiveTrial) -> None:
        assert trial.report(loss=1.0, step=1) is False
        assert trial.goes_on is False

    assert len(run(objective, end=5.0, goes_on=lambda events: False)) == 1


def test_threads_of_an_objective_report_one_after_the_other() -> None:
    inside: list[int] = []
    at_once: list[int] = []

    def emit(events: list[Event]) -> bool:
        inside.append(1)
        at_once.append(len(inside))
        time.sleep(0.02)
        inside.pop()
        return True

    def objective(trial: LiveTrial) -> None:
        reports = [partial(trial.report, loss=1.0 / step, step=step) for step in (1, 2, 3)]
        notes = [partial(trial.set_user_attr, f"host{number}", "a") for number in (1, 2)]
        threads = [Thread(target=call) for call in (*reports, *notes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    events = run(objective, end=3.0, goes_on=emit)
    assert len(events) == 5 and max(at_once) == 1


def test_a_copied_callback_reports_to_the_same_trial() -> None:
    def objective(trial: LiveTrial) -> None:
        callback = copy.deepcopy({"trial": trial})
        assert callback["trial"] is trial
        callback["trial"].report(0.5)

    (report,) = run(objective)
    assert isinstance(report, Reported) and report.metrics == {"loss": 0.5}


def test_an_objective_whose_reader_is_gone_has_not_failed() -> None:
    def objective(trial: LiveTrial) -> float:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    # The pipe to somebody else, as to a database: the objective has failed.
    (event,) = run(objective)
    assert isinstance(event, Ended) and event.status == "failed"
    reader, writer = os.pipe()
    before = os.dup(1)
    os.dup2(writer, 1)
    try:
        (event,) = run(objective)
        assert isinstance(event, Ended), "somebody may still read"
        os.close(reader)
        with pytest.raises(OutputError, match=r"cannot print.*no trial has failed"):
            run(objective)
        (event,) = run(lambda trial: 1 / 0)
        assert isinstance(event, Ended) and "ZeroDivisionError" in event.message
    finally:
        os.dup2(before, 1)
        os.close(before)
        os.close(writer)
