"""An experiment folder of Syne Tune.

| file | what is read |
|---|---|
| ``metadata.json`` | metric, direction and the space |
| ``results.csv.zip`` or ``results.csv`` | a row per report: ``trial_id``, ``config_<name>``, metrics, \
the step in ``epoch`` or the like |
| ``<trial>/config.json``, ``<trial>/std.out`` | of the local backend: trials without a row |

The table is written anew every few seconds. A tuner that was killed may leave none or an empty one,
and trials that failed before their first report have no row: then the trials' folders tell.
"""

import csv
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from scrimp.errors import StudyError
from scrimp.formats.imported import Curve, ImportSettings, Run, add_point, cell_value
from scrimp.history.events import Config
from scrimp.json_values import Json, Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.space.parameter_contract import Parameter
from scrimp.storage.text_file import text_of

__all__ = ["SyneTuneResults", "is_syne_tune", "read_syne_tune"]

MOST_BYTES = 200_000_000  # of a table that comes compressed
TABLES = ("results.csv.zip", "results.csv")
STEPS = ("epoch", "step", "resource", "training_iteration", "iteration")
"""Columns that say how far a trial is, the first that is there; reports are counted without one."""
REPORT = "[tune-metric]: "
"""How a line of a trial's output begins that is a report."""

Row = Mapping[str, Json]
Domains = Mapping[str, Mapping[str, Json]]


@dataclass(frozen=True)
class SyneTuneResults:
    """The trials, the parameters as the experiment declared them, and what there is to say."""

    settings: ImportSettings
    runs: tuple[Run, ...]
    space: Mapping[str, Parameter]
    notes: tuple[str, ...]


def is_syne_tune(path: Path) -> bool:
    """Whether the folder is one of Syne Tune's, also without its table."""
    if any((path / name).is_file() for name in TABLES):
        return True
    return (path / "metadata.json").is_file() and bool(_trial_folders(path))


def read_syne_tune(path: Path, settings: ImportSettings) -> SyneTuneResults:
    """All of it; `StudyError` says what cannot be read."""
    file = path / "metadata.json"
    record = json.loads(text_of(file)) if file.is_file() else {}
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
    ordered = tuple(runs[number] for number in sorted(runs))
    return SyneTuneResults(settings, ordered, _space(domains, ordered), notes)


def _named(record: Mapping[str, Json], settings: ImportSettings) -> ImportSettings:
    """The metric and the direction that the folder names, where the user named none."""
    names, modes = record.get("metric_names"), record.get("metric_mode", "min")
    mode = modes[0] if isinstance(modes, list) and modes else modes
    known = isinstance(names, list) and names and isinstance(names[0], str)
    if settings.metric != "value" or not isinstance(names, list) or not known:
        return settings
    way = "maximize" if mode == "max" else "minimize"
    return replace(settings, metric=str(names[0]), direction=way)


def _rows(path: Path) -> tuple[list[Row], tuple[str, ...]]:
    """The rows of the table; none, and a note, where only the folders of trials can be read."""
    table = next((path / name for name in TABLES if (path / name).is_file()), None)
    if table is None:
        return [], ("there is no table of results; they are taken from the trials' output",)
    try:
        rows = list(csv.DictReader(io.StringIO(_table_text(table), newline="")))
    except StudyError:
        if not _trial_folders(path):
            raise
        broken = f"{table.name} was cut short; results are taken from the trials' output"
        return [], (broken,)
    if rows and "trial_id" not in rows[0]:
        raise StudyError(
            f"{str(table)!r} has no column trial_id; it has {', '.join(rows[0])}, which is no table"
            " of Syne Tune"
        )
    return list(rows), ()


def _table_text(table: Path) -> str:
    if table.suffix != ".zip":
        return text_of(table)
    try:
        with zipfile.ZipFile(table) as archive:
            (inside,) = archive.infolist()
            if inside.file_size > MOST_BYTES:
                raise StudyError(
                    f"{str(table)!r} holds {inside.file_size:,} bytes; {MOST_BYTES:,} are the most"
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
    """From a row of the table, all texts, or a line of a trial's output."""
    known = {
        name: cell_value(cell) if isinstance(cell, str) else cell for name, cell in row.items()
    }
    step = next((known[name] for name in STEPS if known.get(name) not in (None, "")), None)
    add_point(curve, len(curve) + 1 if step is None else step, known.get(metric))


def _trial_folders(path: Path) -> dict[int, Path]:
    """Folders of trials by number, which the local backend makes."""
    found = {}
    for file in path.glob("*/config.json"):
        if file.parent.name.isdecimal():
            found[int(file.parent.name)] = file.parent
    return found


def _folder_run(folder: Path, metric: str, domains: Domains) -> Run | None:
    """A trial that has no row: what it printed; without a report it failed if it has ended."""
    output, curve = folder / "std.out", Curve()
    for line in text_of(output).splitlines() if output.is_file() else ():
        if not line.startswith(REPORT):
            continue
        try:
            report = json.loads(line.removeprefix(REPORT))
        except ValueError:  # the last one, cut short
            continue
        if isinstance(report, dict):
            _add_report(curve, report, metric)
    if not curve and not (folder / "end").is_file():
        return None
    config = json.loads(text_of(folder / "config.json"))
    return {name: _typed(value, domains.get(name, {})) for name, value in config.items()}, curve


def _domains(record: Mapping[str, Json]) -> dict[str, Mapping[str, Json]]:
    """The declared space: what each name stands for, a constant as a choice of one."""
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
    """A value as the choice it was written from, else as a number, a truth value or itself.

    A constant stays what was declared: methods that pause write into one of them how far a trial is
    to go.
    """
    choices = _choices(domain)
    if len(choices) == 1:
        return choices[0]
    known = cell_value(value) if isinstance(value, str) else value
    return next((choice for choice in choices if str(choice) == str(value)), known)


def _space(domains: Domains, runs: tuple[Run, ...]) -> dict[str, Parameter]:
    """What was declared, where it is known and holds all that was tried."""
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
    low, high = min([low, *numbers]), max([high, *numbers])  # rounding goes beyond an end
    if kind == "Integer" or settings.get("cast_int") is True:
        return Int(int(low), int(high), log=log)
    return Float(float(low), float(high), log=log) if low < high else None
