"""Measure the value of past learning curves for methods with training budgets.

    python benchmarks/run.py past_curves run lcbench.npz taskset.npz --out past.jsonl      # resumes
    python benchmarks/run.py past_curves report past.jsonl

Some tasks of a table are the new one in turn; four others are its past: a study each by ``asha``,
half as long as the new one. For a table with a single task, the past are studies of the previous
table on the command line, which has another space, so that little or nothing can be learned. Kinds:

    none        no past
    past        with the past
    inverted    past values upside down: worst and best change places
    shuffled    past curves assigned to other configurations

The regret is that of ``scrimp bench curves``: 0 is the best value there is, 1 the median full
training.
"""

import argparse
import json
import math
import zlib
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from scrimp.bench.curve_suite import (
    METRIC,
    Timed,
    improving_reports,
    own_seed,
    play_curves,
    regret_at,
)
from scrimp.bench.curve_tasks import CurveTask, table_curves
from scrimp.bench.results import Cell
from scrimp.bench.tables import read_table
from scrimp.storage.memory import MemoryStorage
from scrimp.study.sources import attachments, read_past
from scrimp.study.studies import beginning
from scrimp.study_log.events import Event, Reported, TrialAdded
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.transfer.past import Past

KINDS = ("none", "past", "inverted", "shuffled")
SHARES = (0.1, 0.25, 0.5, 1.0)
PAST = 4
Run = dict[str, str | int | float | list[float]]


@lru_cache(maxsize=64)
def task_of(path: Path, name: str) -> CurveTask:
    return table_curves(read_table(path), name)


@lru_cache(maxsize=64)
def old_study(path: Path, name: str, fulls: int) -> tuple[Event, ...]:
    """Return the log of an ``asha`` study of a task."""
    cell = Cell("curves", path.stem, name, "asha", 0, fulls, 4, source=str(path))
    task = task_of(path, name)
    return tuple(play_curves(task, Timed("asha", task, own_seed(cell)), cell, name).events)


def changed(events: tuple[Event, ...], kind: str, seed: int) -> list[Event]:
    """Return the log as its kind changes it.

    Every seed shuffles differently, so that one bad shuffle does not count in all runs.
    """
    if kind == "shuffled":
        configs = [event.config for event in events if isinstance(event, TrialAdded)]
        order = iter(np.random.default_rng(seed).permutation(len(configs)).tolist())
        return [
            msgspec.structs.replace(event, config=configs[next(order)])
            if isinstance(event, TrialAdded)
            else event
            for event in events
        ]
    if kind != "inverted":
        return list(events)
    reports = [event for event in events if isinstance(event, Reported)]
    values = [report.metrics[METRIC] for report in reports]
    total = sum((min(values), max(values))) if all(map(math.isfinite, values)) else 0.0
    return [
        msgspec.structs.replace(event, metrics={METRIC: total - event.metrics[METRIC]})
        if isinstance(event, Reported)
        else event
        for event in events
    ]


@lru_cache(maxsize=16)
def storage_of(
    path: Path, names: tuple[str, ...], kind: str, fulls: int, seed: int
) -> MemoryStorage:
    """Return a storage with past studies of some tasks."""
    storage = MemoryStorage()
    for place, name in enumerate(names):
        own = zlib.crc32(f"{seed}/{place}/{name}".encode())
        storage.create(name, changed(old_study(path, name, fulls), kind, own))
    return storage


def past_of(problem: Problem, storage: MemoryStorage) -> Past | None:
    """Return the knowledge that a study of this problem takes from all studies of the storage."""
    sources = attachments(storage, storage.names(), "new", problem, 0.0)
    record = {"name": "asha", "settings": {}}
    return read_past(storage, History.of([beginning("new", problem, record), *sources]))


def played(path: Path, cell: Cell, kind: str, before: Path) -> Run:
    """Run one study and return its record."""
    task, past = task_of(path, cell.task), None
    plain = Timed(cell.method, task, own_seed(cell))
    if kind != "none":
        names = tuple(past_names(before, cell.task if before == path else ""))
        fulls, seed = max(1, cell.size // 2), cell.seed if kind == "shuffled" else 0
        storage = storage_of(before, names, kind, fulls, seed)
        past = past_of(plain.problem, storage)
    policy = Timed(cell.method, task, own_seed(cell), past)
    history = play_curves(task, policy, cell)
    trace = improving_reports(history, task, cell.size * task.scale.full / cell.workers)
    regret = [regret_at(trace, share) for share in SHARES]
    return {"regret": regret, "trials": len(history.trials), "seconds": policy.seconds}


def past_names(path: Path, new: str) -> list[str]:
    """Return the tasks that are the past of ``new``."""
    names = [name for name in read_table(path).tasks if name != new]
    return names[:: max(1, len(names) // PAST)][:PAST]


def run(given: argparse.Namespace) -> None:
    """Run everything that is not in the file yet."""
    known = read(given.out) if given.out.exists() else {}
    for seed in range(given.seeds):
        for place, path in enumerate(given.tables):
            names = read_table(path).tasks
            before = path if len(names) > 1 else given.tables[place - 1]
            for name in names[1 :: max(1, len(names) // given.tasks)][: given.tasks] or names[:1]:
                for method in given.methods.split(","):
                    cell = Cell(
                        "curves", path.stem, name, method, seed, given.fulls, 4, source=str(path)
                    )
                    for kind in given.kinds.split(","):
                        key = (path.stem, name, method, kind, seed)
                        if key in known:
                            continue
                        head = dict(zip(HEAD, key, strict=True))
                        record = {**head, **played(path, cell, kind, before)}
                        with given.out.open("a") as file:
                            file.write(json.dumps(record) + "\n")
                        print(*key, record["regret"], record["seconds"], flush=True)


HEAD = ("table", "task", "method", "kind", "seed")


def read(path: Path) -> dict[tuple[str, ...], Run]:
    records = [json.loads(text) for text in path.read_text().splitlines()]
    return {tuple(record[name] for name in HEAD): record for record in records}


def report(given: argparse.Namespace) -> None:
    """Print mean regret without a past, and differences to it with half of a 95 % interval."""
    runs = read(given.file)
    groups = sorted({(key[0], key[2]) for key in runs})
    pooled = [("all", method) for method in sorted({key[2] for key in runs})]
    print("table, method, kind (runs)".ljust(50), *(f"{share:>16}" for share in SHARES))
    for table, method in [*groups, *pooled]:
        mine = [k for k in runs if k[2] == method and table in (k[0], "all") and k[3] == "none"]
        alone = np.array([runs[key]["regret"] for key in mine])
        print(
            f"{table} {method} none ({len(mine)})".ljust(50),
            *(f"{value:16.4f}" for value in alone.mean(axis=0)),
        )
        for kind in KINDS[1:]:
            pairs = [(key, (*key[:3], kind, key[4])) for key in mine]
            gaps = np.array(
                [
                    np.subtract(runs[other]["regret"], runs[key]["regret"])
                    for key, other in pairs
                    if other in runs
                ]
            )
            if len(gaps) > 1:
                print(f"{'':10}{kind} ({len(gaps)})".ljust(50), *cells(gaps))


def cells(gaps: NDArray[np.float64]) -> list[str]:
    half = 1.96 * gaps.std(axis=0, ddof=1) / math.sqrt(len(gaps))
    return [f"{m:+.4f} ±{h:.4f}".rjust(16) for m, h in zip(gaps.mean(axis=0), half, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("tables", nargs="+", type=Path)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--methods", default="freeze-thaw,mobster-joint")
    one.add_argument("--kinds", default=",".join(KINDS))
    one.add_argument("--tasks", type=int, default=4, help="new tasks of each table")
    one.add_argument("--seeds", type=int, default=2)
    one.add_argument("--fulls", type=int, default=10)
    one.set_defaults(do=run)
    two = commands.add_parser("report")
    two.add_argument("file", type=Path)
    two.set_defaults(do=report)
    given = parser.parse_args()
    given.do(given)


if __name__ == "__main__":
    main()
