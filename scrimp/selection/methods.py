"""The ways to select a checkpoint, by name: a model of the grid, the cells to start with, and how
to choose further ones.

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

Curves run over the square root of the step, in ei-icm over the place in the run; the setting
``coordinate`` of every method with a model takes another one (`positions`). ei-icm also takes
``rank`` (2, or "full") and ``diagonal``: K_t = L L' + diag(v).

How sure the answer is, the model says that gave it; but the many loadings of ei-icm are fitted to
few cells and taken as known, which makes it far too sure. So there kg's model, on the same scores,
states the probability and the expected loss of the answer.

To a rule that looks one cell ahead the first cell of a task is worth nothing: it tells the level of
the task and nothing of the checkpoints. So kg values pairs of cells there, and in kg, ei and
top-two every third cell after the start must go to a task without a cell, until each has one; the
setting ``opens`` says every how many, 0 for never.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from scrimp.checks import is_whole
from scrimp.errors import MethodError
from scrimp.json_values import Json, JsonObject
from scrimp.selection.choices import (
    Choice,
    choose_improvement,
    choose_knowledge_gradient,
    choose_random,
    choose_top_two,
)
from scrimp.selection.score_table import Cell, ScoreTable
from scrimp.selection.task_grid_icm import Coregional, CoregionalDiagonal
from scrimp.selection.task_grid_models import GridModel, RowEffects, SharedCurve, TaskCurves
from scrimp.surrogates.surrogate import Array

__all__ = [
    "COORDINATES",
    "METHODS",
    "SelectionMethod",
    "find_method",
    "positions",
    "quarter_start",
    "two_per_task",
]

Start = Callable[[ScoreTable, np.random.Generator], list[Cell]]

COORDINATES = ("step", "sqrt", "log", "rank")

_GOLDEN = 0.618034
_EARLY = 0.02  # of the last step, where the logarithm begins


def quarter_start(table: ScoreTable, rng: np.random.Generator) -> list[Cell]:
    """max(J/4, 3) random tasks with two cells each, rows along the run by the golden sequence
    floor(K frac(u + 0.618 q)).

    The two cells of a task lie 0.38 or 0.62 of the run apart, and all rows together are spread
    evenly.
    """
    size, tasks = table.shape
    count = min(max(round(tasks / 4), 3), tasks)
    order = _run_order(table)
    offset = rng.random()
    columns = np.repeat(rng.permutation(tasks)[:count], 2)
    rows = order[
        np.floor(size * np.mod(offset + _GOLDEN * np.arange(len(columns)), 1.0)).astype(int)
    ]
    return list(
        dict.fromkeys((int(row), int(column)) for row, column in zip(rows, columns, strict=True))
    )


def two_per_task(table: ScoreTable, rng: np.random.Generator) -> list[Cell]:
    """Two random checkpoints for every task, a first round over all tasks and then a second."""
    size, tasks = table.shape
    rows = np.stack([rng.permutation(size)[: min(2, size)] for _ in range(tasks)])
    return [
        (int(rows[column, turn]), int(column))
        for turn in range(rows.shape[1])
        for column in rng.permutation(tasks)
    ]


def nothing_first(table: ScoreTable, rng: np.random.Generator) -> list[Cell]:
    """No start design."""
    return []


def _run_order(table: ScoreTable) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Rows in the order of the run."""
    return (
        np.arange(table.shape[0]) if table.steps is None else np.argsort(table.steps, kind="stable")
    )


@dataclass(frozen=True)
class SelectionMethod:
    """One way to select. Without a ``model`` the answer is read off the table; without a ``choice``
    nothing is asked for."""

    name: str
    model: GridModel | None
    start: Start
    choice: Choice | None
    coordinate: str = "sqrt"  # where the rows lie for the model, see `positions`
    opens: int = 0  # every so many cells one must go to a task without a cell; 0 never
    blind: bool = False  # the choice does not look at the model
    judge: str = ""  # the method whose model says how sure the answer is, instead of the own one

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
        SelectionMethod("independent", TaskCurves(), two_per_task, choose_improvement),
        SelectionMethod(
            "ei-icm", Coregional(), two_per_task, choose_improvement, coordinate="rank", judge="kg"
        ),
        SelectionMethod("stride", None, nothing_first, None),
        SelectionMethod("last", None, nothing_first, None),
    )
}


def find_method(name: str, settings: JsonObject | None = None) -> SelectionMethod:
    """The method of this name with these settings; "auto" is the default.

    >>> find_method("ei-icm", {"rank": "full", "coordinate": "log"}).model
    CoregionalDiagonal(rank='full', diagonal=False)
    """
    name = name.lower()  # EI-ICM, as papers write it
    if name != "auto" and name not in METHODS:
        raise MethodError(f"no method {name!r} selects checkpoints; there are {', '.join(METHODS)}")
    method = METHODS["kg" if name == "auto" else name]
    if not settings:
        return method
    valid = _settings_of(method)
    for key in settings:
        if key not in valid:
            listed = ", ".join(valid) or "none"
            raise MethodError(
                f"method {method.name!r} has no setting {key!r} for checkpoints; its settings:"
                f" {listed}"
            )
    given = dict(settings)
    opens = given.pop("opens", method.opens)
    if not is_whole(opens, 0):
        raise MethodError(f"opens is {opens!r}; it must be a whole number, 0 for never")
    coordinate = given.pop("coordinate", method.coordinate)
    if coordinate not in COORDINATES:
        raise MethodError(
            f"coordinate is {coordinate!r}; a checkpoint may lie at its {', '.join(COORDINATES)}"
        )
    model = _coregional(**given) if given else method.model
    return replace(method, coordinate=coordinate, model=model, opens=opens)


def _settings_of(method: SelectionMethod) -> tuple[str, ...]:
    if method.model is None:
        return ()
    own = ("rank", "diagonal") if method.name == "ei-icm" else ()
    return ("coordinate", *own, *(("opens",) if method.opens else ()))


def _coregional(rank: Json = 2, diagonal: Json = False) -> GridModel:
    """The coregionalisation model with this task matrix; a low rank alone has the quicker
    algebra."""
    if not is_whole(rank, 1) and rank != "full":
        raise MethodError(f"rank is {rank!r}; it must be a whole number of at least 1, or 'full'")
    if not isinstance(diagonal, bool):
        raise MethodError(f"diagonal is {diagonal!r}; it must be true or false")
    if not is_whole(rank, 1):
        return CoregionalDiagonal("full", diagonal)
    return CoregionalDiagonal(rank, diagonal) if diagonal else Coregional(rank)


def positions(table: ScoreTable, coordinate: str) -> Array:
    """Where the rows lie for the model: at their step, its square root, its logarithm, or their
    place in the run ("rank").

    The logarithm is that of the step plus two percent of the last one, so that step 0 has a place.
    """
    steps = np.arange(table.shape[0], dtype=np.float64) if table.steps is None else table.steps
    match coordinate:
        case "rank":
            return np.asarray(np.argsort(np.argsort(steps, kind="stable")), dtype=np.float64)
        case "log":
            return np.asarray(np.log(steps + (_EARLY * float(steps.max()) or 1.0)))
        case "step":
            return np.asarray(steps, dtype=np.float64)
    return np.asarray(np.sqrt(steps))
