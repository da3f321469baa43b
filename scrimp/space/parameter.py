"""The parameters: Float, Int, Ordinal, Categorical, Constant.

A parameter is a frozen value. It checks values (`validate`), and maps them to the unit interval:

    Float        [low, high], linear or in the logarithm
    Int          [low - 1/2, high + 1/2], linear or in the logarithm, so that every integer has its
                 share
    Ordinal      the i-th of k values owns [i/k, (i+1)/k) and is mapped to its middle
    Categorical  the i-th of k choices owns the same interval and is mapped to i/(k-1), as a
                 categorical column needs it
    Constant     no column

With a ``step``, the i-th of k numbers owns [i/k, (i+1)/k) and is mapped to its middle, so that every
number has the same chance. ``from_units(to_units(v)) == v``, for floats up to rounding. Choices may
be any JSON scalar; 1, True and 1.0 are different.

    Float(1e-5, 1e-1, log=True).validate("lr", 1)
    # ConfigError: parameter 'lr' is 1; it must be from 1e-05 to 0.1

    parameter_from_json("layers", {"type": "int", "low": 1, "high": 8})     # Int(1, 8)
"""

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar, Self, overload

import numpy as np
from numpy.typing import NDArray

from scrimp.checks import is_finite, nearest_name
from scrimp.errors import ConfigError, SpaceError
from scrimp.json_values import JsonObject, Scalar
from scrimp.space.parameter_contract import (
    Parameter,
    distinct,
    identity,
    illegal,
    one_of,
    plain,
    scalar,
    shares,
)

MAX_VALUES_OF_PARENT = 1000
"""Parameters with more values are treated as continuous by models, and cannot be the parent of a
condition (convention)."""

MAX_INTEGER = 10**12
"""Beyond it, the unit interval in float64 does not tell logarithms of neighbours apart."""

MAX_STEPS = 10**12
"""Beyond it, the unit interval in float64 does not tell neighbours apart."""

STEP_ROUNDING = 1e-6
"""The part of a step by which a number may miss the grid: float32, sums of steps."""

ROUNDING_STEPS = 2
"""Rounding steps, in the precision of the number, by which it may miss a bound."""


@dataclass(frozen=True)
class Steps(Sequence[float]):
    """The ``length`` numbers low, low + step, low + 2 step, ..., each rounded once from its exact
    decimal value.

    >>> Steps(0.0, 0.1, 11)[3], 3 * 0.1
    (0.3, 0.30000000000000004)
    """

    low: float
    step: float
    length: int

    @cached_property
    def _whole(self) -> tuple[int, int, int]:
        """The first number, the step and the unit, such that both are whole multiples of 1/unit."""
        low, step = Fraction(repr(self.low)), Fraction(repr(self.step))
        unit = math.lcm(low.denominator, step.denominator)
        return int(low * unit), int(step * unit), unit

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, place: int) -> float: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[float]: ...
    def __getitem__(self, place: int | slice) -> float | Sequence[float]:
        # Negative places and IndexError as in lists.
        places = range(self.length)[place]
        first, stride, unit = self._whole
        if isinstance(places, range):
            return tuple((first + i * stride) / unit for i in places)
        return (first + places * stride) / unit

    def nearest(self, number: float) -> float | None:
        """Return the number of the grid that equals ``number`` up to rounding, or None."""
        found = self[min(max(round((number - self.low) / self.step), 0), self.length - 1)]
        return found if abs(number - found) <= STEP_ROUNDING * self.step else None


def count_steps(low: float, high: float, step: float) -> tuple[int, bool]:
    """Return how many numbers low, low + step, ... are up to ``high``, and True if it is one."""
    ratio = (Fraction(repr(high)) - Fraction(repr(low))) / Fraction(repr(step))
    nearest = round(ratio)
    exact = abs(ratio - nearest) <= STEP_ROUNDING
    return (nearest if exact else math.floor(ratio)) + 1, exact


def checked_step(
    low: float, high: float, log: bool, label: str, step: object
) -> tuple[float, float]:
    """Return the step and its last number up to ``high``, both int or both float, with a warning if
    that is not ``high``; raise `SpaceError` for an illegal step."""
    number, whole = plain(step), isinstance(low, int)
    if not is_finite(number) or number <= 0 or (whole and number != int(number)):
        kind = "whole" if whole else "finite"
        raise SpaceError(f"{label} is {step!r}; it must be a {kind} number above 0")
    number = int(number) if whole else float(number)
    if log and not (whole and number == 1):
        raise SpaceError(
            f"{label} is {number!r} with log=True; leave out one of them, or list the values in an"
            " Ordinal"
        )
    count, exact = count_steps(low, high, number)
    if count < 2:
        raise SpaceError(
            f"{label} is {number!r}, which is more than the range from {low!r} to {high!r}; it must be"
            " smaller"
        )
    if count > MAX_STEPS or number < 4 * math.ulp(max(abs(low), abs(high))):
        raise SpaceError(
            f"{label} is {number!r}, too small for {low!r} to {high!r}; make it larger or leave"
            " it out"
        )
    last = low + (count - 1) * number if whole else Steps(low, number, count)[-1]
    if not exact:
        warnings.warn(
            f"high is {high!r}, which is not a whole number of steps of {number!r} from {low!r}; it"
            f" becomes {last!r}",
            stacklevel=5,
        )
    return number, last


Ends = float | NDArray[np.float64]


def bounded(
    numbers: NDArray[np.float64], places: NDArray[np.float64], low: Ends, high: Ends
) -> NDArray[np.float64]:
    """Return numbers within their bounds, exactly there at the ends of the unit interval."""
    inside = np.clip(numbers, low, high)
    return np.where(places <= 0, low, np.where(places >= 1, high, inside))


class _Number(Parameter):
    """The common part of `Float` and `Int`: a range with a scale and steps. ``_whole``: its values are
    whole numbers, and the ends of the unit interval lie 1/2 outside the bounds."""

    low: float
    high: float
    log: bool
    step: float | None
    _whole: ClassVar[bool]

    def __post_init__(self) -> None:
        low, high, step = self._bound("low", self.low), self._bound("high", self.high), self.step
        if not isinstance(self.log, bool):
            raise self._wrong(f"log is {self.log!r}; it must be True or False")
        if low >= high:
            raise self._wrong(
                f"low is {low!r} and high is {high!r}; low must be below high (Constant holds a single"
                " value)"
            )
        if self.log and low <= 0:
            raise self._wrong(f"low is {low!r}; with log=True it must be above 0")
        lower, upper = (math.log(low), math.log(high)) if self.log else (low, high)
        if not 0 < upper - lower < math.inf:
            raise self._wrong(
                f"low {low!r} and high {high!r} are too close or too far apart for double precision"
            )
        if step is not None:
            step, high = self._legal(partial(checked_step, low, high, self.log), "step", step)
        self._settle(low=low, high=high, step=None if self._whole and step == 1 else step)

    @abstractmethod
    def _bound(self, label: str, given: object) -> float:
        """Return a legal bound, or raise `SpaceError`."""

    @property
    def _ends(self) -> tuple[float, float]:
        """The numbers at 0 and 1 of the unit interval, as logarithms if it is logarithmic."""
        margin = 0.5 if self._whole else 0.0
        low, high = self.low - margin, self.high + margin
        return (math.log(low), math.log(high)) if self.log else (low, high)

    def to_units(self, values: Sequence[Scalar]) -> NDArray[np.float64]:
        numbers = np.asarray(values, dtype=float)
        if self.step is not None:
            return ((numbers - self.low) / self.step + 0.5) / len(self.grid or ())
        lower, upper = self._ends
        return ((np.log(numbers) if self.log else numbers) - lower) / (upper - lower)

    def from_units(self, units: NDArray[np.float64]) -> Sequence[Scalar]:
        places = np.asarray(units, dtype=float)
        if self.step is not None and self.grid is not None:
            count = len(self.grid)
            parts = np.clip(np.floor(places * count), 0, count - 1)
            return [self.grid[part] for part in parts.astype(np.int64).tolist()]
        lower, upper = self._ends
        numbers = lower + places * (upper - lower)
        numbers = np.exp(numbers) if self.log else numbers
        found = bounded(np.rint(numbers) if self._whole else numbers, places, self.low, self.high)
        return found.astype(np.int64 if self._whole else np.float64).tolist()  # type: ignore[no-any-return]

    def _illegal(self, name: str, value: object, kind: str = "") -> ConfigError:
        steps = "" if self.step is None else f" in steps of {self.step!r}"
        return illegal(name, value, f"{kind}from {self.low!r} to {self.high!r}{steps}")


@dataclass(frozen=True, eq=False, repr=False)
class Float(_Number):
    """A real number in a range.

    Args:
        low: The smallest value.
        high: The largest value.
        when: Values of other parameters for which it exists: ``{"optimizer": "sgd"}``.
        default: The value in configurations that do not mention it.
        prior: A guess of a good value with a confidence: ``(0.01, "high")``.
        log: Uniform in the logarithm, for values over orders of magnitude.
        step: Only low, low + step, low + 2 step, ... up to high.

    >>> Float(-1.0, 1.0).from_unit(0.75), Float(1.0, 16.0, log=True).to_unit(4.0)
    (0.5, 0.5)
    """

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    step: float | None = field(default=None, kw_only=True)

    _whole = False

    def _bound(self, label: str, given: object) -> float:
        bound = plain(given)
        if not is_finite(bound):
            raise self._wrong(f"{label} is {bound!r}; it must be a finite number")
        return float(bound)

    @cached_property
    def grid(self) -> Steps | None:
        if self.step is None:
            return None
        return Steps(self.low, self.step, count_steps(self.low, self.high, self.step)[0])

    def validate(self, name: str, value: object) -> float:
        number = plain(value)
        if not is_finite(number):
            raise self._illegal(name, value, "a finite number ")
        found = self._inside(value, number) if self.grid is None else self.grid.nearest(number)
        if found is None:
            raise self._illegal(name, number)
        return found

    def _inside(self, value: object, number: float) -> float | None:
        """Return the number, or the bound that it misses by rounding (0.1 + 0.2 for 0.3), or None."""
        if self.low <= number <= self.high:
            return float(number)
        clipped = self.low if number < self.low else self.high
        kind = value.dtype if isinstance(value, np.floating) else np.dtype(np.float64)
        rounding = ROUNDING_STEPS * float(np.finfo(kind).eps) * max(abs(self.low), abs(self.high))
        return clipped if abs(number - clipped) <= rounding else None


@dataclass(frozen=True, eq=False, repr=False)
class Int(_Number):
    """A whole number in a range.

    Args:
        low: The smallest value.
        high: The largest value.
        when: Values of other parameters for which it exists: ``{"optimizer": "sgd"}``.
        default: The value in configurations that do not mention it.
        prior: A guess of a good value with a confidence: ``(0.01, "high")``.
        log: Uniform in the logarithm, for values over orders of magnitude.
        step: Only low, low + step, low + 2 step, ... up to high; 1 is no restriction.

    >>> [Int(1, 3).from_unit(u) for u in (0.0, 0.5, 1.0)]
    [1, 2, 3]
    """

    low: int
    high: int
    log: bool = field(default=False, kw_only=True)
    step: int | None = field(default=None, kw_only=True)

    _whole = True

    def _bound(self, label: str, given: object) -> int:
        bound = plain(given)
        if not is_finite(bound) or bound != int(bound):
            raise self._wrong(f"{label} is {bound!r}; it must be a whole number")
        if abs(bound) > MAX_INTEGER:
            raise self._wrong(
                f"{label} is {bound!r}; it must lie between -{MAX_INTEGER} and {MAX_INTEGER}"
            )
        return int(bound)

    @property
    def grid(self) -> range:
        return range(self.low, self.high + 1, self.step or 1)

    def validate(self, name: str, value: object) -> int:
        number = plain(value)
        if not is_finite(number) or number != int(number):
            raise self._illegal(name, value, "a whole number ")
        if int(number) not in self.grid:
            raise self._illegal(name, number)
        return int(number)


@dataclass(frozen=True, eq=False, repr=False)
class _Listed(Parameter):
    """The common part of parameters with a list of values, which is their first field."""

    def __new__(cls, *given: object, **settings: object) -> Self:
        if len(given) > 1:
            raise SpaceError(
                f"{cls.__name__} got {len(given)} arguments; give its {fields(cls)[-1].name} as one"
                f" list: scrimp.{cls.__name__}({list(given)!r})"
            )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        name = fields(self)[-1].name
        self._settle(**{name: self._legal(distinct, name, getattr(self, name))})

    @cached_property
    def grid(self) -> tuple[Scalar, ...]:
        return tuple(getattr(self, fields(self)[-1].name))

    @cached_property
    def _places(self) -> dict[object, float]:
        """The place of each value in the unit interval, by identity."""
        count = len(self.grid)
        return {identity(value): self._place(i, count) for i, value in enumerate(self.grid)}

    @staticmethod
    @abstractmethod
    def _place(index: int, count: int) -> float:
        """Return the place of one of ``count`` values in the unit interval."""

    def validate(self, name: str, value: object) -> Scalar:
        return one_of(name, value, self.grid, self._places)

    def to_units(self, values: Sequence[Scalar]) -> NDArray[np.float64]:
        return np.array([self._places[type(value), value] for value in values], dtype=float)

    def from_units(self, units: NDArray[np.float64]) -> list[Scalar]:
        return shares(self.grid, units)


@dataclass(frozen=True, eq=False, repr=False)
class Ordinal(_Listed):
    """One of some values in order; only their position matters, not their distance.

    Args:
        values: The values, in order.
        when: Values of other parameters for which it exists: ``{"optimizer": "sgd"}``.
        default: The value in configurations that do not mention it.
        prior: A guess of a good value with a confidence: ``(0.01, "high")``.

    >>> Ordinal([64, 128, 256, 512]).to_unit(128)
    0.375
    """

    values: Sequence[Scalar]

    @staticmethod
    def _place(index: int, count: int) -> float:
        return (index + 0.5) / count


@dataclass(frozen=True, eq=False, repr=False)
class Categorical(_Listed):
    """One of some choices, without order.

    Args:
        choices: The choices.
        when: Values of other parameters for which it exists: ``{"optimizer": "sgd"}``.
        default: The value in configurations that do not mention it.
        prior: A guess of a good value with a confidence: ``(0.01, "high")``.

    >>> Categorical(["adamw", "sgd"]).from_unit(0.7)
    'sgd'
    """

    choices: Sequence[Scalar]

    @staticmethod
    def _place(index: int, count: int) -> float:
        return index / max(count - 1, 1)


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Parameter):
    """A value that every trial gets and that is never searched; ``batch=32`` in a space is
    ``batch=Constant(32)``."""

    value: Scalar

    def __post_init__(self) -> None:
        if self.default is not None or self.prior is not None:
            raise self._wrong(
                f"has default {self.default!r} and prior {self.prior!r}; a constant has a value only"
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


_KINDS: dict[str, type[Parameter]] = {
    kind.__name__.lower(): kind for kind in (Float, Int, Ordinal, Categorical, Constant)
}


def as_parameter(name: object, value: Parameter | Scalar) -> Parameter:
    """Return a parameter as it is, and any other value as a constant."""
    if not isinstance(name, str) or not name:
        raise SpaceError(
            f"parameter {name!r} with value {value!r} has no usable name; names must be non-empty"
            " strings"
        )
    if isinstance(value, Parameter):
        return value
    try:
        return Constant(value)
    except SpaceError as error:
        raise SpaceError(f"parameter {name!r}: {error}{_meant(value)}") from None


def _meant(given: object) -> str:
    """A hint for a bare pair or list in place of a parameter; empty for anything else.

    >>> _meant((0, 1)), _meant(["adam", "sgd"])
    ('; a range is scrimp.Float(0, 1)', "; choices are scrimp.Categorical(['adam', 'sgd'])")
    """
    match given:
        case [int() | float() as low, int() | float() as high] if low < high:
            return f"; a range is scrimp.Float({low!r}, {high!r})"
        case tuple() | list():
            return f"; choices are scrimp.Categorical({list(given)!r})"
    return ""


def parameter_from_json(name: str, record: JsonObject) -> Parameter:
    """Return the parameter of a record, as in `Parameter.to_json` or a study file.

    >>> parameter_from_json("layers", {"type": "int", "low": 1, "high": 8})
    Int(1, 8)
    """
    kind = _KINDS.get(str(record.get("type")))
    if kind is None:
        hint = _aside(str(record.get("type")), _KINDS)
        raise SpaceError(
            f"parameter {name!r} has type {record.get('type')!r}{hint}; it must be one of"
            f" {', '.join(_KINDS)}"
        )
    settings = {key: value for key, value in record.items() if key != "type"}
    legal = [item.name for item in fields(kind)]
    needed = [item.name for item in fields(kind) if not item.kw_only]
    unknown = [key for key in settings if key not in legal]
    problems = [f"has the unknown setting {key!r}{_aside(key, legal)}" for key in unknown]
    problems += [f"lacks {key!r}" for key in needed if key not in settings]
    if problems:
        raise SpaceError(
            f"parameter {name!r} {problems[0]}; the settings of {record['type']!r} are"
            f" {', '.join(legal)}"
        )
    try:
        # The class checks the settings.
        make: Callable[..., Parameter] = kind
        return make(**settings)
    except SpaceError as error:
        raise SpaceError(f"parameter {name!r}: {error}") from None


def _aside(word: str, known: Iterable[str]) -> str:
    """A hint at the nearest known name, inside a sentence."""
    near = nearest_name(word, known)
    return f" (did you mean {near!r}?)" if near else ""
