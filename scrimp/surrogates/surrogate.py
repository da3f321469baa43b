"""The contract between learning and deciding: a surrogate is fitted to arrays and gives a
posterior.

Fitting returns a new thing: there is no object that is "not fitted yet". Shapes, everywhere in this
layer:

    x         (n, d)   encoded inputs, rows of the unit cube
    y         (n,)     targets, lower is better; or (n, F): F fantasies of the same inputs, one factorisation
    mean      (m, F)   one column per fantasy (F = 1 without fantasies)
    variance  (m,)     of the noise-free function; it does not depend on targets, so all fantasies share it

Two pieces composed:

    # hyperparameters by maximum a posteriori
    fitted = ExactGP(...).fit(data, rng)
    score = LogExpectedImprovement().bind({"loss": fitted}, context)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.json_values import Json, JsonObject

__all__ = ["Array", "Data", "FittedSurrogate", "Posterior", "PosteriorPullback", "Surrogate"]

Array = NDArray[np.float64]

PosteriorPullback = Callable[[Array, Array], Array]
"""pull(d_mean (m, F), d_variance (m,)) -> d_x (m, d), for a function of the m posterior
marginals."""


@dataclass(frozen=True)
class Data:
    """What a surrogate learns from. ``noise`` holds known noise variances per observation, in units
    of y squared."""

    x: Array  # (n, d)
    y: Array  # (n,) or (n, F)
    noise: Array | None = None  # (n,)

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class Posterior:
    """Marginals at m inputs; ``variance`` is None for a model that gives means only, ``covariance``
    unless asked for."""

    mean: Array  # (m, F)
    variance: Array | None  # (m,)
    covariance: Array | None = None  # (m, m)


class FittedSurrogate(ABC):
    """A posterior over functions, in *model units*: those of ``data``, of every posterior, sample
    and `condition`.

    Model units are the units of the targets given to `fit`, unless a target transform stands in
    between. Whoever holds a number from outside (a new observation, a constraint's limit) brings it
    in by `model_units`; whoever shows a number takes it out by `target_units`. Transforms are
    increasing, so "lower is better" and "below the limit" stay true.
    """

    @property
    @abstractmethod
    def data(self) -> Data:
        """The observations it rests on, in the order in which they came."""

    @abstractmethod
    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        """Mean and variance of the noise-free function at x (m, d); the (m, m) covariance too when
        ``joint``."""

    def mean(self, x: Array) -> Array:
        """The posterior mean (m, F) at x (m, d) alone; a model that can give it cheaper than the
        variance does so."""
        return self.posterior(x).mean

    @abstractmethod
    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        """The marginals at x (m, d) and the chain rule from them back to x. Row i depends on x[i]
        only."""

    @abstractmethod
    def condition(self, data: Data) -> "FittedSurrogate":
        """The same hyperparameters with further observations; (k, F) targets start F fantasies."""

    @abstractmethod
    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        """``count`` joint draws of the noise-free function at x (m, d), as (count, m). Needs F =
        1."""

    def model_units(self, data: Data) -> Data:
        """Observations, as given to `fit`, in the units of this posterior."""
        return data

    def target_units(self, values: Array) -> Array:
        """Values of this posterior in the units of the targets given to `fit`."""
        return values

    def target_slope(self, values: Array) -> Array:
        """d target_units / d values, elementwise: what a chain rule through `target_units` needs.

        The default differentiates `target_units` numerically; a model that knows its transform
        overrides it.
        """
        step = 1e-5
        return (self.target_units(values + step) - self.target_units(values - step)) / (2.0 * step)

    @property
    def members(self) -> tuple["FittedSurrogate", ...]:
        """The models to average a decision over: itself, or one per posterior sample of the
        hyperparameters."""
        return (self,)

    @property
    def length_scales(self) -> Array:
        """How far the model sees along each of its input columns (d,): the distance over which
        values stay alike.

        Infinite along a column it does not look at; NaN where it does not say, which is the
        default.
        """
        return np.full(self.data.x.shape[1], np.nan)

    @property
    def noise_variance(self) -> float:
        """The learned noise variance of an observation, in model units squared; 0 where the model
        does not say."""
        return 0.0

    @property
    @abstractmethod
    def state(self) -> JsonObject:
        """What the next fit may start from, as plain JSON values: written to the log, handed back
        as ``start``."""


class Surrogate(ABC):
    """Settings of a model; a frozen value without data."""

    @abstractmethod
    def fit(
        self, data: Data, rng: np.random.Generator, start: Mapping[str, Json] | None = None
    ) -> FittedSurrogate:
        """Fit the hyperparameters to ``data``, starting from the ``state`` of an earlier fit where
        there is one."""

    @abstractmethod
    def restore(self, data: Data, state: JsonObject) -> FittedSurrogate:
        """The model with the recorded hyperparameters of ``state`` on ``data``: no fit, one
        factorisation."""
