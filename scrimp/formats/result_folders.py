"""Folders that other tuners leave behind, as studies with learning curves.

| folder | what is read |
|---|---|
| Ray Tune | ``*/params.json`` and ``*/result.json``, a line per report; the step is ``training_iteration`` |
| Syne Tune | ``results.csv.zip`` or ``results.csv``: ``config_<name>``, ``trial_id``, and the step in \
``epoch`` or the like; ``metadata.json`` names the metric and its direction |
| MLflow | ``*/params/<name>`` and ``*/metrics/<name>`` of a file store, a line per step |

A trial with no number for the metric is a failed one. Steps that begin at 0 are counted from 1.
"""

import csv
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from scrimp.checks import is_finite
from scrimp.errors import StudyError
from scrimp.formats.imported import Imported, ImportedTrial, ImportSettings, inferred_space
from scrimp.history.events import Config
from scrimp.history.problem import Budget, Problem
from scrimp.history.vetting import shortened
from scrimp.json_values import Json, Scalar
from scrimp.storage.text_file import text_of

__all__ = ["read_folder"]

MOST_BYTES = 200_000_000  # of a table that comes compressed
STEPS = ("epoch", "step", "resource", "training_iteration", "iteration", "st_worker_iter")
"""Columns that say how far a trial of Syne Tune is, the first that is there."""

Curve = dict[float, float]
Run = tuple[Config, Curve]


def read_folder(path: Path, settings: ImportSettings) -> Imported:
    """The study in a folder; `StudyError` says what is missing."""
    tables = [path / name for name in ("results.csv.zip", "results.csv")]
    table = next((file for file in tables if file.is_file()), None)
    notes: tuple[str, ...] = ()
    if table is not None:
        settings = _settings_of_syne_tune(path, settings)
        runs = _runs_of_syne_tune(table, settings.metric)
    elif any(path.glob("*/result.json")):
        runs, notes = _runs_of_ray(path, settings.metric)
    elif found := _mlflow_runs(path):
        runs = [_run_of_mlflow(folder, settings.metric) for folder in found]
    else:
        raise StudyError(
            f"{str(path)!r} is no folder of results that is known; it needs results.csv.zip (Syne"
            " Tune), */result.json (Ray Tune), or runs of an MLflow file store"
        )
    return replace(_study(path, runs, settings), notes=notes)


def _study(path: Path, runs: list[Run], settings: ImportSettings) -> Imported:
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
        inferred_space(kept),
        metric=settings.metric,
        direction="maximize" if settings.direction == "maximize" else "minimize",
        budget=budget,
    )
    trials = []
    for config, (_, curve) in zip(kept, runs, strict=True):
        points = tuple((step + shift, curve[step]) for step in sorted(curve))
        whole = bool(points) and (budget is None or points[-1][0] >= most)
        status = "completed" if whole else "stopped" if points else "failed"
        trials.append(ImportedTrial(config, points if budget else points[-1:], status))
    return Imported(path.resolve().name, problem, tuple(trials))


def _runs_of_ray(path: Path, metric: str) -> tuple[list[Run], tuple[str, ...]]:
    """A trial per folder; the last line of a results file may be cut short."""
    runs: list[Run] = []
    without = 0
    for file in sorted(path.glob("*/result.json")):
        reports = list(_lines(file))
        params = file.with_name("params.json")
        config = json.loads(text_of(params)) if params.is_file() else None
        if config is None and reports:
            config = reports[-1].get("config")
        if not isinstance(config, Mapping):
            without += 1
            continue
        curve: Curve = {}
        for place, report in enumerate(reports, 1):
            _add(curve, report.get("training_iteration", place), _deep(report, metric))
        runs.append((_flat(config, file), curve))
    note = f"{without} trials without parameters are left out"
    return runs, (note,) if without else ()


def _lines(file: Path) -> Iterator[dict[str, Json]]:
    lines = text_of(file).splitlines()
    for number, line in enumerate(lines, 1):
        try:
            report = json.loads(line)
        except ValueError:
            if number == len(lines):  # cut short while it was written
                return
            raise StudyError(f"line {number} of {str(file)!r} is no JSON") from None
        if isinstance(report, dict):
            yield report


def _deep(report: Mapping[str, Json], metric: str) -> Json:
    """A metric, also one inside others: ``eval/loss``."""
    if metric in report:
        return report[metric]
    first, slash, rest = metric.partition("/")
    inner = report.get(first)
    return _deep(inner, rest) if slash and isinstance(inner, Mapping) else None


def _flat(config: Mapping[str, Json], file: Path, prefix: str = "") -> dict[str, Scalar]:
    """Parameters by name; those inside others are joined by a slash, as Ray writes them."""
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


def _settings_of_syne_tune(path: Path, settings: ImportSettings) -> ImportSettings:
    """The metric and the direction that the folder names, where the user named none."""
    file = path / "metadata.json"
    if settings.metric != "value" or not file.is_file():
        return settings
    record = json.loads(text_of(file))
    names, modes = record.get("metric_names"), record.get("metric_mode", "min")
    mode = modes[0] if isinstance(modes, list) and modes else modes
    if not isinstance(names, list) or not names or not isinstance(names[0], str):
        return settings
    way = "maximize" if mode == "max" else "minimize"
    return replace(settings, metric=names[0], direction=way)


def _runs_of_syne_tune(table: Path, metric: str) -> list[Run]:
    rows = list(csv.DictReader(io.StringIO(_table_text(table), newline="")))
    columns = list(rows[0]) if rows else []
    if metric not in columns or "trial_id" not in columns:
        raise StudyError(
            f"{str(table)!r} has no column {metric!r} or no trial_id; name the value with --metric,"
            f" one of {', '.join(columns)}"
        )
    step = next((name for name in STEPS if name in columns), None)
    runs: dict[str, Run] = {}
    for row in rows:
        config = {
            name.removeprefix("config_"): _cell(text)
            for name, text in row.items()
            if name.startswith("config_") and text not in (None, "")
        }
        _, curve = runs.setdefault(row["trial_id"], (config, {}))
        _add(curve, len(curve) + 1 if step is None else _cell(row[step]), _cell(row[metric]))
    return list(runs.values())


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


def _cell(text: str | None) -> Scalar:
    """A number, a truth value, or the text itself."""
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text or "")
        except ValueError:
            continue
    return text


def _mlflow_runs(path: Path) -> list[Path]:
    """Folders of runs: in a file store, in one of its experiments, or the run itself."""
    return sorted(
        params.parent
        for depth in ("params", "*/params", "*/*/params")
        for params in path.glob(depth)
        if params.is_dir() and (params.parent / "meta.yaml").is_file()
    )


def _run_of_mlflow(folder: Path, metric: str) -> Run:
    """A run: a file per parameter and metric."""
    params, curve = folder / "params", Curve()
    config: Config = {
        str(file.relative_to(params)): _cell(text_of(file).strip())
        for file in sorted(params.rglob("*"))
        if file.is_file()
    }
    values = folder / "metrics" / metric
    for line in text_of(values).splitlines() if values.is_file() else ():
        _, value, *rest = line.split()
        _add(curve, _cell(rest[0]) if rest else len(curve) + 1, _cell(value))
    return config, curve


def _add(curve: Curve, step: Json, value: Json) -> None:
    """A point, where both are finite numbers."""
    if is_finite(step) and is_finite(value):
        curve[float(step)] = float(value)
