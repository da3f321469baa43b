"""One function to name extensions of every kind.

    register("acquisition", "my-lcb", MyLowerConfidence)
    register("kernel", "my-matern", lambda columns: Scaled(MyMatern(columns)))
    register("surrogate", "forest", ForestModel)
    register("curve-model", "my-curves", make_curves)
    register("cost", "flops", lambda params: 6e9 * params["layers"])
    register("method", "my-halving", MyScheduler)
    register("method", "my-bo", (MyScheduler, BayesianSuggester), acquisition="ei")
    register("storage", "redis", open_redis)

The fields of an acquisition's class are its settings. Kernels and surrogates are called with the
columns, curve models with columns and shares, costs with the parameters of a configuration, storages
with (url, rest, shown). A scheduler alone gets random configurations. A name is given once in each
kind; registering another object under the same name is an error.
"""

from collections.abc import Callable
from typing import Any, Literal

from scrimp.acquisition.named_acquisitions import register_acquisition
from scrimp.errors import MethodError
from scrimp.gp.stationary import register_kernel
from scrimp.json_values import Json
from scrimp.methods.named_methods import register_method
from scrimp.methods.own_methods import MethodEntry
from scrimp.methods.policy import Policy
from scrimp.schedulers.scheduler import Scheduler
from scrimp.storage.open import register_storage
from scrimp.suggesters.curve_models import register_curve_model
from scrimp.suggesters.model_settings import register_cost
from scrimp.suggesters.suggester import Suggester
from scrimp.suggesters.untried_configs import RandomSuggester
from scrimp.surrogates.named_surrogates import register_surrogate

_PLAIN: dict[str, Callable[[str, Callable[..., Any]], None]] = {
    "acquisition": register_acquisition,
    "kernel": register_kernel,
    "surrogate": register_surrogate,
    "curve-model": register_curve_model,
    "cost": register_cost,
    "storage": register_storage,
}

Kind = Literal["acquisition", "kernel", "surrogate", "curve-model", "cost", "storage", "method"]
KINDS = (*_PLAIN, "method")
"""The kinds of extensions."""


def register(
    kind: Kind, name: str, thing: object, *, needs_budget: bool = False, **presets: Json
) -> None:
    """Register ``thing`` under a name: a class, a function that returns an instance, or for a method
    a pair of scheduler and suggester.

    For methods only: ``needs_budget`` marks one that cannot work without training budgets, and
    ``presets`` are other defaults of its settings, which are the fields of its frozen dataclasses.
    """
    if kind not in KINDS:
        raise MethodError(
            f"there is no kind {kind!r} of extension; register one of {', '.join(KINDS)}"
        )
    if kind == "method":
        register_method(name, _entry(name, thing, needs_budget, presets))
        return
    if presets or needs_budget:
        raise MethodError(
            f"{kind} {name!r} has no presets; put defaults where it is defined (only methods have"
            " presets)"
        )
    if not callable(thing):
        raise MethodError(
            f"{kind} {name!r} is {thing!r}; give the class, or a function that returns an instance"
            " (for a cost: a number above 0)"
        )
    _PLAIN[kind](name, thing)


def _entry(name: str, thing: object, needs_budget: bool, presets: dict[str, Json]) -> MethodEntry:
    match thing:
        case type() if issubclass(thing, Policy):
            return MethodEntry(policy=thing, presets=presets, needs_budget=needs_budget)
        case type() if issubclass(thing, Suggester):
            return MethodEntry(thing, presets=presets, needs_budget=needs_budget)
        case type() if issubclass(thing, Scheduler):
            return MethodEntry(RandomSuggester, thing, presets=presets, needs_budget=needs_budget)
        case (type() as scheduler, type() as suggester) if issubclass(
            scheduler, Scheduler
        ) and issubclass(suggester, Suggester):
            return MethodEntry(suggester, scheduler, presets=presets, needs_budget=needs_budget)
    raise MethodError(
        f"method {name!r} is {thing!r}; give a class of policies, suggesters or schedulers, or a"
        " pair (scheduler, suggester)"
    )
