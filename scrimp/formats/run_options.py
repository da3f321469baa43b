"""What is said on the command line beside a study file, or in its stead: keys of the file, and the
options they come from.

replaced({"method": "gp", "run": {"workers": 2}}, {"method": "asha", "run.n_trials": 60})
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TypedDict

from scrimp.errors import StudyError

__all__ = ["BudgetTable", "default_name", "option_of", "read_budget_text", "replaced"]

_OPTIONS = {"run.budget": "--total-budget"}
_NUMBER = r"[^\s,()]+"
_BUDGET = re.compile(
    rf"\s*(?P<name>[A-Za-z_]\w*)\s*\(\s*(?P<low>{_NUMBER})\s*,\s*(?P<high>{_NUMBER})\s*\)\s*"
)


def replaced(record: Mapping[str, object], options: Mapping[str, object]) -> dict[str, object]:
    """The record of a study file with other values at dotted keys; a table replaces entries of a
    table, not all of it.

    >>> replaced({"seed": 1, "run": {"workers": 2}}, {"seed": 3, "run.n_trials": 60})
    {'seed': 3, 'run': {'workers': 2, 'n_trials': 60}}
    """
    result = dict(record)
    for key, value in options.items():
        first, _, rest = key.partition(".")
        known = result.get(first)
        if rest:
            result[first] = (
                replaced(known, {rest: value})
                if isinstance(known, dict)
                else known or {rest: value}
            )
        elif first == "space" and isinstance(value, dict) and isinstance(known, dict):
            result[first] = {**known, **value}
        else:
            result[first] = value
    return result


def option_of(key: Sequence[str], options: Mapping[str, object]) -> str | None:
    """The option that ``key`` of the record came from, if any.

    >>> option_of(("run", "n_trials"), {"run.n_trials": 0})
    '--n-trials'
    """
    for length in range(len(key), 0, -1):
        dotted = ".".join(key[:length])
        if dotted in options:
            if dotted == "space" and len(key) > 1 and not _holds(options["space"], key[1]):
                return None
            return _OPTIONS.get(dotted, "--" + key[length - 1].replace("_", "-"))
    return None


def _holds(table: object, key: str) -> bool:
    return isinstance(table, Mapping) and key in table


class BudgetTable(TypedDict):
    """The ``budget`` of a study file."""

    name: str
    minimum: float
    maximum: float


def read_budget_text(text: str) -> BudgetTable:
    """The budget of a trial as a study file has it.

    >>> read_budget_text("epoch(1,27)")
    {'name': 'epoch', 'minimum': 1, 'maximum': 27}
    """
    match = _BUDGET.fullmatch(text)
    numbers = [] if match is None else [_number(match[name]) for name in ("low", "high")]
    low, high = numbers or (None, None)
    if match is None or low is None or high is None:
        raise StudyError(
            f"the budget is {text!r}; write its unit, the first grant and a full training:"
            ' "epoch(1,27)"'
        )
    return {"name": match["name"], "minimum": low, "maximum": high}


def _number(text: str) -> float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def default_name(words: Sequence[str]) -> str:
    """What a study is called whose command this is: its script, else its program.

    >>> default_name(["python", "src/train.py", "--lr", "{lr}"]), default_name(["./train", "-n", "{n}"])
    ('train', 'train')
    """
    script = next(
        (word for word in words if PurePath(word).suffix in (".py", ".sh", ".jl", ".R")), words[0]
    )
    return PurePath(script).stem or "study"
