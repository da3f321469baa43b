"""What a comparison on training runs is played on, whatever the kind of file.

runs = open_curves("lcbench.npz") # a table: its tasks are pools runs =
open_curves("gpt_surrogate.npz") # a surrogate: one continuous task, with noise in every report
runs.task("adult")
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from scrimp.bench.curve_fit import KINDS
from scrimp.bench.curve_model import is_curve_model, read_curve_model
from scrimp.bench.curve_tasks import CurveTask, model_curves, network_curves, table_curves
from scrimp.bench.fitted_curves import fit_note, kept_surrogate
from scrimp.bench.tables import read_table
from scrimp.bench.yahpo import is_yahpo, read_yahpo
from scrimp.errors import TableError

__all__ = ["NOISE", "UNIT_COST", "CurveFile", "is_modelled", "modelled_curves", "open_curves"]

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
    _note: Callable[[str], str] = lambda _: ""

    def check(self, task: str) -> None:
        """`TableError` for a task that the file does not have, or that cannot be played."""
        self._check(task)

    def task(self, name: str) -> CurveTask:
        """One of its tasks, ready to be played."""
        return self._task(name)

    def note(self, name: str) -> str:
        """How well the surrogate of a task was fitted; empty where none was."""
        return self._note(name)


@lru_cache(maxsize=8)
def open_curves(path: str | Path, unit_cost: bool = False, folder: Path | None = None) -> CurveFile:
    """The file at ``path``; ``folder`` keeps what a surrogate is measured by. `TableError` when it
    is none."""
    if is_modelled(path):
        kind, _, fitted_to = str(path).partition(":")
        return _fitted(kind, fitted_to, unit_cost, folder)
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
        return CurveFile(
            model.name, (model.name,), NOISE, lambda task: _only(task, model.name), make
        )
    table = read_table(path)
    make = lru_cache(maxsize=64)(lambda task: table_curves(table, task))
    return CurveFile(table.name, table.tasks, 0.0, table.task, make)


def is_modelled(path: str | Path) -> bool:
    """Whether surrogates stand for the table at ``path``, as `modelled_curves` says."""
    return str(path).startswith(tuple(f"{kind}:" for kind in KINDS))


def modelled_curves(path: Path, kind: str) -> Path:
    """What to open instead of ``path`` when surrogates of that kind ("" for none) shall stand for
    its table."""
    if not kind:
        return path
    if kind not in KINDS:
        raise TableError(f"surrogate is {kind!r}; it must be one of {', '.join(KINDS)}")
    if is_yahpo(path) or is_curve_model(path):
        raise TableError(f"{str(path)!r} is a surrogate already; leave out --surrogate {kind}")
    return Path(f"{kind}:{path}")


def _fitted(kind: str, path: str, unit_cost: bool, folder: Path | None) -> CurveFile:
    if unit_cost:
        raise TableError(f"{path!r} says itself what a level costs; leave out --unit-cost")
    table = read_table(path)
    kept = lru_cache(maxsize=64)(lambda task: kept_surrogate(table, task, kind, folder))
    return CurveFile(
        f"{table.name}-{kind}",
        table.tasks,
        NOISE,
        table.task,
        lambda task: model_curves(kept(task).model, scale=kept(task).scale),
        lambda task: fit_note(task, kept(task)),
    )


def _only(task: str, known: str) -> None:
    if task != known:
        raise TableError(f"surrogate {known!r} has no task {task!r}; its only one is {known}")
