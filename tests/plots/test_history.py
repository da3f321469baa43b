"""The line of the best is the study's own, on all three axes."""

import pytest

import scrimp
from scrimp.errors import StudyError


@pytest.mark.parametrize("over", ["trials", "time", "budget"])
def test_the_line_ends_at_the_best_value_and_only_improves(staged: scrimp.Study, over: str) -> None:
    points, line = scrimp.plots.history(staged, over=over).data
    assert line.y[-1] == staged.best_value and list(line.y) == sorted(line.y, reverse=True)
    assert list(line.x) == sorted(line.x)
    values = {trial.id: trial.value for trial in staged.trials if trial.value is not None}
    assert {
        number: value for (number, _), value in zip(points.customdata, points.y, strict=True)
    } == values


def test_the_budget_axis_ends_at_what_was_spent(staged: scrimp.Study) -> None:
    assert scrimp.plots.history(staged, over="budget").data[1].x[-1] == staged.history.spent


def test_infeasible_trials_are_shown_but_are_not_the_best(whole: scrimp.Study) -> None:
    points, line = scrimp.plots.history(whole).data
    assert line.y[-1] == whole.best_value < max(points.y)
    assert len(points.x) == 48


def test_names_are_escaped_and_axes_named(staged: scrimp.Study) -> None:
    picture = scrimp.plots.history(staged, over="budget")
    assert picture.layout.title.text == "Best val_error of &lt;i&gt;staged&lt;/i&gt; over budget"
    assert picture.layout.xaxis.title.text == "budget spent (epochs)"
    assert picture.layout.yaxis.title.text == "val_error (minimize)"
    assert f"{staged.best_value:.6g}" in picture.layout.meta["alternative"]


def test_an_empty_study_has_an_empty_picture() -> None:
    study = scrimp.create_study(
        "e", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    picture = scrimp.plots.history(study)
    assert (
        not picture.data[1].x and "nothing was reported yet" in picture.layout.meta["alternative"]
    )


def test_an_unknown_axis_is_said(whole: scrimp.Study) -> None:
    with pytest.raises(StudyError, match="'trials', 'time' or 'budget'"):
        scrimp.plots.history(whole, over="moons")
