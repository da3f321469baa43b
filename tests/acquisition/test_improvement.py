"""Improvement: against high-precision integration, direct formulas and finite differences."""

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from scrimp.acquisition.acquisition import Acquisition, Context
from scrimp.acquisition.improvement import (
    ExpectedImprovement,
    LogExpectedImprovement,
    LowerConfidenceBound,
    OptimisticImprovement,
    ProbabilityOfImprovement,
    expected_improvement,
    log_expected_improvement,
    log_expected_improvement_and_derivatives,
    log_probability_of_improvement,
)
from scrimp.errors import MethodError
from scrimp.testing.acquisitions import AcquisitionBattery, random_posterior


class TestProbability(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return ProbabilityOfImprovement()


class TestExpectation(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return ExpectedImprovement()


class TestExpectationWithMargin(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return ExpectedImprovement(margin=0.3)


class TestLogExpectation(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return LogExpectedImprovement()


def integrated_log_improvement(mean, std, incumbent):
    """log of the integral of (incumbent - y) over y < incumbent under the normal density, with 50
    digits.

    With y = incumbent - std t it is std phi(z) times the integral of t exp(z t - t^2 / 2) over t >
    0, which is near 1 / z^2 far below the incumbent, so that the quadrature's own tolerance means
    something there.
    """
    with mpmath.workdps(50):
        mean, std, incumbent = (
            mpmath.mpf(float(mean)),
            mpmath.mpf(float(std)),
            mpmath.mpf(float(incumbent)),
        )
        z = (incumbent - mean) / std
        width = 1 / (1 + abs(min(z, 0)))
        cuts = (
            [width * k for k in (0, 1, 4, 16, 64)]
            if z < 1
            else [0, *(z + k for k in (-8, -2, 0, 2, 8) if z + k > 0), z + 20]
        )
        peak = max(z, 0) ** 2 / 2
        integral = mpmath.quad(
            lambda t: t * mpmath.exp(z * t - t * t / 2 - peak), [*cuts, max(cuts) + 20]
        )
        return mpmath.log(std * integral) + peak - z * z / 2 - mpmath.log(2 * mpmath.pi) / 2


@pytest.mark.parametrize(
    "z",
    [
        -30.0,
        -29.5,
        -20.0,
        -12.0,
        -7.3,
        -5.0,
        -2.0,
        -1.0,
        -0.99,
        -0.1,
        0.0,
        0.5,
        1.0,
        3.0,
        8.0,
        9.99,
        10.01,
        25.0,
    ],
)
def test_log_improvement_agrees_with_high_precision_integration(z):
    mean, std = 0.3, 0.7
    incumbent = mean + z * std
    exact = float(integrated_log_improvement(mean, std, incumbent))
    value = log_expected_improvement(np.array(mean), np.array(std), np.array(incumbent))
    assert float(value) == pytest.approx(exact, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("z", [-49.9, -50.0, -50.1, -60.0, -300.0, -1e4, -1e8, -1e12])
def test_log_improvement_far_below_agrees_with_high_precision_erfc(z):
    with mpmath.workdps(60 + int(2 * np.log10(-z))):
        w = mpmath.mpf(z)
        # h(z) / phi(z) = 1 + z Phi(z) / phi(z): Phi by its continued fraction in the Mills ratio,
        # which no digit is lost in
        mills = mpmath.mpf(0)
        for k in range(200, 0, -1):
            mills = k / (-w + mills)
        mills = 1 / (-w + mills)
        exact = float(mpmath.log(1 + w * mills) - w * w / 2 - mpmath.log(2 * mpmath.pi) / 2)
    value = log_expected_improvement(np.zeros(1), np.ones(1), np.array([z]))[0]
    assert value == pytest.approx(exact, rel=1e-13)


def test_log_improvement_is_finite_and_increasing_over_the_whole_range():
    z = np.concatenate([-np.logspace(200, -3, 4000), np.logspace(-3, 200, 4000)])
    values, by_mean, by_std = log_expected_improvement_and_derivatives(np.zeros(1), np.ones(1), z)
    assert np.isfinite(values).all()
    assert np.isfinite(by_mean).all()
    assert np.isfinite(by_std).all()
    assert (np.diff(values) >= 0.0).all()
    assert (by_mean < 0.0).all()
    assert (by_std >= 0.0).all()


@pytest.mark.parametrize(
    "z", [-1e6, -1000.0, -51.0, -50.0, -49.0, -30.0, -5.0, -1.0, 0.0, 1.0, 5.0, 9.9, 10.1, 20.0]
)
@pytest.mark.parametrize("std", [0.01, 1.0, 30.0])
def test_log_improvement_derivatives_agree_with_high_precision_differences(z, std):
    incumbent = z * std
    with mpmath.workdps(80):

        def exact(mean, deviation):
            w = (mpmath.mpf(incumbent) - mean) / deviation
            if w < -8:
                mills = mpmath.mpf(0)
                for k in range(400, 0, -1):
                    mills = k / (-w + mills)
                mills = 1 / (-w + mills)
                log_h = mpmath.log(1 + w * mills) - w * w / 2 - mpmath.log(2 * mpmath.pi) / 2
            else:
                log_h = mpmath.log(mpmath.npdf(w) + w * mpmath.ncdf(w))
            return log_h + mpmath.log(deviation)

        step = mpmath.mpf(10) ** -20 * std
        by_mean = float((exact(step, mpmath.mpf(std)) - exact(-step, mpmath.mpf(std))) / (2 * step))
        by_std = float((exact(0, std + step) - exact(0, std - step)) / (2 * step))
    _, d_mean, d_std = log_expected_improvement_and_derivatives(
        np.zeros(1), np.array([std]), np.array([incumbent])
    )
    assert d_mean[0] == pytest.approx(by_mean, rel=1e-10)
    assert d_std[0] == pytest.approx(by_std, rel=1e-10, abs=1e-20)


@pytest.mark.parametrize(
    "acquisition", [ProbabilityOfImprovement(), ExpectedImprovement(), LogExpectedImprovement()]
)
def test_alpha_derivatives_agree_with_finite_differences(acquisition):
    mean, std = np.meshgrid(np.linspace(-2, 2, 9), [0.2, 0.5, 1.0, 3.0], indexing="ij")
    incumbent, step = np.array(0.1), 1e-6
    d_mean, d_std = acquisition.derivatives(mean, std, incumbent)

    def difference(dm, ds):
        ahead = acquisition.alpha(mean + dm, std + ds, incumbent)
        return (ahead - acquisition.alpha(mean - dm, std - ds, incumbent)) / (2 * step)

    np.testing.assert_allclose(d_mean, difference(step, 0), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(d_std, difference(0, step), rtol=1e-6, atol=1e-8)


def test_expected_improvement_agrees_with_monte_carlo_and_with_its_logarithm():
    draws = 0.4 + 0.8 * np.random.default_rng(0).standard_normal(400_000)
    gains = np.maximum(0.1 - draws, 0.0)
    value = float(expected_improvement(np.array(0.4), np.array(0.8), np.array(0.1)))
    assert abs(value - gains.mean()) < 4 * gains.std() / np.sqrt(len(gains))
    z = np.linspace(-6, 6, 50)
    np.testing.assert_allclose(
        expected_improvement(-z, np.ones(50), np.zeros(1)),
        np.exp(log_expected_improvement(-z, np.ones(50), np.zeros(1))),
        rtol=1e-8,
    )


def test_probability_agrees_with_scipy_far_into_the_tail():
    z = np.array([-38.0, -20.0, -3.0, 0.0, 2.0, 9.0])
    np.testing.assert_allclose(
        log_probability_of_improvement(-z, np.ones(6), np.zeros(1)), norm.logcdf(z), rtol=1e-12
    )
    slope = ProbabilityOfImprovement().derivatives(-z, np.ones(6), np.zeros(1))[0]
    np.testing.assert_allclose(-slope, np.exp(norm.logpdf(z) - norm.logcdf(z)), rtol=1e-9)


def test_margin_is_in_standard_deviations_of_the_targets():
    model = random_posterior(0)
    x = np.random.default_rng(1).random((5, 3))
    score = ExpectedImprovement(margin=0.3).bind({"loss": model}, Context(model.data.x))
    posterior = model.posterior(x)
    best = model.posterior(model.data.x).mean.min() - 0.3 * model.data.y.std()
    expected = expected_improvement(posterior.mean[:, 0], np.sqrt(posterior.variance), best)
    np.testing.assert_allclose(score(x), expected, rtol=1e-12)


def test_the_logarithm_of_expected_improvement_keeps_its_margin():
    assert ExpectedImprovement(margin=0.2).logarithm() == LogExpectedImprovement(margin=0.2)


def test_the_slope_of_a_certain_improvement_is_nothing_and_does_not_overflow():
    """Between 37 and 38 the ratio that it is made of would pass the largest number."""
    means = -np.linspace(37.0, 38.0, 2001)
    derivatives = ProbabilityOfImprovement().derivatives(means, np.ones(1), np.zeros(1))
    np.testing.assert_allclose(derivatives, 0.0, atol=1e-150)


class TestLowerConfidenceBound(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return LowerConfidenceBound(kappa=1.7)


class TestOptimisticImprovement(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return OptimisticImprovement(kappa=1.7)


@pytest.mark.parametrize("kappa", [0.0, 1.0, 3.0])
def test_is_minus_the_lower_bound_of_the_loss(kappa):
    model = random_posterior(2)
    x = np.random.default_rng(0).random((9, 3))
    posterior = model.posterior(x)
    score = LowerConfidenceBound(kappa).bind({"loss": model}, Context(model.data.x))
    np.testing.assert_allclose(
        score(x), -(posterior.mean[:, 0] - kappa * np.sqrt(posterior.variance)), rtol=1e-12
    )


def test_its_logarithm_is_that_of_the_promised_improvement():
    assert LowerConfidenceBound(3.0).logarithm() == OptimisticImprovement(3.0)
    mean, std, incumbent = np.linspace(-2, 0.5, 6)[:, None], np.full((6, 1), 0.6), np.zeros(1)
    promised = incumbent - (mean - 3.0 * std)
    np.testing.assert_allclose(
        np.exp(OptimisticImprovement(3.0).alpha(mean, std, incumbent)), promised, rtol=0.01
    )


class TestGrowingBound(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return LowerConfidenceBound(schedule="growing")


def test_a_growing_kappa_is_theorem_2_of_srinivas_et_al():
    """With t = 12 and d = 3, by hand; the count of observations and columns comes from the data."""
    model = random_posterior(2)
    t, d, delta = len(model.data.x) + 1, model.data.x.shape[1], 0.05
    beta = 2 * np.log(t**2 * 2 * np.pi**2 / (3 * delta))
    beta += 2 * d * np.log(t**2 * d * np.sqrt(np.log(4 * d / delta)))
    kappa = np.sqrt(beta / 2.0)
    growing = LowerConfidenceBound(schedule="growing", delta=delta, divisor=2.0)
    models, context, x = (
        {"loss": model},
        Context(model.data.x),
        np.random.default_rng(0).random((5, 3)),
    )
    for one, other in (
        (growing, LowerConfidenceBound(kappa)),
        (growing.logarithm(), OptimisticImprovement(kappa)),
    ):
        np.testing.assert_allclose(one.bind(models, context)(x), other.bind(models, context)(x))


@pytest.mark.parametrize("wrong", [{"schedule": "falling"}, {"delta": 1.0}, {"divisor": 0.0}])
def test_schedules_that_mean_nothing_are_refused(wrong):
    with pytest.raises(MethodError, match=next(iter(wrong))):
        LowerConfidenceBound(**wrong)
