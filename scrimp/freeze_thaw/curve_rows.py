"""Which reports of a study a curve model learns from, in the order in which they came.

*Levels* grow by a factor of 1.6: 1, 2, 3, 5, 8, 13, ... times the minimum, up to the full budget.
The first report at or beyond a level that its trial had not reached gives a row, at the step it was
made; so does the last report of a run that ended. In a continuous space (`first_level`) what a run
reports within its first slice gives no row: early levels say who starts fast, and other parameters
decide that than decide the end. The loss of a row is the lowest the trial has reported so far: what
a study keeps of a run is its best value, and lowest losses fall steadily where losses are noisy or
rise again. A failed run, or one whose value is not finite, gives a row with an infinite
loss at the level it did not reach, not before the end of its first slice, and is dead.
Where there are constraints, lowest means the best
standing (`Observation.standing`): a run without a feasible report teaches as an infinite loss
(`losses_of`), and while all are like that, models learn standings instead, so the search looks for
feasibility.

Rows are only ever added, so the data of any earlier decision is a beginning of the list: a decision
that names how many rows it saw can be repeated.

    rows = history.derive(CurveTable())
    rows.trial, rows.step, rows.standing                   # lists of the same length
"""

import math
from bisect import bisect_right, insort
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.history.events import (
    BudgetGranted,
    Ended,
    Event,
    Reported,
    Retried,
    StudyChanged,
    TrialAdded,
)
from scrimp.history.fold import Fold
from scrimp.history.problem import Budget, Problem
from scrimp.history.trial import BEHIND, Trial
from scrimp.schedulers.rungs import Levels
from scrimp.space.space import Pool

__all__ = ["SCOUT", "CurveTable", "RowList", "Waiting", "first_level", "losses_of", "slice_levels"]

Waiting = tuple[int, float, float]
"""A paused trial, what it has used, and where its next slice ends."""

SCOUT = "scout"
"""The tag of trials that were drawn at random, not chosen by a model."""

GROWTH = 1.6
NEARLY_FULL = 0.85
"""A level beyond this share of the full budget is replaced by the full budget."""

PROBED = 0.25  # of the way from the lowest to the full budget, on a logarithmic axis


def slice_levels(budget: Budget | None) -> Levels:
    """Each level 1.6 times the one before, whole where the minimum is, and the full budget, which
    replaces a level close below.

    >>> slice_levels(Budget("epoch", 1, 50))
    (1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 50.0)
    """
    if budget is None:
        return (1.0,)
    level, full = float(budget.minimum), float(budget.maximum)
    levels, whole = [], level.is_integer()
    while level <= NEARLY_FULL * full:
        levels.append(level)
        level = float(round(level * GROWTH)) if whole else level * GROWTH
    return (*levels, full)


def first_level(problem: Problem) -> float:
    """Where a new configuration is first judged: at the lowest level if it is one of a list, else
    at a quarter of the way to a full training: after 2 units of 27 or 50, 5 of 1,000.

    A list has no near-copies of what is known, and a short look at many of its rows pays. In a
    continuous space there is always another newcomer that starts as fast as the fastest: what is
    learned at the lowest level is who starts fast.
    """
    levels = slice_levels(problem.budget)
    if isinstance(problem.space, Pool):
        return levels[0]
    most = levels[0] * (levels[-1] / levels[0]) ** PROBED * (1.0 + 1e-9)
    return max(level for level in levels if level <= most)


def losses_of(standings: NDArray[np.float64], known: bool) -> NDArray[np.float64]:
    """What a model learns of rows (n,): losses, infinite where nothing feasible was reported;
    standings / `BEHIND` while no feasible row is ``known``."""
    return np.where(standings < BEHIND, standings, math.inf) if known else standings / BEHIND


class RowList:
    """Rows so far, and how many trials ran at once at most. Read it, do not change it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.levels = slice_levels(problem.budget)
        self.first = first_level(problem)
        self.granted: dict[int, float] = {}  # where the first slice of each trial ends
        self.trial: list[int] = []
        self.step: list[float] = []
        self.standing: list[float] = []
        self.last: dict[int, float] = {}  # the step of the newest row of each trial
        self.lowest: dict[int, float] = {}
        self.ends: dict[int, float] = {}  # the last step of trials that ran to their end
        self.dead: set[int] = set()
        self.scouts: set[int] = set()
        self.waiting: dict[
            int, tuple[float, float]
        ] = {}  # paused trials: what they have used, where their next slice ends
        self.cost = 0.0
        self.unit_costs: dict[int, float] = {}  # the lower median of what a unit of each trial cost
        self._unit_costs: dict[int, list[float]] = {}
        self._named = False  # whether the study's cost metric was ever reported
        self.recent = 0.0  # units since the time limit was set
        self._opening: tuple[int, float, float] | None = None  # the first report since then
        self._opened = False  # whether a trial has reported or ended since then
        self.running: set[int] = set()
        self.workers = 1

    def reported(self, trial: Trial) -> None:
        """Take the newest report of a trial in."""
        point = trial.curve[-1]
        if point.loss is None:
            self.died(trial)
            return
        self.lowest[trial.id] = min(point.standing, self.lowest.get(trial.id, math.inf))
        begun = self.reached(self._first_end(trial)) - 1
        if self.reached(point.step) > max(self.reached(self.last.get(trial.id, -1.0)), begun):
            self._append(trial.id, point.step, self.lowest[trial.id])

    def paid(self, report: Reported, units: float) -> None:
        """Take in what a report of that many further ``units`` cost.

        A study's cost metric that is never reported is measured in seconds; once it is, seconds do
        not mix with it.
        """
        cost, trial = report.cost, report.trial
        named = self.problem.cost is not None and report.metrics.get(self.problem.cost) is not None
        if named and not self._named:
            self._named = True
            self._unit_costs.clear()
            self.unit_costs.clear()
        self.recent += max(units, 0.0)
        if cost is not None and math.isfinite(cost):
            self.cost += cost
            if units > 0.0 and cost > 0.0 and named == self._named:
                known = self._unit_costs.setdefault(trial, [])
                insort(known, cost / units)
                self.unit_costs[trial] = known[(len(known) - 1) // 2]
                if not self._opened:
                    self._opening = trial, units, report.time
        self._opened = True

    def opening(self, begin: float) -> float:
        """How long it took from ``begin`` to the first report beyond what that training takes:
        workers start, data is loaded. None of it where a trial ended before anything was reported."""
        if self._opening is None:
            return 0.0
        trial, units, time = self._opening
        return max(time - begin - units * self.unit_costs[trial], 0.0)

    def timed(self) -> None:
        """A time limit was set: it begins now."""
        self.recent, self._opening, self._opened = 0.0, None, False

    def ended(self, trial: Trial) -> None:
        """Take the end of a trial in."""
        self._opened = True
        last = trial.last
        if trial.status == "completed" and last is not None:
            self.ends[trial.id] = last.step
        if trial.status == "failed":
            self.died(trial)
        elif (
            last is not None and last.loss is not None and last.step > self.last.get(trial.id, -1.0)
        ):
            self._append(trial.id, last.step, self.lowest[trial.id])

    def died(self, trial: Trial) -> None:
        """An infinite loss at the next level, at the end of its first slice at the earliest; once.
        Where no other run has a row, a model would take a failure for what early training is
        like."""
        if trial.id not in self.dead:
            self.dead.add(trial.id)
            finite = max(
                (point.step for point in trial.curve if point.loss is not None), default=0.0
            )
            next_level = self.levels[min(self.reached(finite), len(self.levels) - 1)]
            step = max(next_level, self._first_end(trial))
            if step > self.last.get(trial.id, -1.0):
                self._append(trial.id, step, math.inf)

    def retried(self, trial: Trial) -> None:
        """Forget the infinite loss of a trial that is tried again."""
        self.dead.discard(trial.id)
        kept = [
            row
            for row, who in enumerate(self.trial)
            if who != trial.id or self.standing[row] < math.inf
        ]
        self.trial, self.step, self.standing = (
            [self.trial[row] for row in kept],
            [self.step[row] for row in kept],
            [self.standing[row] for row in kept],
        )
        self.last.pop(trial.id, None)
        self.last |= {
            who: step for who, step in zip(self.trial, self.step, strict=True) if who == trial.id
        }

    def moved(self, trial: Trial) -> None:
        """Take what became of a trial in: whether it runs, and whether it waits for another
        slice."""
        (self.running.add if trial.status == "running" else self.running.discard)(trial.id)
        self.workers = max(self.workers, len(self.running))
        self.waiting.pop(trial.id, None)
        if trial.status == "paused" and trial.id in self.last and trial.id not in self.dead:
            reached = self.reached(max(trial.budget, trial.granted))
            if reached < len(self.levels):
                self.waiting[trial.id] = trial.budget, self.levels[reached]

    def _first_end(self, trial: Trial) -> float:
        """Up to where a run gives no row: where its first slice ends."""
        return min(self.first, self.granted.get(trial.id, 0.0))

    def _append(self, trial: int, step: float, standing: float) -> None:
        self.last[trial] = step
        self.trial.append(trial)
        self.step.append(step)
        self.standing.append(standing)

    def reached(self, step: float) -> int:
        """How many levels lie at or below ``step``."""
        return bisect_right(self.levels, step * (1.0 + 1e-9))


@dataclass(frozen=True)
class CurveTable(Fold[RowList]):
    """How to keep `RowList`."""

    def begin(self, problem: Problem) -> RowList:
        """Nothing was seen."""
        return RowList(problem)

    def step(self, state: RowList, event: Event, before: Trial | None, trial: Trial | None) -> None:
        """Take one event in."""
        if isinstance(event, StudyChanged) and event.problem is not None:
            state.problem = Problem.from_json(event.problem)
            state.levels = slice_levels(state.problem.budget)
            state.first = first_level(state.problem)
        if isinstance(event, StudyChanged) and event.totals and event.totals.timeout is not None:
            state.timed()
        if isinstance(event, TrialAdded) and event.tag.get(SCOUT):
            state.scouts.add(event.trial)
        if isinstance(event, BudgetGranted):
            state.granted.setdefault(event.trial, event.budget)
        if trial is None or before is None or trial is before:
            return
        if isinstance(event, Reported):
            if trial.curve[-1].step == event.step:  # a late report of a lower step is no news
                state.reported(trial)
            state.paid(event, event.step - before.budget)
        elif isinstance(event, Ended):
            state.ended(trial)
        elif isinstance(event, Retried):
            state.retried(trial)
        if trial.status != before.status or trial.status == "paused":
            state.moved(trial)
