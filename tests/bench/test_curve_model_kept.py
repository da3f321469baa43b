"""Fitted surrogates in files, and as problems."""

import numpy as np
import pytest

from scrimp.bench.curve_model import fit_curve_model
from scrimp.bench.curve_tasks import fit_note, kept_surrogate, modelled_curves, open_curves
from scrimp.space.space import Pool

CONFIGS = [{"lr": 0.002, "depth": 3}, {"lr": 0.05, "depth": 1}]


@pytest.mark.parametrize("kind", ["gp", "forest"])
def test_a_surrogate_is_kept_and_read_back(known_runs, tmp_path, monkeypatch, kind):
    known = known_runs(fails=True)
    kept = kept_surrogate(known, "t", kind, tmp_path)
    monkeypatch.setattr(
        "scrimp.bench.curve_tasks.fit_curve_model", lambda *_: pytest.fail("it was kept")
    )
    again = kept_surrogate(known, "t", kind, tmp_path)
    np.testing.assert_array_equal(kept.model.arrays(CONFIGS), again.model.arrays(CONFIGS))
    assert (kept.quality, kept.scale) == (again.quality, again.scale)
    assert "rank correlation" in fit_note("t", again) and "accuracy of failures" in fit_note(
        "t", again
    )


def test_another_table_of_the_same_name_is_fitted_anew(known_runs, tmp_path, monkeypatch):
    kept_surrogate(known_runs(), "t", "gp", tmp_path)
    other, fits = known_runs(sign=2.0), []
    monkeypatch.setattr(
        "scrimp.bench.curve_tasks.fit_curve_model",
        lambda *a: fits.append(a) or fit_curve_model(*a),
    )
    assert kept_surrogate(other, "t", "gp", tmp_path).scale.best > 0.35
    assert len(fits) == 1


def test_a_table_as_a_continuous_problem(known_runs, tmp_path):
    known_runs()
    runs = open_curves(modelled_curves(tmp_path / "known.npz", "gp"), folder=tmp_path)
    assert (runs.name, runs.tasks, runs.noise) == ("known-gp", ("t",), 0.005)
    task = runs.task("t")
    assert not isinstance(task.space, Pool) and task.scale.best < 0.25
    curve = task.curves.curve({"lr": 0.0123, "depth": 2})
    assert len(curve.values) == 12 and curve.costs == pytest.approx((4.0,) * 12, rel=0.05)
    assert runs.note("t").startswith("t: held-out final values R2 ")
