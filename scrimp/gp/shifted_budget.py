"""A prior over (x, rho) that sees the budget shifted: rho - shift in the place of rho.

Where budgets are whole numbers, systems that encode them like any integer parameter put r of 1 to
r_max in the middle of the r-th of r_max cells, (r - 1/2) / r_max, instead of at its end, r / r_max.

    ShiftedBudget(budget_prior("exp-decay-sum", columns), 0.5 / r_max)
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from scrimp.gp.kernel import Array
from scrimp.gp.priors import Hyperparameter
from scrimp.gp.process import Prior

__all__ = ["ShiftedBudget"]


@dataclass(frozen=True, eq=False)
class ShiftedBudget(Prior):
    """``inner`` at (x, rho - shift); its parameters are those of ``inner``."""

    inner: Prior
    shift: float

    def _moved(self, x: Array) -> Array:
        return np.column_stack([x[:, :-1], x[:, -1] - self.shift])

    @property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        return self.inner.parameters

    @property
    def values(self) -> Array:
        return self.inner.values

    def with_values(self, values: Array) -> "ShiftedBudget":
        return replace(self, inner=self.inner.with_values(values))

    def mean(self, x: Array) -> Array:
        return self.inner.mean(self._moved(x))

    def covariance(self, x1: Array, x2: Array) -> Array:
        first = self._moved(x1)
        return self.inner.covariance(first, first if x2 is x1 else self._moved(x2))

    def variance(self, x: Array) -> Array:
        return self.inner.variance(self._moved(x))

    def value_and_pullback(self, x: Array) -> tuple[Array, Array, Callable[[Array, Array], Array]]:
        return self.inner.value_and_pullback(self._moved(x))

    def cross_and_pullback(
        self, x1: Array, x2: Array
    ) -> tuple[Array, Array, Array, Callable[[Array, Array, Array], Array]]:
        return self.inner.cross_and_pullback(self._moved(x1), self._moved(x2))

    def length_scales(self, dimension: int) -> Array:
        return self.inner.length_scales(dimension)
