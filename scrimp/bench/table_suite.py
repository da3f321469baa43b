"""``scrimp bench tables``: methods on the final values of benchmark tables, each a finite pool
searched without replacement.

cells = table_cells(Path("fcnet.npz"), ["gp", "random"], ["all"], seeds=10, trials=100)
run_table(cells[0])["regret"][-1]
"""

import math
from functools import lru_cache
from pathlib import Path

from scrimp.bench.function_suite import stretched
from scrimp.bench.kept_studies import kept_at
from scrimp.bench.playing import BenchQuestion, play_out
from scrimp.bench.results import Cell
from scrimp.bench.tables import TaskTable, read_table
from scrimp.history.events import Config
from scrimp.json_values import Json

__all__ = ["chosen_tasks", "run_table", "table_cells"]


def chosen_tasks(known: tuple[str, ...], tasks: list[str]) -> list[str]:
    """The named tasks, or all of them."""
    return list(known) if tasks == ["all"] else tasks


def table_cells(
    path: Path, methods: list[str], tasks: list[str], seeds: int, trials: int
) -> list[Cell]:
    """Every run of a comparison, seeds outermost; `TableError` for a task the table does not
    have."""
    table = read_table(path)
    names = chosen_tasks(table.tasks, tasks)
    for name in names:
        table.task(name)
    return [
        Cell("tables", table.name, name, method, seed, trials, source=str(path))
        for seed in range(seeds)
        for name in names
        for method in methods
    ]


def run_table(cell: Cell) -> dict[str, Json]:
    """One method on one task: lowest final value so far minus the lowest of the table, after each
    trial."""
    task = _task(cell.source, cell.task)
    regret: list[float | None] = []

    def measure(config: Config) -> float | None:
        value = float(task.final[task.pool.index(config)])
        last = regret[-1] if regret else None
        if not math.isfinite(value):
            regret.append(last)
            return None
        regret.append(value - task.best if last is None else min(last, value - task.best))
        return value

    trials = min(cell.size, len(task.pool.configs))
    seconds, asks = play_out(
        BenchQuestion(task.pool, measure),
        cell.method,
        cell.seed,
        trials,
        place=kept_at(cell, task.pool),
    )
    return {
        **cell.head(),
        "decision_seconds": seconds,
        "decisions": asks,
        **stretched(regret, cell.size),
    }


@lru_cache(maxsize=8)
def _task(path: str, name: str) -> TaskTable:
    return read_table(path).task(name)
