"""The contract of mean functions, the constant one and none at all.

Like kernels they hold their natural parameter values and give pullbacks; a mean that depends on the
input (a learning curve over a budget column) pulls back to x as well.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.gp.parametrised import Parametrised
from scrimp.gp.priors import IDENTITY, Hyperparameter, Normal

__all__ = ["CONSTANT_MEAN", "ConstantMean", "Mean", "ZeroMean"]

Array = NDArray[np.float64]

CONSTANT_MEAN = Hyperparameter("mean", Normal(0.0, 1.0), bounds=(-10.0, 10.0), encoding=IDENTITY)
"""Standardised targets average 0, so the constant is N(0, 1)."""


class Mean(Parametrised):
    """A function m(x) with p parameters."""

    @abstractmethod
    def __call__(self, x: Array) -> Array:
        """m(x_i), as (n,)."""

    @abstractmethod
    def value_and_pullback(self, x: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
        """m(x_i) (n,), and pull(d (n,)) -> gradients of the parameters (p,) and of x (n, d)."""


@dataclass(frozen=True, eq=False)
class ConstantMean(Mean):
    """m(x) = c.

    >>> ConstantMean(value=0.5)(np.zeros((2, 3)))
    array([0.5, 0.5])
    """

    parameter: Hyperparameter = CONSTANT_MEAN
    value: float = 0.0

    @property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        return (self.parameter,)

    @property
    def values(self) -> Array:
        return np.array([self.value])

    def with_values(self, values: Array) -> "ConstantMean":
        return ConstantMean(self.parameter, float(values[0]))

    def __call__(self, x: Array) -> Array:
        return np.full(len(x), self.value)

    def value_and_pullback(self, x: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
        return self(x), lambda d: (np.array([d.sum()]), np.zeros_like(x))


@dataclass(frozen=True, eq=False)
class ZeroMean(Mean):
    """m(x) = 0, and nothing to learn: far from all data a model of standardised targets then says
    "average".

    >>> ZeroMean()(np.zeros((2, 3)))
    array([0., 0.])
    """

    @property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        return ()

    @property
    def values(self) -> Array:
        return np.zeros(0)

    def with_values(self, values: Array) -> "ZeroMean":
        del values
        return self

    def __call__(self, x: Array) -> Array:
        return np.zeros(len(x))

    def value_and_pullback(self, x: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
        return self(x), lambda d: (np.zeros(0), np.zeros_like(x))
