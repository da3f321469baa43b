"""Steps 7 and 8 of a decision: the question it asks of every candidate, and the scores.

A *question* says at which step each candidate is predicted, the goal to be below at that step, and
the formula that scores it. Means and standard deviations are those of the model's targets.

*Race*, early: which candidate improves most at its next level on the best value of any run there?

    log EI(mean, deviation, best at the level)

*Horizon*, later in a list: which is most likely to be below a threshold T, a little below the best
value, after h further units? h and T are drawn for each decision.

    (T - mean) / deviation, the normal quantile of the probability

*Gain*, later in a continuous space: which has the largest expected improvement in loss on the best
value by the end of training, or about as far as there is time for, for each of the r units until
then? A continuous space has near-copies of the best configuration, which are almost sure to end a
little lower; asked for probability, a study would train one after the other. Where time or another
cost is short, the cost c of each of these units counts.

    log E[(best value - loss)+] - log r [- log c]

Among hopeless candidates the most uncertain one would win, however bad. So where no candidate reaches
the ``least_score`` of a question, the next one is asked: after the race the horizon or the gain, after
a horizon the longest one there is time for.

In a list all new configurations are scored. In a continuous space one is, the *nominee*: the
configuration whose loss at the *end* of training is expected to come furthest below the lowest end
expected of any trial (`evolved_nominee`). Two kinds of nominees are found otherwise. Some are *drawn*:
as large a share as the model fails to predict of first rows (`leave_one_out_r2`). Some are *climbed*
to, along the gradient of the expected improvement on the question's goal (`climbed_nominee`).

`gain_of_curves` is the gain that is left (`scrimp.acquisition.gain_left`). Its candidates are all
trials that may continue and the most promising new configurations, each trained as far as there is
time for. Outcomes are drawn jointly, and cost the units of training until then, or with a cost of the
study's own what these units cost.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.acquisition import BoundAcquisition
from scrimp.acquisition.domain import contains_rows
from scrimp.acquisition.gain_left import OUTCOME_DRAWS, GainLeft, gain_left, most_promising
from scrimp.acquisition.improvement import log_expected_improvement
from scrimp.acquisition.maximize import AscentSettings, Found, MaximizeSettings, Search, climb
from scrimp.encoding.encoding import encoding_of
from scrimp.freeze_thaw.budget_left import BudgetLeft, UnitCosts
from scrimp.freeze_thaw.curve_rows import PausedTrial, RowList
from scrimp.freeze_thaw.curve_target import (
    log_loss_improvement,
    log_loss_improvement_and_derivatives,
)
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.freeze_thaw.new_configs import NewConfigs, new_configs_of, when_drawn
from scrimp.freeze_thaw.study_curves import StudyCurves
from scrimp.freeze_thaw.study_model import MetricModel, StudyModel
from scrimp.gp.cholesky import cholesky, inverse_factor
from scrimp.json_values import Config
from scrimp.study_log.decision_record import Gain, Growth, Horizon, Race
from scrimp.study_log.history import History
from scrimp.study_log.trial import Trial
from scrimp.suggesters.prediction_record import calibrated, lower_scale

Array = NDArray[np.float64]
Places = NDArray[np.intp]

Formula = Callable[[Array, Array, Array], Array]
"""Scores from means, standard deviations and goals, (k,) each."""

MIN_SHARED_VARIANCE = 1e-10
"""Guards the square root against rounding below zero."""

NOMINEE_DIGITS = 6
"""Digits of a nominee in the unit cube. The rest is rounding error, which differs between a factor
that grew and one that was built again."""

CLIMB_SETTINGS = MaximizeSettings(
    starts=NUMBERS.climb_starts,
    cycles=NUMBERS.climb_cycles,
    ascent=AscentSettings(rounds=NUMBERS.climb_rounds),
)


# --- the question ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Situation:
    """All that a decision knows: the rows, the budget left, the model, and the paused trials."""

    history: History
    rows: RowList
    left: BudgetLeft
    model: StudyModel
    paused: list[PausedTrial]

    @property
    def trials(self) -> Places:
        """The numbers of the paused trials, (k,)."""
        return np.array([waiting.trial for waiting in self.paused], dtype=np.intp)

    @property
    def slice_ends(self) -> Array:
        """The ends of the next slices of paused trials, (k,)."""
        return np.array([waiting.slice_end for waiting in self.paused], dtype=float)

    @property
    def used(self) -> Array:
        """The budget that paused trials have used, (k,)."""
        return np.array([waiting.used for waiting in self.paused], dtype=float)

    def steps_after(self, length: float) -> Array:
        """Return the steps of paused trials (k,) after ``length`` further units, or the expected
        ends of their runs where those are sooner."""
        curves = self.model.curves
        ends = np.maximum(curves.ends(curves.x[self.trials]), self.slice_ends)
        return np.asarray(np.minimum(self.used + length, ends))


@dataclass(frozen=True)
class Question:
    """For paused trials: the ``steps`` at which they are predicted and their ``goals``, targets
    (k,). For new configurations: one ``step``, one ``goal``. ``record``: the question as the log
    records it."""

    steps: Array
    goals: Array
    step: float
    goal: float
    formula: Formula
    record: Race | Horizon | Gain
    least_score: float = -math.inf
    costs: UnitCosts | None = None

    def per_cost(self, scores: Array, x: Array) -> Array:
        """Return scores (k,) of new configurations x (k, d), less the log cost of a unit."""
        return scores if self.costs is None else scores - self.costs.of_configs(x)


def questions(
    situation: Situation, race_share: float, rng: np.random.Generator
) -> Iterator[Question]:
    """Ask for the race while less than ``race_share`` of the budget is spent. Then ask in a list for
    a random horizon, and for the longest with the same random threshold; in a continuous space for
    the gain."""
    left, model = situation.left, situation.model
    if left.spent_share < race_share:
        yield race(situation)
    best = _best_target(situation.history, model)
    longest = min(situation.rows.levels[-1], left.per_worker)
    if not model.curves.listed:
        yield gain(situation, best, max(longest, left.first_slice_end))
        return
    most = max(int(longest / left.first_slice_end), 1)
    further = int(rng.integers(1, most + 1))
    below = 10.0 ** rng.uniform(*NUMBERS.threshold_log10_range)
    goal = best - NUMBERS.threshold_factor * below
    yield horizon(situation, goal, left.first_slice_end * further, NUMBERS.least_horizon_score)
    yield horizon(situation, goal, left.first_slice_end * most, -math.inf)


def race(situation: Situation) -> Question:
    """Ask for the next level, against the best at that level, or at lower ones where no run has
    reached it; new configurations are predicted at the end of their first slice."""
    rows, first = situation.rows, situation.left.first_slice_end
    best = _best_by_level(situation.model, rows)
    ends = situation.slice_ends
    goals, goal = best[np.searchsorted(rows.levels, ends)], float(best[rows.levels.index(first)])
    least_score = NUMBERS.least_race_log_gain
    return Question(ends, goals, first, goal, log_expected_improvement, Race(), least_score)


def _best_by_level(model: StudyModel, rows: RowList) -> Array:
    """Return the lowest target at each level; without one, that of lower levels, or of all."""
    metric, levels = model.first, np.array(rows.levels)
    steps = metric.curves.step[metric.order] * (1.0 + 1e-9)
    place = np.maximum(np.searchsorted(levels, steps, side="right") - 1, 0)
    best = np.full(len(levels), np.inf)
    np.minimum.at(best, place, metric.z)
    best = np.where(np.isfinite(best), best, np.minimum.accumulate(best))
    return np.where(np.isfinite(best), best, metric.z.min())


def _best_target(history: History, model: StudyModel) -> float:
    """Return the target of the best report that the model sees; the lowest while there is none."""
    metric = model.first
    best = best_loss_seen(history, model.curves) if metric.feasible else None
    return float(metric.target.forward(np.array([metric.target.low if best is None else best]))[0])


def best_loss_seen(history: History, curves: StudyCurves) -> float | None:
    """Return the best feasible loss among trials that fit the space; None without one."""
    if history.best is None or curves.usable[history.best[0].id]:
        return None if history.best is None else history.best[1].loss
    fitting = (trial for trial in history.trials if curves.usable[trial.id])
    reports = (point for trial in fitting for point in trial.curve if point.feasible)
    return min((point.loss for point in reports if point.loss is not None), default=None)


def horizon(situation: Situation, goal: float, length: float, least_score: float) -> Question:
    """Ask for the probability to be below the goal after ``length`` further units."""
    steps = situation.steps_after(length)
    record = Horizon(length, _loss(situation.model, goal))
    goals = np.full(len(steps), goal)
    return Question(steps, goals, length, goal, _quantile, record, least_score)


def _quantile(mean: Array, deviation: Array, goal: Array) -> Array:
    """Return z with P(curve < goal) = Phi(z)."""
    return (goal - mean) / deviation


def gain(situation: Situation, best: float, length: float) -> Question:
    """Ask for the improvement on the best loss after ``length`` further units, over these units or
    their cost; after the next slice where that is longer, since it is granted as a whole."""
    model = situation.model
    costs = UnitCosts.of(situation.rows, model.curves) if situation.left.costs_count else None
    steps = np.maximum(situation.steps_after(length), situation.slice_ends)
    record = Gain(length, _loss(model, best), per_unit=True, per_cost=costs is not None)
    goals, formula = np.full(len(steps), best), partial(log_loss_improvement, model.first.target)
    return Question(steps, goals, length, best, formula, record, costs=costs)


def _loss(model: StudyModel, target: float) -> float | None:
    """Return a target as a loss, in six digits; None while nothing is feasible."""
    metric = model.first
    if not metric.feasible:
        return None
    return float(f"{metric.target.backward(np.array([target]))[0]:.6g}")


# --- the scores -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scores:
    """The scores of k paused trials and c new configurations, in this order, in m metrics: ``score``
    (k + c,), larger is better, from ``means`` and ``deviations`` (m, k + c) after ``steps``
    (k + c,). The new configurations are those at ``places`` (c,)."""

    score: Array
    means: Array
    deviations: Array
    steps: Array
    paused: list[PausedTrial]
    new: NewConfigs
    places: Places
    question: Race | Horizon | Gain | Growth

    def config(self, place: int) -> Config:
        """Return the new configuration at this place of the scores."""
        return self.new.config(int(self.places[place - len(self.paused)]))


def score_candidates(
    question: Question,
    situation: Situation,
    new: NewConfigs,
    places: Places,
    rng: np.random.Generator,
) -> Scores:
    """Score the paused trials and the new configurations at ``places``, or their nominee in a
    continuous space, in a study of one metric."""
    model, paused, trials = situation.model, situation.paused, situation.trials
    if len(places) and not new.listed:
        new, places = nominee(model, question, new, places, rng), np.arange(1)
    x = new.x[places]
    new_steps = model.curves.steps_of_new(x, question.step)
    of_paused = model.of_trials(trials, question.steps)
    of_new = new.predicted(model, places, new_steps)
    means, deviations = (np.hstack(both) for both in zip(of_paused, of_new, strict=True))
    goals = np.concatenate([question.goals, np.full(len(places), question.goal)])
    score = question.formula(means[0], deviations[0], goals)
    steps = np.concatenate([question.steps, new_steps])
    if isinstance(question.record, Gain):
        used = np.concatenate([situation.used, np.zeros(len(places))])
        score = score - np.log(steps - used)
        if question.costs is not None:
            costs = question.costs.of_trials[trials], question.costs.of_configs(x)
            score = score - np.concatenate(costs)
    return Scores(score, means, deviations, steps, paused, new, places, question.record)


# --- the nominee of a continuous space ------------------------------------------------------------


def nominee(
    model: StudyModel,
    question: Question,
    new: NewConfigs,
    places: Places,
    rng: np.random.Generator,
) -> NewConfigs:
    """Return the one new configuration that competes: drawn from those at ``places`` (k,), climbed
    to, or found by an evolution that starts with them."""
    if rng.random() >= leave_one_out_r2(model.first):
        x = new.x[[int(rng.choice(places))]]
        return NewConfigs(new.encoding, x, None)
    corners = NUMBERS.climbed_corners / 2.0 ** model.curves.x.shape[1]
    climbing = rng.random() < min(NUMBERS.climbed_share, corners)
    found = (climbed_nominee if climbing else evolved_nominee)(model, question, new, places, rng)
    return rounded(new, found)


def rounded(new: NewConfigs, x: Array) -> NewConfigs:
    """Return a nominee x (1, d) without rounding errors, at a legal point."""
    snapped = new.encoding.domain.snap(np.round(x, NOMINEE_DIGITS))
    return NewConfigs(new.encoding, snapped, None)


def leave_one_out_r2(metric: MetricModel) -> float:
    """Return the share of the variance of first rows that the model predicts from all other
    configurations: 1 - sum (z - predicted)^2 / sum (z - mean)^2, between 0 and 1; 0 where all are
    equal. Of a new configuration nothing but its first row is seen before the next decision."""
    first, predicted = leave_one_out(metric)
    spread = float(((first - first.mean()) ** 2).sum())
    if not spread > 0.0:
        return 0.0
    return float(np.clip(1.0 - ((first - predicted) ** 2).sum() / spread, 0.0, 1.0))


def leave_one_out(metric: MetricModel) -> tuple[Array, Array]:
    """Return the target of the first row of each configuration, and its prediction from all others,
    (C,) each.

    With A = K^-1, the residuals r = z - m(u), and b the rows of one configuration, the prediction is
    z_b - A_bb^-1 (A r)_b. (Rasmussen, Williams, Gaussian Processes for Machine Learning, 2006,
    5.4.2, for one row each.)
    """
    count = len(metric.order)
    trial = metric.curves.trial[metric.order]
    # A = inverse^T inverse
    inverse = inverse_factor(metric.factor.lower[:count, :count])
    pulled = inverse.T @ metric.whitened[:count]
    _, firsts, sizes = np.unique(trial, return_index=True, return_counts=True)
    off = pulled[firsts] / (inverse[:, firsts] ** 2).sum(axis=0)
    for place in np.flatnonzero(sizes > 1):
        rows = np.flatnonzero(trial == trial[firsts[place]])
        off[place] = np.linalg.solve(inverse[:, rows].T @ inverse[:, rows], pulled[rows])[0]
    return metric.z[firsts], metric.z[firsts] - off


@dataclass(frozen=True)
class NewConfigScore(BoundAcquisition):
    """Log expected improvement in loss on a question's goal by new configurations x (k, d), over the
    cost of a unit where that counts.

    Only the uncertainty that neighbours share counts here. The part of the variance that a run has
    of its own (a3 of the process) is the same everywhere; with it, the surroundings of the best
    configuration would look promising however often they were tried.
    """

    model: StudyModel
    question: Question

    def __call__(self, x: Array) -> Array:
        metric = self.model.first
        steps = self.model.curves.steps_of_new(x, self.question.step)
        mean, deviation = metric.of_configs(x, steps)
        shared = shared_deviation(metric, deviation, steps)
        goals = np.full(len(x), self.question.goal)
        score = log_loss_improvement(metric.target, mean, shared, goals)
        return self.question.per_cost(score, x)

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        metric, curves = self.model.first, self.model.curves
        scaled = metric.factor.scaled(curves.featured(x))
        steps = curves.steps_of_new(x, self.question.step)
        mean, deviation, pull = metric.factor.marginals_and_pullback(
            scaled, metric.curves.time_axis(steps), metric.whitened
        )
        shared = shared_deviation(metric, deviation, steps)
        goals = np.full(len(x), self.question.goal)
        score, by_mean, by_deviation = log_loss_improvement_and_derivatives(
            metric.target, mean, shared, goals
        )
        d_features = metric.factor.scaled(pull(by_mean, by_deviation * deviation / shared))
        if self.question.costs is not None:
            d_features = d_features - self.question.costs.weights
        return self.question.per_cost(score, x), curves.pull(x, d_features)


def shared_deviation(metric: MetricModel, deviation: Array, steps: Array) -> Array:
    """Return the standard deviation (k,) of new configurations without their own part."""
    variances = metric.factor.parameters.own_variances(metric.curves.time_axis(steps))
    return np.asarray(np.sqrt(np.maximum(deviation**2 - variances, MIN_SHARED_VARIANCE)))


def evolved_nominee(
    model: StudyModel,
    question: Question,
    new: NewConfigs,
    places: Places,
    rng: np.random.Generator,
) -> Array:
    """Evolve the configuration (1, d) with the most expected improvement at the end of training on
    the lowest end expected of any trial."""
    curves, ends = model.curves, model.ends_of_trials[0][0]
    lowest = model.trials[np.argsort(ends, kind="stable")[: NUMBERS.parents]]
    at_end = replace(question, step=curves.time_axis.last, goal=float(ends.min()))
    return evolved(NewConfigScore(model, at_end), new, places, curves.x[lowest], rng, curves.x)


def evolved(
    score: Callable[[Array], Array],
    new: NewConfigs,
    places: Places,
    parents: Array,
    rng: np.random.Generator,
    tried: Array,
) -> Array:
    """Return the untried configuration (1, d) of the highest score that an evolution finds.

    It starts with the new configurations at ``places`` and the ``parents`` (p, d). In each of eight
    generations the best eight have ten children, in which a third of the parameters move by a
    sixty-fourth to a half of their range, and the best of both live on.
    """
    domain, drawn = new.encoding.domain, new.x[places]
    x = np.vstack([drawn, parents])
    scores = score(x)
    for _ in range(NUMBERS.generations):
        best = np.argsort(-scores, kind="stable")[: NUMBERS.parents]
        parents = np.repeat(x[best], NUMBERS.children, axis=0)
        widths = 0.5 ** rng.uniform(*NUMBERS.step_log2_widths, size=(len(parents), 1))
        moving = rng.random(parents.shape) < NUMBERS.moving_share
        children = domain.perturb(parents, widths * moving, rng)
        x = np.vstack([x[best], children])
        scores = np.concatenate([scores[best], score(children)])
    fresh = ~contains_rows(x, tried)
    x, scores = (x[fresh], scores[fresh]) if fresh.any() else (drawn, score(drawn))
    return x[[int(np.argmax(scores))]]


def climbed_nominee(
    model: StudyModel,
    question: Question,
    new: NewConfigs,
    places: Places,
    rng: np.random.Generator,
) -> Array:
    """Climb from the new configurations to the one (1, d) with the most expected improvement on the
    question's own goal.

    A climb reaches optima at bounds, but not every nominee can be found so: in ten dimensions every
    corner is far from all trials and most uncertain, and a study would spend its first slices on
    corners.
    """
    metric, drawn = model.first, new.x[places]
    steps = model.curves.steps_of_new(drawn, question.step)
    means, deviations = new.predicted(model, places, steps)
    shared = shared_deviation(metric, deviations[0], steps)
    goals = np.full(len(places), question.goal)
    scores = question.per_cost(log_loss_improvement(metric.target, means[0], shared, goals), drawn)
    search = Search(
        excluded=model.curves.x,
        scales=metric.factor.parameters.lengths[: drawn.shape[1]],
        settings=CLIMB_SETTINGS,
    )
    domain, score = new.encoding.domain, NewConfigScore(model, question)
    return climb(score, domain, Found(drawn, scores), rng, search).x[:1]


def gain_of_curves(situation: Situation, rng: np.random.Generator) -> GainLeft:
    """Return the gain that is left in this situation, whose model has no pending rows."""
    history, model, left = situation.history, situation.model, situation.left
    metric, curves = model.first, model.curves
    loss = best_loss_seen(history, curves)
    if loss is None or not metric.feasible:
        return GainLeft(math.inf, math.inf)
    longest = min(situation.rows.levels[-1], left.per_worker)
    if not longest > 0.0:
        return GainLeft(0.0, 0.0)
    running = _known(situation, history.with_status("running", "stale"))
    ends = np.array([trial.granted for trial in running], dtype=float)
    steps = situation.steps_after(longest)
    new = np.zeros((0, curves.x.shape[1]))
    if left.may_add and longest >= left.first_slice_end:
        drawn_at = when_drawn(history, model)
        drawn = new_configs_of(history, model, encoding_of(history.problem.space), drawn_at)
        new = drawn.x[drawn.untried(model, drawn_at)]
        means, deviations = model.of_configs(new, curves.steps_of_new(new, longest))
        new = new[most_promising(means[0], deviations[0])]
    new_steps = curves.steps_of_new(new, longest)
    if not len(steps) + len(new):
        return GainLeft(0.0, 0.0)
    known = np.concatenate([situation.trials, [trial.id for trial in running]]).astype(np.intp)
    features = np.vstack([curves.features[known], curves.featured(new)])
    # new configurations are runs of their own
    numbers = np.concatenate([known, len(curves.x) + np.arange(len(new))])
    times = metric.curves.time_axis(np.concatenate([steps, ends, new_steps]))
    mean, covariance = metric.factor.joint(
        metric.factor.scaled(features), numbers, times, metric.whitened
    )
    root = cholesky(covariance, scale=float(np.diag(covariance).mean()) + 1e-12)
    targets = mean + rng.standard_normal((OUTCOME_DRAWS, len(mean))) @ root.T
    to_losses = metric.target.backward_unbounded
    outcomes = calibrated(to_losses(targets), to_losses(mean), lower_scale(history))
    here = np.ones(len(mean), dtype=bool)
    here[len(steps) : len(steps) + len(ends)] = False
    units = np.concatenate([steps - situation.used, new_steps])
    total = left.per_worker * situation.rows.workers
    stated = gain_left(outcomes[:, here], units, loss, total, outcomes[:, ~here])
    costs = UnitCosts.of(situation.rows, curves) if history.problem.cost is not None else None
    if costs is None:
        return stated
    unit = np.exp(np.concatenate([costs.of_trials[situation.trials], costs.of_configs(new)]))
    per_cost = gain_left(outcomes[:, here], units * unit, loss, math.inf).per_cost
    return GainLeft(stated.expected, per_cost)


def _known(situation: Situation, trials: list[Trial]) -> list[Trial]:
    """Return the trials that the model has learned from."""
    known = set(situation.model.trials.tolist())
    return [trial for trial in trials if trial.id in known]
