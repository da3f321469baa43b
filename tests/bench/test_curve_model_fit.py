"""Surrogates fitted to tables whose runs follow a known rule."""

import numpy as np
import pytest

from scrimp.bench.curve_model import fit_curve_model, fitted_gp_mean
from scrimp.bench.curve_tasks import modelled_curves
from scrimp.bench.tables import read_table
from scrimp.errors import TableError

LEVELS = 12
CONFIGS = [{"lr": 0.002, "depth": 3}, {"lr": 0.05, "depth": 1}, {"lr": 0.0005, "depth": 4}]


def test_a_process_foretells_new_runs_and_their_cost(known_runs):
    model, quality = fit_curve_model(known_runs(), "t", "gp")
    value, cost = model.arrays(CONFIGS)
    expected = known_runs.truth(
        np.array([c["lr"] for c in CONFIGS]), np.array([c["depth"] for c in CONFIGS])
    )
    np.testing.assert_allclose(value, expected, rtol=0.02)
    np.testing.assert_allclose(cost, np.repeat([[6.0], [2.0], [8.0]], LEVELS, axis=1), rtol=0.02)
    assert quality.r2 > 0.99 and quality.rank_correlation > 0.98 and quality.failing is None
    assert (quality.rows, model.log) == (80, True)


def test_a_forest_does_so_more_coarsely(known_runs):
    model, quality = fit_curve_model(known_runs(), "t", "forest")
    assert 0.7 < quality.r2 <= 1.0 and quality.rank_correlation > 0.8
    assert model.arrays(CONFIGS)[0].shape == (3, LEVELS)


def test_failing_is_learned(known_runs):
    model, quality = fit_curve_model(known_runs(fails=True), "t", "gp")
    assert quality.failing is not None and quality.failing > 0.85
    good, bad = model.arrays([{"lr": 0.001, "depth": 2}, {"lr": 0.8, "depth": 2}])[0]
    assert np.isfinite(good).all()
    assert 4 <= np.isfinite(bad).sum() <= 8 and np.isnan(bad[8:]).all()


def test_the_length_of_a_run_is_learned(known_runs):
    model, _ = fit_curve_model(known_runs(lengths=True), "t", "gp")
    value, cost = model.arrays([{"lr": 0.01, "depth": 1}, {"lr": 0.01, "depth": 4}])
    assert np.isfinite(cost).sum(axis=1).tolist() == [4, 10]
    assert np.isfinite(value).sum(axis=1).tolist() == [4, 10]
    np.testing.assert_allclose(
        value[1, 9], known_runs.truth(np.array([0.01]), np.array([4.0]))[0, 9], rtol=0.1
    )


def test_values_below_zero_are_learned_as_they_are(known_runs):
    model, quality = fit_curve_model(known_runs(sign=-1.0), "t", "gp")
    assert not model.log and quality.r2 > 0.99
    assert (model.arrays(CONFIGS)[0] < 0).all()


def test_the_mean_of_a_process_against_its_posterior():
    from scrimp.gp.columns import Column
    from scrimp.surrogates.exact_gp import ExactGP
    from scrimp.surrogates.surrogate import Data

    rng = np.random.default_rng(0)
    x, new = rng.random((30, 2)), rng.random((5, 2))
    y = 5.0 + 3.0 * np.sin(4 * x[:, 0]) + x[:, 1]
    chosen = np.random.default_rng(1)
    found = fitted_gp_mean(x, y, chosen)(new)
    again = np.random.default_rng(1)
    order = again.permutation(30)
    scaled = (y - y.mean()) / y.std()
    fitted = ExactGP.over([Column()] * 2).fit(Data(x[order], scaled[order]), again)
    np.testing.assert_allclose(
        found, y.mean() + y.std() * fitted.posterior(new).mean[:, 0], rtol=1e-8
    )


def test_what_cannot_be_fitted_is_refused(known_runs, tmp_path, write_table, data):
    with pytest.raises(TableError, match="there are forest, gp"):
        modelled_curves(tmp_path / "known.npz", "tree")
    with pytest.raises(TableError, match="a surrogate already"):
        modelled_curves(data / "surrogates" / "gpt_python_surrogate.npz", "gp")
    small = read_table(write_table(value=np.full((2, 12, 2), np.nan)))
    with pytest.raises(TableError, match="0 runs without failure"):
        fit_curve_model(small, "one", "gp")
