"""How much a set of losses achieves: the volume that it dominates below a reference point.

    HV(Y, r) = volume of the union over y in Y of  prod over j of [y_j, r_j)

It grows whenever a point is added that nothing in Y dominates, if it beats the reference in every
objective; points that do not beat it count nothing. Exact for any number of objectives: a staircase
for two, disjoint boxes for more (`boxes`), whose number grows with the number of points to the
power of half the objectives.

    hypervolume(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([2.0, 2.0]))           # 3.0

Zitzler, Thiele, "Multiobjective optimization using evolutionary algorithms", 1998; While, Bradstreet,
Barone, "A fast way of calculating exact hypervolumes", 2012 (contributions by limited sets).
"""

import numpy as np
from numpy.typing import NDArray

from scrimp.fronts.boxes import Array, dominated_boxes
from scrimp.fronts.dominance import front_ranks, non_dominated

__all__ = ["contributions", "default_reference", "hypervolume", "order_of_standing"]

MARGIN = 0.1
"""By which share of a front's extent the default reference lies beyond it: with none, its ends
would count nothing."""


def hypervolume(losses: Array, reference: Array) -> float:
    """The volume that losses (n, m) dominate below the reference (m,); 0 where nothing beats it.

    >>> hypervolume(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([2.0, 2.0]))
    3.0
    """
    boxes = dominated_boxes(losses, reference)
    return float((boxes.upper - boxes.lower).prod(axis=1).sum())


def contributions(losses: Array, reference: Array) -> Array:
    """What each row of losses (n, m) adds to the hypervolume of all the others (n,); 0 for one that
    is dominated, repeated or beyond the reference.

    >>> contributions(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([2.0, 2.0])).tolist()
    [1.0, 1.0, 0.0]
    """
    added = np.zeros(len(losses))
    inside = np.flatnonzero((losses < reference).all(axis=1))
    for place in inside[non_dominated(losses[inside])]:
        others = losses[inside[inside != place]]
        limited = np.maximum(others, losses[place])  # what of the others' regions lies in its own
        own = float((reference - losses[place]).prod())
        added[place] = max(own - hypervolume(limited, reference), 0.0)
    return added


def default_reference(losses: Array) -> Array:
    """The reference point (m,) for losses (n, m) that come without one: the worst of their front,
    and a tenth of its extent beyond.

    Where all of the front is equal in an objective, all finite losses count instead of it, and
    where these are equal too, the size of the loss itself, or 1 for a loss of 0.

    >>> default_reference(np.array([[0.0, 10.0], [1.0, 0.0], [5.0, 5.0]])).tolist()
    [1.1, 11.0]
    """
    front = losses[non_dominated(losses)]
    return np.array(
        [_beyond(own, every) for own, every in zip(front.T, losses.T, strict=True)], dtype=float
    )


def _beyond(front: Array, every: Array) -> float:
    """The reference along one objective."""
    front, every = front[np.isfinite(front)], every[np.isfinite(every)]
    if not len(every):
        return 1.0  # nothing is known: any number serves
    seen = front if len(front) else every
    for values in (seen, every):
        if (extent := float(np.ptp(values))) > 0:
            return float(values.max()) + MARGIN * extent
    worst = float(seen.max())
    return worst + MARGIN * (abs(worst) or 1.0)


def order_of_standing(losses: Array, reference: Array | None = None) -> NDArray[np.intp]:
    """Rows of losses (n, m) from the best to the worst (n,): by front, then by what each adds to
    the hypervolume of its front, then as they came.

    >>> order_of_standing(np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])).tolist()
    [1, 2, 0]
    """
    ranks = front_ranks(losses)
    added = np.zeros(len(losses))
    known = ~np.isnan(losses).any(axis=1)
    for rank in np.unique(ranks[known]):
        own = np.flatnonzero((ranks == rank) & known)
        corner = default_reference(losses[own]) if reference is None else reference
        added[own] = contributions(losses[own], corner)
    return np.lexsort((-added, ranks))
