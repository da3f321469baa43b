"""Dominance between several losses: non-dominated points, fronts, crowding, attainment.

Losses (n, m): one row per point, one column per objective, lower is better. A row dominates another
that it equals or beats in every objective and beats in one:

    a dominates b:   all(a <= b) and any(a < b)

Equal rows do not dominate each other: they are on the same front. A row with NaN is partly unknown:
it dominates nothing and comes after all fronts. Infinite losses are the worst, or the best, possible.

    front_ranks(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))         # [0, 0, 1]

*Attainment*: a run attains a point if one of its losses is at least as good in both objectives. The
surface of share q is the boundary of the region that at least q of all runs attain: 0.5 gives the
median front, 0.25 that of the best quarter.

    attained([np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]])], 1.0)     # [[0.5, 1.0]]

Deb, Pratap, Agarwal, Meyarivan, "A fast and elitist multiobjective genetic algorithm: NSGA-II",
2002; Fonseca, Fleming, "On the performance assessment and comparison of stochastic multiobjective
optimizers", 1996.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def dominated_by(losses: Array, point: Array) -> Mask:
    """True for rows of losses (n, m) that the point (m,) dominates, (n,).

    >>> dominated_by(np.array([[1.0, 1.0], [0.0, 2.0]]), np.array([0.0, 1.0])).tolist()
    [True, True]
    """
    as_good: Mask = np.all(point <= losses, axis=1)
    better: Mask = np.any(point < losses, axis=1)
    return as_good & better


def non_dominated(losses: Array) -> Mask:
    """True for rows of losses (n, m) that no other row dominates, (n,); False for rows with NaN.

    >>> non_dominated(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])).tolist()
    [True, True, False]
    """
    known = np.flatnonzero(~np.isnan(losses).any(axis=1))
    # In lexicographic order a row can be dominated by an earlier one only.
    left = known[np.lexsort(losses[known].T[::-1])]
    if losses.shape[1] == 2:
        return _staircase(losses, left)
    best = np.zeros(len(losses), dtype=bool)
    while len(left):
        best[left[0]] = True
        rest = left[1:]
        left = rest[~dominated_by(losses[rest], losses[left[0]])]
    return best


def _staircase(losses: Array, order: NDArray[np.intp]) -> Mask:
    """`non_dominated` for two objectives, with rows in lexicographic order: each must be below all
    before it, or repeat the last that was."""
    second = losses[order, 1]
    below = np.concatenate([[np.inf], np.minimum.accumulate(second)[:-1]])
    step = second < below
    step[:1] = True
    last = np.maximum.accumulate(np.where(step, np.arange(len(order)), 0))
    repeats = (losses[order] == losses[order[last]]).all(axis=1)
    best = np.zeros(len(losses), dtype=bool)
    best[order[step | repeats]] = True
    return best


def front_ranks(losses: Array) -> NDArray[np.int64]:
    """Return the front of each row of losses (n, m): 0 for non-dominated rows, 1 for rows that only
    those dominate, and so on (n,); rows with NaN have the rank after the last.

    >>> front_ranks(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 1.0]])).tolist()
    [0, 0, 1, 2]
    """
    ranks = np.full(len(losses), -1, dtype=np.int64)
    left = np.flatnonzero(~np.isnan(losses).any(axis=1))
    rank = 0
    while len(left):
        first = non_dominated(losses[left])
        ranks[left[first]] = rank
        left, rank = left[~first], rank + 1
    ranks[ranks < 0] = rank
    return ranks


def crowding_distances(losses: Array) -> Array:
    """Return the crowding distance of each row of one front (n, m): the gaps between its neighbours
    along each objective, as shares of the front's extent, summed (n,); infinite at the ends.

    >>> crowding_distances(np.array([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]])).tolist()
    [inf, 2.0, inf]
    """
    total = np.zeros(len(losses))
    for column in losses.T:
        order = np.argsort(column, kind="stable")
        ordered = column[order]
        total[order[[0, -1]]] = np.inf
        extent = ordered[-1] - ordered[0]
        if 0 < extent < np.inf:
            total[order[1:-1]] += (ordered[2:] - ordered[:-2]) / extent
    return total


def attained(runs: Sequence[Array], share: float) -> Array:
    """Return the corners (k, 2), sorted by the first objective, of the region that at least ``share`` of
    the runs attain, each given by its losses (n, 2).

    >>> attained([np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]])], 0.5).tolist()
    [[0.0, 1.0], [0.5, 0.5]]
    """
    needed = max(1, math.ceil(share * len(runs) - 1e-9))
    places = np.unique(np.concatenate([losses[:, 0] for losses in runs]))
    # The best second loss of each run (R, p) among rows at least as good in the first.
    best = np.stack([_best_by(losses, places) for losses in runs])
    reached = np.sort(best, axis=0)[needed - 1]
    steps = np.isfinite(reached)
    steps[1:] &= reached[1:] < reached[:-1]
    return np.column_stack([places[steps], reached[steps]])


def _best_by(losses: Array, places: Array) -> Array:
    """Return the smallest second loss up to each of the places (p,); infinite before the first."""
    order = np.argsort(losses[:, 0], kind="stable")
    least = np.concatenate([[np.inf], np.minimum.accumulate(losses[order, 1])])
    return np.asarray(least[np.searchsorted(losses[order, 0], places, side="right")])
