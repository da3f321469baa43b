"""Step 1 of a decision: the *rows*, the reports that the curve model learns from.

*Levels* go from the minimum on, each 1.6 times the one before, rounded where the minimum is whole
(1, 2, 3, 5, 8, ...), up to the full budget.
The first report at or beyond a level that its trial had not reached gives a row at its step; so does
the last report of a run that ended. The loss of a row is the lowest that the trial has reported so
far (with constraints, its best standing, `Observation.standing`): a study keeps the best value of a
run, and lowest losses fall steadily where losses are noisy or rise again. Where losses *scatter* so
much that the lowest is luck (`RowList.scatter`), it is the loss at the row's step instead.

In a continuous space (`first_slice_end`) reports within the first slice of a run give no row. Early
levels say which runs start fast, and the parameters that decide this are not those that decide the
end. A failed run, or one whose value is not finite, gives a row with an infinite loss at the level
that it did not reach, not before the end of its first slice.

Rows are only ever added, so a decision that records the number of rows it saw can be repeated. Only
a retried trial loses rows.

    rows = history.derive(CurveTable())
    rows.trial, rows.step, rows.standing                   # arrays of the same length
"""

import math
from array import array
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.schedulers.rungs import Levels
from scrimp.space.space import Pool
from scrimp.study_log.decision_record import WholeTraining
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Ended,
    Event,
    Reported,
    Retried,
    StudyChanged,
    TrialAdded,
)
from scrimp.study_log.fold import Fold
from scrimp.study_log.problem import Budget, Problem
from scrimp.study_log.trial import Trial

Array = NDArray[np.float64]
Places = NDArray[np.intp]

SCOUT = "scout"
"""The tag of trials that no model chose: those of the first design, and those drawn at random."""


class PausedTrial(NamedTuple):
    """A trial that waits for its next slice: the budget it has used, and the end of that slice."""

    trial: int
    used: float
    slice_end: float


def slice_levels(budget: Budget | None) -> Levels:
    """Return the levels: each 1.6 times the one before, whole where the minimum is, and the full
    budget, which replaces a level close below it.

    >>> slice_levels(Budget("epoch", 1, 50))
    (1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 50.0)
    """
    if budget is None:
        return (1.0,)
    level, full = float(budget.minimum), float(budget.maximum)
    levels, whole = [], level.is_integer()
    while level <= NUMBERS.largest_level_before_full * full:
        levels.append(level)
        level = level * NUMBERS.level_ratio
        level = float(round(level)) if whole else level
    return (*levels, full)


def first_slice_end(problem: Problem) -> float:
    """Return the level at which a new configuration is first judged: the lowest one in a list, else
    a sixth of the way to a full training: 1 unit of 27 or 50, 3 of 1,000.

    A list has no near-copies of known configurations, and a short look at many rows pays. In a
    continuous space there is always another configuration that starts as fast as the fastest, and
    with a wide range the lowest level would say which runs start fast, nothing else.
    """
    levels = slice_levels(problem.budget)
    if isinstance(problem.space, Pool):
        return levels[0]
    highest = levels[0] * (levels[-1] / levels[0]) ** NUMBERS.first_slice_exponent * (1.0 + 1e-9)
    return max(level for level in levels if level <= highest)


class RowList:
    """The rows so far and the state of the trials behind them. Read it, do not change it.

    - ``trial``, ``step``, ``standing``: the rows, as arrays that grow and that NumPy copies at once.
    - ``newest``: the standing at the step of each row, not the lowest so far.
    - ``lowest``: the best standing of each trial.
    - ``last_step``: the step of the newest row of each trial.
    - ``run_lengths``: the last step of trials that ran to their end.
    - ``paused``: trials that wait for a slice.
    - ``failed``: trials with an infinite loss.
    - ``scouts``: trials with the tag `SCOUT`.
    - ``running``: trials that run now.
    - ``workers``: the most trials that ran at once.
    - ``cost``: the sum of all reported costs.
    - ``unit_costs``: the lower median of the cost of a unit of each trial.
    - ``units_since_limit``: units trained since the time limit was set.
    - ``trained_whole``: True once a decision gave a whole training because reports scatter.
    - ``first_grant``: the first grant of each trial, which ends its first slice.
    """

    def __init__(self, problem: Problem) -> None:
        self.change_problem(problem)
        self.trial = array("q")
        self.step = array("d")
        self.standing = array("d")
        self.newest = array("d")
        self.lowest: dict[int, float] = {}
        self.last_step: dict[int, float] = {}
        self.run_lengths: dict[int, float] = {}
        self.paused: dict[int, PausedTrial] = {}
        self.failed: set[int] = set()
        self.scouts: set[int] = set()
        self.running: set[int] = set()
        self.workers = 1
        self.cost = 0.0
        self.unit_costs: dict[int, float] = {}
        self.units_since_limit = 0.0
        self.first_grant: dict[int, float] = {}
        self.trained_whole = False
        self._peaks = array("d")
        self._lowest_of_scouts: list[float] = []
        self._all_unit_costs: dict[int, list[float]] = {}
        self._cost_metric_seen = False
        self._first_report: tuple[int, float, float] | None = None
        self._begun = False

    def levels_reached(self, step: float) -> int:
        """Return the number of levels at or below ``step``."""
        return bisect_right(self.levels, step * (1.0 + 1e-9))

    def levels_reached_by(self, steps: Array) -> Places:
        """Return the number of levels at or below each of ``steps`` (k,)."""
        return np.searchsorted(self.levels, steps * (1.0 + 1e-9), side="right")

    def startup_time(self, begin: float) -> float:
        """Return the time from ``begin`` to the first report beyond the training it reports:
        workers start, data is loaded. 0 where a trial ended before anything was reported."""
        if self._first_report is None:
            return 0.0
        trial, units, time = self._first_report
        return max(time - begin - units * self.unit_costs[trial], 0.0)

    @property
    def scatter(self) -> float:
        """Return the noise of single reports, relative to how far the configurations that no model
        chose differ; 0 while too little is known.

        Noise shows in peaks: reports with a loss above both neighbours. Smooth curves have none,
        even if they rise again after their best. The mean height of a peak above its higher
        neighbour, 0 for other reports, is .28 s for normal noise of deviation s. Configurations
        differ by half of the distance from the median of their lowest losses to the best, which
        many on a plateau do not shrink. A peak counts as that much at most, so that a few runs that
        explode are not taken for noise.
        """
        drawn, count = self._lowest_of_scouts, len(self._lowest_of_scouts)
        if count < NUMBERS.first_configs_of_list or len(self._peaks) < NUMBERS.least_peaks:
            return 0.0
        median = (drawn[(count - 1) // 2] + drawn[count // 2]) / 2.0
        spread = (median - drawn[0]) / 2.0
        if not spread > 0.0:
            return 0.0
        height = float(np.minimum(self._peaks, spread).mean())
        return height / (NUMBERS.peak_of_normal_noise * spread)

    @property
    def is_scattered(self) -> bool:
        """True where the lowest loss of a run is luck, in a continuous space with one metric. Whole
        trainings make the spread of configurations larger and the scatter smaller, so once one was
        granted half of the scatter is enough."""
        if isinstance(self.problem.space, Pool) or self.problem.several:
            return False
        share = NUMBERS.scatter_share_after_whole if self.trained_whole else 1.0
        return self.scatter > share * NUMBERS.largest_scatter

    def change_problem(self, problem: Problem) -> None:
        """Take in a changed problem."""
        self.problem = problem
        self.levels = slice_levels(problem.budget)
        self.first_slice_end = first_slice_end(problem)

    def begin_time_limit(self) -> None:
        """Count from now on what a new time limit needs."""
        self.units_since_limit, self._first_report, self._begun = 0.0, None, False

    def add_report(self, trial: Trial) -> None:
        """Take in the newest report of a trial."""
        point = trial.curve[-1]
        if point.loss is None:
            self.add_failure(trial)
            return
        self._lower(trial.id, point.standing)
        latest = trial.curve[-3:]
        if len(latest) == 3 and all(one.feasible for one in latest):
            before, middle, after = (one.standing for one in latest)
            self._peaks.append(max(0.0, middle - max(before, after)))
        within_first_slice = self.levels_reached(self._first_slice_end(trial)) - 1
        last = self.levels_reached(self.last_step.get(trial.id, -1.0))
        if self.levels_reached(point.step) > max(last, within_first_slice):
            self._append(trial.id, point.step, point.standing)

    def add_cost(self, report: Reported, units: float) -> None:
        """Take in the cost of a report of that many further ``units``.

        A study's cost metric that is never reported is measured in seconds; once it is reported,
        seconds no longer count.
        """
        cost, trial = report.cost, report.trial
        named = self.problem.cost is not None and report.metrics.get(self.problem.cost) is not None
        if named and not self._cost_metric_seen:
            self._cost_metric_seen = True
            self._all_unit_costs.clear()
            self.unit_costs.clear()
        self.units_since_limit += max(units, 0.0)
        if cost is not None and math.isfinite(cost):
            self.cost += cost
            if units > 0.0 and cost > 0.0 and named == self._cost_metric_seen:
                known = self._all_unit_costs.setdefault(trial, [])
                insort(known, cost / units)
                self.unit_costs[trial] = known[(len(known) - 1) // 2]
                if not self._begun:
                    self._first_report = trial, units, report.time
        self._begun = True

    def add_end(self, trial: Trial) -> None:
        """Take in the end of a trial."""
        self._begun = True
        last = trial.last
        if trial.status == "completed" and last is not None:
            self.run_lengths[trial.id] = last.step
        if trial.status == "failed":
            self.add_failure(trial)
        elif (
            last is not None
            and last.loss is not None
            and last.step > self.last_step.get(trial.id, -1.0)
        ):
            self._append(trial.id, last.step, last.standing)

    def add_failure(self, trial: Trial) -> None:
        """Append an infinite loss at the next level, once, at the end of the first slice at the
        earliest: where no other run has a row, a model would take a failure for what early training
        is like."""
        if trial.id in self.failed:
            return
        self.failed.add(trial.id)
        finite = max((point.step for point in trial.curve if point.loss is not None), default=0.0)
        next_level = self.levels[min(self.levels_reached(finite), len(self.levels) - 1)]
        step = max(next_level, self._first_slice_end(trial))
        if step > self.last_step.get(trial.id, -1.0):
            self._append(trial.id, step, math.inf)

    def forget_failure(self, trial: Trial) -> None:
        """Remove the infinite loss of a trial that is tried again."""
        self.failed.discard(trial.id)
        kept = [
            row
            for row, owner in enumerate(self.trial)
            if owner != trial.id or self.standing[row] < math.inf
        ]
        self.trial = array("q", [self.trial[row] for row in kept])
        for name in ("step", "standing", "newest"):
            column = getattr(self, name)
            setattr(self, name, array("d", [column[row] for row in kept]))
        self.last_step.pop(trial.id, None)
        for owner, step in zip(self.trial, self.step, strict=True):
            if owner == trial.id:
                self.last_step[owner] = step

    def change_status(self, trial: Trial) -> None:
        """Take in whether a trial runs, and whether it waits for another slice."""
        (self.running.add if trial.status == "running" else self.running.discard)(trial.id)
        self.workers = max(self.workers, len(self.running))
        self.paused.pop(trial.id, None)
        if trial.status == "paused" and trial.id in self.last_step and trial.id not in self.failed:
            reached = self.levels_reached(max(trial.budget, trial.granted))
            if reached < len(self.levels):
                self.paused[trial.id] = PausedTrial(trial.id, trial.budget, self.levels[reached])

    def _first_slice_end(self, trial: Trial) -> float:
        """Return the step before which the trial gives no row."""
        return min(self.first_slice_end, self.first_grant.get(trial.id, 0.0))

    def _lower(self, trial: int, standing: float) -> None:
        """Take in a standing that may be the best of its trial; those of scouts are kept in order."""
        known = self.lowest.get(trial, math.inf)
        self.lowest[trial] = min(standing, known)
        if trial in self.scouts and standing < known:
            if known < math.inf:
                del self._lowest_of_scouts[bisect_left(self._lowest_of_scouts, known)]
            insort(self._lowest_of_scouts, standing)

    def _append(self, trial: int, step: float, newest: float) -> None:
        """Append a row; an infinite loss is that of a failure."""
        self.last_step[trial] = step
        self.trial.append(trial)
        self.step.append(step)
        self.newest.append(newest)
        self.standing.append(self.lowest[trial] if newest < math.inf else newest)


@dataclass(frozen=True)
class CurveTable(Fold[RowList]):
    """The fold that keeps `RowList` up to date."""

    def begin(self, problem: Problem) -> RowList:
        """Return an empty list."""
        return RowList(problem)

    def step(self, state: RowList, event: Event, before: Trial | None, trial: Trial | None) -> None:
        """Take in one event."""
        if isinstance(event, StudyChanged) and event.problem is not None:
            state.change_problem(Problem.from_json(event.problem))
        if isinstance(event, StudyChanged) and event.totals and event.totals.timeout is not None:
            state.begin_time_limit()
        if isinstance(event, TrialAdded) and event.tag.get(SCOUT):
            state.scouts.add(event.trial)
        if isinstance(event, Decided) and isinstance(event.record.grant, WholeTraining):
            state.trained_whole = True
        if isinstance(event, BudgetGranted):
            state.first_grant.setdefault(event.trial, event.budget)
        if trial is None or before is None or trial is before:
            return
        if isinstance(event, Reported):
            # a late report of a lower step gives no row
            if trial.curve[-1].step == event.step:
                state.add_report(trial)
            state.add_cost(event, event.step - before.budget)
        elif isinstance(event, Ended):
            state.add_end(trial)
        elif isinstance(event, Retried):
            state.forget_failure(trial)
        if trial.status != before.status or trial.status == "paused":
            state.change_status(trial)
