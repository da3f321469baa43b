"""What a comparison on training runs is played on, whatever the kind of file.

runs = open_curves("lcbench.npz")                        # a table: its tasks are pools
runs = open_curves("gpt_surrogate.npz")                  # a surrogate: one continuous task, with noise in every report
runs.task("adult")
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from scrimp.bench.curve_model import is_curve_model, read_curve_model
from scrimp.bench.curve_sources import CurveTask, model_curves, network_curves, table_curves
from scrimp.bench.tables import read_table
from scrimp.bench.yahpo import is_yahpo, read_yahpo
from scrimp.errors import TableError

__all__ = ["NOISE", "UNIT_COST", "CurveFile", "open_curves"]

UNIT_COST = ":unit-cost"
"""The end of a table's name whose levels cost one unit each."""

NOISE = 0.005
"""The noise of every report of a surrogate that has none of its own, as a share of its value."""


@dataclass(frozen=True, eq=False)
class CurveFile:
    """The tasks of one file; ``noise`` is what every run adds to its reports."""

    name: str
    tasks: tuple[str, ...]
    noise: float
    _check: Callable[[str], object]
    _task: Callable[[str], CurveTask]

    def check(self, task: str) -> None:
        """`TableError` for a task that the file does not have, or that cannot be played."""
        self._check(task)

    def task(self, name: str) -> CurveTask:
        """One of its tasks, ready to be played."""
        return self._task(name)


@lru_cache(maxsize=8)
def open_curves(path: str | Path, unit_cost: bool = False, folder: Path | None = None) -> CurveFile:
    """The file at ``path``; ``folder`` keeps what a surrogate is measured by. `TableError` when it is none."""
    if is_yahpo(path):
        network = read_yahpo(path)
        name = network.name + UNIT_COST * unit_cost
        make = lru_cache(maxsize=64)(lambda task: network_curves(network, task, unit_cost, folder))
        return CurveFile(name, network.tasks, 0.0, network.check_task, make)
    if unit_cost:
        raise TableError(f"{str(path)!r} says itself what a level costs; leave out --unit-cost")
    if is_curve_model(path):
        model = read_curve_model(path)
        make = lru_cache(maxsize=1)(lambda _: model_curves(model, folder))
        return CurveFile(model.name, (model.name,), NOISE, lambda task: _only(task, model.name), make)
    table = read_table(path)
    make = lru_cache(maxsize=64)(lambda task: table_curves(table, task))
    return CurveFile(table.name, table.tasks, 0.0, table.task, make)


def _only(task: str, known: str) -> None:
    if task != known:
        raise TableError(f"surrogate {known!r} has no task {task!r}; its only one is {known}")
