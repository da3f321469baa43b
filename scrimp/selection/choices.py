"""How the next cell is chosen, given what the model says about the row means: one function per
acquisition.

Each takes the `RowMeans` (None for a blind choice), the candidate cells (K, J) and a generator, and
gives a cell with the logarithm of its value per unit cost.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from scrimp.acquisition.improvement import log_expected_improvement
from scrimp.acquisition.knowledge_gradient import best_by_knowledge_gradient, shortlist
from scrimp.selection.row_means import RowMeans
from scrimp.selection.score_table import Cell, Mask
from scrimp.surrogates.surrogate import Array

__all__ = [
    "Choice",
    "choose_improvement",
    "choose_knowledge_gradient",
    "choose_random",
    "choose_top_two",
    "log_sum_improvement",
]

_PAIRED = 6  # checkpoints whose pairs may open a task

Choice = Callable[[Any, Mask, np.random.Generator], tuple[Cell, float]]


def choose_knowledge_gradient(
    means: RowMeans, candidates: Mask, rng: np.random.Generator
) -> tuple[Cell, float]:
    """The cell with the largest knowledge gradient on the measured mean, per unit cost; in a task
    without a cell, of a pair.

    One cell of a new task tells its level, which no checkpoint gains from; a second one tells two
    checkpoints apart. So new tasks are valued by pairs of cells, at the cost of two, and the better
    checkpoint of the best pair is measured first.
    """
    begun = means.known.any(axis=0)
    options = []
    if (candidates & begun).any():
        options.append(_best_cell(means, candidates & begun))
    if (candidates & ~begun).any():
        options.append(_best_opening(means, candidates & ~begun, rng))
    return max(options, key=lambda option: option[1])


def _best_cell(means: RowMeans, candidates: Mask) -> tuple[Cell, float]:
    """The cell with the largest knowledge gradient per unit cost.

    All cells are screened, on the likeliest rows alone where the grid is large; the shortlist is
    valued exactly on all rows.
    """
    contenders = means.contenders
    rows, columns, slopes = means.screen(candidates)
    kept = shortlist(means.measured[means.posterior.likeliest], slopes, means.table.costs[columns])
    rows, columns = rows[kept], columns[kept]
    slopes = means.slopes_of(rows, columns, contenders)
    best, value = best_by_knowledge_gradient(
        means.measured[contenders], slopes, means.table.costs[columns]
    )
    return (int(rows[best]), int(columns[best])), value


def _best_opening(
    means: RowMeans, candidates: Mask, rng: np.random.Generator
) -> tuple[Cell, float]:
    """The first cell of a task: of the best pair of the checkpoints that are closest to winning, by
    the KG of y_aj - y_bj.

    To the model all such tasks are alike but for weight and cost; one of those with most weight per
    cost is drawn. Failed cells may leave no task with a pair; then it is the best single cell.
    """
    table, contenders = means.table, means.contenders
    paired = candidates[contenders].sum(axis=0) >= 2
    if not paired.any():
        return _best_cell(means, candidates)
    worth = np.where(paired, table.weights * table.scales / table.costs, -np.inf)
    column = int(rng.choice(np.flatnonzero(worth == worth.max())))
    ahead = contenders[np.argsort(means.behind[contenders], kind="stable")]
    rows = ahead[candidates[ahead, column]][:_PAIRED]
    first, second = np.triu_indices(len(rows), 1)  # the first is ahead of the second
    slopes = means.pair_slopes(rows, column, contenders)[first, second]
    costs = np.full(len(first), 2.0 * table.costs[column])
    best, value = best_by_knowledge_gradient(means.measured[contenders], slopes, costs)
    return (int(rows[first[best]]), column), value


def log_sum_improvement(sums: Array, spread: Array) -> Array:
    """log of (S_i - S*) Phi(u) + sigma_ij phi(u), u = (S_i - S*) / sigma_ij, for sums (K,) and
    spread (K, J).

    The expected improvement of a checkpoint's sum over the best sum, when only the score on task j
    is uncertain.
    """
    return log_expected_improvement(-sums[:, None], spread, np.asarray(-sums.max()))


def choose_improvement(
    means: RowMeans, candidates: Mask, rng: np.random.Generator
) -> tuple[Cell, float]:
    """The cell with the largest modified expected improvement: S_i = sum_j w_j mu_ij, spread w_j
    sigma_ij."""
    weights = means.table.weights
    sums = means.fitted.mean() @ weights
    variance = np.maximum(means.cell_variance - means.posterior.noise, 1e-12)
    spread = np.sqrt(variance) * (weights * means.table.scales * means.fitted.units.unit)
    return _largest(log_sum_improvement(sums, spread) - np.log(means.table.costs), candidates)


def choose_top_two(
    means: RowMeans, candidates: Mask, rng: np.random.Generator
) -> tuple[Cell, float]:
    """Two rows, each the best of a joint draw of the measured means; the cell that tells most about
    their difference."""
    centre = means.measured[means.contenders]
    pair = means.contenders[np.sort(_two_best_rows(centre, means.covariance, rng))]
    rows, columns, slopes = means.slopes_on(candidates, pair)
    news = np.square(slopes[:, 0] - slopes[:, 1]) / means.table.costs[columns]
    best = int(np.argmax(news))
    return (int(rows[best]), int(columns[best])), float(np.log(np.maximum(news[best], 1e-300)))


def choose_random(means: None, candidates: Mask, rng: np.random.Generator) -> tuple[Cell, float]:
    """Any candidate, all alike."""
    rows, columns = np.nonzero(candidates)
    pick = int(rng.integers(len(rows)))
    return (int(rows[pick]), int(columns[pick])), 0.0


def _two_best_rows(centre: Array, covariance: Array, rng: np.random.Generator) -> list[int]:
    """The best of one draw, and the best of the first of 64 further draws with another one; else
    the runner-up by mean."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    winners = np.argmax(centre + rng.standard_normal((65, len(centre))) @ root.T, axis=1)
    first = int(winners[0])
    others = winners[winners != first]
    if len(others):
        return [first, int(others[0])]
    rest = np.where(np.arange(len(centre)) == first, -np.inf, centre)
    return [first, int(np.argmax(rest))]


def _largest(values: Array, candidates: Mask) -> tuple[Cell, float]:
    masked = np.where(candidates, values, -np.inf)
    row, column = np.unravel_index(
        int(np.argmax(np.where(np.isnan(masked), -np.inf, masked))), masked.shape
    )
    if not candidates[row, column]:  # every value is -inf: any candidate
        row, column = np.argwhere(candidates)[0]
    return (int(row), int(column)), float(values[row, column])
