"""What a fitted grid says about the mean score of each checkpoint, which is all that selecting is
about.

Two means are kept apart:

    measured     T_k = sum_j w_j (y_kj if measured, else f_kj + e_kj): what a complete table would
                 say
    underlying   S_k = sum_j w_j (m_j + smooth g(k) + h_j(k)): the curve without the luck of single
                 checkpoints

Measuring a cell c = (i, j) moves the measured means by b_k(c) Z, with

    b_k(c) = [sum over open cells (k, j') of w_j' Cov(f_kj', f_c) + 1(k = i) w_j sigma_j^2] / sqrt(Var f_c + sigma_j^2).

A cell under evaluation (`RowMeans.with_cell`) changes no mean, and every covariance as its score
will, whatever that is:

    Cov(A, B | y_c) = Cov(A, B) - Cov(A, y_c) Cov(y_c, B) / Var y_c.

So cells in progress and batches cost one such correction each, not another factorisation.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scrimp.selection.score_table import Cell, Mask, ScoreTable
from scrimp.selection.task_grid import FittedTaskGrid
from scrimp.selection.task_grid_algebra import GridCombination
from scrimp.selection.task_grid_cells import Index
from scrimp.selection.task_grid_separable import SeparableCombination
from scrimp.surrogates.surrogate import Array

__all__ = ["RowMeans", "TablePosterior"]

_HOPELESS = 5.0  # standard deviations behind the best mean at which a row is left out
_FEWEST = 8
_SCREEN = 150_000  # covariances looked at in screening
_ROUNDING = (
    1e-4  # variance, in model units, below which repeated downdates would magnify rounding errors
)
_LEAST_VARIANCE = 0.05  # of a task's first cell, in model units, once its level is set aside


@dataclass(frozen=True)
class TablePosterior:
    """What the measured scores alone say; shared by all `RowMeans` that start from it."""

    table: ScoreTable
    fitted: FittedTaskGrid

    @cached_property
    def measured(self) -> Array:
        """E T_k (K,)."""
        return np.asarray(
            np.where(self.table.seen, self.table.scores, self.fitted.mean()) @ self.table.weights
        )

    @cached_property
    def noise(self) -> Array:
        """Noise variance of a cell that is still to be measured, per task (J,), in model units.

        Its known part is taken to be that of the task's cells so far, in a task without a cell that
        of all cells.
        """
        cells = self.fitted.solution.cells
        known = (cells.noise * cells.mask).sum(1)
        usual = known.sum() / max(int(cells.counts.sum()), 1)
        known = np.where(cells.counts > 0, known / np.maximum(cells.counts, 1), usual)
        return np.asarray(self.fitted.solution.prior.noise + known)

    @cached_property
    def open_weights(self) -> Array:
        """(K, J): how much of T_k each open cell carries, per model unit; zero where measured."""
        weights = self.table.weights * self.table.scales * self.fitted.units.unit
        return np.where(self.table.seen, 0.0, weights)

    @cached_property
    def combination(self) -> GridCombination | SeparableCombination:
        """The open part of T as a combination of the grid's functions."""
        return self.fitted.solution.combination(self.open_weights)

    @cached_property
    def apart(self) -> Array:
        """Var(T_k - T_best) (K,)."""
        best = int(np.argmax(self.measured))
        luck = np.square(self.open_weights) @ self.noise
        return np.asarray(self.combination.variance_of_difference(best) + luck + luck[best])

    @cached_property
    def likeliest(self) -> Index:
        """The rows on which all cells are screened: the contenders, or as many of the best as keeps
        the work bounded."""
        behind = _behind(self.measured, self.apart)
        bound = max(_SCREEN // max(int((~self.table.seen).sum()), 1), 16)
        return _closest(behind, min(bound, _in_the_running(behind)))

    @cached_property
    def covariance_with_likeliest(self) -> Array:
        """Cov(f_ij, T) of all cells with these rows (J, K, k)."""
        return self.combination.covariance_with_cells(self.likeliest)

    @cached_property
    def score_variance(self) -> Array:
        """Var y of every cell (K, J), in model units."""
        return self.fitted.solution.variance + self.noise


@dataclass(frozen=True)
class RowMeans:
    """Posterior of the row means, with m cells under evaluation: ``to_rows`` (m, K) and
    ``to_cells`` (m, K, J) hold their covariances with the row means and with all scores, each given
    those before it, per standard deviation of its score.
    """

    posterior: TablePosterior
    known: Mask  # (K, J): measured or under evaluation
    to_rows: Array
    to_cells: Array

    @classmethod
    def of(cls, table: ScoreTable, fitted: FittedTaskGrid) -> "RowMeans":
        """The row means when nothing is under evaluation."""
        return cls(
            TablePosterior(table, fitted),
            table.seen,
            np.zeros((0, table.shape[0])),
            np.zeros((0, *table.shape)),
        )

    def with_cell(self, cell: Cell) -> "RowMeans":
        """The same with one more cell under evaluation."""
        row, column = cell
        posterior = self.posterior
        here = self.to_cells[:, row, column]
        to_cells = posterior.fitted.solution.covariance_with_cell(row, column)
        to_cells[row, column] += posterior.noise[column]
        to_cells -= np.tensordot(here, self.to_cells, axes=1)
        spread = np.sqrt(max(to_cells[row, column], posterior.noise[column], _ROUNDING))
        everything = np.arange(len(self.measured))
        to_rows = self.covariance_with(np.array([row]), np.array([column]), everything)[0]
        known = self.known.copy()
        known[cell] = True
        return RowMeans(
            posterior,
            known,
            np.concatenate([self.to_rows, to_rows[None] / spread]),
            np.concatenate([self.to_cells, to_cells[None] / spread]),
        )

    @property
    def table(self) -> ScoreTable:
        """The scores it rests on."""
        return self.posterior.table

    @property
    def fitted(self) -> FittedTaskGrid:
        """The model it rests on."""
        return self.posterior.fitted

    @property
    def measured(self) -> Array:
        """E T_k (K,)."""
        return self.posterior.measured

    @cached_property
    def underlying(self) -> Array:
        """E S_k (K,)."""
        return np.asarray(self.fitted.mean(smooth=True) @ self.table.weights)

    @cached_property
    def behind(self) -> Array:
        """(K,): standard deviations by which each row lies behind the best mean; -1 for the best
        itself."""
        best = int(np.argmax(self.measured))
        told = np.square(self.to_rows - self.to_rows[:, best, None]).sum(0)
        return _behind(self.measured, self.posterior.apart - told)

    @cached_property
    def contenders(self) -> Index:
        """Rows that may still turn out best: less than five standard deviations behind, and at
        least eight of them."""
        return _closest(self.behind, _in_the_running(self.behind))

    @cached_property
    def covariance(self) -> Array:
        """Cov(T) over the contenders (k, k)."""
        return self.covariance_of(self.contenders)

    def covariance_of(self, chosen: Index) -> Array:
        """Cov(T) over the ``chosen`` rows (k, k)."""
        luck = np.square(self.posterior.open_weights[chosen]) @ self.posterior.noise
        moved = self.to_rows[:, chosen]
        return np.asarray(
            self.posterior.combination.covariance(chosen) + np.diag(luck) - moved.T @ moved
        )

    @cached_property
    def cell_variance(self) -> Array:
        """Var y of every cell (K, J) in model units; a task without a cell counts as if its level
        were known.

        Otherwise the first cell of a task would look worthless: all of its news would be about the
        level.
        """
        variance = np.maximum(
            self.posterior.score_variance - np.square(self.to_cells).sum(0), self.posterior.noise
        )
        fresh = np.flatnonzero(~self.known.any(axis=0))
        smallest = self.posterior.noise[fresh] + _LEAST_VARIANCE
        variance[:, fresh] = np.maximum(variance[:, fresh] - self.fitted.units.level, smallest)
        return np.asarray(variance)

    def screen(self, candidates: Mask) -> tuple[Index, Index, Array]:
        """b_k(c) of all candidate cells (K, J) on the likeliest rows: the cells' rows (C,), columns
        (C,), slopes (C, k)."""
        return self._slopes(
            candidates, self.posterior.covariance_with_likeliest, self.posterior.likeliest
        )

    def slopes_on(self, candidates: Mask, chosen: Index) -> tuple[Index, Index, Array]:
        """The same on the ``chosen`` rows."""
        return self._slopes(
            candidates, self.posterior.combination.covariance_with_cells(chosen), chosen
        )

    def _slopes(self, candidates: Mask, whole: Array, chosen: Index) -> tuple[Index, Index, Array]:
        columns, rows = np.nonzero(candidates.T)
        covariance = self._given_plan(whole[columns, rows], rows, columns, chosen)
        covariance /= np.sqrt(self.cell_variance[rows, columns])[:, None]
        return rows, columns, covariance

    def slopes_of(self, rows: Index, columns: Index, chosen: Index) -> Array:
        """b_k(c) of a few cells on the ``chosen`` rows (C, k)."""
        return np.asarray(
            self.covariance_with(rows, columns, chosen)
            / np.sqrt(self.cell_variance[rows, columns])[:, None]
        )

    def pair_slopes(self, rows: Index, column: int, chosen: Index) -> Array:
        """What y_aj - y_bj tells of the ``chosen`` rows, for all pairs a, b of ``rows`` in one task
        (R, R, k); zero for a = b.

        In a task without a cell the level is all that the difference leaves out.
        """
        solution = self.fitted.solution
        scores = np.stack(
            [solution.covariance_with_cell(int(row), column)[rows, column] for row in rows]
        )
        scores -= self.to_cells[:, rows, column].T @ self.to_cells[:, rows, column]
        variance = np.diag(scores) + self.posterior.noise[column]
        apart = np.maximum(
            variance[:, None] + variance - 2.0 * scores, 2.0 * self.posterior.noise[column]
        )
        moves = self.covariance_with(rows, np.full(len(rows), column), chosen)
        return np.asarray((moves[:, None] - moves) / np.sqrt(apart)[:, :, None])

    def covariance_with(self, rows: Index, columns: Index, chosen: Index) -> Array:
        """Cov(y_c, T_k) of a few cells with the ``chosen`` rows (C, k)."""
        return self._given_plan(
            self.posterior.combination.covariance_with(chosen, rows, columns), rows, columns, chosen
        )

    def _given_plan(self, covariance: Array, rows: Index, columns: Index, chosen: Index) -> Array:
        """Add the luck of each cell where it belongs to the row, and take off what the cells under
        evaluation will tell."""
        place = np.minimum(np.searchsorted(chosen, rows), len(chosen) - 1)
        own = np.flatnonzero(chosen[place] == rows)
        luck = (
            self.posterior.open_weights[rows[own], columns[own]]
            * self.posterior.noise[columns[own]]
        )
        covariance[own, place[own]] += luck
        if len(self.to_rows):
            covariance -= self.to_cells[:, rows, columns].T @ self.to_rows[:, chosen]
        return covariance


def _behind(means: Array, apart: Array) -> Array:
    """Standard deviations behind the best mean (K,), -1 for the best, given the variances of the
    differences to it."""
    best = int(np.argmax(means))
    behind = (means[best] - means) / np.sqrt(np.maximum(apart, 1e-300))
    behind[best] = -1.0
    return np.asarray(behind)


def _in_the_running(behind: Array) -> int:
    """How many rows lie less than five standard deviations behind, at least eight."""
    return max(int((behind < _HOPELESS).sum()), _FEWEST)


def _closest(behind: Array, count: int) -> Index:
    """The ``count`` rows least far behind, in ascending order."""
    return np.sort(np.argsort(behind, kind="stable")[:count])
