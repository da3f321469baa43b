"""``scrimp bench functions`` and ``scrimp bench tables``: regret after each trial, on test functions
with known minima and on the final values of tables, which are pools searched without replacement.

    run_function(Cell("functions", "functions", "branin", "gp", seed=0, size=50))["regret"][-1]
    cells = table_cells(Path("fcnet.npz"), ["gp", "random"], ["all"], seeds=10, trials=100)
    run_table(cells[0])["regret"][-1]
"""

import math
from functools import lru_cache
from pathlib import Path

from scrimp.bench.formulas import FORMULAS, Recorder
from scrimp.bench.results import Cell, comparison
from scrimp.bench.runner import SMALL_SPACE, BenchQuestion, check_methods, kept_at, play_out
from scrimp.bench.tables import TaskTable, described_space, read_table
from scrimp.errors import TableError
from scrimp.json_values import Config, Json
from scrimp.study_log.problem import Problem


def function_cells(
    methods: list[str], names: list[str], seeds: int, trials: int, workers: int = 1
) -> list[Cell]:
    """Return every run of a comparison; `TableError` for an unknown function."""
    for name in names:
        if name not in FORMULAS:
            raise TableError(f"there is no test function {name!r}; there are {', '.join(FORMULAS)}")
    check_methods(methods, Problem(SMALL_SPACE))
    tasks = [Cell("functions", "functions", name, size=trials, workers=workers) for name in names]
    return comparison(tasks, methods, seeds)


def run_function(cell: Cell) -> dict[str, Json]:
    """Run one method on one function: the regret of the best configuration after each trial."""
    formula = FORMULAS[cell.task]
    recorder = Recorder(formula, cell.seed)
    space = described_space(formula.space)
    question = BenchQuestion(space, recorder.measure, noisy=formula.noise > 0)
    place = kept_at(cell, space)
    seconds, asks = play_out(question, cell.method, cell.seed, cell.size, cell.workers, place)
    return cell.result(seconds, asks, **padded(recorder.regret, cell.size))


def padded(regret: list[float | None], size: int) -> dict[str, Json]:
    """Return ``at`` 1, ..., ``size`` and the regrets; one that ended early keeps its last one."""
    last = regret[-1] if regret else None
    return {"at": list(range(1, size + 1)), "regret": regret + [last] * (size - len(regret))}


def chosen_tasks(known: tuple[str, ...], tasks: list[str]) -> list[str]:
    """Return the named tasks, or all of them."""
    return list(known) if tasks == ["all"] else tasks


def table_cells(
    path: Path, methods: list[str], tasks: list[str], seeds: int, trials: int
) -> list[Cell]:
    """Return every run of a comparison; `TableError` for a task that the table does not have."""
    table = read_table(path)
    names = chosen_tasks(table.tasks, tasks)
    for name in names:
        table.task(name)
    check_methods(methods, Problem(SMALL_SPACE))
    cells = [Cell("tables", table.name, name, size=trials, source=str(path)) for name in names]
    return comparison(cells, methods, seeds)


def run_table(cell: Cell) -> dict[str, Json]:
    """Run one method on one task: lowest final value so far minus the lowest of the table."""
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

    question, trials = BenchQuestion(task.pool, measure), min(cell.size, len(task.pool.configs))
    place = kept_at(cell, task.pool)
    seconds, asks = play_out(question, cell.method, cell.seed, trials, place=place)
    return cell.result(seconds, asks, **padded(regret, cell.size))


@lru_cache(maxsize=8)
def _task(path: str, name: str) -> TaskTable:
    return read_table(path).task(name)
