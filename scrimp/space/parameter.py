"""What one parameter may be: Float, Int, Ordinal, Categorical, Constant.

A parameter is a frozen value. It knows which values are legal (`validate`), and how they lie in the
unit interval:

    Float        [low, high], linear or in the logarithm
    Int          [low - 1/2, high + 1/2], linear or in the logarithm, so that every integer has its
                 share
    Ordinal      the i-th of k values owns [i/k, (i+1)/k) and sits in its middle
    Categorical  the i-th of k choices owns the same stretch and sits at i/(k-1), where a
                 categorical column expects it
    Constant     no column at all

With a ``step``, the i-th of k numbers owns [i/k, (i+1)/k) and sits in its middle, like the values
of an Ordinal.

`from_units` takes any number of the unit interval to a legal value and `to_units` brings it back,
so that ``from_units(to_units(v)) == v`` (floats: up to rounding). Choices may be any JSON scalar;
1, True and 1.0 stay apart.

    # ConfigError: parameter 'lr' is 1; it must be from 1e-05 to 0.1
    Float(1e-5, 1e-1, log=True).validate("lr", 1)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from scrimp.checks import is_finite
from scrimp.errors import ConfigError, SpaceError
from scrimp.json_values import Scalar
from scrimp.space.parameter_contract import Parameter
from scrimp.space.steps import Steps, checked_step, count_steps, step_places, step_units
from scrimp.space.values import (
    distinct,
    identity,
    one_of,
    plain,
    scalar,
    shares,
)

__all__ = ["MANY_VALUES", "Categorical", "Constant", "Float", "Int", "Ordinal"]

# more numbers are treated as continuous by models, and cannot be the parent of a condition
MANY_VALUES = 1000
LARGEST_INTEGER = (
    10**12
)  # beyond it, the unit interval in float64 no longer tells logarithms of neighbours apart


def _scale(parameter: "Float | Int", low: float, high: float) -> tuple[float, float]:
    """The ends of the unit interval, in the logarithm where the parameter is logarithmic."""
    return (math.log(low), math.log(high)) if parameter.log else (low, high)


def _check_range(parameter: "Float | Int", low: float, high: float) -> None:
    if not isinstance(parameter.log, bool):
        raise parameter._wrong(f"log is {parameter.log!r}; it must be True or False")
    if low >= high:
        raise parameter._wrong(
            f"low is {low!r} and high is {high!r}; low must be below high (Constant holds a single"
            " value)"
        )
    if parameter.log and low <= 0:
        raise parameter._wrong(f"low is {low!r}; with log=True it must be above 0")


@dataclass(frozen=True, eq=False, repr=False)
class Float(Parameter):
    """A real number from ``low`` to ``high``, both included; ``log=True`` spreads it evenly over
    orders of magnitude.

    ``step`` allows low, low + step, low + 2 step, ... only, up to ``high``.

    >>> Float(-1.0, 1.0).from_unit(0.75), Float(1.0, 16.0, log=True).to_unit(4.0)
    (0.5, 0.5)
    """

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    step: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        low, high = self._finite("low", self.low), self._finite("high", self.high)
        _check_range(self, low, high)
        lower, upper = _scale(self, low, high)
        if not 0 < upper - lower < math.inf:
            raise self._wrong(
                f"low {low!r} and high {high!r} are too close or too far apart for double precision"
            )
        low, high, step = float(low), float(high), self.step
        if step is not None:
            step, count = self._legal(partial(checked_step, low, high, self.log), "step", step)
            high = Steps(low, step, count)[-1]
        self._settle(low=low, high=high, step=step)

    def _finite(self, label: str, given: object) -> float:
        bound = plain(given)
        if not is_finite(bound):
            raise self._wrong(f"{label} is {bound!r}; it must be a finite number")
        return bound

    @cached_property
    def grid(self) -> Steps | None:
        if self.step is None:
            return None
        return Steps(self.low, self.step, count_steps(self.low, self.high, self.step)[0])

    def validate(self, name: str, value: object) -> float:
        number = plain(value)
        if not is_finite(number):
            raise ConfigError(
                f"parameter {name!r} is {value!r}; it must be a finite number {_within(self)}"
            )
        found = float(number) if self.grid is None else self.grid.nearest(number)
        if found is None or not self.low <= found <= self.high:
            raise ConfigError(f"parameter {name!r} is {number!r}; it must be {_within(self)}")
        return found

    def to_units(self, values: Sequence[Scalar]) -> NDArray[np.float64]:
        if self.grid is not None:
            return step_units(values, self.low, self.grid.step, len(self.grid))
        lower, upper = _scale(self, self.low, self.high)
        numbers = np.asarray(values, dtype=float)
        return ((np.log(numbers) if self.log else numbers) - lower) / (upper - lower)

    def from_units(self, units: NDArray[np.float64]) -> list[float]:
        if self.grid is not None:
            return [self.grid[place] for place in step_places(units, len(self.grid))]
        lower, upper = _scale(self, self.low, self.high)
        places = np.asarray(units, dtype=float)
        numbers = lower + places * (upper - lower)
        numbers = np.minimum(
            np.maximum(np.exp(numbers) if self.log else numbers, self.low), self.high
        )
        numbers[places <= 0], numbers[places >= 1] = (
            self.low,
            self.high,
        )  # the ends exactly, whatever rounding does
        return numbers.tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False, repr=False)
class Int(Parameter):
    """A whole number from ``low`` to ``high``, both included; ``log=True`` spreads it evenly over
    orders of magnitude.

    ``step`` allows low, low + step, low + 2 step, ... only, up to ``high``; a step of 1 is none.

    >>> [Int(1, 3).from_unit(u) for u in (0.0, 0.5, 1.0)]
    [1, 2, 3]
    """

    low: int
    high: int
    log: bool = field(default=False, kw_only=True)
    step: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        low, high = self._whole("low", self.low), self._whole("high", self.high)
        _check_range(self, low, high)
        step = self.step
        if step is not None:
            number, count = self._legal(partial(checked_step, low, high, self.log), "step", step)
            step = int(number)
            high = low + (count - 1) * step
        self._settle(low=low, high=high, step=None if step == 1 else step)

    def _whole(self, label: str, given: object) -> int:
        bound = plain(given)
        if not is_finite(bound) or bound != int(bound):
            raise self._wrong(f"{label} is {bound!r}; it must be a whole number")
        if abs(bound) > LARGEST_INTEGER:
            raise self._wrong(
                f"{label} is {bound!r}; it must lie between -{LARGEST_INTEGER} and"
                f" {LARGEST_INTEGER}"
            )
        return int(bound)

    @property
    def grid(self) -> range:
        return range(self.low, self.high + 1, self.step or 1)

    def validate(self, name: str, value: object) -> int:
        number = plain(value)
        if not is_finite(number) or number != int(number):
            raise ConfigError(
                f"parameter {name!r} is {value!r}; it must be a whole number {_within(self)}"
            )
        if int(number) not in self.grid:
            raise ConfigError(f"parameter {name!r} is {number!r}; it must be {_within(self)}")
        return int(number)

    def to_units(self, values: Sequence[Scalar]) -> NDArray[np.float64]:
        if self.step is not None:
            return step_units(values, self.low, self.step, len(self.grid))
        lower, upper = _scale(self, self.low - 0.5, self.high + 0.5)
        numbers = np.asarray(values, dtype=float)
        return ((np.log(numbers) if self.log else numbers) - lower) / (upper - lower)

    def from_units(self, units: NDArray[np.float64]) -> list[int]:
        if self.step is not None:
            return [self.grid[place] for place in step_places(units, len(self.grid))]
        lower, upper = _scale(self, self.low - 0.5, self.high + 0.5)
        numbers = lower + np.asarray(units, dtype=float) * (upper - lower)
        whole = np.clip(np.rint(np.exp(numbers) if self.log else numbers), self.low, self.high)
        return whole.astype(np.int64).tolist()  # type: ignore[no-any-return]


def _within(parameter: Float | Int) -> str:
    steps = "" if parameter.step is None else f" in steps of {parameter.step!r}"
    return f"from {parameter.low!r} to {parameter.high!r}{steps}"


def _refuse_loose(kind: type[Parameter], label: str, given: tuple[object, ...]) -> None:
    """Values that were not put into a list, ``Categorical("adam", "sgd")``."""
    if len(given) > 1:
        raise SpaceError(
            f"{kind.__name__} got {len(given)} arguments; its {label} go as one list:"
            f" scrimp.{kind.__name__}({list(given)!r})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Ordinal(Parameter):
    """One of a few ``values`` whose order matters, given in that order; only their position counts,
    not their distance.

    >>> Ordinal([64, 128, 256, 512]).to_unit(128)
    0.375
    """

    values: Sequence[Scalar]

    def __new__(cls, *given: object, **settings: object) -> Self:
        _refuse_loose(cls, "values", given)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        self._settle(values=self._legal(distinct, "values", self.values))

    @property
    def grid(self) -> Sequence[Scalar]:
        return self.values

    @cached_property
    def _places(self) -> dict[object, float]:
        return {
            identity(value): (i + 0.5) / len(self.values) for i, value in enumerate(self.values)
        }

    def validate(self, name: str, value: object) -> Scalar:
        return one_of(name, value, self.values, self._places)

    def to_units(self, values: Sequence[Scalar]) -> NDArray[np.float64]:
        return np.array([self._places[type(value), value] for value in values], dtype=float)

    def from_units(self, units: NDArray[np.float64]) -> list[Scalar]:
        return shares(self.values, units)


@dataclass(frozen=True, eq=False, repr=False)
class Categorical(Parameter):
    """One of a few ``choices`` without order.

    >>> Categorical(["adamw", "sgd"]).from_unit(0.7)
    'sgd'
    """

    choices: Sequence[Scalar]

    def __new__(cls, *given: object, **settings: object) -> Self:
        _refuse_loose(cls, "choices", given)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        self._settle(choices=self._legal(distinct, "choices", self.choices))

    @property
    def grid(self) -> Sequence[Scalar]:
        return self.choices

    @cached_property
    def _places(self) -> dict[object, float]:
        last = max(len(self.choices) - 1, 1)
        return {identity(value): i / last for i, value in enumerate(self.choices)}

    def validate(self, name: str, value: object) -> Scalar:
        return one_of(name, value, self.choices, self._places)

    def to_units(self, values: Sequence[Scalar]) -> NDArray[np.float64]:
        return np.array([self._places[type(value), value] for value in values], dtype=float)

    def from_units(self, units: NDArray[np.float64]) -> list[Scalar]:
        return shares(self.choices, units)


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Parameter):
    """A value that is handed to every trial and never searched; ``batch=32`` in a space is
    ``batch=Constant(32)``."""

    value: Scalar

    def __post_init__(self) -> None:
        if self.default is not None or self.prior is not None:
            raise self._wrong(
                f"has default {self.default!r} and prior {self.prior!r}; the value of a constant is"
                " all it has"
            )
        self._settle(value=self._legal(scalar, "value", self.value))

    @property
    def grid(self) -> tuple[Scalar]:
        return (self.value,)

    def validate(self, name: str, value: object) -> Scalar:
        return one_of(name, value, self.grid, (identity(self.value),))

    def to_units(self, values: Sequence[Scalar]) -> NDArray[np.float64]:
        return np.full(len(values), 0.5)

    def from_units(self, units: NDArray[np.float64]) -> list[Scalar]:
        return [self.value] * len(units)
