"""What a freeze-thaw decision asks of its candidates: when to look at each, what it should be below
then, and how that is scored.

*Race*, early: how much will the next level improve on the best value anybody had at that level?

    log EI(mean, deviation, best at the level)

*Horizon*, in a list: how likely is a candidate to be below a threshold T, a little below the best
value, after h further steps, both drawn anew for each decision?

    (T - mean) / deviation, the normal quantile of the probability

*Gain*, in a continuous space: how much will a candidate improve on the best value after h further
steps? A continuous space has near-copies of the best configuration, which are all but sure to
be a little better in the end: asked for probability, a study would train one of them after the
other.

    log EI(mean, deviation, best value)

Among candidates without hope the most uncertain one would win, however bad. So a question is
followed by the next one when no answer reaches its ``hope``: the race by the horizon or the gain,
and these, where h is too short, by the longest there is time for.

    question = race(belief, rows, waiting, outlook.first)
    score = question.formula(mean, deviation, question.goals)
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.improvement import log_expected_improvement
from scrimp.freeze_thaw.curve_rows import RowList, Waiting
from scrimp.freeze_thaw.model import CurveBelief
from scrimp.freeze_thaw.outlook import Outlook
from scrimp.history.history import History
from scrimp.history.notes import Gain, Horizon, Race
from scrimp.space.space import Pool

__all__ = ["Formula", "Question", "horizons", "race"]

Array = NDArray[np.float64]

LEAST_GAIN = math.log(1e-3)
"""The logarithm of a thousandth of the targets' standard deviation, as expected improvement."""

HOPE = -8.0
"""No error of the model explains less; above, uncertain candidates are worth a first slice."""

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
    asked: Race | Horizon | Gain
    hope: float = -math.inf


@dataclass(frozen=True)
class Aim:
    """What is to be reached: how it is noted, the ``goal`` (a target), and how candidates are
    scored."""

    asked: type[Horizon] | type[Gain]
    goal: float
    formula: Formula


def horizons(  # what a random horizon and threshold depend on
    history: History,
    belief: CurveBelief,
    rows: RowList,
    waiting: list[Waiting],
    outlook: Outlook,
    rng: np.random.Generator,
) -> Iterator[Question]:
    """A random horizon, and the longest, with the same goal: a random threshold in a list, the
    best value in a continuous space."""
    most = max(int(min(rows.levels[-1], outlook.each) / outlook.first), 1)
    further = int(rng.integers(1, most + 1))
    margin = 10.0 ** rng.uniform(-4.0, -1.0)
    seen = history.best
    lowest = (
        belief.target.low
        if seen is None or seen[1].loss is None or not belief.feasible
        else seen[1].loss
    )
    best = float(belief.target.forward(np.array([lowest]))[0])
    if isinstance(history.problem.space, Pool):
        aim = Aim(Horizon, best - 2.0 * margin, _quantile)
        hope = HOPE
    else:
        aim, hope = Aim(Gain, best, log_expected_improvement), LEAST_GAIN
    yield _after(belief, waiting, aim, outlook.first * further, hope)
    yield _after(belief, waiting, aim, outlook.first * most, -math.inf)


def race(belief: CurveBelief, rows: RowList, waiting: list[Waiting], first: float) -> Question:
    """The next level, against the best at that level, or at lower ones where nobody has reached
    it; newcomers are looked at after ``first``."""
    best = _best_by_level(belief, rows)
    slices = np.array([end for _, _, end in waiting], dtype=float)
    goals = best[np.searchsorted(rows.levels, slices)]
    formula, goal = log_expected_improvement, float(best[rows.levels.index(first)])
    return Question(slices, goals, first, goal, formula, Race(), LEAST_GAIN)


def _best_by_level(belief: CurveBelief, rows: RowList) -> Array:
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


def _after(
    belief: CurveBelief, waiting: list[Waiting], aim: Aim, length: float, hope: float
) -> Question:
    """How candidates stand to the aim after ``length`` further steps, or at the expected end of a
    run where that is sooner."""
    trials = np.array([trial for trial, _, _ in waiting], dtype=np.intp)
    used, slices = np.array([slice_[1:] for slice_ in waiting], dtype=float).reshape(-1, 2).T
    ends = np.maximum(belief.ends(belief.curves.x[trials]), slices)
    steps = np.minimum(used + length, ends)
    loss: float | None = None
    if belief.feasible:
        loss = float(f"{belief.target.backward(np.array([aim.goal]))[0]:.6g}")
    goals = np.full(len(steps), aim.goal)
    return Question(steps, goals, length, aim.goal, aim.formula, aim.asked(length, loss), hope)


def _quantile(mean: Array, deviation: Array, goal: Array) -> Array:
    """z with P(curve < goal) = Phi(z)."""
    return (goal - mean) / deviation
