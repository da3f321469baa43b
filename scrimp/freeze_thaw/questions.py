"""What a freeze-thaw decision asks of its candidates: when to look at each, what it should be below
then, and how that is scored.

*Race*, early: how much will the next level improve on the best value anybody had at that level?

    log EI(mean, deviation, best at the level)

*Horizon*, in a list: how likely is a candidate to be below a threshold T, a little below the best
value, after h further steps, both drawn anew for each decision?

    (T - mean) / deviation, the normal quantile of the probability

*Gain*, in a continuous space: how much loss will a candidate take off the best value by the end of
its training, or about as far as there is time for, for each of the r steps until then? A continuous
space has near-copies of the best configuration, which are all but sure to be a little better in the
end: asked for probability, a study would train one of them after the other. Where time or another
cost is short (`scrimp.freeze_thaw.unit_costs`), what counts is what these steps cost, c each.

    log E[(best value - loss)+] - log r [- log c]      (`scrimp.freeze_thaw.loss_improvement`)

Among candidates without hope the most uncertain one would win, however bad. So a question is
followed by the next one when no answer reaches its ``hope``: the race by the horizon or the gain,
and a horizon that is too short by the longest there is time for.

    question = race(belief, rows, waiting, outlook.first)
    score = question.formula(mean, deviation, question.goals)
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.improvement import log_expected_improvement
from scrimp.freeze_thaw.curve_rows import RowList, Waiting
from scrimp.freeze_thaw.loss_improvement import log_loss_improvement
from scrimp.freeze_thaw.model import CurveBelief
from scrimp.freeze_thaw.outlook import Outlook
from scrimp.freeze_thaw.unit_costs import UnitCosts
from scrimp.history.history import History
from scrimp.history.notes import Gain, Horizon, Race
from scrimp.space.space import Pool

__all__ = ["Formula", "Question", "later", "race", "steps_after"]

Array = NDArray[np.float64]

LEAST_GAIN = math.log(1e-3)
"""The logarithm of a thousandth of the targets' standard deviation, as expected improvement at a
next level."""

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
    costs: UnitCosts | None = None

    def by_cost(self, scores: Array, x: Array) -> Array:
        """Scores (m,) of newcomers x (m, d), less the log cost of a unit where that counts."""
        return scores if self.costs is None else scores - self.costs.of_configs(x)


def later(  # what a random horizon and threshold depend on
    history: History,
    belief: CurveBelief,
    rows: RowList,
    waiting: list[Waiting],
    outlook: Outlook,
    rng: np.random.Generator,
) -> Iterator[Question]:
    """What is asked after the race: in a list a random horizon, and the longest, with the same
    random threshold; in a continuous space the gain."""
    seen = history.best
    lowest = (
        belief.target.low
        if seen is None or seen[1].loss is None or not belief.feasible
        else seen[1].loss
    )
    best = float(belief.target.forward(np.array([lowest]))[0])
    longest = min(rows.levels[-1], outlook.each)
    if not isinstance(history.problem.space, Pool):
        costs = UnitCosts.of(rows, belief.curves) if outlook.by_cost else None
        yield _gain(belief, waiting, best, max(longest, outlook.first), costs)
        return
    most = max(int(longest / outlook.first), 1)
    further = int(rng.integers(1, most + 1))
    goal = best - 2.0 * 10.0 ** rng.uniform(-4.0, -1.0)
    yield _horizon(belief, waiting, goal, outlook.first * further, HOPE)
    yield _horizon(belief, waiting, goal, outlook.first * most, -math.inf)


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


def _horizon(
    belief: CurveBelief, waiting: list[Waiting], goal: float, length: float, hope: float
) -> Question:
    """How likely candidates are below the goal after ``length`` further steps."""
    steps, asked = steps_after(belief, waiting, length), Horizon(length, _loss(belief, goal))
    return Question(steps, np.full(len(steps), goal), length, goal, _quantile, asked, hope)


def _gain(
    belief: CurveBelief,
    waiting: list[Waiting],
    best: float,
    length: float,
    costs: UnitCosts | None,
) -> Question:
    """How much candidates take off the best loss after ``length`` further steps, for each of
    them or for what they cost; after their next slice where that is longer, since it is granted as
    a whole."""
    slices = np.array([end for _, _, end in waiting], dtype=float)
    steps = np.maximum(steps_after(belief, waiting, length), slices)
    asked = Gain(length, _loss(belief, best), per_unit=True, per_cost=costs is not None)
    goals, formula = np.full(len(steps), best), partial(log_loss_improvement, belief.target)
    return Question(steps, goals, length, best, formula, asked, costs=costs)


def steps_after(belief: CurveBelief, waiting: list[Waiting], length: float) -> Array:
    """Where paused trials (m,) are after ``length`` further steps, or at the expected end of a run
    where that is sooner."""
    trials = np.array([trial for trial, _, _ in waiting], dtype=np.intp)
    used, slices = np.array([slice_[1:] for slice_ in waiting], dtype=float).reshape(-1, 2).T
    ends = np.maximum(belief.ends(belief.curves.x[trials]), slices)
    return np.asarray(np.minimum(used + length, ends))


def _loss(belief: CurveBelief, target: float) -> float | None:
    """A target as a loss, in six digits; None while nothing is feasible."""
    if not belief.feasible:
        return None
    return float(f"{belief.target.backward(np.array([target]))[0]:.6g}")


def _quantile(mean: Array, deviation: Array, goal: Array) -> Array:
    """z with P(curve < goal) = Phi(z)."""
    return (goal - mean) / deviation
