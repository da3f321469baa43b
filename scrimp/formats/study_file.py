"""A study as a TOML file: read as a whole, and every mistake named with its line, its key and the
nearest valid name.

    name = "digits"
    command = "python train.py --lr {lr}"            # or objective = "module:function"
    metric = "val_error"
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

The other keys are in `_File`, `_Run` and docs/command.md. What only makes sense together
(conditions, settings of the method, placeholders of the command) is checked once its parts are
right.
"""

import math
import sys
import tomllib
import typing
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from scrimp.checks import did_you_mean, nearest_name
from scrimp.errors import ScrimpError, StudyError
from scrimp.executors.command_line import Command
from scrimp.formats.run_options import option_of, replaced
from scrimp.formats.toml_lines import TomlLines
from scrimp.history.constraint_rules import read_constraint
from scrimp.history.problem import Budget, Constraint, Problem
from scrimp.registry.plugins import name_plugins
from scrimp.space.parameter import Parameter
from scrimp.space.parameter_record import parameter_from_json
from scrimp.space.space import Space
from scrimp.storage.open import open_storage
from scrimp.storage.refusals import check_name
from scrimp.storage.text_file import text_of
from scrimp.tuning.catalog import Method, build_policy, parse_method
from scrimp.tuning.objectives import imported

__all__ = ["Mistake", "StudyPlan", "plan_of_options", "read_study_file"]

Count = Annotated[int, msgspec.Meta(ge=1)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Text = Annotated[str, msgspec.Meta(min_length=1)]


class _Budget(msgspec.Struct, frozen=True):
    name: Text
    minimum: Positive
    maximum: Positive


class _Run(msgspec.Struct, frozen=True):
    """How much, and with what: the arguments of `Study.optimize`."""

    n_trials: Count | None = None
    budget: Positive | None = None
    timeout: Positive | None = None
    workers: Count = 1
    gpus_per_worker: Annotated[int, msgspec.Meta(ge=0)] = 0
    time_limit: Positive | None = None
    keep: Literal["best", "all", "none"] = "best"
    durable: Literal["all", "log"] | None = None


class _File(msgspec.Struct, frozen=True):
    """What may stand at the top: the arguments of `create_study`, and what to evaluate."""

    name: Text
    space: dict[str, Any]
    objective: Text | None = None
    command: Text | list[str] | None = None
    metric: Text = "value"
    direction: Literal["minimize", "maximize"] = "minimize"
    method: str | dict[str, Any] = "auto"
    learn_from: Text | list[Text] = []
    plugins: list[Text] = []
    storage: Text | None = None
    seed: Annotated[int, msgspec.Meta(ge=0)] | None = None
    noisy: bool = False
    cost: Text | None = None
    budget: _Budget | None = None
    constraints: dict[str, Any] = {}
    features: dict[str, float] = {}
    run: _Run = _Run()


@dataclass(frozen=True)
class Mistake:
    """One thing that is wrong, where, and what would be right."""

    key: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}, "
        return f"{place}{self.key}: {self.message}"


@dataclass(frozen=True)
class StudyPlan:
    """A file without mistakes: ``question`` goes to `create_study`, ``run`` to `Study.optimize`.

    ``objective`` is a command or the import path of a function; the modules of ``folder`` can be
    imported.
    """

    name: str
    objective: str | Command
    storage: str | None
    question: Mapping[str, Any]
    run: Mapping[str, Any]
    folder: Path


def read_study_file(path: Path, options: Mapping[str, Any] | None = None) -> StudyPlan:
    """The study that a file describes; `StudyError` lists every mistake in it.

    ``options`` replace what the file says, by key: {"method": "asha", "run.n_trials": 60}; tables
    are merged.
    """
    try:
        text = text_of(path)
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"cannot read {path}: {error}") from None
    try:
        record = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"{path} is no TOML: {error}") from None
    given = options or {}
    return _planned(
        _Reading(replaced(record, given), path.resolve().parent, TomlLines(text), given), str(path)
    )


def plan_of_options(options: Mapping[str, Any], folder: Path) -> StudyPlan:
    """The study that options alone describe, without a file; its command runs in ``folder``."""
    return _planned(
        _Reading(replaced({}, options), folder.resolve(), TomlLines(""), options),
        "the command line",
    )


def _planned(reading: "_Reading", source: str) -> StudyPlan:
    plan = reading.plan()
    if reading.mistakes or plan is None:
        count = len(reading.mistakes)
        listed = "\n".join(
            f"  {mistake}"
            for mistake in sorted(reading.mistakes, key=lambda mistake: mistake.line or 0)
        )
        raise StudyError(f"{source} has {count} mistake{'s' if count > 1 else ''}:\n{listed}")
    return plan


@dataclass
class _Reading:
    """One pass over a file, which gathers mistakes instead of ending at the first; ``options`` came
    from elsewhere."""

    record: dict[str, Any]
    folder: Path
    lines: TomlLines
    options: Mapping[str, Any]
    mistakes: list[Mistake] = field(default_factory=list)

    def wrong(self, key: tuple[str, ...], message: str) -> None:
        option = option_of(key, self.options)
        self.mistakes.append(
            Mistake(option or ".".join(key), message, None if option else self.lines.of(key))
        )

    @contextmanager
    def blamed_on(self, *key: str) -> typing.Iterator[None]:
        """What is raised within belongs to ``key``."""
        try:
            yield
        except ScrimpError as error:
            self.wrong(key, str(error))
        except Exception as error:  # of a module of the user's that is imported
            self.wrong(key, f"raises {type(error).__name__}: {error}")

    def plan(self) -> StudyPlan | None:
        """The whole; None when a mistake is too deep to go on. Only without mistakes is it to be
        used."""
        top = self.table(_File, self.record, ())
        self.plugins(top.get("plugins", []))
        space = self.space(top.get("space"))
        with self.blamed_on("name"):
            if "name" in top:
                check_name(top["name"])
        with self.blamed_on("storage"):
            if top.get("storage") is not None:
                open_storage(top["storage"])
        budget = self.budget(top.get("budget"))
        constraints = self.constraints(top.get("constraints", {}))
        if space is None or "name" not in top:
            return None
        names = ("metric", "direction", "cost", "features", "noisy")
        question = {name: top[name] for name in names if name in top}
        question |= {"space": space, "budget": budget, "constraints": constraints}
        method = self.method(top.get("method", "auto"), question if not self.mistakes else None)
        run = top.get("run", {})
        objective = self.objective(top, space)
        self.ends(run, space, objective)
        if objective is None:
            return None
        question |= {
            "method": method,
            "seed": top.get("seed"),
            "learn_from": top.get("learn_from", ()),
        }
        question["plugins"] = top.get("plugins", ())
        return StudyPlan(top["name"], objective, top.get("storage"), question, run, self.folder)

    def table(
        self, form: type[msgspec.Struct], record: Any, key: tuple[str, ...]
    ) -> dict[str, Any]:
        """The entries of a table that are right, each judged for itself."""
        if not isinstance(record, dict):
            example = f", such as [{'.'.join(key)}] with {', '.join(form.__struct_fields__[:3])}"
            self.wrong(key, f"is {record!r}; it must be a table{example}")
            return {}
        fields = {item.name: item for item in msgspec.structs.fields(form)}
        right: dict[str, Any] = {}
        for name, value in record.items():
            if name not in fields:
                self.wrong((*key, name), f"there is no such key{_nearest(name, list(fields))}")
                continue
            inner = _struct(fields[name].type)
            if inner is not None:
                right[name] = self.table(inner, value, (*key, name))
                continue
            try:
                right[name] = msgspec.convert(value, fields[name].type)
            except msgspec.ValidationError as error:
                self.wrong((*key, name), _explained(value, fields[name].type, error))
        misspelt = {nearest_name(name, fields) for name in record if name not in fields}
        for name, item in fields.items():
            if item.required and name not in record and name not in misspelt:
                self.wrong((*key, name), f"is missing; {_EXAMPLES['.'.join((*key, name))]}")
        return right

    def plugins(self, names: list[str]) -> None:
        """Import them, before anything that they register is looked up; modules of the file's
        folder are found too."""
        if names and str(self.folder) not in sys.path:
            sys.path.insert(0, str(self.folder))
        with self.blamed_on("plugins"):
            name_plugins(names)

    def space(self, record: Any) -> Space | None:
        """The space, when all of its parameters and conditions are right."""
        if not isinstance(record, dict):
            return None
        before = len(self.mistakes)
        parameters: dict[str, Any] = {}
        for name, value in record.items():
            if isinstance(value, list):
                self.wrong(
                    ("space", name),
                    f'is a list; write {{type = "categorical", choices = {value!r}}}',
                )
            with self.blamed_on("space", name):
                parameters[name] = _parameter(name, value) if isinstance(value, dict) else value
        if len(self.mistakes) > before:
            return None
        try:
            return Space(parameters)
        except ScrimpError as error:
            places = {name: str(error).find(f"parameter {name!r}") for name in parameters}
            named = sorted((place, name) for name, place in places.items() if place >= 0)
            self.wrong(("space", *(name for _, name in named[:1])), str(error))
            return None

    def budget(self, entries: Mapping[str, Any] | None) -> Budget | None:
        """The budget of a trial."""
        if entries is not None and len(entries) == 3:
            with self.blamed_on("budget"):
                return Budget(**self.record["budget"])  # whole numbers as they were written
        return None

    def constraints(self, record: Mapping[str, Any]) -> dict[str, Constraint]:
        """Rules such as ``memory_gb = {at_most = 16}`` and ``share = {equals = 0.5, tolerance =
        0.01}``."""
        right: dict[str, Constraint] = {}
        for name, rule in record.items():
            try:
                right[name] = read_constraint(rule)
            except StudyError as error:
                self.wrong(("constraints", name), str(error))
        return right

    def method(self, given: Any, question: dict[str, Any] | None) -> Method | None:
        """The method; its settings are tried on the question when that is known."""
        method = None
        with self.blamed_on("method"):
            method = parse_method(given)
            if question is not None:
                build_policy(Problem(**question), method)
        return method

    def objective(self, top: Mapping[str, Any], space: Space) -> str | Command | None:
        """What to evaluate: a function or a command, and one of them only."""
        function, command = top.get("objective"), top.get("command")
        meant = {nearest_name(key, ("objective", "command")) for key in self._wrong_keys()}
        if (function is None) == (command is None) and meant <= {None}:
            both = "both are there" if function is not None else "neither is there"
            self.wrong(
                ("objective",),
                f'{both}; give objective = "module:function" or command = "python train.py --lr'
                ' {lr}"',
            )
        elif command is not None:
            with self.blamed_on("command"):
                found = Command(command, self.folder)
                found.check(space)
                return found
        elif function is not None:
            if str(self.folder) not in sys.path:
                sys.path.insert(0, str(self.folder))
            with self.blamed_on("objective"):
                imported(function)
                return str(function)
        return None

    def _wrong_keys(self) -> set[str]:
        return {mistake.key for mistake in self.mistakes}

    def ends(self, run: Mapping[str, Any], space: Space, objective: str | Command | None) -> None:
        """A run that would never end, and a time limit nobody could enforce."""
        bounded = any(run.get(name) is not None for name in ("n_trials", "budget", "timeout"))
        if (
            not bounded
            and not math.isfinite(space.size)
            and not any(key.startswith("run") for key in self._wrong_keys())
        ):
            self.wrong(("run",), "this would never end; give n_trials, budget or timeout")
        if (
            run.get("time_limit") is not None
            and run.get("workers", 1) == 1
            and isinstance(objective, str)
        ):
            self.wrong(
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


def _struct(annotation: Any) -> type[msgspec.Struct] | None:
    """The table a field holds, if any."""
    options = typing.get_args(annotation) or (annotation,)
    return next(
        (item for item in options if isinstance(item, type) and issubclass(item, msgspec.Struct)),
        None,
    )


def _parameter(name: str, record: Mapping[str, Any]) -> Parameter:
    if "type" not in record:
        raise StudyError(
            'has no type; write type = "float", "int", "ordinal", "categorical" or "constant"'
        )
    return parameter_from_json(name, record)


def _explained(value: Any, annotation: Any, error: msgspec.ValidationError) -> str:
    """Why a value does not fit; the nearest valid word where there are words."""
    words = [word for item in (annotation, *typing.get_args(annotation)) for word in _words(item)]
    if words and isinstance(value, str):
        begun = [word for word in words if value and word.startswith(value)]
        hint = did_you_mean(value, words, f"; did you mean {begun[0]!r}?" if begun else "")
        return f"is {value!r}; it must be one of {', '.join(map(repr, words))}{hint}"
    reason = str(error).partition(" - at ")[0].partition(", got")[0].replace("`", "")
    for technical, plain in _PLAIN.items():
        reason = reason.replace(technical, plain)
    return f"is {value!r}; it must be {reason.removeprefix('Expected ')}"


_PLAIN = {
    " | null": "",
    "str of length >= 1": "a text that is not empty",
    "str": "a text in quotes",
    "array": "a list",
    "object": "a table",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    ">= ": "of at least ",
    "> ": "above ",
    " | ": " or ",
}
"""What msgspec says, in words; the longer ones first."""


def _words(annotation: Any) -> tuple[str, ...]:
    return typing.get_args(annotation) if typing.get_origin(annotation) is Literal else ()


def _nearest(name: str, names: list[str]) -> str:
    return did_you_mean(name, names, f"; valid are {', '.join(names)}")
