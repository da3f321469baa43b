"""All that an author of an extension imports, in one place; `scrimp.testing` holds the tests that
it must pass.

from scrimp.extend import MeanStdAcquisition, register
"""

from scrimp.acquisition.acquisition import (
    Acquisition,
    BoundAcquisition,
    FantasyAverage,
    MeanStdAcquisition,
)
from scrimp.acquisition.context import Context
from scrimp.acquisition.improvement import (
    expected_improvement,
    log_expected_improvement,
    log_expected_improvement_and_derivatives,
    log_probability_of_improvement,
)
from scrimp.acquisition.several_models import ALL_CONSTRAINTS, ModelBelief, SeveralModelsAcquisition
from scrimp.errors import MethodError, NumericalError, ScrimpError, StudyError
from scrimp.extend.register import KINDS, register
from scrimp.gp.columns import Column
from scrimp.gp.kernel import Kernel, OnColumns, Scaled
from scrimp.gp.priors import Hyperparameter, LogNormal
from scrimp.gp.stationary import RBF, Matern32, Matern52, Stationary
from scrimp.history.history import History
from scrimp.history.notes import (
    DrawnAtRandom,
    Expected,
    FirstDesign,
    Fit,
    FromDensity,
    InBracket,
    Modelled,
    Notes,
    Promoted,
    Rival,
    Said,
)
from scrimp.history.problem import Budget, Problem
from scrimp.history.trial import Observation, Trial
from scrimp.policies.policy import Decision, Forecast, Policy, Start
from scrimp.policies.scheduled import Scheduled
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.schedulers.median import MedianStopping
from scrimp.schedulers.run_to_end import RunToEnd
from scrimp.schedulers.scheduler import Finish, Resume, Sample, Scheduler, Verdict, Wait
from scrimp.schedulers.study_end import may_add, wait_or_finish
from scrimp.schedulers.synchronous import SynchronousHalving
from scrimp.storage.store import EventStore, Storage
from scrimp.suggesters.bayesian import BayesianSuggester
from scrimp.suggesters.multi_fidelity import MultiFidelitySuggester
from scrimp.suggesters.random import RandomSuggester
from scrimp.suggesters.suggester import Request, Suggester, Suggestion
from scrimp.surrogates.exact_gp import ExactGP, as_columns, joined
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Posterior,
    PosteriorPullback,
    Surrogate,
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
    "DrawnAtRandom",
    "EventStore",
    "ExactGP",
    "Expected",
    "FantasyAverage",
    "Finish",
    "FirstDesign",
    "Fit",
    "FittedSurrogate",
    "Forecast",
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
    "Notes",
    "NumericalError",
    "Observation",
    "OnColumns",
    "Parameter",
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

Parameter = Hyperparameter
"""The earlier name of `Hyperparameter`, for plugins that use it."""
