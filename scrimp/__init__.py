"""scrimp: hyperparameter tuning for expensive training.

    import scrimp

    space = scrimp.Space(lr=scrimp.Float(1e-5, 1e-1, log=True), layers=scrimp.Int(1, 8))
    result = scrimp.minimize(lambda params: train(**params), space, n_trials=50, seed=0)

Names are loaded when they are first used, so that commands start quickly; models, plots and servers
are loaded where they are used.
"""

import importlib
import typing

from scrimp import errors

if typing.TYPE_CHECKING:
    from scrimp.bench.curve_suite import simulate
    from scrimp.checkpoint_selection.answer_files import read_answers
    from scrimp.checkpoint_selection.better_of_two import is_better
    from scrimp.checkpoint_selection.recommendation import Recommendation
    from scrimp.checkpoint_selection.selection import Selection
    from scrimp.checkpoint_selection.selections import (
        create_selection,
        load_selection,
        select_checkpoint,
    )
    from scrimp.executors.command_line import Command
    from scrimp.executors.live_trial import LiveTrial
    from scrimp.executors.ray import RaySettings
    from scrimp.methods.named_methods import Method
    from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
    from scrimp.space.space import Pool, Space
    from scrimp.storage.store import Storage
    from scrimp.study.minimize import Result, maximize, minimize
    from scrimp.study.stopping import (
        LittleLeft,
        MaxSeconds,
        MaxTrials,
        NoImprovement,
        StopRule,
        TargetReached,
    )
    from scrimp.study.studies import create_study, delete_study, load_study, studies
    from scrimp.study.study import Study
    from scrimp.study_log.constraints import AtLeast, AtMost, Equals
    from scrimp.study_log.problem import Budget
    from scrimp.study_log.trial import Trial

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
    "LittleLeft",
    "LiveTrial",
    "MaxSeconds",
    "MaxTrials",
    "Method",
    "NoImprovement",
    "Ordinal",
    "Pool",
    "RaySettings",
    "Recommendation",
    "Result",
    "Selection",
    "Space",
    "StopRule",
    "Storage",
    "Study",
    "TargetReached",
    "Trial",
    "create_selection",
    "create_study",
    "delete_study",
    "errors",
    "is_better",
    "load_selection",
    "load_study",
    "maximize",
    "minimize",
    "read_answers",
    "select_checkpoint",
    "simulate",
    "studies",
]

_HOMES = {
    "scrimp.bench.curve_suite": "simulate",
    "scrimp.checkpoint_selection.answer_files": "read_answers",
    "scrimp.checkpoint_selection.better_of_two": "is_better",
    "scrimp.checkpoint_selection.recommendation": "Recommendation",
    "scrimp.checkpoint_selection.selection": "Selection",
    "scrimp.checkpoint_selection.selections": "create_selection load_selection select_checkpoint",
    "scrimp.executors.command_line": "Command",
    "scrimp.executors.live_trial": "LiveTrial",
    "scrimp.executors.ray": "RaySettings",
    "scrimp.methods.named_methods": "Method",
    "scrimp.space.parameter": "Categorical Constant Float Int Ordinal",
    "scrimp.space.space": "Pool Space",
    "scrimp.storage.store": "Storage",
    "scrimp.study.minimize": "Result maximize minimize",
    "scrimp.study.stopping": "LittleLeft MaxSeconds MaxTrials NoImprovement StopRule TargetReached",
    "scrimp.study.studies": "create_study delete_study load_study studies",
    "scrimp.study.study": "Study",
    "scrimp.study_log.constraints": "AtLeast AtMost Equals",
    "scrimp.study_log.problem": "Budget",
    "scrimp.study_log.trial": "Trial",
}
"""The public names of each module."""

_RENAMED = {"RunContext": "LiveTrial", "Seconds": "MaxSeconds", "Trials": "MaxTrials"}
"""Former public names and the present ones."""


def __getattr__(name: str) -> typing.Any:
    """Import a public name, or ``scrimp.plots``, when it is first used."""
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("scrimp")
    if name == "plots":
        return importlib.import_module("scrimp.plots")
    if name in _RENAMED:
        raise AttributeError(f"scrimp.{name} is now called scrimp.{_RENAMED[name]}")
    for module, names in _HOMES.items():
        if name in names.split():
            globals()[name] = getattr(importlib.import_module(module), name)
            return globals()[name]
    raise AttributeError(f"module 'scrimp' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return sorted([*__all__, "plots"])
