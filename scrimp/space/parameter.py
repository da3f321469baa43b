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
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrimp.checks import is_finite, is_number
from scrimp.errors import ConfigError, SpaceError
from scrimp.space.steps import Steps, checked_step, count_steps, step_places, step_units
from scrimp.space.values import (
    distinct,
    identity,
    one_of,
    plain,
    scalar,
    shares,
)

__all__ = ["MANY_VALUES", "Categorical", "Constant", "Float", "Int", "Ordinal", "Parameter"]

CONFIDENCES = {"low": 0.25, "medium": 0.5, "high": 0.75}
# more numbers are treated as continuous by models, and cannot be the parent of a condition
MANY_VALUES = 1000
LARGEST_INTEGER = (
    10**12
)  # beyond it, the unit interval in float64 no longer tells logarithms of neighbours apart


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Parameter(ABC):
    """The contract of parameters, and what all of them carry.

    ``when``: the parameter exists only where all these parents have one of these values,
    ``{"optimizer": ["sgd"]}``. ``default``: what a configuration that does not mention the
    parameter gets; None, even among choices, is no default. ``prior``: (value, confidence), a
    user's guess of a good value; confidence in (0, 1] or low, medium, high.
    """

    when: Mapping[str, Any] | None = None
    default: Any = None
    prior: tuple[Any, Any] | None = None

    @property
    @abstractmethod
    def grid(self) -> Sequence[Any] | None:
        """All legal values in order, or None for a continuum."""

    @abstractmethod
    def validate(self, name: str, value: Any) -> Any:
        """The value in its normal form, or `ConfigError` that names the parameter, the value and
        the rule."""

    @abstractmethod
    def to_units(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """Places (n,) of legal values in the unit interval."""

    @abstractmethod
    def from_units(self, units: NDArray[np.float64]) -> list[Any]:
        """Legal values at places (n,) of the unit interval; what lies outside is clipped."""

    def to_unit(self, value: Any) -> float:
        """`to_units` of one value."""
        return float(self.to_units([value])[0])

    def from_unit(self, unit: float) -> Any:
        """`from_units` of one place."""
        return self.from_units(np.array([unit], dtype=float))[0]

    @property
    def size(self) -> float:
        """How many values there are; infinite for a continuum."""
        return math.inf if self.grid is None else len(self.grid)

    def _settle(self, **normal: Any) -> None:
        """Put normal forms of the own fields in place, then check what all parameters carry."""
        for name, value in normal.items():
            object.__setattr__(self, name, value)
        if self.when is not None:
            object.__setattr__(self, "when", _normal_when(self, self.when))
        if self.default is not None:
            object.__setattr__(self, "default", self._legal(self.validate, "default", self.default))
        if self.prior is not None:
            object.__setattr__(self, "prior", _normal_prior(self, self.prior))

    def _legal(self, rule: Callable[[str, Any], Any], label: str, value: Any) -> Any:
        try:
            return rule(label, value)
        except (ConfigError, SpaceError) as error:
            raise self._wrong(str(error).replace(f"parameter {label!r}", label, 1)) from None

    def _wrong(self, message: str) -> SpaceError:
        return SpaceError(f"{type(self).__name__}: {message}")

    def to_json(self) -> dict[str, Any]:
        """A plain JSON form; `parameter_from_json` restores it."""
        record: dict[str, Any] = {"type": type(self).__name__.lower()}
        for item in fields(self):
            value = getattr(self, item.name)
            if (value is None and item.name != "value") or (value is False and item.name == "log"):
                continue
            if item.name == "when":
                value = {parent: list(values) for parent, values in value.items()}
            record[item.name] = list(value) if isinstance(value, tuple) else value
        return record

    def __repr__(self) -> str:
        record = self.to_json()
        kind = type(self)
        places = [item.name for item in fields(self) if not item.kw_only]
        words = [repr(record.pop(name)) for name in places]
        del record["type"]
        words += [f"{name}={value!r}" for name, value in record.items()]
        return f"{kind.__name__}({', '.join(words)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parameter) and repr(self) == repr(
            other
        )  # repr, because 1 == True == 1.0

    def __hash__(self) -> int:
        return hash(repr(self))


def _normal_when(parameter: Parameter, when: Any) -> dict[str, tuple[Any, ...]]:
    if not isinstance(when, Mapping) or not when:
        raise parameter._wrong(
            f'when is {when!r}; it must map parents to values, such as {{"optimizer": "sgd"}}'
        )
    normal = {}
    for parent, values in when.items():
        if isinstance(values, set | frozenset):
            values = sorted(
                values, key=repr
            )  # the order of a set changes from one process to the next
        listed = isinstance(values, list | tuple | range)
        several = tuple(plain(value) for value in (values if listed else [values]))
        if not several:
            raise parameter._wrong(
                f"when has no value for parent {parent!r}; give one value or a list of alternatives"
            )
        normal[parent] = several
    return normal


def _normal_prior(parameter: Parameter, prior: Any) -> tuple[Any, float]:
    if not isinstance(prior, tuple | list) or len(prior) != 2:
        raise parameter._wrong(
            f'prior is {prior!r}; it must be (value, confidence), such as (0.01, "medium")'
        )
    value, confidence = prior
    number = CONFIDENCES.get(confidence) if isinstance(confidence, str) else plain(confidence)
    if number is None or not is_number(number) or not 0 < number <= 1:
        raise parameter._wrong(
            f"prior has confidence {confidence!r}; it must be 'low', 'medium', 'high' or a number"
            " above 0 and at most 1"
        )
    return parameter._legal(parameter.validate, "prior", value), float(number)


def _scale(parameter: "Float | Int", low: float, high: float) -> tuple[float, float]:
    """The ends of the unit interval, in the logarithm where the parameter is logarithmic."""
    return (math.log(low), math.log(high)) if parameter.log else (low, high)


def _check_range(parameter: "Float | Int", low: Any, high: Any) -> None:
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
        low, high = plain(self.low), plain(self.high)
        for label, bound in (("low", low), ("high", high)):
            if not is_finite(bound):
                raise self._wrong(f"{label} is {bound!r}; it must be a finite number")
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

    @cached_property
    def grid(self) -> Steps | None:
        if self.step is None:
            return None
        return Steps(self.low, self.step, count_steps(self.low, self.high, self.step)[0])

    def validate(self, name: str, value: Any) -> float:
        number = plain(value)
        if not is_finite(number):
            raise ConfigError(
                f"parameter {name!r} is {value!r}; it must be a finite number {_within(self)}"
            )
        found = float(number) if self.grid is None else self.grid.nearest(number)
        if found is None or not self.low <= found <= self.high:
            raise ConfigError(f"parameter {name!r} is {number!r}; it must be {_within(self)}")
        return found

    def to_units(self, values: Sequence[Any]) -> NDArray[np.float64]:
        if self.grid is not None:
            return step_units(values, self.low, self.grid.step, len(self.grid))
        lower, upper = _scale(self, self.low, self.high)
        numbers = np.asarray(values, dtype=float)
        return ((np.log(numbers) if self.log else numbers) - lower) / (upper - lower)

    def from_units(self, units: NDArray[np.float64]) -> list[Any]:
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
        low, high = plain(self.low), plain(self.high)
        for label, bound in (("low", low), ("high", high)):
            if not is_finite(bound) or bound != int(bound):
                raise self._wrong(f"{label} is {bound!r}; it must be a whole number")
            if abs(bound) > LARGEST_INTEGER:
                raise self._wrong(
                    f"{label} is {bound!r}; it must lie between -{LARGEST_INTEGER} and"
                    f" {LARGEST_INTEGER}"
                )
        _check_range(self, low, high)
        low, high, step = int(low), int(high), self.step
        if step is not None:
            step, count = self._legal(partial(checked_step, low, high, self.log), "step", step)
            high = low + (count - 1) * step
        self._settle(low=low, high=high, step=None if step == 1 else step)

    @property
    def grid(self) -> range:
        return range(self.low, self.high + 1, self.step or 1)

    def validate(self, name: str, value: Any) -> int:
        number = plain(value)
        if not is_finite(number) or number != int(number):
            raise ConfigError(
                f"parameter {name!r} is {value!r}; it must be a whole number {_within(self)}"
            )
        if int(number) not in self.grid:
            raise ConfigError(f"parameter {name!r} is {number!r}; it must be {_within(self)}")
        return int(number)

    def to_units(self, values: Sequence[Any]) -> NDArray[np.float64]:
        if self.step is not None:
            return step_units(values, self.low, self.step, len(self.grid))
        lower, upper = _scale(self, self.low - 0.5, self.high + 0.5)
        numbers = np.asarray(values, dtype=float)
        return ((np.log(numbers) if self.log else numbers) - lower) / (upper - lower)

    def from_units(self, units: NDArray[np.float64]) -> list[Any]:
        if self.step is not None:
            return [self.grid[place] for place in step_places(units, len(self.grid))]
        lower, upper = _scale(self, self.low - 0.5, self.high + 0.5)
        numbers = lower + np.asarray(units, dtype=float) * (upper - lower)
        whole = np.clip(np.rint(np.exp(numbers) if self.log else numbers), self.low, self.high)
        return whole.astype(np.int64).tolist()  # type: ignore[no-any-return]


def _within(parameter: Float | Int) -> str:
    steps = "" if parameter.step is None else f" in steps of {parameter.step!r}"
    return f"from {parameter.low!r} to {parameter.high!r}{steps}"


@dataclass(frozen=True, eq=False, repr=False)
class Ordinal(Parameter):
    """One of a few ``values`` whose order matters, given in that order; only their position counts,
    not their distance.

    >>> Ordinal([64, 128, 256, 512]).to_unit(128)
    0.375
    """

    values: Sequence[Any]

    def __post_init__(self) -> None:
        self._settle(values=self._legal(distinct, "values", self.values))

    @property
    def grid(self) -> Sequence[Any]:
        return self.values

    @cached_property
    def _places(self) -> dict[Any, float]:
        return {
            identity(value): (i + 0.5) / len(self.values) for i, value in enumerate(self.values)
        }

    def validate(self, name: str, value: Any) -> Any:
        return one_of(name, value, self.values, self._places)

    def to_units(self, values: Sequence[Any]) -> NDArray[np.float64]:
        return np.array([self._places[type(value), value] for value in values], dtype=float)

    def from_units(self, units: NDArray[np.float64]) -> list[Any]:
        return shares(self.values, units)


@dataclass(frozen=True, eq=False, repr=False)
class Categorical(Parameter):
    """One of a few ``choices`` without order.

    >>> Categorical(["adamw", "sgd"]).from_unit(0.7)
    'sgd'
    """

    choices: Sequence[Any]

    def __post_init__(self) -> None:
        self._settle(choices=self._legal(distinct, "choices", self.choices))

    @property
    def grid(self) -> Sequence[Any]:
        return self.choices

    @cached_property
    def _places(self) -> dict[Any, float]:
        last = max(len(self.choices) - 1, 1)
        return {identity(value): i / last for i, value in enumerate(self.choices)}

    def validate(self, name: str, value: Any) -> Any:
        return one_of(name, value, self.choices, self._places)

    def to_units(self, values: Sequence[Any]) -> NDArray[np.float64]:
        return np.array([self._places[type(value), value] for value in values], dtype=float)

    def from_units(self, units: NDArray[np.float64]) -> list[Any]:
        return shares(self.choices, units)


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Parameter):
    """A value that is handed to every trial and never searched; ``batch=32`` in a space is
    ``batch=Constant(32)``."""

    value: Any

    def __post_init__(self) -> None:
        if self.default is not None or self.prior is not None:
            raise self._wrong(
                f"has default {self.default!r} and prior {self.prior!r}; the value of a constant is"
                " all it has"
            )
        self._settle(value=self._legal(scalar, "value", self.value))

    @property
    def grid(self) -> tuple[Any]:
        return (self.value,)

    def validate(self, name: str, value: Any) -> Any:
        return one_of(name, value, self.grid, (identity(self.value),))

    def to_units(self, values: Sequence[Any]) -> NDArray[np.float64]:
        return np.full(len(values), 0.5)

    def from_units(self, units: NDArray[np.float64]) -> list[Any]:
        return [self.value] * len(units)
