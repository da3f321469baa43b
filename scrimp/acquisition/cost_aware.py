"""Improvement per unit of cost.

    EIpu(x) = EI(x) / cost(x)^exponent           Snoek, Larochelle, Adams, "Practical Bayesian optimization", 2012

The exponent tempers it: 0 ignores cost, 1 is per unit; letting it fall to 0 as the budget is spent is "cost cooling"
(Lee et al., "Cost-aware Bayesian optimization", 2020). The cost comes from the model "cost", which learns the
*logarithm* of costs (so that they stay positive) and may give means only, or from a given function.

    CostAware(LogExpectedImprovement(), exponent=0.5).bind({"loss": loss, "cost": log_seconds}, context)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from scrimp.acquisition.acquisition import (
    Acquisition,
    BoundMeanStd,
    Context,
    MeanStdAcquisition,
    model_named,
)
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.acquisition.products import BoundProduct, KnownFactor, LogFunction, bind_logarithm
from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = ["CostAware"]


@dataclass(frozen=True)
class CostAware(Acquisition):
    """``inner`` divided by cost^exponent, in logarithms; ``log_cost`` given, or learned by the model "cost"."""

    inner: Acquisition = field(default_factory=LogExpectedImprovement)
    exponent: float = 1.0
    log_cost: LogFunction | None = None

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundProduct:
        improvement = bind_logarithm(self.inner, models, context)
        if self.log_cost is not None:
            return BoundProduct((improvement, KnownFactor(self.log_cost, -self.exponent)))
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
