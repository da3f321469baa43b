"""Step 4 of a decision: the model, a Gaussian process over the learning curves of each metric.

With one metric there is one process. With several each has its own; the process of a metric that is
constant over training leaves time out, and a reported value is known for the whole future of its
trial. Running slices are *pending*: they count as if they had come out as predicted.

The process is fitted again when the rows have grown by a quarter, and after 75 further rows in a
long study; in between its factor grows row by row. The log records what cannot be computed again: the
hyperparameters and the number of rows they were fitted to (`CurveFit`). The factors are kept only to
save time.

    model = model_study(history, rows, encoding, running, rng)
    means, deviations = model.of_trials(trials, steps)     # (m, k) each, in targets
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from scrimp.encoding.encoding import Encoding
from scrimp.errors import NumericalError
from scrimp.freeze_thaw.curve_process import (
    SHARED_PARAMETERS,
    CurveFactor,
    CurveRows,
    fit_curve_process,
)
from scrimp.freeze_thaw.curve_rows import CurveTable, RowList
from scrimp.freeze_thaw.curve_target import CurveTarget
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.freeze_thaw.past_curves import NO_LESSONS, PastLessons
from scrimp.freeze_thaw.study_curves import MetricCurves, StudyCurves, by_metric
from scrimp.json_values import JsonObject
from scrimp.study_log.decision_record import CurveFit, MetricFit
from scrimp.study_log.fold import Cache
from scrimp.study_log.history import History

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Prediction = tuple[Array, Array]
"""Means and standard deviations."""

Pending = Sequence[tuple[int, float]]
"""Slices under way: trials and the steps at which they end."""

KNOWN_DEVIATION = 1e-6
"""The standard deviation of a value that is known, in units of the targets."""


@dataclass(frozen=True)
class MetricModel:
    """The process of one metric: the rows it learned from (``order`` among its ``curves``), their
    targets z, and a factor whose last rows are the pending ones; never append to it."""

    curves: MetricCurves
    order: Places  # (n,)
    factor: CurveFactor
    whitened: Array  # (n,)
    target: CurveTarget
    z: Array  # (n,)

    def of_trials(self, trials: Places, steps: Array) -> Prediction:
        """Predict the curves of trials (k,) after steps (k,): mean and deviation, (k,) each."""
        scaled = self.factor.scaled(self.curves.study.features[trials])
        times = self.curves.time_axis(steps)
        columns = self.factor.columns(scaled, trials, times)
        return self.factor.marginals(columns, times, self.whitened)

    def of_configs(self, x: Array, steps: Array) -> Prediction:
        """Predict runs of new configurations x (k, d) after steps (k,)."""
        scaled = self.factor.scaled(self.curves.study.featured(x))
        times = self.curves.time_axis(steps)
        columns = self.factor.columns(scaled, None, times)
        return self.factor.marginals(columns, times, self.whitened)

    def covariance(self, features: Array, runs: Places, steps: Array) -> Array:
        """Return the posterior covariance (k, k) of the curves of runs (k,), trials or negative
        numbers for new ones, with features (k, f), after steps (k,)."""
        size, count = self.factor.size, len(runs)
        grown = self.factor.with_pending(features, runs, self.curves.time_axis(steps))
        corner = grown.lower[size : size + count, size : size + count]
        noise = self.factor.parameters.noise_variance
        return np.asarray(corner @ corner.T - noise * np.eye(count))

    @property
    def feasible(self) -> bool:
        """True when a row is feasible; otherwise predictions are no losses."""
        return self.curves.feasible(self.order)


@dataclass(frozen=True)
class StudyModel:
    """The processes of all m metrics, on the rows of one study.

    ``fits``: their hyperparameters, fitted to ``rows`` rows. ``recorded``: the record in the log that
    these were read from; None after a new fit. ``grown``: the factors without pending rows.
    """

    curves: StudyCurves
    each: tuple[MetricModel, ...]
    fits: tuple[MetricFit, ...]
    rows: int
    recorded: CurveFit | None
    grown: tuple[CurveFactor, ...]

    @property
    def first(self) -> MetricModel:
        """The model of the first metric."""
        return self.each[0]

    @cached_property
    def trials(self) -> Places:
        """The trials that every process learned from, (t,)."""
        known = [np.unique(metric.curves.trial[metric.order]) for metric in self.each]
        return np.asarray(reduce(np.intersect1d, known), dtype=np.intp)

    @cached_property
    def ends_of_trials(self) -> Prediction:
        """Predictions of `trials` at the expected ends of their runs, (m, t) each."""
        return self.of_trials(self.trials, self.curves.ends(self.curves.x[self.trials]))

    def of_trials(self, trials: Places, steps: Array) -> Prediction:
        """Predict all metrics of trials (k,) after steps (k,): means, deviations (m, k)."""
        means, deviations = _stacked([metric.of_trials(trials, steps) for metric in self.each])
        for j, metric in enumerate(self.each):
            if metric.curves.kind == "constant":
                known = metric.curves.constants
                losses = np.array([known.get(trial, np.nan) for trial in trials.tolist()])
                here = np.isfinite(losses)
                means[j] = np.where(here, metric.target.forward_unbounded(losses), means[j])
                deviations[j] = np.where(here, KNOWN_DEVIATION, deviations[j])
        return means, deviations

    def of_configs(self, x: Array, steps: Array) -> Prediction:
        """Predict all metrics of new configurations x (k, d) after steps (k,), (m, k) each."""
        return _stacked([metric.of_configs(x, steps) for metric in self.each])

    def losses(self, targets: Array) -> Array:
        """Return losses (k, m) of targets (m, k)."""
        pairs = zip(self.each, targets, strict=True)
        return np.column_stack([metric.target.backward_unbounded(z) for metric, z in pairs])


def _stacked(predictions: Sequence[Prediction]) -> Prediction:
    means, deviations = zip(*predictions, strict=True)
    return np.stack(means), np.stack(deviations)


def model_study(
    history: History,
    rows: RowList,
    encoding: Encoding,
    pending: Pending | None,
    rng: np.random.Generator,
    lessons: PastLessons = NO_LESSONS,
) -> StudyModel:
    """Return the model at this moment, with ``pending`` slices as if they had come out as
    predicted. Past studies' ``lessons`` count where there is one process.

    ``pending`` None is for predictions: nothing is pending, and recorded hyperparameters are not
    fitted again.
    """
    curves = by_metric(history, rows, StudyCurves.of(history, rows, encoding, lessons.hint))
    recorded = _usable_record(history.recorded.curves, curves)
    if recorded is None or (pending is not None and _is_old(recorded, curves)):
        fits, fitted_rows = _fit_again(recorded, curves, rng, lessons.mode), len(curves.trial)
        recorded = None
    else:
        fits, fitted_rows = recorded.fits[: len(curves.kinds)], recorded.rows
    kept = history.derive(Cache(_Factors))
    with kept.lock:
        kept.value.grow(fits, fitted_rows, curves.metrics)
        grown, orders = tuple(kept.value.factors), tuple(kept.value.orders)
    each = [
        _with_pending(metric, order, factor, pending or ())
        for metric, order, factor in zip(curves.metrics, orders, grown, strict=True)
    ]
    return StudyModel(curves, tuple(each), fits, fitted_rows, recorded, grown)


def _with_pending(
    metric: MetricCurves, order: Places, grown: CurveFactor, pending: Pending
) -> MetricModel:
    """Return the model of one metric, with the pending slices whose outcome is not known."""
    target, z = metric.targets(order)
    unknown = [
        (trial, step)
        for trial, step in pending
        if metric.study.usable[trial] and trial not in metric.constants
    ]
    trials = np.array([trial for trial, _ in unknown], dtype=np.intp)
    times = metric.time_axis(np.array([step for _, step in unknown], dtype=float))
    factor = grown.with_pending(metric.study.features[trials], trials, times)
    return MetricModel(metric, order, factor, factor.whiten(z), target, z)


# --- fits -----------------------------------------------------------------------------------------


def _usable_record(recorded: CurveFit | None, curves: StudyCurves) -> CurveFit | None:
    """Return the newest record, or None where it belongs to another space, to more rows, or to
    metrics that seemed to behave otherwise."""
    if recorded is None or recorded.rows > len(curves.trial):
        return None
    if len(curves.kinds) > 1 and tuple(fit.kind for fit in recorded.fits) != curves.kinds:
        return None
    size = curves.columns + SHARED_PARAMETERS
    used = recorded.fits[: len(curves.kinds)]
    return recorded if used and all(len(fit.theta) == size for fit in used) else None


def _is_old(recorded: CurveFit, curves: StudyCurves) -> bool:
    """Return True when the rows have grown by a quarter since the fit, or by a quarter of the most
    that a fit keeps: in a long study the factor would grow with all rows, and each decision with it."""
    grown = len(curves.trial) - recorded.rows
    return grown >= max(1.0, NUMBERS.refit_growth * min(recorded.rows, NUMBERS.max_rows))


def _fit_again(
    recorded: CurveFit | None,
    curves: StudyCurves,
    rng: np.random.Generator,
    mode: tuple[float, ...],
) -> tuple[MetricFit, ...]:
    """Fit each process from the recorded hyperparameters, or from the ``mode`` of the prior."""
    fits = []
    size = curves.columns + SHARED_PARAMETERS
    own_mode = np.array(mode) if len(mode) == size and len(curves.kinds) == 1 else None
    for j, metric in enumerate(curves.metrics):
        start = own_mode if recorded is None else np.array(recorded.fits[j].theta)
        theta = fit_metric(metric, rng, start=start, mode=own_mode)
        fits.append(MetricFit(tuple(np.round(theta, 8).tolist()), metric.kind))
    return tuple(fits)


def fit_metric(
    metric: MetricCurves,
    rng: np.random.Generator,
    iterations: int = NUMBERS.fit_iterations,
    start: Array | None = None,
    mode: Array | None = None,
) -> Array:
    """Return the hyperparameters fitted to the rows so far, at most 150 of them."""
    order = metric.kept(len(metric.trial))
    _, z = metric.targets(order)
    chosen = _rows_to_fit(metric.trial[order], z, rng)
    some = order[chosen]
    rows = CurveRows(
        metric.study.features,
        metric.study.owner,
        metric.trial[some],
        metric.time_axis(metric.step[some]),
    )
    weight = NUMBERS.likelihood_weight_of_list if metric.listed else 1.0
    return fit_curve_process(rows, z[chosen], start, iterations, mode, weight)


def _rows_to_fit(trial: Places, z: Array, rng: np.random.Generator) -> Places:
    """Return at most 150 rows: a third of them of the trials with the lowest targets, the others of
    trials drawn at random; whole trials."""
    most = NUMBERS.max_rows_of_fit
    if len(trial) <= most:
        return np.arange(len(trial))
    trials, inverse, sizes = np.unique(trial, return_inverse=True, return_counts=True)
    best = np.full(len(trials), np.inf)
    np.minimum.at(best, inverse, z)
    chosen = np.zeros(len(trials), dtype=bool)
    taken = 0
    for limit, order in (
        (most // NUMBERS.best_share_of_fit, np.argsort(best, kind="stable")),
        (most, rng.permutation(len(trials))),
    ):
        for place in order:
            if not chosen[place] and taken + sizes[place] <= limit:
                chosen[place] = True
                taken += int(sizes[place])
    return np.flatnonzero(chosen[inverse])


def fit_past_curves(past: History) -> JsonObject:
    """Fit the model to a past study: the logarithms of the length scales by parameter, and the
    shared parameters; empty without curves to learn from."""
    rows = past.derive(CurveTable())
    if (
        past.problem.budget is None
        or len(rows.standing) < NUMBERS.min_rows_of_past_study
        or not np.isfinite(rows.standing).any()
    ):
        return {}
    (metric,) = StudyCurves.of(past, rows, Encoding(past.problem.space)).metrics
    rng = np.random.default_rng(past.problem.seed)
    try:
        theta = fit_metric(metric, rng, NUMBERS.fit_iterations_of_past_study)
    except NumericalError:
        return {}
    scales = theta[:-SHARED_PARAMETERS].tolist()
    lengths = dict(zip(past.problem.space.searched, scales, strict=True))
    return {"lengths": lengths, "shared": theta[-SHARED_PARAMETERS:].tolist()}


# --- kept between decisions -----------------------------------------------------------------------


@dataclass
class _Factors:
    """The latest factor of each metric, its rows, and how many rows it has seen; ``fit``: the
    hyperparameters and the number of rows of their fit."""

    fit: tuple[tuple[MetricFit, ...], int] | None = None
    factors: list[CurveFactor] = field(default_factory=list)
    orders: list[Places] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)

    def grow(
        self, fits: tuple[MetricFit, ...], rows: int, metrics: tuple[MetricCurves, ...]
    ) -> None:
        """Append the new rows of each metric to its factor; build the factors again after a fit."""
        rows_gone = any(
            seen > len(metric.trial) for seen, metric in zip(self.seen, metrics, strict=False)
        )
        if self.fit != (fits, rows) or rows_gone:
            self.fit, self.factors, self.orders, self.seen = None, [], [], []
            for metric, fit in zip(metrics, fits, strict=True):
                count = metric.count(rows)
                factor = CurveFactor(np.array(fit.theta), metric.study.owner)
                order = metric.kept(count)
                metric.append_to(factor, order)
                self.factors.append(factor)
                self.orders.append(order)
                self.seen.append(count)
            self.fit = fits, rows
        for j, metric in enumerate(metrics):
            rest = np.arange(self.seen[j], len(metric.trial))
            new = rest[metric.study.usable[metric.trial[rest]]]
            metric.append_to(self.factors[j], new)
            self.orders[j], self.seen[j] = np.concatenate([self.orders[j], new]), len(metric.trial)
