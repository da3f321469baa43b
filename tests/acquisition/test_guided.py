"""Guided by a belief: against the direct formula; the weight of the belief falls with the number of
evaluations."""

import numpy as np

from scrimp.acquisition.acquisition import Acquisition
from scrimp.acquisition.context import Context
from scrimp.acquisition.guided import Guided
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.testing.acquisitions import AcquisitionBattery
from scrimp.testing.dense_posterior import random_posterior

X = np.random.default_rng(8).random((6, 3))


def near_the_origin(x):
    """belief = exp(-2 |x|^2)."""
    return -2.0 * (x**2).sum(axis=1), -4.0 * x


class TestGuided(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return Guided(LogExpectedImprovement(), near_the_origin)


def test_is_the_acquisition_times_a_power_of_the_belief():
    loss = random_posterior(1)
    context = Context(loss.data.x)
    plain = LogExpectedImprovement().bind({"loss": loss}, context)(X)
    guided = Guided(LogExpectedImprovement(), near_the_origin, strength=3.0).bind(
        {"loss": loss}, context
    )(X)
    np.testing.assert_allclose(
        guided - plain, -6.0 * (X**2).sum(axis=1) / len(loss.data.x), rtol=1e-9
    )
