"""The contract of covariance functions, and their sums, products and restrictions.

A kernel is a frozen value that holds its own parameters. Besides covariances it gives *pullbacks*:
functions that take the derivative of a scalar with respect to K and return its derivative with
respect to the parameters or the inputs. Sums and products compose the pullbacks of their parts.

The meaning of the columns of x (budget, task, configuration id) is left to the kernel. `OnColumns`
applies a kernel to some columns, `Mapped` to any map of the inputs. Parameters are natural
values here; a fit reads encodings, bounds and densities from ``parameters``.

    kernel = OnColumns(Scaled(Matern52(columns[:4])), (0, 1, 2, 3)) * OnColumns(RBF(columns[4:]), (4,))
    covariance, pull = kernel.value_and_pullback(x)               # K (n, n)
    pull(d_covariance)                                            # (p,), all parameters in order
"""

import copy
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from scrimp.gp.hyperparameters import Hyperparameter, LogNormal, Parametrised, joined_parameters

Array = NDArray[np.float64]

Pullback = Callable[[Array], Array]
PullbackPair = Callable[[Array], tuple[Array, Array]]


class Kernel(Parametrised):
    """A covariance function k(x, x') with p parameters. Callers may overwrite its matrices."""

    @abstractmethod
    def __call__(self, x1: Array, x2: Array) -> Array:
        """Covariances (n, m) of x1 (n, d) with x2 (m, d)."""

    @abstractmethod
    def diagonal(self, x: Array) -> Array:
        """k(x_i, x_i), as (n,)."""

    @abstractmethod
    def value_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        """K (n, n) of x, and pull(dK) -> gradient of the parameters (p,); dK may be asymmetric."""

    @abstractmethod
    def cross_and_pullback(self, x1: Array, x2: Array) -> tuple[Array, Pullback]:
        """K (n, m), and pull(dK) -> gradient of x1 (n, d); zero for columns without a slope."""

    def value_and_pullbacks(self, x: Array) -> tuple[Array, PullbackPair]:
        """K (n, n), and pull(dK) -> gradients of the parameters (p,) and of x (n, d), where x
        enters on both sides.

        Needed below a map of the inputs, such as `Warped`. Kernels that get both at once cheaper
        override this default.
        """
        covariance, pull = self.value_and_pullback(x)
        _, pull_input = self.cross_and_pullback(x, x)
        return covariance, lambda d: (pull(d), pull_input(d + d.T))

    def diagonal_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        """k(x_i, x_i) (n,), and pull(d) -> gradient of x (n, d): twice the slope of one side."""
        _, pull = self.cross_and_pullback(x, x)
        return self.diagonal(x), lambda d: 2.0 * pull(np.diag(d))

    def length_scales(self, dimension: int) -> Array:
        """The length-scale along each of ``dimension`` input columns (d,).

        Infinite along a column that the kernel ignores; NaN where it is unknown, which is the
        default.
        """
        return np.full(dimension, np.nan)

    def __add__(self, other: "Kernel") -> "Sum":
        return Sum(self, other)

    def __mul__(self, other: "Kernel") -> "Product":
        return Product(self, other)


T = TypeVar("T")


def with_fields(kernel: T, **fields: object) -> T:
    """Copy a frozen object with other fields, without ``__post_init__``, which `replace` runs."""
    twin = copy.copy(kernel)
    twin.__dict__.update(fields)
    return twin


@dataclass(frozen=True, eq=False)
class _Pair(Kernel):
    """Two kernels, combined entry by entry, with one parameter vector: left's values, then right's."""

    left: Kernel
    right: Kernel

    @staticmethod
    @abstractmethod
    def _combined(left: Array, right: Array) -> Array:
        """Combine the values of both kernels."""

    @staticmethod
    @abstractmethod
    def _passed_on(d: Array, other: Array) -> Array:
        """Return the derivative by one kernel, given that by the combination and the other's values."""

    @cached_property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        return joined_parameters(self.left.parameters, self.right.parameters, ("left", "right"))

    @property
    def values(self) -> Array:
        return np.concatenate([self.left.values, self.right.values])

    def with_values(self, values: Array) -> Self:
        cut = len(self.left.values)
        left, right = self.left.with_values(values[:cut]), self.right.with_values(values[cut:])
        return with_fields(self, left=left, right=right)

    def length_scales(self, dimension: int) -> Array:
        """The shorter of the two along each column: a search has to resolve the faster change."""
        left, right = self.left.length_scales(dimension), self.right.length_scales(dimension)
        return np.fmin(left, right)

    def __call__(self, x1: Array, x2: Array) -> Array:
        return self._combined(self.left(x1, x2), self.right(x1, x2))

    def diagonal(self, x: Array) -> Array:
        return self._combined(self.left.diagonal(x), self.right.diagonal(x))

    def value_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        left, pull_left = self.left.value_and_pullback(x)
        right, pull_right = self.right.value_and_pullback(x)

        def pull(d: Array) -> Array:
            d_left, d_right = self._passed_on(d, right), self._passed_on(d, left)
            return np.concatenate([pull_left(d_left), pull_right(d_right)])

        return self._combined(left, right), pull

    def cross_and_pullback(self, x1: Array, x2: Array) -> tuple[Array, Pullback]:
        sides = self.left.cross_and_pullback(x1, x2), self.right.cross_and_pullback(x1, x2)
        return self._pulled_to_inputs(*sides)

    def diagonal_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        sides = self.left.diagonal_and_pullback(x), self.right.diagonal_and_pullback(x)
        return self._pulled_to_inputs(*sides)

    def _pulled_to_inputs(
        self, left: tuple[Array, Pullback], right: tuple[Array, Pullback]
    ) -> tuple[Array, Pullback]:
        """Combine values, and pullbacks to the inputs that both kernels share."""

        def pull(d: Array) -> Array:
            return left[1](self._passed_on(d, right[0])) + right[1](self._passed_on(d, left[0]))

        return self._combined(left[0], right[0]), pull


class Sum(_Pair):
    """k(x, x') = left(x, x') + right(x, x')."""

    @staticmethod
    def _combined(left: Array, right: Array) -> Array:
        return left + right

    @staticmethod
    def _passed_on(d: Array, other: Array) -> Array:
        return d


class Product(_Pair):
    """k(x, x') = left(x, x') right(x, x')."""

    @staticmethod
    def _combined(left: Array, right: Array) -> Array:
        return left * right

    @staticmethod
    def _passed_on(d: Array, other: Array) -> Array:
        return d * other


OUTPUT_SCALE = Hyperparameter("output_scale", LogNormal(0.0, 0.5), bounds=(1e-2, 1e2), initial=1.0)
"""A prior variance close to 1, the variance of standardised targets."""


@dataclass(frozen=True, eq=False)
class Scaled(Kernel):
    """k(x, x') = c inner(x, x'), with the output scale c as its first parameter.

    ``scale``: c; without one, the starting value of its parameter.
    """

    inner: Kernel
    scale_parameter: Hyperparameter = OUTPUT_SCALE
    scale: float = math.nan

    def __post_init__(self) -> None:
        if math.isnan(self.scale):
            object.__setattr__(self, "scale", self.scale_parameter.start)

    @cached_property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        return joined_parameters((self.scale_parameter,), self.inner.parameters, ("outer", "inner"))

    @property
    def values(self) -> Array:
        return np.concatenate([[self.scale], self.inner.values])

    def with_values(self, values: Array) -> "Scaled":
        inner = self.inner.with_values(values[1:])
        return with_fields(self, scale=float(values[0]), inner=inner)

    def __call__(self, x1: Array, x2: Array) -> Array:
        covariance = self.inner(x1, x2)
        covariance *= self.scale
        return covariance

    def diagonal(self, x: Array) -> Array:
        return self.scale * self.inner.diagonal(x)

    def length_scales(self, dimension: int) -> Array:
        return self.inner.length_scales(dimension)

    def value_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        unscaled, pull_inner = self.inner.value_and_pullback(x)

        def pull(d: Array) -> Array:
            # The inner pullback is linear: c multiplies its p results, not the n^2 entries of d.
            return np.concatenate([[np.vdot(d, unscaled)], self.scale * pull_inner(d)])

        return self.scale * unscaled, pull

    def cross_and_pullback(self, x1: Array, x2: Array) -> tuple[Array, Pullback]:
        covariance, pull = self.inner.cross_and_pullback(x1, x2)
        covariance *= self.scale
        return covariance, lambda d: self.scale * pull(d)

    def value_and_pullbacks(self, x: Array) -> tuple[Array, PullbackPair]:
        unscaled, pull_inner = self.inner.value_and_pullbacks(x)

        def pull(d: Array) -> tuple[Array, Array]:
            d_values, d_x = pull_inner(d)
            own = np.concatenate([[np.vdot(d, unscaled)], self.scale * d_values])
            return own, self.scale * d_x

        return self.scale * unscaled, pull

    def diagonal_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        diagonal, pull = self.inner.diagonal_and_pullback(x)
        return self.scale * diagonal, lambda d: self.scale * pull(d)


class Mapped(Kernel):
    """k(x, x') = inner(w(x), w(x')). First parameters: those of the map w, with the values ``own``."""

    inner: Kernel
    own: Array

    @property
    @abstractmethod
    def own_parameters(self) -> tuple[Hyperparameter, ...]:
        """The parameters of the map."""

    @abstractmethod
    def embed(self, x: Array) -> tuple[Array, PullbackPair]:
        """w(x) (n, f), and pull(dw) -> gradients of ``own`` and of x (n, d)."""

    @cached_property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        return joined_parameters(self.own_parameters, self.inner.parameters, ("outer", "inner"))

    @property
    def values(self) -> Array:
        return np.concatenate([self.own, self.inner.values])

    def with_values(self, values: Array) -> Self:
        cut = len(self.own)
        return with_fields(self, own=values[:cut], inner=self.inner.with_values(values[cut:]))

    def __call__(self, x1: Array, x2: Array) -> Array:
        embedded = self.embed(x1)[0]
        return self.inner(embedded, embedded if x2 is x1 else self.embed(x2)[0])

    def diagonal(self, x: Array) -> Array:
        return self.inner.diagonal(self.embed(x)[0])

    def value_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        covariance, pull = self.value_and_pullbacks(x)
        return covariance, lambda d: pull(d)[0]

    def value_and_pullbacks(self, x: Array) -> tuple[Array, PullbackPair]:
        embedded, pull_embedded = self.embed(x)
        covariance, pull_inner = self.inner.value_and_pullbacks(embedded)

        def pull(d: Array) -> tuple[Array, Array]:
            d_inner, d_embedded = pull_inner(d)
            d_own, d_x = pull_embedded(d_embedded)
            return np.concatenate([d_own, d_inner]), d_x

        return covariance, pull

    def cross_and_pullback(self, x1: Array, x2: Array) -> tuple[Array, Pullback]:
        embedded, pull_embedded = self.embed(x1)
        covariance, pull = self.inner.cross_and_pullback(embedded, self.embed(x2)[0])
        return covariance, lambda d: pull_embedded(pull(d))[1]

    def diagonal_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        embedded, pull_embedded = self.embed(x)
        diagonal, pull = self.inner.diagonal_and_pullback(embedded)
        return diagonal, lambda d: pull_embedded(pull(d))[1]


@dataclass(frozen=True, eq=False)
class OnColumns(Mapped):
    """k(x, x') = inner(x[chosen], x'[chosen]): a kernel of some columns of the input."""

    inner: Kernel
    chosen: tuple[int, ...]
    own: Array = field(init=False, repr=False, default_factory=lambda: np.empty(0))
    own_parameters: ClassVar[tuple[Hyperparameter, ...]] = ()

    def embed(self, x: Array) -> tuple[Array, PullbackPair]:
        def pull(d: Array) -> tuple[Array, Array]:
            # Columns that the kernel ignores have no slope.
            d_x = np.zeros_like(x)
            d_x[:, self.chosen] = d
            return self.own, d_x

        return x[:, self.chosen], pull

    def length_scales(self, dimension: int) -> Array:
        scales = np.full(dimension, np.inf)
        scales[list(self.chosen)] = self.inner.length_scales(len(self.chosen))
        return scales

    def __call__(self, x1: Array, x2: Array) -> Array:
        return self.inner(x1[:, self.chosen], x2[:, self.chosen])

    def value_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        return self.inner.value_and_pullback(x[:, self.chosen])
