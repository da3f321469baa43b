"""Stationary kernels and their names: k(x, x') = profile(r^2), r^2 = sum_k (x_k - x'_k)^2 / l_k^2.

A kernel is one function of r^2, its profile with the slope; `Stationary` supplies length-scales,
categories and all pullbacks:

    class Cauchy(Stationary):
        def profile_and_slope(self, r2):
            value = 1.0 / (1.0 + r2)
            return value, -(value**2)

    register_kernel("cauchy-ard", lambda columns: Scaled(Cauchy(columns)))
    kernel_by_name("cauchy-ard", columns)

All length-scale gradients come from one matrix product. With A = dK * slope, a its row sums plus
its column sums, and z = x / l,

    d/dl_k = -(2/l_k) sum_ij A_ij (z_ik - z_jk)^2 = -(2/l_k) (a . z_k^2 - 2 z_k^T A z_k)
    d/dz_i = 2 sum_j (A_ij + A_ji) (z_i - z_j)

and if both are wanted, d/dl_k = -(1/l_k) sum_i z_ik d/dz_ik (Euler).

Formulas: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapter 4. Matern,
Spatial Variation, 1960; Stein, Interpolation of Spatial Data, 1999. Length-scale prior: Hvarfner,
Hellsten, Nardi, Vanilla Bayesian Optimization Performs Great in High Dimensions, 2024.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Self

import numpy as np
from numpy.typing import NDArray

from scrimp.gp.columns import Column, Features
from scrimp.gp.hyperparameters import Hyperparameter, LogNormal
from scrimp.gp.kernel import Array, Kernel, Pullback, PullbackPair, Scaled, with_fields
from scrimp.plugins.catalog import Catalog

LENGTH_SCALE_BOUNDS = (0.02, 200.0)
"""Bounds of length-scales, as shares of the range of a parameter (convention)."""


def length_scale_parameter(columns: Sequence[Column], ard: bool = True) -> Hyperparameter:
    """l_k ~ LogNormal(mu, sqrt 3), mu = sqrt 2 + log(d) / 2: like distances in a cube, length-scales
    grow with sqrt d. A column with a ``scale`` of its own is centred there instead."""
    mu, sigma = math.sqrt(2.0) + 0.5 * math.log(max(len(columns), 1)), math.sqrt(3.0)
    density = LogNormal(mu, sigma)
    if ard and set(map(attrgetter("scale"), columns)) - {None}:
        centres = (mu if column.scale is None else math.log(column.scale) for column in columns)
        density = LogNormal(tuple(centres), sigma)
    size = len(columns) if ard else 1
    return Hyperparameter("length_scale", density, bounds=LENGTH_SCALE_BOUNDS, size=size)


@dataclass(frozen=True, eq=False)
class Stationary(Kernel):
    """A kernel of r^2 with variance profile(0) = 1, and one length-scale per column (``ard``) or one
    for all.

    >>> kernel = Matern52((Column(), Column()))
    >>> kernel(np.zeros((1, 2)), np.zeros((1, 2)))
    array([[1.]])
    """

    columns: Sequence[Column]
    ard: bool = True
    length_scale: Hyperparameter | None = None
    features: Features = field(init=False, repr=False)
    _owner: NDArray[np.intp] = field(init=False, repr=False)
    _values: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        (parameter,) = self.parameters
        features = Features(tuple(self.columns))
        # The length-scale of each feature: that of its column, or the only one.
        owner = features.owner if self.ard else np.zeros_like(features.owner)
        values = np.full(parameter.size, parameter.start)
        self.__dict__.update(features=features, _owner=owner, _values=values)

    @abstractmethod
    def profile_and_slope(self, r2: Array) -> tuple[Array, Array]:
        """k(r^2) and dk / d(r^2), elementwise, for squared distances that are at least 0."""

    @cached_property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        return (self.length_scale or length_scale_parameter(self.columns, self.ard),)

    @property
    def values(self) -> Array:
        return self._values

    def with_values(self, values: Array) -> Self:
        return with_fields(self, _values=values)

    def scaled(self, x: Array) -> Array:
        """Return features divided by their length-scales (n, f); centred, so that r^2 loses few
        digits to cancellation."""
        return (self.features(x) - 0.5) / self._values[self._owner]

    def length_scales(self, dimension: int) -> Array:
        return np.array(np.broadcast_to(self._values, dimension))

    def __call__(self, x1: Array, x2: Array) -> Array:
        z1 = self.scaled(x1)
        r2 = _squared_distances(z1, z1 if x2 is x1 else self.scaled(x2))
        return self.profile_and_slope(r2)[0]

    def diagonal(self, x: Array) -> Array:
        return np.ones(len(x))

    def diagonal_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        return np.ones(len(x)), lambda d: np.zeros_like(x)

    def value_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        z = self.scaled(x)
        covariance, slope = self.profile_and_slope(_squared_distances(z, z))

        def pull(d: Array) -> Array:
            weights = d * slope
            total = weights.sum(0) + weights.sum(1)
            spread = total @ (z * z) - 2.0 * np.einsum("ij,ij->j", z, weights @ z)
            summed = np.bincount(self._owner, -2.0 * spread, minlength=len(self._values))
            return np.asarray(summed / self._values)

        return covariance, pull

    def value_and_pullbacks(self, x: Array) -> tuple[Array, PullbackPair]:
        z = self.scaled(x)
        covariance, slope = self.profile_and_slope(_squared_distances(z, z))

        def pull(d: Array) -> tuple[Array, Array]:
            weights = d * slope
            total = weights.sum(0) + weights.sum(1)
            d_z = 2.0 * (total[:, None] * z - weights @ z - weights.T @ z)
            per_feature = -np.einsum("ij,ij->j", z, d_z)
            summed = np.bincount(self._owner, per_feature, minlength=len(self._values))
            d_x = self.features.pull(d_z / self._values[self._owner])
            return np.asarray(summed / self._values), d_x

        return covariance, pull

    def cross_and_pullback(self, x1: Array, x2: Array) -> tuple[Array, Pullback]:
        z1, z2 = self.scaled(x1), self.scaled(x2)
        covariance, slope = self.profile_and_slope(_squared_distances(z1, z2))

        def pull(d: Array) -> Array:
            weights = d * slope
            d_z = 2.0 * (weights.sum(1)[:, None] * z1 - weights @ z2)
            return self.features.pull(d_z / self._values[self._owner])

        return covariance, pull


def _squared_distances(z1: Array, z2: Array) -> Array:
    """|z1_i - z2_j|^2 (n, m) by one matrix product."""
    r2: Array = z1 @ (-2.0 * z2.T)
    r2 += np.einsum("ij,ij->i", z1, z1)[:, None]
    r2 += np.einsum("ij,ij->i", z2, z2)
    np.maximum(r2, 0.0, out=r2)
    if z1 is z2:
        r2.ravel()[:: len(z1) + 1] = 0.0
    return r2


def matern52_and_slope(r2: Array) -> tuple[Array, Array]:
    """The Matern-5/2 covariance k and dk/dr^2 = -5/6 (1 + s) exp(-s) at squared distances r^2."""
    s = np.sqrt(5.0 * r2)
    decay = np.exp(-s)
    s += 1.0
    s *= decay
    decay *= r2
    decay *= 5.0 / 3.0
    decay += s
    s *= -5.0 / 6.0
    return decay, s


class Matern52(Stationary):
    """k = (1 + s + s^2 / 3) exp(-s) with s = sqrt(5 r^2): twice differentiable functions."""

    profile_and_slope = staticmethod(matern52_and_slope)


class Matern32(Stationary):
    """k = (1 + s) exp(-s) with s = sqrt(3 r^2): once differentiable functions."""

    def profile_and_slope(self, r2: Array) -> tuple[Array, Array]:
        s = np.sqrt(3.0 * r2)
        decay = np.exp(-s)
        return (1.0 + s) * decay, -1.5 * decay


class RBF(Stationary):
    """k = exp(-r^2 / 2): infinitely smooth functions."""

    def profile_and_slope(self, r2: Array) -> tuple[Array, Array]:
        covariance = np.exp(-0.5 * r2)
        return covariance, -0.5 * covariance


def matern52(squared: Array) -> Array:
    """The Matern-5/2 covariance at squared distances r^2."""
    root = np.sqrt(5.0 * squared)
    value: Array = root / 3.0
    value += 1.0
    value *= root
    value += 1.0
    value *= np.exp(np.negative(root, out=root), out=root)
    return value


def matern52_by_length(positions: Array, length: float) -> tuple[Array, Array]:
    """The Matern-5/2 covariance of positions (n,) on a line, (n, n), and its derivative by the
    logarithm of ``length``.

    >>> matern52_by_length(np.array([0.0, 1.0]), 1.0)[0].round(4)
    array([[1.   , 0.524],
           [0.524, 1.   ]])
    """
    squared = ((positions[:, None] - positions) / length) ** 2
    value, slope = matern52_and_slope(squared)
    return value, -2.0 * squared * slope


KernelFactory = Callable[[Sequence[Column]], Kernel]

_FACTORIES: Catalog[KernelFactory] = Catalog(
    "kernel",
    {
        "matern52-ard": lambda columns: Scaled(Matern52(columns)),
        "matern52-noard": lambda columns: Scaled(Matern52(columns, ard=False)),
        "matern32-ard": lambda columns: Scaled(Matern32(columns)),
        "matern32-noard": lambda columns: Scaled(Matern32(columns, ard=False)),
        "rbf-ard": lambda columns: Scaled(RBF(columns)),
        "rbf-noard": lambda columns: Scaled(RBF(columns, ard=False)),
    },
)


def register_kernel(name: str, factory: KernelFactory) -> None:
    """Make a kernel selectable by name in every method that has a GP; a name is given once.

    The factory gets the columns of the configuration; methods add budget, task or warping around
    the kernel that it returns.
    """
    _FACTORIES.add(name, factory)


def kernel_by_name(name: str, columns: Sequence[Column]) -> Kernel:
    """Return the kernel of that name over these columns."""
    return _FACTORIES[name](columns)
