"""What a freeze-thaw decision believes of several metrics: a curve model of each, on the rows of one
study, fitted and grown together.

Each metric has a process of its own over curves (`scrimp.freeze_thaw.curve_gp`). That of a metric
that is constant over training is the same process with time left out: one row for each trial, and
what was reported of a trial is known of all its future. Newcomers are drawn once for all: beside
random ones, those that promise most of a few trade-offs between the metrics, drawn with them.

As with one metric, the log notes the hyperparameters and what was known when they were fitted and
the newcomers drawn; all else follows.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from scrimp.encoding.encoding import Encoding
from scrimp.freeze_thaw.candidates import ANCHORS, Newcomers, draw_newcomers
from scrimp.freeze_thaw.curve_factor import CandidateColumns, CurveFactor
from scrimp.freeze_thaw.curve_gp import SHARED
from scrimp.freeze_thaw.curve_rows import RowList
from scrimp.freeze_thaw.curve_target import CurveTarget
from scrimp.freeze_thaw.front_rows import MetricRows, metric_rows
from scrimp.freeze_thaw.front_target import front_target, to_loss, to_target
from scrimp.freeze_thaw.kept_models import WhileRowsLast
from scrimp.freeze_thaw.model import (
    GROWTH,
    REDRAW,
    CurveBelief,
    StudyCurves,
    fitted_parameters,
)
from scrimp.fronts.dominance import non_dominated
from scrimp.fronts.hypervolume import contributions, default_reference
from scrimp.history.history import History
from scrimp.history.notes import CurveFit, MetricFit, NewcomerPool
from scrimp.suggesters.trade_offs import chebyshev

__all__ = ["FrontBelief", "MetricCurves", "believe_front"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]

TRADE_OFFS = 4
"""Random trade-offs that newcomers are chosen by, at the begin and at the end of training each."""

CERTAIN = 1e-6
"""The standard deviation of what is known, in units of the targets."""


@dataclass(frozen=True)
class MetricCurves(StudyCurves):
    """The rows of one metric (``place`` (n,) among those of all ``told``), with its losses as
    ``standing``."""

    place: Places = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    told: MetricRows | None = None
    column: int = 0

    @staticmethod
    def of_each(
        history: History, rows: RowList, told: MetricRows, encoding: Encoding
    ) -> list["MetricCurves"]:
        """Of all metrics, from all rows so far."""
        plain, found = StudyCurves.of(history, rows, encoding), []
        for j, kind in enumerate(told.kinds):
            place, losses = told.of_metric(j)
            still = kind == "constant"
            own = MetricCurves(
                trial=told.trial[place],
                step=plain.step[place],
                standing=losses,
                usable=plain.usable,
                x=plain.x,
                features=plain.features,
                map=plain.map,
                clock=replace(plain.clock, span=np.inf) if still else plain.clock,
                levels=plain.levels,
                ends=plain.ends,
                listed=plain.listed and not still,
                place=place,
                told=told,
                column=j,
            )
            found.append(own)
        return found

    def count(self, rows: int) -> int:
        """How many of the first ``rows`` of all are of this metric."""
        return int(np.searchsorted(self.place, rows))

    def targets(self, order: Places) -> tuple[CurveTarget, Array]:
        """The transform for these rows, and their targets; they depend on no later row."""
        assert self.told is not None
        losses = self.standing[order]
        every = self.told.known(int(self.place[order].max()) + 1)
        target = front_target(losses, every[non_dominated(every), self.column])
        return target, target.forward(losses)

    def trimmed(self, count: int) -> Places:
        """As with one metric, where the worst trials are those of the last fronts."""
        assert self.told is not None
        if count <= 0:
            return np.zeros(0, dtype=np.intp)
        ranks = self.told.ranks(int(self.place[count - 1]) + 1)[self.place[:count]]
        by_rank = replace(self, standing=np.concatenate([ranks, self.standing[count:]]))
        return StudyCurves.trimmed(by_rank, count)


@dataclass(frozen=True)
class FrontBelief:
    """The models of one decision, one for each metric, and what the log notes of them."""

    each: tuple[CurveBelief, ...]
    told: MetricRows
    record: CurveFit

    @property
    def first(self) -> CurveBelief:
        """Any of them, for what they share: newcomers, lengths of runs."""
        return self.each[0]

    @property
    def trials(self) -> Places:
        """The trials that every model knows (t,)."""
        known = [np.unique(belief.curves.trial[belief.order]) for belief in self.each]
        return np.asarray(reduce(np.intersect1d, known), dtype=np.intp)

    def of_trials(self, trials: Places, steps: Array) -> tuple[list[Array], list[Array]]:
        """Means and standard deviations of trials (k,) after steps (k,), (k,) for each metric."""
        means, deviations = [], []
        for j, belief in enumerate(self.each):
            mean, deviation = belief.of_trials(trials, steps)
            if self.told.kinds[j] == "constant":
                known = self.told.constants(j)
                losses = np.array([known.get(trial, np.nan) for trial in trials.tolist()])
                here = np.isfinite(losses)
                mean = np.where(here, to_target(belief.target, losses), mean)
                deviation = np.where(here, CERTAIN, deviation)
            means.append(mean)
            deviations.append(deviation)
        return means, deviations

    def of_newcomers(self, places: Places, steps: Array) -> tuple[list[Array], list[Array]]:
        """The same of drawn newcomers at ``places`` (k,)."""
        pairs = [belief.of_newcomers(places, steps) for belief in self.each]
        return [mean for mean, _ in pairs], [deviation for _, deviation in pairs]

    def of_configs(self, x: Array, steps: Array) -> tuple[list[Array], list[Array]]:
        """The same of configurations x (k, d) that nobody tried."""
        pairs = [belief.of_configs(x, steps) for belief in self.each]
        return [mean for mean, _ in pairs], [deviation for _, deviation in pairs]

    def losses(self, targets: Sequence[Array]) -> Array:
        """Targets, (k,) for each metric, as losses (k, m)."""
        pairs = zip(self.each, targets, strict=True)
        return np.column_stack([to_loss(belief.target, own) for belief, own in pairs])

    def targets(self, losses: Array) -> Array:
        """Losses (k, m) as targets (k, m)."""
        pairs = zip(self.each, losses.T, strict=True)
        return np.column_stack([to_target(belief.target, own) for belief, own in pairs])


class _Kept:
    """The newest factors, one for each metric, and the newcomers."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Keep nothing."""
        self.record: tuple[tuple[MetricFit, ...], int] | None = None
        self.factors: list[CurveFactor] = []
        self.orders: list[Places] = []
        self.seen: list[int] = []
        self.pool: NewcomerPool | None = None
        self.newcomers: Newcomers | None = None
        self.columns: list[CandidateColumns] = []


def believe_front(
    history: History,
    rows: RowList,
    encoding: Encoding,
    pending: Sequence[tuple[int, float]],
    rng: np.random.Generator,
) -> FrontBelief | None:
    """The models at this moment, with ``pending`` evaluations (trial, step) as if they had come out
    as expected; None while a metric has nothing to learn from, or nothing feasible was reported."""
    told = metric_rows(history, rows)
    curves = MetricCurves.of_each(history, rows, told, encoding)
    if not len(told.known(len(rows.trial))) or any(not len(own.trial) for own in curves):
        return None
    record = _record(history, curves, len(rows.trial), rng)
    kept = history.derive(WhileRowsLast(_Kept))
    with kept.lock:
        factors, orders = _grown(kept, record, curves)
        newcomers, columns = _drawn(kept, record, curves, encoding, history.problem.seed)
    found = []
    for j, own in enumerate(curves):
        target, z = own.targets(orders[j])
        waiting = [
            (trial, step)
            for trial, step in pending
            if own.usable[trial]
            and not (told.kinds[j] == "constant" and trial in told.constants(j))
        ]
        who = np.array([trial for trial, _ in waiting], dtype=np.intp)
        when = own.clock(np.array([step for _, step in waiting], dtype=float))
        factor = factors[j].with_pending(own.features[who], who, when)
        belief = (own, orders[j], factor, factor.whiten(z), target, z)
        found.append(CurveBelief(*belief, newcomers, columns[j], record))
    return FrontBelief(tuple(found), told, record)


def _record(
    history: History, curves: Sequence[MetricCurves], count: int, rng: np.random.Generator
) -> CurveFit:
    """The newest record while it holds, with a pool of its time; new fits otherwise."""
    pool = NewcomerPool(history.decisions, count, len(history.trials))
    told = curves[0].told
    assert told is not None
    record, size = history.notes.curves, len(curves[0].map.columns) + SHARED
    if record is not None and (
        tuple(fit.kind for fit in record.each) != told.kinds
        or any(len(fit.theta) != size for fit in record.each)
        or record.rows > count
    ):
        record = None  # of another space, or a metric behaves otherwise than it seemed to
    if record is not None and count - record.rows < max(1.0, GROWTH * record.rows):
        if history.decisions - record.pool.decision < REDRAW:
            return record
        return CurveFit(record.theta, record.rows, pool, record.each)
    fits = []
    for j, own in enumerate(curves):
        start = None if record is None else np.array(record.each[j].theta)
        theta = fitted_parameters(own, len(own.trial), rng, start=start)
        fits.append(MetricFit(tuple(np.round(theta, 8).tolist()), told.kinds[j]))
    return CurveFit(fits[0].theta, count, pool, tuple(fits))


def _grown(
    kept: _Kept, record: CurveFit, curves: Sequence[MetricCurves]
) -> tuple[list[CurveFactor], list[Places]]:
    """The factors of all rows and which rows these are: grown from the kept ones, or built again."""
    fit = (record.each, record.rows)
    if kept.record != fit or any(
        seen > len(own.trial) for seen, own in zip(kept.seen, curves, strict=False)
    ):
        kept.clear()
        for own, metric in zip(curves, record.each, strict=True):
            factor, count = CurveFactor(np.array(metric.theta), own.owner), own.count(record.rows)
            order = own.trimmed(count)
            own.add_to(factor, order)
            kept.factors.append(factor)
            kept.orders.append(order)
            kept.seen.append(count)
        kept.record = fit
    for j, own in enumerate(curves):
        rest = np.arange(kept.seen[j], len(own.trial))
        new = rest[own.usable[own.trial[rest]]]
        own.add_to(kept.factors[j], new)
        kept.orders[j], kept.seen[j] = np.concatenate([kept.orders[j], new]), len(own.trial)
    return kept.factors, kept.orders


def _drawn(
    kept: _Kept,
    record: CurveFit,
    curves: Sequence[MetricCurves],
    encoding: Encoding,
    seed: int,
) -> tuple[Newcomers, list[CandidateColumns]]:
    """The newcomers of the record, drawn again unless they are the kept ones."""
    drawn = record.pool
    if kept.newcomers is not None and kept.pool == drawn:
        return kept.newcomers, kept.columns
    told = curves[0].told
    assert told is not None
    rng = np.random.default_rng([seed, drawn.decision, len(curves)])
    weights = rng.dirichlet(np.ones(len(curves)), TRADE_OFFS)
    means = [
        _means(own, factor, order[order < own.count(drawn.rows)])
        for own, factor, order in zip(curves, kept.factors, kept.orders, strict=True)
    ]

    def predicted(rows: Array) -> Array:
        found: list[Array] = []
        if not len(rows):
            return np.zeros((1, 0))
        for step in (curves[0].levels[0], curves[0].levels[-1]):
            losses = np.column_stack([mean(rows, float(step)) for mean in means])
            found += [chebyshev(losses, own) for own in weights]
        return np.asarray(found)

    best = curves[0].x[_front_trials(told, drawn.rows)]
    kept.newcomers = draw_newcomers(
        encoding, curves[0].x[: drawn.trials], best, predicted, (seed, drawn.decision)
    )
    kept.columns = [
        CandidateColumns(factor, own.map(kept.newcomers.x))
        for own, factor in zip(curves, kept.factors, strict=True)
    ]
    kept.pool = drawn
    return kept.newcomers, kept.columns


def _means(
    own: MetricCurves, factor: CurveFactor, order: Places
) -> Callable[[Array, float], Array]:
    """The losses that the model expects of configurations nobody tried after a step, by the rows
    of ``order`` alone, which are the first of the factor's."""
    target, z = own.targets(order)
    weights = factor.weights(z)

    def mean(x: Array, step: float) -> Array:
        times = own.clock(np.array([step]))
        cross = factor.cross(factor.scaled(own.map(x)), None, times)[: len(weights)]
        return to_loss(target, factor.parameters.means(times) + weights @ cross)

    return mean


def _front_trials(told: MetricRows, count: int) -> list[int]:
    """The trials of the front of the first ``count`` rows, those that add most to it first."""
    whole = np.flatnonzero(~(told.marked[:count] | np.isnan(told.losses[:count]).any(axis=1)))
    front = whole[non_dominated(told.losses[whole])]
    losses = told.losses[front]
    added = contributions(losses, default_reference(losses))
    ranked = told.trial[front[np.argsort(-added, kind="stable")]]
    return list(dict.fromkeys(ranked.tolist()))[:ANCHORS]
