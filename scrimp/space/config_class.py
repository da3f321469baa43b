"""A space from a class of settings: a dataclass or a pydantic model with annotated fields.

    @dataclass
    class Train:
        lr: Annotated[float, Float(1e-5, 1e-1, log=True)] = 1e-3
        layers: Annotated[int, Int(1, 8)] = 3
        data: str = "digits"                            # not searched: keeps its default

    Space.of(Train)                                     # lr and layers
    filled(Train, {"lr": 0.01, "layers": 2})            # Train(lr=0.01, layers=2, data='digits')

A field is searched if its `Annotated` has a parameter of scrimp; the default of the field is that of
the parameter. All other fields stay out of the space, so they need a default. A field that is such
a class itself is searched too: its parameters are called ``optimizer.lr``, and a ``when`` in it
names fields of the same class, or others by their full names.
"""

import dataclasses
import sys
from collections.abc import Collection, Mapping
from typing import Annotated, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

from scrimp.errors import SpaceError
from scrimp.json_values import Json, Scalar
from scrimp.space.parameter import Constant
from scrimp.space.parameter_contract import Parameter

T = TypeVar("T")

NO_DEFAULT = object()
"""Marks a field without a default."""


def parameters_of(settings: type) -> dict[str, Parameter]:
    """Return the parameters in the fields of a class, by name; raise `SpaceError` if there are none."""
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
    """Return an object of the class with these parameters; other fields keep their defaults."""
    inner: dict[str, dict[str, Json]] = {}
    values: dict[str, object] = {}
    for name, value in params.items():
        first, _, rest = name.partition(".")
        if rest:
            inner.setdefault(first, {})[rest] = value
        else:
            values[name] = value
    hints = _hints(settings)
    for name in [*values, *inner]:
        if name not in hints:
            known = ", ".join(hints)
            raise SpaceError(f"{settings.__name__} has no field {name!r}; it has {known}")
    for name, below in inner.items():
        values[name] = filled(cast(type, _plain(hints[name])), below)
    return settings(**values)


def _searched(settings: type, prefix: str) -> dict[str, Parameter]:
    found: dict[str, Parameter] = {}
    hints = _hints(settings)
    for name, default in _defaults(settings).items():
        whole, inner = prefix + name, _plain(hints[name])
        beside = get_args(hints[name])[1:] if get_origin(hints[name]) is Annotated else ()
        marks = [mark for mark in beside if isinstance(mark, Parameter)]
        if len(marks) > 1:
            raise SpaceError(f"field {whole!r} is annotated with {len(marks)} parameters; give one")
        if marks:
            found[whole] = _with_default(whole, marks[0], default)
        elif isinstance(inner, type) and _is_settings(inner):
            found |= _searched(inner, f"{whole}.")
        elif default is NO_DEFAULT:
            raise SpaceError(
                f"field {whole!r} has neither a default nor a parameter to search; give it a default,"
                f" or annotate it: {name}: Annotated[..., scrimp.Float(0, 1)]"
            )
    return found


def _with_default(name: str, parameter: Parameter, default: object) -> Parameter:
    """Return the parameter, with the default of the field unless it has its own."""
    if default is NO_DEFAULT and parameter.when is not None:
        raise SpaceError(f"field {name!r} exists only under a condition; give it a default")
    unused = parameter.default is not None or isinstance(parameter, Constant)
    if unused or default in (NO_DEFAULT, None):
        return parameter
    try:
        # The parameter checks the default.
        return dataclasses.replace(parameter, default=cast(Scalar, default))
    except SpaceError as error:
        raise SpaceError(
            f"field {name!r} has a default outside its parameter's range: {error}"
        ) from None


def _whole_names(
    name: str, parameter: Parameter, known: Mapping[str, Parameter]
) -> dict[str, Scalar | Collection[Scalar]]:
    """Return the condition with the full names of parents: fields of the same class come first."""
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
            " defined in the module of the class"
        ) from None


def _plain(hint: object) -> object:
    """Return the type without its `Annotated`."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _is_settings(given: type) -> bool:
    return dataclasses.is_dataclass(given) or _is_model(given)


def _is_model(given: type) -> bool:
    """True for a pydantic model, for which pydantic must have been imported."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(given, pydantic.BaseModel)


def _defaults(settings: type) -> dict[str, object]:
    """Return the default of each field of the constructor; None if a function makes it."""
    if _is_model(settings):
        fields = cast("Mapping[str, _ModelField]", vars(settings).get("__pydantic_fields__", {}))
        return {
            name: NO_DEFAULT
            if field.is_required()
            else field.get_default(call_default_factory=False)
            for name, field in fields.items()
        }
    defaults: dict[str, object] = {}
    for item in dataclasses.fields(settings):
        made = None if item.default_factory is not dataclasses.MISSING else NO_DEFAULT
        if item.init:
            defaults[item.name] = made if item.default is dataclasses.MISSING else item.default
    return defaults


class _ModelField(Protocol):
    """The methods of a pydantic field that are used here."""

    def is_required(self) -> bool: ...
    def get_default(self, *, call_default_factory: bool) -> object: ...
