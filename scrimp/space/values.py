"""What a single value may be: a JSON scalar, told apart by type as well as by equality."""

from collections.abc import Container, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from scrimp.checks import is_finite, is_number
from scrimp.errors import ConfigError, SpaceError
from scrimp.json_values import Scalar

__all__ = ["distinct", "identity", "one_of", "plain", "scalar", "shares"]

T = TypeVar("T")


def plain(value: object) -> object:
    """``value`` as a builtin Python scalar where it is a NumPy scalar or a subclass of str;
    anything else unchanged."""
    if isinstance(value, np.generic):
        value = value.item()
    return str.__str__(value) if isinstance(value, str) else value


def identity(value: T) -> tuple[type, T]:
    """What tells values apart: 1, 1.0 and True are equal in Python and different here."""
    return type(value), value


def scalar(label: str, value: object) -> Scalar:
    """``value`` as a JSON scalar, or `SpaceError`."""
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
    """``values`` as a tuple of different scalars, at least one, or `SpaceError`."""
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


def one_of(name: str, value: object, legal: Sequence[Scalar], known: Container[object]) -> Scalar:
    """The legal value that is meant: the identical one, or else the only equal number (1.0 where 1
    is legal)."""
    normal = plain(value)
    if (normal is None or isinstance(normal, str | int | float)) and identity(normal) in known:
        return normal
    equal = [other for other in legal if is_number(normal) and is_number(other) and other == normal]
    if len(equal) == 1:
        return equal[0]
    raise ConfigError(
        f"parameter {name!r} is {value!r}; it must be one of {', '.join(map(repr, legal))}"
    )


def shares(values: Sequence[Scalar], units: NDArray[np.float64]) -> list[Scalar]:
    """Values at places (n,) when each owns an equal share; i/(k-1) lies in the i-th share of k, as
    does its middle."""
    places = np.clip(np.asarray(units, dtype=float) * len(values), 0, len(values) - 1).astype(
        np.int64
    )
    return [values[place] for place in places.tolist()]
