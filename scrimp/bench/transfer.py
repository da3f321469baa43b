"""``scrimp bench transfer``: leave one task out, the others are past studies.

Past studies are whole tables (``full``), or the 50 evaluations of an earlier ``gp`` run each
(``traces``). To see that no past does harm, values may be ``shuffled`` over configurations or
``inverted``. Regret is min-max normalised over the task's finite values, so its mean over tasks is
the average distance to the minimum (ADTM).

    cells = transfer_cells(Path("wistuba_svm.npz"), ["gp", "rgpe"], ["all"], seeds=5, settings=TransferSettings())
    run_transfer(cells[0])["regret"]
"""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from scrimp.bench.kept_studies import kept_at
from scrimp.bench.playing import BenchQuestion, play_out, play_study
from scrimp.bench.results import Cell, read_runs
from scrimp.bench.table_suite import chosen_tasks
from scrimp.bench.transfer_tasks import TransferTask, read_tasks
from scrimp.encoding.encoding import Encoding
from scrimp.errors import TableError
from scrimp.history.events import Config
from scrimp.history.problem import Problem
from scrimp.json_values import Json
from scrimp.transfer.past import Past
from scrimp.transfer.source_studies import SourceStudy, Unusable, source_study
from scrimp.tuning.catalog import choose, compares_features, learns, parse_method
from scrimp.tuning.studies import beginning, storage_at
from scrimp.tuning.study import Study

__all__ = [
    "AT",
    "SOURCES",
    "TransferSettings",
    "run_trace",
    "run_transfer",
    "trace_cells",
    "trace_file",
    "transfer_cells",
]

AT = (1, 2, 3, 5, 10, 15, 20, 30, 50)
"""Where regret is read off, in evaluations."""

SOURCES = ("full", "traces", "shuffled", "inverted")

TRACE = 50
"""Evaluations of the run that a trace keeps."""


@dataclass(frozen=True)
class TransferSettings:
    """Evaluations per run, what past studies are, and the folder of traces."""

    trials: int = 50
    sources: str = "full"
    folder: Path | None = None


def transfer_cells(
    path: Path, methods: list[str], tasks: list[str], seeds: int, settings: TransferSettings
) -> list[Cell]:
    """Every run of a comparison, seeds outermost; `TableError` for a task that the file does not
    have."""
    if settings.sources not in SOURCES:
        raise TableError(f"sources is {settings.sources!r}; choose one of {', '.join(SOURCES)}")
    known = read_tasks(path)
    names = chosen_tasks(known.tasks, tasks)
    compared = [method for method in methods if compares_features(parse_method(method))]
    for name in names:
        task = known.task(name)
        if compared and not task.features:
            raise TableError(
                f"method {compared[0]!r} weighs past tasks by their features, and {path.name} has"
                f" none for {name!r}; add 'meta_features' to the table, or use 'tst-r' and 'taf-r',"
                " which compare how tasks rank configurations"
            )
    folder = "" if settings.folder is None else str(settings.folder)
    return [
        Cell(
            "transfer",
            known.name,
            name,
            method,
            seed,
            settings.trials,
            1,
            settings.sources,
            str(path),
            folder,
        )
        for seed in range(seeds)
        for name in names
        for method in methods
    ]


def run_transfer(cell: Cell) -> dict[str, Json]:
    """One method on one task, with all other tasks as its past."""
    task = read_tasks(cell.source).task(cell.task)
    past = _past(cell.source, cell.sources, cell.seed, cell.folder).without(cell.task)
    problem = Problem(
        task.space, features=task.features, seed=zlib.crc32(f"{cell.task}/{cell.seed}".encode())
    )
    method, _ = choose(problem, parse_method(cell.method), True)
    name, url = kept_at(cell, task.space)
    created = beginning(name, problem, method.to_json())
    known = past if learns(method) else None  # others stay cold, to compare with
    study = Study(storage_at(url).create(name, [created]), Path, lambda history: known)
    values: list[float] = []

    def measure(config: Config) -> float | None:
        value = task.measure(config)
        values.append(math.nan if value is None else value)
        return value

    seconds, asks = play_study(study, measure, min(cell.size, _most(task)))
    return {
        **cell.head(),
        "decision_seconds": seconds,
        "decisions": asks,
        **measured(task, values, cell.size),
    }


def _most(task: TransferTask) -> int:
    return int(min(task.space.size, 10**9))


def measured(task: TransferTask, values: list[float], trials: int) -> dict[str, Json]:
    """Regret, whether the optimal value was reached, and the rank inside the table, after each of
    `AT` evaluations."""
    at = [count for count in AT if count <= trials]
    best = np.fmin.accumulate(np.array(values or [math.nan]))
    seen = [float(best[min(count, len(best)) - 1]) for count in at]
    return {
        "at": at,
        "regret": [task.regret(value) for value in seen],
        "solved": [value <= float(task.finite[0]) for value in seen],
        "grid_rank": [task.rank(value) for value in seen],
    }


def trace_cells(path: Path, seeds: int) -> list[Cell]:
    """The earlier ``gp`` runs that traces come from."""
    known = read_tasks(path)
    return [
        Cell("traces", known.name, name, "gp", seed, TRACE, source=str(path))
        for seed in range(seeds)
        for name in known.tasks
    ]


def trace_file(path: Path, folder: Path) -> Path:
    """Where the traces of a table are kept."""
    return folder / f"{read_tasks(path).name}.traces.jsonl"


def run_trace(cell: Cell) -> dict[str, Json]:
    """One earlier run: what it tried and what came of it."""
    task = read_tasks(cell.source).task(cell.task)
    tried: list[tuple[Config, float | None]] = []

    def measure(config: Config) -> float | None:
        value = task.measure(config)
        tried.append((config, value))
        return value

    seed = zlib.crc32(f"trace/{cell.task}/{cell.seed}".encode())
    play_out(BenchQuestion(task.space, measure), cell.method, seed, min(cell.size, _most(task)))
    return {**cell.head(), "tried": tried}


@lru_cache(maxsize=2)
def _past(path: str, sources: str, seed: int, folder: str) -> Past:
    """All tasks of a file as past studies; whole tables are the same for every seed, but for the
    noise put into them."""
    if sources == "full" and seed:
        return _past(path, sources, 0, folder)
    known = read_tasks(path)
    traces = {}
    if sources == "traces":
        records = read_runs(trace_file(Path(path), Path(folder)))
        traces = {record["task"]: record["tried"] for record in records if record["seed"] == seed}
    studies, left_out = [], []
    for name in known.tasks:
        try:
            studies.append(_study(known.task(name), sources, seed, traces.get(name)))
        except (Unusable, TableError) as error:
            left_out.append(str(error))
    columns = Encoding(known.task(known.tasks[0]).space).columns
    return Past(tuple(studies), columns, tuple(left_out))


def _study(
    task: TransferTask, sources: str, seed: int, tried: Sequence[tuple[Config, float | None]] | None
) -> SourceStudy:
    configs, values = list(task.configs), task.values
    if tried is not None:
        configs = [config for config, _ in tried]
        values = np.array([math.nan if value is None else value for _, value in tried], dtype=float)
    rng = np.random.default_rng(zlib.crc32(f"{task.name}/{seed}".encode()))
    if sources == "shuffled":
        values = rng.permutation(values)
    if sources == "inverted":
        values = -values
    return source_study(task.name, task.space.to_units(configs), values, task.features)
