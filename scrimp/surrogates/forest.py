"""Random forests: a regression of a table, and one forest per budget level as a surrogate.

Every tree is grown on a bootstrap of the rows. At each node a random third of the columns compete
for the split with the smallest sum of squares; a node with fewer than four rows, or with equal
targets, is a leaf. The forest predicts the average of its trees.

    forest = grow_forest(x, y, np.random.default_rng(0))
    forest(x)                                       # (m,)

`LevelForests` is the model that Hyper-Tune was published with:

    mean(x)     = the average over trees of the mean of the leaf that x falls into
    variance(x) = the average variance within those leaves + the variance of their means over trees

The last column of the input is the share of the full budget; a row belongs to the nearest level,
and levels do not share data. At a level without data the posterior is that of standardised targets,
mean 0 and variance 1. A forest is constant between its thresholds, so its gradient is zero and a
search relies on candidates and discrete moves; different inputs are drawn independently. The record
of a fit is the seed of its trees, and restoring grows them again.

    LevelForests(levels=(1 / 9, 1 / 3, 1.0)).fit(Data(np.column_stack([x, share]), y), rng)

Breiman, Random forests, 2001; surrogates of tables as benchmarks: Eggensperger, Hutter, Hoos,
Leyton-Brown, 2015; Hutter, Hoos, Leyton-Brown, Sequential Model-Based Optimization for General
Algorithm Configuration, 2011; Li et al., Hyper-Tune: Towards Efficient Hyper-parameter Tuning at
Scale, 2022.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from scrimp.json_values import JsonObject
from scrimp.surrogates.budget_levels import nearest_level
from scrimp.surrogates.exact_gp import check_finite, joined, joint_draws
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    Posterior,
    PosteriorPullback,
    RecordedSurrogate,
    Surrogate,
    as_columns,
    value_at,
)

Places = NDArray[np.intp]


@dataclass(frozen=True)
class ForestSettings:
    """``trees``: their number. ``share``: of the columns, those that compete at a node, rounded up.
    ``min_rows_to_split``: a node of fewer rows is a leaf."""

    trees: int = 50
    share: float = 1 / 3
    min_rows_to_split: int = 4


USUAL = ForestSettings()


@dataclass(frozen=True, eq=False)
class Forest:
    """All nodes of all trees in one list; ``roots`` are the first nodes of the trees.

    An inner node sends rows with x[column] <= threshold to ``child``, others to the node after it.
    A leaf is its own child.
    """

    roots: Places
    column: Places
    threshold: Array
    child: Places
    value: Array

    def __call__(self, x: Array) -> Array:
        """Return the average over trees (m,) at rows x (m, d)."""
        return np.asarray(self.value[self.leaves(x)].mean(axis=1))

    def leaves(self, x: Array) -> Places:
        """Return the leaf of each tree that rows x (m, d) fall into, (m, trees)."""
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
    """Grow a forest for targets y (n,) at rows x (n, d)."""
    growing = _Growing(x, y, rng, settings)
    roots = [growing.tree(rng.integers(len(y), size=len(y))) for _ in range(settings.trees)]
    return Forest(np.array(roots), *map(np.array, zip(*growing.nodes, strict=True)))


class _Growing:
    """The nodes (column, threshold, child, value) grown so far."""

    def __init__(
        self, x: Array, y: Array, rng: np.random.Generator, settings: ForestSettings
    ) -> None:
        self.x, self.y, self.rng = x, y, rng
        self.tried = max(1, ceil(x.shape[1] * settings.share - 1e-9))
        self.min_rows_to_split = settings.min_rows_to_split
        self.nodes: list[tuple[int, float, int, float]] = []

    def tree(self, rows: Places) -> int:
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
        """Return the column and threshold of the best split; None for a leaf.

        With centred targets, the sum of squares is smallest where (sum left)^2 / n_left + (sum
        right)^2 / n_right is largest.
        """
        y = self.y[rows]
        if len(rows) < self.min_rows_to_split or float(np.ptp(y)) == 0.0:
            return None
        columns = self.rng.permutation(self.x.shape[1])[: self.tried]
        x = self.x[np.ix_(rows, columns)]
        order = np.argsort(x, axis=0, kind="stable")
        ranked = np.take_along_axis(x, order, axis=0)
        sums = np.cumsum((y - y.mean())[order], axis=0)[:-1]
        count = np.arange(1, len(rows))[:, None]
        gain = sums**2 * (1.0 / count + 1.0 / (len(rows) - count))
        gain[ranked[:-1] >= ranked[1:]] = -1.0
        place, best = np.unravel_index(int(np.argmax(gain)), gain.shape)
        if gain[place, best] < 0.0:
            return None
        return int(columns[best]), float(0.5 * (ranked[place, best] + ranked[place + 1, best]))


LEVEL_TREES = ForestSettings(trees=10, share=5 / 6, min_rows_to_split=3)
"""Settings of the code of Hyper-Tune's authors."""

_ADDED_VARIANCE = 1e-6
"""Added to variances of standardised targets, so that they are positive where all trees agree."""


@dataclass(frozen=True)
class LevelForests(Surrogate):
    """``levels``: shares of the full budget, increasing."""

    levels: tuple[float, ...]

    def fit(
        self, data: Data, rng: np.random.Generator, start: JsonObject | None = None
    ) -> "FittedLevelForests":
        # Trees do not start from older ones.
        return self.restore(data, {"trees_from": int(rng.integers(2**31))})

    def restore(self, data: Data, state: JsonObject) -> "FittedLevelForests":
        check_finite(data)
        return FittedLevelForests(
            self.levels, data, {"trees_from": value_at(state, "trees_from", int)}
        )


@dataclass(frozen=True, eq=False)
class _Trees:
    """A forest with the variance of its targets within each leaf, (nodes,)."""

    forest: Forest
    within: Array

    @staticmethod
    def grown(x: Array, y: Array, seed: int) -> "_Trees":
        forest = grow_forest(x, y, np.random.default_rng(seed), LEVEL_TREES)
        leaves = forest.leaves(x)
        count, squares = np.zeros((2, len(forest.value)))
        np.add.at(count, leaves, 1.0)
        np.add.at(squares, leaves, (y[:, None] - forest.value[leaves]) ** 2)
        return _Trees(forest, squares / np.maximum(count, 1.0))

    def moments(self, x: Array) -> tuple[Array, Array]:
        leaves = self.forest.leaves(x)
        values = self.forest.value[leaves]
        within = self.within[leaves].mean(axis=1)
        return values.mean(axis=1), values.var(axis=1) + within + _ADDED_VARIANCE


@dataclass(frozen=True, eq=False)
class FittedLevelForests(RecordedSurrogate):
    """Forests by level and fantasy, grown from the recorded seed; the variance is an average."""

    levels: tuple[float, ...]
    observed: Data
    recorded: JsonObject

    @cached_property
    def _forests(self) -> dict[int, tuple[_Trees, ...]]:
        level = nearest_level(np.array(self.levels), self.observed.x)
        targets, seed = as_columns(self.observed.y), value_at(self.recorded, "trees_from", int)
        found: dict[int, tuple[_Trees, ...]] = {}
        for each in np.unique(level).tolist():
            rows = level == each
            x = self.observed.x[rows, :-1]
            found[each] = tuple(_Trees.grown(x, y, seed + each) for y in targets[rows].T)
        return found

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        mean = np.zeros((len(x), as_columns(self.observed.y).shape[1]))
        variance = np.ones(len(x))
        level = nearest_level(np.array(self.levels), x)
        for each, forests in self._forests.items():
            rows = level == each
            if rows.any():
                moments = [trees.moments(x[rows, :-1]) for trees in forests]
                mean[rows] = np.stack([one for one, _ in moments], axis=1)
                variance[rows] = np.mean([other for _, other in moments], axis=0)
        return Posterior(mean, variance, np.diag(variance) if joint else None)

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        return self.posterior(x), lambda d_mean, d_variance: np.zeros_like(x)

    def condition(self, data: Data) -> "FittedLevelForests":
        return FittedLevelForests(self.levels, joined(self.observed, data), self.recorded)

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        return joint_draws(self.posterior(x, joint=True), 1.0, count, rng)
