"""The optimistic guess: how low the loss may plausibly be.

    alpha = kappa std - mean                    Cox and John, "SDO: a statistical method for global optimization", 1997
    kappa = sqrt(beta)                          Srinivas et al., "Gaussian process optimization in
                                                the bandit setting", 2010

A constant kappa, or one that grows with the number t of observations in d columns, as the theory of
Srinivas et al. asks for (theorem 2, with the constants a, b and r of the domain 1):

    beta_t  = 2 log(2 pi^2 t^2 / (3 delta)) + 2 d log(d t^2 sqrt(log(4 d / delta)))
    kappa_t = sqrt(beta_t / divisor)            their experiments divide by 5

For losses this is minus the lower confidence bound; with the sign of a reward it is the upper one,
hence the name "ucb".
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log, pi, sqrt
from typing import ClassVar

from scrimp.acquisition.acquisition import BoundMeanStd, MeanStdAcquisition
from scrimp.acquisition.context import Context
from scrimp.acquisition.improvement import (
    log_expected_improvement,
    log_expected_improvement_and_derivatives,
)
from scrimp.errors import MethodError
from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = ["LowerConfidenceBound", "OptimisticImprovement", "growing_kappa"]

SCHEDULES = ("constant", "growing")


def growing_kappa(count: int, dimension: int, delta: float = 0.1, divisor: float = 5.0) -> float:
    """kappa_t after ``count`` observations in ``dimension`` columns; see the module.

    >>> [round(growing_kappa(t, 2), 2) for t in (1, 10, 100)]
    [2.12, 2.93, 3.73]
    """
    t, d = count + 1, max(dimension, 1)
    beta = 2 * log(2 * pi**2 * t**2 / (3 * delta))
    beta += 2 * d * log(d * t**2 * sqrt(log(4 * d / delta)))
    return sqrt(max(beta, 0.0) / divisor)


@dataclass(frozen=True)
class _Confidence(MeanStdAcquisition):
    """``schedule``: kappa is ``constant``, or ``growing`` by ``delta`` and ``divisor``."""

    kappa: float = 2.0
    schedule: str = "constant"
    delta: float = 0.1
    divisor: float = 5.0

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise MethodError(
                f"schedule is {self.schedule!r}; it must be one of {', '.join(SCHEDULES)}"
            )
        if not 0 < self.delta < 1 or not self.divisor > 0:
            raise MethodError(
                f"delta is {self.delta} and divisor {self.divisor}; delta must lie between 0 and 1,"
                " and divisor must be positive"
            )

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundMeanStd:
        if self.schedule == "constant":
            return super().bind(models, context)
        count, dimension = context.evaluated.shape
        kappa = growing_kappa(count, dimension, self.delta, self.divisor)
        return replace(self, kappa=kappa, schedule="constant").bind(models, context)


class LowerConfidenceBound(_Confidence):
    """Minus the lower confidence bound of the loss, in the units of the targets; a larger ``kappa``
    explores more."""

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return self.kappa * std - mean

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[float, float]:
        return -1.0, self.kappa

    def logarithm(self) -> "OptimisticImprovement":
        return OptimisticImprovement(self.kappa, self.schedule, self.delta, self.divisor)


class OptimisticImprovement(_Confidence):
    """The logarithm of how far the lower confidence bound lies below the incumbent: what
    feasibility and cost can weigh.

    With z = (incumbent - mean) / std it is log(std h(z + kappa)), h(w) = phi(w) + w Phi(w). Where
    the bound promises an improvement h(w) is w nearly, so this is log(incumbent - (mean - kappa
    std)); elsewhere it falls off smoothly, as EI does.
    """

    logarithmic: ClassVar[bool] = True

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return log_expected_improvement(mean - self.kappa * std, std, incumbent)

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[Array, Array]:
        _, d_mean, d_std = log_expected_improvement_and_derivatives(
            mean - self.kappa * std, std, incumbent
        )
        return d_mean, d_std - self.kappa * d_mean
