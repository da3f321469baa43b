"""Which cells of a grid of checkpoints x tasks were measured, and sums over them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scrimp.surrogates.surrogate import Array

__all__ = ["GridCells", "GridGradient", "Index", "group_cells"]


Index = NDArray[np.intp]


@dataclass(frozen=True)
class GridCells:
    """Observed cells grouped by task and padded to N = max n_j; padding has mask 0, row 0 and value
    0."""

    rows: Index  # (J, N)
    mask: Array  # (J, N), 1 for a cell, 0 for padding
    values: Array  # (J, N)
    noise: Array  # (J, N): known noise variance of the cell, added to the task's own
    counts: Index  # (J,): n_j

    @cached_property
    def groups(self) -> list[tuple[Index, int]]:
        """Tasks with cells, by the power of two that their number of cells fits in: (tasks, width)
        of each group."""
        widths = np.array([1 << max(int(count) - 1, 0).bit_length() for count in self.counts])
        return [
            (
                np.flatnonzero((widths == width) & (self.counts > 0)),
                min(int(width), self.rows.shape[1]),
            )
            for width in np.unique(widths[self.counts > 0])
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
    """Cells in any order, as `GridCells`; a row may appear once per task."""
    counts = np.bincount(tasks, minlength=task_count)
    width = max(int(counts.max(initial=0)), 1)
    order = np.lexsort((rows, tasks))
    sorted_tasks = tasks[order]
    place = np.arange(len(order)) - np.concatenate(([0], np.cumsum(counts)))[sorted_tasks]
    padded = np.zeros((4, task_count, width))
    for target, source in zip(padded, (rows, np.ones(len(rows)), values, noise), strict=True):
        target[sorted_tasks, place] = source[order]
    return GridCells(padded[0].astype(np.intp), padded[1], padded[2], padded[3], counts)


def _scatter(rows: Index, blocks: Array, size: int) -> Array:
    """sum_j E_j' blocks_j E_j (K, K)."""
    place = (rows[:, :, None] * size + rows[:, None, :]).ravel()
    return np.asarray(
        np.bincount(place, weights=blocks.ravel(), minlength=size * size), np.float64
    ).reshape(size, size)


def _weighted_scatter(rows: Index, blocks: Array, loadings: Array, size: int) -> Array:
    """sum_j a_j a_j' (x) E_j' blocks_j E_j (qK, qK)."""
    count = loadings.shape[1]
    whole = np.empty((count, size, count, size))
    for p in range(count):
        for q in range(p + 1):
            part = _scatter(rows, blocks * (loadings[:, p] * loadings[:, q])[:, None, None], size)
            whole[p, :, q, :] = part
            whole[q, :, p, :] = part.T
    return whole.reshape(count * size, count * size)


def _gather(rows: Index, values: Array, loadings: Array, size: int) -> Array:
    """sum_j a_j (x) E_j' values_j (qK,)."""
    return np.concatenate(
        [
            np.bincount(rows.ravel(), weights=(values * column[:, None]).ravel(), minlength=size)
            for column in loadings.T
        ]
    )
