"""The confidence bound against its formula."""

import numpy as np
import pytest

from scrimp.acquisition.acquisition import Acquisition
from scrimp.acquisition.confidence import LowerConfidenceBound, OptimisticImprovement
from scrimp.acquisition.context import Context
from scrimp.errors import MethodError
from scrimp.testing.acquisitions import AcquisitionBattery
from scrimp.testing.dense_posterior import random_posterior


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
