"""From what happened to what a model learns from: a history as arrays. The rule for budgets is
explicit here.

A rule says which reports of a trial count, and at which budget:

    LastReport()       one row per trial, its last report; for models that know nothing of budgets
    AtLevels((1, 3))   one row per level reached: the first report at a step of at least the level.
                       A run that ended normally before counts at every higher level with its last
                       value.
    EveryReport()      one row per report: learning curves

*Failures* teach too. A failed trial gets a row with the worst finite loss of all rows, at the
budget where it failed, and counts as infeasible; so models learn to keep away from it without
knowing why. Under `LastReport` that is its only row; the other rules also keep what it reported
before. While nothing finite was seen, failures have no row.

*Pending* are evaluations under way that have no row yet: where they happen (x) and at which budget
they will report. Stale trials, whose worker vanished, are not pending. Trials that a changed space
has no place for are left out of everything.

    training = training_data(history, Encoding(space))
    surrogate.fit(Data(training.x, training.y, training.noise), rng)
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from scrimp.encoding.encoding import Encoding
from scrimp.history.events import Event, StudyChanged
from scrimp.history.fold import Fold
from scrimp.history.history import History
from scrimp.history.problem import Problem
from scrimp.history.trial import Observation, Trial

__all__ = [
    "AtLevels",
    "BudgetRule",
    "EveryReport",
    "LastReport",
    "Training",
    "encoded_trials",
    "has_failed",
    "training_data",
]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = list[tuple[float, Observation]]
Seen = tuple[Trial, float, Observation | None]
"""A row: its trial, its budget, and the report; no report means a failure."""


@dataclass(frozen=True)
class Training:
    """n rows of observations in the order of trials, p pending evaluations, k configurations that
    are known.

    ``noise``: variances of the losses from reported standard errors, 0 where there is none; None
    when none was reported. ``violations``: by constraint, feasible when not positive, NaN where the
    metric was not reported. ``deviations``: the signed distances from the limit, or from the wanted
    value, that models learn; ``bands``: where these have to lie. ``feasible``: whether all
    constraints held; None without constraints. ``log_cost``: of the trial up to the report, NaN
    where unknown; None when the study has no cost. ``repeatable``: whether a known configuration
    may be tried again. ``further``: with several metrics, the losses of those after the first by
    name, NaN where one was not reported; a goal does not cut them. ``further_noise``: the variances
    of those of them that have told standard errors.
    """

    trial: NDArray[np.int64]  # (n,) ids
    budget: Array  # (n,)
    x: Array  # (n, d)
    y: Array  # (n,) losses
    noise: Array | None  # (n,)
    failed: Mask  # (n,)
    violations: Mapping[str, Array]  # of (n,)
    deviations: Mapping[str, Array]  # of (n,)
    bands: Mapping[str, tuple[float, float]]
    feasible: Mask | None  # (n,)
    log_cost: Array | None  # (n,)
    pending_trial: NDArray[np.int64]  # (p,) ids
    pending_budget: Array  # (p,)
    pending: Array  # (p, d)
    known: Array  # (k, d) of all trials, pending ones included
    repeatable: bool
    further: Mapping[str, Array] = field(default_factory=dict)  # of (n,)
    further_noise: Mapping[str, Array] = field(default_factory=dict)  # of (n,)

    def noise_of(self, metric: str | None, rows: NDArray[np.intp]) -> Array | None:
        """The variances at some rows (k,) of a metric after the first, by name, or of the first;
        None where none was told."""
        told = self.noise if metric is None else self.further_noise.get(metric)
        return None if told is None else told[rows]

    def of_rows(self, kept: Mask) -> "Training":
        """The same with some of its observations (n,) only."""
        return replace(
            self,
            trial=self.trial[kept],
            budget=self.budget[kept],
            x=self.x[kept],
            y=self.y[kept],
            noise=None if self.noise is None else self.noise[kept],
            failed=self.failed[kept],
            violations={name: values[kept] for name, values in self.violations.items()},
            deviations={name: values[kept] for name, values in self.deviations.items()},
            feasible=None if self.feasible is None else self.feasible[kept],
            log_cost=None if self.log_cost is None else self.log_cost[kept],
            further={name: values[kept] for name, values in self.further.items()},
            further_noise={name: own[kept] for name, own in self.further_noise.items()},
        )


class BudgetRule(ABC):
    """Which reports count, and at which budget. ``failed`` says that a row for the failure
    follows."""

    @abstractmethod
    def observed(self, trial: Trial, failed: bool) -> Rows:
        """The reports that count, with their budgets in increasing order; only finite losses."""

    @abstractmethod
    def awaited(self, trial: Trial, rows: Rows) -> float | None:
        """The budget of the next row of a trial that goes on, or of the failure of one that failed;
        None for no row."""


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
        places = [bisect_left(trial.curve, level, key=attrgetter("step")) for level in self.levels]
        if trial.status == "completed":  # it counts at every higher level
            places = [min(place, len(trial.curve) - 1) for place in places]
        reached = [
            (level, trial.curve[place])
            for level, place in zip(self.levels, places, strict=True)
            if -1 < place < len(trial.curve)
        ]
        return [(level, point) for level, point in reached if point.loss is not None]

    def awaited(self, trial: Trial, rows: Rows) -> float | None:
        return next(
            (level for level in self.levels if level > (rows[-1][0] if rows else -math.inf)), None
        )


@dataclass(frozen=True)
class EveryReport(BudgetRule):
    """All reports of each trial."""

    def observed(self, trial: Trial, failed: bool) -> Rows:
        return [(point.step, point) for point in trial.curve if point.loss is not None]

    def awaited(self, trial: Trial, rows: Rows) -> float | None:
        last = trial.last
        return (
            last.step
            if last is not None and last.loss is None
            else max(trial.granted, trial.budget)
        )


def training_data(history: History, encoding: Encoding, rule: BudgetRule | None = None) -> Training:
    """What models of this study learn from, under ``rule``: `LastReport` unless told otherwise."""
    rule = LastReport() if rule is None else rule
    rows, usable = encoded_trials(history, encoding)
    kept = history.derive(_TrialRows(rule))
    seen: list[Seen] = []
    pending: list[tuple[int, float]] = []
    for trial in history.trials:
        if not usable[trial.id]:
            continue
        if trial.id not in kept or kept[trial.id][0] is not trial:
            kept[trial.id] = (trial, *_rows_of(trial, rule))
        _, own, awaited = kept[trial.id]
        seen += own
        if awaited is not None:
            pending.append((trial.id, awaited))
    if all(point is None for _, _, point in seen):
        seen = []  # no finite loss to compare failures with
    return _training(history.problem, rows, usable, seen, pending)


def _rows_of(trial: Trial, rule: BudgetRule) -> tuple[list[Seen], float | None]:
    """What a trial has to show, and the budget it will report at next, if any."""
    failed = has_failed(trial)
    own = rule.observed(trial, failed)
    seen: list[Seen] = [(trial, budget, point) for budget, point in own]
    budget = rule.awaited(trial, own)
    if budget is None or not failed:
        return seen, budget if budget is not None and _goes_on(trial, budget) else None
    return [*seen, (trial, budget, None)], None


@dataclass(frozen=True)
class _TrialRows(Fold[dict[int, tuple[Trial, list[Seen], float | None]]]):
    """The rows of each trial, made again when the trial has changed: a decision costs what
    changed."""

    rule: BudgetRule
    kinds = ()

    def begin(self, problem: Problem) -> dict[int, tuple[Trial, list[Seen], float | None]]:
        return {}

    def step(self, state: object, event: Event, before: Trial | None, trial: Trial | None) -> None:
        """Nothing: a view of a trial that is no longer the newest is noticed when rows are asked
        for."""


def has_failed(trial: Trial) -> bool:
    """Whether it failed, or reached its end without a finite loss."""
    return trial.status == "failed" or (trial.status == "completed" and trial.loss is None)


def _goes_on(trial: Trial, budget: float) -> bool:
    """Whether a report at ``budget`` is on its way."""
    return trial.status == "running" and budget <= max(trial.granted, trial.budget)


def _training(
    problem: Problem,
    rows: Array,
    usable: Mask,
    seen: Sequence[tuple[Trial, float, Observation | None]],
    pending: Sequence[tuple[int, float]],
) -> Training:
    ids = np.array([trial.id for trial, _, _ in seen], dtype=np.int64)
    y = np.array([math.nan if point is None else point.loss for _, _, point in seen], dtype=float)
    failed = np.array([point is None for _, _, point in seen], dtype=bool)
    y[failed] = np.max(y[~failed], initial=-math.inf)
    points = [point for _, _, point in seen]
    violations, deviations = _distances(problem, points)
    waiting = np.array([trial for trial, _ in pending], dtype=np.int64)
    return Training(
        trial=ids,
        budget=np.array([budget for _, budget, _ in seen], dtype=float),
        x=rows[ids],
        y=y,
        noise=_variances([None if point is None else point.stderr for point in points]),
        failed=failed,
        violations=violations,
        deviations=deviations,
        bands={name: rule.band for name, rule in problem.constraints.items()},
        feasible=(
            np.all([v <= 0 for v in violations.values()], axis=0) & ~failed if violations else None
        ),
        log_cost=None if problem.cost is None else _log_cost(seen),
        pending_trial=waiting,
        pending_budget=np.array([budget for _, budget in pending], dtype=float),
        pending=rows[waiting],
        known=rows[usable],
        repeatable=problem.noisy,
        further=_further(problem, points, failed),
        further_noise=_further_noise(problem, points),
    )


def _further(
    problem: Problem, points: Sequence[Observation | None], failed: Mask
) -> dict[str, Array]:
    """The losses of the metrics after the first, by name; of a failure the worst there is."""
    if problem.trade_off is None:
        return {}
    found = {}
    for name, sign in list(zip(problem.trade_off.names, problem.trade_off.signs, strict=True))[1:]:
        values = [None if point is None else point.metrics.get(name) for point in points]
        losses = np.array([math.nan if v is None else sign * v for v in values], dtype=float)
        losses[failed] = np.max(losses[np.isfinite(losses)], initial=-math.inf)
        found[name] = losses
    return found


def _further_noise(problem: Problem, points: Sequence[Observation | None]) -> dict[str, Array]:
    """The variances of the losses after the first, of the metrics with standard errors."""
    if problem.trade_off is None:
        return {}
    told = [None if point is None else point.further_stderr for point in points]
    if not any(told):
        return {}
    each = {
        name: _variances([None if errors is None else errors.get(name) for errors in told])
        for name in problem.trade_off.names[1:]
    }
    return {name: variances for name, variances in each.items() if variances is not None}


def _variances(told: Sequence[float | None]) -> Array | None:
    """The squares of standard errors (n,), 0 where none was told; None where none was at all."""
    errors = np.array([0.0 if error is None else error for error in told], dtype=float)
    return errors**2 if errors.any() else None


def _distances(
    problem: Problem, points: Sequence[Observation | None]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Violations and deviations by constraint, NaN where the metric was not reported."""
    violations, deviations = {}, {}
    for name, rule in problem.constraints.items():
        values = [None if point is None else point.metrics.get(name) for point in points]
        violations[name], deviations[name] = (
            np.array(
                [math.nan if value is None else distance(value) for value in values], dtype=float
            )
            for distance in (rule.violation, rule.deviation)
        )
    return violations, deviations


def _log_cost(seen: Sequence[tuple[Trial, float, Observation | None]]) -> Array:
    """The logarithm of what each trial had cost by its row; NaN where no cost was reported."""
    spent: dict[tuple[int, float], float] = {}
    for trial in {trial.id: trial for trial, _, _ in seen}.values():
        costs = accumulate(0.0 if point.cost is None else point.cost for point in trial.curve)
        spent |= {
            (trial.id, point.step): cost for point, cost in zip(trial.curve, costs, strict=True)
        }
    steps = [(trial.id, trial.budget if point is None else point.step) for trial, _, point in seen]
    costs_by_row = np.array([spent.get(step, 0.0) for step in steps], dtype=float)
    return np.log(np.where(costs_by_row > 0, costs_by_row, math.nan))


class _Encoded:
    """Encoded configurations by trial, as far as they were asked for, and whether each is usable;
    only ever longer, until the space changes. Both are replaced at once: pages read them from
    several threads."""

    def __init__(self) -> None:
        self.known: tuple[Array, Mask] | None = None


@dataclass(frozen=True)
class _EncodedTrials(Fold[_Encoded]):
    """Encodes every trial once: rows are added when they are asked for, and forgotten when the
    study changes."""

    encoding: Encoding
    kinds = (StudyChanged,)

    def begin(self, problem: Problem) -> _Encoded:
        return _Encoded()

    def step(
        self, state: _Encoded, event: Event, before: Trial | None, trial: Trial | None
    ) -> None:
        if isinstance(event, StudyChanged) and event.problem is not None:
            state.known = None


def encoded_trials(history: History, encoding: Encoding) -> tuple[Array, Mask]:
    """The configuration of every trial as a row (k, d), and whether the space has a place for it
    (k,); NaN where not."""
    state = history.derive(_EncodedTrials(encoding))
    nothing = np.zeros((0, encoding.dimension)), np.zeros(0, dtype=bool)
    rows, usable = nothing if state.known is None else state.known
    new = [trial.config for trial in history.trials[len(rows) :]]
    if not new:
        return rows, usable
    fits = np.array([encoding.space.contains(config) for config in new], dtype=bool)
    more = np.full((len(new), encoding.dimension), math.nan)
    more[fits] = encoding.encode([config for config, fit in zip(new, fits, strict=True) if fit])
    rows, usable = np.vstack([rows, more]), np.concatenate([usable, fits])
    rows.setflags(write=False)
    state.known = rows, usable
    return rows, usable
