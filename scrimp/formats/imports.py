"""Results of other tools as studies: tables of rows (CSV, JSON), exports of scrimp and of trackers,
Optuna storages and result folders.

    found = read_results(Path("old.csv"), ImportSettings(metric="val_error"))
    store_results(storage, "old", found[0], time.time())

Rows hold parameters and a value. Parameters are the columns ``params_<name>``, or the named ones, or
everything that is not the value, an id, a state or a time. The space is inferred from the rows:
integers, numbers (logarithmic if they span two orders of magnitude), choices; a column that never
varies is a constant. A row without a finite value is a failed trial. Conditions are inferred too
(`scrimp.formats.inferred_conditions`).

MLflow exports ``params.lr`` and ``metrics.loss`` (``mlflow.search_runs().to_csv()``). Weights & Biases
exports the columns ``config`` and ``summary``, each a mapping in a cell (its export script), or one
column per name (its table export), which needs no translation.
"""

import ast
import csv
import io
import json
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec

from scrimp.checks import is_finite
from scrimp.errors import ScrimpError, StudyError
from scrimp.formats.inferred_conditions import with_conditions
from scrimp.formats.optuna_file import (
    COLUMNS,
    is_journal,
    is_sqlite,
    journal_tables,
    read_optuna,
    read_tables,
    sqlite_tables,
)
from scrimp.formats.result_folders import (
    Imported,
    ImportedTrial,
    ImportSettings,
    Value,
    inferred_space,
    read_folder,
)
from scrimp.formats.toml_reading import text_of
from scrimp.json_values import Json, JsonObject, Scalar
from scrimp.space.space_text import number_or_text
from scrimp.storage.open import without_secrets
from scrimp.storage.store import EventStore, Storage
from scrimp.study_log.events import (
    BudgetGranted,
    Event,
    Reported,
    StudyCreated,
    TrialAdded,
    ended_event,
)
from scrimp.study_log.fold import ENDS
from scrimp.study_log.messages import shortened
from scrimp.study_log.problem import Direction, Problem
from scrimp.study_log.trial import Status

MAX_MAPPING_CHARACTERS = 100_000
TRACKER_COLUMNS = ("_wandb", "_step", "_runtime", "_timestamp")


def plain_row(row: Mapping[str, Json]) -> dict[str, Json]:
    """Return a tracker's row with the columns ``params_<name>`` and metrics by name.

    >>> plain_row({"run_id": "a", "params.lr": 0.1, "metrics.loss": 0.5})
    {'loss': 0.5, 'params_lr': 0.1}
    """
    if any(name.startswith("params.") for name in row):
        return {
            **{name[8:]: value for name, value in row.items() if name.startswith("metrics.")},
            **{f"params_{name[7:]}": value for name, value in row.items() if name[:7] == "params."},
        }
    config, summary = _mapping(row.get("config")), _mapping(row.get("summary"))
    if config is None or summary is None:
        return dict(row)
    kept = {name: value for name, value in config.items() if name not in TRACKER_COLUMNS}
    return {
        **{name: value for name, value in summary.items() if not isinstance(value, dict | list)},
        **{f"params_{name}": value for name, value in kept.items()},
    }


def _mapping(cell: Json) -> dict[str, Json] | None:
    """Parse a cell with a mapping in JSON or Python notation."""
    if not isinstance(cell, str) or cell[:1] != "{" or len(cell) > MAX_MAPPING_CHARACTERS:
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, dict):
            return {str(name): value for name, value in found.items()}
    return None


IDENTITY_COLUMNS = ("id", "number", "trial", "worker", "seed")
STATE_COLUMNS = ("status", "state", "message", "budget", "started", "ended")
NOT_PARAMETERS = (*IDENTITY_COLUMNS, *STATE_COLUMNS)
"""Columns that are not parameters unless they are named."""

FORMULA = frozenset("=+-@\t\r")
"""First characters of a formula in a spreadsheet."""


def read_results(path: Path, settings: ImportSettings) -> list[Imported]:
    """Read the studies in a file or folder; raises `StudyError`."""
    if not path.exists():
        raise StudyError(
            f"there is no file {without_secrets(str(path))!r}; give a CSV or JSON file, an Optuna database or journal,"
            " or a folder of results"
        )
    try:
        return _conditional(_read(path, settings), settings)
    except ScrimpError:
        raise
    except OSError as error:
        raise StudyError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except (
        ValueError,
        TypeError,
        LookupError,
        ArithmeticError,
        AttributeError,
        RecursionError,
        csv.Error,
    ) as error:
        # A foreign file may hold anything; expected errors have their own messages.
        what = "it is nested too deeply" if isinstance(error, RecursionError) else shortened(error)
        raise StudyError(f"{str(path)!r} has no results that can be imported: {what}") from None


def _read(path: Path, settings: ImportSettings) -> list[Imported]:
    if path.is_dir():
        return [read_folder(path, settings)]
    if path.is_file() and is_sqlite(path):
        return read_optuna(sqlite_tables(path), str(path))
    if path.is_file() and is_journal(path):
        return read_optuna(journal_tables(path), str(path))
    text = text_of(path)
    if path.suffix.lower() == ".csv":
        return [_from_rows(path, [plain_row(row) for row in _csv_rows(text)], settings)]
    try:
        record = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise StudyError(
            f"{str(path)!r} is neither CSV, nor JSON, nor an Optuna storage: {error}"
        ) from None
    if isinstance(record, Mapping) and "problem" in record and "trials" in record:
        return [_from_export(path, record)]
    rows = record.get("trials") if isinstance(record, Mapping) else record
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise StudyError(
            f"{str(path)!r} has no list of results; give a list of objects with parameters and a"
            " value"
        )
    return [_from_rows(path, [_flat(row) for row in rows], settings)]


def _conditional(found: list[Imported], settings: ImportSettings) -> list[Imported]:
    """Return the studies with their conditions; refuse a given one that has no parameter."""
    unknown = [
        name for name in settings.when if all(name not in each.problem.space for each in found)
    ]
    if unknown:
        known = ", ".join(dict.fromkeys(name for each in found for name in each.problem.space))
        raise StudyError(
            f"--when names {unknown[0]!r}, which is not a parameter; there are {known}"
        )
    return [with_conditions(each, settings.when) for each in found]


def read_server(url: str, settings: ImportSettings | None = None) -> list[Imported]:
    """Read the Optuna studies in the PostgreSQL database at ``url``."""
    if not url.startswith("postgres"):
        raise StudyError(
            f"{without_secrets(url)!r} is not a PostgreSQL URL; give postgresql://user@host/database, a"
            " file or a folder (a redis or MySQL storage of Optuna: copy it with optuna.copy_study)"
        )
    found = read_optuna(read_tables(url, COLUMNS), without_secrets(url))
    return _conditional(found, settings or ImportSettings())


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return a JSON object; refuse duplicate names."""
    _refuse_twice(name for name, _ in pairs)
    return dict(pairs)


def _refuse_twice(names: Iterable[str]) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise StudyError(f"{shortened(twice[0])} occurs twice; column names must be unique")


def _csv_rows(text: str) -> list[dict[str, Json]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    header = reader.fieldnames or ()
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and mark in header[0]:
            raise StudyError(
                f"the cells are separated by {word}; save the table with commas between cells, and points"
                " in numbers"
            )
    _refuse_twice(name for name in header if name)
    rows: list[dict[str, Json]] = []
    for row in reader:
        if None in row:
            raise StudyError(
                f"line {reader.line_num} has more cells than there are columns; put cells with"
                " commas in quotes"
            )
        rows.append({str(name): _scalar(cell) for name, cell in row.items() if name})
    return rows


def _scalar(text: str | None) -> Scalar:
    """Parse a cell: a number, true or false, None, or the text itself; the apostrophe that `scrimp
    export` puts before formulas is removed."""
    if text is None or not text.strip():
        return None
    if text[0] == "'" and text[1:2] in FORMULA:
        return text[1:]
    word = text.strip().lower()
    return word == "true" if word in ("true", "false") else number_or_text(text)


def _flat(row: JsonObject) -> dict[str, Json]:
    """Flatten ``{"params": {...}, "value": v}`` into ``params_<name>``; flat rows stay as is."""
    nested = row.get("params", row.get("config"))
    if not isinstance(nested, Mapping):
        return dict(row)
    rest = {name: value for name, value in row.items() if not isinstance(value, Mapping | list)}
    return {**rest, **{f"params_{name}": value for name, value in nested.items()}}


def _from_rows(path: Path, rows: list[dict[str, Json]], settings: ImportSettings) -> Imported:
    if not rows:
        raise StudyError(f"{str(path)!r} has no results")
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if settings.metric not in columns:
        raise StudyError(
            f"{str(path)!r} has no column {settings.metric!r}; name the value with --metric, one of"
            f" {', '.join(columns)}"
        )
    names = _parameter_columns(columns, settings)
    if not names:
        raise StudyError(
            f"{str(path)!r} has no parameters besides {settings.metric!r}; name them with --params"
            " lr,layers"
        )
    odd = [
        name
        for name in names
        for row in rows
        if not isinstance(row.get(name), str | int | float | bool | None)
    ]
    if odd:
        raise StudyError(
            f"column {odd[0]!r} of {str(path)!r} contains lists or tables; a parameter is a number or"
            " a text"
        )
    configs = [
        {short: row[name] for name, short in names.items() if row.get(name) is not None}
        for row in rows
    ]
    trials = []
    for config, row in zip(configs, rows, strict=True):
        value = row.get(settings.metric)
        curve = ((1.0, float(value)),) if is_finite(value) else ()
        trials.append(ImportedTrial(config, curve, "completed" if curve else "failed"))
    if not any(trial.curve for trial in trials):
        raise StudyError(
            f"column {settings.metric!r} of {str(path)!r} has no numbers, so there is nothing to"
            " learn from; name the value with --metric"
        )
    space = inferred_space(configs)
    # A problem refuses other words.
    problem = Problem(space, {settings.metric: cast(Direction, settings.direction)})
    return Imported(path.stem, problem, tuple(trials))


def _parameter_columns(columns: Sequence[str], settings: ImportSettings) -> dict[str, str]:
    """Return the parameter's name by column."""
    if settings.parameters:
        missing = [
            name
            for name in settings.parameters
            if name not in columns and f"params_{name}" not in columns
        ]
        if missing:
            raise StudyError(
                f"there is no column {missing[0]!r} for a parameter; there are {', '.join(columns)}"
            )
        return {name if name in columns else f"params_{name}": name for name in settings.parameters}
    marked = {name: name.removeprefix("params_") for name in columns if name.startswith("params_")}
    return marked or {
        name: name
        for name in columns
        if name != settings.metric and name.lower() not in NOT_PARAMETERS and name[:8] != "metrics_"
    }


class _Trial(msgspec.Struct):
    params: dict[str, Scalar]
    status: Status
    curve: list[tuple[float, float | None]]
    reports: list[tuple[float, dict[str, float | None]]] = []


class _Export(msgspec.Struct):
    """The part of a file written by ``scrimp export`` that is read."""

    name: str
    problem: dict[str, Json]
    trials: list[_Trial]


def _from_export(path: Path, record: Mapping[str, Json]) -> Imported:
    """Read a file written by ``scrimp export``."""
    try:
        found = msgspec.convert(record, _Export)
        problem = Problem.from_json(found.problem)
        trials = tuple(
            ImportedTrial(trial.params, _curve(trial, problem), trial.status)
            for trial in found.trials
        )
        return Imported(found.name, problem, trials)
    except (msgspec.ValidationError, KeyError, TypeError, ValueError) as error:
        raise StudyError(
            f"{str(path)!r} looks like an export of scrimp and cannot be read: {error}"
        ) from None


def _curve(trial: _Trial, problem: Problem) -> tuple[tuple[float, Value], ...]:
    curve = [(step, value) for step, value in trial.curve if value is not None]
    if not all(0 < step <= problem.full_budget for step, _ in curve):
        raise StudyError(
            f"a trial has results beyond the budget of 0 to {problem.full_budget:g}: a step is"
            f" {shortened([step for step, _ in curve])}"
        )
    reports = dict(trial.reports)
    return tuple(
        (step, _numbers(reports.get(step, {})) if problem.several else value)
        for step, value in curve
        if is_finite(value)
    )


def _numbers(metrics: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if is_finite(value)}


def store_results(storage: Storage, name: str, found: Imported, time: float) -> EventStore:
    """Store the results as a study that can be shown, continued and learned from."""
    problem = found.problem
    method: dict[str, Json] = {"name": "gp", "settings": {}, "reason": "imported results"}
    identity = secrets.token_hex(16)
    events: list[Event] = [
        StudyCreated(
            name=name, problem=problem.to_json(), method=method, identity=identity, time=time
        )
    ]
    ended = {**{status: status for status in ENDS}, "paused": "stopped"}
    kept = [trial for trial in found.trials if trial.status in ended]
    for number, trial in enumerate(kept):
        empty = trial.status == "completed" and not trial.curve
        status = "failed" if empty else ended[trial.status]
        events.append(TrialAdded(trial=number, config=trial.config, time=time))
        events.append(BudgetGranted(trial=number, budget=problem.full_budget, time=time))
        for step, value in trial.curve:
            metrics = value if isinstance(value, dict) else {problem.metric: value}
            events.append(Reported(trial=number, step=step, metrics={**metrics}, time=time))
        if status != "completed" or trial.curve[-1][0] < problem.full_budget:
            events.append(ended_event(number, 1, status, "imported", time))
    return storage.create(name, events)
