"""scrimp: find the best model on the fewest evaluations.

    import scrimp

    space = scrimp.Space(lr=scrimp.Float(1e-5, 1e-1, log=True), layers=scrimp.Int(1, 8))
    result = scrimp.minimize(lambda params: train(**params), space, n_trials=50, seed=0)

Importing it loads NumPy and nothing heavier; models, plots and servers are loaded where they are used.
"""

import importlib
from typing import Any

from scrimp import errors
from scrimp.executors.command_line import Command
from scrimp.executors.run_context import RunContext
from scrimp.history.problem import AtLeast, AtMost, Budget
from scrimp.history.trial import Trial
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.space.space import Pool, Space
from scrimp.tuning.catalog import Method
from scrimp.tuning.minimize import Result, maximize, minimize
from scrimp.tuning.stopping import NoImprovement, Seconds, TargetReached, Trials
from scrimp.tuning.studies import create_study, delete_study, load_study, studies
from scrimp.tuning.study import Study

__all__ = [
    "AtLeast",
    "AtMost",
    "Budget",
    "Categorical",
    "Command",
    "Constant",
    "Float",
    "Int",
    "Method",
    "NoImprovement",
    "Ordinal",
    "Pool",
    "Result",
    "RunContext",
    "Seconds",
    "Space",
    "Study",
    "TargetReached",
    "Trial",
    "Trials",
    "create_study",
    "delete_study",
    "errors",
    "load_study",
    "maximize",
    "minimize",
    "studies",
]


def __getattr__(name: str) -> Any:
    """``scrimp.plots`` is loaded when it is first used, since Plotly is heavy."""
    if name == "plots":
        return importlib.import_module("scrimp.plots")
    raise AttributeError(f"module 'scrimp' has no attribute {name!r}")
