"""The contract of surrogates: fitted to arrays, they give a posterior.

Fitting returns a new object; no object is "not fitted yet". Shapes, everywhere in this layer:

    x         (n, d)   encoded inputs, rows of the unit cube
    y         (n,)     targets, lower is better; or (n, F): F fantasies of the same inputs, one factorisation
    mean      (m, F)   one column per fantasy (F = 1 without fantasies)
    variance  (m,)     of the noise-free function; it does not depend on targets, so all fantasies share it

    fitted = ExactGP.over(columns).fit(data, rng)
    score = LogExpectedImprovement().bind({"loss": fitted}, context)

A fit is recorded as plain JSON values (`FittedSurrogate.state`); the functions at the end read such
records.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from scrimp.errors import StudyError
from scrimp.json_values import Json, JsonObject

Array = NDArray[np.float64]

PosteriorPullback = Callable[[Array, Array], Array]
"""pull(d_mean (m, F), d_variance (m,)) -> d_x (m, d), for a function of m marginals."""


@dataclass(frozen=True)
class Data:
    """Observations. ``noise`` has the known noise variance of each, in units of y squared."""

    x: Array  # (n, d)
    y: Array  # (n,) or (n, F)
    noise: Array | None = None  # (n,)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def known_noise(self) -> Array | float:
        """The known noise variances (n,), 0 without any."""
        return 0.0 if self.noise is None else self.noise

    def select(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> "Data":
        """Return the observations at these rows, given as indices or a mask."""
        noise = None if self.noise is None else self.noise[rows]
        return Data(self.x[rows], self.y[rows], noise)


def as_columns(y: Array) -> Array:
    """Return targets (n,) or (n, F) as (n, F)."""
    return y[:, None] if y.ndim == 1 else y


@dataclass(frozen=True)
class Posterior:
    """Marginals at m inputs; ``covariance`` is None unless requested."""

    mean: Array  # (m, F)
    variance: Array  # (m,)
    covariance: Array | None = None  # (m, m)


class FittedSurrogate(ABC):
    """A posterior over functions, in *model units*: those of ``data``, of every posterior, sample
    and `condition`.

    Model units are the units of the targets given to `fit`, unless there is a target transform.
    Numbers from outside (a new observation, a constraint's limit) are converted by `model_units`,
    numbers for display by `target_units`. Transforms are increasing, so "lower is better" and
    "below the limit" stay true.
    """

    @property
    @abstractmethod
    def data(self) -> Data:
        """The observations, in the order given."""

    @abstractmethod
    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        """Return mean and variance of the noise-free function at x (m, d), and with ``joint`` the
        (m, m) covariance."""

    def mean(self, x: Array) -> Array:
        """Return the posterior mean (m, F) at x (m, d); cheaper than `posterior` in some models."""
        return self.posterior(x).mean

    @abstractmethod
    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        """Return the marginals at x (m, d) and the chain rule to x; row i depends on x[i]. Slopes along
        columns with listed values may be 0: no search follows them."""

    @abstractmethod
    def condition(self, data: Data) -> "FittedSurrogate":
        """Add observations, with the same hyperparameters; (k, F) targets start F fantasies."""

    @abstractmethod
    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        """Draw the noise-free function jointly at x (m, d), as (count, m). Needs F = 1."""

    def model_units(self, data: Data) -> Data:
        """Convert observations, in the units given to `fit`, to model units."""
        return data

    def target_units(self, values: Array) -> Array:
        """Convert values in model units to the units of the targets given to `fit`."""
        return values

    def target_slope(self, values: Array) -> Array:
        """Return d target_units / d values, elementwise.

        The default differentiates `target_units` numerically; a model with a known transform
        overrides it.
        """
        step = 1e-5
        return (self.target_units(values + step) - self.target_units(values - step)) / (2.0 * step)

    @property
    def means_only(self) -> bool:
        """True for a model that knows no variances and gives zeros; acquisitions that need them refuse
        it."""
        return False

    @property
    def members(self) -> tuple["FittedSurrogate", ...]:
        """The models to average a decision over: this one, or one per sample of hyperparameters."""
        return (self,)

    @property
    def length_scales(self) -> Array:
        """The length-scale along each input column (d,).

        Infinite along a column that the model ignores; NaN where it is unknown, which is the
        default.
        """
        return np.full(self.data.x.shape[1], np.nan)

    @property
    def noise_variance(self) -> float:
        """The learned noise variance of an observation, in model units squared; 0 if unknown."""
        return 0.0

    @property
    @abstractmethod
    def state(self) -> JsonObject:
        """The record of the fit as plain JSON values: written to the log, and passed to the next fit
        as ``start``."""


class RecordedSurrogate(FittedSurrogate):
    """A fitted model that holds its observations and the record of its fit."""

    observed: Data
    recorded: JsonObject

    @property
    def data(self) -> Data:
        return self.observed

    @property
    def state(self) -> JsonObject:
        return self.recorded


class SurrogateView(FittedSurrogate):
    """A model that is another one, ``inner``, except for what it overrides."""

    inner: FittedSurrogate

    @property
    def data(self) -> Data:
        return self.inner.data

    @property
    def state(self) -> JsonObject:
        return self.inner.state

    @property
    def means_only(self) -> bool:
        return self.inner.means_only

    @property
    def length_scales(self) -> Array:
        return self.inner.length_scales

    @property
    def noise_variance(self) -> float:
        return self.inner.noise_variance

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        return self.inner.posterior(x, joint=joint)

    def mean(self, x: Array) -> Array:
        return self.inner.mean(x)

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        return self.inner.posterior_and_pullback(x)

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        return self.inner.sample(x, count, rng)

    def model_units(self, data: Data) -> Data:
        return self.inner.model_units(data)

    def target_units(self, values: Array) -> Array:
        return self.inner.target_units(values)

    def target_slope(self, values: Array) -> Array:
        return self.inner.target_slope(values)


class Surrogate(ABC):
    """Settings of a model; a frozen value without data."""

    @abstractmethod
    def fit(
        self, data: Data, rng: np.random.Generator, start: Mapping[str, Json] | None = None
    ) -> FittedSurrogate:
        """Fit the hyperparameters to ``data``, from the ``state`` of an earlier fit if any."""

    @abstractmethod
    def restore(self, data: Data, state: JsonObject) -> FittedSurrogate:
        """Return the model with the recorded hyperparameters of ``state`` on ``data``: no fit, one
        factorisation."""


T = TypeVar("T")


def value_at(record: JsonObject, key: str, kind: type[T], default: Json = None) -> T:
    """Return the value under ``key``, or the default if there is none, as a value of this type.

    >>> value_at({"centre": 0.5}, "centre", float), value_at({}, "low", float, 0.0)
    (0.5, 0.0)
    """
    value = record.get(key, default)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise StudyError(
            f"a record has {key} {value!r}, which does not fit ({error}); it is damaged, or was"
            " written by another version"
        ) from None


def object_at(record: JsonObject, key: str) -> JsonObject:
    """Return the object under ``key``; an empty one if there is none."""
    return value_at(record, key, dict[str, Json], {})
