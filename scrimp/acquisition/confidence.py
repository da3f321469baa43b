"""The optimistic guess: how low the loss may plausibly be.

    alpha = kappa std - mean                    Cox and John, "SDO: a statistical method for global optimization", 1997
    kappa = sqrt(beta)                          Srinivas et al., "Gaussian process optimization in
                                                the bandit setting", 2010

For losses this is minus the lower confidence bound; with the sign of a reward it is the upper one,
hence the name "ucb".
"""

from dataclasses import dataclass
from typing import ClassVar

from scrimp.acquisition.acquisition import MeanStdAcquisition
from scrimp.acquisition.improvement import (
    log_expected_improvement,
    log_expected_improvement_and_derivatives,
)
from scrimp.surrogates.surrogate import Array

__all__ = ["LowerConfidenceBound", "OptimisticImprovement"]


@dataclass(frozen=True)
class LowerConfidenceBound(MeanStdAcquisition):
    """Minus the lower confidence bound of the loss, in the units of the targets; a larger ``kappa``
    explores more."""

    kappa: float = 2.0

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return self.kappa * std - mean

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[float, float]:
        return -1.0, self.kappa

    def logarithm(self) -> "OptimisticImprovement":
        return OptimisticImprovement(self.kappa)


@dataclass(frozen=True)
class OptimisticImprovement(MeanStdAcquisition):
    """The logarithm of how far the lower confidence bound lies below the incumbent: what
    feasibility and cost can weigh.

    With z = (incumbent - mean) / std it is log(std h(z + kappa)), h(w) = phi(w) + w Phi(w). Where
    the bound promises an improvement h(w) is w nearly, so this is log(incumbent - (mean - kappa
    std)); elsewhere it falls off smoothly, as EI does.
    """

    kappa: float = 2.0
    logarithmic: ClassVar[bool] = True

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return log_expected_improvement(mean - self.kappa * std, std, incumbent)

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[Array, Array]:
        _, d_mean, d_std = log_expected_improvement_and_derivatives(
            mean - self.kappa * std, std, incumbent
        )
        return d_mean, d_std - self.kappa * d_mean
