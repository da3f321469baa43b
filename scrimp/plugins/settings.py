"""Settings of methods: declared once beside their field, nested in each other, written flat.

A setting is a field of a frozen dataclass. Its rule stands beside it, and `check_settings` applies
all of them. A method nests the settings of its parts, and users write every name flat:

    @dataclass(frozen=True)
    class CurveSettings:
        kernel: str = "matern52-ard"
        max_data: int | None = setting(500, at_least(10))
        cap: bool = setting(True, paper=True)

    @dataclass(frozen=True)
    class Mobster:
        curves: CurveSettings = nested_settings(CurveSettings())
        fantasies: int = setting(20, at_least(1))

        def __post_init__(self) -> None:
            check_settings(self)

    build(Mobster, {"max_data": 200, "fantasies": 4})     # Mobster(CurveSettings(max_data=200), 4)

A setting with ``paper=True`` exists only to restore a published method. It works like any other,
but lists of settings leave it out: the preset ``NAME:published`` gives all of them at once.

A setting that may be without effect says so beside its field by ``only_with``, and users are told
when they create a study: beside other settings that rule it out it is refused (`check_effect`), and
in studies that rule it out they are warned (`idle_in_study`).
"""

import dataclasses
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from scrimp.errors import MethodError
from scrimp.plugins.study_rules import StudyFacts, StudyRule

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
D = TypeVar("D", bound="DataclassInstance")


@dataclass(frozen=True)
class ValueRule:
    """Values that a setting may have: ``text`` completes "it must be ..."."""

    text: str
    holds: Callable[[Any], bool]

    def __and__(self, other: "ValueRule") -> "ValueRule":
        """Both rules together.

        >>> (above(0) & at_most(1)).text
        'above 0 and at most 1'
        """
        return ValueRule(
            f"{self.text} and {other.text}", lambda value: self.holds(value) and other.holds(value)
        )


def at_least(bound: float) -> ValueRule:
    """Numbers from ``bound`` on."""
    return ValueRule(f"at least {bound}", lambda value: value >= bound)


def above(bound: float) -> ValueRule:
    """Numbers larger than ``bound``."""
    return ValueRule(f"above {bound}", lambda value: value > bound)


def at_most(bound: float) -> ValueRule:
    """Numbers up to ``bound``."""
    return ValueRule(f"at most {bound}", lambda value: value <= bound)


def below(bound: float) -> ValueRule:
    """Numbers smaller than ``bound``."""
    return ValueRule(f"below {bound}", lambda value: value < bound)


def between(low: float, high: float) -> ValueRule:
    """Numbers from ``low`` to ``high``, both included."""
    return ValueRule(f"from {low} to {high}", lambda value: low <= value <= high)


def choices(*names: str) -> ValueRule:
    """These names."""
    return ValueRule(f"one of {', '.join(names)}", lambda value: value in names)


def other_than(wrong: object) -> ValueRule:
    """All values but one."""
    return ValueRule(f"other than {_written(wrong)}", lambda value: value != wrong)


SEVERAL_OR_NONE = ValueRule("above 1, or none", lambda value: value is None or value > 1)
"""Numbers above 1, and None where that stands for several."""

Need = tuple[str, tuple[object, ...] | ValueRule]
"""Another setting of a method, and the values of it with which a setting has an effect; None keeps
any rule."""


@dataclass(frozen=True)
class AnyOf:
    """Needs of which one is enough."""

    needs: tuple[Need, ...]


Condition = Need | AnyOf | StudyRule
"""Values of other settings, or studies, with which a setting has an effect."""


def setting(
    default: T,
    rule: ValueRule | None = None,
    remedy: str = "",
    *,
    paper: bool = False,
    only_with: Condition | tuple[Condition, ...] = (),
    one_metric: bool = False,
) -> T:
    """A field of a settings class with its default, its rule, and what to add to the error message.

    ``paper``: the setting exists only to restore a published method. ``only_with``: the values of
    other settings, and the studies, with which this one has an effect, all of them: beside other
    values `check_effect` refuses it, in other studies `idle_in_study` tells. ``one_metric``: in a
    study of several metrics only the default works; `check_several_metrics` refuses any other value.
    """
    metadata = {"rule": rule, "remedy": remedy, "paper": paper, "one_metric": one_metric}
    needs = {"only_with": _conditions(only_with)}
    return dataclasses.field(default=default, metadata=metadata | needs)


def _conditions(given: Condition | tuple[Condition, ...]) -> tuple[Condition, ...]:
    # A need is a tuple that begins with a name.
    one = not isinstance(given, tuple) or (bool(given) and isinstance(given[0], str))
    return typing.cast("tuple[Condition, ...]", (given,) if one else given)


def nested_settings(
    default: T,
    without: tuple[str, ...] = (),
    only_with: Mapping[str, Condition] | None = None,
) -> T:
    """A field that holds the settings of a part. Users write its settings flat, except for those
    ``without`` a meaning in this method. ``only_with`` is as in `setting`, for settings of the part
    that may be without effect in this method only."""
    metadata = {"without": without, "only_with": only_with or {}}
    return dataclasses.field(default=default, metadata=metadata)


def handed_in(default: T) -> T:
    """A field that the program fills in, such as knowledge from past studies. It is no setting."""
    return dataclasses.field(default=default, metadata={"handed_in": True})


def check_settings(settings: "DataclassInstance") -> None:
    """Raise `MethodError` for the first field of ``settings`` that breaks its rule. None passes:
    its type says whether it is allowed."""
    for item in dataclasses.fields(settings):
        rule, value = item.metadata.get("rule"), getattr(settings, item.name)
        if rule is not None and value is not None and not rule.holds(value):
            hint = typing.get_type_hints(type(settings))[item.name]
            optional = ", or none" if type(None) in typing.get_args(hint) else ""
            remedy = item.metadata["remedy"]
            raise MethodError(
                f"{item.name} is {value!r}; it must be {rule.text}{optional}"
                f"{f': {remedy}' if remedy else ''}"
            )


def check_effect(parts: "Iterable[DataclassInstance]", given: Collection[str]) -> None:
    """Raise `MethodError` for the first setting in ``given`` that has no effect beside the other
    settings of these ``parts`` of a method."""
    values, items = _of_parts(parts)
    for name in given:
        if lacking := _lacking(items[name], values) if name in items else ():
            beside = " and ".join(f"{other}={_written(values[other])}" for other, _ in lacking)
            raise MethodError(
                f"setting {name!r} has no effect with {beside}: leave it out, or use"
                f" {' or '.join(map(_use, lacking))}"
            )


def idle_in_study(
    parts: "Iterable[DataclassInstance]", given: Iterable[str], study: StudyFacts
) -> Iterator[tuple[str, StudyRule]]:
    """Yield each setting in ``given`` that has no effect in this study, with the rule it breaks."""
    values, items = _of_parts(parts)
    for name in given:
        needs = items[name].metadata.get("only_with", ()) if name in items else ()
        for need in needs:
            if isinstance(need, StudyRule) and not need.holds(study, values):
                yield name, need
                break


def _of_parts(
    parts: "Iterable[DataclassInstance]",
) -> "tuple[dict[str, object], dict[str, dataclasses.Field[object]]]":
    """The values and the fields of all settings by flat name."""
    values: dict[str, object] = {}
    items: dict[str, dataclasses.Field[object]] = {}
    for part in parts:
        values |= flat_settings(part)
        items |= settings_of(type(part))
    return values, items


def _lacking(item: "dataclasses.Field[object]", values: Mapping[str, object]) -> tuple[Need, ...]:
    """Return the first needs of which none is met; empty if the setting has an effect."""
    for need in item.metadata.get("only_with", ()):
        options = need.needs if isinstance(need, AnyOf) else (need,)
        there = tuple(one for one in options if isinstance(one, tuple) and one[0] in values)
        if there and not any(_is_met(option, values) for option in there):
            return there
    return ()


def _is_met(need: Need, values: Mapping[str, object]) -> bool:
    value, valid = values[need[0]], need[1]
    if isinstance(valid, ValueRule):
        return value is None or valid.holds(value)
    return value in valid


def _use(need: Need) -> str:
    """Return what to use instead, as users write it."""
    name, valid = need
    if isinstance(valid, ValueRule):
        return f"{name} {valid.text}"
    return " or ".join(f"{name}={_written(value)}" for value in valid)


def check_several_metrics(parts: "Iterable[DataclassInstance]") -> None:
    """Raise `MethodError` for the first setting of these ``parts`` of a method that works with one
    metric only."""
    for part in parts:
        values = flat_settings(part)
        for name, item in settings_of(type(part)).items():
            if item.metadata.get("one_metric") and values[name] != item.default:
                raise MethodError(
                    f"{name} is {values[name]!r}, which works with one metric only; use"
                    f" {name}={_written(item.default)}"
                )


def _written(value: object) -> str:
    """Return a value as users write it."""
    return str(value).lower() if value is None or isinstance(value, bool) else repr(value)


def settings_of(kind: "type[DataclassInstance]") -> "dict[str, dataclasses.Field[Any]]":
    """The settings that users may write for ``kind`` by flat name, nested ones included."""
    found: dict[str, dataclasses.Field[Any]] = {}
    for item in dataclasses.fields(kind):
        if "without" in item.metadata:
            part: Any = item.default
            inner = settings_of(type(part))
            for name in inner:
                if name not in item.metadata["without"]:
                    found[name] = _within(inner[name], item)
        elif not item.metadata.get("handed_in"):
            found[item.name] = item
    return found


def _within(
    item: "dataclasses.Field[T]", part: "dataclasses.Field[object]"
) -> "dataclasses.Field[T]":
    """The field of a setting, with what the method says about it where it nests the ``part``."""
    own = part.metadata["only_with"].get(item.name)
    if own is None:
        return item
    needs = (*item.metadata.get("only_with", ()), own)
    changed = copy(item)
    changed.metadata = MappingProxyType({**item.metadata, "only_with": needs})
    return changed


def is_visible(item: "dataclasses.Field[Any]") -> bool:
    """Return False for a setting that exists only to restore a published method."""
    return not item.metadata.get("paper")


def flat_settings(settings: "DataclassInstance") -> dict[str, Any]:
    """The values of all settings by flat name, those that have no meaning in a method included."""
    found: dict[str, Any] = {}
    for item in dataclasses.fields(settings):
        if "without" in item.metadata:
            found |= flat_settings(getattr(settings, item.name))
        elif not item.metadata.get("handed_in"):
            found[item.name] = getattr(settings, item.name)
    return found


def build(kind: type[D], given: Mapping[str, object]) -> D:
    """An instance of ``kind`` with the settings in ``given``, by flat name; names that it does not
    have are left to others.

    Values are converted to the types of the fields: a JSON or TOML document has no tuples.
    """
    return kind(**_changes(kind, given, None))


def _changes(
    kind: "type[DataclassInstance]",
    given: Mapping[str, object],
    present: "DataclassInstance | None",
) -> dict[str, Any]:
    """The fields of ``kind`` that ``given`` changes, from the nested values of ``present``."""
    hints, valid = typing.get_type_hints(kind), settings_of(kind)
    changes: dict[str, Any] = {}
    for item in dataclasses.fields(kind):
        if "without" in item.metadata:
            part: Any = item.default if present is None else getattr(present, item.name)
            names = set(settings_of(type(part))) - set(item.metadata["without"])
            inner = {name: value for name, value in given.items() if name in names}
            if inner:
                changes[item.name] = dataclasses.replace(part, **_changes(type(part), inner, part))
        elif item.name in given and item.name in valid:
            changes[item.name] = _converted(item, given[item.name], hints[item.name])
    return changes


_TYPES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def _converted(item: "dataclasses.Field[object]", value: object, hint: type) -> object:
    """Return a value as the type of its field. The text "none" stands for None, and None for the
    text, where the field takes only the other."""
    import msgspec

    rule: ValueRule | None = item.metadata.get("rule")
    optional = type(None) in typing.get_args(hint)
    kinds = typing.get_args(hint) if optional else (hint,)
    takes_text = str in kinds and rule is not None and rule.holds("none")
    if value is None and takes_text and not optional:
        value = "none"
    elif isinstance(value, str) and value.lower() == "none" and optional and not takes_text:
        value = None
    try:
        return msgspec.convert(value, hint, strict=False)
    except msgspec.ValidationError:
        known = [_TYPES.get(kind, "a table or a list") for kind in kinds if kind is not type(None)]
        wanted = " or ".join(known)
        if rule is not None:
            wanted = rule.text if str in kinds else f"{wanted}, {rule.text}"
        none = ", or none" if optional else ""
        raise MethodError(
            f"setting {item.name!r} is {_written(value)}; it must be {wanted}{none}"
        ) from None
