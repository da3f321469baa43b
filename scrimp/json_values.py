"""Plain data, as types: what JSON can say, what a parameter may be, and a configuration.

`Json` is whatever a surrogate records of its fit, an author of a plugin notes or a method's settings
hold: read it by asking what it is. At run time it is `object`, since msgspec knows no types that
contain themselves.

    def state(self) -> Mapping[str, Json]: ...
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

__all__ = ["Config", "Json", "JsonObject", "Scalar"]

Scalar: TypeAlias = str | int | float | bool | None
"""What a parameter may be."""

if TYPE_CHECKING:
    Json: TypeAlias = Scalar | Sequence["Json"] | Mapping[str, "Json"]
else:
    Json = object

JsonObject: TypeAlias = Mapping[str, Json]
"""Names and plain values."""

Config: TypeAlias = dict[str, Any]
"""A configuration: parameter names to scalars; parameters that do not exist in it are absent.

The values are `Any` and not `Scalar` for the sake of objectives: their author knows the space, and
``train(**trial.params)`` would need a cast for every value. It is the only `Any` that users meet."""
