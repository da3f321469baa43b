"""The kernel 1 / max(r, r') over budgets, which some methods multiply with one of configurations."""

from dataclasses import dataclass

import numpy as np

from scrimp.gp.kernel import Array, Kernel, Pullback
from scrimp.gp.priors import Hyperparameter

__all__ = ["InverseLargest"]


@dataclass(frozen=True, eq=False)
class InverseLargest(Kernel):
    """k(rho, rho') = 1 / (folds max(rho, rho')) over one positive column, without parameters.

    The covariance of averages over the first r and the first r' of the same folds, each of
    variance 1.
    """

    folds: float = 1.0

    @property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        return ()

    @property
    def values(self) -> Array:
        return np.empty(0)

    def with_values(self, values: Array) -> "InverseLargest":
        return self

    def __call__(self, x1: Array, x2: Array) -> Array:
        return 1.0 / (self.folds * np.maximum(x1, x2.T))

    def diagonal(self, x: Array) -> Array:
        return 1.0 / (self.folds * x[:, 0])

    def value_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        return self(x, x), lambda d: np.empty(0)

    def cross_and_pullback(self, x1: Array, x2: Array) -> tuple[Array, Pullback]:
        def pull(d: Array) -> Array:
            share = 0.5 * (np.sign(x1 - x2.T) + 1.0)  # half at a tie, where both sides count
            slope = -share / (self.folds * x1**2)
            return np.asarray((d * slope).sum(1, keepdims=True), dtype=np.float64)

        return self(x1, x2), pull

    def diagonal_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        return self.diagonal(x), lambda d: (-d / (self.folds * x[:, 0] ** 2))[:, None]
