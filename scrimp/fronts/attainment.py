"""What several runs of one problem attain: the surface that a given share of them reaches.

A run attains a point when one of its losses is at least as good in both objectives. The surface of
share q is the boundary of what at least q of all runs attain: q = 0.5 gives the median front, 0.25
what a lucky quarter reaches, 0.75 what three quarters do.

    attained([np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]])], 1.0)            # [[0.5, 1.0]]

Fonseca, Fleming, "On the performance assessment and comparison of stochastic multiobjective
optimizers", 1996.
"""

import math
from collections.abc import Sequence

import numpy as np

from scrimp.fronts.boxes import Array

__all__ = ["attained"]


def attained(runs: Sequence[Array], share: float) -> Array:
    """The corners (k, 2), by the first objective, of what at least ``share`` of the runs attain,
    each given by its losses (n, 2).

    >>> attained([np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]])], 0.5).tolist()
    [[0.0, 1.0], [0.5, 0.5]]
    """
    needed = max(1, math.ceil(share * len(runs) - 1e-9))
    places = np.unique(np.concatenate([losses[:, 0] for losses in runs]))
    # the best second loss of each run (R, p) among those that are at least as good in the first
    best = np.stack([_best_by(losses, places) for losses in runs])
    reached = np.sort(best, axis=0)[needed - 1]
    steps = np.isfinite(reached)
    steps[1:] &= reached[1:] < reached[:-1]
    return np.column_stack([places[steps], reached[steps]])


def _best_by(losses: Array, places: Array) -> Array:
    """The least second loss up to each of the places (p,); infinite before the first."""
    order = np.argsort(losses[:, 0], kind="stable")
    least = np.concatenate([[np.inf], np.minimum.accumulate(losses[order, 1])])
    return np.asarray(least[np.searchsorted(losses[order, 0], places, side="right")])
