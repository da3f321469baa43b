"""The ways to select a checkpoint, by name: a model of the grid, the cells to start with, and how to choose further ones.

| name | model | start | choice |
|---|---|---|---|
| kg | shared curve | a quarter of the tasks, two cells each | knowledge gradient on the measured mean |
| ei | shared curve | the same | modified expected improvement of the sum |
| top-two | shared curve | the same | what tells two likely winners apart |
| random | shared curve | none | any cell |
| independent | a Gaussian process per task | two random checkpoints per task | modified expected improvement |
| ei-icm | K_x (x) L L' | two random checkpoints per task | modified expected improvement |
| stride | none | whole checkpoints, evenly spaced | none |
| last | none | none | none: the last checkpoint is the answer |

Curves run over the square root of the step, in ei-icm over the place in the run. To a rule that looks one cell ahead the first
cell of a task is worth nothing: it tells the level of the task and nothing of the checkpoints. So kg values pairs of cells there,
and in kg, ei and top-two every third cell after the start must go to a task without a cell, until each has one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scrimp.checkpoints.choices import (
    Choice,
    choose_improvement,
    choose_knowledge_gradient,
    choose_random,
    choose_top_two,
)
from scrimp.checkpoints.score_table import Cell, ScoreTable
from scrimp.errors import MethodError
from scrimp.surrogates.surrogate import Array
from scrimp.surrogates.task_grid_icm import Coregional
from scrimp.surrogates.task_grid_models import GridModel, OwnCurves, RowEffects, SharedCurve

__all__ = ["METHODS", "SelectionMethod", "find_method", "positions", "quarter_start", "two_per_task"]

Start = Callable[[ScoreTable, np.random.Generator], list[Cell]]

_GOLDEN = 0.618034


def quarter_start(table: ScoreTable, rng: np.random.Generator) -> list[Cell]:
    """max(J/4, 3) random tasks with two cells each, rows along the run by the golden sequence floor(K frac(u + 0.618 q)).

    The two cells of a task lie 0.38 or 0.62 of the run apart, and all rows together are spread evenly.
    """
    size, tasks = table.shape
    count = min(max(round(tasks / 4), 3), tasks)
    order = _run_order(table)
    offset = rng.random()
    columns = np.repeat(rng.permutation(tasks)[:count], 2)
    rows = order[np.floor(size * np.mod(offset + _GOLDEN * np.arange(len(columns)), 1.0)).astype(int)]
    return list(dict.fromkeys((int(row), int(column)) for row, column in zip(rows, columns, strict=True)))


def two_per_task(table: ScoreTable, rng: np.random.Generator) -> list[Cell]:
    """Two random checkpoints for every task, a first round over all tasks and then a second."""
    size, tasks = table.shape
    rows = np.stack([rng.permutation(size)[: min(2, size)] for _ in range(tasks)])
    return [
        (int(rows[column, turn]), int(column)) for turn in range(rows.shape[1]) for column in rng.permutation(tasks)
    ]


def nothing_first(table: ScoreTable, rng: np.random.Generator) -> list[Cell]:
    """No start design."""
    return []


def _run_order(table: ScoreTable) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Rows in the order of the run."""
    return np.arange(table.shape[0]) if table.steps is None else np.argsort(table.steps, kind="stable")


@dataclass(frozen=True)
class SelectionMethod:
    """One way to select. Without a ``model`` the answer is read off the table; without a ``choice`` nothing is asked for."""

    name: str
    model: GridModel | None
    start: Start
    choice: Choice | None
    warp: str = "sqrt"
    opens: int = 0  # every so many cells one must go to a task without a cell; 0 never
    blind: bool = False  # the choice does not look at the model

    def grid_model(self, table: ScoreTable) -> GridModel | None:
        """The model for this table: rows without an order have independent effects."""
        if self.model is not None and table.steps is None:
            return RowEffects()
        return self.model


METHODS = {
    method.name: method
    for method in (
        SelectionMethod("kg", SharedCurve(), quarter_start, choose_knowledge_gradient, opens=3),
        SelectionMethod("ei", SharedCurve(), quarter_start, choose_improvement, opens=3),
        SelectionMethod("top-two", SharedCurve(), quarter_start, choose_top_two, opens=3),
        SelectionMethod("random", SharedCurve(), nothing_first, choose_random, blind=True),
        SelectionMethod("independent", OwnCurves(), two_per_task, choose_improvement),
        SelectionMethod("ei-icm", Coregional(), two_per_task, choose_improvement, warp="rank"),
        SelectionMethod("stride", None, nothing_first, None),
        SelectionMethod("last", None, nothing_first, None),
    )
}


def find_method(name: str) -> SelectionMethod:
    """The method of this name; "auto" is the default."""
    if name == "auto":
        return METHODS["kg"]
    if name not in METHODS:
        raise MethodError(f"no method {name!r} selects checkpoints; there are {', '.join(METHODS)}")
    return METHODS[name]


def positions(table: ScoreTable, warp: str) -> Array:
    """Where the rows lie for the model: at the square root of the step ("sqrt"), or at their place in the run ("rank")."""
    steps = np.arange(table.shape[0], dtype=np.float64) if table.steps is None else table.steps
    if warp == "rank":
        return np.asarray(np.argsort(np.argsort(steps, kind="stable")), dtype=np.float64)
    return np.asarray(np.sqrt(steps))
