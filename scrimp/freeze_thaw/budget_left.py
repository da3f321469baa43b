"""Step 2 of a decision: how much budget is left, and what a unit of training costs.

The *total* is the study's ``total_budget``. Given ``n_trials`` and no ``total_budget`` it is what
successive halving would spend on as many configurations: n_trials x minimum budget x number of rungs.
A time limit is turned into units of budget by the time that a unit has taken so far. In a continuous
space the time before anything is trained (workers start, libraries are imported) does not count as
spent.

Costs count where the time limit is the only limit or the tighter one, and where the study has a cost
of its own; not in a list, and not with several metrics.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.freeze_thaw.curve_rows import PausedTrial, RowList
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.freeze_thaw.study_curves import StudyCurves
from scrimp.schedulers.rungs import halving_levels
from scrimp.schedulers.scheduler import may_add
from scrimp.space.space import Pool
from scrimp.study_log.history import History

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BudgetLeft:
    """The budget that is left, and what may still be granted.

    ``spent_share``: the share of the total that is spent. ``per_worker``: budget left per worker,
    infinite when unlimited. ``largest_slice``: the largest slice that leaves enough to start all
    configurations still to come. ``may_add``: True if another configuration may be added.
    ``first_slice_end``: the level to which a new one is trained before it is judged, the lowest one
    where ``n_trials`` sets the total.
    ``costs_count``: True if the cost of a unit matters.
    """

    spent_share: float
    per_worker: float
    largest_slice: float
    may_add: bool
    first_slice_end: float
    costs_count: bool = False

    @staticmethod
    def of(history: History, rows: RowList) -> "BudgetLeft":
        """Return the budget left at this moment."""
        totals, budget, full = history.totals, history.problem.budget, history.problem.full_budget
        least = full if budget is None else float(budget.minimum)
        committed = sum(
            max(trial.granted - trial.budget, 0.0) for trial in history.with_status("running")
        )
        total, to_start = totals.budget, 0
        if total is None and totals.n_trials is not None:
            total = totals.n_trials * least * len(halving_levels(budget))
            to_start = max(totals.n_trials - len(history.trials), 0)
        left = math.inf if total is None else max(total - history.spent - committed, 0.0)
        usual = NUMBERS.full_trainings_without_limit * full
        share = history.spent / (usual if total is None else total)
        costs_may_count = not (isinstance(history.problem.space, Pool) or history.problem.several)
        by_cost = history.problem.cost is not None
        if totals.timeout is not None:
            units, time_share = _within_time(history, rows, totals.timeout, costs_may_count)
            left = min(left, units)
            over = history.time - _limit_set_at(history) > totals.timeout
            by_cost = by_cost or (not over and (total is None or time_share >= share))
            share = time_share if total is None else max(share, time_share)
        return BudgetLeft(
            share,
            left / rows.workers,
            left - to_start * least,
            may_add(history),
            rows.levels[0] if to_start else rows.first_slice_end,
            costs_may_count and by_cost,
        )

    def affordable(self, paused: list[PausedTrial]) -> list[PausedTrial]:
        """Return the paused trials whose next slice may be granted."""
        return [own for own in paused if own.slice_end - own.used <= self.largest_slice]


def _limit_set_at(history: History) -> float:
    """Return the time from which the time limit counts."""
    since = history.totals.since
    return history.created.time if since is None else since


def _within_time(
    history: History, rows: RowList, seconds: float, without_startup: bool
) -> tuple[float, float]:
    """Return the units that a limit of so many ``seconds`` leaves, and the share passed."""
    begin = _limit_set_at(history)
    passed = history.time - begin
    taken, trained, startup = rows.cost, history.spent, 0.0
    if history.problem.cost is not None:
        # the study's own cost need not be in seconds
        taken, trained = passed * rows.workers, rows.units_since_limit
    elif without_startup:
        startup = min(rows.startup_time(begin), seconds)
    worker_seconds = max(seconds - passed, 0.0) * rows.workers
    left = worker_seconds * trained / taken if taken > 0 else math.inf
    share = (passed - startup) / (seconds - startup) if startup < seconds else 1.0
    return left, share


@dataclass(frozen=True)
class UnitCosts:
    """Log costs of a unit of training: ``of_trials`` (T,), and ``mean``, ``centre`` (f,) and
    ``weights`` (f,) to predict those of new configurations.

    Costs of training are mostly products (of width, depth, batches in an epoch), so a ridge
    regression predicts their logarithms from the features f(x):

        log cost(x) = mean + (f(x) - centre) . w,      w = (A'A + r I)^-1 A'y

    with the centred features A and log costs y of the trials so far. A trial's own cost is the lower
    median of its reports: the first one often pays for what is loaded.
    """

    of_trials: Array
    mean: float
    centre: Array
    weights: Array
    curves: StudyCurves

    @staticmethod
    def of(rows: RowList, curves: StudyCurves) -> "UnitCosts | None":
        """Learn from the reports so far; None while they are too few, or all cost the same."""
        count = len(rows.unit_costs)
        trials = np.fromiter(rows.unit_costs, dtype=np.intp, count=count)
        costs = np.fromiter(rows.unit_costs.values(), dtype=float, count=count)
        known, logs = trials[curves.usable[trials]], np.log(costs[curves.usable[trials]])
        if len(known) < NUMBERS.min_trials_to_predict_cost:
            return None
        if np.ptp(logs) <= NUMBERS.smallest_cost_difference:
            return None
        mean, centre = float(logs.mean()), curves.features[known].mean(axis=0)
        a = curves.features[known] - centre
        penalty = NUMBERS.cost_ridge * np.eye(a.shape[1])
        weights = np.linalg.solve(a.T @ a + penalty, a.T @ (logs - mean))
        of_trials = mean + (curves.features - centre) @ weights
        of_trials[known] = logs
        return UnitCosts(of_trials, mean, centre, weights, curves)

    def of_configs(self, x: Array) -> Array:
        """Return log costs (k,) of a unit of new configurations x (k, d)."""
        return np.asarray(self.mean + (self.curves.featured(x) - self.centre) @ self.weights)
