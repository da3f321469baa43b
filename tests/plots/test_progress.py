"""The line of the best is the study's own, on all three axes."""

from typing import Any

import pytest

import scrimp
from scrimp.errors import StudyError


def trace(picture: Any, name: str) -> Any:
    return next(trace for trace in picture.data if trace.name == name)


def dots(picture: Any) -> dict[int, float]:
    """The heights of all dots by trial."""
    names = ("partly trained", "fully trained", "trials", "violates a constraint")
    groups = [trace for trace in picture.data if trace.name in names]
    return {
        beside[0]: height
        for group in groups
        for beside, height in zip(group.customdata, group.y, strict=True)
    }


@pytest.mark.parametrize("over", ["trials", "time", "budget"])
def test_the_line_ends_at_the_best_value_and_only_improves(staged: scrimp.Study, over: str) -> None:
    picture = scrimp.plots.history(staged, over=over)
    line = trace(picture, "best so far")
    assert line.y[-1] == staged.best_value and list(line.y) == sorted(line.y, reverse=True)
    assert list(line.x) == sorted(line.x) and line.customdata[-1] == staged.best_trial.id
    values = {trial.id: trial.value for trial in staged.trials if trial.value is not None}
    assert dots(picture) == values


def test_how_far_trials_were_trained_and_which_failed_is_seen(staged: scrimp.Study) -> None:
    picture = scrimp.plots.history(staged)
    whole = {beside[0] for beside in trace(picture, "fully trained").customdata}
    assert whole == {trial.id for trial in staged.trials if trial.budget == 9}
    failed = {beside[0] for beside in trace(picture, "failed").customdata}
    assert failed == {trial.id for trial in staged.trials if trial.status == "failed"}
    assert f"{len(failed)} of 30 trials failed" in picture.layout.meta["alternative"]


def test_the_budget_axis_ends_at_what_was_spent(staged: scrimp.Study) -> None:
    line = trace(scrimp.plots.history(staged, over="budget"), "best so far")
    assert line.x[-1] == staged.history.spent


def test_infeasible_trials_are_shown_but_are_not_the_best(whole: scrimp.Study) -> None:
    picture = scrimp.plots.history(whole)
    values, line = dots(picture), trace(picture, "best so far")
    assert line.y[-1] == whole.best_value < max(values.values()) and len(values) == 48
    broken = {beside[0] for beside in trace(picture, "violates a constraint").customdata}
    assert broken == {trial.id for trial in whole.trials if trial.params["a"] > 0.8}


def test_another_metric_with_the_limit_of_its_constraint(whole: scrimp.Study) -> None:
    picture = scrimp.plots.history(whole, metric="memory")
    assert dots(picture) == {trial.id: trial.params["a"] for trial in whole.trials}
    assert picture.layout.shapes[0].y0 == 0.8 and "0.8" in picture.layout.meta["alternative"]
    with pytest.raises(StudyError, match="no metric 'disk' was reported; there are score, memory"):
        scrimp.plots.history(whole, metric="disk")


def test_names_are_escaped_and_axes_named(staged: scrimp.Study) -> None:
    picture = scrimp.plots.history(staged, over="budget")
    assert picture.layout.title.text == "Best val_error over budget"
    assert picture.layout.xaxis.title.text == "budget spent (epochs)"
    assert picture.layout.yaxis.title.text == "val_error (lower is better)"
    assert f"{staged.best_value:.6g}" in picture.layout.meta["alternative"]
    assert scrimp.plots.history(staged, log=True).layout.yaxis.type == "log"


def test_an_empty_study_has_an_empty_picture() -> None:
    study = scrimp.create_study(
        "e", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    picture = scrimp.plots.history(study)
    assert not picture.data[-1].x and picture.layout.meta["alternative"] == (
        "Nothing was reported yet."
    )


def test_an_unknown_axis_is_said(whole: scrimp.Study) -> None:
    with pytest.raises(StudyError, match="'trials', 'time' or 'budget'"):
        scrimp.plots.history(whole, over="moons")


def test_the_caption_counts_trials_that_started_after_the_best_report() -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("s", space, method="random", storage="memory://", seed=0)
    first, *others = [study.ask() for _ in range(6)]
    for trial in others:
        study.tell(trial, 1.0)
    study.tell(first, 0.5)  # the best report is the last, of the first trial
    words = scrimp.plots.history(study).layout.meta["alternative"]
    assert "by trial 0" in words and "started since" not in words
    for _ in range(3):
        study.tell(study.ask(), 1.0)
    words = scrimp.plots.history(study).layout.meta["alternative"]
    assert "none of the 3 trials started since then improved it" in words
