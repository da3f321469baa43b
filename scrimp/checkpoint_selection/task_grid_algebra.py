"""Exact Gaussian inference on a grid of rows (checkpoints) and tasks, without the big matrix.

In every model of `task_grid_models` the score of row i on task j is

    y_ij = sum_q a_jq g_q(i) + u_j(i) + e_ij,     g ~ N(0, G),  u_j ~ N(0, C),  e_ij ~ N(0, noise_ij)

with a few curves g that all tasks share (loadings a) and an own part u_j of each task (its level
and its curve). Given g the tasks are independent, so the covariance of the observations is one small
block per task plus a low-rank part, and Woodbury's identity gives everything exactly. With K rows, J tasks, n_j
cells of task j, E_j the selector of its rows and r_j its values:

    Q_j = C[rows_j, rows_j] + diag(noise_j)                          (n_j, n_j)
    B = sum_j a_j a_j' (x) E_j' Q_j^-1 E_j,  v = sum_j a_j (x) E_j' Q_j^-1 r_j
    P = Cov(g | y) = G (I + B G)^-1,  alpha_j = Q_j^-1 (r_j - a_j g^[rows_j]),  g^ = P v
    -2 log p(y) = sum_j [r_j' Q_j^-1 r_j + log |Q_j|] - v' P v + log |I + B G| + n log 2 pi

It costs sum_j n_j^3 + (qK)^3 instead of (sum_j n_j)^3. The eigenvalues of I + B G are at least one,
so no jitter is needed. Tasks are padded to the longest one (`GridCells`) and processed in groups of
similar length: all of it is batched array code, and one long task does not slow down the others.

    cells = group_cells(rows, tasks, values, noise, task_count=3)
    solution = GridPrior(shared, own, loadings, noise).solve(cells)
    solution.mean()                                                   # (K, J)

Woodbury's identity in this role: Rasmussen and Williams, Gaussian Processes for Machine Learning
(2006), section 2.7.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from scrimp.errors import NumericalError
from scrimp.surrogates.surrogate import Array

Index = NDArray[np.intp]


@dataclass(frozen=True)
class GridCells:
    """The observed cells by task, padded to N = max n_j; padding has mask 0, row 0 and value 0."""

    rows: Index  # (J, N)
    mask: Array  # (J, N), 1 for a cell, 0 for padding
    values: Array  # (J, N)
    noise: Array  # (J, N): known noise variance of the cell, added to the task's own
    counts: Index  # (J,): n_j

    @cached_property
    def groups(self) -> list[tuple[Index, int]]:
        """Groups (tasks, width) of tasks whose number of cells fits in the same power of two."""
        widths = np.array([1 << max(int(count) - 1, 0).bit_length() for count in self.counts])
        begun = self.counts > 0
        return [
            (np.flatnonzero((widths == width) & begun), min(int(width), self.rows.shape[1]))
            for width in np.unique(widths[begun])
        ]


@dataclass(frozen=True)
class GridGradient:
    """Derivatives of -log p(y) by the parts of a `GridPrior`."""

    shared: Array  # (q K, q K)
    own: Array  # (K, K), summed over tasks
    loadings: Array  # (J, q)
    noise: Array  # (J,)


def group_cells(
    rows: Index, tasks: Index, values: Array, noise: Array, task_count: int
) -> GridCells:
    """Return cells in any order as `GridCells`; a row may appear once per task."""
    counts = np.bincount(tasks, minlength=task_count)
    width = max(int(counts.max(initial=0)), 1)
    order = np.lexsort((rows, tasks))
    sorted_tasks = tasks[order]
    place = np.arange(len(order)) - np.concatenate(([0], np.cumsum(counts)))[sorted_tasks]
    padded = np.zeros((4, task_count, width))
    for target, source in zip(padded, (rows, np.ones(len(rows)), values, noise), strict=True):
        target[sorted_tasks, place] = source[order]
    return GridCells(padded[0].astype(np.intp), padded[1], padded[2], padded[3], counts)


@dataclass(frozen=True)
class GridPrior:
    """The covariances of q shared curves and of a task's own part, loadings and noise variances."""

    shared: Array  # (q K, q K): G, blocks of K
    own: Array  # (K, K): C
    loadings: Array  # (J, q): a
    noise: Array  # (J,)

    def solve(self, cells: GridCells) -> "GridSolution":
        """Return the posterior given the cells, by the formulas above."""
        size = len(self.own)
        total = len(self.shared)
        mask, rows, values = cells.mask, cells.rows, cells.values
        inverse = np.zeros((*rows.shape, rows.shape[1]))
        gain = np.zeros((total, total))
        log_determinant = 0.0
        for tasks, width in cells.groups:
            part, log_part = _inverses(self, cells, tasks, width)
            inverse[tasks, :width, :width] = part
            gain += _weighted_scatter(rows[tasks, :width], part, self.loadings[tasks], size)
            log_determinant += log_part
        weighted = np.matmul(inverse, values[:, :, None])[:, :, 0]
        projected = _gather(rows, weighted, self.loadings, size)
        system = gain @ self.shared
        system[np.arange(total), np.arange(total)] += 1.0
        lu, pivots, info = lapack.dgetrf(system)
        if info != 0 or not np.all(np.isfinite(lu)):
            raise NumericalError(
                "the grid model's matrix I + B G is singular: scores or settings are not finite numbers"
            )
        shared_weights = lapack.dgetrs(lu, pivots, projected)[0]
        curves = (self.shared @ shared_weights).reshape(self.loadings.shape[1], size)
        explained = (self.loadings @ curves)[np.arange(len(rows))[:, None], rows] * mask
        residual = np.matmul(inverse, (values - explained)[:, :, None])[:, :, 0]
        quadratic = float((values * weighted).sum() - projected @ (self.shared @ shared_weights))
        determinant = log_determinant + float(np.log(np.abs(np.diag(lu))).sum())
        value = 0.5 * (quadratic + determinant + float(mask.sum()) * np.log(2.0 * np.pi))
        factor = (lu, pivots)
        return GridSolution(self, cells, inverse, gain, factor, residual, shared_weights, value)

    def between_tasks(self) -> Array:
        """Return E sum_k (f_kj - mean_j)(f_kj' - mean_j') (J, J), before any score."""
        count, size = self.loadings.shape[1], len(self.own)
        blocks = self.shared.reshape(count, size, count, size)
        spread = np.einsum("pkqk->pq", blocks) - blocks.sum(axis=(1, 3)) / size
        own = (np.trace(self.own) - self.own.sum() / size) * np.eye(len(self.loadings))
        return np.asarray(self.loadings @ spread @ self.loadings.T + own)


@dataclass(frozen=True)
class GridSolution:
    """The posterior of one `GridPrior` given `GridCells`; made by `GridPrior.solve`."""

    prior: GridPrior
    cells: GridCells
    inverse: Array  # (J, N, N): Q_j^-1, zero where padded
    gain: Array  # (qK, qK): B
    factor: tuple[Array, Index]  # LU of I + B G
    residual: Array  # (J, N): alpha_j
    shared_weights: Array  # (qK,): beta = sum_j a_j (x) E_j' alpha_j, so that g^ = G beta
    negative_log_likelihood: float

    @cached_property
    def shared_covariance(self) -> Array:
        """P = Cov(g | y) (qK, qK), as the solution of (I + G B) P = G."""
        return np.asarray(lapack.dgetrs(*self.factor, self.prior.shared, trans=1)[0])

    @cached_property
    def own_to_cells(self) -> Array:
        """C[rows_j, :] (J, N, K); zero where padded."""
        return np.asarray(self.prior.own[self.cells.rows] * self.cells.mask[:, :, None])

    @cached_property
    def regression(self) -> Array:
        """W_j' = Q_j^-1 C[rows_j, :] (J, N, K): the regression of a task's own part on its cells."""
        return np.asarray(np.matmul(self.inverse, self.own_to_cells))

    def mean(self, shared: Array | None = None) -> Array:
        """Return E f (K, J); ``shared`` (K, K) replaces the covariance of a curve with itself, such as
        by one without jitter."""
        weights = self.shared_weights.reshape(self.prior.loadings.shape[1], len(self.prior.own))
        if shared is None:
            curves = (self.prior.shared @ self.shared_weights).reshape(weights.shape)
        else:
            curves = weights @ shared
        own = np.matmul(self.residual[:, None, :], self.own_to_cells)[:, 0, :]
        return np.asarray((self.prior.loadings @ curves + own).T)

    @cached_property
    def variance(self) -> Array:
        """Var f (K, J) of the noise-free function."""
        size, count = len(self.prior.own), self.prior.loadings.shape[1]
        blocks = self.shared_covariance.reshape(count, size, count, size)
        loadings, rows, weights = self.prior.loadings, self.cells.rows, self.regression
        explained = np.einsum("jak,jak->kj", weights, self.own_to_cells)
        total = np.diag(self.prior.own)[:, None] - explained
        for p in range(count):
            for q in range(p + 1):
                block = 0.5 * (blocks[p, :, q, :] + blocks[p, :, q, :].T)
                inner = np.matmul(block[rows[:, :, None], rows[:, None, :]], weights)
                inner -= 2.0 * block[rows]
                part = np.diag(block)[:, None] + np.einsum("jak,jak->kj", inner, weights)
                total += (1.0 if p == q else 2.0) * (loadings[:, p] * loadings[:, q]) * part
        return np.asarray(np.maximum(total, 0.0))

    def covariance_with_cell(self, row: int, task: int) -> Array:
        """Return Cov(f_ij, f_row,task) of every cell (K, J)."""
        size, count = len(self.prior.own), self.prior.loadings.shape[1]
        length = self.cells.counts[task]
        own = self.cells.rows[task, :length]
        # The regression of the cell on one shared curve.
        toward = np.zeros(size)
        toward[row] = 1.0
        toward[own] -= self.regression[task, :length, row]
        lifted = np.multiply.outer(self.prior.loadings[task], toward).ravel()
        curves = (self.shared_covariance @ lifted).reshape(count, size)
        whole = self.prior.loadings @ curves  # (J, K)
        at_cells = np.take_along_axis(whole, self.cells.rows, axis=1)
        whole -= np.matmul(at_cells[:, None, :], self.regression)[:, 0, :]
        whole[task] += self.prior.own[row] - self.own_to_cells[task, :, row] @ self.regression[task]
        return np.asarray(whole.T)

    def combination(self, weights: Array) -> "GridCombination":
        """Return the random vector T_k = sum_j weights[k, j] f_kj, k = 1..K, with ``weights`` (K, J)."""
        size, count = len(self.prior.own), self.prior.loadings.shape[1]
        # [q, i, k]: the regression of T_k on g_q(i).
        blocks = np.zeros((count, size, size))
        for task, length in enumerate(self.cells.counts):
            rows = self.cells.rows[task, :length]
            moved = self.regression[task, :length] * weights[:, task]
            for p in range(count):
                blocks[p][rows] -= self.prior.loadings[task, p] * moved
        for p in range(count):
            blocks[p][np.arange(size), np.arange(size)] += weights @ self.prior.loadings[:, p]
        return GridCombination(self, weights, blocks.reshape(count * size, size).T)

    def between_tasks(self) -> Array:
        """Return E sum_k (f_kj - mean_j)(f_kj' - mean_j') (J, J) given the scores."""
        size, count = len(self.prior.own), self.prior.loadings.shape[1]
        values, vectors = np.linalg.eigh(0.5 * (self.shared_covariance + self.shared_covariance.T))
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).reshape(count, size, -1)
        # The regression of f_j on the shared curves, times their root.
        moves = []
        for task, length in enumerate(self.cells.counts):
            curve = np.tensordot(self.prior.loadings[task], root, axes=1)
            curve -= self.regression[task, :length].T @ curve[self.cells.rows[task, :length]]
            moves.append((curve - curve.mean(0)).ravel())
        together = np.stack(moves) @ np.stack(moves).T
        centred = self.mean() - self.mean().mean(0)
        explained = np.einsum("jak,jak->j", self.regression, self.own_to_cells)
        explained -= np.einsum("ja,ja->j", self.regression.sum(2), self.own_to_cells.sum(2)) / size
        own = np.trace(self.prior.own) - self.prior.own.sum() / size - explained
        return np.asarray(together + centred.T @ centred + np.diag(own))

    def gradient(self) -> GridGradient:
        """Return d(-log p)/d(parts) from D_j = Q_j^-1 - Q_j^-1 Cov(g_j) Q_j^-1 - alpha_j alpha_j',
        the block of task j."""
        size, count = len(self.prior.own), self.prior.loadings.shape[1]
        explained = lapack.dgetrs(*self.factor, self.gain)[0]  # (I + B G)^-1 B
        shared = 0.5 * (explained - np.outer(self.shared_weights, self.shared_weights))
        blocks = self.shared_covariance.reshape(count, size, count, size)
        curves = (self.prior.shared @ self.shared_weights).reshape(count, size)
        own = np.zeros((size, size))
        by_loading, noise = np.zeros_like(self.prior.loadings), np.zeros_like(self.prior.noise)
        for tasks, width in self.cells.groups:
            rows, loadings = self.cells.rows[tasks, :width], self.prior.loadings[tasks]
            inverse, residual = self.inverse[tasks, :width, :width], self.residual[tasks, :width]
            known = np.zeros_like(inverse)  # Cov(sum_q a_jq g_q) at the cells of task j
            for p in range(count):
                toward = np.zeros_like(inverse)
                for q in range(count):
                    between = blocks[p, :, q, :][rows[:, :, None], rows[:, None, :]]
                    toward += loadings[:, q, None, None] * between
                known += loadings[:, p, None, None] * toward
                by_loading[tasks, p] = np.einsum("jab,jab->j", inverse, toward)
                by_loading[tasks, p] -= np.einsum("ja,ja->j", residual, curves[p][rows])
            block = inverse - inverse @ known @ inverse
            block -= residual[:, :, None] * residual[:, None, :]
            own += 0.5 * scatter(rows, block, size)
            noise[tasks] = 0.5 * np.einsum("jaa->j", block)
        return GridGradient(shared, own, by_loading, noise)


@dataclass(frozen=True)
class GridCombination:
    """T_k = sum_j weights[k, j] f_kj under a posterior, with its covariances."""

    solution: GridSolution
    weights: Array  # (K, J)
    to_shared: Array  # (K, qK): T = to_shared g + own parts

    @cached_property
    def covariance_with_shared(self) -> Array:
        """Cov(T, g) (K, qK)."""
        return np.asarray(self.to_shared @ self.solution.shared_covariance)

    def covariance(self, chosen: Index) -> Array:
        """Return Cov(T[chosen]) (k, k)."""
        solution = self.solution
        weights = self.weights[chosen]
        covariance = self.covariance_with_shared[chosen] @ self.to_shared[chosen].T
        covariance += (weights @ weights.T) * solution.prior.own[np.ix_(chosen, chosen)]
        by_task, shape = weights.T[:, None, :], (-1, len(chosen))
        moved = (by_task * solution.regression[:, :, chosen]).reshape(shape)
        covariance -= moved.T @ (by_task * solution.own_to_cells[:, :, chosen]).reshape(shape)
        return np.asarray(0.5 * (covariance + covariance.T))

    def variance_of_difference(self, row: int) -> Array:
        """Return Var(T_k - T_row) (K,) without computing the whole covariance."""
        solution, weights, shared = self.solution, self.weights, self.covariance_with_shared
        own = solution.prior.own
        explained = np.einsum("jak,jak->kj", solution.regression, solution.own_to_cells)
        left = np.square(weights) * (np.diag(own)[:, None] - explained)
        diagonal = (shared * self.to_shared).sum(1) + left.sum(1)
        toward = np.matmul(solution.regression[:, None, :, row], solution.own_to_cells)[:, 0].T
        left = weights * weights[row] * (own[:, row, None] - toward)
        with_row = self.to_shared @ shared[row] + left.sum(1)
        return np.asarray(np.maximum(diagonal + diagonal[row] - 2.0 * with_row, 0.0))

    def covariance_with_cells(self, chosen: Index) -> Array:
        """Return Cov(f_ij, T[chosen]) of every cell (J, K, k)."""
        solution = self.solution
        loadings = solution.prior.loadings
        shape = (loadings.shape[1], len(solution.prior.own) * len(chosen))
        curves = np.ascontiguousarray(self.covariance_with_shared[chosen].T).reshape(shape)
        whole = (loadings @ curves).reshape(len(loadings), -1, len(chosen))
        whole += self.weights.T[:, None, chosen] * solution.prior.own[:, chosen]
        at_cells = whole[np.arange(len(loadings))[:, None], solution.cells.rows]  # (J, N, k)
        whole -= np.matmul(solution.regression.transpose(0, 2, 1), at_cells)
        return whole

    def covariance_with(self, chosen: Index, rows: Index, tasks: Index) -> Array:
        """Return Cov(f_c, T[chosen]) of C cells given by row and task (C, k)."""
        solution = self.solution
        size = len(solution.prior.own)
        curves = self.covariance_with_shared[chosen].reshape(len(chosen), -1, size)
        own = solution.prior.own[chosen]

        def before(at: Index) -> Array:
            """Return the covariance before the task's own cells are seen (C, ..., k)."""
            loadings = solution.prior.loadings[tasks]
            part = np.einsum("cp,kpc...->c...k", loadings, curves[:, :, at], optimize=True)
            weights = self.weights[chosen][:, tasks].T
            weights = weights.reshape(len(tasks), *[1] * (at.ndim - 1), -1)
            return np.asarray(part + np.moveaxis(own[:, at], 0, -1) * weights)

        regression = solution.regression[tasks, :, rows]  # (C, N)
        explained = np.matmul(regression[:, None, :], before(solution.cells.rows[tasks]))
        return np.asarray(before(rows) - explained[:, 0, :])


def _inverses(prior: GridPrior, cells: GridCells, tasks: Index, width: int) -> tuple[Array, float]:
    """Return Q_j^-1 of some tasks (J', width, width), and the sum of their log determinants."""
    rows, mask = cells.rows[tasks, :width], cells.mask[tasks, :width]
    pair = mask[:, :, None] * mask[:, None, :]
    blocks = prior.own[rows[:, :, None], rows[:, None, :]] * pair
    place = np.arange(width)
    noise = prior.noise[tasks, None] + cells.noise[tasks, :width]
    blocks[:, place, place] += np.where(mask > 0.0, noise, 1.0)
    factors, halves = np.empty_like(blocks), np.empty_like(blocks)
    for number, block in enumerate(blocks):
        factors[number], info = lapack.dpotrf(block, lower=1)
        if info != 0:
            raise NumericalError(
                f"the covariance of task number {tasks[number]} is not positive definite: scores"
                " must be finite"
            )
        halves[number] = lapack.dpotri(factors[number], lower=1)[0]
    inverse = np.tril(halves) + np.tril(halves, -1).transpose(0, 2, 1)
    return inverse * pair, 2.0 * float(np.log(np.einsum("jaa->ja", factors)).sum())


def scatter(rows: Index, blocks: Array, size: int) -> Array:
    """Return sum_j E_j' blocks_j E_j (K, K)."""
    place = (rows[:, :, None] * size + rows[:, None, :]).ravel()
    flat = np.bincount(place, weights=blocks.ravel(), minlength=size * size)
    return np.asarray(flat, np.float64).reshape(size, size)


def _weighted_scatter(rows: Index, blocks: Array, loadings: Array, size: int) -> Array:
    """Return sum_j a_j a_j' (x) E_j' blocks_j E_j (qK, qK)."""
    count = loadings.shape[1]
    whole = np.empty((count, size, count, size))
    for p in range(count):
        for q in range(p + 1):
            part = scatter(rows, blocks * (loadings[:, p] * loadings[:, q])[:, None, None], size)
            whole[p, :, q, :] = part
            whole[q, :, p, :] = part.T
    return whole.reshape(count * size, count * size)


def _gather(rows: Index, values: Array, loadings: Array, size: int) -> Array:
    """Return sum_j a_j (x) E_j' values_j (qK,)."""
    weighted = ((values * column[:, None]).ravel() for column in loadings.T)
    found = [np.bincount(rows.ravel(), weights=each, minlength=size) for each in weighted]
    return np.concatenate(found)
