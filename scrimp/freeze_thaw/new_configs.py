"""Step 6 of a decision: new configurations, which compete with the paused trials.

A few hundred are drawn at a time. Most are random: rows of the user's list, or a Sobol sequence. The
others are those of a larger draw that the model expects to begin lowest, and those it expects to end
lowest; with several metrics, those that promise most for a few random trade-offs. In a continuous
space the larger draw also has perturbations of the best configurations.

A draw depends only on the trials, rows and decisions at the moment when it was made (`DrawnAt`, which
the log records), so a resumed study draws the same one. It is made again after five or ten decisions
and after every fit.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.domain import contains_rows
from scrimp.encoding.encoding import Encoding
from scrimp.freeze_thaw.curve_process import CandidateColumns
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.freeze_thaw.study_model import Prediction, StudyModel
from scrimp.fronts.dominance import non_dominated
from scrimp.fronts.hypervolume import contributions, default_reference
from scrimp.json_values import Config
from scrimp.space.space import Pool
from scrimp.study_log.decision_record import CurveFit, DrawnAt
from scrimp.study_log.fold import Cache
from scrimp.study_log.history import History
from scrimp.suggesters.bayesian import chebyshev

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Predict = Callable[[Array], Array]
"""Values (r, k) of configurations x (k, d) by r rules, lower is better."""


@dataclass(frozen=True, eq=False)
class NewConfigs:
    """New configurations: encoded ``x`` (k, d), and their places in the user's list (``rows``), where
    there is one. ``columns``: one for each metric, for fast predictions."""

    encoding: Encoding
    x: Array
    rows: Places | None
    columns: tuple[CandidateColumns, ...] = ()

    @property
    def listed(self) -> bool:
        """True if they are rows of a list."""
        return self.rows is not None

    def config(self, place: int) -> Config:
        """Return the configuration at ``place``."""
        space = self.encoding.space
        if self.rows is not None and isinstance(space, Pool):
            return dict(space.configs[self.rows[place]])
        return self.encoding.decode(self.x[place : place + 1])[0]

    def untried(self, model: StudyModel, drawn_at: DrawnAt) -> Places:
        """Return the places of those that have not become trials since the draw."""
        since = model.curves.x[drawn_at.trials :]
        return np.flatnonzero(~contains_rows(self.x, since))

    def predicted(self, model: StudyModel, places: Places, steps: Array) -> Prediction:
        """Predict those at ``places`` (k,) after steps (k,), few of them different: means and
        standard deviations, (m, k) each."""
        if not self.columns:
            return model.of_configs(self.x[places], steps)
        means, deviations = np.empty((2, len(model.each), len(places)))
        for j, metric in enumerate(model.each):
            for step in np.unique(steps):
                time = metric.curves.time_axis(step)
                columns = self.columns[j].at(metric.factor, float(time), len(metric.order))
                here = steps == step
                every = metric.factor.marginals(columns, time, metric.whitened)
                means[j, here], deviations[j, here] = (part[places[here]] for part in every)
        return means, deviations


def when_drawn(history: History, model: StudyModel) -> DrawnAt:
    """Return the moment of the latest draw, or this one if it is time for another."""
    decisions = NUMBERS.decisions_per_draw
    if len(model.each) > 1 or model.curves.listed:
        decisions = NUMBERS.decisions_per_draw_of_list
    recorded = model.recorded
    if recorded is not None and history.decisions - recorded.pool.decision < decisions:
        return recorded.pool
    return DrawnAt(history.decisions, len(model.curves.trial), len(history.trials))


@dataclass
class _Draw:
    """The latest draw with its columns, and the fit that it belongs to."""

    fit: CurveFit | None = None
    configs: NewConfigs | None = None


def new_configs_of(
    history: History, model: StudyModel, encoding: Encoding, drawn_at: DrawnAt
) -> NewConfigs:
    """Return the configurations drawn at this moment: those that were kept, or drawn again."""
    kept = history.derive(Cache(_Draw))
    fit = CurveFit(model.fits, model.rows, drawn_at)
    with kept.lock:
        draw = kept.value
        if draw.configs is None or draw.fit != fit:
            seed = history.problem.seed
            rule = _by_begin_and_end if len(model.each) == 1 else _by_trade_offs
            best, predicted = rule(model, drawn_at, seed)
            known = model.curves.x[: drawn_at.trials]
            drawn = draw_new_configs(encoding, known, best, predicted, (seed, drawn_at.decision))
            features = model.curves.featured(drawn.x)
            columns = tuple(CandidateColumns(factor, features) for factor in model.grown)
            draw.fit, draw.configs = fit, replace(drawn, columns=columns)
        return draw.configs


def _by_begin_and_end(model: StudyModel, drawn_at: DrawnAt, seed: int) -> tuple[Array, Predict]:
    """Return the best configurations by standing, and predictions of the begin and the end of
    training, by the rows known at that moment."""
    del seed
    metric, factor, curves = model.first, model.grown[0], model.curves
    order = metric.order[metric.order < drawn_at.rows]
    weights = factor.weights(metric.curves.targets(order)[1])

    def predicted(x: Array) -> Array:
        scaled = factor.scaled(curves.featured(x))
        both = [
            factor.cross(scaled, None, np.array([time]))[: len(weights)]
            for time in (0.0, curves.time_axis.end)
        ]
        return np.asarray([weights @ cross for cross in both])

    ranked = curves.trial[order][np.argsort(curves.standing[order], kind="stable")]
    return curves.x[_first_ones(ranked)], predicted


def _by_trade_offs(model: StudyModel, drawn_at: DrawnAt, seed: int) -> tuple[Array, Predict]:
    """Return the trials that add most to the front, and predictions of random trade-offs at the
    begin and at the end of training, by the rows known at that moment."""
    curves = model.curves
    rng = np.random.default_rng([seed, drawn_at.decision, len(model.each)])
    weights = rng.dirichlet(np.ones(len(model.each)), NUMBERS.trade_offs_per_draw)
    means = [_mean_loss(model, j, drawn_at) for j in range(len(model.each))]

    def predicted(x: Array) -> Array:
        found: list[Array] = []
        if not len(x):
            return np.zeros((1, 0))
        for step in (curves.levels[0], curves.levels[-1]):
            losses = np.column_stack([mean(x, float(step)) for mean in means])
            found += [chebyshev(losses, one) for one in weights]
        return np.asarray(found)

    complete = curves.complete(drawn_at.rows)
    front = complete[non_dominated(curves.losses[complete])]
    losses = curves.losses[front]
    added = contributions(losses, default_reference(losses))
    ranked = curves.trial[front[np.argsort(-added, kind="stable")]]
    return curves.x[_first_ones(ranked)], predicted


def _first_ones(ranked: Places) -> list[int]:
    """Return the first few different trials."""
    return list(dict.fromkeys(ranked.tolist()))[: NUMBERS.best_trials_perturbed]


def _mean_loss(model: StudyModel, j: int, drawn_at: DrawnAt) -> Callable[[Array, float], Array]:
    """Return the expected loss of new configurations in metric j after a step, by the rows known at
    that moment, which are the first of the factor's."""
    curves, factor, order = model.each[j].curves, model.grown[j], model.each[j].order
    target, z = curves.targets(order[order < curves.count(drawn_at.rows)])
    weights = factor.weights(z)

    def mean(x: Array, step: float) -> Array:
        times = curves.time_axis(np.array([step]))
        cross = factor.cross(factor.scaled(curves.study.featured(x)), None, times)[: len(weights)]
        return target.backward_unbounded(factor.parameters.means(times) + weights @ cross)

    return mean


def draw_new_configs(
    encoding: Encoding, known: Array, best: Array, predicted: Predict, seed: tuple[int, int]
) -> NewConfigs:
    """Draw configurations other than the ``known`` (k, d), with perturbations of the ``best``
    (b, d), and with those ``predicted`` lowest; ``seed``: that of the study, and the number of the
    decision."""
    rng = np.random.default_rng([*seed, zlib.crc32(b"freeze-thaw pool")])
    random, scans = NUMBERS.new_configs_drawn, NUMBERS.new_configs_scanned
    rows = None
    domain = encoding.domain
    if domain.pool is not None:
        rows = np.flatnonzero(~contains_rows(domain.pool, known))
        rows = rng.permutation(rows)[: scans + random]
        x = domain.pool[rows]
        scanned = np.arange(len(x)) >= random
    else:
        drawn = domain.sample(scans // 2 + random, rng)
        count = NUMBERS.best_trials_perturbed
        anchors = np.repeat(best[:count], scans // 2 // count, axis=0)
        widths = 0.5 ** rng.uniform(*NUMBERS.perturbation_log2_widths, size=(len(anchors), 1))
        moving = rng.random(anchors.shape) < NUMBERS.perturbed_share
        near = domain.perturb(anchors, widths * moving, rng) if len(anchors) else anchors
        x = np.vstack([drawn, near])
        scanned = np.arange(len(x)) >= random
        fresh = ~contains_rows(x, known)
        x, scanned = x[fresh], scanned[fresh]
    others = np.flatnonzero(scanned)
    ranked = np.argsort(predicted(x[others]), axis=1, kind="stable")
    promising = np.unique(others[ranked[:, : NUMBERS.new_configs_promising]])
    members = np.concatenate([np.flatnonzero(~scanned), promising])
    return NewConfigs(encoding, x[members], None if rows is None else rows[members])
