"""The region that a front dominates, and the region that it leaves open, as disjoint boxes.

Both rest on *local upper bounds*: the maximal corners u below which nothing dominates, so that the
open region is the union of the cones {y : y < u}. A new point z replaces each bound u > z by its
shadows, u with one component lowered to z's. Each bound knows the m points that define its
components, and with them the boxes

    [z^1_1, r_1) x prod over j > 1 of [max over k < j of z^k_j, u_j)            z^j defines component j of u

partition the dominated region below the reference point r. The open region is the same thing upside
down: minus the bounds are points, and what these "dominate" is the union of the cones.

Coordinates are replaced by their ranks, ties broken by order, so that the points are in general
position, as the algorithm asks; boxes of equal coordinates come out empty and are dropped.

    boxes = open_boxes(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([2.0, 2.0]))
    boxes.lower, boxes.upper                 # (3, 2) each; the lowest corners are minus infinity

Klamroth, Lacour, Vanderpooten, "On the representation of the search region in multi-objective
optimization", 2015; Lacour, Klamroth, Fonseca, "A box decomposition algorithm to compute the
hypervolume indicator", 2017; Yang, Emmerich, Deutz, Bäck, "Efficient computation of expected
hypervolume improvement using box decomposition algorithms", 2019.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.fronts.dominance import non_dominated

__all__ = ["Boxes", "dominated_boxes", "front_below", "open_boxes"]

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]


@dataclass(frozen=True)
class Boxes:
    """k disjoint boxes [lower, upper), corners (k, m) each; a lower one may be minus infinity."""

    lower: Array
    upper: Array

    def __len__(self) -> int:
        return len(self.lower)


def front_below(losses: Array, reference: Array) -> Array:
    """The distinct non-dominated rows of losses (n, m) that beat the reference (m,) in every
    objective, by the first objective."""
    inside = losses[(losses < reference).all(axis=1)]
    return np.unique(inside[non_dominated(inside)], axis=0)


def dominated_boxes(losses: Array, reference: Array) -> Boxes:
    """What losses (n, m) dominate below the reference (m,); without end where a loss is infinitely
    good."""
    front = front_below(losses, reference)
    if front.shape[1] == 2:
        ends = np.append(front[:, 0], reference[0])[1:]
        upper = np.column_stack([ends, np.broadcast_to(reference[1], len(front))])
        return Boxes(front, upper)
    return _partition(front, reference)


def open_boxes(losses: Array, reference: Array) -> Boxes:
    """What losses (n, m) leave open below the reference (m,): where a further point would gain.

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
    """Disjoint boxes of what mutually non-dominated points (n, m) dominate below the reference."""
    bounds = _Bounds.of(points, reference)
    lower, upper = bounds.boxes()
    full = (lower < upper).all(axis=1)
    return Boxes(lower[full], upper[full])


@dataclass(frozen=True)
class _Bounds:
    """The local upper bounds of points, in ranks: ``corner`` (k, m) and ``makers`` (k, m, m), the
    ranks of the points that define each component. ``values`` (m, n + 2) are what ranks stand for:
    minus infinity, the coordinates in order, the reference."""

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
        # Component j of the first bound is the reference's: a maker that is lowest elsewhere.
        makers = np.zeros((1, dimension, dimension), dtype=np.int64)
        makers[0, np.arange(dimension), np.arange(dimension)] = count + 1
        # From the middle outwards: bounds stay fewer when no objective is swept in order.
        for point in ranks[
            np.argsort(np.abs(ranks - 0.5 * (count + 1)).sum(axis=1), kind="stable")
        ]:
            corner, makers = _with_point(corner, makers, point)
        return _Bounds(corner, makers, values)

    def upper_corners(self) -> Array:
        """The bounds (k, m), each once and none below another."""
        corners = np.unique(np.take_along_axis(self.values, self.corner.T, axis=1).T, axis=0)
        kept: Array = corners[non_dominated(-corners)]
        return kept

    def boxes(self) -> tuple[Array, Array]:
        """Lower and upper corners (k, m) each, some of them empty."""
        dimension = self.corner.shape[1]
        lower, upper = self.corner.copy(), self.corner.copy()
        upper[:, 0] = self.values.shape[1] - 1
        for j in range(1, dimension):
            lower[:, j] = self.makers[:, :j, j].max(axis=1)
        columns = np.arange(dimension)
        return self.values[columns, lower], self.values[columns, upper]


def _with_point(corner: Ranks, makers: Ranks, point: Ranks) -> tuple[Ranks, Ranks]:
    """The bounds after one more point (m,): those above it give way to their shadows, none of which
    lies below another."""
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
