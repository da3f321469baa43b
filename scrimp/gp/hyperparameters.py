"""Hyperparameters: names, bounds, priors and search coordinates, and the contract of their holders.

A *density* is that of the natural value, so a maximum a posteriori estimate does not depend on the
encoding. An *encoding* maps natural values to the coordinates in which optimisers and samplers
move. A `ParameterVector` concatenates the parameters of a whole model: one flat vector of natural
values, one of coordinates. `Parametrised` is the contract of kernels, means, priors and residual
processes: frozen values that hold their parameters.

    length = Hyperparameter("length_scale", LogNormal(1.4, 1.7), bounds=(0.01, 100.0), size=6)
    mean = Hyperparameter("mean", Normal(0.0, 1.0), bounds=(-3.0, 3.0), encoding="identity")
    vector = ParameterVector((length, mean))
    vector.decode(vector.encode(vector.initial))                  # the natural values, (7,)
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from scrimp.json_values import Json

Array = NDArray[np.float64]

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class Density(ABC):
    """A probability density on the real line, applied elementwise."""

    @abstractmethod
    def log_density_and_gradient(self, value: Array) -> tuple[Array, Array]:
        """log p(v) of each value, and d log p(v) / dv."""

    @property
    @abstractmethod
    def mode(self) -> float:
        """The value of highest density; a fit starts there."""

    @abstractmethod
    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Independent draws (size,)."""


@dataclass(frozen=True)
class Normal(Density):
    """p(v) = exp(-(v - mean)^2 / (2 sd^2)) / (sd sqrt(2 pi))."""

    mean: float
    sd: float

    def log_density_and_gradient(self, value: Array) -> tuple[Array, Array]:
        standard = (value - self.mean) / self.sd
        density = -0.5 * standard * standard - (math.log(self.sd) + _LOG_ROOT_TWO_PI)
        return density, (self.mean - value) / self.sd**2

    @property
    def mode(self) -> float:
        return self.mean

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        return rng.normal(self.mean, self.sd, size)


@dataclass(frozen=True)
class LogNormal(Density):
    """log v ~ Normal(mu, sigma): p(v) = exp(-(log v - mu)^2 / (2 sigma^2)) / (v sigma sqrt(2 pi)),
    mode exp(mu - sigma^2). ``mu`` is one number for all values, or one for each; their mean has the
    mode then."""

    mu: float | tuple[float, ...]
    sigma: float

    def log_density_and_gradient(self, value: Array) -> tuple[Array, Array]:
        log_value = np.log(value)
        apart = log_value - self.mu
        standard, constant = apart / self.sigma, math.log(self.sigma) + _LOG_ROOT_TWO_PI
        density = -0.5 * standard * standard - log_value - constant
        return density, -(apart / self.sigma**2 + 1.0) / value

    @property
    def mode(self) -> float:
        return math.exp(float(np.mean(self.mu)) - self.sigma**2)

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        return rng.lognormal(self.mu, self.sigma, size)


@dataclass(frozen=True)
class Gamma(Density):
    """p(v) = rate^shape v^(shape - 1) exp(-rate v) / Gamma(shape).

    With shape < 1 the density has no mode, because it grows without bound towards 0; ``mode`` is
    then the mean, which is a usable starting value.
    """

    shape: float
    rate: float

    def log_density_and_gradient(self, value: Array) -> tuple[Array, Array]:
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        density = constant + (self.shape - 1.0) * np.log(value) - self.rate * value
        return density, (self.shape - 1.0) / value - self.rate

    @property
    def mode(self) -> float:
        return (self.shape - 1.0 if self.shape > 1.0 else self.shape) / self.rate

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        return rng.gamma(self.shape, 1.0 / self.rate, size)


@dataclass(frozen=True)
class Flat(Density):
    """p(v) = 1, so that a fit maximises the likelihood alone. Draws are uniform between low and high,
    of the logarithm if both are positive."""

    low: float
    high: float

    def log_density_and_gradient(self, value: Array) -> tuple[Array, Array]:
        return np.zeros_like(value), np.zeros_like(value)

    @property
    def mode(self) -> float:
        return math.sqrt(self.low * self.high) if self.low > 0 else 0.5 * (self.low + self.high)

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        if self.low > 0:
            return np.exp(rng.uniform(math.log(self.low), math.log(self.high), size))
        return rng.uniform(self.low, self.high, size)


ParameterEncoding = Literal["identity", "log", "logit"]
"""The map from a value v to the coordinate t of a search: t = v, t = log v, or t = log((v - low) /
(high - v)) with v at least 1e-9 of the range inside the bounds."""


@dataclass(frozen=True)
class Hyperparameter:
    """``size`` values under one name, with the same density, bounds and encoding.

    ``initial`` is the starting value of a fit without a record; by default the mode of the density,
    moved inside the bounds.

    >>> Hyperparameter("noise", LogNormal(-4.0, 1.0), bounds=(1e-6, 1.0)).start
    0.006737946999085467
    """

    name: str
    density: Density
    bounds: tuple[float, float]
    encoding: ParameterEncoding = "log"
    size: int = 1
    initial: float | None = None

    @property
    def start(self) -> float:
        """The starting value, inside the bounds."""
        value = self.density.mode if self.initial is None else self.initial
        return min(max(value, self.bounds[0]), self.bounds[1])


def joined_parameters(
    first: Sequence[Hyperparameter], second: Sequence[Hyperparameter], sides: tuple[str, str]
) -> tuple[Hyperparameter, ...]:
    """Concatenate the parameters of two parts; if any name is in both, prefix all names by ``sides``."""
    names = list(map(attrgetter("name"), (*first, *second)))
    if len(set(names)) == len(names):
        return (*first, *second)
    return tuple(
        replace(parameter, name=f"{side}.{parameter.name}")
        for side, part in zip(sides, (first, second), strict=True)
        for parameter in part
    )


class Parametrised(ABC):
    """A frozen value with p parameters, held as natural values."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[Hyperparameter, ...]:
        """The parameters in the order of ``values``; names are unique."""

    @property
    @abstractmethod
    def values(self) -> Array:
        """The natural values of the parameters (p,)."""

    @abstractmethod
    def with_values(self, values: Array) -> Self:
        """Return a copy with other parameter values (p,)."""


class ParameterVector:
    """All parameters of a model as one flat vector of p = ``size`` values.

    ``initial``, ``lower`` and ``upper`` are natural starting values and bounds (p,).
    """

    def __init__(self, parameters: tuple[Hyperparameter, ...]) -> None:
        self.parameters = parameters
        self._blocks: list[tuple[Hyperparameter, slice]] = []
        rows, encodings = list[tuple[float, float, float]](), list[str]()
        for parameter in parameters:
            self._blocks.append((parameter, slice(len(rows), len(rows) + parameter.size)))
            rows += [(parameter.start, *parameter.bounds)] * parameter.size
            encodings += [parameter.encoding] * parameter.size
        self.size, kinds = len(rows), np.array(encodings, dtype="U8")
        self.initial, self.lower, self.upper = np.array(rows).reshape(-1, 3).T.copy()
        self._log, self._logit = kinds == "log", kinds == "logit"
        if len(self.to_json(self.initial)) < len(parameters):
            names = [parameter.name for parameter in parameters]
            raise ValueError(
                f"parameter names {names} repeat; give each part of the model its own name"
            )

    def encode(self, values: Array) -> Array:
        """Map natural values (p,) to coordinates (p,)."""
        coordinates = values.copy()
        coordinates[self._log] = np.log(values[self._log])
        if self._logit.any():
            low, high = self.lower[self._logit], self.upper[self._logit]
            share = np.clip((values[self._logit] - low) / (high - low), 1e-9, 1.0 - 1e-9)
            coordinates[self._logit] = np.log(share) - np.log1p(-share)
        return coordinates

    def decode(self, coordinates: Array) -> Array:
        """Map coordinates (p,) to natural values (p,)."""
        values = coordinates.copy()
        values[self._log] = np.exp(coordinates[self._log])
        if self._logit.any():
            low, high = self.lower[self._logit], self.upper[self._logit]
            share = 0.5 * (1.0 + np.tanh(0.5 * coordinates[self._logit]))
            values[self._logit] = low + (high - low) * share
        return values

    def slopes(self, values: Array) -> Array:
        """d value / d coordinate at natural values (p,)."""
        slopes = np.where(self._log, values, 1.0)
        if self._logit.any():
            low, high = self.lower[self._logit], self.upper[self._logit]
            inside = values[self._logit]
            slopes[self._logit] = (inside - low) * (high - inside) / (high - low)
        return slopes

    def log_density_and_gradient(self, values: Array) -> tuple[float, Array]:
        """The sum of all log densities at natural values (p,), and its gradient (p,)."""
        total, gradient = 0.0, np.empty(self.size)
        for parameter, block in self._blocks:
            density, gradient[block] = parameter.density.log_density_and_gradient(values[block])
            total += float(density.sum())
        return total, gradient

    def sample(self, rng: np.random.Generator) -> Array:
        """Draw natural values (p,) from the densities, moved inside the bounds."""
        values = np.empty(self.size)
        for parameter, block in self._blocks:
            values[block] = parameter.density.sample(parameter.size, rng)
        return np.clip(values, self.lower, self.upper)

    def to_json(self, values: Array) -> dict[str, list[float]]:
        """Natural values by name, as plain lists."""
        return {parameter.name: values[block].tolist() for parameter, block in self._blocks}

    def from_json(self, named: Json) -> Array | None:
        """Return the vector (p,) that `to_json` recorded, within bounds; None if it differs."""
        if not isinstance(named, Mapping) or len(named) != len(self.parameters):
            return None
        values = np.empty(self.size)
        for parameter, block in self._blocks:
            part = named.get(parameter.name)
            if not isinstance(part, Sequence) or len(part) != parameter.size:
                return None
            values[block] = np.asarray(part, dtype=float)
        return np.clip(values, self.lower, self.upper)
