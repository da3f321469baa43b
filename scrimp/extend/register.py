"""One way to give a name to what one has written, whatever it is.

    register("acquisition", "my-lcb", MyLowerConfidence)                                    settings:
                                                                                            the
                                                                                            class's
                                                                                            fields
    register("kernel", "my-matern", lambda columns: Scaled(MyMatern(columns)))
    register("surrogate", "forest", ForestModel)                                            called
                                                                                            with the
                                                                                            columns
    register("curve-model", "my-curves", make_curves)                                       called
                                                                                            with
                                                                                            columns
                                                                                            and
                                                                                            shares
    register("method", "my-halving", MyScheduler)                                           with
                                                                                            random
                                                                                            configurations
    register("method", "my-bo", (MyScheduler, BayesianSuggester), acquisition="ei")         with presets
    register("storage", "redis", open_redis)                                                called
                                                                                            with
                                                                                            (url,
                                                                                            rest,
                                                                                            shown)

A name is given once in each kind; a second thing under the same name is refused.
"""

from collections.abc import Callable
from typing import Any, Literal

from scrimp.acquisition.catalog import register_acquisition
from scrimp.errors import MethodError
from scrimp.gp.catalog import register_kernel
from scrimp.json_values import Json
from scrimp.policies.policy import Policy
from scrimp.schedulers.scheduler import Scheduler
from scrimp.storage.open import register_storage
from scrimp.suggesters.curve_models import register_curve_model
from scrimp.suggesters.random import RandomSuggester
from scrimp.suggesters.suggester import Suggester
from scrimp.surrogates.catalog import register_surrogate
from scrimp.tuning.catalog import register_method
from scrimp.tuning.own_methods import MethodEntry

__all__ = ["KINDS", "register"]

_PLAIN: dict[str, Callable[[str, Callable[..., Any]], None]] = {
    "acquisition": register_acquisition,
    "kernel": register_kernel,
    "surrogate": register_surrogate,
    "curve-model": register_curve_model,
    "storage": register_storage,
}

Kind = Literal["acquisition", "kernel", "surrogate", "curve-model", "storage", "method"]
KINDS = (*_PLAIN, "method")
"""What can be registered."""


def register(
    kind: Kind, name: str, thing: object, *, needs_budget: bool = False, **presets: Json
) -> None:
    """Give ``thing`` a name in its kind: a class, a function that makes one, or for a method a
    scheduler with a suggester.

    ``needs_budget`` and ``presets`` belong to methods: whether it makes sense without training
    budgets, and other defaults of its settings. Settings of a method are the fields of its frozen
    dataclasses.
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
            f"{kind} {name!r} is {thing!r}; give the class, or a function that makes one"
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
