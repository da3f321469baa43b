"""The curve process: its covariance written out point by point, gradients by differences, fits, and the
growing factor against dense formulas."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from scrimp.errors import NumericalError
from scrimp.freeze_thaw.curve_process import (
    CandidateColumns,
    CurveFactor,
    CurveParameters,
    CurveRows,
    NegativeLogPosterior,
    fit_curve_process,
    prior_mode,
)
from scrimp.gp.columns import Column, Features
from tests.freeze_thaw.dense_curves import curve_covariance


def some_rows(seed: int = 0, count: int = 40) -> tuple[CurveRows, np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = (Column(), Column(), Column((0.0, 0.5, 1.0), ordered=False))
    x = np.column_stack([rng.random((12, 2)), rng.integers(3, size=12) / 2.0])
    features = Features(columns)
    config = np.sort(rng.integers(12, size=count))
    time = rng.choice(np.log2([1, 2, 4, 8, 16]) / 4.0, count)
    return CurveRows(features(x), features.owner, config, time), rng.standard_normal(count)


def log_posterior(
    theta: np.ndarray, rows: CurveRows, targets: np.ndarray
) -> tuple[float, np.ndarray]:
    """The negative log posterior in a list."""
    return NegativeLogPosterior(rows, targets, np.array(prior_mode(3)), 0.3)(theta)


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
        values.append(log_posterior(theta, rows, z)[0] + 0.3 * likelihood - 0.5 * apart @ apart)
    assert values[0] == pytest.approx(values[1], abs=1e-8)  # up to one constant


@pytest.mark.parametrize("seed", range(3))
def test_gradient_by_differences(seed: int) -> None:
    rows, z = some_rows(seed)
    theta = np.array(prior_mode(3)) + 0.5 * np.random.default_rng(seed).standard_normal(12)
    gradient = log_posterior(theta, rows, z)[1]
    steps = 1e-5 * np.eye(12)
    numeric = [
        (log_posterior(theta + step, rows, z)[0] - log_posterior(theta - step, rows, z)[0]) / 2e-5
        for step in steps
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)


def test_a_fit_improves_and_starts_where_it_is_told() -> None:
    rows, _ = some_rows(count=120)
    truth = np.array([-1.2, 1.5, 0.0, 0.3, -0.5, -2.5, -0.3, -0.7, -5.0, 0.2, -1.5, 0.8])
    covariance = curve_covariance(rows, truth) + np.exp(-5.0) * np.eye(120)
    noise = np.linalg.cholesky(covariance) @ np.random.default_rng(2).standard_normal(120)
    z = CurveParameters.of(truth).means(rows.time) + noise
    found = fit_curve_process(rows, z, iterations=60)
    start = np.array(prior_mode(3))
    assert log_posterior(found, rows, z)[0] < log_posterior(start, rows, z)[0] - 3
    assert found[0] < found[1]  # the first column matters more
    again = fit_curve_process(rows, z, start=found, iterations=1)
    np.testing.assert_allclose(again, found, atol=1e-3)


def test_a_likelihood_that_counts_in_full_is_fitted_more_closely() -> None:
    rows, z = some_rows(count=60)
    found = {
        weight: fit_curve_process(rows, z, iterations=200, likelihood_weight=weight)
        for weight in (0.3, 1.0)
    }

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


D = 3
LATER = np.array([0.4])


class Twin:
    """Dense formulas on one covariance of observations and points."""

    def __init__(
        self, theta: np.ndarray, features: np.ndarray, config: np.ndarray, time: np.ndarray
    ) -> None:
        self.p = CurveParameters.of(theta)
        self.mean = self.p.mean + self.p.slope * time
        self.k = curve_covariance(CurveRows(features, np.arange(D), config, time), theta)

    def posterior(self, n: int, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inverse = np.linalg.inv(self.k[:n, :n] + self.p.noise_variance * np.eye(n))
        cross = self.k[:n, n:]
        mean = self.mean[n:] + cross.T @ inverse @ (z - self.mean[:n])
        return mean, np.sqrt(np.diag(self.k[n:, n:] - cross.T @ inverse @ cross))


def setting(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    theta = np.array(prior_mode(D)) + 0.3 * rng.standard_normal(D + 9)
    features = rng.random((30, D))
    config = np.concatenate([rng.integers(15, size=60), np.arange(15), np.arange(15, 30)])
    time = np.concatenate([rng.random(60), rng.random(15), np.full(15, 0.4)])
    return theta, features, config, time, rng.standard_normal(60)


def test_marginals_equal_the_dense_twin_however_rows_come() -> None:
    theta, features, config, time, z = setting()
    mean, deviation = Twin(theta, features, config, time).posterior(60, z)
    factor = CurveFactor(theta, np.arange(D))
    new = CandidateColumns(factor, features[15:])
    for start, stop in [(0, 25), (25, 26), (26, 40), (40, 60)]:
        factor.append(features[config[start:stop]], config[start:stop], time[start:stop])
        new.at(factor, 0.4, stop)
    whitened = factor.whiten(z)
    old = factor.columns(factor.scaled(features[:15]), np.arange(15), time[60:75])
    got = [
        factor.marginals(old, time[60:75], whitened),
        factor.marginals(new.at(factor, 0.4, 60), LATER, whitened),
    ]
    np.testing.assert_allclose(np.concatenate([part[0] for part in got]), mean, atol=1e-8)
    np.testing.assert_allclose(np.concatenate([part[1] for part in got]), deviation, atol=1e-8)
    weights = factor.weights(z)
    cross = factor.cross(factor.scaled(features[15:]), None, np.array([0.4]))
    np.testing.assert_allclose(
        factor.parameters.means(LATER) + weights @ cross, mean[15:], atol=1e-8
    )


def test_pending_rows_narrow_the_variance_keep_the_mean_and_leave_no_trace() -> None:
    theta, features, config, time, z = setting(1)
    factor = CurveFactor(theta, np.arange(D))
    factor.append(features[config[:60]], config[:60], time[:60])
    new = CandidateColumns(factor, features[15:])
    whitened = factor.whiten(z)
    before = factor.marginals(new.at(factor, 0.4, 60), LATER, whitened)
    pending = np.array([15, 3])
    grown = factor.with_pending(features[pending], pending, np.array([0.4, 0.9]))
    during = grown.marginals(new.at(grown, 0.4, 60), LATER, whitened)
    assert (factor.size, grown.size) == (60, 62)
    after = factor.marginals(new.at(factor, 0.4, 60), LATER, whitened)
    order = np.concatenate([config[:60], pending, np.arange(15, 30)])
    times = np.concatenate([time[:60], [0.4, 0.9], np.full(15, 0.4)])
    twin = Twin(theta, features, order, times)
    own = np.concatenate([config[:60], pending])
    believed = Twin(theta, features, np.concatenate([config[:60], pending]), times[:62]).posterior(
        60, z
    )[0]
    mean, _ = twin.posterior(62, np.concatenate([z, believed]))
    np.testing.assert_allclose(during[0], mean, atol=1e-8)
    # candidate 0 shares its features with a pending trial, but as a candidate it has no curve of its own
    unseen = np.concatenate([own, np.arange(100, 115)])
    stretched = np.vstack([features, np.zeros((70, D)), features[15:]])
    _, deviation = Twin(theta, stretched, unseen, times).posterior(62, np.zeros(62))
    np.testing.assert_allclose(during[1], deviation, atol=1e-8)
    np.testing.assert_allclose(during[0], before[0], atol=1e-12)
    assert (during[1] < before[1]).all()
    np.testing.assert_array_equal(after[0], before[0])
    np.testing.assert_array_equal(after[1], before[1])


def test_a_row_that_the_others_determine_is_refused_and_forgotten() -> None:
    theta = np.array(prior_mode(D))
    theta[-4] = -400.0  # no noise beyond the least
    factor = CurveFactor(theta, np.arange(D))
    factor.append(np.zeros((1, D)), np.array([0]), np.array([0.0]))
    factor.lower[0, 0] *= 0.9  # as rounding would do at its worst
    with pytest.raises(NumericalError, match="determined by the others"):
        factor.append(np.zeros((1, D)), np.array([0]), np.array([0.0]))
    assert factor.size == 1


def test_the_pullback_equals_finite_differences_and_its_marginals_those_of_kept_columns() -> None:
    theta, features, config, time, z = setting(2)
    factor = CurveFactor(theta, np.arange(D))
    factor.append(features[config[:60]], config[:60], time[:60])
    whitened = factor.whiten(z)
    factor.append(features[:2], np.array([0, 1]), np.array([0.9, 0.8]))  # pending
    points = factor.scaled(features[15:])
    mean, deviation, pull = factor.marginals_and_pullback(points, np.full(15, 0.4), whitened)
    expected = factor.marginals(
        CandidateColumns(factor, features[15:]).at(factor, 0.4, 60), LATER, whitened
    )
    np.testing.assert_allclose([mean, deviation], expected, atol=1e-10)
    weights = np.random.default_rng(0).standard_normal((2, 15))
    gradient = pull(*weights)
    for column in range(D):
        step = np.zeros(D)
        step[column] = 1e-5
        ends = [
            factor.marginals_and_pullback(points + sign * step, np.full(15, 0.4), whitened)
            for sign in (1, -1)
        ]
        numeric = sum(weights[k] * (ends[0][k] - ends[1][k]) / 2e-5 for k in (0, 1))
        np.testing.assert_allclose(gradient[:, column], numeric, atol=1e-6)
