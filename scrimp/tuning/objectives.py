"""What a study evaluates, recorded by name so that a worker on another machine finds it: never as code, never pickled.

    {"function": "train:objective"}                              imported where the worker runs
    {"command": ["python", "train.py"], "folder": "/shared"}     a script, run where the worker runs

Who may write to a storage may therefore choose what its workers run; a worker that is told its objective ignores the record.
With a token it runs only what was signed with the same one: the record then has a ``signature``, the HMAC-SHA256 of study and
record.
"""

import hmac
import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from scrimp.errors import ObjectiveError
from scrimp.executors.command_line import Command

__all__ = ["TOKEN", "check_signature", "described", "imported", "resolved", "signed"]

TOKEN = "SCRIMP_TOKEN"
"""The variable that holds the token: of those who record objectives, of workers, and of the dashboard."""


def described(objective: str | Command) -> dict[str, Any]:
    """The record of an objective: of an import path or a command.

    >>> described("train:objective")
    {'function': 'train:objective'}
    """
    if isinstance(objective, Command):
        folder = None if objective.folder is None else str(objective.folder)
        return {"command": list(objective.words), "folder": folder}
    _parts(objective)
    return {"function": objective}


def signed(record: Mapping[str, Any], study: str, token: str | None) -> dict[str, Any]:
    """The record with a signature for that study, or as it is without a token."""
    bare = {key: value for key, value in record.items() if key != "signature"}
    if not token:
        return bare
    text = json.dumps([study, bare], sort_keys=True)
    return {**bare, "signature": hmac.new(token.encode(), text.encode(), "sha256").hexdigest()}


def check_signature(record: Mapping[str, Any], study: str, token: str | None) -> None:
    """Refuse a record that nobody with this token has signed; without a token there is nothing to check."""
    given = str(record.get("signature", ""))
    if token and not hmac.compare_digest(given.encode(), signed(record, study, token)["signature"].encode()):
        what = "was signed with another token" if given else "carries no signature"
        raise ObjectiveError(
            f"the objective that study {study!r} records {what}, so this worker does not run it; record it with `scrimp run` "
            f"and the same {TOKEN}, or name it with --objective"
        )


def resolved(record: Mapping[str, Any]) -> Callable[[Any], Any] | Command:
    """The objective of a record."""
    match record:
        case {"function": str(path)}:
            return imported(path)
        case {"command": [*words]}:
            return Command(words, record.get("folder"))
    raise ObjectiveError(f"the study records the objective {dict(record)!r}, which names no function and no command")


def imported(path: str) -> Callable[[Any], Any]:
    """The function at ``module:function``; modules in the current folder are found too."""
    module_name, name = _parts(path)
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise ObjectiveError(
            f"the module of the objective {path!r} cannot be imported here ({error}); "
            "start in its folder, or name that folder in PYTHONPATH"
        ) from error
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            near = get_close_matches(part, dir(found), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ObjectiveError(f"the objective {path!r} is not there: {module_name} has no {part!r}{hint}") from None
    if not callable(found):
        raise ObjectiveError(f"the objective {path!r} is {found!r}; it must be a function of a trial")
    function: Callable[[Any], Any] = found
    return function


def _parts(path: str) -> tuple[str, str]:
    module, _, name = path.partition(":")
    names = [*module.split("."), *name.split(".")]
    if not all(part.isidentifier() for part in names):
        raise ObjectiveError(f"the objective {path!r} is no import path; write it as module:function")
    return module, name
