"""A space from a class of settings: a dataclass or a pydantic model whose fields say what may be tried.

    @dataclass
    class Train:
        lr: Annotated[float, Float(1e-5, 1e-1, log=True)] = 1e-3
        layers: Annotated[int, Int(1, 8)] = 3
        data: str = "digits"                            # not searched: keeps its default

    Space.of(Train)                                     # lr and layers
    filled(Train, {"lr": 0.01, "layers": 2})            # Train(lr=0.01, layers=2, data='digits')

The rule: a field is searched if a parameter of scrimp stands in its `Annotated`, and its default is
that of the parameter. All other fields stay out of the space, so they need a default. A field that
is such a class itself is searched inside: its parameters are called ``optimizer.lr``, and a ``when``
in it names fields beside it, or by their whole name others.
"""

import dataclasses
import sys
from collections.abc import Collection, Mapping
from typing import Annotated, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

from scrimp.errors import SpaceError
from scrimp.json_values import Json, Scalar
from scrimp.space.parameter import Constant
from scrimp.space.parameter_contract import Parameter

__all__ = ["filled", "parameters_of"]

T = TypeVar("T")

NONE = object()
"""The default of a field that has none."""


def parameters_of(settings: type) -> dict[str, Parameter]:
    """The parameters that the fields of a class hold, by name; `SpaceError` where there are none."""
    if not isinstance(settings, type) or not _is_settings(settings):
        raise SpaceError(
            f"Space.of got {settings!r}; it takes a dataclass or a pydantic model, the class itself,"
            " with fields such as lr: Annotated[float, scrimp.Float(1e-5, 1e-1, log=True)]"
        )
    found = _searched(settings, "")
    if not found:
        raise SpaceError(
            f"{settings.__name__} has no field to search; annotate one, such as"
            " lr: Annotated[float, scrimp.Float(1e-5, 1e-1, log=True)]"
        )
    for name, parameter in found.items():
        if parameter.when is not None:
            found[name] = dataclasses.replace(parameter, when=_whole_names(name, parameter, found))
    return found


def filled(settings: type[T], params: Mapping[str, Json]) -> T:
    """An object of the class with these parameters; fields that are not mentioned keep their
    defaults."""
    inner: dict[str, dict[str, Json]] = {}
    values: dict[str, object] = {}
    for name, value in params.items():
        first, _, rest = name.partition(".")
        if rest:
            inner.setdefault(first, {})[rest] = value
        else:
            values[name] = value
    hints = _hints(settings)
    unknown = [name for name in [*values, *inner] if name not in hints]
    if unknown:
        raise SpaceError(
            f"{settings.__name__} has no field {unknown[0]!r}; it has {', '.join(hints)}"
        )
    for name, below in inner.items():
        values[name] = filled(cast(type, _plain(hints[name])), below)
    return settings(**values)


def _searched(settings: type, prefix: str) -> dict[str, Parameter]:
    found: dict[str, Parameter] = {}
    hints = _hints(settings)
    for name, default in _defaults(settings).items():
        whole, marks = prefix + name, _parameters_in(hints[name])
        inner = _plain(hints[name])
        if len(marks) > 1:
            raise SpaceError(f"field {whole!r} is annotated with {len(marks)} parameters; give one")
        if marks:
            found[whole] = _with_default(whole, marks[0], default)
        elif isinstance(inner, type) and _is_settings(inner):
            found |= _searched(inner, f"{whole}.")
        elif default is NONE:
            raise SpaceError(
                f"field {whole!r} has neither a default nor a parameter to search; give it a default,"
                f" or annotate it: {name}: Annotated[..., scrimp.Float(0, 1)]"
            )
    return found


def _with_default(name: str, parameter: Parameter, default: object) -> Parameter:
    """The parameter, with the default of the field where it has none of its own."""
    if default is NONE and parameter.when is not None:
        raise SpaceError(
            f"field {name!r} exists under a condition only; give it a default for when it does not"
        )
    if default in (NONE, None) or parameter.default is not None or isinstance(parameter, Constant):
        return parameter
    try:
        return dataclasses.replace(parameter, default=cast(Scalar, default))  # checked there
    except SpaceError as error:
        raise SpaceError(
            f"field {name!r} has a default outside of what is searched: {error}"
        ) from None


def _whole_names(
    name: str, parameter: Parameter, known: Mapping[str, Parameter]
) -> dict[str, Scalar | Collection[Scalar]]:
    """The condition, with parents by their whole names: those beside the parameter come first."""
    before = name.rpartition(".")[0]
    beside = {parent: f"{before}.{parent}" if before else parent for parent in parameter.when or ()}
    return {
        beside[parent] if beside[parent] in known else parent: values
        for parent, values in (parameter.when or {}).items()
    }


def _hints(settings: type) -> dict[str, object]:
    try:
        return get_type_hints(settings, include_extras=True)
    except NameError as error:
        raise SpaceError(
            f"the annotations of {settings.__name__} cannot be read: {error}; names in them must be"
            " known where the class stands, in its module"
        ) from None


def _parameters_in(hint: object) -> list[Parameter]:
    """Parameters among what `Annotated` says beside the type."""
    beside = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return [mark for mark in beside if isinstance(mark, Parameter)]


def _plain(hint: object) -> object:
    """The type without what `Annotated` says beside it."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _is_settings(given: type) -> bool:
    return dataclasses.is_dataclass(given) or _is_model(given)


def _is_model(given: type) -> bool:
    """Whether it is a pydantic model; pydantic is there if it is."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(given, pydantic.BaseModel)


def _defaults(settings: type) -> dict[str, object]:
    """The default of each field that one may give when making an object."""
    if _is_model(settings):
        fields: Mapping[str, object] = vars(settings).get("__pydantic_fields__", {})
        return {
            name: NONE if field.is_required() else field.get_default(call_default_factory=False)
            for name, field in cast("Mapping[str, _ModelField]", fields).items()
        }
    return {item.name: _default(item) for item in dataclasses.fields(settings) if item.init}


def _default(item: "dataclasses.Field[object]") -> object:
    """The default of a dataclass field; None, which says nothing, where it is made by a function."""
    if item.default is not dataclasses.MISSING:
        return item.default
    return NONE if item.default_factory is dataclasses.MISSING else None


class _ModelField(Protocol):
    """What we ask of a field of a pydantic model."""

    def is_required(self) -> bool: ...
    def get_default(self, *, call_default_factory: bool) -> object: ...
