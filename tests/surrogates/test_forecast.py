"""Forecast columns: against closed forms, dense posteriors and their own draws."""

import numpy as np
import pytest

from scrimp.surrogates.forecast import ForecastColumn, column_of
from scrimp.testing.acquisitions import random_posterior


def column(natural, mean=(0.3, -1.0), variance=(0.25, 1.0), noise=0.0) -> ForecastColumn:
    spread = np.sqrt(np.array(variance))
    covariance = np.outer(spread, spread) * np.array([[1.0, 0.8], [0.8, 1.0]])
    return ForecastColumn(
        "value", np.array(mean), np.array(variance), natural, lambda: covariance, noise
    )


def test_linear_units_keep_the_normal_moments() -> None:
    mean, std = column(lambda z: 5.0 - 2.0 * z).moments()
    np.testing.assert_allclose(mean, [4.4, 7.0], rtol=1e-12)
    np.testing.assert_allclose(std, [1.0, 2.0], rtol=1e-12)


def test_logarithms_have_log_normal_moments() -> None:
    """E = exp(m + s^2 / 2), Var = (exp(s^2) - 1) E^2."""
    mean, std = column(np.exp).moments()
    m, v = np.array([0.3, -1.0]), np.array([0.25, 1.0])
    np.testing.assert_allclose(mean, np.exp(m + 0.5 * v), rtol=1e-9)
    np.testing.assert_allclose(std, np.sqrt(np.expm1(v)) * np.exp(m + 0.5 * v), rtol=1e-7)


def test_reports_scatter_by_the_noise_too() -> None:
    mean, std = column(lambda z: 3.0 * z, noise=0.44).moments(of_reports=True)
    np.testing.assert_allclose(mean, [0.9, -3.0], rtol=1e-12)
    np.testing.assert_allclose(std, 3.0 * np.sqrt([0.69, 1.44]), rtol=1e-12)


def test_bands_are_quantiles_in_either_direction() -> None:
    rising, falling = column(np.exp).band(2.0), column(lambda z: -np.exp(z)).band(2.0)
    np.testing.assert_allclose(rising, np.exp([[-0.7, -3.0], [1.3, 1.0]]), rtol=1e-12)
    np.testing.assert_allclose(falling, (-rising[1], -rising[0]), rtol=1e-12)


def test_draws_are_joint() -> None:
    draws = column(lambda z: -z).draws(40_000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), [-0.3, 1.0], atol=0.02)
    np.testing.assert_allclose(draws.std(axis=0), [0.5, 1.0], rtol=0.02)
    assert np.corrcoef(draws.T)[0, 1] == pytest.approx(0.8, abs=0.01)


def test_a_model_is_read_in_its_own_units() -> None:
    model, rows = random_posterior(3), np.random.default_rng(1).random((4, 3))
    posterior = model.posterior(rows, joint=True)
    found = column_of("error", model, rows, np.negative)
    mean, std = found.moments()
    np.testing.assert_allclose(mean, -posterior.mean[:, 0], rtol=1e-9)
    np.testing.assert_allclose(std, np.sqrt(posterior.variance), rtol=1e-9)
    np.testing.assert_allclose(found.covariance(), posterior.covariance, rtol=1e-9)
