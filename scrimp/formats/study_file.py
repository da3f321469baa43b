"""A study as a TOML file; every mistake is reported with its line, its key and the nearest valid
name.

    name = "digits"
    command = "python train.py --lr {lr}"            # or objective = "module:function"
    metric = "val_error"                             # or metrics = {val_error = "minimize", latency_ms = "minimize"}
    # or a [method] table: name = "asha", brackets = 4
    method = "asha"

    [space]
    lr = {type = "float", low = 1e-5, high = 1e-1, log = true}
    optimizer = {type = "categorical", choices = ["adamw", "sgd"]}
    momentum = {type = "float", low = 0, high = 0.99, when = {optimizer = "sgd"}}
    batch = 32                                       # a constant

    [budget]
    name = "epoch"
    minimum = 1
    maximum = 27

    [run]
    n_trials = 50
    workers = 2

The other keys are in `_File`, `_Run` and docs/command.md. Entries that depend on each
other (conditions, settings of the method, placeholders of the command) are checked once each of them
is valid.
"""

import math
import sys
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from scrimp.checks import nearest_name
from scrimp.errors import ScrimpError, StudyError
from scrimp.executors.command_line import Command
from scrimp.executors.process_tree import hidden_secrets
from scrimp.formats.toml_reading import (
    Count,
    Entries,
    Natural,
    Positive,
    Text,
    TomlReading,
    replaced,
)
from scrimp.json_values import JsonObject, Scalar
from scrimp.methods.named_methods import Method, check_method, parse_method
from scrimp.plugins.plugins import name_plugins
from scrimp.space.parameter import Constant, parameter_from_json
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space
from scrimp.storage.open import open_storage
from scrimp.storage.store import check_name
from scrimp.study.workers import imported
from scrimp.study_log.constraints import Constraint, read_constraint
from scrimp.study_log.limits import Totals
from scrimp.study_log.problem import Budget, Problem, check_metrics, metrics_of


class BudgetEntries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The [budget] table: the training budget of a trial."""

    name: Text
    minimum: Positive
    maximum: Positive


class _Run(msgspec.Struct, frozen=True):
    """The [run] table: the arguments of `Study.optimize`."""

    n_trials: Count | None = None
    total_budget: Positive | None = None
    timeout: Positive | None = None
    workers: Count = 1
    gpus_per_worker: Natural = 0
    time_limit: Positive | None = None
    keep: Literal["best", "all", "none"] = "best"
    durable: Literal["all", "log"] | None = None


class _File(msgspec.Struct, frozen=True):
    """The top level: the arguments of `create_study`, and the objective or command."""

    name: Text
    space: dict[str, object]
    objective: Text | None = None
    command: Text | list[str] | None = None
    metric: Text = "value"
    direction: Literal["minimize", "maximize"] = "minimize"
    metrics: dict[str, str] | None = None
    reference: dict[str, float] | None = None
    goals: dict[str, float] | None = None
    weights: dict[str, float] | None = None
    method: str | dict[str, object] = "auto"
    learn_from: Text | list[Text] = []
    plugins: list[Text] = []
    storage: Text | None = None
    seed: Natural | None = None
    noisy: bool = False
    cost: Text | None = None
    budget: BudgetEntries | None = None
    constraints: dict[str, object] = {}
    features: dict[str, float] = {}
    run: _Run = _Run()


@dataclass(frozen=True)
class StudyPlan:
    """A valid file: ``question`` goes to `create_study`, ``run`` to `Study.optimize`.

    ``objective`` is a command or the import path of a function; the modules of ``folder`` can be
    imported.
    """

    name: str
    objective: str | Command
    storage: str | None
    question: Entries
    run: Entries
    folder: Path


def read_study_file(path: Path, options: Mapping[str, object] | None = None) -> StudyPlan:
    """Read a study file; raises `StudyError` with every mistake.

    ``options`` replace what the file says, by key: {"method": "asha", "run.n_trials": 60}; tables
    are merged.
    """
    return _planned(TomlReading.of(path, _EXAMPLES, options or {}), str(path))


def plan_of_options(options: Mapping[str, object], folder: Path) -> StudyPlan:
    """Return the study that options describe without a file; its command runs in ``folder``."""
    record = replaced({}, options)
    reading = TomlReading(record, folder.resolve(), "", options, _EXAMPLES)
    return _planned(reading, "the command line")


@dataclass(frozen=True)
class StudyOutline:
    """A study without anything to run: ``question`` goes to `create_study`."""

    name: str
    question: Entries
    totals: Totals


CODE = ("objective", "command", "plugins", "storage")
"""Keys that name code, or a place, for a process to load."""


def read_outline(text: str) -> StudyOutline:
    """Read the text of a study file from an untrusted user: it may name no code, and nothing is
    imported or opened. Raises `StudyError` with every mistake."""
    try:
        record = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise StudyError(f"the text is not valid TOML: {error}") from None
    return outline_of(record, text)


def outline_of(record: Mapping[str, object], text: str = "", endless: bool = False) -> StudyOutline:
    """Return the study that the record of a study file describes; see `read_outline`. An ``endless``
    one needs no totals."""
    reading = TomlReading(dict(record), Path(), text, {}, _EXAMPLES)
    for key in CODE:
        if key in record:
            reading.wrong(
                (key,), "cannot be set here; the command that starts a worker says what it runs"
            )
    run = record.get("run", {})
    for key in run if isinstance(run, dict) else ():
        if key not in ("n_trials", "total_budget"):
            reading.wrong(("run", key), "is an option of the worker; leave it out here")
    reading.refuse("the study")
    top = reading.table(_File, reading.record, ())
    question = _question(reading, top)
    limits = top.get("run", {})
    if question is not None and not endless:
        _ends(reading, limits, question["space"], None)
    reading.refuse("the study")
    assert question is not None, "a question that is not whole has a mistake"
    totals = Totals(n_trials=limits.get("n_trials"), budget=limits.get("total_budget"))
    return StudyOutline(top["name"], question, totals)


def _planned(reading: TomlReading, source: str) -> StudyPlan:
    """Return the plan; raise `StudyError` with every mistake."""
    top = reading.table(_File, reading.record, ())
    _plugins(reading, top.get("plugins", []))
    with reading.blamed_on("storage"):
        if top.get("storage") is not None:
            open_storage(top["storage"])
    question, objective, run = _question(reading, top), None, top.get("run", {})
    if question is not None:
        objective = _objective(reading, top, question["space"])
        _ends(reading, run, question["space"], objective)
    reading.refuse(source)
    assert question is not None and objective is not None, "what is not whole has a mistake"
    question["plugins"] = top.get("plugins", ())
    return StudyPlan(top["name"], objective, top.get("storage"), question, run, reading.folder)


def _question(reading: TomlReading, top: Entries) -> Entries | None:
    """Return the arguments of `create_study` about the question; None after mistakes."""
    space = _space(reading, top.get("space"))
    with reading.blamed_on("name"):
        if "name" in top:
            check_name(top["name"])
    budget = _budget(reading, top.get("budget"))
    constraints = _constraints(reading, top.get("constraints", {}))
    if space is None or "name" not in top:
        return None
    names = (*_OPTIMIZED, "cost", "features", "noisy")
    question = {name: top[name] for name in names if name in top}
    optimized = _optimized(reading, question)
    question |= {"space": space, "budget": budget, "constraints": constraints}
    rest = {name: value for name, value in question.items() if name not in _OPTIMIZED}
    problem = None if reading.mistakes else {**rest, **optimized}
    method = _method(reading, top.get("method", "auto"), problem)
    question |= {"method": method, "seed": top.get("seed"), "learn_from": top.get("learn_from", ())}
    return question


def _plugins(reading: TomlReading, names: list[str]) -> None:
    """Import the plugins before names are looked up, also from the file's folder."""
    if names:
        _find_modules_in(reading.folder)
    with reading.blamed_on("plugins"):
        name_plugins(names)


def _find_modules_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _space(reading: TomlReading, record: object) -> Space | None:
    """Return the space if all parameters and conditions are valid."""
    if not isinstance(record, dict):
        return None
    before = len(reading.mistakes)
    parameters: dict[str, Parameter | Scalar] = {}
    for name, value in record.items():
        if isinstance(value, list):
            reading.wrong(
                ("space", name), f'is a list; write {{type = "categorical", choices = {value!r}}}'
            )
        with reading.blamed_on("space", name):
            parameters[name] = _parameter(name, value) if isinstance(value, dict) else value
    if len(reading.mistakes) > before:
        return None
    try:
        return Space(parameters)
    except ScrimpError as error:
        places = {name: str(error).find(f"parameter {name!r}") for name in parameters}
        named = sorted((place, name) for name, place in places.items() if place >= 0)
        reading.wrong(("space", *(name for _, name in named[:1])), str(error))
        return None


def _budget(reading: TomlReading, entries: Entries | None) -> Budget | None:
    if entries is not None and len(entries) == 3:
        with reading.blamed_on("budget"):
            written = msgspec.convert(reading.record["budget"], dict[str, Any])
            return Budget(**written)  # whole numbers as they were written
    return None


def _constraints(reading: TomlReading, record: Mapping[str, object]) -> dict[str, Constraint]:
    """Read constraints such as ``memory_gb = {at_most = 16}``."""
    right: dict[str, Constraint] = {}
    for name, rule in record.items():
        with reading.blamed_on("constraints", name):
            right[name] = read_constraint(rule)
    return right


def _method(
    reading: TomlReading, given: str | Mapping[str, object], problem: Entries | None
) -> Method | None:
    """Return the method; its settings are checked against the problem if that is valid."""
    method = None
    with reading.blamed_on("method"):
        method = parse_method(given)
        if problem is not None:
            check_method(Problem(**problem), method)
    return method


_OPTIMIZED = ("metric", "direction", "metrics", "reference", "goals", "weights")


def _optimized(reading: TomlReading, question: Entries) -> Entries:
    """Return what is optimized; report parts that do not fit together at the table that has them."""
    tables = {label: question.get(label) or {} for label in _OPTIMIZED[3:]}
    try:
        metrics = metrics_of(
            question.get("metric", "value"),
            question.get("direction", "minimize"),
            question.get("metrics"),
        )
        check_metrics(metrics, **tables)
    except StudyError as error:
        wrong = (name for name in tables if str(error).startswith(name[:6]))
        reading.wrong((next(wrong, "metrics"),), str(error))
        return {}
    return {"metrics": metrics, **tables}


def _objective(reading: TomlReading, top: Entries, space: Space) -> str | Command | None:
    """Return the objective or the command; a file must have exactly one of them."""
    function, command = top.get("objective"), top.get("command")
    meant = {nearest_name(key, ("objective", "command")) for key in reading.wrong_keys()}
    if (function is None) == (command is None) and meant <= {None}:
        both = "both are there" if function is not None else "neither is there"
        reading.wrong(
            ("objective",),
            f'{both}; give objective = "module:function" or command = "python train.py --lr'
            ' {lr}"',
        )
    elif command is not None:
        with reading.blamed_on("command"):
            found = Command(command, reading.folder)
            found.check(space)
            _warn_of_unnamed(found, space)
            return found
    elif function is not None:
        _find_modules_in(reading.folder)
        with reading.blamed_on("objective"), hidden_secrets():
            imported(function)
            return str(function)
    return None


def _warn_of_unnamed(command: Command, space: Space) -> None:
    """Warn of parameters that would be tuned although the command does not pass them."""
    tuned = [name for name in space if not isinstance(space[name], Constant)]
    missing = command.unnamed(tuned)
    if missing:
        warnings.warn(
            f"the command does not pass {', '.join(missing)}, which the space has: the script runs"
            " without, and their best values mean nothing. Write"
            f" --{missing[0]} {{{missing[0]}}} in the command, pass all as {{params}}, or take"
            f" {'it' if len(missing) == 1 else 'them'} out of the space; ignore this if the script"
            " reads scrimp.script.params",
            stacklevel=2,
        )


def _ends(
    reading: TomlReading, run: Entries, space: Space, objective: str | Command | None
) -> None:
    """Report a run that would never end, and a time limit that cannot be enforced."""
    bounded = any(run.get(name) is not None for name in ("n_trials", "total_budget", "timeout"))
    doubtful = any(key.startswith("run") for key in reading.wrong_keys())
    if not (bounded or doubtful or math.isfinite(space.size)):
        reading.wrong(("run",), "the run would never end; give n_trials, total_budget or timeout")
    limited = run.get("time_limit") is not None
    if limited and run.get("workers", 1) == 1 and isinstance(objective, str):
        reading.wrong(
            ("run", "time_limit"),
            "needs worker processes that can be ended; use workers = 2 or more",
        )


_EXAMPLES = {
    "name": 'give the study one, such as name = "digits"',
    "space": (
        'say what may be tried: [space] with lr = {type = "float", low = 1e-5, high = 0.1, log ='
        " true}"
    ),
    "budget.name": 'name its unit, such as "epoch"',
    "budget.minimum": "it is the first grant of a trial, such as 1",
    "budget.maximum": "it is a full training, such as 27",
}


def _parameter(name: str, record: JsonObject) -> Parameter:
    if "type" not in record:
        raise StudyError(
            'has no type; write type = "float", "int", "ordinal", "categorical" or "constant"'
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # elsewhere this is only a warning
        try:
            return parameter_from_json(name, record)
        except UserWarning as warning:
            raise StudyError(f"{warning}: write that") from None
