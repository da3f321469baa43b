"""Types of plain data: JSON values, values of parameters, configurations.

`Json` is the type of a surrogate's record, of the data a plugin keeps, and of a method's settings; check the
type of a value before using it. At run time it is `object`, because msgspec has no recursive types.

    def state(self) -> Mapping[str, Json]: ...
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

Scalar: TypeAlias = str | int | float | bool | None
"""A value of a parameter."""

if TYPE_CHECKING:
    Json: TypeAlias = Scalar | Sequence["Json"] | Mapping[str, "Json"]
else:
    Json = object

JsonObject: TypeAlias = Mapping[str, Json]
"""Names and plain values."""

Config: TypeAlias = dict[str, Any]
"""A configuration: parameter names to scalars; parameters that do not exist in it are absent.

The values are `Any` and not `Scalar` for the sake of objectives: their author knows the space, and
``train(**trial.params)`` would need a cast for every value. It is the only `Any` that users see."""
