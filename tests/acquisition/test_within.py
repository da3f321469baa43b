"""The probability of a band: against mpmath, far out, in narrow bands and with one end, and its
derivatives."""

import math

import mpmath
import numpy as np
import pytest

from scrimp.acquisition.acquisition import Acquisition
from scrimp.acquisition.constrained import Constrained
from scrimp.acquisition.context import Context
from scrimp.acquisition.within import ProbabilityWithin
from scrimp.testing.acquisitions import AcquisitionBattery
from scrimp.testing.dense_posterior import random_posterior


class TestTwoSided(AcquisitionBattery):
    """A band is `ProbabilityWithin`, which is no acquisition by itself: it prefers the middle."""

    def acquisition(self) -> Acquisition:
        return Constrained()

    def models(self):
        return {"loss": random_posterior(1), "constraint:memory": random_posterior(1)}

    def context(self, models):
        y = models["loss"].data.y
        band = {"constraint:memory": (-0.4, 0.4)}
        return Context(models["loss"].data.x, feasible=np.abs(y) <= 0.4, bands=band)


CASES = [
    (mean, std, low, high)
    for mean in (0.0, 0.3, -5.0, 40.0)
    for std in (1e-3, 1.0, 20.0)
    for low, high in ((-0.5, 0.5), (-1e-7, 1e-7), (0.2, 0.3), (-math.inf, 0.1))
]


@pytest.mark.parametrize(("mean", "std", "low", "high"), CASES)
def test_against_many_digits(mean: float, std: float, low: float, high: float) -> None:
    with mpmath.workdps(60):

        def log_probability(m: mpmath.mpf, s: mpmath.mpf) -> mpmath.mpf:
            a, b = (-mpmath.inf if math.isinf(low) else (low - m) / s), (high - m) / s
            if a > 0:
                a, b = -b, -a  # erfc keeps digits below the mean
            lower = mpmath.mpf(0) if a == -mpmath.inf else mpmath.erfc(-a / mpmath.sqrt(2))
            return mpmath.log((mpmath.erfc(-b / mpmath.sqrt(2)) - lower) / 2)

        m, s, step = mpmath.mpf(mean), mpmath.mpf(std), mpmath.mpf(std) * mpmath.mpf(10) ** -15
        expected = log_probability(m, s)
        by_mean = (log_probability(m + step, s) - log_probability(m - step, s)) / (2 * step)
        by_std = (log_probability(m, s + step) - log_probability(m, s - step)) / (2 * step)
    band = ProbabilityWithin(low, high)
    value, d_mean, d_std = band.alpha_and_derivatives(np.array(mean), np.array(std), np.zeros(1))
    assert float(value) == pytest.approx(float(expected), rel=1e-8, abs=1e-9)
    assert float(d_mean) == pytest.approx(float(by_mean), rel=1e-5, abs=1e-7)
    assert float(d_std) == pytest.approx(float(by_std), rel=1e-5, abs=1e-7)
