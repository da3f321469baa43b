"""One random forest per budget level: the model that Hyper-Tune was published with.

    mean(x)     = the average over trees of the mean of the leaf that x falls into
    variance(x) = the average variance within those leaves + the variance of their means over trees

The last column of the input is the share of the full budget; a row belongs to the nearest level,
and levels know nothing of each other's data. At a level without data the posterior is that of
standardised targets, mean 0 and variance 1. A forest is constant between its thresholds, so its
gradient is zero and a search rests on candidates and discrete moves alone; different inputs are
drawn independently. The record of a fit is the seed its trees are grown from, and restoring grows
them anew.

    LevelForests(levels=(1 / 9, 1 / 3, 1.0)).fit(Data(np.column_stack([x, share]), y), rng)

Hutter, Hoos, Leyton-Brown, Sequential Model-Based Optimization for General Algorithm Configuration,
2011; Li et al., Hyper-Tune: Towards Efficient Hyper-parameter Tuning at Scale, 2022.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import StudyError
from scrimp.json_values import JsonObject
from scrimp.surrogates.exact_gp import as_columns, check_finite, joined
from scrimp.surrogates.forest import Forest, ForestSettings, grow_forest
from scrimp.surrogates.independent_gps import nearest_level
from scrimp.surrogates.record_reading import whole_at
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Posterior,
    PosteriorPullback,
    Surrogate,
)

__all__ = ["FittedLevelForests", "LevelForests"]

TREES = ForestSettings(trees=10, share=5 / 6, fewest=3)
"""As in the authors' code."""

LEAST_VARIANCE = 1e-6


@dataclass(frozen=True)
class LevelForests(Surrogate):
    """``levels``: shares of the full budget, increasing."""

    levels: tuple[float, ...]

    def fit(
        self, data: Data, rng: np.random.Generator, start: JsonObject | None = None
    ) -> "FittedLevelForests":
        del start  # trees do not go on from older ones
        return self.restore(data, {"trees_from": int(rng.integers(2**31))})

    def restore(self, data: Data, state: JsonObject) -> "FittedLevelForests":
        if not isinstance(state.get("trees_from"), int):
            raise StudyError("the recorded fit is of another model: fit anew")
        check_finite(data)
        return FittedLevelForests(self.levels, data, whole_at(state, "trees_from"))


@dataclass(frozen=True, eq=False)
class _Trees:
    """A forest with the variance of its targets within each leaf, (nodes,)."""

    forest: Forest
    within: Array

    @staticmethod
    def grown(x: Array, y: Array, seed: int) -> "_Trees":
        forest = grow_forest(x, y, np.random.default_rng(seed), TREES)
        leaves = forest.leaves(x)
        count = np.zeros(len(forest.value))
        squares = np.zeros(len(forest.value))
        np.add.at(count, leaves, 1.0)
        np.add.at(squares, leaves, (y[:, None] - forest.value[leaves]) ** 2)
        return _Trees(forest, squares / np.maximum(count, 1.0))

    def moments(self, x: Array) -> tuple[Array, Array]:
        """Means and variances (m,)."""
        leaves = self.forest.leaves(x)
        values = self.forest.value[leaves]
        return values.mean(axis=1), values.var(axis=1) + self.within[leaves].mean(
            axis=1
        ) + LEAST_VARIANCE


@dataclass(frozen=True, eq=False)
class FittedLevelForests(FittedSurrogate):
    """Forests by level and fantasy, grown from one ``seed``; the variance is the average over
    fantasies."""

    levels: tuple[float, ...]
    observed: Data
    seed: int

    @property
    def data(self) -> Data:
        return self.observed

    @property
    def state(self) -> JsonObject:
        return {"trees_from": self.seed}

    def _level_of(self, x: Array) -> NDArray[np.intp]:
        return nearest_level(np.array(self.levels), x)

    @cached_property
    def _forests(self) -> dict[int, tuple[_Trees, ...]]:
        """For each level with data, a forest per fantasy."""
        level, targets = self._level_of(self.observed.x), as_columns(self.observed.y)
        found: dict[int, tuple[_Trees, ...]] = {}
        for each in np.unique(level).tolist():
            rows = level == each
            x = self.observed.x[rows, :-1]
            found[each] = tuple(_Trees.grown(x, y, self.seed + each) for y in targets[rows].T)
        return found

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        mean = np.zeros((len(x), as_columns(self.observed.y).shape[1]))
        variance = np.ones(len(x))
        level = self._level_of(x)
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
        """The same with further observations: the forests of their levels are grown anew."""
        return FittedLevelForests(self.levels, joined(self.observed, data), self.seed)

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        posterior = self.posterior(x)
        if posterior.mean.shape[1] != 1:
            raise ValueError(
                f"draws need one set of targets, and this model has {posterior.mean.shape[1]} fantasies"
            )
        assert posterior.variance is not None
        return posterior.mean[:, 0] + rng.standard_normal((count, len(x))) * np.sqrt(
            posterior.variance
        )
