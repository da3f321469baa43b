"""The curve process: its covariance written out point by point, the gradient by differences, and
what a fit finds."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from scrimp.freeze_thaw.curve_gp import (
    CurveParameters,
    CurveRows,
    curve_covariance,
    fit_curve_process,
    negative_log_posterior,
    prior_mode,
)
from scrimp.gp.columns import Column
from scrimp.gp.features import Features


def some_rows(seed: int = 0, count: int = 40) -> tuple[CurveRows, np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = (Column(), Column(), Column((0.0, 0.5, 1.0), ordered=False))
    x = np.column_stack([rng.random((12, 2)), rng.integers(3, size=12) / 2.0])
    features = Features(columns)
    config = np.sort(rng.integers(12, size=count))
    time = rng.choice(np.log2([1, 2, 4, 8, 16]) / 4.0, count)
    return CurveRows(features(x), features.owner, config, time), rng.standard_normal(count)


def matern(distance: float) -> float:
    root = np.sqrt(5.0) * distance
    return float((1.0 + root + root * root / 3.0) * np.exp(-root))


def test_covariance_is_the_formula() -> None:
    rows, _ = some_rows()
    theta = np.array(prior_mode(3)) + 0.3 * np.random.default_rng(1).standard_normal(12)
    p = CurveParameters.of(theta)
    lengths = p.lengths[rows.owner]
    covariance = curve_covariance(rows, theta)
    for i, j in [(0, 0), (0, 5), (3, 4), (7, 30), (20, 21)]:
        a, b = rows.config[i], rows.config[j]
        across = matern(float(np.linalg.norm((rows.features[a] - rows.features[b]) / lengths)))
        apart = abs(rows.time[i] - rows.time[j])
        expected = across * (p.level + p.shape * matern(apart / p.shape_time))
        expected += (a == b) * p.own * matern(apart / p.own_time)
        expected *= np.exp(p.growth * (rows.time[i] - 0.5)) * np.exp(
            p.growth * (rows.time[j] - 0.5)
        )
        assert covariance[i, j] == pytest.approx(expected, abs=1e-12)


def test_posterior_density_is_tempered_likelihood_times_prior() -> None:
    rows, z = some_rows()
    values = []
    for seed in range(2):
        theta = np.array(prior_mode(3)) + 0.3 * np.random.default_rng(seed).standard_normal(12)
        p = CurveParameters.of(theta)
        covariance = curve_covariance(rows, theta) + p.noise_variance * np.eye(len(z))
        likelihood = multivariate_normal(p.means(rows.time), covariance).logpdf(z)
        apart = (theta - np.array(prior_mode(3))) / np.array(
            [1, 1, 1, 1.22, 1.22, 1.22, 0.7, 0.7, 1.4, 1, 1, 0.7]
        )
        values.append(
            negative_log_posterior(theta, rows, z)[0] + 0.3 * likelihood - 0.5 * apart @ apart
        )
    assert values[0] == pytest.approx(values[1], abs=1e-8)  # up to one constant


@pytest.mark.parametrize("seed", range(3))
def test_gradient_by_differences(seed: int) -> None:
    rows, z = some_rows(seed)
    theta = np.array(prior_mode(3)) + 0.5 * np.random.default_rng(seed).standard_normal(12)
    gradient = negative_log_posterior(theta, rows, z)[1]
    steps = 1e-5 * np.eye(12)
    numeric = [
        (
            negative_log_posterior(theta + step, rows, z)[0]
            - negative_log_posterior(theta - step, rows, z)[0]
        )
        / 2e-5
        for step in steps
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)


def test_a_fit_improves_and_starts_where_it_is_told() -> None:
    rows, _ = some_rows(count=120)
    truth = np.array([-1.2, 1.5, 0.0, 0.3, -0.5, -2.5, -0.3, -0.7, -5.0, 0.2, -1.5, 0.8])
    covariance = curve_covariance(rows, truth) + np.exp(-5.0) * np.eye(120)
    noise = np.linalg.cholesky(covariance) @ np.random.default_rng(2).standard_normal(120)
    z = CurveParameters.of(truth).means(rows.time) + noise
    found = fit_curve_process(rows, z, steps=60)
    start = np.array(prior_mode(3))
    assert negative_log_posterior(found, rows, z)[0] < negative_log_posterior(start, rows, z)[0] - 3
    assert found[0] < found[1]  # the first column matters more
    again = fit_curve_process(rows, z, start=found, steps=1)
    np.testing.assert_allclose(again, found, atol=1e-3)


def test_a_likelihood_that_counts_in_full_is_fitted_more_closely() -> None:
    rows, z = some_rows(count=60)
    found = {temper: fit_curve_process(rows, z, steps=200, temper=temper) for temper in (0.3, 1.0)}

    def likelihood(theta: np.ndarray) -> float:
        p = CurveParameters.of(theta)
        covariance = curve_covariance(rows, theta) + p.noise_variance * np.eye(len(z))
        return float(multivariate_normal(p.means(rows.time), covariance).logpdf(z))

    assert likelihood(found[1.0]) > likelihood(found[0.3])


def test_rows_in_any_order_give_the_same_fit() -> None:
    rows, z = some_rows(count=30)
    shuffle = np.random.default_rng(0).permutation(30)
    mixed = CurveRows(rows.features, rows.owner, rows.config[shuffle], rows.time[shuffle])
    np.testing.assert_allclose(
        fit_curve_process(rows, z), fit_curve_process(mixed, z[shuffle]), atol=1e-4
    )
