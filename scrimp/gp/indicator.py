"""Kernels that say who belongs together: everything, or rows that are equal.

Constant()                                        # k = 1: one unknown level, when scaled
OnColumns(SameRow(), own) * OnColumns(k, (time,)) # a process of its own for every configuration
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from scrimp.gp.budget import same_rows
from scrimp.gp.kernel import Array, Kernel, Pullback
from scrimp.gp.priors import Parameter

__all__ = ["Constant", "SameRow"]


@dataclass(frozen=True, eq=False)
class _Fixed(Kernel):
    """A kernel without parameters and without slopes, whose variance is 1."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return ()

    @property
    def values(self) -> Array:
        return np.empty(0)

    def with_values(self, values: Array) -> Self:
        return self

    def diagonal(self, x: Array) -> Array:
        return np.ones(len(x))

    def length_scales(self, dimension: int) -> Array:
        return np.full(dimension, np.inf)

    def value_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        return self(x, x), lambda d: np.empty(0)

    def cross_and_pullback(self, x1: Array, x2: Array) -> tuple[Array, Pullback]:
        return self(x1, x2), lambda d: np.zeros_like(x1)

    def diagonal_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        return np.ones(len(x)), lambda d: np.zeros_like(x)


class Constant(_Fixed):
    """k(x, x') = 1."""

    def __call__(self, x1: Array, x2: Array) -> Array:
        return np.ones((len(x1), len(x2)))


class SameRow(_Fixed):
    """k(x, x') = [x = x'], bit by bit."""

    def __call__(self, x1: Array, x2: Array) -> Array:
        return same_rows(np.ascontiguousarray(x1), np.ascontiguousarray(x2))
