"""The methods of scrimp, and what each is made of. Adding a method is one line here."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scrimp.json_values import JsonObject
from scrimp.policies.policy import Policy

if TYPE_CHECKING:  # loading them takes time
    from scrimp.schedulers.scheduler import Scheduler
    from scrimp.suggesters.suggester import Suggester

__all__ = ["OWN", "RUN_TO_END", "MethodEntry"]

RUN_TO_END = "scrimp.schedulers.run_to_end:RunToEnd"


@dataclass(frozen=True)
class MethodEntry:
    """What a name stands for: a suggester and a scheduler, or a policy, with presets for their
    fields. ``several``: whether it takes several metrics at once; ``for_several``: the suggester
    that then decides, where it is another one with the same settings.

    Each is a class, or "module:Class", which is imported when it is asked for.
    """

    suggester: "str | type[Suggester]" = ""
    scheduler: "str | type[Scheduler]" = RUN_TO_END
    policy: str | type[Policy] = ""
    presets: JsonObject = field(default_factory=dict)
    needs_budget: bool = False
    several: bool = False
    for_several: "str | type[Suggester]" = ""


_BAYESIAN = "scrimp.suggesters.bayesian:BayesianSuggester"
_PURE: JsonObject = {
    "transform": "plain",
    "patience": 0,
}  # the textbook: one formula decides, targets are shifted and scaled only
_PI = {"acquisition": "pi", "acquisition_settings": {"margin": 0.0}, **_PURE}
_RANDOM = "scrimp.suggesters.random:RandomSuggester"
_DENSITY = "scrimp.suggesters.density:DensitySuggester"
_ASHA = "scrimp.schedulers.asynchronous:AsynchronousHalving"
_SYNCHRONOUS = "scrimp.schedulers.synchronous:SynchronousHalving"
_MEDIAN = "scrimp.schedulers.median:MedianStopping"
_BOHB: JsonObject = {"random_fraction": 1 / 3}
_TRANSFER = "scrimp.transfer.suggester:TransferSuggester"
_TST_M: JsonObject = {"weights": "features", "bandwidth": 0.3}
_TST_R: JsonObject = {"weights": "ranks"}
_RGPE: JsonObject = {"weights": "ranking", "dilution": "probabilistic"}
_MOBSTER = "scrimp.suggesters.multi_fidelity:MultiFidelitySuggester"
_INDEPENDENT: JsonObject = {"model": "gp_independent"}
_HYPER_TUNE = "scrimp.policies.hyper_tune:HyperTune"

OWN: dict[str, MethodEntry] = {
    "random": MethodEntry(_RANDOM, several=True),
    "grid": MethodEntry("scrimp.suggesters.grid:GridSuggester", several=True),
    "sobol": MethodEntry("scrimp.suggesters.quasi_random:QuasiRandomSuggester", several=True),
    "gp": MethodEntry(_BAYESIAN, presets={"acquisition": "log-ei"}, several=True),
    "parego": MethodEntry(_BAYESIAN, presets={"trade_off": "chebyshev"}, several=True),
    "nsga2": MethodEntry("scrimp.suggesters.genetic:GeneticSuggester", several=True),
    "gp-ei": MethodEntry(_BAYESIAN, presets={"acquisition": "ei", **_PURE}, several=True),
    "gp-pi": MethodEntry(_BAYESIAN, presets=_PI, several=True),
    "gp-ucb": MethodEntry(_BAYESIAN, presets={"acquisition": "ucb", **_PURE}, several=True),
    "tpe": MethodEntry(_DENSITY, several=True),
    "asha": MethodEntry(_RANDOM, _ASHA, needs_budget=True, several=True),
    "asha-stopping": MethodEntry(
        _RANDOM, _ASHA, presets={"type": "stopping"}, needs_budget=True, several=True
    ),
    "hyperband": MethodEntry(
        _RANDOM, _ASHA, presets={"brackets": None}, needs_budget=True, several=True
    ),
    "sync-sh": MethodEntry(_RANDOM, _SYNCHRONOUS, needs_budget=True, several=True),
    "sync-hyperband": MethodEntry(
        _RANDOM, _SYNCHRONOUS, presets={"brackets": None}, needs_budget=True, several=True
    ),
    "bohb": MethodEntry(_DENSITY, _ASHA, presets=_BOHB, needs_budget=True, several=True),
    "sync-bohb": MethodEntry(
        _DENSITY, _SYNCHRONOUS, presets={"brackets": None, **_BOHB}, needs_budget=True, several=True
    ),
    "freeze-thaw": MethodEntry(
        policy="scrimp.freeze_thaw.freeze_thaw:FreezeThaw", needs_budget=True, several=True
    ),
    "dehb": MethodEntry(
        policy="scrimp.policies.evolution:Evolution", needs_budget=True, several=True
    ),
    "median": MethodEntry(_RANDOM, _MEDIAN, needs_budget=True, several=True),
    "mobster-joint": MethodEntry(_MOBSTER, _ASHA, several=True, needs_budget=True),
    "mobster-indep": MethodEntry(
        _MOBSTER, _ASHA, presets=_INDEPENDENT, several=True, needs_budget=True
    ),
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
    "task-prior": MethodEntry(
        "scrimp.transfer.task_prior_suggester:TaskPriorSuggester",
        several=True,
        for_several="scrimp.transfer.trade_off_prior:TradeOffPriorSuggester",
    ),
    "sync-mobster": MethodEntry(
        _MOBSTER,
        _SYNCHRONOUS,
        presets={"brackets": None, **_INDEPENDENT},
        several=True,
        needs_budget=True,
    ),
    "hypertune-indep": MethodEntry(policy=_HYPER_TUNE, needs_budget=True, several=True),
    "hypertune-joint": MethodEntry(
        policy=_HYPER_TUNE, presets={"model": "gp_multitask"}, needs_budget=True, several=True
    ),
    "hypertune4-indep": MethodEntry(
        policy=_HYPER_TUNE, presets={"brackets": 4}, needs_budget=True, several=True
    ),
    "dyhpo": MethodEntry(policy="scrimp.policies.dyhpo:DyHPO", needs_budget=True, several=True),
}
