"""A parameter from its record, as a log or a study file holds it.

parameter_from_json("layers", {"type": "int", "low": 1, "high": 8})     # Int(1, 8)
"""

from collections.abc import Callable, Iterable
from dataclasses import fields

from scrimp.checks import nearest_name
from scrimp.errors import SpaceError
from scrimp.json_values import JsonObject, Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.space.parameter_contract import Parameter

__all__ = ["as_parameter", "parameter_from_json"]

_KINDS: dict[str, type[Parameter]] = {
    kind.__name__.lower(): kind for kind in (Float, Int, Ordinal, Categorical, Constant)
}


def as_parameter(name: object, value: Parameter | Scalar) -> Parameter:
    """What a user gave for ``name``: a parameter, or a value that makes a constant."""
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
    """How to say what somebody may have meant by a bare pair or list; empty for anything else.

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
    """The parameter that ``record`` describes, as `Parameter.to_json` or a configuration file
    writes it.

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
    missing = [
        item
        for item in legal
        if item in ("low", "high", "values", "choices", "value") and item not in settings
    ]
    unknown = [key for key in settings if key not in legal]
    if missing or unknown:
        hint = _aside(unknown[0], legal) if unknown else ""
        problem = (
            f"has the unknown setting {unknown[0]!r}{hint}" if unknown else f"lacks {missing[0]!r}"
        )
        raise SpaceError(
            f"parameter {name!r} {problem}; the settings of {record['type']!r} are"
            f" {', '.join(legal)}"
        )
    try:
        make: Callable[..., Parameter] = kind  # which checks what the record holds
        return make(**settings)
    except SpaceError as error:
        raise SpaceError(f"parameter {name!r}: {error}") from None


def _aside(word: str, known: Iterable[str]) -> str:
    """The name that was meant, inside a longer sentence."""
    near = nearest_name(word, known)
    return f" (did you mean {near!r}?)" if near else ""
