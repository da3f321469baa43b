"""The public names for authors of extensions; `scrimp.testing` has the tests for extensions.

from scrimp.extend import MeanStdAcquisition, register
"""

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
from scrimp.acquisition.several_models import ALL_CONSTRAINTS, ModelBelief, SeveralModelsAcquisition
from scrimp.errors import MethodError, NumericalError, ScrimpError, StudyError
from scrimp.extend.register import KINDS, register
from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import Hyperparameter, LogNormal
from scrimp.gp.kernel import Kernel, OnColumns, Scaled
from scrimp.gp.stationary import RBF, Matern32, Matern52, Stationary
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
