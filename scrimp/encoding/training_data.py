"""The history of a study as arrays that models learn from.

A budget rule says which reports of a trial count, and at which budget:

| rule | rows |
|---|---|
| `LastReport()` | one row per trial, its last report; for models without budgets |
| `AtLevels((1, 3))` | one row per level that the trial has reached: its first report at or above the \
level. A completed trial also counts at every higher level, with its last report |
| `EveryReport()` | one row per report: learning curves |

*Failures* are data, too. A failed trial gets a row with the worst finite loss of all rows, at the
budget where it failed, and is infeasible, so that models learn to avoid its neighbourhood. Under
`LastReport` that is its only row; the other rules also keep its earlier reports. Until there is a
finite loss, failures have no row.

*Pending* are evaluations under way that have no row yet: their configurations and the budgets at
which they will report. Stale trials, whose worker vanished, are not pending. Trials that do not fit
a changed space are left out of everything.

    training = training_data(history, Encoding(space))
    surrogate.fit(Data(training.x, training.y[:, 0], training.noise[:, 0]), rng)
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from scrimp.encoding.encoding import Encoding
from scrimp.study_log.constraints import Constraint
from scrimp.study_log.fold import Cache, Kept
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Observation, Trial

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = list[tuple[float, Observation]]
Seen = tuple[Trial, float, Observation | None]
"""A row: its trial, its budget, and its report; None for a failure."""
TrialRows = tuple[Trial, list[Seen], float | None]
"""A trial with its rows, and the budget at which it will report next; None if it will not."""


@dataclass(frozen=True)
class ConstraintRows:
    """One constraint in n rows, NaN where its metric was not reported. ``violations``: feasible
    where not positive. ``deviations``: signed distances from the limit or target, which models
    learn. ``band``: the interval of feasible deviations."""

    violations: Array  # (n,)
    deviations: Array  # (n,)
    band: tuple[float, float]


@dataclass(frozen=True)
class Training:
    """n rows of observations of m metrics in the order of trials, p pending evaluations, and the k
    configurations of all trials.

    ``y``: losses, NaN where a metric was not reported; goals do not cap them. ``noise``: variances
    from reported standard errors, 0 without one. ``constraints``: by metric. ``log_cost``: of the
    trial up to the report, NaN where unknown; None if the study has no cost. ``repeatable``: True
    if a known configuration may be tried again.
    """

    trial: NDArray[np.int64]  # (n,) ids
    budget: Array  # (n,)
    x: Array  # (n, d)
    y: Array  # (n, m)
    noise: Array  # (n, m)
    failed: Mask  # (n,)
    constraints: Mapping[str, ConstraintRows]
    log_cost: Array | None  # (n,)
    pending: Array  # (p, d)
    pending_budget: Array  # (p,)
    known: Array  # (k, d), pending ones included
    repeatable: bool

    @property
    def feasible(self) -> Mask | None:
        """True where all constraints hold (n,); None without constraints."""
        if not self.constraints:
            return None
        held = np.all([own.violations <= 0 for own in self.constraints.values()], axis=0)
        return np.asarray(held & ~self.failed)

    def noise_of(self, metric: int, rows: NDArray[np.intp]) -> Array | None:
        """The variances (k,) of a metric, by its column, at some rows; None if not given."""
        told = self.noise[:, metric]
        return told[rows] if told.any() else None

    def of_rows(self, kept: Mask) -> "Training":
        """Return a copy with some of the observations (n,)."""
        constraints = {}
        for name, own in self.constraints.items():
            violations, deviations = own.violations[kept], own.deviations[kept]
            constraints[name] = ConstraintRows(violations, deviations, own.band)
        return replace(
            self,
            trial=self.trial[kept],
            budget=self.budget[kept],
            x=self.x[kept],
            y=self.y[kept],
            noise=self.noise[kept],
            failed=self.failed[kept],
            constraints=constraints,
            log_cost=None if self.log_cost is None else self.log_cost[kept],
        )


class BudgetRule(ABC):
    """A rule for the reports that count."""

    @abstractmethod
    def observed(self, trial: Trial, failed: bool) -> Rows:
        """The reports with a finite loss that count, by increasing budget. ``failed``: a row for
        the failure of the trial follows."""

    @abstractmethod
    def awaited(self, trial: Trial, rows: Rows) -> float | None:
        """The budget of the next row of a trial, a report or a failure; None without one."""


@dataclass(frozen=True)
class LastReport(BudgetRule):
    """The last report of each trial."""

    def observed(self, trial: Trial, failed: bool) -> Rows:
        last = trial.last
        return [] if failed or last is None or last.loss is None else [(last.step, last)]

    def awaited(self, trial: Trial, rows: Rows) -> float | None:
        return trial.granted if not rows else None


@dataclass(frozen=True)
class AtLevels(BudgetRule):
    """The first report at or above each of these levels, in increasing order."""

    levels: tuple[float, ...]

    def observed(self, trial: Trial, failed: bool) -> Rows:
        rows, last = [], len(trial.curve) - 1
        for level in self.levels:
            place = bisect_left(trial.curve, level, key=attrgetter("step"))
            if trial.status == "completed":
                place = min(place, last)
            if -1 < place <= last and trial.curve[place].loss is not None:
                rows.append((level, trial.curve[place]))
        return rows

    def awaited(self, trial: Trial, rows: Rows) -> float | None:
        reached = rows[-1][0] if rows else -math.inf
        return next((level for level in self.levels if level > reached), None)


@dataclass(frozen=True)
class EveryReport(BudgetRule):
    """All reports of each trial."""

    def observed(self, trial: Trial, failed: bool) -> Rows:
        return [(point.step, point) for point in trial.curve if point.loss is not None]

    def awaited(self, trial: Trial, rows: Rows) -> float | None:
        if trial.last is not None and trial.last.loss is None:
            return trial.last.step
        return max(trial.granted, trial.budget)


# --- trials to rows -------------------------------------------------------------------------------


def training_data(history: History, encoding: Encoding, rule: BudgetRule | None = None) -> Training:
    """Return the data of a study for its models, under ``rule``: by default `LastReport`."""
    rule = LastReport() if rule is None else rule
    encoded = encoded_trials(history, encoding)
    # The rows of each trial are kept until the trial changes: a decision costs what is new.
    cache: Kept[dict[int, TrialRows]] = history.derive(Cache(dict, rule))
    kept = cache.value
    seen: list[Seen] = []
    pending: list[tuple[int, float]] = []
    finite = False
    for trial in history.trials:
        if not encoded[1][trial.id]:
            continue
        if trial.id not in kept or kept[trial.id][0] is not trial:
            failed = has_failed(trial)
            observed = rule.observed(trial, failed)
            rows: list[Seen] = []
            for budget, point in observed:
                rows.append((trial, budget, point))
            due = rule.awaited(trial, observed)
            if failed and due is not None:
                rows.append((trial, due, None))
            if trial.status != "running" or (due and due > max(trial.granted, trial.budget)):
                due = None
            kept[trial.id] = trial, rows, due
        _, own, awaited = kept[trial.id]
        seen += own
        finite = finite or (bool(own) and own[0][2] is not None)
        if awaited is not None:
            pending.append((trial.id, awaited))
    return _training(history.problem, encoded, seen if finite else [], pending)


def has_failed(trial: Trial) -> bool:
    """Return True if the trial failed, or completed without a finite loss."""
    return trial.status == "failed" or (trial.status == "completed" and trial.loss is None)


# --- rows to arrays -------------------------------------------------------------------------------


def _training(
    problem: Problem,
    encoded: tuple[Array, Mask],
    seen: Sequence[Seen],
    pending: Sequence[tuple[int, float]],
) -> Training:
    count = len(problem.names)
    ids, budgets, losses, errors, failures = [], [], [], [], []
    for trial, budget, point in seen:
        ids.append(trial.id)
        budgets.append(budget)
        losses.append((math.nan,) * count if point is None else point.losses)
        failures.append(point is None)
        error = [0.0] * count
        if point is not None and point.stderr:
            error = [point.stderr.get(name, 0.0) for name in problem.names]
        errors.append(error)
    y, failed = np.array(losses, dtype=float).reshape(-1, count), np.array(failures, dtype=bool)
    y[failed] = np.max(y, axis=0, initial=-math.inf, where=np.isfinite(y))
    constraints = {}
    for name, rule in problem.constraints.items():
        constraints[name] = _constraint_rows(name, rule, seen)
    rows, usable = encoded
    trials, waiting = np.array(ids, dtype=np.int64), np.array(pending, dtype=float).reshape(-1, 2)
    return Training(
        trial=trials,
        budget=np.array(budgets, dtype=float),
        x=rows[trials],
        y=y,
        noise=np.array(errors, dtype=float).reshape(-1, count) ** 2,
        failed=failed,
        constraints=constraints,
        log_cost=None if problem.cost is None else _log_cost(seen),
        pending=rows[waiting[:, 0].astype(np.int64)],
        pending_budget=waiting[:, 1],
        known=rows[usable],
        repeatable=problem.noisy,
    )


def _constraint_rows(name: str, rule: Constraint, seen: Sequence[Seen]) -> ConstraintRows:
    violations, deviations = np.full(len(seen), math.nan), np.full(len(seen), math.nan)
    for row, (_, _, point) in enumerate(seen):
        value = None if point is None else point.metrics.get(name)
        if value is not None:
            violations[row], deviations[row] = rule.violation(value), rule.deviation(value)
    return ConstraintRows(violations, deviations, rule.band)


def _log_cost(seen: Sequence[Seen]) -> Array:
    """The logarithm of the cost of each trial up to its row; NaN where no cost was reported."""
    spent: dict[tuple[int, float], float] = {}
    for trial in {trial.id: trial for trial, _, _ in seen}.values():
        total = 0.0
        for point in trial.curve:
            total += point.cost or 0.0
            spent[trial.id, point.step] = total
    steps = [(trial.id, trial.budget if point is None else point.step) for trial, _, point in seen]
    costs = np.array([spent.get(step, 0.0) for step in steps], dtype=float)
    return np.log(np.where(costs > 0, costs, math.nan))


def encoded_trials(history: History, encoding: Encoding) -> tuple[Array, Mask]:
    """Return the configurations of all trials as rows (k, d), and a mask (k,) of those that fit the
    space; other rows are NaN. Each trial is encoded once."""
    kept: Kept[dict[str, tuple[Array, Mask]]] = history.derive(Cache(dict, encoding))
    # Both are replaced at once, because pages read them from several threads.
    nothing = np.zeros((0, encoding.dimension)), np.zeros(0, dtype=bool)
    rows, usable = kept.value.get("all", nothing)
    fitting, fits = [], []
    for trial in history.trials[len(rows) :]:
        fits.append(encoding.space.contains(trial.config))
        if fits[-1]:
            fitting.append(trial.config)
    if fits:
        more = np.full((len(fits), encoding.dimension), math.nan)
        more[fits] = encoding.encode(fitting)
        rows, usable = np.vstack([rows, more]), np.concatenate([usable, np.array(fits)])
        rows.setflags(write=False)
        kept.value["all"] = rows, usable
    return rows, usable
