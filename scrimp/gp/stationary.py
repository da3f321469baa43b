"""Kernels of the scaled distance alone: k(x, x') = profile(r^2), r^2 = sum_k (x_k - x'_k)^2 /
l_k^2.

An author writes one function of r^2, the profile and its slope; length-scales, categories and every
pullback are supplied:

    class Matern32(Stationary):
        def profile_and_slope(self, r2):
            root = np.sqrt(3.0 * r2)
            decay = np.exp(-root)
            return (1.0 + root) * decay, -1.5 * decay

All length-scale gradients come from one matrix product. With A = dK * slope, its row plus column
sums a, and z = x / l,

    d/dl_k = -(2/l_k) sum_ij A_ij (z_ik - z_jk)^2 = -(2/l_k) (a . z_k^2 - 2 z_k^T A z_k)
    d/dz_i = 2 sum_j (A_ij + A_ji) (z_i - z_j),    and d/dl_k = -(1/l_k) sum_i z_ik d/dz_ik when both are wanted (Euler).

Formulas: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapter 4.
Length-scale prior: Hvarfner, Hellsten, Nardi, Vanilla Bayesian Optimization Performs Great in High
Dimensions, 2024.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from scrimp.gp.columns import Column
from scrimp.gp.features import Features
from scrimp.gp.kernel import Array, Kernel, Pullback, PullbackPair, with_fields
from scrimp.gp.matern import matern52_and_slope
from scrimp.gp.priors import Hyperparameter, LogNormal, LogNormals

__all__ = ["RBF", "Matern32", "Matern52", "Stationary", "length_scale_parameter"]


def length_scale_parameter(dimensions: int, ard: bool) -> Hyperparameter:
    """l_k ~ LogNormal(sqrt 2 + log(d) / 2, sqrt 3): typical distances in a cube grow with sqrt d,
    so do the length-scales."""
    density = LogNormal(math.sqrt(2.0) + 0.5 * math.log(max(dimensions, 1)), math.sqrt(3.0))
    return Hyperparameter(
        "length_scale", density, bounds=(0.02, 200.0), size=dimensions if ard else 1
    )


def expected_length_scales(columns: Sequence[Column], ard: bool) -> Hyperparameter:
    """The same, centred at what is expected along each column where that is known (``scale``)."""
    usual = length_scale_parameter(len(columns), ard)
    if not ard or all(column.scale is None for column in columns):
        return usual
    assert isinstance(usual.density, LogNormal)
    centres = [
        usual.density.mu if column.scale is None else math.log(column.scale) for column in columns
    ]
    return replace(usual, density=LogNormals(tuple(centres), usual.density.sigma))


@dataclass(frozen=True, eq=False)
class Stationary(Kernel):
    """A kernel of r^2, with one length-scale per column (``ard``) or one for all; its variance is
    profile(0) = 1.

    >>> kernel = Matern52((Column(), Column()))
    >>> kernel(np.zeros((1, 2)), np.zeros((1, 2)))
    array([[1.]])
    """

    columns: Sequence[Column]
    ard: bool = True
    length_scale: Hyperparameter | None = None
    features: Features = field(init=False, repr=False)
    _parameters: tuple[Hyperparameter, ...] = field(init=False, repr=False)
    _values: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parameter = self.length_scale or expected_length_scales(self.columns, self.ard)
        object.__setattr__(self, "features", Features(tuple(self.columns)))
        object.__setattr__(self, "_parameters", (parameter,))
        object.__setattr__(self, "_values", np.full(parameter.size, parameter.start))

    @abstractmethod
    def profile_and_slope(self, r2: Array) -> tuple[Array, Array]:
        """k(r^2) and dk / d(r^2), elementwise, for squared distances that are at least 0."""

    def profile(self, r2: Array) -> Array:
        """k(r^2) alone."""
        return self.profile_and_slope(r2)[0]

    @property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        return self._parameters

    @property
    def values(self) -> Array:
        return self._values

    def with_values(self, values: Array) -> Self:
        changed = with_fields(self, _values=values)
        assert isinstance(changed, type(self))
        return changed

    def scaled(self, x: Array) -> Array:
        """Features divided by their length-scales (n, f); centred, which keeps the cancellation in
        r^2 small."""
        return (self.features(x) - 0.5) / self._per_feature

    @property
    def _per_feature(self) -> Array:
        return self.features.spread(self._values) if self.ard else self._values

    def length_scales(self, dimension: int) -> Array:
        return np.array(np.broadcast_to(self._values, dimension))

    def __call__(self, x1: Array, x2: Array) -> Array:
        z1 = self.scaled(x1)
        return self.profile(_squared_distances(z1, z1 if x2 is x1 else self.scaled(x2)))

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
            return self._per_length_scale(-2.0 * spread)

        return covariance, pull

    def value_and_pullbacks(self, x: Array) -> tuple[Array, PullbackPair]:
        z = self.scaled(x)
        covariance, slope = self.profile_and_slope(_squared_distances(z, z))

        def pull(d: Array) -> tuple[Array, Array]:
            d_z = _both_sides(z, d * slope)
            return self._per_length_scale(-np.einsum("ij,ij->j", z, d_z)), self.features.pull(
                d_z / self._per_feature
            )

        return covariance, pull

    def cross_and_pullback(self, x1: Array, x2: Array) -> tuple[Array, Pullback]:
        z1, z2 = self.scaled(x1), self.scaled(x2)
        covariance, slope = self.profile_and_slope(_squared_distances(z1, z2))

        def pull(d: Array) -> Array:
            weights = d * slope
            d_z = 2.0 * (weights.sum(1)[:, None] * z1 - weights @ z2)
            return self.features.pull(d_z / self._per_feature)

        return covariance, pull

    def _per_length_scale(self, per_feature: Array) -> Array:
        """Gradients with respect to log length-scales, one per feature, to those of the
        length-scales themselves."""
        per_parameter = (
            self.features.gather(per_feature) if self.ard else np.array([per_feature.sum()])
        )
        return per_parameter / self._values


def _squared_distances(z1: Array, z2: Array) -> Array:
    """|z1_i - z2_j|^2 (n, m) by one matrix product."""
    r2: Array = z1 @ (-2.0 * z2.T)
    r2 += np.einsum("ij,ij->i", z1, z1)[:, None]
    r2 += np.einsum("ij,ij->i", z2, z2)
    np.maximum(r2, 0.0, out=r2)
    if z1 is z2:
        r2.ravel()[:: len(z1) + 1] = 0.0
    return r2


def _both_sides(z: Array, weights: Array) -> Array:
    """Gradient of sum_ij weights_ij |z_i - z_j|^2 with respect to z (n, f); weights need not be
    symmetric."""
    total = weights.sum(0) + weights.sum(1)
    gradient: Array = 2.0 * (total[:, None] * z - weights @ z - weights.T @ z)
    return gradient


class Matern52(Stationary):
    """k = (1 + s + s^2 / 3) exp(-s) with s = sqrt(5 r^2): twice differentiable functions."""

    def profile_and_slope(self, r2: Array) -> tuple[Array, Array]:
        return matern52_and_slope(r2)


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
