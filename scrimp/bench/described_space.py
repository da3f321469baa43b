"""A search space from its description in a benchmark file.

A description is a list of ``{"name", "type": "float"|"int", "low", "high", "log", "step"}`` and
``{"name", "type": "choice"|"ordinal", "choices"}``; ``"when": {"parent": value}`` marks a parameter
that exists only there.

    # Space(lr=Float(...))
    described_space([{"name": "lr", "type": "float", "low": 1e-4, "high": 0.1, "log": True}])
"""

from collections.abc import Callable, Mapping
from typing import Any

from scrimp.errors import SpaceError, TableError
from scrimp.space.parameter import Categorical, Float, Int, Ordinal
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space

__all__ = ["check_meta", "described_space"]

_MAKERS: dict[str, Callable[[Mapping[str, Any]], Parameter]] = {
    "float": lambda item: Float(item["low"], item["high"], **_numeric(item)),
    "int": lambda item: Int(item["low"], item["high"], **_numeric(item)),
    "choice": lambda item: Categorical(item["choices"], when=item.get("when")),
    "ordinal": lambda item: Ordinal(item["choices"], when=item.get("when")),
}


def _numeric(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"log": item.get("log", False), "step": item.get("step"), "when": item.get("when")}


def described_space(description: object) -> Space:
    """The space that a description means; `TableError` says which entry is wrong and why."""
    if not isinstance(description, list | tuple):
        raise TableError(
            f"space is {description!r}; it must be a list of parameters, each with name and type"
        )
    parameters: dict[str, Parameter] = {}
    for position, item in enumerate(description):
        if not isinstance(item, Mapping) or not isinstance(item.get("name"), str):
            raise TableError(
                f"entry {position} of the space is {item!r}; it must be an object with a name and a"
                " type"
            )
        if item["name"] in parameters:
            raise TableError(f"the space lists parameter {item['name']!r} twice; names must differ")
        parameters[item["name"]] = _parameter(item)
    try:
        return Space(parameters)
    except SpaceError as error:
        raise TableError(f"the space cannot be: {error}") from None


def _parameter(item: Mapping[str, Any]) -> Parameter:
    make = _MAKERS.get(item.get("type", ""))
    if make is None:
        kinds = ", ".join(_MAKERS)
        raise TableError(
            f"parameter {item['name']!r} has type {item.get('type')!r}; it must be one of {kinds}"
        )
    try:
        return make(item)
    except KeyError as error:
        raise TableError(
            f"parameter {item['name']!r} has no {error.args[0]!r}, which its type needs"
        ) from None
    except SpaceError as error:
        raise TableError(f"parameter {item['name']!r} cannot be: {error}") from None


def check_meta(meta: Mapping[str, object]) -> None:
    """Refuse what a table or a surrogate says of itself where something is missing."""
    for name in ("name", "metric", "goal", "space", "budget"):
        if name not in meta:
            raise TableError(
                f"meta has no {name!r}; it must give name, metric, goal, space and budget"
            )
    if meta["goal"] != "min":
        raise TableError(f"goal is {meta['goal']!r}; it must be 'min': turn the values around")
