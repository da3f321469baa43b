"""The suite of several objectives: regrets from 1 to 0, and tables."""

import json

import numpy as np
import pytest

from scrimp.bench.results import Cell
from scrimp.bench.tables import read_table
from scrimp.bench.trade_off_formulas import TRADE_OFFS
from scrimp.bench.trade_off_suite import (
    FrontMeter,
    run_trade_off,
    table_objectives,
    trade_off_cells,
)
from scrimp.errors import TableError


def write_table(path, elapsed=True):
    x = np.linspace(0, 1, 20)
    space = [
        {"name": "n_units_1", "type": "int", "low": 1, "high": 20, "log": False},
        {"name": "n_units_2", "type": "int", "low": 1, "high": 4, "log": False},
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
        "configs": np.column_stack([np.arange(1, 21), np.arange(20) % 4 + 1]).astype(float),
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


def test_a_table_without_run_times_is_refused_at_once(tmp_path):
    write_table(tmp_path / "small.npz", elapsed=False)
    with pytest.raises(TableError, match="no run times"):
        trade_off_cells(["random"], [], [tmp_path / "small.npz"], 1, 30)


def test_an_unknown_problem_is_refused():
    with pytest.raises(TableError, match="zdt1"):
        trade_off_cells(["random"], ["zdt5"], [], 1, 1)


def test_every_problem_can_be_measured():
    for problem in TRADE_OFFS.values():
        assert FrontMeter(problem.front).best > 0.1
