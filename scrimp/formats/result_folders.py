"""Folders that other tuners leave behind, as studies with learning curves.

| folder | what is read |
|---|---|
| Ray Tune | ``*/params.json`` and ``*/result.json``, a line per report; the step is ``training_iteration`` |
| Syne Tune | ``results.csv.zip``, ``metadata.json`` and the trials' folders \
(`scrimp.formats.syne_tune_folder`) |
| MLflow | ``*/params/<name>`` and ``*/metrics/<name>`` of a file store, a line per step |

A trial with no number for the metric is a failed one. Steps that begin at 0 are counted from 1.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from scrimp.errors import StudyError
from scrimp.formats.imported import (
    Curve,
    Imported,
    ImportedTrial,
    ImportSettings,
    Run,
    add_point,
    cell_value,
    inferred_space,
)
from scrimp.formats.syne_tune_folder import is_syne_tune, read_syne_tune
from scrimp.history.events import Config
from scrimp.history.problem import Budget, Problem
from scrimp.history.vetting import shortened
from scrimp.json_values import Json, Scalar
from scrimp.space.parameter_contract import Parameter
from scrimp.storage.text_file import text_of

__all__ = ["read_folder"]


def read_folder(path: Path, settings: ImportSettings) -> Imported:
    """The study in a folder; `StudyError` says what is missing."""
    runs: Sequence[Run]
    notes: tuple[str, ...] = ()
    space: Mapping[str, Parameter] = {}
    if is_syne_tune(path):
        found = read_syne_tune(path, settings)
        settings, runs, space, notes = found.settings, found.runs, found.space, found.notes
    elif any(path.glob("*/result.json")):
        runs, notes = _runs_of_ray(path, settings.metric)
    elif folders := _mlflow_runs(path):
        runs = [_run_of_mlflow(folder, settings.metric) for folder in folders]
    else:
        raise StudyError(
            f"{str(path)!r} is no folder of results that is known; it needs results.csv.zip (Syne"
            " Tune), */result.json (Ray Tune), or runs of an MLflow file store"
        )
    return replace(_study(path, runs, settings, space), notes=notes)


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
            add_point(curve, report.get("training_iteration", place), _deep(report, metric))
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
        str(file.relative_to(params)): cell_value(text_of(file).strip())
        for file in sorted(params.rglob("*"))
        if file.is_file()
    }
    values = folder / "metrics" / metric
    for line in text_of(values).splitlines() if values.is_file() else ():
        _, value, *rest = line.split()
        add_point(curve, cell_value(rest[0]) if rest else len(curve) + 1, cell_value(value))
    return config, curve
