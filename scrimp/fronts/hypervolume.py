"""Hypervolume: the volume that a set of losses dominates below a reference point, exactly.

    HV(Y, r) = volume of the union over y in Y of  prod over j of [y_j, r_j)

It grows with every added point that nothing in Y dominates, if the point beats the reference in
every objective; points that do not beat it count nothing. Two objectives need a staircase, more need
disjoint boxes, whose number grows with the number of points to the power of half the objectives.

    hypervolume(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([2.0, 2.0]))           # 3.0

*Boxes* partition the region that a front dominates, or the region that it leaves open. Both rest on
*local upper bounds*: the maximal corners u below which nothing dominates, so that the open region is
the union of the cones {y : y < u}. A new point z replaces each bound u > z by its shadows, u with
one component lowered to z's. Each bound stores the m points that define its components, and with
them the boxes

    [z^1_1, r_1) x prod over j > 1 of [max over k < j of z^k_j, u_j)            z^j defines component j of u

partition the dominated region below the reference point r. The open region is the same mirrored:
minus the bounds are points, and the region that these "dominate" is the union of the cones.
Coordinates are replaced by their ranks, ties broken by order, so that the points are in general
position, as the algorithm requires; boxes of equal coordinates are empty and dropped.

    boxes = open_boxes(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([2.0, 2.0]))
    boxes.lower, boxes.upper                 # (3, 2) each; the lowest corners are minus infinity

Zitzler, Thiele, "Multiobjective optimization using evolutionary algorithms", 1998; While, Bradstreet,
Barone, "A fast way of calculating exact hypervolumes", 2012 (contributions by limited sets);
Klamroth, Lacour, Vanderpooten, "On the representation of the search region in multi-objective
optimization", 2015; Lacour, Klamroth, Fonseca, "A box decomposition algorithm to compute the
hypervolume indicator", 2017; Yang, Emmerich, Deutz, Bäck, "Efficient computation of expected
hypervolume improvement using box decomposition algorithms", 2019.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.fronts.dominance import front_ranks, non_dominated

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]


@dataclass(frozen=True)
class Boxes:
    """k disjoint boxes [lower, upper), corners (k, m) each; lower corners may be minus infinity."""

    lower: Array
    upper: Array

    def __len__(self) -> int:
        return len(self.lower)


def front_below(losses: Array, reference: Array) -> Array:
    """Return the distinct non-dominated rows of losses (n, m) that beat the reference (m,) in every
    objective, sorted by the first objective."""
    inside = losses[(losses < reference).all(axis=1)]
    return np.unique(inside[non_dominated(inside)], axis=0)


def dominated_boxes(losses: Array, reference: Array) -> Boxes:
    """Return the region that losses (n, m) dominate below the reference (m,); unbounded if a loss is
    minus infinity."""
    front = front_below(losses, reference)
    if front.shape[1] == 2:
        ends = np.append(front[:, 0], reference[0])[1:]
        upper = np.column_stack([ends, np.broadcast_to(reference[1], len(front))])
        return Boxes(front, upper)
    return _partition(front, reference)


def open_boxes(losses: Array, reference: Array) -> Boxes:
    """Return the region that losses (n, m) leave open below the reference (m,), where a new point gains.

    >>> open_boxes(np.array([[0.0, 1.0]]), np.array([2.0, 2.0])).upper.tolist()
    [[0.0, 2.0], [2.0, 1.0]]
    """
    front = front_below(losses, reference)
    if front.shape[1] == 2:
        starts = np.concatenate([[-np.inf], front[:, 0]])
        ends = np.concatenate([front[:, 0], reference[:1]])
        heights = np.concatenate([reference[1:], front[:, 1]])
        lower = np.column_stack([starts, np.full(len(starts), -np.inf)])
        return Boxes(lower, np.column_stack([ends, heights]))
    bounds = _Bounds.of(front, reference).upper_corners()
    mirrored = _partition(-bounds, np.full(front.shape[1], np.inf))
    return Boxes(-mirrored.upper, -mirrored.lower)


def _partition(points: Array, reference: Array) -> Boxes:
    """Return disjoint boxes of the region that mutually non-dominated points (n, m) dominate."""
    bounds = _Bounds.of(points, reference)
    lower, upper = bounds.boxes()
    full = (lower < upper).all(axis=1)
    return Boxes(lower[full], upper[full])


@dataclass(frozen=True)
class _Bounds:
    """The local upper bounds of points, in ranks: ``corner`` (k, m) and ``makers`` (k, m, m), the
    ranks of the points that define each component. ``values`` (m, n + 2) are the coordinates by
    rank: minus infinity, the coordinates in order, the reference."""

    corner: Ranks
    makers: Ranks
    values: Array

    @staticmethod
    def of(points: Array, reference: Array) -> "_Bounds":
        count, dimension = points.shape
        order = np.argsort(points, axis=0, kind="stable")
        ranks = np.empty((count, dimension), dtype=np.int64)
        np.put_along_axis(ranks, order, np.arange(1, count + 1)[:, None], axis=0)
        ordered = np.take_along_axis(points, order, axis=0)
        lowest = np.full((1, dimension), -np.inf)
        values = np.concatenate([lowest, ordered, reference[None]]).T
        corner = np.full((1, dimension), count + 1, dtype=np.int64)
        # Component j of the first bound is that of the reference, by a maker lowest elsewhere.
        makers = np.zeros((1, dimension, dimension), dtype=np.int64)
        makers[0, np.arange(dimension), np.arange(dimension)] = count + 1
        # From the middle outwards: there are fewer bounds if no objective is swept in order.
        from_middle = np.abs(ranks - 0.5 * (count + 1)).sum(axis=1)
        for point in ranks[np.argsort(from_middle, kind="stable")]:
            corner, makers = _with_point(corner, makers, point)
        return _Bounds(corner, makers, values)

    def upper_corners(self) -> Array:
        """Return the bounds (k, m), each once and none below another."""
        corners = np.unique(np.take_along_axis(self.values, self.corner.T, axis=1).T, axis=0)
        kept: Array = corners[non_dominated(-corners)]
        return kept

    def boxes(self) -> tuple[Array, Array]:
        """Return lower and upper corners (k, m) each; some boxes are empty."""
        dimension = self.corner.shape[1]
        lower, upper = self.corner.copy(), self.corner.copy()
        upper[:, 0] = self.values.shape[1] - 1
        for j in range(1, dimension):
            lower[:, j] = self.makers[:, :j, j].max(axis=1)
        columns = np.arange(dimension)
        return self.values[columns, lower], self.values[columns, upper]


def _with_point(corner: Ranks, makers: Ranks, point: Ranks) -> tuple[Ranks, Ranks]:
    """Return the bounds after one more point (m,): those above it are replaced by their shadows."""
    above = (point < corner).all(axis=1)
    hit, hit_makers = corner[above], makers[above]
    corners, all_makers = [corner[~above]], [makers[~above]]
    for j in range(len(point)):
        others = np.delete(hit_makers[:, :, j], j, axis=1).max(axis=1, initial=0)
        valid = point[j] > others
        shadow, own = hit[valid], hit_makers[valid]
        shadow[:, j] = point[j]
        own[:, j] = point
        corners.append(shadow)
        all_makers.append(own)
    return np.concatenate(corners), np.concatenate(all_makers)


REFERENCE_MARGIN = 0.1
"""Distance of the default reference from the front, as a share of the front's extent (convention).
Without it the ends of the front would count nothing."""


def hypervolume(losses: Array, reference: Array) -> float:
    """Return the volume that losses (n, m) dominate below the reference (m,); 0 if none beats it.

    >>> hypervolume(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([2.0, 2.0]))
    3.0
    """
    boxes = dominated_boxes(losses, reference)
    return float((boxes.upper - boxes.lower).prod(axis=1).sum())


def contributions(losses: Array, reference: Array) -> Array:
    """Return the hypervolume that each row of losses (n, m) adds to that of all the others (n,); 0 for
    rows that are dominated, repeated or beyond the reference.

    >>> contributions(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([2.0, 2.0])).tolist()
    [1.0, 1.0, 0.0]
    """
    added = np.zeros(len(losses))
    inside = np.flatnonzero((losses < reference).all(axis=1))
    for place in inside[non_dominated(losses[inside])]:
        others = losses[inside[inside != place]]
        # The parts of the others' regions inside its own.
        limited = np.maximum(others, losses[place])
        own = float((reference - losses[place]).prod())
        added[place] = max(own - hypervolume(limited, reference), 0.0)
    return added


def default_reference(losses: Array) -> Array:
    """Return the default reference point (m,) for losses (n, m): the worst of their front, plus a tenth
    of its extent.

    If all of the front is equal in an objective, all finite losses are used instead of it, and if
    these are equal too, the size of the loss itself, or 1 for a loss of 0.

    >>> default_reference(np.array([[0.0, 10.0], [1.0, 0.0], [5.0, 5.0]])).tolist()
    [1.1, 11.0]
    """
    front = losses[non_dominated(losses)]
    pairs = zip(front.T, losses.T, strict=True)
    return np.array([_beyond(own, every) for own, every in pairs], dtype=float)


def _beyond(front: Array, every: Array) -> float:
    front, every = front[np.isfinite(front)], every[np.isfinite(every)]
    if not len(every):
        return 1.0
    seen = front if len(front) else every
    for values in (seen, every):
        if (extent := float(np.ptp(values))) > 0:
            return float(values.max()) + REFERENCE_MARGIN * extent
    worst = float(seen.max())
    return worst + REFERENCE_MARGIN * (abs(worst) or 1.0)


def order_of_standing(losses: Array, reference: Array | None = None) -> NDArray[np.intp]:
    """Return the indices of rows of losses (n, m) from best to worst (n,): by front, then by the
    hypervolume that each adds to its front, then by position.

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
