"""Exact Gaussian inference on a grid with the covariance K_x (x) K_t plus a level per task.

    y_ij = f_ij + m_j + e_ij,   Cov(f_ij, f_i'j') = K_x(i, i') K_t(j, j'),  m_j ~ N(0, level),  e_ij ~ N(0, noise_ij)

`task_grid_algebra` is fast if K_t = L L' has few columns. With a K_t of full rank, or with a
diagonal term, there are as many curves as tasks, and one Cholesky factor over the n cells seen is
cheaper, n^3 / 3 operations. Both solutions have the same methods and shapes.

    solution = SeparablePrior(curve, tasks, level, noise).solve(cells)
    solution.mean()                                                   # (K, J)
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack, solve_triangular

from scrimp.checkpoint_selection.task_grid_algebra import GridCells, Index, scatter
from scrimp.errors import NumericalError
from scrimp.surrogates.surrogate import Array


@dataclass(frozen=True)
class SeparableGradient:
    """Derivatives of -log p(y) by the parts of a `SeparablePrior`."""

    curve: Array  # (K, K)
    tasks: Array  # (J, J)
    noise: Array  # (J,)


@dataclass(frozen=True)
class SeparablePrior:
    """K_x over rows, K_t over tasks, the variance of a task's level, and noise variances."""

    curve: Array  # (K, K)
    tasks: Array  # (J, J)
    level: float
    noise: Array  # (J,)

    def solve(self, cells: GridCells) -> "SeparableSolution":
        """Return the posterior given the cells."""
        tasks, places = np.nonzero(cells.mask)
        rows, values = cells.rows[tasks, places], cells.values[tasks, places]
        covariance = self.curve[np.ix_(rows, rows)] * self.tasks[np.ix_(tasks, tasks)]
        covariance += self.level * (tasks[:, None] == tasks)
        every = np.arange(len(rows))
        covariance[every, every] += self.noise[tasks] + cells.noise[tasks, places]
        factor, info = lapack.dpotrf(covariance, lower=1)
        if info != 0 or not np.all(np.isfinite(factor)):
            raise NumericalError(
                "the covariance of the scores is not positive definite: scores must be finite numbers"
            )
        weights = np.asarray(lapack.dpotrs(factor, values, lower=1)[0]).reshape(-1)
        determinant = 2.0 * float(np.log(np.diag(factor)).sum())
        value = 0.5 * (float(values @ weights) + determinant + len(values) * np.log(2.0 * np.pi))
        return SeparableSolution(self, cells, rows, tasks, factor, weights, value)

    def between_tasks(self) -> Array:
        """Return E sum_k (f_kj - mean_j)(f_kj' - mean_j') (J, J), before any score."""
        return np.asarray(self.tasks * (np.trace(self.curve) - self.curve.sum() / len(self.curve)))


@dataclass(frozen=True)
class SeparableSolution:
    """The posterior of one `SeparablePrior` given `GridCells`; made by `SeparablePrior.solve`."""

    prior: SeparablePrior
    cells: GridCells
    rows: Index  # (n,)
    tasks: Index  # (n,)
    factor: Array  # (n, n): lower Cholesky factor of the covariance of the scores
    weights: Array  # (n,): covariance^-1 y
    negative_log_likelihood: float

    @cached_property
    def whitened(self) -> Array:
        """factor^-1 Cov(y, f) for all cells of the grid (n, K, J): Cov(f, f' | y) is Cov(f, f') minus
        the products of these."""
        curve, tasks = self.prior.curve[self.rows], self.prior.tasks[self.tasks]
        whole = curve[:, :, None] * tasks[:, None, :]
        whole[np.arange(len(self.rows)), :, self.tasks] += self.prior.level
        flat = whole.reshape(len(whole), -1)
        white = solve_triangular(self.factor, flat, lower=True, check_finite=False)
        return np.asarray(white.reshape(whole.shape))

    def mean(self, shared: Array | None = None) -> Array:
        """Return E f (K, J); all curves are smooth, so ``shared`` must be None."""
        assert shared is None
        spread = np.zeros((len(self.prior.curve), len(self.prior.tasks)))
        np.add.at(spread, (self.rows, self.tasks), self.weights)
        levels = self.prior.level * spread.sum(0)
        return np.asarray(self.prior.curve @ spread @ self.prior.tasks + levels)

    @cached_property
    def variance(self) -> Array:
        """Var f (K, J) of the noise-free function."""
        before = np.outer(np.diag(self.prior.curve), np.diag(self.prior.tasks)) + self.prior.level
        explained = np.einsum("nkj,nkj->kj", self.whitened, self.whitened)
        return np.asarray(np.maximum(before - explained, 0.0))

    def covariance_with_cell(self, row: int, task: int) -> Array:
        """Return Cov(f_ij, f_row,task) of every cell (K, J)."""
        before = np.outer(self.prior.curve[row], self.prior.tasks[task])
        before[:, task] += self.prior.level
        return np.asarray(before - np.tensordot(self.whitened[:, row, task], self.whitened, axes=1))

    def combination(self, weights: Array) -> "SeparableCombination":
        """Return the random vector T_k = sum_j weights[k, j] f_kj, k = 1..K, with ``weights`` (K, J)."""
        return SeparableCombination(self, weights, np.einsum("nkj,kj->nk", self.whitened, weights))

    def between_tasks(self) -> Array:
        """Return E sum_k (f_kj - mean_j)(f_kj' - mean_j') (J, J) given the scores."""
        centred = self.mean() - self.mean().mean(0)
        explained = self.whitened - self.whitened.mean(1, keepdims=True)
        explained = explained.reshape(-1, len(self.prior.tasks))
        before = centred.T @ centred + self.prior.between_tasks()
        return np.asarray(before - explained.T @ explained)

    def gradient(self) -> SeparableGradient:
        """Return d(-log p)/d(parts) from D = (Q^-1 - alpha alpha') / 2 over the cells seen."""
        half = np.asarray(lapack.dpotri(self.factor, lower=1)[0])
        inverse = np.tril(half) + np.tril(half, -1).T
        block = 0.5 * (inverse - np.outer(self.weights, self.weights))
        size, count = len(self.prior.curve), len(self.prior.tasks)
        by_tasks = block * self.prior.tasks[np.ix_(self.tasks, self.tasks)]
        by_rows = block * self.prior.curve[np.ix_(self.rows, self.rows)]
        curve = scatter(self.rows[None], by_tasks[None], size)
        tasks = scatter(self.tasks[None], by_rows[None], count)
        noise = np.bincount(self.tasks, weights=np.diag(block), minlength=count)
        return SeparableGradient(curve, tasks, np.asarray(noise, np.float64))


@dataclass(frozen=True)
class SeparableCombination:
    """T_k = sum_j weights[k, j] f_kj under a posterior, with its covariances."""

    solution: SeparableSolution
    weights: Array  # (K, J)
    whitened: Array  # (n, K): factor^-1 Cov(y, T)

    def covariance(self, chosen: Index) -> Array:
        """Return Cov(T[chosen]) (k, k)."""
        prior, weights, told = self.solution.prior, self.weights[chosen], self.whitened[:, chosen]
        before = prior.curve[np.ix_(chosen, chosen)] * (weights @ prior.tasks @ weights.T)
        return np.asarray(before + prior.level * (weights @ weights.T) - told.T @ told)

    def variance_of_difference(self, row: int) -> Array:
        """Return Var(T_k - T_row) (K,)."""
        whole = self.covariance(np.arange(len(self.weights)))
        return np.asarray(np.maximum(np.diag(whole) + whole[row, row] - 2.0 * whole[row], 0.0))

    def covariance_with_cells(self, chosen: Index) -> Array:
        """Return Cov(f_ij, T[chosen]) of every cell (J, K, k)."""
        prior, weights = self.solution.prior, self.weights[chosen]
        before = (prior.tasks @ weights.T)[:, None, :] * prior.curve[:, chosen]
        before += prior.level * weights.T[:, None, :]
        # (K, J, k)
        told = np.tensordot(self.solution.whitened, self.whitened[:, chosen], axes=(0, 0))
        return np.asarray(before - told.transpose(1, 0, 2))

    def covariance_with(self, chosen: Index, rows: Index, tasks: Index) -> Array:
        """Return Cov(f_c, T[chosen]) of C cells given by row and task (C, k)."""
        prior, weights = self.solution.prior, self.weights[chosen]
        before = prior.curve[np.ix_(rows, chosen)] * (prior.tasks[tasks] @ weights.T)
        before += prior.level * weights.T[tasks]
        told = self.solution.whitened[:, rows, tasks].T @ self.whitened[:, chosen]
        return np.asarray(before - told)
