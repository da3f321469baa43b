"""Every kind of file as training runs, and the noise of surrogates."""

import numpy as np
import pytest

from scrimp.bench.curve_suite import CurveSuiteSettings, curve_cells, run_curves
from scrimp.bench.curve_tasks import RELATIVE_NOISE, NoisyCurves, open_curves
from scrimp.errors import TableError


def test_a_table_is_a_pool(write_table):
    runs = open_curves(write_table())
    assert (runs.name, runs.tasks, runs.noise) == ("small", ("one", "two"), 0.0)
    assert runs.task("two") is runs.task("two")
    with pytest.raises(TableError, match="no task 'three'"):
        runs.check("three")
    with pytest.raises(TableError, match="leave out --unit-cost"):
        open_curves(write_table(), True)


def test_a_surrogate_is_one_continuous_task_with_noise(data, tmp_path):
    path = data / "surrogates" / "gpt_python_surrogate.npz"
    runs = open_curves(path, folder=tmp_path)
    assert runs.tasks == ("gpt_python_surrogate",) and runs.noise == RELATIVE_NOISE == 0.005
    with pytest.raises(TableError, match="there are "):
        runs.check("adult")
    task = runs.task(runs.name)
    assert task.scale.full == 27.0 and 0.9 < task.scale.best < 1.1 and 2.4 < task.scale.median < 2.6
    assert (tmp_path / "gpt_python_surrogate.scale.json").exists()
    config = task.space.sample(1, np.random.default_rng(0))[0]
    plain = task.curves.curve(config)

    def drawn(seed):
        return NoisyCurves(task.curves, task.curves.levels, runs.noise, seed).curve(config)

    one, same, other = (drawn(seed) for seed in (3, 3, 4))
    assert one == same != other and one.costs == plain.costs == (1.0,) * 27
    off = np.array([drawn(seed).values for seed in range(40)]) / plain.values - 1
    assert abs(off.std() / 0.005 - 1) < 0.1 and abs(off.mean()) < 5 * 0.005 / np.sqrt(off.size)


def test_a_study_on_a_surrogate(data, tmp_path):
    path = data / "surrogates" / "gpt_python_surrogate.npz"
    cells = curve_cells(path, ["asha"], ["all"], 1, CurveSuiteSettings(4, 1, folder=tmp_path))
    record = run_curves(cells[0])
    assert record["table"] == record["task"] == "gpt_python_surrogate"
    assert record["regret"] == sorted(record["regret"], reverse=True)
    scale = open_curves(path, folder=tmp_path).task(record["task"]).scale
    assert record["value"][-1] == pytest.approx(
        scale.best + record["regret"][-1] * (scale.median - scale.best)
    )
    assert run_curves(cells[0])["trace"] == record["trace"]
