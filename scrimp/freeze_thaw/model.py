"""What a freeze-thaw decision believes: the curve model on the rows of a study, fitted when it is
time, grown in between.

What cannot be computed again from the log is noted there: the hyperparameters, and how many rows
and trials were known when they were fitted and when the pool of new configurations was drawn.
Everything else follows from these, so the factor and the columns of the candidates are kept only to
save time.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.domain import contains_rows
from scrimp.encoding.encoding import Encoding
from scrimp.encoding.training_data import encoded_trials
from scrimp.freeze_thaw.candidates import ANCHORS, Newcomers, draw_newcomers
from scrimp.freeze_thaw.curve_factor import CandidateColumns, CurveFactor
from scrimp.freeze_thaw.curve_gp import SHARED, TEMPER, CurveRows, fit_curve_process
from scrimp.freeze_thaw.curve_rows import RowList, losses_of
from scrimp.freeze_thaw.curve_target import SHIFT, WIDE_SHIFT, CurveTarget
from scrimp.freeze_thaw.hint import UNTAUGHT, Hint, Taught, featured
from scrimp.freeze_thaw.kept_models import WhileRowsLast
from scrimp.freeze_thaw.run_lengths import expected_ends
from scrimp.gp.features import Features
from scrimp.history.history import History
from scrimp.history.notes import CurveFit, NewcomerPool
from scrimp.history.problem import Problem
from scrimp.history.trial import BEHIND
from scrimp.space.space import Pool

__all__ = ["CurveBelief", "StudyCurves", "believe", "fitted_parameters"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]

GROWTH = 0.25  # refit when the rows have grown by this share
REDRAW = 10  # decisions after which the pool of new configurations is drawn again
WIDE_REDRAW = 5  # the same with one metric in a continuous space, of which a pool shows less
FITTED = 150  # rows a fit looks at
FULL, TRIMMED = 300, 240  # beyond FULL rows at a fit, only TRIMMED are kept
LEAST_SPAN = np.log(10.0)


@dataclass(frozen=True)
class TimeAxis:
    """u(t) = log(t / minimum) / log(maximum / minimum): 0 at the first level, 1 at the end."""

    first: float
    last: float
    span: float

    @staticmethod
    def of(problem: Problem) -> "TimeAxis":
        """For a problem's budget; short ones are not stretched beyond a factor of 10."""
        if problem.budget is None:
            return TimeAxis(1.0, 1.0, float(LEAST_SPAN))
        ratio = problem.budget.maximum / problem.budget.minimum
        span = max(float(np.log(ratio)), float(LEAST_SPAN))
        return TimeAxis(float(problem.budget.minimum), float(problem.budget.maximum), span)

    @property
    def end(self) -> float:
        """u of the full budget."""
        return float(self(np.array(self.last)))

    def __call__(self, steps: Array) -> Array:
        """Of steps of any shape."""
        return np.asarray(np.log(np.maximum(steps, 1e-9) / self.first) / self.span)


@dataclass(frozen=True)
class StudyCurves:
    """The rows of a study as arrays, with the configurations they belong to; a row of an unusable
    trial is never used."""

    trial: Places  # (n,)
    step: Array  # (n,)
    standing: Array  # (n,)
    usable: NDArray[np.bool_]  # (trials,)
    x: Array  # (trials, d)
    features: Array  # (trials, f)
    map: Features
    clock: TimeAxis
    levels: Array
    ends: Mapping[int, float]  # lengths of runs that ended by themselves
    listed: bool  # whether configurations are those of a list
    hint: Hint | None = None

    @staticmethod
    def of(
        history: History, rows: RowList, encoding: Encoding, hint: Hint | None = None
    ) -> "StudyCurves":
        """All rows so far; the ``hint`` of past studies is a further feature."""
        x, usable = encoded_trials(history, encoding)
        x = np.where(usable[:, None], x, 0.5)
        map_ = Features(encoding.columns)
        trial, clock = np.array(rows.trial, dtype=np.intp), TimeAxis.of(history.problem)
        row = trial, np.array(rows.step), np.array(rows.standing, dtype=float)
        listed = isinstance(history.problem.space, Pool)
        levels, known = np.array(rows.levels), (usable, x, featured(map_, hint, x))
        return StudyCurves(*row, *known, map_, clock, levels, rows.ends, listed, hint)

    @property
    def owner(self) -> Places:
        """Which column each feature belongs to; a hint is a column of its own."""
        own = [] if self.hint is None else [len(self.map.columns)]
        return np.asarray([*self.map.owner, *own], dtype=np.intp)

    @property
    def columns(self) -> int:
        """How many of them there are."""
        return len(self.map.columns) + (self.hint is not None)

    def featured(self, x: Array) -> Array:
        """Features (m, f) of configurations x (m, d)."""
        return featured(self.map, self.hint, x)

    def pull(self, x: Array, d_features: Array) -> Array:
        """The gradient of x (m, d) from that of their features (m, f)."""
        if self.hint is None:
            return self.map.pull(d_features)
        return self.map.pull(d_features[:, :-1]) + self.hint.pull(x, d_features[:, -1])

    def feasible(self, order: Places) -> bool:
        """Whether one of these rows is: otherwise their targets say how far they are from it, not
        losses."""
        return bool((self.standing[order] < BEHIND).any())

    def targets(self, order: Places) -> tuple[CurveTarget, Array]:
        """The transform for these rows, and their targets. They depend on no later row, so that
        they can be had again."""
        _, first = np.unique(self.trial[: int(order.max()) + 1], return_index=True)
        known = self.feasible(order)
        losses = losses_of(self.standing[order], known)
        shift = SHIFT if self.listed else WIDE_SHIFT
        target = CurveTarget.learn(losses, losses_of(self.standing[first], known), shift)
        return target, target.forward(losses)

    def trimmed(self, count: int) -> Places:
        """Which of the first ``count`` rows a fit keeps: beyond `FULL` of the worst trials only the
        last row, then none."""
        places = np.flatnonzero(self.usable[self.trial[:count]])
        if len(places) <= FULL:
            return places
        best: dict[int, float] = {}
        newest: dict[int, int] = {}
        for place in places.tolist():
            trial = int(self.trial[place])
            best[trial] = min(best.get(trial, np.inf), float(self.standing[place]))
            newest[trial] = place
        worst = sorted(best, key=lambda trial: (-best[trial], trial))
        keep = np.zeros(count, dtype=bool)
        keep[places] = True
        for trial in worst:
            if keep.sum() > TRIMMED:
                own = self.trial[:count] == trial
                own[newest[trial]] = False
                keep[own] = False
        for trial in worst:
            if keep.sum() > TRIMMED:
                keep[newest[trial]] = False
        return np.flatnonzero(keep)

    def add_to(self, factor: CurveFactor, order: Places) -> None:
        """Append these rows to a factor."""
        who = self.trial[order]
        factor.append(self.features[who], who, self.clock(self.step[order]))


@dataclass(frozen=True)
class CurveBelief:
    """The model of one decision: the rows it learned from (``order`` among all ``curves``), their
    targets z, and the factor, which ends with the pending ones and does not grow."""

    curves: StudyCurves
    order: Places  # (n,)
    factor: CurveFactor
    whitened: Array  # (n,)
    target: CurveTarget
    z: Array  # (n,)
    newcomers: Newcomers
    columns: CandidateColumns
    record: CurveFit

    def of_trials(self, trials: Places, steps: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the curves of trials (m,) after steps (m,)."""
        scaled, times = self.factor.scaled(self.curves.features[trials]), self.curves.clock(steps)
        return self.factor.marginals(
            self.factor.columns(scaled, trials, times), times, self.whitened
        )

    def of_newcomers(self, places: Places, steps: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the drawn newcomers at ``places`` (k,) after steps (k,),
        few of them different."""
        mean, deviation = np.empty(len(places)), np.empty(len(places))
        for step in np.unique(steps):
            time = self.curves.clock(step)
            columns = self.columns.at(self.factor, float(time), len(self.order))
            here = steps == step
            every = self.factor.marginals(columns, time, self.whitened)
            mean[here], deviation[here] = (part[places[here]] for part in every)
        return mean, deviation

    def of_configs(self, x: Array, steps: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of runs of x (m, d), which nobody tried, after steps (m,)."""
        scaled, times = self.factor.scaled(self.curves.featured(x)), self.curves.clock(steps)
        columns = self.factor.columns(scaled, None, times)
        return self.factor.marginals(columns, times, self.whitened)

    @property
    def feasible(self) -> bool:
        """Whether anything is: otherwise nothing that is predicted is a loss."""
        return self.curves.feasible(self.order)

    def ends(self, x: Array) -> Array:
        """How long runs of x (m, d) are expected to be."""
        trials, lengths = (
            list(self.curves.ends),
            np.array(list(self.curves.ends.values()), dtype=float),
        )
        return expected_ends(self.curves.x[trials], lengths, x, self.curves.clock.last)

    @cached_property
    def ending_targets(self) -> tuple[Places, Array]:
        """The trials that it learned from, and the targets at which they are expected to end, (m,)
        each."""
        trials = np.unique(self.curves.trial[self.order])
        return trials, self.of_trials(trials, self.ends(self.curves.x[trials]))[0]

    def newcomer_steps(self, x: Array, step: float) -> Array:
        """When to look at runs of x (m, d) after ``step``: at the level nearest to it, or to the
        expected end where sooner."""
        levels = self.curves.levels
        steps = np.minimum(self.ends(x), step)
        return np.asarray(levels[np.abs(np.log(levels / steps[:, None])).argmin(axis=1)])

    def unknown(self) -> Places:
        """The newcomers that have not become trials since they were drawn."""
        since = self.curves.x[self.record.pool.trials :]
        return np.flatnonzero(~contains_rows(self.newcomers.x, since))


class _Kept:
    """The newest factor and pool, and what they are made of."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # pages ask for forecasts from several threads
        self.clear()

    def clear(self) -> None:
        """Keep nothing."""
        self.fit: tuple[tuple[float, ...], int] | None = None
        self.factor: CurveFactor | None = None
        self.order: Places = np.zeros(0, dtype=np.intp)
        self.seen = 0
        self.pool: tuple[tuple[int, int, int], Newcomers, CandidateColumns] | None = None


def believe(  # the parts of a belief
    history: History,
    rows: RowList,
    encoding: Encoding,
    pending: Sequence[tuple[int, float]],
    rng: np.random.Generator,
    taught: Taught = UNTAUGHT,
) -> CurveBelief:
    """The model at this moment, with ``pending`` evaluations (trial, step) as if they had come out
    as expected.

    ``taught``: what past studies taught.
    """
    curves = StudyCurves.of(history, rows, encoding, taught.hint)
    record = _record(history, curves, rng, taught.shapes)
    kept = history.derive(WhileRowsLast(_Kept))
    with kept.lock:
        grown, order = _sync(kept, record, curves)
        newcomers, columns = _sync_pool(kept, record, curves, encoding, history.problem.seed)
    target, z = curves.targets(order)
    who = np.array([trial for trial, _ in pending if curves.usable[trial]], dtype=np.intp)
    when = np.array([step for trial, step in pending if curves.usable[trial]], dtype=float)
    factor = grown.with_pending(curves.features[who], who, curves.clock(when))
    whitened = factor.whiten(z)
    return CurveBelief(curves, order, factor, whitened, target, z, newcomers, columns, record)


def _record(
    history: History, curves: StudyCurves, rng: np.random.Generator, shapes: tuple[float, ...]
) -> CurveFit:
    """The newest record while it holds, with a pool of its time; a new fit otherwise."""
    count, trials = len(curves.trial), len(history.trials)
    pool = NewcomerPool(history.decisions, count, trials)
    record = history.notes.curves
    size = curves.columns + SHARED
    if record is not None and (len(record.theta) != size or record.rows > count):
        record = None  # of another space
    if record is not None and count - record.rows < max(1.0, GROWTH * record.rows):
        if history.decisions - record.pool.decision < (REDRAW if curves.listed else WIDE_REDRAW):
            return record
        return CurveFit(record.theta, record.rows, pool)
    mode = np.array(shapes) if len(shapes) == size else None
    theta = fitted_parameters(
        curves, count, rng, start=mode if record is None else np.array(record.theta), mode=mode
    )
    return CurveFit(tuple(np.round(theta, 8).tolist()), count, pool)


def fitted_parameters(  # what a fit depends on
    curves: StudyCurves,
    count: int,
    rng: np.random.Generator,
    steps: int = 8,
    start: Array | None = None,
    mode: Array | None = None,
) -> Array:
    """The hyperparameters by the first ``count`` rows, at most `FITTED` of them."""
    order = curves.trimmed(count)
    _, z = curves.targets(order)
    chosen = _subset(curves.trial[order], z, rng)
    some = order[chosen]
    rows = CurveRows(
        curves.features, curves.owner, curves.trial[some], curves.clock(curves.step[some])
    )
    temper = TEMPER if curves.listed else 1.0
    return fit_curve_process(rows, z[chosen], start, steps, mode, temper)


def _subset(trial: Places, z: Array, rng: np.random.Generator) -> Places:
    """At most `FITTED` rows: the best third of the allowance by best value, the rest at random;
    whole trials."""
    if len(trial) <= FITTED:
        return np.arange(len(trial))
    trials, inverse, sizes = np.unique(trial, return_inverse=True, return_counts=True)
    best = np.full(len(trials), np.inf)
    np.minimum.at(best, inverse, z)
    chosen = np.zeros(len(trials), dtype=bool)
    taken = 0
    for limit, order in (
        (FITTED // 3, np.argsort(best, kind="stable")),
        (FITTED, rng.permutation(len(trials))),
    ):
        for place in order:
            if not chosen[place] and taken + sizes[place] <= limit:
                chosen[place] = True
                taken += int(sizes[place])
    return np.flatnonzero(chosen[inverse])


def _sync(kept: _Kept, record: CurveFit, curves: StudyCurves) -> tuple[CurveFactor, Places]:
    """The factor of all rows and which rows these are: grown from the kept one, or built again."""
    fit = (record.theta, record.rows)
    if kept.fit != fit or kept.seen > len(curves.trial) or kept.factor is None:
        kept.clear()
        kept.fit, kept.seen = fit, record.rows
        kept.factor = CurveFactor(np.array(record.theta), curves.owner)
        kept.order = curves.trimmed(record.rows)
        curves.add_to(kept.factor, kept.order)
    rest = np.arange(kept.seen, len(curves.trial))
    new = rest[curves.usable[curves.trial[rest]]]
    curves.add_to(kept.factor, new)
    kept.order, kept.seen = np.concatenate([kept.order, new]), len(curves.trial)
    return kept.factor, kept.order


def _sync_pool(
    kept: _Kept, record: CurveFit, curves: StudyCurves, encoding: Encoding, seed: int
) -> tuple[Newcomers, CandidateColumns]:
    """The pool of the record, drawn again unless it is the kept one."""
    drawn = record.pool
    pool, factor = (drawn.decision, drawn.rows, drawn.trials), kept.factor
    assert factor is not None
    if kept.pool is not None and kept.pool[0] == pool:
        return kept.pool[1:]
    order = kept.order[kept.order < drawn.rows]
    weights = factor.weights(curves.targets(order)[1])

    def predicted(rows: Array) -> Array:
        scaled = factor.scaled(curves.featured(rows))
        both = [
            factor.cross(scaled, None, np.array([time]))[: len(weights)]
            for time in (0.0, curves.clock.end)
        ]
        return np.asarray([weights @ cross for cross in both])

    ranked = curves.trial[order][np.argsort(curves.standing[order], kind="stable")]
    best = curves.x[list(dict.fromkeys(ranked.tolist()))[:ANCHORS]]
    newcomers = draw_newcomers(
        encoding, curves.x[: drawn.trials], best, predicted, (seed, drawn.decision)
    )
    kept.pool = pool, newcomers, CandidateColumns(factor, curves.featured(newcomers.x))
    return kept.pool[1:]
