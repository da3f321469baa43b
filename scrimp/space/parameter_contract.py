"""The contract of parameters: what may be tried for one of them, and where its values lie in the unit interval."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from scrimp.checks import is_number
from scrimp.errors import ConfigError, SpaceError
from scrimp.json_values import Json, Scalar
from scrimp.space.values import (
    plain,
)

__all__ = ["CONFIDENCES", "Parameter"]

T = TypeVar("T")

Confidence = Literal["low", "medium", "high"]
CONFIDENCES = {"low": 0.25, "medium": 0.5, "high": 0.75}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Parameter(ABC):
    """The contract of parameters, and what all of them carry.

    ``when``: the parameter exists only where all these parents have one of these values,
    ``{"optimizer": ["sgd"]}``. ``default``: what a configuration that does not mention the
    parameter gets; None, even among choices, is no default. ``prior``: (value, confidence), a
    user's guess of a good value; confidence in (0, 1] or low, medium, high.
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
        """The value in its normal form, or `ConfigError` that names the parameter, the value and
        the rule."""

    @abstractmethod
    def to_units(self, values: Sequence[Scalar]) -> NDArray[np.float64]:
        """Places (n,) of legal values in the unit interval."""

    @abstractmethod
    def from_units(self, units: NDArray[np.float64]) -> Sequence[Scalar]:
        """Legal values at places (n,) of the unit interval; what lies outside is clipped."""

    def to_unit(self, value: Scalar) -> float:
        """`to_units` of one value."""
        return float(self.to_units([value])[0])

    def from_unit(self, unit: float) -> Scalar:
        """`from_units` of one place."""
        return self.from_units(np.array([unit], dtype=float))[0]

    @property
    def needs(self) -> dict[str, tuple[Scalar, ...]]:
        """``when`` with a tuple for every parent; empty where the parameter always exists."""
        return {
            parent: values if isinstance(values, tuple) else (values,)  # made so in `_settle`
            for parent, values in (self.when or {}).items()
        }

    @property
    def size(self) -> float:
        """How many values there are; infinite for a continuum."""
        return math.inf if self.grid is None else len(self.grid)

    def _settle(self, **normal: object) -> None:
        """Put normal forms of the own fields in place, then check what all parameters carry."""
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
        """A plain JSON form; `parameter_from_json` restores it."""
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
        return isinstance(other, Parameter) and repr(self) == repr(
            other
        )  # repr, because 1 == True == 1.0

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
