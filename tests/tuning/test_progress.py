"""The line of the live display, and its silence in a pipe."""

import pytest

import scrimp
from scrimp.history.events import StudyChanged
from scrimp.history.limits import Totals
from scrimp.tuning.progress import Progress, display_lines, share_done, summary_line


def study_with(values: list[float]) -> scrimp.Study:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="error",
        method="random",
        storage="memory://",
    )
    study.optimize(lambda trial: values[trial.id], n_trials=len(values))
    return study


def test_the_line_says_where_the_study_stands() -> None:
    study = study_with([0.5, 0.25])
    line = summary_line(study.history, 10.0)
    assert "best error 0.25 (trial 1)" in line and "2 completed" in line and "10 s" in line


def test_it_estimates_the_time_left() -> None:
    study = study_with([1.0, 2.0])
    study._change(StudyChanged(totals=Totals(n_trials=8)))
    assert "about 30 s left" in summary_line(study.history, 10.0, before=0.0)
    assert "about 60 s left" in summary_line(
        study.history, 10.0, before=0.125
    )  # of the two, one was there before
    assert "left" not in summary_line(study.history, 10.0)


def test_before_anything_happened() -> None:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    assert "no trials yet" in summary_line(study.history, 0.0)


def test_it_is_silent_unless_enabled(capfd: pytest.CaptureFixture[str]) -> None:
    study = study_with([1.0])
    with Progress(lambda: 0.0) as display:
        display.update(study.history)
    assert capfd.readouterr() == ("", "")


def test_in_a_pipe_it_is_plain_lines_when_the_best_changes(
    capfd: pytest.CaptureFixture[str],
) -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="a[red]\x1b[2J",
        method="random",
        storage="memory://",
    )
    with Progress(lambda: 0.0, enabled=True) as display:
        for value in (0.5, 0.7, 0.2):
            study.tell(study.ask(), value)
            display.update(study.history)
    shown = capfd.readouterr()
    lines = shown.err.splitlines()
    assert shown.out == "" and len(lines) == 2 and "\x1b" not in shown.err
    assert "best a[red]�[2J 0.5 (trial 0)" in lines[0] and "0.2 (trial 2)" in lines[1]


def test_the_display_names_who_runs_and_who_waits() -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="error",
        budget=scrimp.Budget("epoch", 1, 9),
        method="asha",
        storage="memory://",
        seed=0,
    )
    for trial, value in zip(study.ask(count=3), (0.5, 0.25, 0.75), strict=True):
        study.report(trial, step=1, error=value)
    going = study.ask()
    best, trials, running, paused, budget = display_lines(study.history, 10.0)
    assert best == f"best error 0.25 (trial {study.best_trial.id})  ·  10 s"
    assert trials == "trials   1 running, 2 paused" and paused == "paused   2 at 1"
    assert running == f"running  trial {going.id} {going.budget:g}→{going.granted:g}"
    assert budget == "budget   3 epochs spent, 83% saved"  # 3 of 2 x 9
    study._change(StudyChanged(totals=Totals(n_trials=5)))
    assert share_done(study.history) == 3 / 15  # halving spends 5 x 1 on each of three rungs
    study.pause()
    assert "the study is paused" in display_lines(study.history, 10.0)[2]


def test_plain_lines_come_every_minute_and_name_the_first_failures(
    capfd: pytest.CaptureFixture[str],
) -> None:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://", seed=0
    )
    now = [0.0]
    with Progress(lambda: now[0], enabled=True) as display:
        for number in range(5):
            study.tell(
                study.ask(), state="failed", message=f"code 1\nTraceback\nError: number {number}"
            )
            display.update(study.history)
        now[0] = 61.0
        display.update(study.history)
    lines = capfd.readouterr().err.splitlines()
    assert lines[:3] == [
        f"failed: trial {number}: code 1: Error: number {number}" for number in range(3)
    ]
    assert len(lines) == 4 and "5 failed" in lines[3] and "61 s" in lines[3]
    assert display_lines(study.history, 1.0)[2] == "failed   trial 4: code 1: Error: number 4"
