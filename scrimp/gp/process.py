"""Priors over functions: a mean and a covariance with one parameter vector.

`MeanAndKernel` has a constant mean and any kernel. The mean and covariance of a learning-curve prior
are made of the same decay, so it implements `Prior` itself.

    prior = MeanAndKernel(Scaled(Matern52(columns)))
    fitted = ExactGP(prior).fit(data, rng)
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scrimp.gp.hyperparameters import Hyperparameter, Normal, Parametrised
from scrimp.gp.kernel import Array, Kernel

PriorPullback = Callable[[Array, Array], Array]
"""pull(dm (n,), dK (n, n)) -> gradient of the parameters (p,)."""

CrossPullback = Callable[[Array, Array, Array], Array]
"""pull(dm (n,), dk (n,), dK (n, m)) -> gradient of x1 (n, d)."""


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
    def value_and_pullback(self, x: Array) -> tuple[Array, Array, PriorPullback]:
        """m (n,), K (n, n), and their pullback. The caller may overwrite K."""

    @abstractmethod
    def cross_and_pullback(self, x1: Array, x2: Array) -> tuple[Array, Array, Array, CrossPullback]:
        """m (n,), k(x1_i, x1_i) (n,), K (n, m), and their pullback; zero for columns without a slope."""

    def length_scales(self, dimension: int) -> Array:
        """Length-scales along ``dimension`` input columns (d,), as in `Kernel.length_scales`."""
        return np.full(dimension, np.nan)


CONSTANT_MEAN = Hyperparameter("mean", Normal(0.0, 1.0), bounds=(-10.0, 10.0), encoding="identity")
"""The constant mean of standardised targets, which average 0: N(0, 1)."""


@dataclass(frozen=True, eq=False)
class MeanAndKernel(Prior):
    """m(x) = c and a kernel; c is the first parameter.

    ``mean_parameter``: that of c; None keeps c = 0, so that far from all data the prediction is the
    average of standardised targets.
    """

    kernel: Kernel
    mean_parameter: Hyperparameter | None = CONSTANT_MEAN
    constant: float = 0.0

    @property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        own = () if self.mean_parameter is None else (self.mean_parameter,)
        return (*own, *self.kernel.parameters)

    @property
    def values(self) -> Array:
        own = [] if self.mean_parameter is None else [self.constant]
        return np.concatenate([own, self.kernel.values])

    def with_values(self, values: Array) -> "MeanAndKernel":
        if self.mean_parameter is None:
            return MeanAndKernel(self.kernel.with_values(values), None)
        kernel = self.kernel.with_values(values[1:])
        return MeanAndKernel(kernel, self.mean_parameter, float(values[0]))

    def mean(self, x: Array) -> Array:
        return np.full(len(x), self.constant)

    def covariance(self, x1: Array, x2: Array) -> Array:
        return self.kernel(x1, x2)

    def variance(self, x: Array) -> Array:
        return self.kernel.diagonal(x)

    def length_scales(self, dimension: int) -> Array:
        return self.kernel.length_scales(dimension)

    def value_and_pullback(self, x: Array) -> tuple[Array, Array, PriorPullback]:
        covariance, pull_kernel = self.kernel.value_and_pullback(x)

        def pull(d_mean: Array, d_covariance: Array) -> Array:
            own = [] if self.mean_parameter is None else [d_mean.sum()]
            return np.concatenate([own, pull_kernel(d_covariance)])

        return self.mean(x), covariance, pull

    def cross_and_pullback(self, x1: Array, x2: Array) -> tuple[Array, Array, Array, CrossPullback]:
        variance, pull_variance = self.kernel.diagonal_and_pullback(x1)
        cross, pull_cross = self.kernel.cross_and_pullback(x1, x2)

        def pull(d_mean: Array, d_variance: Array, d_cross: Array) -> Array:
            return pull_variance(d_variance) + pull_cross(d_cross)

        return self.mean(x1), variance, cross, pull
