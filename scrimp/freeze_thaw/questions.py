"""What a freeze-thaw decision asks of its candidates: when to look at each, what it should be below
then, and how that is scored.

*Race*, early: how much will the next level improve on the best value anybody had at that level?

    log EI(mean, deviation, best at the level)

*Horizon*: how likely is a candidate to be below a threshold T, a little below the best value, after
h further steps, both drawn anew for each decision?

    (T - mean) / deviation, the normal quantile of the probability

Among candidates without hope the most uncertain one would win, however bad. So a question is
followed by the next one when no answer reaches its ``hope``: the race by the horizon, a horizon
that is too short by the longest there is time for.

    question = race(belief, rows, waiting)
    score = question.formula(mean, deviation, question.goals)
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.improvement import log_expected_improvement
from scrimp.freeze_thaw.curve_rows import RowList, Waiting
from scrimp.freeze_thaw.model import Belief
from scrimp.freeze_thaw.outlook import Outlook
from scrimp.history.history import History
from scrimp.history.notes import Horizon, Race

__all__ = ["Formula", "Question", "horizons", "race"]

Array = NDArray[np.float64]

RACE_HOPE = math.log(
    1e-3
)  # an expected improvement by a thousandth of the targets' standard deviation
HOPE = (
    -8.0
)  # no error of the model explains that; above, uncertain candidates are worth a first slice

Formula = Callable[[Array, Array, Array], Array]
"""Scores from means, standard deviations and goals, (m,) each."""


@dataclass(frozen=True)
class Question:
    """Of paused trials: the ``steps`` at which they are looked at and the ``goals`` (m,); of
    newcomers: one step, one goal."""

    steps: Array
    goals: Array
    step: float
    goal: float
    formula: Formula
    asked: Race | Horizon
    hope: float = -math.inf


def horizons(  # what a random horizon and threshold depend on
    history: History,
    belief: Belief,
    rows: RowList,
    waiting: list[Waiting],
    outlook: Outlook,
    rng: np.random.Generator,
) -> Iterator[Question]:
    """A random horizon, and the longest, with the same random threshold."""
    most = max(int(min(rows.levels[-1], outlook.each) / rows.levels[0]), 1)
    further = int(rng.integers(1, most + 1))
    margin = 10.0 ** rng.uniform(-4.0, -1.0)
    seen = history.best
    lowest = (
        belief.target.low
        if seen is None or seen[1].loss is None or not belief.feasible
        else seen[1].loss
    )
    threshold = float(belief.target.forward(np.array([lowest]))[0]) - 2.0 * margin
    yield _horizon(belief, rows, waiting, threshold, further, HOPE)
    yield _horizon(belief, rows, waiting, threshold, most, -math.inf)


def race(belief: Belief, rows: RowList, waiting: list[Waiting]) -> Question:
    """The next level, against the best at that level, or at lower ones where nobody has reached
    it."""
    best = _best_by_level(belief, rows)
    slices = np.array([end for _, _, end in waiting], dtype=float)
    goals = best[np.searchsorted(rows.levels, slices)]
    formula = log_expected_improvement
    return Question(slices, goals, rows.levels[0], float(best[0]), formula, Race(), RACE_HOPE)


def _best_by_level(belief: Belief, rows: RowList) -> Array:
    """The lowest target at each level; where there is none, that of lower levels, or of all."""
    levels = np.array(rows.levels)
    place = np.maximum(
        np.searchsorted(levels, belief.curves.step[belief.order] * (1.0 + 1e-9), side="right") - 1,
        0,
    )
    best = np.full(len(levels), np.inf)
    np.minimum.at(best, place, belief.z)
    lower = np.minimum.accumulate(best)
    best = np.where(np.isfinite(best), best, lower)
    return np.where(np.isfinite(best), best, belief.z.min())


def _horizon(
    belief: Belief,
    rows: RowList,
    waiting: list[Waiting],
    threshold: float,
    further: int,
    hope: float,
) -> Question:
    """Below T after h further steps, or at the expected end of a run where that is sooner."""
    length = rows.levels[0] * further
    trials = np.array([trial for trial, _, _ in waiting], dtype=np.intp)
    used, slices = np.array([slice_[1:] for slice_ in waiting], dtype=float).reshape(-1, 2).T
    ends = np.maximum(belief.ends(belief.curves.x[trials]), slices)
    steps = np.minimum(used + length, ends)
    aim: float | None = None
    if belief.feasible:
        aim = float(f"{belief.target.backward(np.array([threshold]))[0]:.6g}")
    asked = Horizon(length, aim)
    return Question(
        steps, np.full(len(steps), threshold), length, threshold, _quantile, asked, hope
    )


def _quantile(mean: Array, deviation: Array, goal: Array) -> Array:
    """z with P(curve < goal) = Phi(z)."""
    return (goal - mean) / deviation
