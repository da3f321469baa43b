"""Step 4 of a decision: the rows of a study as arrays, and the rows that each metric learns from.

With one metric there is one column of losses, the standing of each row: its lowest loss so far, or
while nothing feasible was reported a measure of the violation, so that the search looks for
feasibility. With several metrics every metric has a column, and is one of three kinds, as the rows so
far show:

- *falling*: training lowers its loss (an error). A row has the lowest loss so far.
- *rising*: training raises it (time or energy so far). A row has the loss at its step.
- *constant*: it belongs to the configuration (latency, number of weights): within trials it varies
  by less than a fiftieth of its variation between them, or not at all while fewer than four trials
  have two reports. The first row of a trial is enough.

*Infeasible* rows belong to runs that failed or have no feasible report yet. Growth of a front is a
product over metrics, so it is enough that one process learns them as infinite losses: that of the
first metric that is not constant. While no row is feasible, or a metric is missing in all rows,
several metrics are modelled by their standings, as one.

    curves = by_metric(history, rows, StudyCurves.of(history, rows, encoding))
    curves.losses, curves.kinds                     # (n, m), (m,)
    curves.metrics                                  # the rows that each process learns from
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from scrimp.encoding.encoding import Encoding
from scrimp.encoding.training_data import encoded_trials
from scrimp.freeze_thaw.curve_process import CurveFactor
from scrimp.freeze_thaw.curve_rows import RowList
from scrimp.freeze_thaw.curve_target import CurveTarget
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.freeze_thaw.past_curves import Hint, featured
from scrimp.fronts.dominance import front_ranks, non_dominated
from scrimp.gp.columns import Features
from scrimp.space.space import Pool
from scrimp.study_log.fold import Cache
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import INFEASIBLE_STANDING, Observation

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Mask = NDArray[np.bool_]
Kind = Literal["falling", "rising", "constant"]

MAX_LOSS = 1e50
"""Losses of several metrics beyond this are not told apart: volumes are products of differences, and
those of six metrics must not overflow."""


@dataclass(frozen=True)
class TimeAxis:
    """The axis u(t) = log(t / minimum) / max(log(maximum / minimum), log 10): 0 at the lowest level,
    1 at the full budget (less where that is below ten times the minimum)."""

    first: float
    last: float
    span: float

    @staticmethod
    def of(problem: Problem) -> "TimeAxis":
        """Return the axis of a problem's budget; a range below a factor of 10 is not stretched."""
        least = NUMBERS.least_log_budget_ratio
        if problem.budget is None:
            return TimeAxis(1.0, 1.0, least)
        ratio = problem.budget.maximum / problem.budget.minimum
        span = max(float(np.log(ratio)), least)
        return TimeAxis(float(problem.budget.minimum), float(problem.budget.maximum), span)

    @property
    def end(self) -> float:
        """The u of the full budget."""
        return float(self(np.array(self.last)))

    def __call__(self, steps: Array) -> Array:
        """Return u of steps of any shape."""
        return np.asarray(np.log(np.maximum(steps, 1e-9) / self.first) / self.span)


@dataclass(frozen=True, eq=False)
class StudyCurves:
    """The rows of a study and the configurations they belong to: n rows of T trials in m metrics.

    ``losses``: NaN where nothing was reported. ``usable``: False for trials whose rows are ignored.
    ``run_lengths``: the lengths of runs that ended by themselves. ``listed``: configurations are the
    rows of a list. ``hint``: a further feature, from past studies.
    """

    trial: Places  # (n,)
    step: Array  # (n,)
    standing: Array  # (n,)
    losses: Array  # (n, m)
    infeasible: Mask  # (n,)
    kinds: tuple[Kind, ...]  # (m,)
    usable: Mask  # (T,)
    x: Array  # (T, d)
    features: Array  # (T, f)
    map: Features
    time_axis: TimeAxis
    levels: Array
    run_lengths: Mapping[int, float]
    listed: bool
    hint: Hint | None = None

    @staticmethod
    def of(
        history: History, rows: RowList, encoding: Encoding, hint: Hint | None = None
    ) -> "StudyCurves":
        """Return all rows so far with one column, their standings."""
        x, usable = encoded_trials(history, encoding)
        x = np.where(usable[:, None], x, 0.5)
        features = Features(encoding.columns)
        own = rows.newest if rows.is_scattered else rows.standing
        # sums of losses must not overflow
        standing = np.maximum(np.array(own, dtype=float), -INFEASIBLE_STANDING)
        return StudyCurves(
            trial=np.array(rows.trial, dtype=np.intp),
            step=np.array(rows.step, dtype=float),
            standing=standing,
            losses=standing[:, None],
            infeasible=~(standing < INFEASIBLE_STANDING),
            kinds=("falling",),
            usable=usable,
            x=x,
            features=featured(features, hint, x),
            map=features,
            time_axis=TimeAxis.of(history.problem),
            levels=np.array(rows.levels),
            run_lengths=rows.run_lengths,
            listed=isinstance(history.problem.space, Pool),
            hint=hint,
        )

    @property
    def owner(self) -> Places:
        """The column that each feature belongs to; a hint is a column of its own."""
        own = [] if self.hint is None else [len(self.map.columns)]
        return np.asarray([*self.map.owner, *own], dtype=np.intp)

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.map.columns) + (self.hint is not None)

    def featured(self, x: Array) -> Array:
        """Return features (k, f) of configurations x (k, d)."""
        return featured(self.map, self.hint, x)

    def pull(self, x: Array, d_features: Array) -> Array:
        """Return the gradient of x (k, d) from that of its features (k, f)."""
        if self.hint is None:
            return self.map.pull(d_features)
        return self.map.pull(d_features[:, :-1]) + self.hint.pull(x, d_features[:, -1])

    def ends(self, x: Array) -> Array:
        """Return the expected lengths of runs of x (k, d)."""
        lengths = np.array(list(self.run_lengths.values()), dtype=float)
        return expected_ends(self.x[list(self.run_lengths)], lengths, x, self.time_axis.last)

    def steps_of_new(self, x: Array, step: float) -> Array:
        """Return the level nearest to ``step``, or to the expected end of the run where that is
        sooner, for each of x (k, d)."""
        steps = np.minimum(self.ends(x), step)
        return np.asarray(self.levels[np.abs(np.log(self.levels / steps[:, None])).argmin(axis=1)])

    @cached_property
    def metrics(self) -> tuple["MetricCurves", ...]:
        """The rows that each of the m processes learns from."""
        return tuple(MetricCurves.of(self, metric) for metric in range(len(self.kinds)))

    def complete(self, count: int) -> Places:
        """Return those of the first ``count`` rows that have all metrics and are not infeasible."""
        missing = np.isnan(self.losses[:count]).any(axis=1)
        return np.flatnonzero(~(self.infeasible[:count] | missing))

    def front_of(self, count: int) -> Array:
        """Return the losses (k, m) of the front of the first ``count`` rows."""
        losses = self.losses[self.complete(count)]
        return losses[non_dominated(losses)]

    def ranks(self, count: int) -> Array:
        """Return the number of the front of each of the first ``count`` rows, (count,): 0 is the
        best, infeasible rows come last."""
        losses = np.where(self.infeasible[:count, None], math.inf, self.losses[:count])
        return front_ranks(losses).astype(float)


@dataclass(frozen=True, eq=False)
class MetricCurves:
    """The rows of a study that the process of one metric learns from, n of them in order.

    ``place``: which rows of the ``study`` these are. ``losses``: infinite where a run failed.
    """

    study: StudyCurves
    metric: int
    place: Places  # (n,)
    trial: Places  # (n,)
    step: Array  # (n,)
    losses: Array  # (n,)
    time_axis: TimeAxis

    @staticmethod
    def of(study: StudyCurves, metric: int) -> "MetricCurves":
        """Choose the rows: all that have the metric, of a constant one the first of each trial."""
        losses, constant = study.losses[:, metric], study.kinds[metric] == "constant"
        if metric == next((j for j, kind in enumerate(study.kinds) if kind != "constant"), 0):
            losses = np.where(study.infeasible, math.inf, losses)
        place = np.flatnonzero(~np.isnan(losses))
        if constant:
            _, first = np.unique(study.trial[place], return_index=True)
            place = place[np.sort(first)]
        # a constant metric does not depend on time: all its rows are at time 0
        clock = replace(study.time_axis, span=np.inf) if constant else study.time_axis
        own = study.trial[place], study.step[place], losses[place]
        return MetricCurves(study, metric, place, *own, clock)

    @property
    def kind(self) -> Kind:
        """The behaviour of the metric over training."""
        return self.study.kinds[self.metric]

    @property
    def listed(self) -> bool:
        """True in a list, where runs give several rows that are not independent."""
        return self.study.listed and self.kind != "constant"

    @cached_property
    def constants(self) -> dict[int, float]:
        """The loss of each trial where the metric is constant; empty where it is not."""
        if self.kind != "constant":
            return {}
        pairs = zip(self.trial.tolist(), self.losses.tolist(), strict=True)
        return {trial: loss for trial, loss in pairs if math.isfinite(loss)}

    def count(self, rows: int) -> int:
        """Return the number of own rows among the first ``rows`` of the study."""
        return int(np.searchsorted(self.place, rows))

    def feasible(self, order: Places) -> bool:
        """Return True when one of these rows is feasible; otherwise targets measure violations."""
        return bool((self.study.standing[self.place[order]] < INFEASIBLE_STANDING).any())

    def targets(self, order: Places) -> tuple[CurveTarget, Array]:
        """Return the transform learned from these rows, and their targets. They depend on no later
        row, so that they can be computed again."""
        if len(self.study.kinds) > 1:
            front = self.study.front_of(int(self.place[order].max()) + 1)
            target = CurveTarget.of_front(self.losses[order], front[:, self.metric])
            return target, target.forward(self.losses[order])
        losses = self.losses if self.feasible(order) else self.study.standing / INFEASIBLE_STANDING
        first = first_rows(self.trial[: int(order.max()) + 1])
        shift = NUMBERS.target_shift_of_list if self.listed else NUMBERS.target_shift
        target = CurveTarget.learn(losses[order], losses[first], shift)
        return target, target.forward(losses[order])

    def kept(self, count: int) -> Places:
        """Return those of the first ``count`` rows that a fit keeps. Beyond 300 rows, the worst
        trials keep their last row only, then none, until 240 rows are left."""
        places = np.flatnonzero(self.study.usable[self.trial[:count]])
        if len(places) <= NUMBERS.max_rows:
            return places
        ranks = self.study.standing
        if len(self.study.kinds) > 1:
            ranks = self.study.ranks(int(self.place[count - 1]) + 1)
        trials, own, sizes = np.unique(self.trial[places], return_inverse=True, return_counts=True)
        best = np.full(len(trials), np.inf)
        np.minimum.at(best, own, ranks[self.place[places]])
        newest = np.zeros(len(trials), dtype=np.intp)
        newest[own] = np.arange(len(places))
        worst = np.argsort(-best, kind="stable")
        older = sizes[worst] - 1
        shortened = np.zeros(len(trials), dtype=bool)
        shortened[worst[len(places) - np.cumsum(older) + older > NUMBERS.rows_after_dropping]] = (
            True
        )
        keep = ~shortened[own]
        keep[newest] = True
        keep[newest[worst[: max(int(keep.sum()) - NUMBERS.rows_after_dropping, 0)]]] = False
        return places[keep]

    def append_to(self, factor: CurveFactor, order: Places) -> None:
        """Append these rows to a factor."""
        trials = self.trial[order]
        factor.append(self.study.features[trials], trials, self.time_axis(self.step[order]))


def first_rows(trial: Places) -> Places:
    """Return the first row of each trial that has rows, in the order of the trials.

    >>> first_rows(np.array([2, 0, 2, 0]))
    array([1, 0])
    """
    first = np.full(int(trial.max()) + 1, -1)
    first[trial[::-1]] = np.arange(len(trial))[::-1]
    return first[first >= 0]


# --- several metrics ------------------------------------------------------------------------------


def by_metric(history: History, rows: RowList, curves: StudyCurves) -> StudyCurves:
    """Return the curves with a column for each of several metrics; unchanged with one metric, while
    no row is feasible, or while a metric is missing in all rows."""
    if not history.problem.several:
        return curves
    losses, infeasible, kinds = metric_losses(history, rows)
    found = replace(
        curves,
        losses=losses,
        infeasible=infeasible,
        kinds=kinds,
        features=curves.map(curves.x),
        hint=None,
    )
    known = len(found.complete(len(found.trial))) and all(len(own.trial) for own in found.metrics)
    return found if known else curves


@dataclass
class _ReadRows:
    """Rows as they were read so far: lowest losses, losses at the row's step, and those of the
    trial's first report where that is another one."""

    lowest: list[list[float]] = field(default_factory=list)
    last: list[list[float]] = field(default_factory=list)
    first: list[list[float]] = field(default_factory=list)
    infeasible: list[bool] = field(default_factory=list)


def metric_losses(history: History, rows: RowList) -> tuple[Array, Mask, tuple[Kind, ...]]:
    """Return the losses (n, m) of all rows, the marks (n,), and the kind of each metric."""
    kept, problem = history.derive(Cache(_ReadRows)), history.problem
    with kept.lock:
        read = kept.value
        for place in range(len(read.infeasible), len(rows.trial)):
            trial = history.trials[rows.trial[place]]
            curve = [point for point in trial.curve if point.step <= rows.step[place]]
            feasible = [point for point in curve if point.feasible and point.loss is not None]
            table = _losses_of(feasible or curve, problem)
            read.lowest.append(np.fmin.reduce(table, axis=0).tolist())
            read.last.append(table[-1].tolist())
            read.first.append(table[0].tolist() if len(table) > 1 else [math.nan] * len(table[0]))
            read.infeasible.append(math.isinf(rows.standing[place]) or not feasible)
        shape = (len(rows.trial), len(problem.metrics))
        parts = (read.lowest, read.last, read.first)
        lowest, last, first = (np.array(part, dtype=float).reshape(shape) for part in parts)
        infeasible = np.array(read.infeasible, dtype=bool)
    trials = np.array(rows.trial, dtype=np.intp)
    kinds = kinds_of(np.tile(trials, 2), np.vstack([first, last]))
    rising = np.array([kind == "rising" for kind in kinds])
    return np.where(rising, last, lowest), infeasible, kinds


def _losses_of(points: Sequence[Observation], problem: Problem) -> Array:
    """Return losses (p, m) of reports, not cut off at goals: NaN where one is missing, one row of
    NaN without any report."""
    pairs = list(zip(problem.names, problem.signs, strict=True))
    found = [
        [math.nan if (v := point.metrics.get(name)) is None else sign * v for name, sign in pairs]
        for point in points
    ]
    table = np.array(found or [[math.nan] * len(pairs)], dtype=float)
    return np.where(np.isfinite(table), np.clip(table, -MAX_LOSS, MAX_LOSS), math.nan)


def kinds_of(trial: Places, losses: Array) -> tuple[Kind, ...]:
    """Return the kind of each metric from losses (n, m) of reports of trials (n,), those of one
    trial in order of their steps. A metric is falling where no trial has two reports yet.

    >>> steps = np.array([[3.0, 10.0, 1.0], [2.0, 10.0, 2.0], [4.0, 50.0, 1.0], [1.0, 50.0, 2.0]])
    >>> kinds_of(np.array([0, 0, 1, 1]), steps)
    ('falling', 'constant', 'rising')
    """
    return tuple(_kind(trial, column) for column in losses.T)


def _kind(trial: Places, column: Array) -> Kind:
    known = np.isfinite(column)
    order = np.argsort(trial[known], kind="stable")
    values = column[known][order]
    if not len(values):
        return "falling"
    _, starts, counts = np.unique(trial[known][order], return_index=True, return_counts=True)
    spread = np.maximum.reduceat(values, starts) - np.minimum.reduceat(values, starts)
    several = counts > 1
    if not several.any():
        return "falling"
    firsts, lasts = values[starts], values[starts + counts - 1]
    share = NUMBERS.constant_share
    if several.sum() < NUMBERS.trials_to_tell_constant:
        share = NUMBERS.constant_share_of_few_trials
    if float(np.max(spread[several])) <= share * float(np.ptp(firsts)) or not spread.any():
        return "constant"
    return "rising" if float(np.median((lasts - firsts)[several])) > 0.0 else "falling"


# --- lengths of runs ------------------------------------------------------------------------------


def expected_ends(ended: Array, lengths: Array, x: Array, full: float) -> Array:
    """Return the expected lengths of runs of x (k, d), from runs ``ended`` (r, d) of known
    ``lengths`` (r,): some configurations decide how long a run is.

    Ridge regression of log(length / full) = w . (1, x, (x - 1/2)^2), so that all predictions are
    the full budget where all runs were that long.

    >>> expected_ends(np.array([[0.0], [1.0]]), np.array([100.0, 100.0]), np.array([[0.3]]), 100.0)
    array([100.])
    """
    if not (lengths < full).any():
        return np.full(len(x), full)
    known = _terms(ended)
    weights = np.linalg.solve(
        known.T @ known + NUMBERS.run_length_ridge * np.eye(known.shape[1]),
        known.T @ np.log(lengths / full),
    )
    return np.asarray(full * np.exp(np.minimum(_terms(x) @ weights, 0.0)))


def _terms(x: Array) -> Array:
    return np.hstack([np.ones((len(x), 1)), x, (x - 0.5) ** 2])
