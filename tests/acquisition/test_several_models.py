"""Formulas over several models: values by hand, gradients, samples of all models, and what is left
to wrappers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import norm

from scrimp.acquisition.acquisition import Acquisition, Context
from scrimp.acquisition.improvement import (
    LogExpectedImprovement,
    expected_improvement,
    log_expected_improvement,
    log_expected_improvement_and_derivatives,
)
from scrimp.acquisition.several_models import ALL_CONSTRAINTS, SeveralModelsAcquisition
from scrimp.acquisition.weighted import Constrained, CostAware, bind_logarithm
from scrimp.errors import MethodError
from scrimp.surrogates.surrogate import Array, FittedSurrogate
from scrimp.testing.acquisitions import (
    AcquisitionBattery,
    SampledPosterior,
    finite_differences,
    random_posterior,
    rescaled,
)


@dataclass(frozen=True)
class PerSecond(SeveralModelsAcquisition):
    """log (EI / cost)."""

    needs: ClassVar[tuple[str, ...]] = ("loss", "cost")
    logarithmic: ClassVar[bool] = True

    def alpha(self, beliefs, incumbent):
        loss = beliefs["loss"]
        return log_expected_improvement(loss.mean, loss.std, incumbent) - beliefs["cost"].mean

    def derivatives(self, beliefs, incumbent):
        loss = beliefs["loss"]
        _, d_mean, d_std = log_expected_improvement_and_derivatives(loss.mean, loss.std, incumbent)
        return {"loss": (d_mean, d_std), "cost": (-1.0, 0.0)}


@dataclass(frozen=True)
class SafeBound(SeveralModelsAcquisition):
    """The confidence bound of the loss, less a penalty for what may violate any constraint; of any
    sign."""

    needs: ClassVar[tuple[str, ...]] = ("loss", ALL_CONSTRAINTS)
    penalty: float = 2.0

    def alpha(self, beliefs, incumbent):
        total = 2.0 * beliefs["loss"].std - beliefs["loss"].mean
        for name in set(beliefs) - {"loss"}:
            total = total - self.penalty * (beliefs[name].mean + beliefs[name].std)
        return total

    def derivatives(self, beliefs, incumbent):
        others = dict.fromkeys(set(beliefs) - {"loss"}, (-self.penalty, -self.penalty))
        return {"loss": (-1.0, 2.0), **others}


def cost() -> FittedSurrogate:
    return random_posterior(seed=4, d=3)


class TestPerSecond(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return PerSecond()

    def models(self) -> Mapping[str, FittedSurrogate]:
        return {"loss": random_posterior(seed=1, d=3), "cost": cost()}


class TestSafeBound(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return SafeBound()

    def models(self) -> Mapping[str, FittedSurrogate]:
        loss = random_posterior(seed=1, d=3)
        return {
            "loss": loss,
            "constraint:a": random_posterior(seed=6, d=3),
            "constraint:b": random_posterior(seed=7, d=3),
        }

    def context(self, models: Mapping[str, FittedSurrogate]) -> Context:
        x = models["loss"].data.x
        return Context(evaluated=x, feasible=np.arange(len(x)) % 2 == 0)

    def test_ranking_does_not_depend_on_the_units_of_the_loss(self) -> None:
        """The penalty is in units of the loss, so it is scaled with it."""
        models, x = self.models(), self.rows(30)
        scaled = {**models, "loss": rescaled(models["loss"])}
        scores = SafeBound(penalty=20.0).bind(scaled, self.context(models))(x)
        np.testing.assert_allclose(scores, 10.0 * self.bound()(x) - 3.0, rtol=1e-9)


X = np.random.default_rng(0).uniform(0.1, 0.9, (6, 3))


def test_improvement_per_second_is_the_cost_aware_one() -> None:
    models = {"loss": random_posterior(seed=1, d=3), "cost": cost()}
    context = Context(evaluated=models["loss"].data.x)
    expected = CostAware(LogExpectedImprovement()).bind(models, context)(X)
    np.testing.assert_allclose(PerSecond().bind(models, context)(X), expected, rtol=1e-9)


def test_samples_of_all_models_meet() -> None:
    """Two samples of the loss, each with its own incumbent, and two of the cost: the average of the
    four products."""
    losses = [random_posterior(seed=1, d=3, amplitude=scale) for scale in (1.0, 2.0)]
    costs = [random_posterior(seed=4, d=3, amplitude=scale) for scale in (0.5, 1.0)]
    models = {"loss": SampledPosterior(tuple(losses)), "cost": SampledPosterior(tuple(costs))}
    context = Context(evaluated=losses[0].data.x)
    terms = []
    for loss in losses:
        best = loss.mean(context.evaluated).min()
        for one in costs:
            posterior = loss.posterior(X)
            gain = expected_improvement(posterior.mean[:, 0], np.sqrt(posterior.variance), best)
            terms.append(gain * np.exp(-one.mean(X)[:, 0]))
    np.testing.assert_allclose(
        np.exp(PerSecond().bind(models, context)(X)), np.mean(terms, axis=0), rtol=1e-9
    )


def test_beyond_a_hundred_combinations_samples_meet_in_order() -> None:
    losses = tuple(random_posterior(seed=1, d=3, amplitude=1.0 + k / 10) for k in range(12))
    costs = tuple(random_posterior(seed=4, d=3, amplitude=1.0 + k / 10) for k in range(11))
    models = {"loss": SampledPosterior(losses), "cost": SampledPosterior(costs)}
    bound = PerSecond().bind(models, Context(evaluated=losses[0].data.x))
    assert len(bound.combinations) == 12  # type: ignore[attr-defined]
    np.testing.assert_allclose(
        bound.value_and_gradient(X)[1], finite_differences(bound, X), rtol=1e-4, atol=1e-6
    )


def test_constraints_and_costs_it_does_not_read_weigh_it() -> None:
    models = {
        "loss": random_posterior(seed=1, d=3),
        "cost": cost(),
        "constraint:a": random_posterior(seed=6, d=3),
    }
    x = models["loss"].data.x
    context = Context(evaluated=x, feasible=np.ones(len(x), dtype=bool))
    limit = models["constraint:a"].posterior(X)
    holds = norm.logcdf(-limit.mean[:, 0] / np.sqrt(limit.variance))
    alone = PerSecond().bind({name: models[name] for name in ("loss", "cost")}, context)(X)
    bound = PerSecond().bind(models, context)
    np.testing.assert_allclose(bound(X), alone + holds, rtol=1e-8)
    np.testing.assert_allclose(
        bound.value_and_gradient(X)[1], finite_differences(bound, X), rtol=1e-5, atol=1e-6
    )
    plain = CostAware(Constrained(LogExpectedImprovement())).bind(models, context)(X)
    np.testing.assert_allclose(bound(X), plain, rtol=1e-8)


def test_a_formula_of_any_sign_has_a_logarithm() -> None:
    models = {
        "loss": random_posterior(seed=1, d=3),
        "constraint:a": random_posterior(seed=6, d=3),
        "cost": cost(),
    }
    x = models["loss"].data.x
    context = Context(evaluated=x, feasible=np.ones(len(x), dtype=bool))
    weighed = SafeBound().bind(models, context)
    assert weighed.logarithmic
    np.testing.assert_allclose(
        weighed.value_and_gradient(X)[1], finite_differences(weighed, X), rtol=1e-5, atol=1e-6
    )
    own = {name: models[name] for name in ("loss", "constraint:a")}
    assert bind_logarithm(SafeBound(), own, context).logarithmic
    order = np.argsort(SafeBound().bind(own, context)(X))
    assert (np.argsort(bind_logarithm(SafeBound(), own, context)(X)) == order).all()


def test_while_nothing_is_feasible_feasibility_decides() -> None:
    models = {"loss": random_posterior(seed=1, d=3), "constraint:a": random_posterior(seed=6, d=3)}
    x = models["loss"].data.x
    context = Context(evaluated=x, feasible=np.zeros(len(x), dtype=bool))
    expected = Constrained().bind(models, context)(X)
    np.testing.assert_allclose(SafeBound().bind(models, context)(X), expected)


def test_pending_inputs_count_for_the_incumbent_where_they_are_feasible() -> None:
    models = {"loss": random_posterior(seed=1, d=3), "constraint:a": random_posterior(seed=6, d=3)}
    x = models["loss"].data.x
    context = Context(evaluated=x[:6], pending=x[6:], feasible=np.ones(6, dtype=bool))
    bound = SafeBound().bind(models, context)
    violation, loss = models["constraint:a"].mean(x[6:]), models["loss"].mean(x[6:])
    best = min(models["loss"].mean(x[:6]).min(), np.where(violation <= 0, loss, np.inf).min())
    np.testing.assert_allclose(bound.combinations[0][1], best)  # type: ignore[attr-defined]


def test_mistakes_are_named() -> None:
    loss = {"loss": random_posterior(seed=1, d=3)}
    with pytest.raises(MethodError, match="no model named 'cost'"):
        PerSecond().bind(loss, Context(evaluated=loss["loss"].data.x))

    @dataclass(frozen=True)
    class Wrong(PerSecond):
        def alpha(self, beliefs, incumbent) -> Array:
            return np.zeros((3, 7))

    models = {**loss, "cost": cost()}
    with pytest.raises(MethodError, match=r"alpha of Wrong has shape \(3, 7\)"):
        Wrong().bind(models, Context(evaluated=loss["loss"].data.x))(X)
    assert replace(SafeBound(), penalty=1.0).reads("constraint:x") and not PerSecond().reads(
        "constraint:x"
    )
