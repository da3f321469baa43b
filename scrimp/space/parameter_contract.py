"""The contract of parameters: legal values, and their places in the unit interval.

A value is a JSON scalar. Values are told apart by type as well as by equality: 1, 1.0 and True are
equal in Python and different here.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from scrimp.checks import is_finite, is_number
from scrimp.errors import ConfigError, SpaceError
from scrimp.json_values import Json, Scalar

T = TypeVar("T")


def plain(value: object) -> object:
    """Convert NumPy scalars and subclasses of str to builtin scalars; return anything else unchanged."""
    if isinstance(value, np.generic):
        value = value.item()
    return str.__str__(value) if isinstance(value, str) else value


def identity(value: T) -> tuple[type, T]:
    """Return a key that tells 1, 1.0 and True apart."""
    return type(value), value


def scalar(label: str, value: object) -> Scalar:
    """Return ``value`` as a JSON scalar, or raise `SpaceError`."""
    normal = plain(value)
    if normal is not None and not isinstance(normal, str | int | float | bool):
        raise SpaceError(
            f"{label} has {value!r} of type {type(value).__name__}; it must be a string, number,"
            " True, False or None (give other objects a name, and look them up in the objective)"
        )
    if is_number(normal) and not is_finite(normal):
        raise SpaceError(f"{label} has {normal!r}; numbers must be finite")
    return normal


def distinct(label: str, values: object) -> tuple[Scalar, ...]:
    """Return ``values`` as a tuple of different scalars, at least one, or raise `SpaceError`."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise SpaceError(f"{label} is {values!r}; it must be a list of values")
    normal = tuple(scalar(label, value) for value in values)
    if not normal:
        raise SpaceError(f"{label} is empty; it must have at least one value")
    seen: set[object] = set()
    for value in normal:
        if identity(value) in seen:
            raise SpaceError(f"{label} has {value!r} twice; every value may be listed once")
        seen.add(identity(value))
    return normal


def illegal(name: str, value: object, rule: str) -> ConfigError:
    """Return the error for a value of a parameter that breaks ``rule``."""
    return ConfigError(f"parameter {name!r} is {value!r}; it must be {rule}")


def one_of(name: str, value: object, legal: Sequence[Scalar], known: Container[object]) -> Scalar:
    """Return the legal value: the identical one, or else the only equal number (1.0 if 1 is legal)."""
    normal = plain(value)
    if (normal is None or isinstance(normal, str | int | float)) and identity(normal) in known:
        return normal
    equal = [other for other in legal if is_number(normal) and is_number(other) and other == normal]
    if len(equal) == 1:
        return equal[0]
    raise illegal(name, value, f"one of {', '.join(map(repr, legal))}")


def shares(values: Sequence[Scalar], units: NDArray[np.float64]) -> list[Scalar]:
    """Return the values at places (n,), if each owns an equal share. Both i/(k-1) and the middle of
    the i-th of k shares lie in it."""
    places = np.clip(np.asarray(units, dtype=float) * len(values), 0, len(values) - 1)
    return [values[place] for place in places.astype(np.int64).tolist()]


Confidence = Literal["low", "medium", "high"]
CONFIDENCES = {"low": 0.25, "medium": 0.5, "high": 0.75}
"""Numbers of the named confidences in a prior (convention)."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Parameter(ABC):
    """The contract of parameters, and their common fields.

    ``when``: the parameter exists only if all these parents have one of these values,
    ``{"optimizer": ["sgd"]}``. ``default``: the value in configurations that do not mention the
    parameter; None, even among choices, is no default. ``prior``: (value, confidence), a user's
    guess of a good value; confidence in (0, 1] or low, medium, high.
    """

    when: Mapping[str, Scalar | Collection[Scalar]] | None = None
    default: Scalar = None
    prior: tuple[Scalar, float | Confidence] | None = None

    @property
    @abstractmethod
    def grid(self) -> Sequence[Scalar] | None:
        """All legal values in order, or None for a continuum."""

    @abstractmethod
    def validate(self, name: str, value: object) -> Scalar:
        """Return the value in its normal form, or raise `ConfigError` with the rule."""

    @abstractmethod
    def to_units(self, values: Sequence[Scalar]) -> NDArray[np.float64]:
        """Return the places (n,) of legal values in the unit interval."""

    @abstractmethod
    def from_units(self, units: NDArray[np.float64]) -> Sequence[Scalar]:
        """Return the legal values at places (n,) of the unit interval; places outside are clipped."""

    def to_unit(self, value: Scalar) -> float:
        """Return `to_units` of one value."""
        return float(self.to_units([value])[0])

    def from_unit(self, unit: float) -> Scalar:
        """Return `from_units` of one place."""
        return self.from_units(np.array([unit], dtype=float))[0]

    @property
    def needs(self) -> dict[str, tuple[Scalar, ...]]:
        """``when`` with a tuple for every parent; empty if the parameter always exists."""
        return {
            parent: values if isinstance(values, tuple) else (values,)
            for parent, values in (self.when or {}).items()
        }

    @property
    def size(self) -> float:
        """The number of values; infinite for a continuum."""
        return math.inf if self.grid is None else len(self.grid)

    def _settle(self, **normal: object) -> None:
        """Set the normal forms of own fields, then check and normalise the common fields."""
        for name, value in normal.items():
            object.__setattr__(self, name, value)
        if self.when is not None:
            object.__setattr__(self, "when", _normal_when(self, self.when))
        if self.default is not None:
            object.__setattr__(self, "default", self._legal(self.validate, "default", self.default))
        if self.prior is not None:
            object.__setattr__(self, "prior", _normal_prior(self, self.prior))

    def _legal(self, rule: Callable[[str, object], T], label: str, value: object) -> T:
        try:
            return rule(label, value)
        except (ConfigError, SpaceError) as error:
            raise self._wrong(str(error).replace(f"parameter {label!r}", label, 1)) from None

    def _wrong(self, message: str) -> SpaceError:
        return SpaceError(f"{type(self).__name__}: {message}")

    def to_json(self) -> dict[str, Json]:
        """Return a plain JSON form; `parameter_from_json` restores it."""
        record: dict[str, Json] = {"type": type(self).__name__.lower()}
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
        # By repr, because 1 == True == 1.0.
        return isinstance(other, Parameter) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def _normal_when(parameter: Parameter, when: object) -> dict[str, tuple[object, ...]]:
    if not isinstance(when, Mapping) or not when:
        raise parameter._wrong(
            f'when is {when!r}; it must map parents to values, such as {{"optimizer": "sgd"}}'
        )
    normal = {}
    for parent, values in when.items():
        if isinstance(values, set | frozenset):
            # The order of a set differs between processes.
            values = sorted(values, key=repr)
        listed = isinstance(values, list | tuple | range)
        several = tuple(plain(value) for value in (values if listed else [values]))
        if not several:
            raise parameter._wrong(
                f"when has no value for parent {parent!r}; give one value or a list of alternatives"
            )
        normal[parent] = several
    return normal


def _normal_prior(parameter: Parameter, prior: object) -> tuple[Scalar, float]:
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
