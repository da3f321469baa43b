"""Improvement per unit of cost.

    EIpu(x) = EI(x) / cost(x)^exponent           Snoek, Larochelle, Adams, "Practical Bayesian optimization", 2012

The exponent tempers it: 0 ignores cost, 1 is per unit; letting it fall to 0 as the budget is spent is "cost cooling"
(Lee et al., "Cost-aware Bayesian optimization", 2020). The cost comes from the model "cost", which learns the
*logarithm* of costs (so that they stay positive) and may give means only, or from a given function.

    CostAware(LogExpectedImprovement(), exponent=0.5).bind({"loss": loss, "cost": log_seconds}, context)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from scrimp.acquisition.acquisition import (
    Acquisition,
    BoundMeanStd,
    Context,
    FantasyAverage,
    MeanStdAcquisition,
    TermsPullback,
    model_named,
)
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.acquisition.products import BoundProduct, bind_logarithm
from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = ["CostAware", "LogCost"]

LogCost = Callable[[Array], tuple[Array, Array]]
"""x (m, d) -> log cost (m,) and its gradient (m, d)."""


@dataclass(frozen=True)
class CostAware(Acquisition):
    """``inner`` divided by cost^exponent, in logarithms; ``log_cost`` given, or learned by the model "cost"."""

    inner: Acquisition = field(default_factory=LogExpectedImprovement)
    exponent: float = 1.0
    log_cost: LogCost | None = None

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundProduct:
        improvement = bind_logarithm(self.inner, models, context)
        if self.log_cost is not None:
            return BoundProduct((improvement, _GivenCost(self.log_cost, self.exponent)))
        members = model_named(models, "cost").members
        cost = BoundMeanStd(_LearnedCost(self.exponent), tuple((member, np.zeros(1)) for member in members))
        return BoundProduct((improvement, cost))


@dataclass(frozen=True)
class _LearnedCost(MeanStdAcquisition):
    """log cost^-exponent, where the mean is that of the log cost."""

    exponent: float
    logarithmic: ClassVar[bool] = True
    uses_std: ClassVar[bool] = False

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return -self.exponent * mean

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[float, float]:
        return -self.exponent, 0.0


@dataclass(frozen=True)
class _GivenCost(FantasyAverage):
    """log cost^-exponent of a known cost."""

    log_cost: LogCost
    exponent: float

    @property
    def logarithmic(self) -> bool:
        return True

    def terms(self, x: Array) -> Array:
        return -self.exponent * self.log_cost(x)[0][:, None]

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        value, gradient = self.log_cost(x)
        return -self.exponent * value[:, None], lambda d_terms: -self.exponent * d_terms * gradient
