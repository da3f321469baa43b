"""The growing factor against a dense twin: means, variances, pending rows, and kept columns."""

import numpy as np
import pytest

from scrimp.errors import NumericalError
from scrimp.freeze_thaw.curve_factor import CandidateColumns, CurveFactor
from scrimp.freeze_thaw.curve_gp import CurveParameters, CurveRows, curve_covariance, prior_mode

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
    # newcomer 0 shares its features with a pending trial, but as a candidate it is nobody's curve
    nobody = np.concatenate([own, np.arange(100, 115)])
    stretched = np.vstack([features, np.zeros((70, D)), features[15:]])
    _, deviation = Twin(theta, stretched, nobody, times).posterior(62, np.zeros(62))
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
