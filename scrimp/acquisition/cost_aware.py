"""Improvement per unit of cost.

    EIpu(x) = EI(x) / cost(x)^exponent           Snoek, Larochelle, Adams, "Practical Bayesian optimization", 2012

The exponent tempers it: 0 ignores cost, 1 is per unit; letting it fall to 0 as the budget is spent
is "cost cooling" (Lee et al., "Cost-aware Bayesian optimization", 2020). The cost comes from the
model "cost", which learns the *logarithm* of costs (so that they stay positive) and may give means
only, or from a given function.

The learned cost is in natural units, whatever transform the model has in between:

    log cost(x) = target_units(mean(x)),         for targets z = (log cost - centre) / spread:
                                                 centre + spread mean(x)

so cost(x) is the believed *median*. With log cost ~ N(m, s^2) the choices are E[cost^-e] = exp(-e
m + e^2 s^2 / 2), which rewards not knowing the cost, E[cost]^-e = exp(-e m - e s^2 / 2), which
punishes it, and the median, exp(-e m), which does neither: what is uncertain about the cost is no
reason to go anywhere, and twice the cost halves the score.

    CostAware(LogExpectedImprovement(), exponent=0.5).bind({"loss": loss, "cost": log_seconds}, context)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from scrimp.acquisition.acquisition import Acquisition, FantasyAverage, TermsPullback
from scrimp.acquisition.context import Context, model_named
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.acquisition.mixture import BoundMixture
from scrimp.acquisition.products import BoundProduct, KnownFactor, LogFunction, bind_logarithm
from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = ["CostAware", "median_log_cost"]


@dataclass(frozen=True)
class CostAware(Acquisition):
    """``inner`` divided by cost^exponent, in logarithms; ``log_cost`` given, or learned by the
    model "cost"."""

    inner: Acquisition = field(default_factory=LogExpectedImprovement)
    exponent: float = 1.0
    log_cost: LogFunction | None = None

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundProduct:
        improvement = bind_logarithm(self.inner, models, context)
        if self.log_cost is not None:
            return BoundProduct((improvement, KnownFactor(self.log_cost, -self.exponent)))
        parts = tuple(
            _LearnedCost(member, self.exponent) for member in model_named(models, "cost").members
        )
        cost = (
            parts[0] if len(parts) == 1 else BoundMixture((1.0 / len(parts),) * len(parts), parts)
        )
        return BoundProduct((improvement, cost))


def median_log_cost(model: FittedSurrogate, x: Array) -> Array:
    """The logarithm of the believed median cost (m, F) at x (m, d), in natural units."""
    return model.target_units(model.mean(x))


@dataclass(frozen=True)
class _LearnedCost(FantasyAverage):
    """log cost^-exponent under one posterior sample of the cost's model."""

    model: FittedSurrogate
    exponent: float

    @property
    def logarithmic(self) -> bool:
        return True

    def terms(self, x: Array) -> Array:
        return -self.exponent * median_log_cost(self.model, x)

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        posterior, back = self.model.posterior_and_pullback(x)
        slope = -self.exponent * self.model.target_slope(posterior.mean)
        terms = -self.exponent * self.model.target_units(posterior.mean)
        return terms, lambda d_terms: back(d_terms * slope, np.zeros(len(x)))
