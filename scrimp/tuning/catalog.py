"""Methods by name: from what a user writes to the policy that decides (`own_methods` lists them).

A method is a suggester with a scheduler, or a policy that decides jointly. Its settings are the
fields of those frozen classes, so an unknown or ill-typed setting is refused with the list of the
valid ones. Components are imported when asked for.

    Method("hyperband", brackets=4)      "hyperband:brackets=4"      {"name": "hyperband", "brackets": 4}
"""

import dataclasses
import importlib
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np

from scrimp.catalogs.catalog import Catalog
from scrimp.checks import did_you_mean
from scrimp.errors import MethodError
from scrimp.history.problem import Problem
from scrimp.history.vetting import shortened
from scrimp.json_values import Json, JsonObject
from scrimp.policies.policy import Policy
from scrimp.policies.scheduled import Scheduled
from scrimp.space.space import Pool
from scrimp.tuning.acquisition_settings import gathered, settings_of_acquisition
from scrimp.tuning.own_methods import OWN, MethodEntry
from scrimp.tuning.reference_names import SETTINGS, canonical_name, elsewhere, with_brackets

if TYPE_CHECKING:  # loading them takes time
    from _typeshed import DataclassInstance

    from scrimp.transfer.past import Past

__all__ = [
    "Method",
    "build_policy",
    "choose",
    "compares_features",
    "learns",
    "method_names",
    "parse_method",
    "read_method",
    "register_method",
]

MOST_MODELLED = 4
"""Metrics up to which ``auto`` models each of them at every budget."""

RECOMMENDED = 3  # configurations of past studies that any method begins with


@dataclass(frozen=True, init=False)
class Method:
    """A method by name, with the settings that differ from its defaults.

    >>> Method("gp", kernel="rbf-ard")
    Method(name='gp', settings={'kernel': 'rbf-ard'})
    """

    name: str
    settings: JsonObject

    def __init__(self, name: str, /, **settings: Json) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "settings", settings)

    def to_json(self) -> dict[str, Json]:
        """A plain JSON form."""
        return {"name": self.name, "settings": dict(self.settings)}

    @staticmethod
    def from_json(record: JsonObject) -> "Method":
        """The method that `to_json` wrote; `MethodError` for any other record."""
        name, settings = record.get("name"), record.get("settings")
        if not isinstance(name, str) or not isinstance(settings, Mapping):
            raise MethodError(
                f"the study records the method {shortened(record)}, which has no name or no"
                " settings"
            )
        return Method(name, **settings)


_METHODS = Catalog("method", OWN)


def register_method(name: str, entry: MethodEntry) -> None:
    """Make a method of one's own selectable by name; a name is given once."""
    _METHODS.add(name, entry)


def method_names() -> list[str]:
    """Every name `create_study` takes, and ``auto``."""
    return ["auto", *_METHODS]


def read_method(given: "str | Method | Mapping[str, object]") -> Method:
    """A method from text, a table with ``name``, or a `Method`, whatever its name."""
    match given:
        case Method():
            return given
        case str():
            name, _, rest = given.partition(":")
            return Method(name.strip(), **_parse_settings(rest, given))
        case Mapping() if isinstance(given.get("name"), str):
            settings = {key: value for key, value in given.items() if key != "name"}
            return Method(str(given["name"]), **cast("JsonObject", settings))
    raise MethodError(
        f"method is {given!r}; give a name such as 'gp', a scrimp.Method, or a table with a name"
    )


def parse_method(given: "str | Method | Mapping[str, object]") -> Method:
    """A method from text (``name:setting=value,...``), a table with ``name``, or a `Method`;
    refuses unknown names.

    Catalog of papers and reference systems are understood: ``MOBSTER-JOINT:reduction_factor=4`` is
    ``mobster-joint:reduction=4``, and ``ASHA6-STOP`` is ``asha-stopping:brackets=6``.
    """
    method = read_method(given)
    method = Method(canonical_name(method.name, method_names()), **method.settings)
    if (found := with_brackets(method.name, method_names())) and method.name not in method_names():
        method = Method(found[0], **{"brackets": found[1], **method.settings})
    if method.name != "auto" and _METHODS.find(method.name) is None:
        hint = did_you_mean(method.name.lower(), method_names(), ".")
        raise MethodError(
            f"there is no method {method.name!r}{hint} Known: {', '.join(method_names())}"
        )
    return _translated(method)


def _translated(method: Method) -> Method:
    """The method with settings of reference systems under the names they have here."""
    if not any(key in SETTINGS for key in method.settings):
        return method
    own = {item.name for part in _parts(_entry(method)) for item in dataclasses.fields(part)}
    names = {key: SETTINGS.get(key, key) if key not in own else key for key in method.settings}
    for key, name in names.items():
        if key != name and name in method.settings:
            raise MethodError(
                f"settings {key!r} and {name!r} of method {method.name!r} are the same; give"
                f" {name!r} only"
            )
    return Method(method.name, **{names[key]: value for key, value in method.settings.items()})


def _entry(method: Method) -> MethodEntry:
    """What the method's name stands for; nothing yet for ``auto``."""
    return MethodEntry() if method.name == "auto" else _METHODS[method.name]


def _parts(entry: MethodEntry) -> "list[type[DataclassInstance]]":
    """The classes whose fields are the settings."""
    return [
        _load(path)
        for path in ([entry.policy] if entry.policy else [entry.scheduler, entry.suggester])
        if path
    ]


_WITH_PAST: Mapping[str, Json] = {"doubt": 0.1, "own_turns": True, "start": 5}
"""What ``auto`` asks of the task prior; it is recorded, so that studies which began without it decide
as they did."""


def choose(problem: Problem, method: Method, learns: bool = False) -> tuple[Method, str]:
    """What ``auto`` stands for in this problem, with past studies or without, and why; any other
    method stands for itself."""
    if method.name != "auto":
        return method, "chosen by the user"
    if problem.trade_off is not None:
        return _for_several(problem, method, learns)
    if problem.budget is None and learns:
        return (
            Method("task-prior", **{**_WITH_PAST, **method.settings}),
            "auto: there are past studies, so a prior made of them",
        )
    if problem.budget is None:
        return (
            Method("gp", **method.settings),
            "auto: no training budget, so a Gaussian process with log EI",
        )
    listed = (
        "a training budget and a list of configurations, so slices of training by a curve model,"
        " with a short look at many rows of the list"
    )
    free = (
        "a training budget and no list of configurations, so slices of training by a curve model;"
        " new configurations train a while before they are judged, by the gain they promise"
    )
    reason = listed if isinstance(problem.space, Pool) else free
    return Method("freeze-thaw", **method.settings), f"auto: there is {reason}"


def _for_several(problem: Problem, method: Method, learns: bool) -> tuple[Method, str]:
    """What ``auto`` stands for where there are several metrics, and why."""
    if problem.budget is None and learns:
        why = "auto: several metrics and past studies, so a prior made of them for each metric"
        return Method("task-prior", **{"doubt": _WITH_PAST["doubt"], **method.settings}), why
    if problem.budget is None:
        why = "auto: several metrics, so what a trial is expected to add to their front"
        return Method("gp", **method.settings), why
    if len(problem.metrics) > MOST_MODELLED:
        why = f"auto: more than {MOST_MODELLED} metrics and a training budget, so halving by fronts"
        return Method("bohb", **method.settings), why
    why = (
        "auto: several metrics and a training budget, so slices of training where the front is"
        " expected to grow most, by a curve model of each metric"
    )
    return Method("freeze-thaw", **method.settings), why


def build_policy(problem: Problem, method: Method, past: "Past | None" = None) -> Policy:
    """The policy a method stands for in this problem; ``past`` is handed to what can learn from
    past studies."""
    chosen, _ = choose(problem, parse_method(method))
    entry = _METHODS[chosen.name]
    if problem.trade_off is not None and entry.for_several:
        entry = dataclasses.replace(entry, suggester=entry.for_several)
    if problem.trade_off is not None and not entry.several:
        able = ", ".join(name for name in _METHODS if _METHODS[name].several)
        raise MethodError(
            f"method {chosen.name!r} optimizes one metric, and this study has"
            f" {len(problem.metrics)} ({', '.join(problem.metrics)}); use 'auto', or one of {able}"
        )
    if entry.needs_budget and problem.budget is None:
        raise MethodError(
            f"method {chosen.name!r} spends training budgets, and this study has none; "
            "give create_study a budget such as scrimp.Budget('epoch', 1, 81), or use 'gp'"
        )
    classes = _parts(entry)
    settings = gathered(entry.presets, chosen.settings, classes)
    _refuse_unknown(chosen.name, settings, classes)
    parts = [_construct(chosen.name, part, settings) for part in classes]
    policy: Policy = parts[0] if entry.policy else Scheduled(*parts)
    if past is None:
        return policy
    policy = policy.informed_by(past)
    if policy.learns or problem.trade_off is not None:  # several begin with fronts, in the queue
        return policy
    return _warm_started(policy, problem, past)


def learns(method: Method) -> bool:
    """Whether the method is one of those that are made to learn from past studies."""
    entry = _entry(method)
    return bool(entry.suggester) and bool(_load(entry.suggester).learns)


def compares_features(method: Method) -> bool:
    """Whether the method weighs past studies by features of their tasks."""
    settings = {**(_METHODS.find(method.name) or MethodEntry()).presets, **method.settings}
    return learns(method) and settings.get("weights") == "features"


def _warm_started(policy: Policy, problem: Problem, past: "Past") -> Policy:
    """Any other method begins with what past studies recommend."""
    from scrimp.encoding.encoding import Encoding
    from scrimp.policies.warm_start import WarmStarted
    from scrimp.transfer.suggester import portfolio_configs

    encoding = Encoding(problem.space)
    untried = np.zeros((0, encoding.dimension))
    configs = portfolio_configs(past, past.models("z-score"), encoding, untried, RECOMMENDED)
    return WarmStarted(policy, tuple(configs)) if configs else policy


def _load(path: str | type[object]) -> type[Any]:
    if isinstance(path, type):
        return path
    module, _, name = path.partition(":")
    loaded: type[Any] = getattr(importlib.import_module(module), name)
    return loaded


def _refuse_unknown(
    name: str, settings: JsonObject, classes: "list[type[DataclassInstance]]"
) -> None:
    fields = [item for part in classes for item in dataclasses.fields(part)]
    own = {item.name for item in fields if not item.metadata.get("handed_in")}
    valid = sorted({*own, *settings_of_acquisition(settings, classes)})
    for key in settings:
        if key not in valid:
            if (answer := elsewhere(key)) is not None:
                raise MethodError(f"method {name!r} has no setting {key!r}: {answer}")
            hint = did_you_mean(key, valid, ".")
            listed = ", ".join(valid) or "none"
            raise MethodError(
                f"method {name!r} has no setting {key!r}{hint} Its settings: {listed}"
            )


def _construct(name: str, part: "type[DataclassInstance]", settings: JsonObject) -> Any:
    hints = typing.get_type_hints(part)
    values = {}
    for item in dataclasses.fields(part):
        if item.name not in settings:
            continue
        given = settings[item.name]
        try:
            values[item.name] = msgspec.convert(given, hints[item.name], strict=False)
        except msgspec.ValidationError as error:
            raise MethodError(
                f"setting {item.name!r} of method {name!r} is {given!r}: {error}"
            ) from None
    return part(**values)


def _parse_settings(text: str, whole: str) -> dict[str, Json]:
    from scrimp.space.space_text import read_scalar

    settings: dict[str, Json] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = item.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise MethodError(
                f"cannot read {item!r} in method {whole!r}; write settings as"
                " name:key=value,key=value"
            )
        settings[key.strip()] = read_scalar(value.strip())
    return settings
