"""Parameters of a model: what each is called, where it may lie, how it is searched, and how
probable its values are.

A *density* is that of the parameter itself (its natural value), so a maximum a posteriori estimate
does not depend on the encoding. An *encoding* maps the natural value to the coordinate in which
optimisers and samplers move. A `ParameterVector` strings the parameters of a whole model together:
one flat vector of natural values, one of encoded ones.

    length = Parameter("length_scale", LogNormal(1.4, 1.7), bounds=(0.01, 100.0), size=6)
    vector = ParameterVector((length, Parameter("mean", Normal(0.0, 1.0), bounds=(-3.0, 3.0), encoding=IDENTITY)))
    vector.decode(vector.encode(vector.initial))                  # the natural values, (7,)
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scrimp.json_values import Json

__all__ = [
    "IDENTITY",
    "LOG",
    "LOGIT",
    "Density",
    "Gamma",
    "Hyperparameter",
    "Identity",
    "Log",
    "LogNormal",
    "LogNormals",
    "Logit",
    "Normal",
    "ParameterEncoding",
    "ParameterVector",
    "Uniform",
    "joined_parameters",
]

Array = NDArray[np.float64]

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class Density(ABC):
    """A probability density on the real line, applied elementwise."""

    @abstractmethod
    def log_density(self, value: Array) -> Array:
        """log p(v) of each value."""

    @abstractmethod
    def gradient(self, value: Array) -> Array:
        """d log p(v) / dv of each value."""

    @property
    @abstractmethod
    def mode(self) -> float:
        """Where the density is highest; the starting value of a fit."""

    @abstractmethod
    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Independent draws (size,)."""


@dataclass(frozen=True)
class Normal(Density):
    """p(v) = exp(-(v - mean)^2 / (2 sd^2)) / (sd sqrt(2 pi))."""

    mean: float
    sd: float

    def log_density(self, value: Array) -> Array:
        standard = (value - self.mean) / self.sd
        return -0.5 * standard * standard - (math.log(self.sd) + _LOG_ROOT_TWO_PI)

    def gradient(self, value: Array) -> Array:
        return (self.mean - value) / self.sd**2

    @property
    def mode(self) -> float:
        return self.mean

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        return rng.normal(self.mean, self.sd, size)


@dataclass(frozen=True)
class LogNormal(Density):
    """log v ~ Normal(mu, sigma): p(v) = exp(-(log v - mu)^2 / (2 sigma^2)) / (v sigma sqrt(2 pi)),
    mode exp(mu - sigma^2)."""

    mu: float
    sigma: float

    def log_density(self, value: Array) -> Array:
        log_value = np.log(value)
        standard = (log_value - self.mu) / self.sigma
        return -0.5 * standard * standard - log_value - (math.log(self.sigma) + _LOG_ROOT_TWO_PI)

    def gradient(self, value: Array) -> Array:
        return -((np.log(value) - self.mu) / self.sigma**2 + 1.0) / value

    @property
    def mode(self) -> float:
        return math.exp(self.mu - self.sigma**2)

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        return rng.lognormal(self.mu, self.sigma, size)


@dataclass(frozen=True)
class LogNormals(Density):
    """A log-normal density for each of several values, with centres ``mu`` of their own and one
    width."""

    mu: tuple[float, ...]
    sigma: float

    def log_density(self, value: Array) -> Array:
        centres = np.array(self.mu)
        return np.asarray(LogNormal(0.0, self.sigma).log_density(value / np.exp(centres)) - centres)

    def gradient(self, value: Array) -> Array:
        medians = np.exp(np.array(self.mu))
        return np.asarray(LogNormal(0.0, self.sigma).gradient(value / medians) / medians)

    @property
    def mode(self) -> float:
        return LogNormal(float(np.mean(self.mu)), self.sigma).mode

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        return rng.lognormal(self.mu, self.sigma, size)


@dataclass(frozen=True)
class Gamma(Density):
    """p(v) = rate^shape v^(shape - 1) exp(-rate v) / Gamma(shape).

    With shape < 1 the density grows without bound towards 0: the mode given is then the mean, a
    usable starting value.
    """

    shape: float
    rate: float

    @classmethod
    def with_mean(cls, mean: float, shape: float) -> "Gamma":
        """The Gamma density of this mean and shape."""
        return cls(shape, shape / mean)

    def log_density(self, value: Array) -> Array:
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        return constant + (self.shape - 1.0) * np.log(value) - self.rate * value

    def gradient(self, value: Array) -> Array:
        return (self.shape - 1.0) / value - self.rate

    @property
    def mode(self) -> float:
        return (self.shape - 1.0 if self.shape > 1.0 else self.shape) / self.rate

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        return rng.gamma(self.shape, 1.0 / self.rate, size)


@dataclass(frozen=True)
class Uniform(Density):
    """p(v) = 1 / (high - low) between them, 0 outside; its mode is the middle."""

    low: float
    high: float

    def log_density(self, value: Array) -> Array:
        inside = (value >= self.low) & (value <= self.high)
        return np.where(inside, -math.log(self.high - self.low), -np.inf)

    def gradient(self, value: Array) -> Array:
        return np.zeros_like(value)

    @property
    def mode(self) -> float:
        return 0.5 * (self.low + self.high)

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        return rng.uniform(self.low, self.high, size)


class ParameterEncoding(ABC):
    """A smooth, increasing map from natural values to the coordinate in which they are searched."""

    @abstractmethod
    def encode(self, value: Array, bounds: tuple[float, float]) -> Array:
        """Natural values to coordinates."""

    @abstractmethod
    def decode(self, coordinate: Array, bounds: tuple[float, float]) -> Array:
        """Coordinates to natural values."""

    @abstractmethod
    def slope(self, value: Array, bounds: tuple[float, float]) -> Array:
        """d value / d coordinate, written in terms of the natural value."""


class Identity(ParameterEncoding):
    """t = v."""

    def encode(self, value: Array, bounds: tuple[float, float]) -> Array:
        return value

    def decode(self, coordinate: Array, bounds: tuple[float, float]) -> Array:
        return coordinate

    def slope(self, value: Array, bounds: tuple[float, float]) -> Array:
        return np.ones_like(value)


class Log(ParameterEncoding):
    """t = log v, for positive values."""

    def encode(self, value: Array, bounds: tuple[float, float]) -> Array:
        return np.log(value)

    def decode(self, coordinate: Array, bounds: tuple[float, float]) -> Array:
        return np.exp(coordinate)

    def slope(self, value: Array, bounds: tuple[float, float]) -> Array:
        return value


class Logit(ParameterEncoding):
    """t = log((v - low) / (high - v)), for values strictly between the bounds (kept 1e-9 of the
    range away from them)."""

    def encode(self, value: Array, bounds: tuple[float, float]) -> Array:
        low, high = bounds
        share = np.clip((value - low) / (high - low), 1e-9, 1.0 - 1e-9)
        return np.asarray(np.log(share) - np.log1p(-share), dtype=np.float64)

    def decode(self, coordinate: Array, bounds: tuple[float, float]) -> Array:
        low, high = bounds
        return low + (high - low) * 0.5 * (1.0 + np.tanh(0.5 * coordinate))

    def slope(self, value: Array, bounds: tuple[float, float]) -> Array:
        low, high = bounds
        return (value - low) * (high - value) / (high - low)


IDENTITY, LOG, LOGIT = Identity(), Log(), Logit()


@dataclass(frozen=True)
class Hyperparameter:
    """``size`` values under one name, alike in density, bounds and encoding.

    ``initial`` is where a fit starts when nothing is known; by default the mode of the density,
    moved inside the bounds.

    >>> Hyperparameter("noise", LogNormal(-4.0, 1.0), bounds=(1e-6, 1.0)).start
    0.006737946999085467
    """

    name: str
    density: Density
    bounds: tuple[float, float]
    encoding: ParameterEncoding = LOG
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
    """The parameters of two parts in a row, their names told apart by ``sides`` where some
    clash."""
    if not {parameter.name for parameter in first} & {parameter.name for parameter in second}:
        return (*first, *second)
    return tuple(
        replace(parameter, name=f"{side}.{parameter.name}")
        for side, part in zip(sides, (first, second), strict=True)
        for parameter in part
    )


@dataclass(frozen=True)
class ParameterVector:
    """All parameters of a model as one flat vector of p values."""

    parameters: tuple[Hyperparameter, ...]

    def __post_init__(self) -> None:
        names = [parameter.name for parameter in self.parameters]
        if len(set(names)) < len(names):
            raise ValueError(
                f"parameter names {names} repeat; give each part of the model its own name"
            )

    @cached_property
    def size(self) -> int:
        """p."""
        return sum(parameter.size for parameter in self.parameters)

    @cached_property
    def _blocks(self) -> tuple[tuple[Hyperparameter, slice], ...]:
        blocks, first = [], 0
        for parameter in self.parameters:
            blocks.append((parameter, slice(first, first + parameter.size)))
            first += parameter.size
        return tuple(blocks)

    @cached_property
    def initial(self) -> Array:
        """Natural starting values (p,)."""
        return np.concatenate([np.full(block.size, block.start) for block in self.parameters])

    @cached_property
    def lower(self) -> Array:
        """Natural lower bounds (p,)."""
        return np.concatenate([np.full(block.size, block.bounds[0]) for block in self.parameters])

    @cached_property
    def upper(self) -> Array:
        """Natural upper bounds (p,)."""
        return np.concatenate([np.full(block.size, block.bounds[1]) for block in self.parameters])

    def encode(self, values: Array) -> Array:
        """Natural values (p,) to coordinates (p,)."""
        coordinates = np.empty(self.size)
        for parameter, block in self._blocks:
            coordinates[block] = parameter.encoding.encode(values[block], parameter.bounds)
        return coordinates

    def decode(self, coordinates: Array) -> Array:
        """Coordinates (p,) to natural values (p,)."""
        values = np.empty(self.size)
        for parameter, block in self._blocks:
            values[block] = parameter.encoding.decode(coordinates[block], parameter.bounds)
        return values

    def slopes(self, values: Array) -> Array:
        """d value / d coordinate at natural values (p,)."""
        slopes = np.empty(self.size)
        for parameter, block in self._blocks:
            slopes[block] = parameter.encoding.slope(values[block], parameter.bounds)
        return slopes

    def log_density(self, values: Array) -> float:
        """The sum of all log densities at natural values (p,)."""
        total = 0.0
        for parameter, block in self._blocks:
            total += float(parameter.density.log_density(values[block]).sum())
        return total

    def gradient(self, values: Array) -> Array:
        """d log density / d value at natural values (p,)."""
        gradient = np.empty(self.size)
        for parameter, block in self._blocks:
            gradient[block] = parameter.density.gradient(values[block])
        return gradient

    def sample(self, rng: np.random.Generator) -> Array:
        """Natural values (p,) drawn from the densities and moved inside the bounds."""
        draws = [block.density.sample(block.size, rng) for block in self.parameters]
        return np.clip(np.concatenate(draws), self.lower, self.upper)

    def to_json(self, values: Array) -> dict[str, list[float]]:
        """Natural values by name, as plain lists."""
        return {parameter.name: values[block].tolist() for parameter, block in self._blocks}

    def from_json(self, named: Json) -> Array | None:
        """The flat vector of what `to_json` gave, moved inside the bounds; None when names or sizes
        differ."""
        if not isinstance(named, Mapping):
            return None
        sizes = {name: len(part) for name, part in named.items() if isinstance(part, Sequence)}
        if sizes != {parameter.name: parameter.size for parameter in self.parameters}:
            return None
        values = np.empty(self.size)
        for parameter, block in self._blocks:
            values[block] = np.asarray(named[parameter.name], dtype=float)
        return np.clip(values, self.lower, self.upper)
