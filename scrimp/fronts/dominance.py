"""Which of several losses are not beaten in everything: non-dominated points, fronts and crowding.

Losses (n, m): one row per point, one column per objective, lower is better. A row dominates another
that it equals or beats in every objective and beats in one:

    a dominates b:   all(a <= b) and any(a < b)

Equal rows do not dominate each other: they stand on the same front. A row with NaN is known in part
only: it dominates nothing and comes after all fronts. An infinite loss is as bad, or as good, as
can be.

    front_ranks(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))         # [0, 0, 1]

Deb, Pratap, Agarwal, Meyarivan, "A fast and elitist multiobjective genetic algorithm: NSGA-II",
2002.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["crowding_distances", "dominated_by", "front_ranks", "non_dominated"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def dominated_by(losses: Array, point: Array) -> Mask:
    """Which rows of losses (n, m) the point (m,) dominates, (n,).

    >>> dominated_by(np.array([[1.0, 1.0], [0.0, 2.0]]), np.array([0.0, 1.0])).tolist()
    [True, True]
    """
    as_good: Mask = np.all(point <= losses, axis=1)
    better: Mask = np.any(point < losses, axis=1)
    return as_good & better


def non_dominated(losses: Array) -> Mask:
    """Which rows of losses (n, m) no other row dominates, (n,); none with NaN.

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
    """The same for two objectives, whose rows come in lexicographic order: each must go below all
    before it, or repeat the last that did."""
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
    """The front of each row of losses (n, m): 0 for what nothing dominates, 1 for what only that
    dominates, and so on (n,); rows with NaN have the rank after the last.

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
    """How lonely each row of one front (n, m) is: the gaps between its neighbours along each
    objective, as shares of the front's extent, summed (n,); infinite at the ends.

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
