"""Pictures of a selection by question show the race of its log."""

from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.checkpoint_selection.question_policy import race_of
from scrimp.errors import StudyError
from tests.checkpoint_selection.test_question_policy import STEPS, TASKS, evaluate


@pytest.fixture(scope="module")
def selection() -> scrimp.Selection:
    chosen = scrimp.create_selection(
        "s", checkpoints=STEPS, tasks=TASKS, storage="memory://", seed=0
    )
    chosen.run(evaluate, answers=0.2, progress=False)
    return chosen


def named(picture: Any, name: str) -> Any:
    return next(item for item in picture.data if item.name == name)


def test_survivors_over_the_answers_asked(selection: scrimp.Selection) -> None:
    picture = scrimp.plots.selection_race(selection)
    race = race_of(selection.history)[1]
    line = named(picture, "in the race")
    assert line.x[-1] == race.counts.sum() and line.y[0] == 12 and line.y[-1] == len(race.alive)
    assert list(line.y) == sorted(line.y, reverse=True)
    gone = named(picture, "eliminated")
    listed = {word for text in gone.text for word in text.removeprefix("eliminated: ").split(", ")}
    assert listed == {str(STEPS[row]) for row in range(12) if row not in race.alive}


def test_scores_have_intervals_and_the_answer_a_star(selection: scrimp.Selection) -> None:
    picture, best = scrimp.plots.selection_scores(selection), selection.recommend()
    star = named(picture, "answer")
    assert list(star.x) == [str(best.checkpoint)]
    assert star.y[0] == pytest.approx(best.expected_score)
    shown = named(picture, "in the race"), named(picture, "eliminated")
    assert sum(len(item.x) for item in shown) == 12
    assert all(min(item.error_y.array) > 0 for item in shown)
    low, high = best.interval
    assert f"{low:.4f} to {high:.4f}" in picture.layout.title.text


def test_tasks_by_what_one_answer_tells(selection: scrimp.Selection) -> None:
    picture = scrimp.plots.selection_tasks(selection)
    race = race_of(selection.history)[1]
    np.testing.assert_allclose(named(picture, "noise of one answer").y, np.sqrt(race.noise))
    assert sum(named(picture, "share of answers").y) == pytest.approx(100.0)
    assert "discriminates most" in picture.layout.title.text


def test_answers_asked_and_saved_add_up(selection: scrimp.Selection) -> None:
    picture = scrimp.plots.selection_saved(selection)
    asked, saved = named(picture, "asked").y, named(picture, "saved").y
    assert {int(a + b) for a, b in zip(asked, saved, strict=True)} == {200}
    assert sum(asked) == selection.recommend().asked


def test_other_selections_and_empty_ones_are_refused() -> None:
    cells = scrimp.create_selection("c", checkpoints=[1, 2], tasks=["a"], storage="memory://")
    empty = scrimp.create_selection("e", checkpoints=[1, 2], tasks={"a": 9}, storage="memory://")
    for name in ("race", "scores", "tasks", "saved"):
        draw = getattr(scrimp.plots, f"selection_{name}")
        with pytest.raises(StudyError, match="whole benchmarks"):
            draw(cells)
        with pytest.raises(StudyError, match="no answers yet"):
            draw(empty)
