"""Which observations a model of budgets learns from: the choice of reports, and fewer of them where
there are too many.

    rungs             one row per rung reached
    rungs_and_last    and the newest report of every trial
    all               every report

Beyond a limit the trials that reached high rungs keep all their rows, and those that ended early
give theirs up.

    training = training_data(history, encoding, rule_for("rungs", levels))
    kept = thinned(training.trial, training.budget, 500, rng)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.encoding.training_data import AtLevels, BudgetRule, EveryReport, Training
from scrimp.errors import MethodError
from scrimp.history.trial import Observation, Trial

__all__ = [
    "DATA",
    "LevelsAndLast",
    "curve_targets",
    "is_hopeless",
    "rule_for",
    "thinned",
    "without_dense_steps",
]

Array = NDArray[np.float64]
Rows = list[tuple[float, Observation]]

DATA = ("rungs", "rungs_and_last", "all")


def rule_for(data: str, levels: tuple[float, ...]) -> BudgetRule:
    """The rule of that name."""
    match data:
        case "rungs":
            return AtLevels(levels)
        case "rungs_and_last":
            return LevelsAndLast(levels)
        case "all":
            return EveryReport()
    raise MethodError(f"data is {data!r}; it must be one of {', '.join(DATA)}")


@dataclass(frozen=True)
class LevelsAndLast(BudgetRule):
    """The first report at or above each level, and the newest one."""

    levels: tuple[float, ...]

    def observed(self, trial: Trial, failed: bool) -> Rows:
        rows, last = AtLevels(self.levels).observed(trial, failed), trial.last
        if last is None or last.loss is None or (rows and rows[-1][0] >= last.step):
            return rows
        return [*rows, (last.step, last)]

    def awaited(self, trial: Trial, rows: Rows) -> float | None:
        return AtLevels(self.levels).awaited(trial, rows)


def thinned(
    trial: NDArray[np.int64], budget: Array, most: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """The rows to keep, in order: all rows of the trials that got furthest, and what fits of the
    next ones.

    From the highest budget down, all rows of the trials whose last row lies there are taken. Of the
    first such block that does not fit, whole levels are taken from its top, and then rows at random
    from the level that fits in part.

    >>> thinned(np.array([0, 1, 1]), np.array([1.0, 1.0, 3.0]), 2, np.random.default_rng(0)).tolist()
    [1, 2]
    """
    if len(budget) <= most:
        return np.arange(len(budget))
    _, place = np.unique(trial, return_inverse=True)
    reached = np.zeros(place.max() + 1)
    np.maximum.at(reached, place, budget)
    kept: list[NDArray[np.intp]] = []
    room = most
    for level in np.unique(reached)[::-1]:
        block = np.flatnonzero(reached[place] == level)
        if len(block) <= room:
            kept.append(block)
            room -= len(block)
            continue
        for inner in np.unique(budget[block])[::-1]:
            rows = block[budget[block] == inner]
            chosen = rows if len(rows) <= room else rng.choice(rows, room, replace=False)
            kept.append(chosen)
            room -= len(chosen)
        break
    return np.sort(np.concatenate(kept))


def without_dense_steps(
    trial: NDArray[np.int64], budget: Array, most: int, ratio: float = 3.0
) -> NDArray[np.intp]:
    """The rows to keep when steps are dense: of each trial the last row in every stretch from 1, 3,
    9, ... least budgets.

    Other rows are dropped from the highest budget down, until ``most`` rows are left or none of
    them is.
    """
    excess = len(budget) - most
    if excess <= 0:
        return np.arange(len(budget))
    stretch = np.floor(np.log(budget / budget.min()) / np.log(ratio) + 1e-9)
    order = np.lexsort((budget, stretch, trial))
    follows = (np.diff(trial[order]) == 0) & (np.diff(stretch[order]) == 0)
    spare = order[:-1][follows]  # a later row of the same trial lies in the same stretch
    dropped = spare[np.argsort(-budget[spare], kind="stable")][:excess]
    return np.setdiff1d(np.arange(len(budget)), dropped)


def curve_targets(training: Training) -> dict[str, Array]:
    """What models learn (n,): of the ``loss``, and with several metrics of those after the first by
    name, NaN where one was not reported.

    Where a constraint is violated it is the worst loss seen; while that is everywhere, the largest
    violation is learned, and nothing of the others.
    """
    if training.feasible is None:
        return {"loss": training.y, **training.further}
    if is_hopeless(training):
        violations = np.array(list(training.violations.values()))
        largest: Array = np.max(violations, axis=0, initial=0.0, where=np.isfinite(violations))
        return {"loss": np.where(training.failed, largest.max(initial=0.0), largest)}
    violated = _violated(training)
    every = {"loss": training.y, **training.further}
    return {
        name: np.where(violated, values[np.isfinite(values)].max(initial=0.0), values)
        for name, values in every.items()
    }


def _violated(training: Training) -> NDArray[np.bool_]:
    """Whether a constraint is (n,); what was not reported has the benefit of the doubt."""
    return np.asarray(np.any([values > 0 for values in training.violations.values()], axis=0))


def is_hopeless(training: Training) -> bool:
    """Whether all that was seen violates a constraint, or failed."""
    return training.feasible is not None and bool((_violated(training) | training.failed).all())
