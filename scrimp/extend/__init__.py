"""The public names for authors of extensions; `scrimp.testing` has the tests for extensions.

    from scrimp.extend import MeanStdAcquisition, register

`register` names extensions of every kind.

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

from scrimp.acquisition.acquisition import (
    Acquisition,
    BoundAcquisition,
    Context,
    FantasyAverage,
    MeanStdAcquisition,
)
from scrimp.acquisition.improvement import (
    expected_improvement,
    log_expected_improvement,
    log_expected_improvement_and_derivatives,
    log_probability_of_improvement,
)
from scrimp.acquisition.named_acquisitions import register_acquisition
from scrimp.acquisition.several_models import ALL_CONSTRAINTS, ModelBelief, SeveralModelsAcquisition
from scrimp.errors import MethodError, NumericalError, ScrimpError, StudyError
from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import Hyperparameter, LogNormal
from scrimp.gp.kernel import Kernel, OnColumns, Scaled
from scrimp.gp.stationary import RBF, Matern32, Matern52, Stationary, register_kernel
from scrimp.json_values import Json
from scrimp.methods.named_methods import register_method
from scrimp.methods.own_methods import MethodEntry
from scrimp.methods.policy import Decision, Policy, Scheduled, Start
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.schedulers.median import MedianStopping
from scrimp.schedulers.scheduler import (
    Finish,
    Resume,
    RunToEnd,
    Sample,
    Scheduler,
    Verdict,
    Wait,
    may_add,
    wait_or_finish,
)
from scrimp.schedulers.synchronous import SynchronousHalving
from scrimp.storage.open import register_storage
from scrimp.storage.store import EventStore, Storage
from scrimp.study_log.decision_record import (
    DecisionRecord,
    DrawnAtRandom,
    Expected,
    FirstDesign,
    Fit,
    FromDensity,
    InBracket,
    Modelled,
    Promoted,
    Rival,
    Said,
)
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from scrimp.study_log.trial import Observation, Trial
from scrimp.suggesters.bayesian import BayesianSuggester
from scrimp.suggesters.curve_models import register_curve_model
from scrimp.suggesters.model_settings import register_cost, register_surrogate
from scrimp.suggesters.multi_fidelity import MultiFidelitySuggester
from scrimp.suggesters.suggester import ForecastPoints, Request, Suggester, Suggestion
from scrimp.suggesters.untried_configs import RandomSuggester
from scrimp.surrogates.exact_gp import ExactGP, joined
from scrimp.surrogates.forecast import ForecastColumn
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Posterior,
    PosteriorPullback,
    Surrogate,
    as_columns,
)

__all__ = [
    "ALL_CONSTRAINTS",
    "KINDS",
    "RBF",
    "Acquisition",
    "Array",
    "AsynchronousHalving",
    "BayesianSuggester",
    "BoundAcquisition",
    "Budget",
    "Column",
    "Context",
    "Data",
    "Decision",
    "DecisionRecord",
    "DrawnAtRandom",
    "EventStore",
    "ExactGP",
    "Expected",
    "FantasyAverage",
    "Finish",
    "FirstDesign",
    "Fit",
    "FittedSurrogate",
    "ForecastColumn",
    "ForecastPoints",
    "FromDensity",
    "History",
    "Hyperparameter",
    "InBracket",
    "Kernel",
    "LogNormal",
    "Matern32",
    "Matern52",
    "MeanStdAcquisition",
    "MedianStopping",
    "MethodError",
    "ModelBelief",
    "Modelled",
    "MultiFidelitySuggester",
    "NumericalError",
    "Observation",
    "OnColumns",
    "Policy",
    "Posterior",
    "PosteriorPullback",
    "Problem",
    "Promoted",
    "RandomSuggester",
    "Request",
    "Resume",
    "Rival",
    "RunToEnd",
    "Said",
    "Sample",
    "Scaled",
    "Scheduled",
    "Scheduler",
    "ScrimpError",
    "SeveralModelsAcquisition",
    "Start",
    "Stationary",
    "Storage",
    "StudyError",
    "Suggester",
    "Suggestion",
    "Surrogate",
    "SynchronousHalving",
    "Trial",
    "Verdict",
    "Wait",
    "as_columns",
    "expected_improvement",
    "joined",
    "log_expected_improvement",
    "log_expected_improvement_and_derivatives",
    "log_probability_of_improvement",
    "may_add",
    "register",
    "wait_or_finish",
]

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
