"""Start designs, names and positions."""

import numpy as np
import pytest

from scrimp.errors import MethodError
from scrimp.selection.methods import METHODS, find_method, positions, quarter_start, two_per_task
from scrimp.selection.score_table import ScoreTable
from scrimp.selection.task_grid_icm import Coregional, CoregionalDiagonal
from scrimp.selection.task_grid_models import RowEffects, SharedCurve

NAMES = ["kg", "ei", "ei-icm", "independent", "top-two", "random", "stride", "last"]


def test_every_promised_name_exists():
    assert sorted(METHODS) == sorted(NAMES)
    assert find_method("auto") is METHODS["kg"]
    with pytest.raises(MethodError, match="no method 'best' selects checkpoints; there are kg, ei"):
        find_method("best")


def test_a_quarter_of_the_tasks_gets_two_cells_far_apart():
    table = ScoreTable.empty(list(range(50)), [f"t{j}" for j in range(40)])
    cells = quarter_start(table, np.random.default_rng(0))
    assert len(cells) == len(set(cells)) == 20
    columns = [column for _, column in cells]
    assert len(set(columns)) == 10
    for first, second in zip(cells[::2], cells[1::2], strict=True):
        assert first[1] == second[1]
        assert 18 <= abs(first[0] - second[0]) <= 32
    rows = np.sort([row for row, _ in cells])
    assert np.diff(np.concatenate([[-1], rows, [50]])).max() <= 8


def test_start_designs_of_tiny_tables():
    one = ScoreTable.empty([1], ["a"])
    assert quarter_start(one, np.random.default_rng(0)) == [(0, 0)]
    assert two_per_task(one, np.random.default_rng(0)) == [(0, 0)]
    two = ScoreTable.empty([1, 2], ["a"])
    assert sorted(quarter_start(two, np.random.default_rng(0))) == [(0, 0), (1, 0)]


def test_two_checkpoints_for_every_task_in_two_rounds():
    table = ScoreTable.empty(list(range(9)), ["a", "b", "c"])
    cells = two_per_task(table, np.random.default_rng(1))
    assert sorted(column for _, column in cells[:3]) == [0, 1, 2]
    assert len(set(cells)) == 6


def test_positions_are_warped_steps_or_places():
    table = ScoreTable.empty([400, 100, 900], ["a"])
    assert positions(table, "sqrt").tolist() == [20.0, 10.0, 30.0]
    assert positions(table, "rank").tolist() == [1.0, 0.0, 2.0]
    assert positions(table, "step").tolist() == [400.0, 100.0, 900.0]
    np.testing.assert_allclose(positions(table, "log"), np.log([418.0, 118.0, 918.0]))
    assert np.isfinite(positions(ScoreTable.empty([0], ["a"]), "log")).all()


def test_settings_choose_the_coordinate_and_the_task_matrix():
    assert (
        find_method("kg", {"coordinate": "log"}).coordinate == "log"
        and find_method("kg").coordinate == "sqrt"
    )
    assert find_method("EI-ICM") == find_method("ei-icm")
    assert find_method("ei-icm").model == find_method("ei-icm", {"rank": 2}).model == Coregional(2)
    assert find_method("ei-icm", {"rank": "full"}).model == CoregionalDiagonal(
        "full", diagonal=False
    )
    assert find_method("ei-icm", {"diagonal": True, "rank": 1}).model == CoregionalDiagonal(
        1, diagonal=True
    )
    for name, settings, words in (
        (
            "kg",
            {"rank": 2},
            "method 'kg' has no setting 'rank' for checkpoints; its settings: coordinate",
        ),
        ("stride", {"coordinate": "step"}, "its settings: none"),
        ("ei-icm", {"rank": 0}, "rank is 0; it must be a whole number"),
        ("ei-icm", {"rank": True}, "rank is True"),
        ("ei-icm", {"diagonal": "yes"}, "diagonal is 'yes'; it must be true or false"),
        (
            "kg",
            {"coordinate": "epoch"},
            "coordinate is 'epoch'; a checkpoint may lie at its step, sqrt, log, rank",
        ),
    ):
        with pytest.raises(MethodError, match=words):
            find_method(name, settings)


def test_rows_without_an_order_have_independent_effects():
    ordered, loose = (
        ScoreTable.empty([1, 2], ["a"]),
        ScoreTable.empty(["x", "y"], ["a"], ordered=False),
    )
    assert isinstance(METHODS["kg"].grid_model(ordered), SharedCurve)
    assert isinstance(METHODS["kg"].grid_model(loose), RowEffects)
    assert METHODS["stride"].grid_model(loose) is None


def test_how_often_a_new_task_is_opened_is_a_setting():
    assert find_method("kg").opens == 3 and find_method("kg", {"opens": 0}).opens == 0
    with pytest.raises(MethodError, match="opens is -1"):
        find_method("top-two", {"opens": -1})
    with pytest.raises(MethodError, match="no setting 'opens'"):
        find_method("ei-icm", {"opens": 3})
