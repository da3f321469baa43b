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
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from scrimp.checks import did_you_mean
from scrimp.errors import MethodError
from scrimp.json_values import Json, JsonObject
from scrimp.methods.own_methods import OWN, PUBLISHED, MethodEntry, as_settings
from scrimp.methods.policy import Policy, Scheduled, WarmStarted
from scrimp.plugins.catalog import Catalog
from scrimp.plugins.settings import (
    build,
    check_effect,
    check_several_metrics,
    is_visible,
    settings_of,
)
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
    parts: list[Any] = [build(part, settings) for part in classes]
    used = _acquisition(settings, classes)
    check_effect(parts + [used] * is_dataclass(used), chosen.settings)
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


def learns(method: Method) -> bool:
    """Return True for a method that is made to learn from past studies."""
    entry = _entry(method)
    return bool(entry.suggester) and bool(_load(entry.suggester).learns)


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
        if key in _ANSWERS:
            raise MethodError(f"method {name!r} has no setting {key!r}: {_ANSWERS[key]}")
        meant = _MEANT.get(key) or SETTINGS_ELSEWHERE.get(key, "")
        owner = _BELONGS.get(meant, "other methods")
        if meant in valid:
            hint = f"; it is called {meant!r} here{_UNITS.get(key, '')}."
        elif meant:
            hint = f"; {'it' if key == meant else f'{meant!r}, its name here,'} belongs to {owner}."
        else:
            hint = did_you_mean(key, sorted(valid), ".")
        shown = {setting for setting, item in own.items() if is_visible(item)}
        shown |= set(_acquisition_settings(settings, classes, visible=True))
        listed = ", ".join(sorted(shown)) or "none"
        paper = "; 'published' restores its paper" if isinstance(PUBLISHED.get(name), dict) else ""
        raise MethodError(
            f"method {name!r} has no setting {key!r}{hint} Its settings: {listed}{paper}"
        )


def _instead(name: str, key: str, value: Json) -> str:
    """Return the method that has another value of a setting that ``name`` fixes."""
    base = {"acquisition": "gp", "trade_off": "gp", "type": "asha"}.get(key)
    return f"'{base}:{key}={value}'" if base else f"another method than {name!r}"


def ignores_cost(problem: Problem, method: Method) -> bool:
    """Return True if the method does not weigh the study's cost; plugins are not judged."""
    if problem.cost is None or method.name not in OWN:
        return False
    if method.name == "freeze-thaw":
        return isinstance(problem.space, Pool) or problem.several
    return "cost_exponent" not in _settings(_parts(OWN[method.name]))


def canonical_name(name: str, known: Collection[str]) -> str:
    """The name here of a method written as in a paper, compared by letters and digits; ``name``
    itself where nothing fits.

    >>> canonical_name("SyncMOBSTER", ["sync-mobster"]), canonical_name("TAF (RGPE)", ["taf-rgpe"])
    ('sync-mobster', 'taf-rgpe')
    """
    if name in known:
        return name
    meant = _squeezed(_NAMES_ELSEWHERE.get(_squeezed(name), name))
    return next((one for one in known if meant and _squeezed(one) == meant), name)


def with_brackets(name: str, known: Collection[str]) -> tuple[str, int] | None:
    """The name here and the number of brackets of a method that has both in its name, as in plots of
    Syne Tune.

    >>> with_brackets("ASHA6-STOP", ["asha", "asha-stopping"])
    ('asha-stopping', 6)
    """
    parts = _BRACKETED.fullmatch(_squeezed(name))
    if parts is None:
        return None
    own = canonical_name(parts[1] + parts[3], known)
    return (own, int(parts[2])) if own in known else None


def _squeezed(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


_NAMES_ELSEWHERE = {
    "rs": "random",
    "randomsearch": "random",
    "gridsearch": "grid",
    "bo": "gp-ei",
    "bayesianoptimization": "gp-ei",
    "bayesopt": "gp-ei",
    "ego": "gp-ei",
    "kde": "tpe",
    "ashaprom": "asha",
    "ashapromotion": "asha",
    "ashastop": "asha-stopping",
    "sha": "sync-sh",
    "successivehalving": "sync-sh",
    "synchb": "sync-hyperband",
    "medianstoppingrule": "median",
    "msr": "median",
    "mobster": "mobster-joint",
    "hypertune": "hypertune-indep",
    "hypertune1indep": "hypertune-indep",
    "taf": "taf-r",
    "tst": "tst-r",
    "poe": "pogpe",
    "gpoe": "pogpe",
}
"""Names of methods in papers and other systems, letters and digits only, with the name here."""

SETTINGS_ELSEWHERE = {
    "acq_function": "acquisition",
    "crossover_probability": "crossover",
    "eta": "reduction",
    "exponent_cost": "cost_exponent",
    "gp_base_kernel": "kernel",
    "gp_resource_kernel": "resource_kernel",
    "hypertune_distribution_num_samples": "samples",
    "max_size_data_for_model": "max_data",
    "min_points_in_model": "initial",
    "min_samples_required": "least",
    "mutation_factor": "mutation",
    "num_candidates": "candidates",
    "num_fantasy_samples": "fantasies",
    "num_init_candidates": "candidates",
    "num_init_random": "initial",
    "opt_maxiter": "refit_steps",
    "opt_skip_init_length": "refit_from",
    "opt_skip_period": "refit_every",
    "reduction_factor": "reduction",
    "resource_acq": "r_acq",
    "resource_acq_bohb_threshold": "r_acq_points",
    "rung_increment": "increment",
    "searcher_data": "data",
    "separate_noise_variances": "separate_noise",
}
"""Settings of other systems with the name here; their values mean the same."""

_MEANT = {
    "acq": "acquisition",
    "acq_func": "acquisition",
    "acquisition_function": "acquisition",
    "alpha": "noise",
    "beta": "kappa",
    "eps": "margin",
    "epsilon": "margin",
    "gamma": "share",
    "kappa": "kappa",
    "margin": "margin",
    "n_ei_candidates": "candidates",
    "n_initial_points": "initial",
    "n_random_starts": "initial",
    "n_restarts": "restarts",
    "n_restarts_optimizer": "restarts",
    "n_startup_trials": "initial",
    "population_size": "population",
    "reduction": "reduction",
    "xi": "margin",
}
"""Settings of other libraries with the name that comes closest here; error messages point to it."""

_MARGIN = (
    ", in standard deviations of the losses; with margin_unit=metric in the metric's own units"
)

_UNITS = {
    "alpha": ", as a share of the variance of the losses",
    "beta": ": kappa is the square root of BoTorch's beta",
    "eps": _MARGIN,
    "epsilon": _MARGIN,
    "gamma": ": the share of trials that count as good",
    "xi": _MARGIN,
}

_BELONGS = {
    "acquisition": "the gp methods",
    "kappa": "the acquisition 'ucb': 'gp-ucb:kappa=2', or 'gp:acquisition=ucb,kappa=2'",
    "margin": "the acquisitions 'ei', 'log-ei' and 'pi' of the gp methods: 'gp-ei:margin=0.01'",
    "noise": "the gp methods",
    "population": "'nsga2'",
    "reduction": "methods with rungs: 'asha:reduction=3'",
    "refit_every": "methods with models of budgets; the gp methods have 'refit_share'",
    "refit_from": "methods with models of budgets; the gp methods have 'refit_share'",
    "restarts": "the gp methods",
    "share": "'tpe' and 'bohb'",
}
"""Methods that have a setting, for messages of methods that do not."""

_BRACKETED = re.compile(r"(asha|hyperband|bohb|mobster|hypertune)([1-9]\d?)([a-z]*)")

_BUDGET = "it is part of the study's budget: scrimp.Budget('epoch', minimum, maximum)"
_ANSWERS = {
    "allow_duplicates": "configurations repeat only in a study with noisy=True",
    "boxcox_transform": "methods without a budget have transform='power'",
    "constraint_attr": "create_study takes it: constraints={'memory_gb': scrimp.AtMost(16)}",
    "cost_attr": "create_study takes it: cost='seconds'",
    "cutoff_percentile": "it is called 'quantile' here, from 0 to 1",
    "grace_period": f"it is the minimum; {_BUDGET}",
    "initial_scoring": (
        "the mobster methods have it; elsewhere candidates are ranked by the acquisition itself"
    ),
    "max_resource": f"it is the maximum; {_BUDGET}",
    "max_resource_attr": f"it is the maximum; {_BUDGET}",
    "max_resource_level": f"it is the maximum; {_BUDGET}",
    "max_t": f"it is the maximum; {_BUDGET}",
    "metric": "create_study takes it: metric='val_error'",
    "mode": "create_study takes it: direction='minimize' or 'maximize'",
    "n_workers": "study.optimize takes it: workers=4",
    "no_fantasizing": "running trials always count here; fantasies=1 is the cheapest",
    "normalize_targets": "targets are always brought to one scale here",
    "opt_nstarts": (
        "fits begin at the hyperparameters of the last decision here, or with fresh_fits=true at"
        " two points; methods without a budget have restarts=1"
    ),
    "opt_warmstart": (
        "fits begin at the hyperparameters of the last decision here, unless fresh_fits=true"
    ),
    "points_to_evaluate": "study.enqueue takes them, one after the other",
    "random_seed": "create_study takes it: seed=0",
    "resource_attr": f"it is the name; {_BUDGET}",
    "rung_levels": (
        "rungs follow from the budget and 'reduction' or 'increment'; they cannot be listed"
    ),
    "rung_system_per_bracket": (
        "brackets share one set of rungs here; with bracket_rule='in-turn' each has its own"
    ),
    "search_options": "write its entries as settings of the method itself",
    "searcher": (
        "it is part of the name of the method: asha (random), bohb (kde), mobster-joint (bayesopt)"
    ),
    "time_attr": f"it is the name; {_BUDGET}",
    "top_n_percent": "it is called 'share' here, from 0 to 1: 15 percent are share=0.15",
}
"""Settings of other systems that are written elsewhere, or in other units."""
