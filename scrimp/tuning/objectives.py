"""What a study evaluates, recorded by name so that a worker on another machine finds it: never as
code, never pickled.

    {"function": "train:objective"}                              imported where the worker runs
    {"command": ["python", "train.py"], "folder": "/shared"}     a script, run where the worker runs

Who may write to a storage may therefore choose what its workers run; a worker that is told its
objective ignores the record, and one with a public key runs only what was signed
(`scrimp.tuning.signing`).
"""

import importlib
import os
import sys
from collections.abc import Mapping

from scrimp.checks import did_you_mean
from scrimp.errors import ObjectiveError
from scrimp.executors.command_line import Command
from scrimp.executors.run_context import Objective
from scrimp.json_values import Json, JsonObject

__all__ = ["described", "imported", "refuse_token_scheme", "resolved"]


def described(objective: str | Command) -> dict[str, Json]:
    """The record of an objective: of an import path or a command.

    >>> described("train:objective")
    {'function': 'train:objective'}
    """
    if isinstance(objective, Command):
        folder = None if objective.folder is None else str(objective.folder)
        return {"command": list(objective.words), "folder": folder}
    _parts(objective)
    return {"function": objective}


def resolved(record: JsonObject) -> Objective | Command:
    """The objective of a record."""
    folder = record.get("folder")
    match record:
        case {"function": str(path)}:
            return imported(path)
        case {"command": [*words]} if folder is None or isinstance(folder, str):
            return Command(list(map(str, words)), folder)
    raise ObjectiveError(
        f"the study records the objective {dict(record)!r}, which names no function and no command"
    )


def refuse_token_scheme(record: Mapping[str, Json], study: str) -> None:
    """Refuse what was signed with a token: its owner wanted it checked, and that scheme could be
    guessed and replayed."""
    if "signature" in record:
        raise ObjectiveError(
            f"the objective of study {study!r} was signed with a token, a scheme that is no longer"
            " trusted; record it again with `scrimp run` and a private key (`scrimp key new"
            " FILE`), or name what to run with --objective"
        )


def imported(path: str) -> Objective:
    """The function at ``module:function``; modules in the current folder are found too."""
    module_name, name = _parts(path)
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: object = importlib.import_module(module_name)
    except ImportError as error:
        raise ObjectiveError(
            f"the module of the objective {path!r} cannot be imported here ({error}); "
            "start in its folder, or name that folder in PYTHONPATH"
        ) from error
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            hint = did_you_mean(part, dir(found))
            raise ObjectiveError(
                f"the objective {path!r} is not there: {module_name} has no {part!r}{hint}"
            ) from None
    if not callable(found):
        raise ObjectiveError(
            f"the objective {path!r} is {found!r}; it must be a function of a trial"
        )
    function: Objective = found
    return function


def _parts(path: str) -> tuple[str, str]:
    module, _, name = path.partition(":")
    names = [*module.split("."), *name.split(".")]
    if not all(part.isidentifier() for part in names):
        raise ObjectiveError(
            f"the objective {path!r} is no import path; write it as module:function"
        )
    return module, name
