"""The prior over functions: a mean and a covariance with *one* parameter vector.

`MeanAndKernel` is the plain case, where the two share nothing. A learning-curve prior, whose mean
and covariance are both made of the same decay, implements `Prior` itself: that is why the vector
belongs to the pair and not to its parts.

    prior = MeanAndKernel(Scaled(Matern52(columns)))
    fitted = ExactGP(prior).fit(data, rng)
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from scrimp.gp.kernel import Array, Kernel
from scrimp.gp.mean import ConstantMean, Mean
from scrimp.gp.parametrised import Parametrised
from scrimp.gp.priors import Hyperparameter

__all__ = ["MeanAndKernel", "Prior"]


class Prior(Parametrised):
    """A Gaussian process before data: m(x), k(x, x') and p parameters, held as natural values."""

    @abstractmethod
    def mean(self, x: Array) -> Array:
        """m(x_i), as (n,)."""

    @abstractmethod
    def covariance(self, x1: Array, x2: Array) -> Array:
        """k(x1_i, x2_j), as (n, m)."""

    @abstractmethod
    def variance(self, x: Array) -> Array:
        """k(x_i, x_i), as (n,)."""

    @abstractmethod
    def value_and_pullback(self, x: Array) -> tuple[Array, Array, Callable[[Array, Array], Array]]:
        """m (n,), K (n, n), and pull(dm (n,), dK (n, n)) -> gradient of the parameters (p,). K is
        the caller's to overwrite."""

    @abstractmethod
    def cross_and_pullback(
        self, x1: Array, x2: Array
    ) -> tuple[Array, Array, Array, Callable[[Array, Array, Array], Array]]:
        """m (n,), k(x1_i, x1_i) (n,), K (n, m), and pull(dm (n,), dk (n,), dK (n, m)) -> gradient
        of x1 (n, d)."""

    def length_scales(self, dimension: int) -> Array:
        """How far it sees along each of ``dimension`` input columns (d,), as `Kernel.length_scales`
        has it."""
        return np.full(dimension, np.nan)


@dataclass(frozen=True, eq=False)
class MeanAndKernel(Prior):
    """A mean function and a kernel that share no parameter: the mean's values come first."""

    kernel: Kernel
    mean_function: Mean = field(default_factory=ConstantMean)

    @property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        return self.mean_function.parameters + self.kernel.parameters

    @property
    def values(self) -> Array:
        return np.concatenate([self.mean_function.values, self.kernel.values])

    def with_values(self, values: Array) -> "MeanAndKernel":
        cut = sum(parameter.size for parameter in self.mean_function.parameters)
        return MeanAndKernel(
            self.kernel.with_values(values[cut:]), self.mean_function.with_values(values[:cut])
        )

    def mean(self, x: Array) -> Array:
        return self.mean_function(x)

    def covariance(self, x1: Array, x2: Array) -> Array:
        return self.kernel(x1, x2)

    def variance(self, x: Array) -> Array:
        return self.kernel.diagonal(x)

    def length_scales(self, dimension: int) -> Array:
        return self.kernel.length_scales(dimension)

    def value_and_pullback(self, x: Array) -> tuple[Array, Array, Callable[[Array, Array], Array]]:
        mean, pull_mean = self.mean_function.value_and_pullback(x)
        covariance, pull_kernel = self.kernel.value_and_pullback(x)
        return mean, covariance, lambda dm, dk: np.concatenate([pull_mean(dm)[0], pull_kernel(dk)])

    def cross_and_pullback(
        self, x1: Array, x2: Array
    ) -> tuple[Array, Array, Array, Callable[[Array, Array, Array], Array]]:
        mean, pull_mean = self.mean_function.value_and_pullback(x1)
        variance, pull_variance = self.kernel.diagonal_and_pullback(x1)
        cross, pull_cross = self.kernel.cross_and_pullback(x1, x2)
        return (
            mean,
            variance,
            cross,
            lambda dm, dv, dc: pull_mean(dm)[1] + pull_variance(dv) + pull_cross(dc),
        )
