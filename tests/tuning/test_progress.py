"""The line of the live display, and its silence in a pipe."""

import pytest

import scrimp
from scrimp.tuning.progress import Progress, summary_line


def study_with(values: list[float]) -> scrimp.Study:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), metric="error", method="random", storage="memory://"
    )
    study.optimize(lambda trial: values[trial.id], n_trials=len(values))
    return study


def test_the_line_says_where_the_study_stands() -> None:
    study = study_with([0.5, 0.25])
    line = summary_line(study.history, 10.0)
    assert "best error 0.25 (trial 1)" in line and "2 completed" in line and "10 s" in line


def test_it_estimates_the_time_left() -> None:
    study = study_with([1.0, 2.0])
    study._set_totals({"n_trials": 8})
    assert "about 30 s left" in summary_line(study.history, 10.0)


def test_before_anything_happened() -> None:
    study = scrimp.create_study("s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://")
    assert "no trials yet" in summary_line(study.history, 0.0)


def test_it_is_silent_unless_enabled(capfd: pytest.CaptureFixture[str]) -> None:
    study = study_with([1.0])
    with Progress(lambda: 0.0) as display:
        display.update(study.history)
    assert capfd.readouterr() == ("", "")
    with Progress(lambda: 0.0, enabled=True) as display:
        display.update(study.history)
    shown = capfd.readouterr()
    assert shown.out == ""
