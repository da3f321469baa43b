"""Score tables: growing them, and what they refuse."""

import numpy as np
import pytest

from scrimp.checkpoint_selection.score_table import ScoreTable, known_error
from scrimp.errors import TableError


@pytest.fixture
def table() -> ScoreTable:
    return ScoreTable.empty([100, 200, 400], ["a", "b"]).with_settings(costs={"b": 3.0})


def test_scores_are_added_to_a_new_table(table):
    told = table.with_score(200, "b", 0.6, stderr=0.01)
    assert not table.seen.any()
    assert told.seen.tolist() == [[False, False], [False, True], [False, False]]
    assert told.scores[1, 1] == 0.6
    assert told.errors[1, 1] == 0.01
    assert told.spent == 3.0
    assert told.label((1, 1)) == (200, "b")


def test_weights_sum_to_one():
    table = ScoreTable.empty(["x", "y"], ["a", "b"]).with_settings(weights={"a": 3.0})
    assert table.weights.tolist() == [0.75, 0.25]
    assert table.steps.tolist() == [0.0, 1.0]
    assert ScoreTable.empty(["x", "y"], ["a"], ordered=False).steps is None
    for names, steps in (
        (["run7/step-500", "run7/step-2000"], [500.0, 2000.0]),
        (["step2", "step1"], [2.0, 1.0]),
        (["a1", "b2"], [0.0, 1.0]),
        (["1-1", "2-2"], [0.0, 1.0]),
        (["step10", "final"], [0.0, 1.0]),
        (["step10"], [0.0]),
    ):
        assert ScoreTable.empty(names, ["a"]).steps.tolist() == steps


def test_a_cell_told_twice(table):
    told = table.with_score(200, "b", 0.6)
    assert told.with_score(200, "b", 0.6).scores[1, 1] == 0.6
    with pytest.raises(TableError, match=r"has the score 0\.6 already and is now given as 0\.7"):
        told.with_score(200, "b", 0.7)
    assert told.with_score(200, "b", 0.7, replacing=True).scores[1, 1] == 0.7


def test_failed_cells_cost_and_may_be_measured_later(table):
    failed = table.with_failures([(100, "b")])
    assert failed.failed[0, 1]
    assert failed.spent == 3.0
    later = failed.with_score(100, "b", 0.5)
    assert not later.failed.any()
    assert not later.with_failures([(100, "b")]).failed.any()


def test_new_checkpoints(table):
    told = table.with_score(100, "a", 0.5).with_checkpoints([400, 800, 1600])
    assert told.checkpoints == (100, 200, 400, 800, 1600)
    assert told.steps.tolist() == [100.0, 200.0, 400.0, 800.0, 1600.0]
    assert told.scores.shape == told.errors.shape == told.failed.shape == (5, 2)
    assert told.scores[0, 0] == 0.5


@pytest.mark.parametrize(
    ("score", "stderr", "message"),
    [
        (float("nan"), None, "not a number; mark a cell that could not be measured as failed"),
        (float("inf"), None, "beyond"),
        (-1e12, None, "beyond"),
        (0.5, -0.1, "standard error"),
        (0.5, float("nan"), "standard error"),
    ],
)
def test_impossible_scores(table, score, stderr, message):
    with pytest.raises(TableError, match=message):
        table.with_score(100, "a", score, stderr)


def test_unknown_names_list_the_known_ones(table):
    with pytest.raises(TableError, match="task 'c' is not in the table; known: a, b"):
        table.with_score(100, "c", 0.5)
    with pytest.raises(
        TableError, match="checkpoint 300 is not in the table; known: 100, 200, 400"
    ):
        table.with_score(300, "a", 0.5)
    with pytest.raises(TableError, match="cost of task 'c'"):
        ScoreTable.empty([1], ["a"]).with_settings(costs={"c": 1.0})


@pytest.mark.parametrize(
    ("checkpoints", "tasks", "message"),
    [
        ([1, 1], ["a"], "checkpoint 1 appears twice"),
        ([1, 2], ["a", "a"], "task 'a' appears twice"),
        ([], ["a"], "no checkpoint"),
        ([1], [], "no task"),
        ([-5, 1], ["a"], "not negative"),
        ([float("nan"), 1.0], ["a"], "finite"),
    ],
)
def test_impossible_tables(checkpoints, tasks, message):
    with pytest.raises(TableError, match=message):
        ScoreTable.empty(checkpoints, tasks)


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan")])
def test_costs_weights_and_scales_are_positive(value):
    for kind in ("costs", "weights", "scales"):
        with pytest.raises(TableError, match="finite number above zero"):
            ScoreTable.empty([1], ["a"]).with_settings(**{kind: {"a": value}})


def test_a_score_in_other_units_is_pointed_out():
    table = ScoreTable.empty(list(range(6)), ["a"])
    for step, score in enumerate([0.60, 0.61, 61.2, 0.62, 0.60]):
        table = table.with_score(step, "a", score)
    assert len(table.warnings) == 1
    assert "61.2 of checkpoint 2 on a" in table.warnings[0]
    fine = table.with_score(2, "a", 0.612, replacing=True)
    assert fine.warnings == ()
    assert np.isfinite(fine.scores[2, 0])


def test_a_task_that_grows_from_nothing_is_no_reason_to_warn():
    table = ScoreTable.empty(list(range(8)), ["grows", "other"])
    for step, score in enumerate([0.0, 0.0, 0.0, 0.001, 0.0, 0.5, 0.6, 0.61]):
        assert table.warnings == ()
        table = table.with_score(step, "grows", score).with_score(step, "other", 0.3)
    assert table.warnings == ()


def test_standard_errors_that_nobody_knows():
    assert [known_error(given) for given in (None, "", " N/A ", "n/a")] == [None] * 4
    assert known_error("0.25") == known_error(np.float32(0.25)) == 0.25
    with pytest.raises(TableError, match="standard error 'unknown' is not a number; leave it out"):
        known_error("unknown")


def test_a_group_is_open_with_its_first_cell() -> None:
    table = ScoreTable.empty([1, 2], ["a", "b", "c", "d"]).with_settings(groups={"g": ["a", "c"]})
    assert table.groups is not None and table.groups[0] == table.groups[2]
    assert len(set(table.groups.tolist())) == 3
    known = np.zeros((2, 4), dtype=bool)
    known[1, 2] = True
    assert table.opened(known).tolist() == [True, False, True, False]
    assert table.with_settings(groups={}).opened(known).tolist() == [False, False, True, False]
    assert table.part(np.array([0]), np.array([2, 3])).groups is not None
    with pytest.raises(TableError, match="another group or not among"):
        table.with_settings(groups={"g": ["a"], "h": ["a"]})
    with pytest.raises(TableError, match="another group or not among"):
        table.with_settings(groups={"g": ["x"]})
