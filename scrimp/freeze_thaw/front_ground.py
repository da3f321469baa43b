"""What a front of several metrics leaves open to a freeze-thaw study, and what candidates are
expected to add to it.

    ground = Ground.of(history, belief, running)
    score = added(belief, means, deviations, ground.open_strips()) - ground.log_volume

The score is the logarithm of the expected hypervolume improvement as a share of the volume between
the best of the front and the reference point. With the open region as disjoint boxes [l, u)
(`scrimp.fronts.boxes`) and metrics predicted independently,

    EHVI = sum over boxes of prod over metrics of  E[(u - Y)+] - E[(l - Y)+]

in the units of the metrics (`scrimp.freeze_thaw.log_clearing`). Expected outcomes of running slices
belong to the front. Goals count as everywhere: what lies beyond them is nothing gained, unless a
report has reached them all. Without a reference of the study's own, volumes are measured from a
tenth beyond the front so far, the front that the models hope for, two standard deviations better
than they expect, and what the most promising in one metric are expected to have of the others: a
front that is one corner so far must not cut off the rest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from scrimp.acquisition.hypervolume_improvement import thinned_front
from scrimp.acquisition.strips import Strips
from scrimp.freeze_thaw.front_model import FrontBelief
from scrimp.freeze_thaw.front_target import floor_of
from scrimp.freeze_thaw.log_clearing import log_clearing
from scrimp.fronts.boxes import front_below, open_boxes
from scrimp.fronts.hypervolume import default_reference
from scrimp.history.history import History
from scrimp.history.trade_off import TradeOff

__all__ = ["Ground", "added"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]

HOPE = 2.0
"""By how many standard deviations ends may be better than expected where the reference is set."""

PROMISING = 8
"""How many of those that promise most of a metric say how far the front may reach in the others."""

MARGIN = 0.1
COMMON = 0.7  # the quantile of early losses that those of a level are measured from, at least

ENTRIES = 200_000  # of candidates times boxes at a time


Open = tuple[Strips, ...]
"""Boxes as their strips along each metric, in losses."""


def added(
    belief: FrontBelief, means: Sequence[Array], deviations: Sequence[Array], region: Open
) -> Array:
    """log EHVI (k,) of candidates with these means and deviations in targets, (k,) for each
    metric; minus infinity where nothing is open."""
    count, boxes = len(means[0]), len(region[0].high)
    values = np.full(count, -np.inf)
    if not boxes:
        return values
    step = max(1, ENTRIES // boxes)
    for start in range(0, count, step):
        here = slice(start, start + step)
        total = np.zeros((len(values[here]), boxes))
        for own, mean, std, strips in zip(belief.each, means, deviations, region, strict=True):
            floor, least, target = *floor_of(own.target), own.target
            above = np.maximum(strips.edges - floor, least)
            logs = mean[here] * target.scale + target.mean
            total += _between(log_clearing(logs, std[here] * target.scale, above), strips)
        values[here] = logsumexp(total, axis=1)
    return values


def _between(edge: Array, strips: Strips) -> Array:
    """The logarithm of what is cleared of each strip (k, boxes), from what is cleared below each
    edge (k, e)."""
    value = edge[:, strips.high]
    closed = np.flatnonzero(strips.low >= 0)
    fall = edge[:, strips.low[closed]] - value[:, closed]
    with np.errstate(divide="ignore"):  # next to nothing of a strip that lies far above
        value[:, closed] += np.log(-np.expm1(np.minimum(fall, 0.0)))
    return value


@dataclass(frozen=True, eq=False)
class Ground:
    """``front`` (k, m): losses of the front so far and of what running slices are expected to come
    to (``coming`` (r, m)); ``reference`` (m,); ``best`` (m,): losses that are good enough, minus
    infinity where more is always better."""

    front: Array
    coming: Array
    reference: Array
    best: Array

    @staticmethod
    def of(history: History, belief: FrontBelief, running: Sequence[tuple[int, float]]) -> "Ground":
        """At this moment, with slices (trial, step) under way."""
        trade_off = history.problem.trade_off
        assert trade_off is not None
        front = np.array(
            [trade_off.as_losses(_values(point.metrics, trade_off)) for _, point in history.front]
        )
        reference = _reference(trade_off, belief, front)
        best = np.array(trade_off.best_losses)
        if (front <= best).all(axis=1).any() or not (best < reference).all():
            best = np.full(len(best), -np.inf)  # all goals are reached: more is better again
        known = set(belief.trials.tolist())
        pending = [(trial, step) for trial, step in running if trial in known]
        who = np.array([trial for trial, _ in pending], dtype=np.intp)
        means, _ = belief.of_trials(who, np.array([step for _, step in pending], dtype=float))
        coming = belief.losses(means)
        return Ground(np.vstack([front, coming]), coming, reference, best)

    @property
    def log_volume(self) -> float:
        """The logarithm of the volume between the best of the front and the reference."""
        ideal = np.maximum(self.front.min(axis=0), self.best)
        return float(np.log(np.maximum(self.reference - ideal, 1e-300)).sum())

    def at_level(self, losses: Array) -> "Ground":
        """The same for what was reported at one level (k, m), which may lie beyond the reference of
        ends."""
        far = np.quantile(losses, COMMON, axis=0)
        return replace(self, reference=np.maximum(self.reference, far + MARGIN * np.abs(far)))

    def open_strips(self, losses: Array | None = None) -> Open:
        """What the front, or that of other losses (k, m), leaves open."""
        known = np.maximum(self.front if losses is None else losses, self.best)
        front = thinned_front(front_below(known, self.reference), self.reference)
        boxes = open_boxes(front, self.reference)
        lower = np.maximum(boxes.lower, self.best)
        left = (lower < boxes.upper).all(axis=1)
        sides = zip(lower[left].T, boxes.upper[left].T, strict=True)
        return tuple(Strips.between(low, high) for low, high in sides)


def _values(metrics: dict[str, float | None], trade_off: TradeOff) -> dict[str, float]:
    """A whole report, as those of a front are."""
    found = {name: metrics.get(name) for name in trade_off.names}
    return {name: math.nan if value is None else value for name, value in found.items()}


def _reference(trade_off: TradeOff, belief: FrontBelief, front: Array) -> Array:
    """The study's own as losses (m,), or what lies a tenth beyond the front so far, the front of
    hoped ends, and what those have of one metric that promise most of another."""
    if trade_off.reference_losses is not None:
        return np.array(trade_off.reference_losses)
    first, trials = belief.first, belief.trials
    drawn = np.arange(len(first.newcomers.x))
    ends, hoped = [], []
    for means, deviations in (
        belief.of_trials(trials, first.ends(first.curves.x[trials])),
        belief.of_newcomers(drawn, np.full(len(drawn), first.curves.clock.last)),
    ):
        pairs = zip(means, deviations, strict=True)
        hoped.append(belief.losses([mean - HOPE * deviation for mean, deviation in pairs]))
        ends.append(belief.losses(means))
    best = trade_off.best_losses
    promising = np.argsort(np.vstack(hoped), axis=0, kind="stable")[:PROMISING]
    apart = np.vstack(ends)[promising.ravel()]
    known = np.maximum(np.vstack([front, apart]), best)
    far = default_reference(np.maximum(np.vstack([front, *hoped]), best))
    low, high = known.min(axis=0), known.max(axis=0)
    found: Array = np.maximum(far, high + MARGIN * (high - low))
    return np.maximum(found, default_reference(known))
