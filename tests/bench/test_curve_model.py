"""Surrogates of training runs: the formula by hand, the places of values, and what a file must
hold."""

import json
import math

import numpy as np
import pytest

from scrimp.bench.curve_model import curve_units, is_curve_model, read_curve_model
from scrimp.errors import TableError
from scrimp.space.parameter import Categorical, Float, Int, Ordinal
from scrimp.space.space import Space

META = {
    "format": "gp-curves-1",
    "name": "toy_surrogate",
    "metric": "loss",
    "goal": "min",
    "space": [
        {"name": "lr", "type": "float", "low": 1e-4, "high": 1.0, "log": True},
        {"name": "depth", "type": "int", "low": 1, "high": 5},
    ],
    "budget": {"name": "epoch", "levels": [1, 2, 4]},
}


@pytest.fixture
def surrogate(tmp_path):
    """Writes a surrogate of two components over lr and depth, with arrays replaced."""

    def write(meta=None, **changes):
        rng = np.random.default_rng(0)
        arrays = {
            "inputs": rng.random((6, 2)),
            "weights": rng.standard_normal((2, 6)),
            "length_scales": np.array([[0.3, 0.5], [1.0, 2.0]]),
            "amplitude": np.array([1.0, 0.4]),
            "offset": np.array([0.1, -0.2]),
            "scale": np.array([2.0, 0.5]),
            "mean_curve": np.array([1.0, 0.5, 0.2]),
            "components": np.array([[0.5, 0.6, 0.7], [0.7, 0.0, -0.7]]),
            **changes,
        }
        path = tmp_path / "toy.npz"
        np.savez(
            path,
            meta=json.dumps({**META, **(meta or {})}),
            **{k: a for k, a in arrays.items() if a is not None},
        )
        return path

    return write


def test_the_formula_number_by_number(surrogate):
    path = surrogate()
    file = np.load(path)
    config = {"lr": 0.01, "depth": 2}
    x = [math.log(0.01 / 1e-4) / math.log(1e4), 0.25]
    expected = file["mean_curve"].copy()
    for j in range(2):
        z = file["offset"][j]
        for i in range(6):
            r = math.dist(
                [x[k] / file["length_scales"][j, k] for k in range(2)],
                [file["inputs"][i, k] / file["length_scales"][j, k] for k in range(2)],
            )
            kernel = (1 + math.sqrt(5) * r + 5 * r * r / 3) * math.exp(-math.sqrt(5) * r)
            z += file["scale"][j] * file["amplitude"][j] * kernel * file["weights"][j, i]
        expected += z * file["components"][j]
    model = read_curve_model(path)
    np.testing.assert_allclose(model.arrays([config])[0][0], np.exp(expected), rtol=1e-10)
    assert (model.name, model.unit, model.levels) == ("toy_surrogate", "epoch", (1.0, 2.0, 4.0))


def test_every_parameter_reaches_from_0_to_1():
    space = Space(
        n=Int(1, 5),
        m=Int(1, 100, log=True),
        width=Ordinal([64, 128, 256, 384]),
        kind=Categorical(["a", "b", "c"]),
        x=Float(0, 4, when={"kind": "a"}),
    )
    configs = [
        {"n": 1, "m": 1, "width": 64, "kind": "a", "x": 1.0},
        {"n": 5, "m": 100, "width": 384, "kind": "c"},
        {"n": 2, "m": 10, "width": 128, "kind": "b"},
    ]
    units = curve_units(space, configs)
    expected = [[0, 0, 0, 0, 0.25], [1, 1, 1, 1, 0.5], [0.25, 0.5, 1 / 3, 0.5, 0.5]]
    np.testing.assert_allclose(units, expected, atol=1e-12)


def test_surrogates_are_told_from_tables(surrogate, write_table, tmp_path):
    assert is_curve_model(surrogate())
    assert not is_curve_model(write_table())
    assert not is_curve_model(tmp_path / "missing.npz")


def test_what_is_wrong_is_named(surrogate):
    with pytest.raises(TableError, match="no array 'offset'"):
        read_curve_model(surrogate(offset=None))
    with pytest.raises(
        TableError, match=r"components has shape \(2, 2\); it must be \(k, L\), where .*L = 3"
    ):
        read_curve_model(surrogate(components=np.ones((2, 2))))
    with pytest.raises(TableError, match="goal is 'max'"):
        read_curve_model(surrogate({"goal": "max"}))


def test_the_real_surrogate_knows_the_runs_it_learned_from(data):
    from scrimp.bench.tables import read_table

    model = read_curve_model(data / "surrogates" / "gpt_python_surrogate.npz")
    table = read_table(data / "curves" / "gpt_python.npz")
    task = table.task(table.tasks[0])
    gaps = curve_units(model.space, task.pool.configs)[:, None] - model.scores[0].inputs
    assert np.abs(gaps).max(axis=2).min(axis=1).max() < 1e-9
    final = model.arrays(task.pool.configs)[0][:, -1]
    assert np.corrcoef(np.log(final), np.log(task.value[:, -1]))[0, 1] > 0.995
