"""Scouts: successive halving among random configurations, beside a model or instead of it.

A model that learned from its own choices can settle on a plateau: a degenerate answer, such as
predicting the most frequent class, that many configurations give from the first step to the last.
There is no better value nearby and nothing says so. What says so is the crowd: in a search that
makes progress few trials share the best value, on a plateau most do. So each decision is a scout's
with probability

    p = min(0.75, 3 (crowd - 1) / trials),      crowd = trials within 2 % of the range of losses from the best.

In a continuous space a search can also settle on *copies*: where the model hopes for nothing
elsewhere, it starts one configuration after the other beside the best, and those that start slowly
and end well are never seen. Copies do not share the best value, most of them being young, but they
are expected to share its end. There a decision is a scout's with probability

    p = min(1/3, (copies - 1) / trials),      copies = trials expected to end as near to the best end.

Scouts are random configurations that compete with each other alone, whatever the model did: the
best of a level goes on to the next while it is in the better half of the scouts that reached its
level (Jamieson and Talwalkar, Non-stochastic best arm identification and hyperparameter
optimization, 2016). Whoever sits on the plateau and does not move gets no more training. As soon as
one finds something better the crowd is gone, and with it the scouts. A failed model leaves all
trials to the same rule.
"""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from scrimp.freeze_thaw.curve_rows import RowList, Waiting

__all__ = ["PLATEAU", "copying_probability", "promotion", "scouting_probability", "stuck"]

MOST = 0.75
PLATEAU = 0.375
"""The probability from which on the crowd is taken for a plateau: an eighth of all trials."""

MOST_BY_COPIES = 1.0 / 3.0
SLOPE = 3.0
NEAR = 0.02
SURE, STILL = (
    2,
    0.01,
)  # who sits on a plateau did not fall by this share of the range over so many levels


def scouting_probability(lowest: NDArray[np.float64], spread: float) -> float:
    """p from the lowest loss of each trial (n,) and the range of losses that matters.

    >>> scouting_probability(np.array([0.5, 0.7, 0.8, 0.9]), 0.5)
    0.0
    >>> scouting_probability(np.array([0.5, 0.5, 0.8, 0.9]), 0.5)
    0.75
    """
    crowd = int(np.sum(lowest <= lowest.min() + NEAR * spread))
    return min(MOST, SLOPE * (crowd - 1) / len(lowest))


def copying_probability(behind: NDArray[np.float64]) -> float:
    """p from how far behind the best end each trial is expected to end (n,), as a share of the
    range of losses that matters.

    >>> copying_probability(np.array([0.0, 0.01, 0.3, 0.4, 0.5]))
    0.2
    """
    copies = int(np.sum(behind <= NEAR))
    return min(MOST_BY_COPIES, (copies - 1) / len(behind))


def stuck(rows: RowList, spread: float) -> set[int]:
    """The crowd that came to stay: trials in it that fell by less than 1 % of the range over the
    last two levels."""
    losses: dict[int, list[float]] = {}
    for trial, loss in zip(rows.trial, rows.standing, strict=True):
        losses.setdefault(trial, []).append(loss)
    bound = min(rows.lowest.values()) + NEAR * spread
    return {
        trial
        for trial, own in losses.items()
        if len(own) > SURE and own[-1] <= bound and own[-1 - SURE] - own[-1] <= STILL * spread
    }


def promotion(
    rows: RowList, waiting: Sequence[Waiting], members: Collection[int] | None = None
) -> Waiting | None:
    """Whose turn it is among ``members`` (everybody, unless told), from the highest level down;
    None when a new one is due."""
    reached: dict[int, dict[int, float]] = {}
    for trial, step, loss in zip(rows.trial, rows.step, rows.standing, strict=True):
        if members is None or trial in members:
            reached.setdefault(rows.reached(step), {})[trial] = loss
    for place in sorted(reached, reverse=True):
        entries = sorted(reached[place].values())
        ready = [
            slice_
            for slice_ in waiting
            if slice_[0] in reached[place] and rows.reached(slice_[1]) == place
        ]
        if ready and len(entries) > 1:
            best = min(ready, key=lambda slice_: (reached[place][slice_[0]], slice_[0]))
            if reached[place][best[0]] <= entries[len(entries) // 2 - 1]:
                return best
    return None
