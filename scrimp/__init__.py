"""scrimp: find the best model on the fewest evaluations.

    import scrimp

    space = scrimp.Space(lr=scrimp.Float(1e-5, 1e-1, log=True), layers=scrimp.Int(1, 8))
    result = scrimp.minimize(lambda params: train(**params), space, n_trials=50, seed=0)

Names are loaded when they are first used, so that a command which needs none of them starts at
once; models, plots and servers are loaded where they are used.
"""

import importlib
import typing

from scrimp import errors

if typing.TYPE_CHECKING:
    from scrimp.bench.simulation import simulate
    from scrimp.executors.command_line import Command
    from scrimp.executors.ray import RaySettings
    from scrimp.executors.run_context import RunContext
    from scrimp.history.problem import AtLeast, AtMost, Budget, Equals
    from scrimp.history.trial import Trial
    from scrimp.selection.recommendation import Recommendation
    from scrimp.selection.selection import Selection
    from scrimp.selection.selections import create_selection, load_selection, select_checkpoint
    from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
    from scrimp.space.space import Pool, Space
    from scrimp.storage.store import Storage
    from scrimp.tuning.catalog import Method
    from scrimp.tuning.minimize import Result, maximize, minimize
    from scrimp.tuning.stopping import NoImprovement, Seconds, StopRule, TargetReached, Trials
    from scrimp.tuning.studies import create_study, delete_study, load_study, studies
    from scrimp.tuning.study import Study

__all__ = [
    "AtLeast",
    "AtMost",
    "Budget",
    "Categorical",
    "Command",
    "Constant",
    "Equals",
    "Float",
    "Int",
    "Method",
    "NoImprovement",
    "Ordinal",
    "Pool",
    "RaySettings",
    "Recommendation",
    "Result",
    "RunContext",
    "Seconds",
    "Selection",
    "Space",
    "StopRule",
    "Storage",
    "Study",
    "TargetReached",
    "Trial",
    "Trials",
    "create_selection",
    "create_study",
    "delete_study",
    "errors",
    "load_selection",
    "load_study",
    "maximize",
    "minimize",
    "select_checkpoint",
    "simulate",
    "studies",
]

_HOMES = {
    "simulate": "scrimp.bench.simulation",
    "Recommendation": "scrimp.selection.recommendation",
    "Command": "scrimp.executors.command_line",
    "RaySettings": "scrimp.executors.ray",
    "RunContext": "scrimp.executors.run_context",
    "AtLeast": "scrimp.history.problem",
    "AtMost": "scrimp.history.problem",
    "Budget": "scrimp.history.problem",
    "Equals": "scrimp.history.problem",
    "Trial": "scrimp.history.trial",
    "Categorical": "scrimp.space.parameter",
    "Constant": "scrimp.space.parameter",
    "Float": "scrimp.space.parameter",
    "Int": "scrimp.space.parameter",
    "Ordinal": "scrimp.space.parameter",
    "Pool": "scrimp.space.space",
    "Space": "scrimp.space.space",
    "Storage": "scrimp.storage.store",
    "Method": "scrimp.tuning.catalog",
    "Result": "scrimp.tuning.minimize",
    "maximize": "scrimp.tuning.minimize",
    "minimize": "scrimp.tuning.minimize",
    "Selection": "scrimp.selection.selection",
    "create_selection": "scrimp.selection.selections",
    "load_selection": "scrimp.selection.selections",
    "select_checkpoint": "scrimp.selection.selections",
    "NoImprovement": "scrimp.tuning.stopping",
    "Seconds": "scrimp.tuning.stopping",
    "StopRule": "scrimp.tuning.stopping",
    "TargetReached": "scrimp.tuning.stopping",
    "Trials": "scrimp.tuning.stopping",
    "create_study": "scrimp.tuning.studies",
    "delete_study": "scrimp.tuning.studies",
    "load_study": "scrimp.tuning.studies",
    "studies": "scrimp.tuning.studies",
    "Study": "scrimp.tuning.study",
}
"""Where each name lives."""


def __getattr__(name: str) -> typing.Any:
    """The public names, and ``scrimp.plots``, when they are first used."""
    if name == "plots":
        return importlib.import_module("scrimp.plots")
    if name not in _HOMES:
        raise AttributeError(f"module 'scrimp' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value  # asked for once
    return value


def __dir__() -> list[str]:
    """What tab completion shows."""
    return sorted([*__all__, "plots"])
