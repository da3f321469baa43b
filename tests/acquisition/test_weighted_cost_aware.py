"""Improvement per cost: against the direct formula, with learned, means-only and given costs."""

from dataclasses import replace

import numpy as np
import pytest

from scrimp.acquisition.acquisition import Acquisition, Context
from scrimp.acquisition.improvement import (
    ExpectedImprovement,
    LogExpectedImprovement,
    expected_improvement,
)
from scrimp.acquisition.weighted import Constrained, CostAware
from scrimp.errors import MethodError
from scrimp.testing.acquisitions import (
    AcquisitionBattery,
    SampledPosterior,
    finite_differences,
    random_posterior,
)

X = np.random.default_rng(8).random((6, 3))


def two_models():
    return {"loss": random_posterior(1), "cost": random_posterior(2, means_only=True, level=1.0)}


def rising_cost(x):
    """cost = exp(2 x_0 - x_2)."""
    return 2.0 * x[:, 0] - x[:, 2], np.tile([2.0, 0.0, -1.0], (len(x), 1))


class TestLearnedCost(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return CostAware(exponent=0.7)

    def models(self):
        return two_models()


class TestGivenCost(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return CostAware(log_cost=rising_cost)


def improvement(model, x):
    posterior = model.posterior(x)
    best = model.posterior(model.data.x).mean.min()
    return expected_improvement(posterior.mean[:, 0], np.sqrt(posterior.variance), best)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("inner", [LogExpectedImprovement(), ExpectedImprovement()])
def test_is_improvement_divided_by_a_power_of_the_cost(exponent, inner):
    models = two_models()
    cost = np.exp(models["cost"].posterior(X).mean[:, 0])
    score = CostAware(inner, exponent).bind(models, Context(models["loss"].data.x))
    np.testing.assert_allclose(
        np.exp(score(X)), improvement(models["loss"], X) / cost**exponent, rtol=1e-9
    )


def test_given_cost_needs_no_model():
    loss = random_posterior(1)
    score = CostAware(log_cost=rising_cost).bind({"loss": loss}, Context(loss.data.x))
    np.testing.assert_allclose(
        np.exp(score(X)), improvement(loss, X) / np.exp(2 * X[:, 0] - X[:, 2]), rtol=1e-9
    )
    with pytest.raises(MethodError, match="'cost'"):
        CostAware().bind({"loss": loss}, Context(loss.data.x))


def test_averages_over_the_product_of_samples_of_loss_and_cost():
    models = two_models()
    losses = [models["loss"], replace(models["loss"], amplitude=2.0)]
    costs = [
        models["cost"],
        replace(models["cost"], amplitude=3.0),
        replace(models["cost"], noise=0.1),
    ]
    expected = (
        sum(improvement(a, X) / np.exp(b.posterior(X).mean[:, 0]) for a in losses for b in costs)
        / 6
    )
    sampled = {"loss": SampledPosterior(tuple(losses)), "cost": SampledPosterior(tuple(costs))}
    score = CostAware().bind(sampled, Context(models["loss"].data.x))
    np.testing.assert_allclose(np.exp(score(X)), expected, rtol=1e-9)


def test_wraps_a_constrained_acquisition():
    models = {**two_models(), "constraint:memory": random_posterior(1)}
    context = Context(models["loss"].data.x, feasible=models["loss"].data.y < 0.5)
    score = CostAware(Constrained(), exponent=1.0).bind(models, context)
    parts = Constrained().bind(models, context)(X) - models["cost"].posterior(X).mean[:, 0]
    np.testing.assert_allclose(score(X), parts, rtol=1e-9)
    np.testing.assert_allclose(
        score.value_and_gradient(X)[1], finite_differences(score, X), rtol=1e-5, atol=1e-7
    )
