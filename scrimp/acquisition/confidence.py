"""The optimistic guess: how low the loss may plausibly be.

    alpha = kappa std - mean                    Cox and John, "SDO: a statistical method for global optimization", 1997
    kappa = sqrt(beta)                          Srinivas et al., "Gaussian process optimization in the bandit setting", 2010

For losses this is minus the lower confidence bound; with the sign of a reward it is the upper one, hence the name
"ucb".
"""

from dataclasses import dataclass

from scrimp.acquisition.acquisition import MeanStdAcquisition
from scrimp.surrogates.surrogate import Array

__all__ = ["LowerConfidenceBound"]


@dataclass(frozen=True)
class LowerConfidenceBound(MeanStdAcquisition):
    """Minus the lower confidence bound of the loss, in the units of the targets; a larger ``kappa`` explores more."""

    kappa: float = 2.0

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return self.kappa * std - mean

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[float, float]:
        return -1.0, self.kappa
