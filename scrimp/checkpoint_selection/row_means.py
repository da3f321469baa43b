"""The posterior of every checkpoint's mean score, from a fitted grid.

There are two means:

    measured     T_k = sum_j w_j z_kj with z_kj = f_kj + e_kj, the score that a benchmark repeats: the
                 mean of a complete table without sampling error
    underlying   S_k = sum_j w_j (m_j + smooth g(k) + h_j(k)): the curve without the deviations of
                 single checkpoints

A score y = z + N(0, s^2) has the standard error s that was told with it, or none: then z = y. Given f
and y, with the noise sigma_j^2 of the task,

    z = rho y + (1 - rho) f + N(0, rho s^2),   rho = sigma_j^2 / (sigma_j^2 + s^2),

so T is a combination of f with the weights w_j (1 - rho_kj), where rho = 0 for open cells. Measuring a
cell c = (i, j) moves the measured means by b_k(c) Z with a standard normal Z and

    b_k(c) = [sum_j' w_j' (1 - rho_kj') Cov(f_kj', f_c) + 1(k = i) w_j sigma_j^2] / sqrt(Var y_c).

A cell under evaluation (`RowMeans.with_cell`) leaves the means as they are and changes every
covariance as its score will, whatever the score is:

    Cov(A, B | y_c) = Cov(A, B) - Cov(A, y_c) Cov(y_c, B) / Var y_c.

Pending cells and batches therefore cost one correction each, not another factorisation.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scrimp.checkpoint_selection.score_table import Cell, Mask, ScoreTable
from scrimp.checkpoint_selection.selection_numbers import NUMBERS
from scrimp.checkpoint_selection.task_grid import FittedTaskGrid
from scrimp.checkpoint_selection.task_grid_algebra import GridCombination, GridSolution, Index
from scrimp.checkpoint_selection.task_grid_separable import SeparableCombination
from scrimp.surrogates.surrogate import Array


@dataclass(frozen=True)
class GivenScores:
    """The posterior given the measured scores alone; all `RowMeans` of one table share it."""

    table: ScoreTable
    fitted: FittedTaskGrid

    @cached_property
    def sampling_variance(self) -> Array:
        """s^2 of every measured cell (K, J) in model units, 0 if no standard error counts."""
        cells = self.fitted.solution.cells
        tasks, places = np.nonzero(cells.mask)
        variance = np.zeros(self.table.shape)
        variance[cells.rows[tasks, places], tasks] = cells.noise[tasks, places]
        return variance

    @cached_property
    def score_share(self) -> Array:
        """rho (K, J): the share of a measured score in the posterior of z, 0 for open cells."""
        noise = self.fitted.solution.prior.noise
        return np.where(self.table.seen, noise / (noise + self.sampling_variance), 0.0)

    @cached_property
    def true_mean(self) -> Array:
        """E z of every cell (K, J)."""
        share, mean = self.score_share, self.fitted.mean()
        kept = share * self.table.scores + (1.0 - share) * mean
        return np.where(self.table.seen, kept, mean)

    @cached_property
    def true_variance(self) -> Array:
        """Var z of every cell (K, J), in model units."""
        share, noise = self.score_share, self.fitted.solution.prior.noise
        left = np.where(self.table.seen, share * self.sampling_variance, noise)
        return np.square(1.0 - share) * self.fitted.solution.variance + left

    @cached_property
    def measured(self) -> Array:
        """E T_k (K,)."""
        return np.asarray(self.true_mean @ self.table.weights)

    @cached_property
    def row_noise(self) -> Array:
        """The variance of T_k given f (K,), from open cells and from sampling error."""
        unseen = np.where(self.table.seen, 0.0, self.weights)
        left = np.square(self.weights) * self.score_share * self.sampling_variance
        return np.asarray(np.square(unseen) @ self.fitted.solution.prior.noise + left.sum(1))

    @cached_property
    def noise(self) -> Array:
        """Noise variance of a score yet to be measured, per task (J,), in model units.

        Its sampling variance is the average over the task's cells so far; for a task without cells,
        over all cells.
        """
        cells = self.fitted.solution.cells
        known = (cells.noise * cells.mask).sum(1)
        usual = known.sum() / max(int(cells.counts.sum()), 1)
        known = np.where(cells.counts > 0, known / np.maximum(cells.counts, 1), usual)
        return np.asarray(self.fitted.solution.prior.noise + known)

    @cached_property
    def weights(self) -> Array:
        """w_j per model unit (J,)."""
        return np.asarray(self.table.weights * self.table.scales * self.fitted.units.unit)

    @cached_property
    def open_weights(self) -> Array:
        """w_j (1 - rho_kj) per model unit (K, J): the weight of f in T_k."""
        return np.asarray(self.weights * (1.0 - self.score_share))

    @cached_property
    def combination(self) -> GridCombination | SeparableCombination:
        """The part of T that depends on f, as a combination of the grid's functions."""
        return self.fitted.solution.combination(self.open_weights)

    @cached_property
    def difference_variance(self) -> Array:
        """Var(T_k - T_best) (K,)."""
        best = int(np.argmax(self.measured))
        noise = self.row_noise
        return np.asarray(self.combination.variance_of_difference(best) + noise + noise[best])

    @cached_property
    def screening_rows(self) -> Index:
        """The rows on which all cells are screened: the contenders, or the best of too many."""
        behind = _deviations_behind(self.measured, self.difference_variance)
        bound = NUMBERS.max_screened_covariances // max(int((~self.table.seen).sum()), 1)
        count = min(max(bound, NUMBERS.min_screening_rows), _contender_count(behind))
        return _closest(behind, count)

    @cached_property
    def screening_covariance(self) -> Array:
        """Cov(f_ij, T) of all cells with the screening rows (J, K, k)."""
        return self.combination.covariance_with_cells(self.screening_rows)


@dataclass(frozen=True)
class RowMeans:
    """The posterior of the row means with m cells under evaluation.

    ``to_rows`` (m, K) and ``to_cells`` (m, K, J) are the covariances of these cells with the row
    means and with all scores, each given the cells before it, per standard deviation of its score.
    """

    posterior: GivenScores
    known: Mask  # (K, J): measured or under evaluation
    to_rows: Array
    to_cells: Array

    @classmethod
    def of(cls, table: ScoreTable, fitted: FittedTaskGrid) -> "RowMeans":
        """Return the row means with nothing under evaluation."""
        given = GivenScores(table, fitted)
        return cls(given, table.seen, np.zeros((0, table.shape[0])), np.zeros((0, *table.shape)))

    def with_cell(self, cell: Cell) -> "RowMeans":
        """Return the row means with one more cell under evaluation."""
        row, column = cell
        posterior = self.posterior
        here = self.to_cells[:, row, column]
        to_cells = posterior.fitted.solution.covariance_with_cell(row, column)
        to_cells[row, column] += posterior.noise[column]
        to_cells -= np.tensordot(here, self.to_cells, axes=1)
        variance = max(to_cells[row, column], posterior.noise[column])
        spread = np.sqrt(max(variance, NUMBERS.min_downdate_variance))
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
        """The scores so far."""
        return self.posterior.table

    @property
    def fitted(self) -> FittedTaskGrid:
        """The fitted model."""
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
    def underlying_covariance(self) -> Array:
        """Cov(S) (K, K)."""
        fitted, (size, _) = self.fitted, self.table.shape
        weights = np.tile(self.posterior.weights, (size, 1))
        if fitted.smooth_covariance is None:
            return fitted.solution.combination(weights).covariance(np.arange(size))
        # A further row at the same place has the same smooth curve and another jitter, which is
        # subtracted.
        twins = fitted.extended(fitted.data.positions)
        both = np.concatenate([np.zeros(weights.shape), weights])
        covariance = twins.solution.combination(both).covariance(np.arange(size, 2 * size))
        assert isinstance(fitted.solution, GridSolution)
        jitter = np.diag(fitted.solution.prior.shared) - np.diag(fitted.smooth_covariance)
        return covariance - np.diag(np.square(weights.sum(1)) * jitter)

    @cached_property
    def behind(self) -> Array:
        """Standard deviations by which each row lies behind the best mean (K,); -1 for the best."""
        best = int(np.argmax(self.measured))
        explained = np.square(self.to_rows - self.to_rows[:, best, None]).sum(0)
        variance = self.posterior.difference_variance - explained
        return _deviations_behind(self.measured, variance)

    @cached_property
    def contenders(self) -> Index:
        """Rows less than five standard deviations behind the best mean, and at least eight."""
        return _closest(self.behind, _contender_count(self.behind))

    def covariance_of(self, chosen: Index) -> Array:
        """Return Cov(T) over the ``chosen`` rows (k, k)."""
        noise = np.diag(self.posterior.row_noise[chosen])
        moved = self.to_rows[:, chosen]
        return np.asarray(self.posterior.combination.covariance(chosen) + noise - moved.T @ moved)

    @cached_property
    def cell_variance(self) -> Array:
        """Var y of every cell (K, J) in model units, with the level of a task without cells taken
        as known.

        Otherwise the first cell of a task would look worthless: all it tells would be the level.
        """
        noise = self.posterior.noise
        whole = self.fitted.solution.variance + noise
        variance = np.maximum(whole - np.square(self.to_cells).sum(0), noise)
        fresh = np.flatnonzero(~self.table.opened(self.known))
        smallest = noise[fresh] + NUMBERS.min_first_cell_variance
        variance[:, fresh] = np.maximum(variance[:, fresh] - self.fitted.units.level, smallest)
        return np.asarray(variance)

    def screen(self, candidates: Mask, chosen: Index | None = None) -> tuple[Index, Index, Array]:
        """Return the rows (C,) and columns (C,) of all candidate cells (K, J), and their slopes
        b_k(c) on the ``chosen`` rows (C, k), by default the screening rows."""
        given = self.posterior
        if chosen is None:
            chosen, whole = given.screening_rows, given.screening_covariance
        else:
            whole = given.combination.covariance_with_cells(chosen)
        columns, rows = np.nonzero(candidates.T)
        covariance = self._given_pending(whole[columns, rows], rows, columns, chosen)
        covariance /= np.sqrt(self.cell_variance[rows, columns])[:, None]
        return rows, columns, covariance

    def slopes_of(self, rows: Index, columns: Index, chosen: Index) -> Array:
        """Return b_k(c) of a few cells on the ``chosen`` rows (C, k)."""
        spread = np.sqrt(self.cell_variance[rows, columns])[:, None]
        return np.asarray(self.covariance_with(rows, columns, chosen) / spread)

    def pair_slopes(self, rows: Index, column: int, chosen: Index) -> Array:
        """Return the slopes of y_aj - y_bj on the ``chosen`` rows, for all pairs a, b of ``rows``
        in one task (R, R, k); zero for a = b.

        In a task without cells the difference leaves out nothing but the level.
        """
        solution = self.fitted.solution
        cells = (solution.covariance_with_cell(int(row), column) for row in rows)
        scores = np.stack([covariance[rows, column] for covariance in cells])
        scores -= self.to_cells[:, rows, column].T @ self.to_cells[:, rows, column]
        noise = self.posterior.noise[column]
        variance = np.diag(scores) + noise
        apart = np.maximum(variance[:, None] + variance - 2.0 * scores, 2.0 * noise)
        moves = self.covariance_with(rows, np.full(len(rows), column), chosen)
        return np.asarray((moves[:, None] - moves) / np.sqrt(apart)[:, :, None])

    def covariance_with(self, rows: Index, columns: Index, chosen: Index) -> Array:
        """Return Cov(y_c, T_k) of a few cells with the ``chosen`` rows (C, k)."""
        covariance = self.posterior.combination.covariance_with(chosen, rows, columns)
        return self._given_pending(covariance, rows, columns, chosen)

    def _given_pending(
        self, covariance: Array, rows: Index, columns: Index, chosen: Index
    ) -> Array:
        """Add the noise of each cell to its own row, and subtract what the cells under evaluation
        will explain."""
        place = np.minimum(np.searchsorted(chosen, rows), len(chosen) - 1)
        own = np.flatnonzero(chosen[place] == rows)
        weights = self.posterior.open_weights[rows[own], columns[own]]
        covariance[own, place[own]] += weights * self.fitted.solution.prior.noise[columns[own]]
        if len(self.to_rows):
            covariance -= self.to_cells[:, rows, columns].T @ self.to_rows[:, chosen]
        return covariance


def _deviations_behind(means: Array, variance: Array) -> Array:
    """Return the standard deviations behind the best mean (K,), -1 for the best, given the
    variances of the differences to it."""
    best = int(np.argmax(means))
    behind = (means[best] - means) / np.sqrt(np.maximum(variance, 1e-300))
    behind[best] = -1.0
    return np.asarray(behind)


def _contender_count(behind: Array) -> int:
    return max(int((behind < NUMBERS.max_deviations_behind).sum()), NUMBERS.min_contenders)


def _closest(behind: Array, count: int) -> Index:
    """Return the ``count`` rows that are least far behind, in ascending order."""
    return np.sort(np.argsort(behind, kind="stable")[:count])
