"""Methods by name: from the text that a user writes to the policy that decides (`own_methods` lists
them).

A method is a suggester with a scheduler, or a policy that decides jointly. Its settings are the
fields of those frozen classes and of the settings nested in them (`scrimp.plugins.settings`), all
written flat, beside those of its acquisition. Components are imported when asked for.

| in Python | as text | as a mapping |
|---|---|---|
| `Method("hyperband", brackets=4)` | `"hyperband:brackets=4"` | `{"name": "hyperband", "brackets": 4}` |
| `Method("asha", published=True)` | `"asha:published"` | `{"name": "asha", "published": True}` |

Names and settings of papers and other systems are understood where they mean the same:
"MOBSTER-JOINT:reduction_factor=4" is "mobster-joint:reduction=4".
"""

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from scrimp.checks import did_you_mean
from scrimp.errors import MethodError
from scrimp.json_values import Json, JsonObject
from scrimp.methods.names_elsewhere import (
    ANSWERS,
    SETTINGS_ELSEWHERE,
    canonical_name,
    hint_for,
    with_brackets,
)
from scrimp.methods.own_methods import OWN, PUBLISHED, MethodEntry, as_settings
from scrimp.methods.policy import Policy, Scheduled, WarmStarted
from scrimp.plugins.catalog import Catalog
from scrimp.plugins.settings import (
    build,
    check_effect,
    check_several_metrics,
    idle_in_study,
    is_visible,
    settings_of,
)
from scrimp.plugins.study_rules import StudyFacts
from scrimp.space.parameter import Categorical
from scrimp.space.space import Pool
from scrimp.study_log.messages import shortened
from scrimp.study_log.problem import Problem
from scrimp.suggesters.suggester import Suggester

if TYPE_CHECKING:  # loading them takes time
    from _typeshed import DataclassInstance

    from scrimp.transfer.past import Past


MAX_METRICS_MODELLED = 4
"""Metrics up to which ``auto`` models each of them at every budget; convention."""

ACQUISITION_SETTINGS = "acquisition_settings"
"""The field of a method that holds the settings of its acquisition."""

RECOMMENDED_CONFIGS = 3
"""Configurations of past studies that any method starts with; convention."""


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
            shown = shortened(record)
            raise MethodError(
                f"the study records the method {shown}, which has no name or no settings"
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
    """Read a method from text, a table with ``name``, or a `Method`, whatever its name."""
    match given:
        case Method():
            return given
        case str():
            name, _, rest = given.partition(":")
            return Method(name.strip(), **as_settings(rest, given))
        case Mapping() if isinstance(given.get("name"), str):
            settings = {key: value for key, value in given.items() if key != "name"}
            return Method(str(given["name"]), **cast("JsonObject", settings))
    raise MethodError(
        f"method is {given!r}; give a name such as 'gp', a scrimp.Method, or a table with a name"
    )


def parse_method(given: "str | Method | Mapping[str, object]") -> Method:
    """Read a method from text (``name:setting=value,...``), a table with ``name``, or a `Method`;
    translate the names of other systems and refuse unknown ones."""
    method = read_method(given)
    name, settings = canonical_name(method.name, method_names()), method.settings
    if name not in method_names() and (found := with_brackets(name, method_names())):
        name, settings = found[0], {"brackets": found[1], **settings}
    if name != "auto" and _METHODS.find(name) is None:
        hint = did_you_mean(name.lower(), method_names(), ".")
        raise MethodError(
            f"there is no method {name!r}{hint} Known: {', '.join(sorted(method_names()))}"
        )
    return _translated(Method(name, **settings))


def _translated(method: Method) -> Method:
    """The method with settings of other systems under the names they have here."""
    if not any(key in SETTINGS_ELSEWHERE for key in method.settings):
        return method
    own = _settings(_parts(_entry(method)))
    names = {}
    for key in method.settings:
        meant = SETTINGS_ELSEWHERE.get(key, key)
        name = names[key] = meant if key not in own and (meant in own or not own) else key
        if key != name and name in method.settings:
            raise MethodError(
                f"settings {key!r} and {name!r} of method {method.name!r} are the same; give"
                f" {name!r} only"
            )
    return Method(method.name, **{names[key]: value for key, value in method.settings.items()})


def predicting_methods() -> list[str]:
    """The names of all methods that have a model of each metric (`Policy.forecast`)."""
    found = []
    for name in _METHODS:
        entry = _METHODS[name]
        part = _load(entry.policy or entry.suggester)
        presets = entry.presets.get("combine"), entry.presets.get("trade_off")
        has_model = part.forecast not in (Policy.forecast, Suggester.forecast)
        if has_model and not {"portfolio", "chebyshev"} & set(presets):
            found.append(name)
    return found


def _entry(method: Method) -> MethodEntry:
    """The entry of the method's name; an empty one for ``auto``."""
    return MethodEntry() if method.name == "auto" else _METHODS[method.name]


def _parts(entry: MethodEntry) -> "list[type[DataclassInstance]]":
    """The classes whose fields are the settings."""
    paths = [entry.policy] if entry.policy else [entry.scheduler, entry.suggester]
    return [_load(path) for path in paths if path]


def _settings(classes: "Sequence[type[DataclassInstance]]") -> "dict[str, dataclasses.Field[Any]]":
    """The settings of all parts by name."""
    return {name: item for part in classes for name, item in settings_of(part).items()}


_WITH_PAST: Mapping[str, Json] = {"doubt": 0.1, "own_turns": True, "start": 5}
"""Settings that ``auto`` gives the task prior. They are recorded, so that a study keeps them."""


def choose(problem: Problem, method: Method, learns: bool = False) -> tuple[Method, str]:
    """Return the method that ``auto`` stands for in this problem, with past studies or without, and
    the reason; any other method stands for itself."""
    if method.name != "auto":
        return method, "chosen by the user"
    if problem.several:
        name, settings, why = _for_several(problem, learns)
    elif problem.budget is None and learns:
        name, settings, why = "task-prior", _WITH_PAST, "learns from past studies"
    elif problem.budget is None:
        name, settings, why = "gp", {}, "has no training budget"
    else:
        name, settings, why = "freeze-thaw", {}, "has a training budget"
        if isinstance(problem.space, Pool):
            why = "has a training budget and a list of configurations"
    return Method(name, **{**settings, **method.settings}), f"auto, because the study {why}"


def _for_several(problem: Problem, learns: bool) -> tuple[str, JsonObject, str]:
    """Return the method that ``auto`` stands for with several metrics, its settings and the reason."""
    if problem.budget is None and learns:
        settings: JsonObject = {"doubt": _WITH_PAST["doubt"]}
        return "task-prior", settings, "has several metrics and learns from past studies"
    if problem.budget is None:
        return "gp", {}, "has several metrics"
    if len(problem.metrics) > MAX_METRICS_MODELLED:
        return "bohb", {}, f"has more than {MAX_METRICS_MODELLED} metrics and a training budget"
    return "freeze-thaw", {}, "has several metrics and a training budget"


def build_policy(problem: Problem, method: Method, past: "Past | None" = None) -> Policy:
    """Build the policy of a method for this problem; ``past`` is handed to the parts that can learn
    from past studies."""
    entry, parts = _built(problem, method)
    if problem.several:
        check_several_metrics(parts)
    policy: Policy = parts[0] if entry.policy else Scheduled(*parts)
    if past is None:
        return policy
    policy = policy.informed_by(past)
    # Studies of several metrics start with past fronts, in their queue.
    if policy.learns or problem.several:
        return policy
    return _warm_started(policy, problem, past)


def check_method(problem: Problem, method: Method, learning: bool = False) -> list[str]:
    """Raise `MethodError` for a method that a new study cannot have: one that cannot take the problem,
    wrong settings, and settings that have no effect beside each other. Return a warning for each that
    has none in this study. A study that was created with such settings can be continued."""
    chosen, _ = choose(problem, parse_method(method), learning)
    entry, parts = _built(problem, chosen)
    classes = _parts(entry)
    used = _acquisition(_gathered(chosen, entry, classes), classes)
    parts += [used] * is_dataclass(used)
    own = chosen.settings.get(ACQUISITION_SETTINGS)
    given = dict.fromkeys([*chosen.settings, *(own if isinstance(own, Mapping) else ())])
    check_effect(parts, given)
    if problem.several:
        check_several_metrics(parts)
    said = []
    # What the name stands for may be without effect, too.
    given |= dict.fromkeys(entry.fixed)
    for name, rule in idle_in_study(parts, given, _facts(problem, learning)):
        remedy = f"{rule.remedy}, or " * bool(rule.remedy)
        what, last = f"setting {name!r} has", "leave the setting out"
        if name in entry.fixed:
            what = f"method {chosen.name!r} stands for {name}={entry.presets[name]}, which has"
            last = f"use {_base_of(name)!r}"
        said.append(f"{what} no effect: {rule.lacking}; {remedy}{last}")
    return said


def _facts(problem: Problem, learning: bool) -> StudyFacts:
    space = problem.space
    return StudyFacts(
        metrics=len(problem.metrics),
        noisy=problem.noisy,
        cost=problem.cost is not None,
        past=learning,
        listed=isinstance(space, Pool),
        parameters=len(space.searched),
        numbers=not all(isinstance(space[name], Categorical) for name in space.searched),
    )


def _built(problem: Problem, method: Method) -> "tuple[MethodEntry, list[Any]]":
    """Return the entry of a method and its parts, with their settings; raise `MethodError` for a
    problem that the method cannot take, and for wrong settings."""
    chosen, _ = choose(problem, parse_method(method))
    entry = _METHODS[chosen.name]
    if problem.several and not entry.several:
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
    settings = _gathered(chosen, entry, classes)
    _refuse_unknown(chosen.name, settings, classes)
    for key in entry.fixed:
        if settings[key] != entry.presets[key]:
            raise MethodError(
                f"method {chosen.name!r} stands for {key}={entry.presets[key]}, and"
                f" {key}={settings[key]} was given; use {_instead(chosen.name, key, settings[key])}"
            )
    _acquisition(settings, classes)
    return entry, [build(part, settings) for part in classes]


def learns(method: Method) -> bool:
    """Return True for a method that is made to learn from past studies."""
    entry = _entry(method)
    return bool(entry.suggester) and bool(_load(entry.suggester).learns)


def spends_budgets(method: Method) -> bool:
    """Return True for a method that stops trials early."""
    return _entry(method).needs_budget


def compares_features(method: Method) -> bool:
    """Return True for a method that weighs past studies by features of their tasks."""
    return learns(method) and chosen_settings(method).get("weights") == "features"


def chosen_settings(method: Method) -> JsonObject:
    """The settings of a method that are not left to its parts: the presets of its name, those of its
    paper where they are asked for, and what was given. Unknown names have what was given."""
    entry = _METHODS.find(method.name) or MethodEntry()
    paper = PUBLISHED.get(method.name) if method.settings.get("published") is True else None
    return {**entry.presets, **(paper if isinstance(paper, dict) else {}), **method.settings}


def _warm_started(policy: Policy, problem: Problem, past: "Past") -> Policy:
    """Return the policy with the configurations that past studies recommend before its own."""
    from scrimp.encoding.encoding import Encoding
    from scrimp.transfer.portfolio import portfolio_configs

    encoding = Encoding(problem.space)
    untried = np.zeros((0, encoding.dimension))
    models = past.models("z-score")
    configs = portfolio_configs(past, models, encoding, untried, RECOMMENDED_CONFIGS)
    return WarmStarted(policy, tuple(configs)) if configs else policy


def _load(path: str | type[object]) -> type[Any]:
    if isinstance(path, type):
        return path
    module, _, name = path.partition(":")
    loaded: type[Any] = getattr(importlib.import_module(module), name)
    return loaded


def _gathered(
    method: Method, entry: MethodEntry, classes: "Sequence[type[DataclassInstance]]"
) -> dict[str, Json]:
    """The presets of the method's name, those of its paper where they are asked for, and what was
    given; settings of the acquisition under ``acquisition_settings``.

    Presets of an acquisition count for that acquisition only.
    """
    given = dict(method.settings)
    presets = {**entry.presets, **_published(method.name, given.pop("published", False))}
    settings = {**presets, **given}
    names = [name for name in _acquisition_settings(settings, classes) if name in settings]
    own = {name: settings.pop(name) for name in names}
    same = settings.get("acquisition") == presets.get("acquisition")
    preset, more = (part.get(ACQUISITION_SETTINGS, {}) for part in (presets, given))
    if not isinstance(more, Mapping) or not isinstance(preset, Mapping):
        # The check of the field says what is wrong.
        return settings
    merged = {**(preset if same else {}), **more, **own}
    if merged or ACQUISITION_SETTINGS in settings:
        settings[ACQUISITION_SETTINGS] = merged
    return settings


def _published(name: str, wanted: Json) -> JsonObject:
    """The settings that restore the paper of the method, where they are ``wanted``."""
    if not isinstance(wanted, bool):
        raise MethodError(f"published is {wanted!r}; it must be true or false")
    if not wanted:
        return {}
    settings = PUBLISHED.get(name, "no paper is departed from")
    if isinstance(settings, str):
        raise MethodError(
            f"method {name!r} has no preset 'published': {settings}; leave 'published' out"
        )
    return settings


def _acquisition_settings(
    settings: JsonObject, classes: "Sequence[type[DataclassInstance]]", visible: bool = False
) -> tuple[str, ...]:
    """The settings of the acquisition that a method of these classes uses; none without one."""
    fields = _settings(classes)
    if ACQUISITION_SETTINGS not in fields:
        return ()
    from scrimp.acquisition.named_acquisitions import acquisition_settings

    name = str(settings.get("acquisition", fields["acquisition"].default))
    return tuple(key for key in acquisition_settings(name, visible) if key not in fields)


def _acquisition(settings: JsonObject, classes: "Sequence[type[DataclassInstance]]") -> object:
    """The acquisition of these settings; None for a method without one."""
    from scrimp.acquisition.named_acquisitions import acquisition_names, create_acquisition

    default = _settings(classes).get("acquisition")
    name = settings.get("acquisition", None if default is None else default.default)
    own = settings.get(ACQUISITION_SETTINGS, {})
    if name not in acquisition_names() or not isinstance(own, Mapping):
        return None
    return create_acquisition(str(name), **own)


def _refuse_unknown(
    name: str, settings: JsonObject, classes: "Sequence[type[DataclassInstance]]"
) -> None:
    own = _settings(classes)
    valid = {*own, *_acquisition_settings(settings, classes)}
    for key in settings:
        if key in valid:
            continue
        if key in ANSWERS:
            raise MethodError(f"method {name!r} has no setting {key!r}: {ANSWERS[key]}")
        hint = hint_for(key, valid)
        shown = {setting for setting, item in own.items() if is_visible(item)}
        shown |= set(_acquisition_settings(settings, classes, visible=True))
        listed = ", ".join(sorted(shown)) or "none"
        paper = "; 'published' restores its paper" if isinstance(PUBLISHED.get(name), dict) else ""
        raise MethodError(
            f"method {name!r} has no setting {key!r}{hint} Its settings: {listed}{paper}"
        )


def _instead(name: str, key: str, value: Json) -> str:
    """Return the method that has another value of a setting that ``name`` fixes."""
    base = _base_of(key)
    return f"'{base}:{key}={value}'" if base else f"another method than {name!r}"


def _base_of(key: str) -> str:
    """Return the method without a fixed value of a setting; empty for settings of plugins."""
    return {"acquisition": "gp", "trade_off": "gp", "type": "asha"}.get(key, "")


def ignored_guesses(problem: Problem, method: Method, learning: bool) -> list[str]:
    """The parameters with a guess of the user, a prior, of which the method takes no notice."""
    entry = _entry(method)
    part = _load(entry.policy or entry.suggester)
    if part.guided and not (learning and learns(method)):
        return []
    space = problem.space
    return [name for name in space.searched if space[name].prior is not None]


def ignores_cost(problem: Problem, method: Method) -> bool:
    """Return True if the method does not weigh the study's cost; plugins are not judged."""
    if problem.cost is None or method.name not in OWN:
        return False
    if method.name == "freeze-thaw":
        return isinstance(problem.space, Pool) or problem.several
    return "cost_exponent" not in _settings(_parts(OWN[method.name]))
