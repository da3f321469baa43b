"""``scrimp bench transfer``: leave one task out, the others are past studies.

Past studies are whole tables (``full``), or the 50 evaluations of an earlier ``gp`` run each
(``traces``). To test that misleading past studies do no harm, values may be ``shuffled`` over
configurations or ``inverted``. Regret is min-max normalised over the task's finite values, so its
mean over tasks is the average distance to the minimum (ADTM).

    cells = transfer_cells(Path("wistuba_svm.npz"), ["gp", "rgpe"], ["all"], seeds=5, settings=TransferSettings())
    run_transfer(cells[0])["regret"]
"""

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from scrimp.bench.converting import hpob_table, is_hpob
from scrimp.bench.regret_suite import chosen_tasks
from scrimp.bench.results import (
    Cell,
    Run,
    Summary,
    average_ranks,
    by_method,
    comparison,
    milliseconds_per_decision,
    read_runs,
)
from scrimp.bench.runner import NOWHERE, SMALL_SPACE, check_methods, kept_at, play_study
from scrimp.bench.tables import Table, read_table
from scrimp.bench.yahpo import Network, is_yahpo, read_yahpo
from scrimp.checks import check_known
from scrimp.encoding.encoding import Encoding
from scrimp.errors import TableError
from scrimp.json_values import Config, Json
from scrimp.methods.named_methods import choose, compares_features, learns, parse_method
from scrimp.space.designs import sobol_design
from scrimp.space.space import Space
from scrimp.study.studies import beginning, create_study, storage_at
from scrimp.study.study import Study
from scrimp.study_log.problem import Problem
from scrimp.surrogates.forest import grow_forest
from scrimp.surrogates.surrogate import Array
from scrimp.transfer.past import Past
from scrimp.transfer.source_study import SourceStudy, Unusable, source_study

MEASURED_TRIALS = (1, 2, 3, 5, 10, 15, 20, 30, 50)
SOURCES = ("full", "traces", "shuffled", "inverted")

TRACE_TRIALS = 50

DESIGN_CONFIGS = 2048
LAST_EPOCH = (51.0,)

FOREST = "forest:"
"""Prefix of the path of a table that asks for random forests fitted to its tasks."""


@dataclass(frozen=True, eq=False)
class TransferTask:
    """A space, a function that measures a configuration, and the values of its table (C,)."""

    name: str
    space: Space
    measure: Callable[[Config], float | None]
    configs: tuple[Config, ...]
    values: Array
    features: dict[str, float]

    @cached_property
    def finite(self) -> Array:
        """The finite values, sorted."""
        found = np.sort(self.values[np.isfinite(self.values)])
        if not len(found):
            raise TableError(
                f"task {self.name!r} has no finite final value, so nothing can be found in it;"
                " leave it out"
            )
        return found

    def regret(self, value: float) -> float:
        """Return the regret, min-max normalised over the finite values; 1 for a value that is not
        finite, 0 if all are equal."""
        low, high = float(self.finite[0]), float(self.finite[-1])
        if not math.isfinite(value):
            return 1.0
        return (value - low) / (high - low) if high > low else 0.0

    def rank(self, value: float) -> int:
        """Return the rank of a value in the table; one beyond the last if it is not finite."""
        finite = math.isfinite(value)
        return 1 + (int(np.searchsorted(self.finite, value)) if finite else len(self.values))


@dataclass(frozen=True, eq=False)
class TransferTasks:
    """All tasks of one file; ``task`` returns one by its name, or raises `TableError`."""

    name: str
    tasks: tuple[str, ...]
    task: Callable[[str], TransferTask]


@lru_cache(maxsize=4)
def read_tasks(path: str | Path) -> TransferTasks:
    """Return the tasks of a table, of a YAHPO surrogate (its last epoch), or of one search space of
    an HPO-B file; of several, ``file.json#4796`` names one."""
    if str(path).startswith(FOREST):
        known = read_tasks(str(path).removeprefix(FOREST))
        return TransferTasks(
            f"{known.name}-forest",
            known.tasks,
            lru_cache(lambda name: _forest_task(known.task(name))),
        )
    if is_yahpo(Path(path)):
        network = read_yahpo(Path(path))
        return TransferTasks(
            network.name, network.tasks, lru_cache(lambda name: _network_task(network, name))
        )
    hpob = is_hpob(Path(str(path).partition("#")[0]))
    table = hpob_table(path) if hpob else read_table(path)
    return TransferTasks(table.name, table.tasks, lru_cache(lambda name: _table_task(table, name)))


def modelled(path: Path, surrogate: str) -> Path:
    """Return the path that names forests for the tables at ``path``; ``path`` for ""."""
    if surrogate not in ("", "forest"):
        raise TableError(f"surrogate is {surrogate!r}; it must be 'forest'")
    return Path(f"{FOREST}{path}") if surrogate else path


def _table_task(table: Table, name: str) -> TransferTask:
    task = table.task(name)
    numbers = () if task.meta_features is None else task.meta_features.tolist()
    features = {
        f"f{place}": float(number) for place, number in enumerate(numbers) if math.isfinite(number)
    }

    def measure(config: Config) -> float | None:
        value = float(task.final[task.pool.index(config)])
        return value if math.isfinite(value) else None

    return TransferTask(name, task.pool, measure, task.pool.configs, task.final, features)


def _forest_task(task: TransferTask) -> TransferTask:
    """Return a task whose values are a forest's, fitted to the finite values of a table."""
    space = Space(task.space.parameters)
    configs = tuple(
        config
        for config, value in zip(task.configs, task.values, strict=True)
        if math.isfinite(value)
    )
    rows = space.to_units(configs)
    forest = grow_forest(
        rows,
        task.values[np.isfinite(task.values)],
        np.random.default_rng(zlib.crc32(task.name.encode())),
    )

    def measure(config: Config) -> float | None:
        return float(forest(space.to_units([config]))[0])

    return TransferTask(task.name, space, measure, configs, forest(rows), task.features)


def _network_task(network: Network, name: str) -> TransferTask:
    network.check_task(name)

    def values(configs: list[Config]) -> Array:
        parts = [configs[start : start + 256] for start in range(0, len(configs), 256)]
        found = [network.outputs(name, part, LAST_EPOCH)["val_accuracy"][:, 0] for part in parts]
        return np.asarray(100.0 - np.concatenate(found), dtype=float)

    def measure(config: Config) -> float | None:
        return float(values([config])[0])

    design = sobol_design(network.space, DESIGN_CONFIGS, np.random.default_rng(0))
    return TransferTask(name, network.space, measure, tuple(design), values(design), {})


@dataclass(frozen=True)
class TransferSettings:
    """Evaluations per run, the kind of past studies, and the folder of traces."""

    trials: int = 50
    sources: str = "full"
    folder: Path | None = None


def transfer_cells(
    path: Path, methods: list[str], tasks: list[str], seeds: int, settings: TransferSettings
) -> list[Cell]:
    """Return every run of a comparison; `TableError` for a task that the file does not have."""
    check_known("kind of sources", [settings.sources], SOURCES, TableError)
    known = read_tasks(path)
    names = chosen_tasks(known.tasks, tasks)
    compared = [method for method in methods if compares_features(parse_method(method))]
    for name in names:
        task = known.task(name)
        if compared and not task.features:
            raise TableError(
                f"method {compared[0]!r} weighs past tasks by their features, but {path.name} has"
                f" none for {name!r}; add 'meta_features' to the table, or use 'tst-r' and 'taf-r',"
                " which compare how tasks rank configurations"
            )
    check_methods(methods, Problem(SMALL_SPACE), learns=True)
    folder = "" if settings.folder is None else str(settings.folder)
    shared = Cell(
        "transfer",
        known.name,
        "",
        size=settings.trials,
        sources=settings.sources,
        source=str(path),
        folder=folder,
    )
    return comparison([replace(shared, task=name) for name in names], methods, seeds)


def run_transfer(cell: Cell) -> dict[str, Json]:
    """Run one method on one task, with all other tasks as past studies; a method that does not learn
    from them runs cold, for comparison."""
    task = read_tasks(cell.source).task(cell.task)
    past = _past(cell.source, cell.sources, cell.seed, cell.folder).without(cell.task)
    problem = Problem(
        task.space, features=task.features, seed=zlib.crc32(f"{cell.task}/{cell.seed}".encode())
    )
    method, _ = choose(problem, parse_method(cell.method), True)
    name, url = kept_at(cell, task.space)
    created = beginning(name, problem, method.to_json())
    known = past if learns(method) else None
    study = Study(storage_at(url).create(name, [created]), Path, lambda history: known)
    values: list[float] = []

    def measure(config: Config) -> float | None:
        value = task.measure(config)
        values.append(math.nan if value is None else value)
        return value

    seconds, asks = play_study(study, measure, int(min(cell.size, task.space.size)))
    return cell.result(seconds, asks, **measured(task, values, cell.size))


def measured(task: TransferTask, values: list[float], trials: int) -> dict[str, Json]:
    """Return regret, whether the optimum was reached, and rank, after `MEASURED_TRIALS` evaluations."""
    at = [count for count in MEASURED_TRIALS if count <= trials]
    best = np.fmin.accumulate(np.array(values or [math.nan]))
    seen = [float(best[min(count, len(best)) - 1]) for count in at]
    return {
        "at": at,
        "regret": [task.regret(value) for value in seen],
        "solved": [value <= float(task.finite[0]) for value in seen],
        "grid_rank": [task.rank(value) for value in seen],
    }


def trace_cells(path: Path, seeds: int) -> list[Cell]:
    """Return the earlier ``gp`` runs that traces come from."""
    known = read_tasks(path)
    tasks = [
        Cell("traces", known.name, name, size=TRACE_TRIALS, source=str(path))
        for name in known.tasks
    ]
    return comparison(tasks, ["gp"], seeds)


def trace_file(path: Path, folder: Path) -> Path:
    """Return the file of a table's traces."""
    return folder / f"{read_tasks(path).name}.traces.jsonl"


def run_trace(cell: Cell) -> dict[str, Json]:
    """Run one earlier study: ``tried`` has its configurations and their values."""
    task = read_tasks(cell.source).task(cell.task)
    tried: list[tuple[Config, float | None]] = []

    def measure(config: Config) -> float | None:
        value = task.measure(config)
        tried.append((config, value))
        return value

    seed = zlib.crc32(f"trace/{cell.task}/{cell.seed}".encode())
    study = create_study("bench", task.space, method=cell.method, storage=NOWHERE, seed=seed)
    play_study(study, measure, int(min(cell.size, task.space.size)))
    return {**cell.head(), "tried": tried}


@lru_cache(maxsize=2)
def _past(path: str, sources: str, seed: int, folder: str) -> Past:
    """Return all tasks of a file as past studies; ``full`` ones are the same for every seed."""
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


def transfer_summary(records: Sequence[Run]) -> Summary:
    """Summarize ADTM, ranks, unsolved tasks and time by method and number of evaluations."""
    at, runs = list(records[0]["at"]) if records else [], by_method(records)
    rows = []
    for label, numbers, digits in (
        ("ADTM", {method: _mean(own, "regret") for method, own in runs.items()}, 4),
        ("grid rank", {method: _mean(own, "grid_rank") for method, own in runs.items()}, 1),
        ("rank", average_ranks_at(records), 2),
        ("unsolved", {method: 1.0 - _mean(own, "solved") for method, own in runs.items()}, 2),
    ):
        rows += [
            [f"{label} {method}", *(f"{value:.{digits}f}" for value in numbers[method])]
            for method in runs
        ]
    rows += [
        [
            f"ms per decision {method}",
            f"{milliseconds_per_decision(own):.1f}",
            *[""] * (len(at) - 1),
        ]
        for method, own in runs.items()
    ]
    return ["evaluations", *map(str, at)], rows


def _mean(records: Sequence[Run], key: str) -> Array:
    return np.asarray(np.array([record[key] for record in records], dtype=float).mean(axis=0))


def average_ranks_at(records: Sequence[Run]) -> dict[str, Array]:
    """Return each method's mean rank by regret over the runs that all methods have, at each number
    of evaluations; NaN without such a run."""
    at = [
        average_ranks(
            {
                method: {
                    (run["table"], f"{run['task']} {run.get('sources')}", run["seed"]): regret
                    for run in own
                    for regret in run["regret"][point : point + 1]
                }
                for method, own in by_method(records).items()
            }
        )
        for point in range(len(records[0]["at"]) if records else 0)
    ]
    return {
        method: np.array([ranks.get(method, np.nan) for ranks in at])
        for method in by_method(records)
    }
