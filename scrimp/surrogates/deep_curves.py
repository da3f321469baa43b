"""A Gaussian process with a deep kernel over (x, share of the full budget): the model of DyHPO.

The kernel is an RBF of features that a small network computes from the configuration, the budget
and the curve so far:

    h        = leaky(W_1 [x, rho] + b_1)
    c_k      = max over windows of (w_k . window + v_k)
    features = W_2 [h, c] + b_2,      k = RBF(features, features')

The c_k are a convolution of width 3 over the curve before rho, max-pooled. All weights are
parameters of the kernel, fitted with the others by the marginal likelihood. The curve of a row is
read from `ObservedRows`: the observations of the same configuration at smaller budgets, zeros
elsewhere, as Wistuba, Kadra and Grabocka pad it. A configuration without observations has an empty
curve. The curves are those of the training data, so every fit makes a new prior.

    DeepCurves(columns).fit(Data(np.column_stack([x, share]), y), rng)

Wistuba, Kadra, Grabocka, Supervising the Multi-Fidelity Race of Hyperparameter Configurations,
2022; Wilson, Hu, Salakhutdinov, Xing, Deep Kernel Learning, 2016.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scrimp.gp.columns import Column, Features
from scrimp.gp.hyperparameters import Hyperparameter, Normal
from scrimp.gp.kernel import Array, Kernel, Mapped, Pullback, PullbackPair, Scaled
from scrimp.gp.marginal_likelihood import SearchSettings
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.stationary import RBF
from scrimp.json_values import JsonObject
from scrimp.surrogates.exact_gp import ExactGP, FittedGP
from scrimp.surrogates.surrogate import Data, Surrogate, as_columns

CURVE_WINDOW = 3
"""Width of the convolution over the curve, as published."""

CURVE_CHANNELS = 4
"""Channels of the convolution, as published."""

NEGATIVE_SLOPE = 0.01
"""Slope of the leaky rectifier below zero; convention."""


@dataclass(frozen=True, eq=False)
class ObservedRows:
    """Observed rows (x, rho) (n, d + 1) and their targets (n,)."""

    rows: Array
    targets: Array

    @cached_property
    def levels(self) -> Array:
        """The distinct budgets, in order (L,)."""
        return np.unique(self.rows[:, -1])

    @cached_property
    def _known(self) -> dict[bytes, Array]:
        """The targets of each configuration by level (L,), zero where it has none."""
        known: dict[bytes, Array] = {}
        places = np.searchsorted(self.levels, self.rows[:, -1])
        for row, place, target in zip(self.rows, places, self.targets, strict=True):
            known.setdefault(row[:-1].tobytes(), np.zeros(len(self.levels)))[place] = target
        return known

    def __call__(self, x: Array) -> Array:
        """Return the curve of each row (m, d + 1) before its own budget, (m, L)."""
        nothing = np.zeros(len(self.levels))
        curves = np.array([self._known.get(row[:-1].tobytes(), nothing) for row in x])
        # A search may ask about no rows at all.
        curves = curves.reshape(len(x), len(self.levels))
        return np.where(self.levels < x[:, -1:] - 1e-12, curves, 0.0)


NOTHING = ObservedRows(np.zeros((0, 1)), np.zeros(0))


@dataclass(frozen=True, eq=False)
class DeepKernel(Mapped):
    """The kernel of the module's docstring; the last of ``columns`` is the budget. ``hidden`` units,
    ``width`` features.

    At zero weights, the starting values, all inputs look the same: a fit has to start at draws from
    their densities.
    """

    columns: Sequence[Column]
    curves: ObservedRows = NOTHING
    hidden: int = 32
    width: int = 16
    inner: Kernel = field(init=False, repr=False)
    features: Features = field(init=False, repr=False)
    own: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inner", RBF((Column(),) * self.width, ard=False))
        object.__setattr__(self, "features", Features(tuple(self.columns)))
        object.__setattr__(self, "own", np.zeros(sum(part.size for part in self.own_parameters)))

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        inputs, both = len(self.features.owner), self.hidden + CURVE_CHANNELS
        return {
            "first": (inputs, self.hidden),
            "first_bias": (self.hidden,),
            "curve": (CURVE_WINDOW, CURVE_CHANNELS),
            "curve_bias": (CURVE_CHANNELS,),
            "second": (both, self.width),
            "second_bias": (self.width,),
        }

    @cached_property
    def own_parameters(self) -> tuple[Hyperparameter, ...]:
        """Weights with variance 2 / inputs, which keeps the variance of the activations."""
        found = []
        for name, shape in self._shapes.items():
            law = Normal(0.0, float(np.sqrt(2.0 / shape[0])) if len(shape) == 2 else 0.5)
            size = int(np.prod(shape))
            found.append(Hyperparameter(name, law, (-20.0, 20.0), "identity", size, initial=0.0))
        return tuple(found)

    @property
    def _matrices(self) -> list[Array]:
        sizes = [int(np.prod(shape)) for shape in self._shapes.values()]
        parts = np.split(self.own, np.cumsum(sizes)[:-1])
        shapes = self._shapes.values()
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def embed(self, x: Array) -> tuple[Array, PullbackPair]:
        first, first_bias, kernel, kernel_bias, second, second_bias = self._matrices
        z = self.features(x)
        before = z @ first + first_bias
        slope = np.where(before > 0.0, 1.0, NEGATIVE_SLOPE)
        pooled, windows = _pooled(self.curves(x), kernel, kernel_bias)
        joined = np.concatenate([before * slope, pooled], axis=1)

        def pull(d: Array) -> tuple[Array, Array]:
            d_joined = d @ second.T
            d_before = d_joined[:, : self.hidden] * slope
            d_pooled = d_joined[:, self.hidden :]
            d_kernel = np.einsum("ncw,nc->wc", windows, d_pooled)
            weights = (z.T @ d_before, d_kernel, joined.T @ d)
            biases = (d_before.sum(0), d_pooled.sum(0), d.sum(0))
            layers = [part.ravel() for layer in zip(weights, biases, strict=True) for part in layer]
            return np.concatenate(layers), self.features.pull(d_before @ first.T)

        return joined @ second + second_bias, pull

    def diagonal(self, x: Array) -> Array:
        return np.ones(len(x))

    def diagonal_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        return np.ones(len(x)), lambda d: np.zeros_like(x)


def _pooled(curves: Array, kernel: Array, bias: Array) -> tuple[Array, NDArray[np.float64]]:
    """Return the largest response of each channel along the curves (n, c), and its window."""
    padded = np.pad(curves, ((0, 0), (0, max(CURVE_WINDOW - curves.shape[1], 0))))
    # windows (n, P, w), best (n, c)
    windows = np.lib.stride_tricks.sliding_window_view(padded, CURVE_WINDOW, axis=1)
    responses = windows @ kernel + bias
    best = responses.argmax(axis=1)
    pooled = np.take_along_axis(responses, best[:, None], axis=1)[:, 0]
    return pooled, windows[np.arange(len(curves))[:, None], best]


@dataclass(frozen=True, eq=False)
class DeepCurves(Surrogate):
    """``columns`` of the configuration, then the budget; targets must be standardised."""

    columns: Sequence[Column]
    search: SearchSettings = field(default_factory=SearchSettings)

    def fit(
        self, data: Data, rng: np.random.Generator, start: JsonObject | None = None
    ) -> FittedGP:
        return self._over(data).fit(data, rng, start)

    def restore(self, data: Data, state: JsonObject) -> FittedGP:
        return self._over(data).restore(data, state)

    def _over(self, data: Data) -> ExactGP:
        curves = ObservedRows(data.x, as_columns(data.y)[:, 0])
        kernel = DeepKernel((*self.columns, Column()), curves)
        return ExactGP(MeanAndKernel(Scaled(kernel)), search=self.search)
