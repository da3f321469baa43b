"""Result folders of other tuners, read as studies with learning curves.

| folder | files |
|---|---|
| Ray Tune | ``*/params.json`` and ``*/result.json``, a line per report; the step is ``training_iteration`` |
| Syne Tune | ``metadata.json``: metric, direction and space; ``results.csv.zip`` or ``results.csv``: a \
row per report with ``trial_id``, ``config_<name>``, metrics and the step in ``epoch`` or similar; \
``<trial>/config.json`` and ``<trial>/std.out`` of the local backend: trials without a row |
| MLflow | ``*/params/<name>`` and ``*/metrics/<name>`` of a file store, a line per step |

A trial with no number for the metric has failed. Steps that begin at 0 are counted from 1. Syne Tune
rewrites its table every few seconds: a tuner that was killed may leave none or an empty one, and
trials that failed before their first report have no row, so these are read from the trials' folders.
"""

import csv
import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from scrimp.checks import is_finite, is_number
from scrimp.errors import StudyError
from scrimp.formats.toml_reading import text_of
from scrimp.json_values import Config, Json, Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space
from scrimp.space.space_text import number_or_text
from scrimp.study_log.messages import shortened
from scrimp.study_log.problem import Budget, Problem

Value = float | dict[str, float]
"""A value, or all values by name with several objectives."""
Curve = dict[float, float]
"""Values by step."""
Run = tuple[Config, Curve]
"""A configuration and its curve."""

MIN_LOG_RATIO = 100.0
"""Minimum ratio of the largest to the smallest value for a logarithmic scale."""


@dataclass(frozen=True)
class ImportSettings:
    """Import settings: ``metric`` is the column of the value, ``direction`` that of the study;
    ``parameters`` are columns, empty for all candidates; ``when`` gives conditions that cannot be
    inferred, by parameter."""

    metric: str = "value"
    direction: str = "minimize"
    parameters: tuple[str, ...] = ()
    when: Mapping[str, Mapping[str, tuple[Scalar, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class ImportedTrial:
    """A configuration, its curve of (budget, value), or of all values by name with several metrics,
    and its status: completed, stopped or failed."""

    config: Config
    curve: tuple[tuple[float, Value], ...]
    status: str = "completed"


@dataclass(frozen=True)
class Imported:
    """An imported study: its name, problem and trials."""

    name: str
    problem: Problem
    trials: tuple[ImportedTrial, ...]
    notes: tuple[str, ...] = field(default_factory=tuple)


def inferred_space(
    configs: Sequence[Config], declared: Mapping[str, Parameter] | None = None
) -> Space:
    """Return a space that contains these configurations; ``declared`` parameters are kept."""
    names = list(dict.fromkeys(name for config in configs for name in config))
    known = declared or {}
    return Space(
        {
            name: known[name]
            if name in known
            else _inferred([config[name] for config in configs if name in config])
            for name in names
        }
    )


def _plain(file: Path) -> Path:
    """Return a file of the folder, whose own path has no links; raise `StudyError` if a link or a
    ``..`` leads to it, because it may be any other file of the user."""
    if file.resolve() != file:
        raise StudyError(
            f"{str(file)!r} is a link or leads out of the folder; links in folders of results are not"
            " followed: put a copy of the file in its place"
        )
    return file


def _text(file: Path) -> str:
    return text_of(_plain(file))


def add_point(curve: Curve, step: Json, value: Json) -> None:
    """Add a point if step and value are finite numbers."""
    if is_finite(step) and is_finite(value):
        curve[float(step)] = float(value)


def cell_value(text: str) -> Scalar:
    """Parse the text of a cell: a number, a boolean, or the text itself.

    >>> cell_value("3"), cell_value("1e-3"), cell_value("True"), cell_value("adam")
    (3, 0.001, True, 'adam')
    """
    return text == "True" if text in ("True", "False") else number_or_text(text)


def _inferred(values: Sequence[Scalar]) -> Parameter:
    distinct = list(dict.fromkeys((type(value), value) for value in values))
    if len(distinct) == 1:
        return Constant(values[0])
    numbers = [value for value in values if is_number(value)]
    if len(numbers) < len(values):
        return Categorical([value for _, value in distinct])
    low, high = min(numbers), max(numbers)
    log = low > 0 and high / low >= MIN_LOG_RATIO and _spread_by_powers(numbers)
    if isinstance(low, int) and all(isinstance(value, int) for value in numbers):
        return Int(low, int(high), log=log)
    return Float(float(low), float(high), log=log)


def _spread_by_powers(values: Sequence[float]) -> bool:
    """Return True if positive values are spread more evenly on a logarithmic scale, by the largest
    distance from an even spread.

    A ratio of at least 100 n is always logarithmic: n values drawn uniformly between 0 and a bound
    rarely fall below 1 / (100 n) of it.
    """
    x = np.sort(np.array(values, dtype=float))
    if x[-1] / x[0] >= MIN_LOG_RATIO * len(x):
        return True
    even = np.linspace(0.0, 1.0, len(x))
    off = [np.max(np.abs((y - y[0]) / (y[-1] - y[0]) - even)) for y in (x, np.log(x))]
    return bool(off[1] < off[0])


MAX_TABLE_BYTES = 200_000_000
"""Maximum size of a compressed table when unpacked."""

TABLES = ("results.csv.zip", "results.csv")
STEP_COLUMNS = ("epoch", "step", "resource", "training_iteration", "iteration")
"""Columns with a trial's step, in order of preference; without one, reports are counted."""
REPORT = "[tune-metric]: "
"""Prefix of reports in a trial's output."""

Row = Mapping[str, Json]
Domains = Mapping[str, Mapping[str, Json]]


def _is_syne_tune(path: Path) -> bool:
    """Return True if the folder is an experiment of Syne Tune, even without its table."""
    if any((path / name).is_file() for name in TABLES):
        return True
    return (path / "metadata.json").is_file() and bool(_trial_folders(path))


def _read_syne_tune(path: Path, settings: ImportSettings) -> Imported:
    """Read an experiment of Syne Tune."""
    file = path / "metadata.json"
    record = json.loads(_text(file)) if file.is_file() else {}
    settings = _named(record, settings)
    domains = _domains(record)
    rows, notes = _rows(path)
    if rows and settings.metric not in {name for row in rows for name in row}:
        names = dict.fromkeys(name for row in rows for name in row)
        raise StudyError(
            f"{str(path)!r} has no column {settings.metric!r}; name the value with --metric, one of"
            f" {', '.join(names)}"
        )
    runs: dict[int, Run] = {}
    for row in rows:
        _add_row(runs, row, settings.metric, domains)
    for number, folder in _trial_folders(path).items():
        run = None if number in runs else _folder_run(folder, settings.metric, domains)
        if run is not None:
            runs[number] = run
    missing = len(_trial_folders(path).keys() - runs.keys())
    if missing:
        notes = (*notes, f"trials that had not reported yet are left out: {missing}")
    ordered = [runs[number] for number in sorted(runs)]
    return replace(_study(path, ordered, settings, _space(domains, ordered)), notes=notes)


def _named(record: Mapping[str, Json], settings: ImportSettings) -> ImportSettings:
    """Return the settings with the experiment's metric and direction if the user gave none."""
    names, modes = record.get("metric_names"), record.get("metric_mode", "min")
    mode = modes[0] if isinstance(modes, list) and modes else modes
    known = isinstance(names, list) and names and isinstance(names[0], str)
    if settings.metric != "value" or not isinstance(names, list) or not known:
        return settings
    way = "maximize" if mode == "max" else "minimize"
    return replace(settings, metric=str(names[0]), direction=way)


def _rows(path: Path) -> tuple[list[Row], tuple[str, ...]]:
    """Return the rows of the table; empty with a note if only the trials' folders can be read."""
    table = next((path / name for name in TABLES if (path / name).is_file()), None)
    if table is None:
        return [], ("there is no table of results; results are read from the trials' output",)
    _plain(table)
    try:
        rows = list(csv.DictReader(io.StringIO(_table_text(table), newline="")))
    except StudyError:
        if not _trial_folders(path):
            raise
        return [], (f"{table.name} is truncated; results are read from the trials' output",)
    if rows and "trial_id" not in rows[0]:
        raise StudyError(
            f"{str(table)!r} has no column trial_id; its columns are {', '.join(rows[0])}, so it is not"
            " a table of Syne Tune"
        )
    return list(rows), ()


def _table_text(table: Path) -> str:
    if table.suffix != ".zip":
        return _text(table)
    try:
        with zipfile.ZipFile(table) as archive:
            (inside,) = archive.infolist()
            if inside.file_size > MAX_TABLE_BYTES:
                raise StudyError(
                    f"{str(table)!r} holds {inside.file_size:,} bytes; the maximum is {MAX_TABLE_BYTES:,}"
                )
            return archive.read(inside).decode("utf-8")
    except (zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError) as error:
        raise StudyError(f"{str(table)!r} cannot be unpacked: {error}") from None


def _add_row(runs: dict[int, Run], row: Row, metric: str, domains: Domains) -> None:
    try:
        number = int(str(row["trial_id"]))
    except ValueError:
        raise StudyError(f"trial_id is {row['trial_id']!r}; it must be a whole number") from None
    config: Config = {}
    for column, text in row.items():
        name = column.removeprefix("config_")
        if name != column and isinstance(text, str) and text:
            config[name] = _typed(text, domains.get(name, {}))
    _, curve = runs.setdefault(number, (config, {}))
    _add_report(curve, row, metric)


def _add_report(curve: Curve, row: Row, metric: str) -> None:
    """Add the point of a row of the table (all texts) or of a line of the trial's output."""
    known = {
        name: cell_value(cell) if isinstance(cell, str) else cell for name, cell in row.items()
    }
    step = next((known[name] for name in STEP_COLUMNS if known.get(name) not in (None, "")), None)
    add_point(curve, len(curve) + 1 if step is None else step, known.get(metric))


def _trial_folders(path: Path) -> dict[int, Path]:
    """Return the trials' folders by number, as the local backend creates them."""
    folders = [file.parent for file in path.glob("*/config.json")]
    return {int(folder.name): folder for folder in folders if folder.name.isdecimal()}


def _folder_run(folder: Path, metric: str, domains: Domains) -> Run | None:
    """Read a trial without a row from its output; without a report it failed if it has ended."""
    output, curve = folder / "std.out", Curve()
    for line in _text(output).splitlines() if output.is_file() else ():
        if not line.startswith(REPORT):
            continue
        try:
            report = json.loads(line.removeprefix(REPORT))
        except ValueError:  # the last line, truncated
            continue
        if isinstance(report, dict):
            _add_report(curve, report, metric)
    if not curve and not (folder / "end").is_file():
        return None
    config = json.loads(_text(folder / "config.json"))
    return {name: _typed(value, domains.get(name, {})) for name, value in config.items()}, curve


def _domains(record: Mapping[str, Json]) -> dict[str, Mapping[str, Json]]:
    """Return the declared space by name, a constant as a choice of one."""
    text = record.get("config_space")
    try:
        declared = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return {}
    if not isinstance(declared, Mapping):
        return {}
    return {
        name: domain
        if isinstance(domain, Mapping)
        else {"domain_cls": "Categorical", "domain_kwargs": {"categories": [domain]}}
        for name, domain in declared.items()
    }


def _choices(domain: Mapping[str, Json]) -> list[Scalar]:
    settings = domain.get("domain_kwargs")
    found = settings.get("categories") if isinstance(settings, Mapping) else None
    values = found if isinstance(found, list) else []
    return [value for value in values if value is None or isinstance(value, str | int | float)]


def _typed(value: Scalar, domain: Mapping[str, Json]) -> Scalar:
    """Return a value as the choice it was written from, else as a number, a boolean or the text.

    A constant stays what was declared: methods that pause write into one of them how far a trial is
    to go.
    """
    choices = _choices(domain)
    if len(choices) == 1:
        return choices[0]
    known = cell_value(value) if isinstance(value, str) else value
    return next((choice for choice in choices if str(choice) == str(value)), known)


def _space(domains: Domains, runs: Sequence[Run]) -> dict[str, Parameter]:
    """Return the declared parameters that are known and contain every tried value."""
    found = {}
    for name, domain in domains.items():
        tried = [config[name] for config, _ in runs if name in config]
        parameter = _parameter(domain, tried)
        if parameter is not None:
            found[name] = parameter
    return found


def _parameter(domain: Mapping[str, Json], tried: list[Scalar]) -> Parameter | None:
    kind, settings = domain.get("domain_cls"), domain.get("domain_kwargs")
    choices = _choices(domain)
    if choices and all(any(value == choice for choice in choices) for value in tried):
        if len(choices) == 1:
            return Constant(choices[0])
        ordered = str(kind).startswith("Ordinal")
        return Ordinal(choices) if ordered else Categorical(choices)
    numbers = [value for value in tried if isinstance(value, int | float)]
    if not isinstance(settings, Mapping) or len(numbers) < len(tried):
        return None
    low, high = settings.get("lower"), settings.get("upper")
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        return None
    log = domain.get("sampler_cls") == "LogUniform" or settings.get("log_scale") is True
    low, high = min([low, *numbers]), max([high, *numbers])  # rounding may exceed a bound
    if kind == "Integer" or settings.get("cast_int") is True:
        return Int(int(low), int(high), log=log)
    return Float(float(low), float(high), log=log) if low < high else None


def read_folder(path: Path, settings: ImportSettings) -> Imported:
    """Read the study in a folder; raises `StudyError` if something is missing. The folder may be a
    link; links inside it are not followed."""
    path = path.resolve()
    if _is_syne_tune(path):
        return _read_syne_tune(path, settings)
    if any(path.glob("*/result.json")):
        runs, notes = _runs_of_ray(path, settings.metric)
        return replace(_study(path, runs, settings, {}), notes=notes)
    if folders := _mlflow_runs(path):
        runs = [_run_of_mlflow(folder, settings.metric) for folder in folders]
        return _study(path, runs, settings, {})
    raise StudyError(
        f"{str(path)!r} is not a known folder of results; it needs results.csv.zip (Syne Tune),"
        " */result.json (Ray Tune), or runs of an MLflow file store"
    )


def _study(
    path: Path, runs: Sequence[Run], settings: ImportSettings, space: Mapping[str, Parameter]
) -> Imported:
    if not any(curve for _, curve in runs):
        raise StudyError(
            f"no result in {str(path)!r} has a number {settings.metric!r}, so there is nothing to"
            " learn from; name the value with --metric"
        )
    chosen = settings.parameters
    kept = [
        {name: value for name, value in config.items() if not chosen or name in chosen}
        for config, _ in runs
    ]
    if not any(kept):
        raise StudyError(f"no result in {str(path)!r} has parameters; name them with --params")
    shift = max(0.0, 1.0 - min(step for _, curve in runs for step in curve))
    most = max(step for _, curve in runs for step in curve) + shift
    budget = Budget("step", 1, most) if most > 1 else None
    problem = Problem(
        inferred_space(kept, space),
        {settings.metric: "maximize" if settings.direction == "maximize" else "minimize"},
        budget=budget,
    )
    trials = []
    for config, (_, curve) in zip(kept, runs, strict=True):
        points = tuple((step + shift, curve[step]) for step in sorted(curve))
        whole = bool(points) and (budget is None or points[-1][0] >= most)
        status = "completed" if whole else "stopped" if points else "failed"
        trials.append(ImportedTrial(config, points if budget else points[-1:], status))
    return Imported(path.name, problem, tuple(trials))


def _runs_of_ray(path: Path, metric: str) -> tuple[list[Run], tuple[str, ...]]:
    """Read one trial per folder; a truncated last line of a results file is ignored."""
    runs: list[Run] = []
    without = 0
    for file in sorted(path.glob("*/result.json")):
        reports = list(_lines(file))
        params = file.with_name("params.json")
        config = json.loads(_text(params)) if params.is_file() else None
        if config is None and reports:
            config = reports[-1].get("config")
        if not isinstance(config, Mapping):
            without += 1
            continue
        curve: Curve = {}
        for place, report in enumerate(reports, 1):
            add_point(curve, report.get("training_iteration", place), _deep(report, metric))
        runs.append((_flat(config, file), curve))
    note = f"{without} trials without parameters are left out"
    return runs, (note,) if without else ()


def _lines(file: Path) -> Iterator[dict[str, Json]]:
    lines = _text(file).splitlines()
    for number, line in enumerate(lines, 1):
        try:
            report = json.loads(line)
        except ValueError:
            if number == len(lines):  # truncated while it was written
                return
            raise StudyError(f"line {number} of {str(file)!r} is not valid JSON") from None
        if isinstance(report, dict):
            yield report


def _deep(report: Mapping[str, Json], metric: str) -> Json:
    """Return a metric, possibly nested: ``eval/loss``."""
    if metric in report:
        return report[metric]
    first, slash, rest = metric.partition("/")
    inner = report.get(first)
    return _deep(inner, rest) if slash and isinstance(inner, Mapping) else None


def _flat(config: Mapping[str, Json], file: Path, prefix: str = "") -> dict[str, Scalar]:
    """Return parameters by name; names of nested ones are joined by a slash, as in Ray."""
    found: dict[str, Scalar] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            found |= _flat(value, file, f"{prefix}{name}/")
        elif value is None or isinstance(value, str | int | float | bool):
            found[prefix + name] = value
        else:
            raise StudyError(
                f"parameter {prefix + name!r} beside {str(file)!r} is {shortened(value)}; a parameter"
                " is a number or a text"
            )
    return found


def _mlflow_runs(path: Path) -> list[Path]:
    """Return the folders of runs in a file store, in one of its experiments, or the run itself."""
    return sorted(
        params.parent
        for depth in ("params", "*/params", "*/*/params")
        for params in path.glob(depth)
        if params.is_dir() and (params.parent / "meta.yaml").is_file()
    )


def _run_of_mlflow(folder: Path, metric: str) -> Run:
    """Read a run: one file per parameter and metric."""
    params, curve = folder / "params", Curve()
    config: Config = {
        str(file.relative_to(params)): cell_value(_text(file).strip())
        for file in sorted(params.rglob("*"))
        if file.is_file()
    }
    values = folder / "metrics" / metric
    for line in _text(values).splitlines() if values.is_file() else ():
        _, value, *rest = line.split()
        add_point(curve, cell_value(rest[0]) if rest else len(curve) + 1, cell_value(value))
    return config, curve
