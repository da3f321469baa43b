"""The selection methods by name: a model of the grid, a start design, and a rule for further cells.

| name | model | start | choice |
|---|---|---|---|
| kg | shared curve | a quarter of the tasks, two cells each | knowledge gradient on the measured mean |
| ei | shared curve | the same | modified expected improvement of the sum |
| top-two | shared curve | the same | the cell that best separates two likely winners |
| random | shared curve | none | any cell |
| independent | a Gaussian process per task | two random checkpoints per task | modified expected improvement |
| ei-icm | K_x (x) L L' | two random checkpoints per task | modified expected improvement |
| stride | none | whole checkpoints, evenly spaced | none |
| last | none | none | none: the last checkpoint is the answer |

Curves run over the square root of the step, in ei-icm over the place in the run; the setting
``coordinate`` of every method with a model changes that (`positions`). ei-icm also takes ``rank``
(2, or "full"), ``diagonal``: K_t = L L' + diag(v), and ``levels``: false for a prior without a level
per task, as published.

A recommendation's confidence comes from the model that made it. The exception is ei-icm: its many
loadings are fitted to few cells and then taken as known, which makes it overconfident, so kg's
model states the probability and the expected loss of its answer from the same scores.

To a rule that looks one cell ahead, the first cell of a task is worth nothing: it reveals the level
of the task and nothing about the checkpoints. Therefore kg values pairs of cells there, and in kg,
ei and top-two every third cell after the start must go to a task without cells, until each has one;
the setting ``opens`` changes the three, 0 for never.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scrimp.acquisition.improvement import log_expected_improvement
from scrimp.acquisition.knowledge_gradient import best_by_knowledge_gradient, shortlist
from scrimp.checkpoint_selection.row_means import RowMeans
from scrimp.checkpoint_selection.score_table import Cell, Mask, ScoreTable
from scrimp.checkpoint_selection.selection_numbers import NUMBERS
from scrimp.checkpoint_selection.task_grid_algebra import Index
from scrimp.checkpoint_selection.task_grid_models import (
    Coregional,
    GridModel,
    RowEffects,
    SharedCurve,
    TaskCurves,
)
from scrimp.checks import is_whole
from scrimp.errors import MethodError
from scrimp.json_values import JsonObject
from scrimp.surrogates.surrogate import Array

Start = Callable[[ScoreTable, np.random.Generator], list[Cell]]
"""A start design: the first cells of a table, in order."""

Choice = Callable[[Any, Mask, np.random.Generator], tuple[Cell, float]]
"""A rule for the next cell: from `RowMeans` (None for a method that does not look at the model),
the candidate cells (K, J) and a generator to a cell and the logarithm of its value per unit cost."""

COORDINATES = ("step", "sqrt", "log", "rank")


def quarter_start(table: ScoreTable, rng: np.random.Generator) -> list[Cell]:
    """Return two cells each of max(J/4, 3) random tasks, with rows along the run by the golden
    sequence floor(K frac(u + 0.618 q)).

    The two cells of a task lie 0.38 or 0.62 of the run apart, and all rows are spread evenly.
    """
    size, tasks = table.shape
    offset, drawn = rng.random(), rng.permutation(tasks)
    if table.groups is not None:
        # One task of each group.
        drawn = drawn[np.sort(np.unique(table.groups[drawn], return_index=True)[1])]
    share = round(NUMBERS.start_task_share * len(drawn))
    count = min(max(share, NUMBERS.min_start_tasks), len(drawn))
    columns = np.repeat(drawn[:count], 2)
    places = np.mod(offset + NUMBERS.golden_ratio * np.arange(len(columns)), 1.0)
    rows = run_order(table)[np.floor(size * places).astype(int)]
    cells = zip(rows.tolist(), columns.tolist(), strict=True)
    return list(dict.fromkeys((int(row), int(column)) for row, column in cells))


def two_per_task(table: ScoreTable, rng: np.random.Generator) -> list[Cell]:
    """Return two random checkpoints for every task: a first round over all tasks, then a second."""
    size, tasks = table.shape
    rows = np.stack([rng.permutation(size)[: min(2, size)] for _ in range(tasks)])
    return [
        (int(rows[column, turn]), int(column))
        for turn in range(rows.shape[1])
        for column in rng.permutation(tasks)
    ]


def run_order(table: ScoreTable) -> Index:
    """Return the rows in the order of the run; as listed if they have no order."""
    size = table.shape[0]
    return np.arange(size) if table.steps is None else np.argsort(table.steps, kind="stable")


def choose_knowledge_gradient(
    means: RowMeans, candidates: Mask, rng: np.random.Generator
) -> tuple[Cell, float]:
    """Choose the cell with the largest knowledge gradient on the measured mean, per unit cost.

    One cell of a new task reveals its level, which favours no checkpoint; a second one tells two
    checkpoints apart. New tasks are therefore valued by pairs of cells, at the cost of two, and the
    better checkpoint of the best pair is measured first.
    """
    begun = means.table.opened(means.known)
    options = []
    if (candidates & begun).any():
        options.append(_best_cell(means, candidates & begun))
    if (candidates & ~begun).any():
        options.append(_best_opening(means, candidates & ~begun, rng))
    return max(options, key=lambda option: option[1])


def _best_cell(means: RowMeans, candidates: Mask) -> tuple[Cell, float]:
    """Return the cell with the largest knowledge gradient per unit cost. All cells are screened, in
    a large grid on the likeliest rows only; the shortlist is valued exactly on all contenders."""
    contenders, costs = means.contenders, means.table.costs
    rows, columns, slopes = means.screen(candidates)
    kept = shortlist(means.measured[means.posterior.screening_rows], slopes, costs[columns])
    rows, columns = rows[kept], columns[kept]
    slopes = means.slopes_of(rows, columns, contenders)
    best, value = best_by_knowledge_gradient(means.measured[contenders], slopes, costs[columns])
    return (int(rows[best]), int(columns[best])), value


def _best_opening(
    means: RowMeans, candidates: Mask, rng: np.random.Generator
) -> tuple[Cell, float]:
    """Return the first cell of a task: the better one of the best pair of leading checkpoints, by
    the knowledge gradient of y_aj - y_bj.

    To the model, tasks without cells differ in weight and cost only; one of those with most weight
    per cost is drawn. If failed cells leave no task with a pair, return the best single cell.
    """
    table, contenders = means.table, means.contenders
    paired = candidates[contenders].sum(axis=0) >= 2
    if not paired.any():
        return _best_cell(means, candidates)
    worth = np.where(paired, table.weights * table.scales / table.costs, -np.inf)
    column = int(rng.choice(np.flatnonzero(worth == worth.max())))
    ahead = contenders[np.argsort(means.behind[contenders], kind="stable")]
    rows = ahead[candidates[ahead, column]][: NUMBERS.max_paired_rows]
    # The first of a pair is ahead of the second.
    first, second = np.triu_indices(len(rows), 1)
    slopes = means.pair_slopes(rows, column, contenders)[first, second]
    costs = np.full(len(first), 2.0 * table.costs[column])
    best, value = best_by_knowledge_gradient(means.measured[contenders], slopes, costs)
    return (int(rows[first[best]]), column), value


def log_sum_improvement(sums: Array, spread: Array) -> Array:
    """Return log[(S_i - S*) Phi(u) + sigma_ij phi(u)] (K, J), u = (S_i - S*) / sigma_ij, for sums
    (K,) and spread (K, J): the improvement on the best sum if only the score on task j is uncertain.
    """
    return log_expected_improvement(-sums[:, None], spread, np.asarray(-sums.max()))


def choose_improvement(
    means: RowMeans, candidates: Mask, rng: np.random.Generator
) -> tuple[Cell, float]:
    """Choose the cell with the largest modified expected improvement: S_i = sum_j w_j mu_ij, with
    standard deviation w_j sigma_ij."""
    table = means.table
    sums = means.fitted.mean() @ table.weights
    variance = np.maximum(means.cell_variance - means.posterior.noise, 1e-12)
    spread = np.sqrt(variance) * means.posterior.weights
    values = log_sum_improvement(sums, spread) - np.log(table.costs)
    masked = np.where(candidates & ~np.isnan(values), values, -np.inf)
    row, column = np.unravel_index(int(np.argmax(masked)), masked.shape)
    if not candidates[row, column]:
        # Every value is minus infinity: take any candidate.
        row, column = np.argwhere(candidates)[0]
    return (int(row), int(column)), float(values[row, column])


def choose_top_two(
    means: RowMeans, candidates: Mask, rng: np.random.Generator
) -> tuple[Cell, float]:
    """Choose the cell that tells most about the difference of two rows, each the best of a joint
    draw of the measured means."""
    contenders = means.contenders
    centre, covariance = means.measured[contenders], means.covariance_of(contenders)
    pair = contenders[np.sort(_two_best_rows(centre, covariance, rng))]
    rows, columns, slopes = means.screen(candidates, pair)
    explained = np.square(slopes[:, 0] - slopes[:, 1]) / means.table.costs[columns]
    best = int(np.argmax(explained))
    value = float(np.log(np.maximum(explained[best], 1e-300)))
    return (int(rows[best]), int(columns[best])), value


def _two_best_rows(centre: Array, covariance: Array, rng: np.random.Generator) -> list[int]:
    """Return the best row of one draw, and the best of the first further draw that has another;
    without one, the runner-up by mean."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = rng.standard_normal((NUMBERS.top_two_draws + 1, len(centre)))
    winners = np.argmax(centre + draws @ root.T, axis=1)
    first = int(winners[0])
    others = winners[winners != first]
    if len(others):
        return [first, int(others[0])]
    rest = np.where(np.arange(len(centre)) == first, -np.inf, centre)
    return [first, int(np.argmax(rest))]


def choose_random(means: None, candidates: Mask, rng: np.random.Generator) -> tuple[Cell, float]:
    """Choose any candidate, each with the same probability."""
    rows, columns = np.nonzero(candidates)
    pick = int(rng.integers(len(rows)))
    return (int(rows[pick]), int(columns[pick])), 0.0


@dataclass(frozen=True)
class SelectionMethod:
    """One method. Without a ``model`` the answer is read off the table; without a ``choice`` no
    cell is asked for after the start."""

    name: str
    model: GridModel | None
    start: Start | None
    choice: Choice | None
    coordinate: str = "sqrt"
    """The coordinate of the rows for the model, see `positions`."""
    opens: int = 0
    """Every so many cells one must go to a task without cells; 0 for never."""
    blind: bool = False
    """True if the choice does not look at the model."""
    judge: str = ""
    """The method whose model states the confidence instead of its own."""

    def grid_model(self, table: ScoreTable) -> GridModel | None:
        """Return the model for a table: rows without an order have independent effects."""
        if self.model is not None and table.steps is None:
            return RowEffects()
        return self.model


METHODS = {
    method.name: method
    for method in (
        SelectionMethod("kg", SharedCurve(), quarter_start, choose_knowledge_gradient, opens=3),
        SelectionMethod("ei", SharedCurve(), quarter_start, choose_improvement, opens=3),
        SelectionMethod("top-two", SharedCurve(), quarter_start, choose_top_two, opens=3),
        SelectionMethod("random", SharedCurve(), None, choose_random, blind=True),
        SelectionMethod("independent", TaskCurves(), two_per_task, choose_improvement),
        SelectionMethod(
            "ei-icm", Coregional(), two_per_task, choose_improvement, coordinate="rank", judge="kg"
        ),
        SelectionMethod("stride", None, None, None),
        SelectionMethod("last", None, None, None),
    )
}


PUBLISHED: dict[str, JsonObject] = {
    "kg": {"opens": 0},
    "ei": {"opens": 0},
    "top-two": {"opens": 0},
    "ei-icm": {"rank": "full", "coordinate": "step", "levels": False},
}
"""Settings that come nearest to the paper of each method: ``ei-icm:published``."""


SETTINGS: dict[str, tuple[Callable[[object], bool], str]] = {
    "coordinate": (COORDINATES.__contains__, f"one of {', '.join(COORDINATES)}"),
    "rank": (
        lambda given: given == "full" or is_whole(given, 1),
        "a whole number of at least 1, or 'full'",
    ),
    "diagonal": (lambda given: isinstance(given, bool), "true or false"),
    "levels": (lambda given: isinstance(given, bool), "true or false"),
    "opens": (lambda given: is_whole(given, 0), "a whole number, 0 for never"),
}
"""The values that each setting takes, and the rule in words."""

ICM_SETTINGS = ("rank", "diagonal", "levels")
"""The settings of the coregionalisation model."""


def find_method(name: str, settings: JsonObject | None = None) -> SelectionMethod:
    """Return the method of this name with these settings; "auto" is the default method.

    >>> find_method("ei-icm", {"rank": "full", "coordinate": "log"}).model
    Coregional(rank='full', diagonal=False, levels=True)
    """
    # Papers write EI-ICM.
    name = name.lower()
    if name != "auto" and name not in METHODS:
        raise MethodError(f"no method {name!r} selects checkpoints; there are {', '.join(METHODS)}")
    method = METHODS["kg" if name == "auto" else name]
    if not settings:
        return method
    given: dict[str, Any] = {**settings}
    model = method.model
    icm = ICM_SETTINGS if isinstance(model, Coregional) else ()
    valid = [*["coordinate"] * (model is not None), *icm, *["opens"] * bool(method.opens)]
    if method.name in PUBLISHED and isinstance(given.get("published"), bool):
        given = {**(PUBLISHED[method.name] if given.pop("published") else {}), **given}
    for key, value in given.items():
        if key not in valid:
            raise MethodError(
                f"method {method.name!r} has no setting {key!r} for checkpoints; its settings:"
                f" {', '.join(valid) or 'none'}"
            )
        allowed, rule = SETTINGS[key]
        if not allowed(value):
            raise MethodError(f"{key} is {value!r}; it must be {rule}")
    if isinstance(model, Coregional):
        model = replace(model, **{key: given.pop(key) for key in icm if key in given})
    return replace(method, model=model, **given)


def chosen_method(
    name: str, settings: JsonObject, ordered: bool, answer: str = "measured"
) -> SelectionMethod:
    """Return the method that a user chose; raise `MethodError` for what would have no effect: a
    smooth answer without a model, and settings of curves for rows without an order."""
    method = find_method(name, settings)
    if answer == "smooth" and method.model is None:
        raise MethodError(
            f"answer is 'smooth', and method {name!r} has no model of a curve; use answer='measured',"
            " or the method 'kg'"
        )
    curves = {*ICM_SETTINGS, "coordinate"}
    idle = [key for key in settings if key in curves]
    if settings.get("published") is True and curves.issuperset(PUBLISHED.get(method.name, {"": 0})):
        idle.append("published")
    if idle and not ordered:
        raise MethodError(
            f"setting {idle[0]!r} has no effect on rows without an order, which have independent"
            " effects instead of curves; leave it out"
        )
    return method


def positions(table: ScoreTable, coordinate: str, between: Array | None = None) -> Array:
    """Return where the rows (K,), or steps ``between`` them (S,), lie for the model: at their step,
    its square root, its logarithm, or their place in the run ("rank").

    The logarithm is that of the step plus two percent of the last one, so that step 0 has a place.
    """
    steps = np.arange(table.shape[0], dtype=np.float64) if table.steps is None else table.steps
    at = steps if between is None else between
    match coordinate:
        case "rank":
            ranks = np.argsort(np.argsort(steps, kind="stable")).astype(np.float64)
            order = np.argsort(steps, kind="stable")
            return ranks if between is None else np.interp(at, steps[order], ranks[order])
        case "log":
            return np.asarray(np.log(at + (NUMBERS.log_offset * float(steps.max()) or 1.0)))
        case "step":
            return np.asarray(at, dtype=np.float64)
    return np.asarray(np.sqrt(at))
