"""Every reported metric has a panel."""

import pytest
from plotly.graph_objects import Figure

import scrimp
from scrimp.errors import StudyError
from scrimp.plots.learning_curves import add_limits, check_metric, reported_metrics


def test_without_budgets_last_values_over_trials(whole: scrimp.Study) -> None:
    picture = scrimp.plots.metrics(whole)
    score, memory = picture.data
    found = {beside[0]: y for beside, y in zip(memory.customdata, memory.y, strict=True)}
    assert found == {trial.id: trial.params["a"] for trial in whole.trials}
    assert [title.text for title in picture.layout.annotations] == ["score", "memory"]
    assert picture.layout.shapes[0].y0 == 0.8 and len(score.x) == 48
    assert "limits" in picture.layout.meta["alternative"]


def test_with_budgets_a_curve_per_trial(staged: scrimp.Study) -> None:
    picture = scrimp.plots.metrics(staged, trials=[staged.best_trial.id])
    (line,) = picture.data
    expected = [(point.step, point.metrics["val_error"]) for point in staged.best_trial.curve]
    assert list(zip(line.x, line.y, strict=True)) == expected
    assert line.meta["trial"] == staged.best_trial.id


def test_names_and_limits(whole: scrimp.Study) -> None:
    assert reported_metrics(whole.history) == ["score", "memory"]
    with pytest.raises(StudyError, match="there are score, memory"):
        check_metric(whole.history, "disk")
    picture = Figure()
    assert add_limits(picture, None) == [] and add_limits(picture, scrimp.AtLeast(2)) == [2]
    assert add_limits(picture, scrimp.Equals(1.0, 0.25)) == [0.75, 1.25]
    assert [line.y0 for line in picture.layout.shapes] == [2, 0.75, 1.25]
