"""Plain data, as types: what JSON can say, and what a parameter may be.

`Json` is whatever a surrogate records of its fit, an author of a plugin notes or a method's settings hold: read it by asking
what it is. At run time it is `Any`, since msgspec knows no types that contain themselves.

    def state(self) -> Mapping[str, Json]: ...
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

__all__ = ["Json", "JsonObject", "Scalar"]

Scalar: TypeAlias = str | int | float | bool | None
"""What a parameter may be."""

if TYPE_CHECKING:
    Json: TypeAlias = Scalar | Sequence["Json"] | Mapping[str, "Json"]
else:
    Json = Any

JsonObject: TypeAlias = Mapping[str, Json]
"""Names and plain values."""
