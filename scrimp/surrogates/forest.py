"""A random forest: a table of results becomes a function that answers for any configuration.

Every tree is grown on a bootstrap of the rows. At each node a third of the columns, at random,
compete for the split that leaves the least sum of squares; a node of fewer than four rows, or with
equal targets, is a leaf. The forest says the average.

    forest = grow_forest(x, y, np.random.default_rng(0))
    forest(x)                                       # (m,)

Breiman, Random forests, 2001; surrogates of tables as benchmarks: Eggensperger, Hutter, Hoos,
Leyton-Brown, 2015.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

__all__ = ["Forest", "ForestSettings", "grow_forest"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class ForestSettings:
    """``trees``; the ``share`` of the columns that compete at a node, rounded up; a node of fewer
    than ``fewest`` rows is a leaf."""

    trees: int = 50
    share: float = 1 / 3
    fewest: int = 4


USUAL = ForestSettings()


@dataclass(frozen=True, eq=False)
class Forest:
    """All nodes of all trees in one list; ``roots`` are where trees begin.

    An inner node sends rows with x[column] <= threshold to ``child``, others to the node after it.
    A leaf is its own child.
    """

    roots: Places
    column: Places
    threshold: Array
    child: Places
    value: Array

    def __call__(self, x: Array) -> Array:
        """The average over trees (m,) at rows x (m, d)."""
        return np.asarray(self.value[self.leaves(x)].mean(axis=1))

    def leaves(self, x: Array) -> Places:
        """The leaf of each tree that rows x (m, d) fall into, (m, trees)."""
        node = np.broadcast_to(self.roots, (len(x), len(self.roots)))
        while True:
            right = np.take_along_axis(x, self.column[node], axis=1) > self.threshold[node]
            below = self.child[node] + right
            if (below == node).all():
                return node
            node = below


def grow_forest(
    x: Array, y: Array, rng: np.random.Generator, settings: ForestSettings = USUAL
) -> Forest:
    """A forest for targets y (n,) at rows x (n, d)."""
    growing = _Growing(x, y, rng, settings)
    roots = [growing.tree(rng.integers(len(y), size=len(y))) for _ in range(settings.trees)]
    column, threshold, child, value = zip(*growing.nodes, strict=True)
    return Forest(
        np.array(roots), np.array(column), np.array(threshold), np.array(child), np.array(value)
    )


class _Growing:
    """The nodes (column, threshold, child, value) grown so far."""

    def __init__(
        self, x: Array, y: Array, rng: np.random.Generator, settings: ForestSettings
    ) -> None:
        self.x, self.y, self.rng = x, y, rng
        self.tried = max(1, ceil(x.shape[1] * settings.share - 1e-9))
        self.fewest = settings.fewest
        self.nodes: list[tuple[int, float, int, float]] = []

    def tree(self, rows: Places) -> int:
        """Grow one tree over these rows; its root."""
        root = self._leaf(rows)
        waiting = [(root, rows)]
        while waiting:
            place, rows = waiting.pop()
            split = self._split(rows)
            if split is not None:
                column, threshold = split
                left = self.x[rows, column] <= threshold
                children = self._leaf(rows[left]), self._leaf(rows[~left])
                self.nodes[place] = (column, threshold, children[0], self.nodes[place][3])
                waiting += [(children[0], rows[left]), (children[1], rows[~left])]
        return root

    def _leaf(self, rows: Places) -> int:
        place = len(self.nodes)
        self.nodes.append((0, np.inf, place, float(self.y[rows].mean())))
        return place

    def _split(self, rows: Places) -> tuple[int, float] | None:
        """The column and threshold of the best split; None for a leaf.

        The sum of squares is least where (sum left)^2 / n_left + (sum right)^2 / n_right is most,
        targets centred.
        """
        y = self.y[rows]
        if len(rows) < self.fewest or float(np.ptp(y)) == 0.0:
            return None
        columns = self.rng.permutation(self.x.shape[1])[: self.tried]
        x = self.x[np.ix_(rows, columns)]
        order = np.argsort(x, axis=0, kind="stable")
        ranked = np.take_along_axis(x, order, axis=0)
        sums = np.cumsum((y - y.mean())[order], axis=0)[:-1]
        count = np.arange(1, len(rows))[:, None]
        gain = np.where(
            ranked[:-1] < ranked[1:], sums**2 * (1.0 / count + 1.0 / (len(rows) - count)), -1.0
        )
        place, best = np.unravel_index(int(np.argmax(gain)), gain.shape)
        if gain[place, best] < 0.0:
            return None
        return int(columns[best]), float(0.5 * (ranked[place, best] + ranked[place + 1, best]))
