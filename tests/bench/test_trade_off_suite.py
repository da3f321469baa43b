"""The suite of several objectives: regrets from 1 to 0, and tables."""

import json

import numpy as np
import pytest

from scrimp.bench.results import Cell
from scrimp.bench.tables import read_table
from scrimp.bench.trade_off_formulas import TRADE_OFFS
from scrimp.bench.trade_off_suite import (
    FrontMeter,
    question_of,
    run_trade_off,
    table_objectives,
    trade_off_cells,
    weights_of,
)
from scrimp.errors import TableError
from scrimp.space.space import Pool


def write_table(path, elapsed=True, names=("n_units_1", "n_units_2"), configs=None, widest=20):
    x = np.linspace(0, 1, 20)
    if configs is None:
        configs = np.column_stack([np.arange(1, 21), np.arange(20) % 4 + 1]).astype(float)
    space = [
        {"name": names[0], "type": "int", "low": 1, "high": widest, "log": False},
        {"name": names[1], "type": "int", "low": 1, "high": 4, "log": False},
    ]
    meta = {
        "format": 1,
        "name": "small",
        "metric": "loss",
        "goal": "min",
        "space": space,
        "budget": None,
    }
    arrays = {
        "meta": np.array(json.dumps(meta)),
        "tasks": np.array(["one"]),
        "configs": configs,
        "value": (1 - x)[None, :, None],
    }
    if elapsed:
        arrays["elapsed"] = (1 + x**2)[None, :, None]
    np.savez(path, **arrays)


def test_regret_falls_from_one_to_zero():
    meter = FrontMeter(np.array([[0.0, 10.0], [1.0, 0.0]]))
    meter.add(None)
    meter.add(np.array([5.0, 5.0]))  # beyond the reference
    meter.add(np.array([0.0, 10.0]))
    meter.add(np.array([1.0, 0.0]))
    assert meter.regret[:2] == [1.0, 1.0]
    assert 0.4 < meter.regret[2] < 0.6 and meter.regret[3] == pytest.approx(0.0)


@pytest.mark.parametrize("name", ["bnh", "dtlz2"])
def test_a_run_has_a_regret_after_each_trial(name):
    record = run_trade_off(Cell("objectives", "formulas", name, "random", 0, 8))
    assert len(record["regret"]) == 8 and record["decisions"] == 8
    assert all(a >= b for a, b in zip(record["regret"], record["regret"][1:], strict=False))


def test_a_table_gives_value_time_and_weights(tmp_path):
    write_table(tmp_path / "small.npz")
    losses = table_objectives(read_table(tmp_path / "small.npz").task("one"))
    assert losses.shape == (20, 3) and losses[0].tolist() == [1.0, 0.0, np.log10(3)]
    cells = trade_off_cells(["random"], [], [tmp_path / "small.npz"], 1, 30)
    assert run_trade_off(cells[0])["regret"][-1] == pytest.approx(0.0)


def test_a_table_without_run_times_has_its_weights_left(tmp_path):
    write_table(tmp_path / "small.npz", elapsed=False)
    losses = table_objectives(read_table(tmp_path / "small.npz").task("one"))
    assert losses.shape == (20, 2) and losses[0, 1] == np.log10(3)


def test_layers_of_lcbench_narrow_evenly():
    config = {"num_layers": 2, "max_units": 6}
    assert weights_of(config, [config]).tolist() == [6 * 4 + 4 * 2]
    assert weights_of({"x": 1}, [{"x": 1}]) is None


def test_a_table_with_one_objective_is_refused_at_once(tmp_path):
    write_table(tmp_path / "small.npz", elapsed=False, names=("x", "y"))
    with pytest.raises(TableError, match="neither run times nor"):
        trade_off_cells(["random"], [], [tmp_path / "small.npz"], 1, 30)


def test_a_full_grid_is_searched_as_its_space(tmp_path):
    write_table(tmp_path / "part.npz")
    configs = np.array([[i, j] for i in range(1, 6) for j in range(1, 5)], dtype=float)
    write_table(tmp_path / "full.npz", configs=configs, widest=5)
    assert isinstance(question_of(str(tmp_path / "part.npz"), "one").space, Pool)
    assert not isinstance(question_of(str(tmp_path / "full.npz"), "one").space, Pool)


def test_an_unknown_problem_is_refused():
    with pytest.raises(TableError, match="zdt1"):
        trade_off_cells(["random"], ["zdt5"], [], 1, 1)


def test_every_problem_can_be_measured():
    for problem in TRADE_OFFS.values():
        assert FrontMeter(problem.front).best > 0.1
