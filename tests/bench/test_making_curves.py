"""A table of training curves."""

import numpy as np
import pytest

from scrimp.bench.curve_tasks import open_curves
from scrimp.bench.making import (
    MakingSettings,
    _curve_splits,
    _epoch,
    _trained,
    run_curve_work,
    table_work,
    write_curves,
)
from scrimp.bench.tables import read_table

SMALL = MakingSettings(configs=6, small=True)


def test_a_small_table(tmp_path):
    cells = table_work("curves", "curves", SMALL)
    records = [run_curve_work(cell) for cell in cells]
    assert run_curve_work(cells[2])["value"] == records[2]["value"]
    write_curves(tmp_path / "curves.npz", SMALL, records)
    runs = open_curves(tmp_path / "curves.npz")
    assert runs.tasks == ("iris", "moons")
    task = runs.task("iris")
    assert task.curves.levels == (1.0, 2.0, 3.0, 4.0, 5.0) and task.scale.full == 5.0
    assert task.scale.best < np.log(3)  # better than not knowing
    write_curves(tmp_path / "curves.npz", SMALL, records, times=True)
    elapsed = read_table(tmp_path / "curves.npz").elapsed
    np.testing.assert_array_equal(elapsed[1, 3], records[3]["elapsed"][1])


CONFIG = {
    "solver": "sgd",
    "alpha": 1e-4,
    "batch_size": 16,
    "width": 16,
    "depth": 1,
    "activation": "relu",
}


def test_training_goes_on_from_epoch_to_epoch_and_divergence_ends_it():
    task = _curve_splits("small", 0)[0][0]
    good, seconds = _trained({**CONFIG, "learning_rate_init": 0.05, "momentum": 0.9}, task, 12)
    assert good[11] < 0.6 * good[0] and seconds == sorted(seconds)
    bad, _ = _trained({**CONFIG, "learning_rate_init": 1e200, "momentum": 0.9}, task, 3)
    assert bad[-1] is None


def test_other_errors_are_not_taken_for_divergence():
    class Broken:
        def partial_fit(self, *_, **__):
            raise ValueError("classes must be passed")

    with pytest.raises(ValueError, match="classes"):
        _epoch(Broken(), _curve_splits("small", 0)[0][0], np.arange(3), (0.0, 1.0))
