"""The methods of scrimp and their parts. Adding a method is one line in `OWN`.

``NAME:published`` restores the method as its paper has it, as far as there are settings for it;
`PUBLISHED` has what that changes. docs/methods.md has the table "Where we depart from the papers",
with the reason for every difference.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from scrimp.errors import MethodError
from scrimp.json_values import Json, JsonObject
from scrimp.methods.policy import Policy
from scrimp.space.space_text import read_scalar

if TYPE_CHECKING:  # loading them takes time
    from scrimp.schedulers.scheduler import Scheduler
    from scrimp.suggesters.suggester import Suggester


RUN_TO_END = "scrimp.schedulers.scheduler:RunToEnd"


@dataclass(frozen=True)
class MethodEntry:
    """A suggester and a scheduler, or a policy, with presets for their settings. Each is a class,
    or "module:Class", which is imported when it is asked for.

    ``several``: it takes several metrics at once. ``fixed``: presets that the name stands for, so
    that no other value may be given.
    """

    suggester: "str | type[Suggester]" = ""
    scheduler: "str | type[Scheduler]" = RUN_TO_END
    policy: str | type[Policy] = ""
    presets: JsonObject = field(default_factory=dict)
    needs_budget: bool = False
    several: bool = False
    fixed: tuple[str, ...] = ()


def as_settings(text: str, whole: str = "") -> dict[str, Json]:
    """Read settings as users write them: "key=value,key=value"; `MethodError` names ``whole``."""
    settings: dict[str, Json] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = item.partition("=")
        if item == "published":
            key, equals, value = "published", "=", "true"
        if not equals or not key.strip() or not value.strip():
            raise MethodError(
                f"cannot read {item!r} in method {whole!r}; write settings as"
                " name:key=value,key=value, or name:published for those of the paper"
            )
        settings[key.strip()] = read_scalar(value.strip())
    return settings


_EGO = as_settings("incumbent=observed,refit_share=0.0,kernel=rbf-ard")
_TEXTBOOK = as_settings("transform=plain,patience=0")
_BOHB_DENSITIES = as_settings(
    "share=0.15,candidates=64,spread=observed,least_bandwidth=0.001,widening=3.0,weighting=equal,"
    "uniform=0.0,least_good=none,avoid_running=false,design=random,max_data=none"
)
_SYNE_TUNE: JsonObject = {
    "acquisition_settings": {"margin": 0.01, "margin_unit": "metric"},
    **as_settings(
        "fresh_fits=true,refit_steps=50,cap=false,initial_scoring=thompson_indep,design=random"
    ),
}
_HYPER_TUNE_PAPER = as_settings(
    "wait_for_full=true,cutoff=delayed,combine=linear,least_weight=0.0,random_fraction=0.3,"
    "fresh_fits=true,refit_steps=50,cap=false"
)
_TST = as_settings("normalise=min-max,initial=1,kernel=rbf-ard")
_BY_FEATURES = as_settings("distance=euclidean,bandwidth=0.1")

PUBLISHED: dict[str, JsonObject | str] = {
    "gp": {"acquisition": "ei", **_TEXTBOOK, **_EGO, "design": "random"},
    "parego": {"acquisition": "ei", **_TEXTBOOK, **_EGO, "design": "random"},
    "nsga2": {"population": 100, "spread": 20.0},
    "gp-ei": _EGO,
    "gp-pi": {"incumbent": "observed", "refit_share": 0.0},
    "gp-ucb": {"acquisition_settings": {"schedule": "growing"}, "refit_share": 0.0},
    "tpe": as_settings(
        "multivariate=false,spread=neighbours,share=0.15,weighting=equal,avoid_running=false,"
        "initial=20,design=random,max_data=none"
    ),
    "asha": {"cutoff": "top"},
    "asha-stopping": {},
    "hyperband": {"cutoff": "top", "bracket_rule": "in-turn"},
    "sync-sh": {"rounding": "down"},
    "sync-hyperband": {"rounding": "down"},
    "bohb": _BOHB_DENSITIES,
    "sync-bohb": {"rounding": "down", **_BOHB_DENSITIES},
    "freeze-thaw": (
        "the policy of the paper is not offered; 'mobster-joint:resource_kernel=freeze-thaw' and"
        " 'mobster-joint:model=gp_expdecay,data=all' have its models"
    ),
    "dehb": {"rounding": "down", "repeats": True, "vacancies": "random"},
    "median": {"compare": "best", "among": "ended", "least": 1, "comparisons": None},
    "mobster-joint": {
        **_SYNE_TUNE,
        **as_settings(
            "random_fraction=0.0,resource_encoding=centred,resource_kernel=exp-decay-sum"
        ),
    },
    "mobster-indep": _SYNE_TUNE,
    "sync-mobster": {"rounding": "down", **_SYNE_TUNE},
    "hypertune-indep": {**_HYPER_TUNE_PAPER, "brackets": None},
    "hypertune-joint": {**_HYPER_TUNE_PAPER, "brackets": None},
    "hypertune4-indep": _HYPER_TUNE_PAPER,
    "dyhpo": as_settings(
        "model=deep_kernel,probability_sh=0.0,increment=1.0,incumbent=observed,initial=1,"
        "refit_every=1,refit_steps=50,cap=false,candidates=2000,max_data=none,allowance=none,"
        "design=random"
    ),
    "tst-m": {**_TST, "incumbent": "observed", **_BY_FEATURES},
    "tst-r": {**_TST, "incumbent": "observed"},
    "taf-m": {**_TST, **_BY_FEATURES},
    "taf-r": _TST,
    "taf-rgpe": {"initial": 1},
    "taf-poe": {"initial": 1},
    "rgpe": {"samples": 1000, "improvement": "noisy", "least_weight": 0.0},
    "rmogp": {"samples": 1000, "least_weight": 0.0},
    "pogpe": {"experts": "all", "initial": 1, "kernel": "rbf-ard", "least_weight": 0.0},
    "portfolio": {"values": "observed"},
    "task-prior": "it is our own method",
}
"""Settings that restore the paper of each method, or why there are none."""

_BAYESIAN = "scrimp.suggesters.bayesian:BayesianSuggester"
_PI = {"acquisition": "pi", "acquisition_settings": {"margin": 0.0}, **_TEXTBOOK}
_RANDOM = "scrimp.suggesters.untried_configs:RandomSuggester"
_DENSITY = "scrimp.suggesters.density:DensitySuggester"
_ASHA = "scrimp.schedulers.asynchronous:AsynchronousHalving"
_SYNCHRONOUS = "scrimp.schedulers.synchronous:SynchronousHalving"
_MEDIAN = "scrimp.schedulers.median:MedianStopping"
_BOHB: JsonObject = {"random_fraction": 1 / 3}
_TRANSFER = "scrimp.transfer.transfer_suggester:TransferSuggester"
_TST_M: JsonObject = {"weights": "features", "bandwidth": 0.3}
_TST_R: JsonObject = {"weights": "ranks"}
_RGPE: JsonObject = {"weights": "ranking", "dilution": "probabilistic"}
_MOBSTER = "scrimp.suggesters.multi_fidelity:MultiFidelitySuggester"
_INDEPENDENT: JsonObject = {"model": "gp_independent"}
_HYPER_TUNE = "scrimp.methods.hyper_tune:HyperTune"

_whole = partial(MethodEntry, several=True)
"""A method whose trials run to their end."""

_textbook = partial(MethodEntry, _BAYESIAN, several=True, fixed=("acquisition",))
"""A Gaussian process with the acquisition of its name."""

_budgeted = partial(MethodEntry, several=True, needs_budget=True)
"""A method that spends training budgets."""

_by_policy = partial(MethodEntry, "", RUN_TO_END, several=True, needs_budget=True)
"""A method that spends training budgets and decides jointly."""

_ALL_BRACKETS: JsonObject = {"brackets": None}

OWN: dict[str, MethodEntry] = {
    "random": _whole(_RANDOM),
    "grid": _whole("scrimp.suggesters.untried_configs:GridSuggester"),
    "sobol": _whole("scrimp.suggesters.untried_configs:QuasiRandomSuggester"),
    "gp": _whole(_BAYESIAN, presets={"acquisition": "log-ei"}),
    "parego": _whole(_BAYESIAN, presets={"trade_off": "chebyshev"}, fixed=("trade_off",)),
    "nsga2": _whole("scrimp.suggesters.genetic:GeneticSuggester"),
    "gp-ei": _textbook(presets={"acquisition": "ei", **_TEXTBOOK}),
    "gp-pi": _textbook(presets=_PI),
    "gp-ucb": _textbook(presets={"acquisition": "ucb", **_TEXTBOOK}),
    "tpe": _whole(_DENSITY),
    "asha": _budgeted(_RANDOM, _ASHA),
    "asha-stopping": _budgeted(_RANDOM, _ASHA, presets={"type": "stopping"}, fixed=("type",)),
    "hyperband": _budgeted(_RANDOM, _ASHA, presets=_ALL_BRACKETS),
    "sync-sh": _budgeted(_RANDOM, _SYNCHRONOUS),
    "sync-hyperband": _budgeted(_RANDOM, _SYNCHRONOUS, presets=_ALL_BRACKETS),
    "bohb": _budgeted(_DENSITY, _ASHA, presets=_BOHB),
    "sync-bohb": _budgeted(_DENSITY, _SYNCHRONOUS, presets={**_ALL_BRACKETS, **_BOHB}),
    "freeze-thaw": _by_policy("scrimp.freeze_thaw.freeze_thaw:FreezeThaw"),
    "dehb": _by_policy("scrimp.methods.evolution:Evolution"),
    "median": _budgeted(_RANDOM, _MEDIAN),
    "mobster-joint": _budgeted(_MOBSTER, _ASHA),
    "mobster-indep": _budgeted(_MOBSTER, _ASHA, presets=_INDEPENDENT),
    "tst-m": MethodEntry(_TRANSFER, presets={"combine": "tst", **_TST_M}),
    "tst-r": MethodEntry(_TRANSFER, presets={"combine": "tst", **_TST_R}),
    "taf-m": MethodEntry(_TRANSFER, presets={"combine": "taf", **_TST_M}),
    "taf-r": MethodEntry(_TRANSFER, presets={"combine": "taf", **_TST_R}),
    "taf-rgpe": MethodEntry(_TRANSFER, presets={"combine": "taf", **_RGPE}),
    "taf-poe": MethodEntry(_TRANSFER, presets={"combine": "taf-poe", "weights": "experts"}),
    "rgpe": MethodEntry(_TRANSFER, presets={"combine": "rgpe", **_RGPE}),
    "rmogp": MethodEntry(_TRANSFER, presets={"combine": "rmogp", **_RGPE}),
    "pogpe": MethodEntry(_TRANSFER, presets={"combine": "poe", "weights": "experts"}),
    "portfolio": MethodEntry(_TRANSFER, presets={"combine": "portfolio"}),
    "task-prior": _whole("scrimp.transfer.task_prior_suggester:TaskPriorSuggester"),
    "sync-mobster": _budgeted(_MOBSTER, _SYNCHRONOUS, presets={**_ALL_BRACKETS, **_INDEPENDENT}),
    "hypertune-indep": _by_policy(_HYPER_TUNE),
    "hypertune-joint": _by_policy(_HYPER_TUNE, {"model": "gp_multitask"}),
    "hypertune4-indep": _by_policy(_HYPER_TUNE, {"brackets": 4}),
    "dyhpo": _by_policy("scrimp.methods.dyhpo:DyHPO"),
}
