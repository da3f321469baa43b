"""What a fitted grid says about the mean score of each checkpoint, which is all that selecting is about.

Two means are kept apart:

    measured     T_k = sum_j w_j (y_kj if measured, else f_kj + e_kj): what a complete table would say
    underlying   S_k = sum_j w_j (m_j + smooth g(k) + h_j(k)): the curve without the luck of single checkpoints

Measuring a cell c = (i, j) moves the measured means by b_k(c) Z, with

    b_k(c) = [sum over open cells (k, j') of w_j' Cov(f_kj', f_c) + 1(k = i) w_j sigma_j^2] / sqrt(Var f_c + sigma_j^2).

A cell under evaluation counts as measured at its predicted mean: that changes no mean, and the variances as its score will.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scrimp.checkpoints.score_table import Mask, ScoreTable
from scrimp.surrogates.surrogate import Array
from scrimp.surrogates.task_grid import FittedTaskGrid
from scrimp.surrogates.task_grid_algebra import GridCombination, Index

__all__ = ["RowMeans"]

_HOPELESS = 5.0  # standard deviations behind the best mean at which a row is left out
_FEWEST = 8
_LEAST_VARIANCE = 0.05  # of a task's first cell, in model units, once its level is set aside


@dataclass(frozen=True)
class RowMeans:
    """Posterior of the row means. ``known`` (K, J) marks the measured cells and those under evaluation."""

    table: ScoreTable
    known: Mask
    fitted: FittedTaskGrid

    @cached_property
    def filled(self) -> Array:
        """The table with predictions where nothing is measured (K, J)."""
        return np.where(self.table.seen, self.table.scores, self.fitted.mean())

    @cached_property
    def measured(self) -> Array:
        """E T_k (K,)."""
        return np.asarray(self.filled @ self.table.weights)

    @cached_property
    def underlying(self) -> Array:
        """E S_k (K,)."""
        return np.asarray(self.fitted.mean(smooth=True) @ self.table.weights)

    @cached_property
    def noise(self) -> Array:
        """Noise variance of a cell that is still to be measured, per task (J,), in model units."""
        cells = self.fitted.solution.cells
        known = (cells.noise * cells.mask).sum(1) / np.maximum(cells.counts, 1)
        return np.asarray(self.fitted.solution.prior.noise + known)

    @cached_property
    def open_weights(self) -> Array:
        """(K, J): how much of T_k each open cell carries, per model unit; zero where known."""
        weights = self.table.weights * self.table.scales * self.fitted.units.unit
        return np.where(self.known, 0.0, weights)

    @cached_property
    def combination(self) -> GridCombination:
        """The open part of T as a combination of the grid's functions."""
        return self.fitted.solution.combination(self.open_weights)

    @cached_property
    def behind(self) -> Array:
        """(K,): standard deviations by which each row lies behind the best mean; -1 for the best itself."""
        best = int(np.argmax(self.measured))
        luck = np.square(self.open_weights) @ self.noise
        variance = self.combination.variance_of_difference(best) + luck + luck[best]
        behind = (self.measured[best] - self.measured) / np.sqrt(np.maximum(variance, 1e-300))
        behind[best] = -1.0
        return np.asarray(behind)

    @cached_property
    def contenders(self) -> Index:
        """Rows that may still turn out best: less than five standard deviations behind, and at least eight of them."""
        return self.closest(max(int((self.behind < _HOPELESS).sum()), _FEWEST))

    def closest(self, count: int) -> Index:
        """The ``count`` rows least far behind, in ascending order."""
        return np.sort(np.argsort(self.behind, kind="stable")[:count])

    @cached_property
    def covariance(self) -> Array:
        """Cov(T) over the contenders (k, k)."""
        luck = np.square(self.open_weights[self.contenders]) @ self.noise
        return self.combination.covariance(self.contenders) + np.diag(luck)

    @cached_property
    def cell_variance(self) -> Array:
        """Var y of every cell (K, J) in model units; a task without a cell counts as if its level were known.

        Otherwise the first cell of a task would look worthless: all of its news would be about the level.
        """
        variance = self.fitted.solution.variance + self.noise
        fresh = np.flatnonzero(self.fitted.solution.cells.counts == 0)
        smallest = self.noise[fresh] + _LEAST_VARIANCE
        variance[:, fresh] = np.maximum(variance[:, fresh] - self.fitted.units.level, smallest)
        return variance

    def slopes(self, candidates: Mask, chosen: Index) -> tuple[Index, Index, Array]:
        """b_k(c) of the candidate cells (K, J) on the ``chosen`` rows: the cells' rows (C,), columns (C,), slopes (C, k)."""
        covariance = self.combination.covariance_with_cells(chosen)  # (J, K, k)
        columns, rows = np.nonzero(candidates.T)
        return rows, columns, self._scaled(covariance[columns, rows], chosen, rows, columns)

    def slopes_of(self, rows: Index, columns: Index, chosen: Index) -> Array:
        """b_k(c) of a few cells on the ``chosen`` rows (C, k)."""
        return self._scaled(self.combination.covariance_with(chosen, rows, columns), chosen, rows, columns)

    def _scaled(self, covariance: Array, chosen: Index, rows: Index, columns: Index) -> Array:
        """Add the luck of the cell itself where it belongs to the row, and divide by the cell's standard deviation."""
        place = np.minimum(np.searchsorted(chosen, rows), len(chosen) - 1)
        own = np.flatnonzero(chosen[place] == rows)
        covariance[own, place[own]] += (self.open_weights * self.noise)[rows[own], columns[own]]
        covariance /= np.sqrt(self.cell_variance[rows, columns])[:, None]
        return covariance
