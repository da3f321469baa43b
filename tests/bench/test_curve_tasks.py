"""Runs out of tables and surrogates: costs, ends, failures, and the scale of regret."""

import json

import numpy as np
import pytest

from scrimp.bench.curve_tasks import NetworkCurves, Scale, network_curves, table_curves
from scrimp.bench.tables import read_table
from scrimp.bench.yahpo import read_yahpo
from scrimp.errors import TableError

NAN = np.nan


@pytest.fixture
def table(tmp_path):
    """Makes a table of one task over x, with these curves."""

    def make(value, elapsed=None, end=None, budget="epoch"):
        value = np.asarray(value, dtype=float)[None]
        levels = list(range(1, value.shape[2] + 1))
        meta = {
            "format": 1,
            "name": "toy",
            "metric": "loss",
            "goal": "min",
            "space": [{"name": "x", "type": "float", "low": 0.0, "high": 1.0}],
            "budget": None if budget is None else {"name": budget, "levels": levels},
        }
        extra = {}
        if elapsed is not None:
            extra["elapsed"] = np.asarray(elapsed, dtype=float)[None]
        if end is not None:
            extra["end"] = np.asarray(end)[None]
        configs = np.linspace(0, 1, value.shape[1])[:, None]
        path = tmp_path / "toy.npz"
        np.savez(
            path,
            meta=json.dumps(meta),
            tasks=np.array(["t"]),
            configs=configs,
            value=value,
            **extra,
        )
        return read_table(path)

    return make


def test_a_level_costs_one_unit_without_times(table):
    task = table_curves(table([[3, 2, 1], [6, 5, 4], [9, 8, 7]]), "t")
    run = task.curves.curve({"x": 0.5})
    assert (run.values, run.costs) == ((6.0, 5.0, 4.0), (1.0, 1.0, 1.0))
    assert task.curves.levels == (1.0, 2.0, 3.0)
    assert (task.budget.minimum, task.budget.maximum) == (1.0, 3.0)
    assert task.scale == Scale(1.0, 4.0, 3.0)
    assert [task.scale.regret(value) for value in (1.0, 2.5, 4.0, 7.0)] == [0.0, 0.5, 1.0, 2.0]


def test_times_give_costs_and_a_failed_level_costs_the_median(table):
    value = [[3, 2, 1], [6, NAN, NAN], [9, 8, 7]]
    elapsed = [[1, 3, 6], [5, NAN, NAN], [2, 4, 8]]  # increments 1 2 3, 5, 2 2 4: median 2
    task = table_curves(table(value, elapsed), "t")
    run = task.curves.curve({"x": 0.5})
    assert run.costs == (5.0, 2.0, 2.0)
    assert run.values[0] == 6.0 and np.isnan(run.values[1:]).all()
    assert task.scale == Scale(1.0, 6.0, (6 + 9 + 8) / 3)


def test_runs_may_end_early_and_full_is_the_mean_to_their_end(table):
    task = table_curves(table([[3, 2, 1], [6, NAN, NAN]], end=[3, 1]), "t")
    assert task.curves.curve({"x": 1.0}).values == (6.0,)
    assert task.scale == Scale(1.0, 3.5, 2.0)


def test_runs_without_a_finite_value_have_no_best(table):
    task = table_curves(table([[3, 2, 1], [NAN, NAN, NAN], [9, 8, 7]]), "t")
    assert task.scale == Scale(1.0, 4.0, 3.0)
    with pytest.raises(TableError, match="no finite value"):
        table_curves(table([[NAN, NAN]]), "t")


def test_a_flat_table_has_no_regret():
    assert Scale(1.0, 1.0, 3.0).regret(1.0) == 0.0


def test_final_values_are_no_curves(table):
    with pytest.raises(TableError, match="bench tables"):
        table_curves(table([[1.0], [2.0]], budget=None), "t")


def test_a_surrogate_as_runs(data, tmp_path, monkeypatch):
    network = read_yahpo(data / "surrogates" / "lcbench_yahpo.npz")
    monkeypatch.setattr("scrimp.bench.curve_tasks.DESIGN_CONFIGS", 128)
    task = network_curves(network, network.tasks[0], folder=tmp_path)
    config = network.space.sample(1, np.random.default_rng(0))[0]
    run = task.curves.curve(config)
    raw = network.outputs(network.tasks[0], [config], range(2, 52))
    np.testing.assert_allclose(run.values, 100 - raw["val_accuracy"][0], rtol=1e-6)
    np.testing.assert_allclose(
        np.cumsum(run.costs), np.maximum.accumulate(raw["time"][0]), rtol=1e-5
    )
    assert len(run.values) == 50 and min(run.costs) >= 0
    assert 0 <= task.scale.best < task.scale.median < 100 and task.scale.full > 0
    monkeypatch.setattr(
        NetworkCurves, "measured", lambda self, space, count: pytest.fail("it was kept")
    )
    assert network_curves(network, network.tasks[0], folder=tmp_path).scale == task.scale


def test_units_for_a_surrogate(data, monkeypatch):
    network = read_yahpo(data / "surrogates" / "lcbench_yahpo.npz")
    monkeypatch.setattr("scrimp.bench.curve_tasks.DESIGN_CONFIGS", 16)
    task = network_curves(network, network.tasks[0], unit_cost=True)
    assert task.scale.full == 50.0
    with pytest.raises(TableError, match="no task 'nowhere'"):
        network_curves(network, "nowhere")
