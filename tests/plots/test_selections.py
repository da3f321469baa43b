"""Pictures of selections show the log and the model that decided."""

from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.errors import StudyError

TASKS = ["a", "b<i>", "c"]


def made(method: str = "kg", checkpoints: Any = range(100, 2100, 100)) -> scrimp.Selection:
    return scrimp.create_selection(
        "s", checkpoints=list(checkpoints), tasks=TASKS, method=method, storage="memory://", seed=0
    )


@pytest.fixture(scope="module")
def selection() -> scrimp.Selection:
    chosen = made()
    for _ in range(18):
        checkpoint, task = chosen.ask()
        chosen.tell(checkpoint, task, 0.5 + checkpoint / 1e4 + 0.1 * TASKS.index(task))
    chosen.tell(200, "c", state="failed") if not chosen.scores.seen[1, 2] else chosen.tell(
        300, "c", state="failed"
    )
    chosen.ask()
    return chosen


def trace(picture: Any, name: str) -> Any:
    return next(item for item in picture.data if item.name == name)


def test_the_grid_marks_what_was_evaluated(selection: scrimp.Selection) -> None:
    picture = scrimp.plots.selection_grid(selection)
    table = selection.scores
    dots = trace(picture, "measured")
    assert len(dots.x) == table.seen.sum() == 18
    assert sorted(dots.customdata) == sorted(table.scores[table.seen].tolist())
    assert len(trace(picture, "failed").x) == 1
    (pending,) = selection.pending
    assert trace(picture, "under evaluation").x == (str(pending[0]),)
    shades = np.array(picture.data[0].z)
    assert (
        shades.shape == (3, 20)
        and np.isfinite(shades).all()
        and (shades[:, -1] > shades[:, 0]).all()
    )
    assert "b&lt;i&gt;" in picture.data[0].y and "18 of 60" in picture.layout.title.text
    assert "checkpoint 2000" in picture.layout.meta["alternative"]


def test_the_curve_has_a_band_and_tasks(selection: scrimp.Selection) -> None:
    picture = scrimp.plots.selection_curve(selection)
    mean, low, high = (
        trace(picture, "mean score"),
        trace(picture, "two standard deviations"),
        picture.data[0],
    )
    assert mean.x == tuple(range(100, 2100, 100)) and mean.y[-1] > mean.y[0]
    assert (np.array(low.y) <= np.array(mean.y)).all() and (
        np.array(high.y) > np.array(low.y)
    ).any()
    answer = selection.recommend()
    star = trace(picture, "answer")
    assert star.x == (answer.checkpoint,) and star.y[0] == pytest.approx(answer.expected_score)
    row = mean.x.index(answer.checkpoint)
    assert (high.y[row] - mean.y[row]) / 2 == pytest.approx(answer.standard_error, abs=1e-9)
    measured = trace(picture, "a, measured")
    assert all(
        y == pytest.approx(0.5 + x / 1e4) for x, y in zip(measured.x, measured.y, strict=True)
    )
    alone = scrimp.plots.selection_curve(selection, tasks=["c"])
    assert [item.name for item in alone.data if item.name and "measured" in item.name] == [
        "c, measured"
    ]
    with pytest.raises(StudyError, match="no task 'mmlu'"):
        scrimp.plots.selection_curve(selection, tasks=["mmlu"])


def test_confidence_over_time_ends_with_what_is_recommended_now(
    selection: scrimp.Selection,
) -> None:
    picture = scrimp.plots.selection_confidence(selection)
    probability, loss = picture.data
    answer = selection.recommend()
    assert probability.y[-1] == answer.probability_best and loss.y[-1] == answer.expected_loss
    assert list(probability.x) == sorted(probability.x) and probability.x[-1] == 18
    assert (
        all(0 <= value <= 1 for value in probability.y)
        and "probability" in picture.layout.title.text
    )


def test_pictures_without_a_model_without_scores_and_without_order() -> None:
    for chosen in (made(), made("stride"), made(checkpoints=["base", "chat", "code"])):
        cells = 3 * len(chosen.checkpoints)
        assert (
            scrimp.plots.selection_grid(chosen).layout.title.text == f"0 of {cells} cells evaluated"
        )
        assert scrimp.plots.selection_curve(chosen).data
        with pytest.raises(StudyError, match="no stated confidence"):
            scrimp.plots.selection_confidence(chosen)
    strided = made("stride")
    strided.run(lambda checkpoint, task: checkpoint / 1000, share=0.2)
    assert len(trace(scrimp.plots.selection_grid(strided), "measured").x) == 12
    with pytest.raises(StudyError, match="no stated confidence"):
        scrimp.plots.selection_confidence(strided)
