"""Steps 7 and 8 with several metrics: the candidate whose next slice is expected to add most to the
front.

Every candidate, a paused trial or a new configuration, is predicted after some further training, and
scored by the hypervolume that it is expected to add to a front at that step:

- *Race*, early: at its next level, to the front of what any run had at that level.
- *Growth*, later: after h further units, h drawn for each decision, to the front of all reports. A
  paused trial that ends after r < h further units costs less: its growth is divided by r / h. New
  configurations count as h units.

The score is the logarithm of the expected hypervolume improvement as a share of the volume between
the best of the front and the reference point. With the region that the front leaves open as disjoint
boxes [l, u) (`scrimp.fronts.hypervolume.open_boxes`) and metrics predicted independently,

    EHVI = sum over boxes of prod over metrics of  E[(u - Y)+] - E[(l - Y)+]

in the units of the metrics (`scrimp.freeze_thaw.curve_target`). Expected outcomes of running slices
belong to the front. What lies beyond a goal is no gain, unless a report has reached all goals.

In a continuous space one new configuration is scored, the nominee (`front_nominee`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from scrimp.acquisition.hypervolume_improvement import Strips, thinned_front
from scrimp.freeze_thaw.curve_target import log_improvement_on
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.freeze_thaw.new_configs import NewConfigs
from scrimp.freeze_thaw.scoring import Scores, Situation, evolved, rounded, shared_deviation
from scrimp.freeze_thaw.study_curves import MAX_LOSS
from scrimp.freeze_thaw.study_model import Prediction, StudyModel
from scrimp.fronts.hypervolume import default_reference, front_below, open_boxes
from scrimp.study_log.decision_record import Growth, Race
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem

Array = NDArray[np.float64]
Places = NDArray[np.intp]

OpenRegion = tuple[Strips, ...]
"""The boxes that a front leaves open, as their strips along each metric, in losses."""

MAX_CANDIDATES_TIMES_BOXES = 200_000
"""Entries that are scored at a time, to bound memory."""


def score_front_growth(
    situation: Situation,
    new: NewConfigs,
    places: Places,
    race_share: float,
    rng: np.random.Generator,
) -> Scores:
    """Score the paused trials and the new configurations at ``places``, or their nominee in a
    continuous space, by the growth of the front."""
    model, paused = situation.model, situation.paused
    front = CurrentFront.of(situation.history, model, new)
    if len(places) and not new.listed:
        new, places = front_nominee(model, front, new, places, rng), np.arange(1)
    x = new.x[places]
    for question in front_questions(situation, front, race_share, rng):
        new_steps = model.curves.steps_of_new(x, question.step)
        of_new = new.predicted(model, places, new_steps)
        of_paused = model.of_trials(situation.trials, question.steps)
        score = question.scores(model, of_paused, of_new) - front.log_volume
        if score.max() >= question.least_score:
            break
    means, deviations = (np.hstack(both) for both in zip(of_paused, of_new, strict=True))
    steps = np.concatenate([question.steps, new_steps])
    return Scores(score, means, deviations, steps, paused, new, places, question.record)


def front_nominee(
    model: StudyModel,
    front: "CurrentFront",
    new: NewConfigs,
    places: Places,
    rng: np.random.Generator,
) -> NewConfigs:
    """Return the one new configuration that competes: the one that adds most, at the end of
    training, to the front of expected ends.

    An evolution from those at ``places`` and the trials whose expected ends add most finds it. As
    with one metric, the part of the variance that a run has of its own does not count.
    """
    curves = model.curves
    means, deviations = model.ends_of_trials
    region = front.open_region(np.vstack([front.losses, model.losses(means)]))

    def score(x: Array) -> Array:
        steps = curves.steps_of_new(x, curves.time_axis.last)
        means, deviations = model.of_configs(x, steps)
        pairs = zip(model.each, deviations, strict=True)
        shared = np.stack([shared_deviation(metric, own, steps) for metric, own in pairs])
        return log_growth(model, means, shared, region)

    growth = log_growth(model, means, deviations, front.open_region())
    most = model.trials[np.argsort(-growth, kind="stable")[: NUMBERS.parents]]
    return rounded(new, evolved(score, new, places, curves.x[most], rng, curves.x))


# --- questions ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GrowthQuestion:
    """For paused trials: the ``steps`` (k,) at which they are predicted, their ``log_costs`` (k,)
    relative to a new configuration (0 in the race), and the open region of each, by ``group`` (k,).
    For new configurations: one step, one group."""

    steps: Array
    log_costs: Array
    group: Places
    step: float
    new_group: int
    regions: dict[int, OpenRegion]
    record: Race | Growth
    least_score: float = -math.inf

    def scores(self, model: StudyModel, of_paused: Prediction, of_new: Prediction) -> Array:
        """Return log EHVI of paused trials, less log costs, and of new configurations, (k + c,)."""
        paused = np.full(len(self.steps), -np.inf)
        for group in np.unique(self.group):
            here = self.group == group
            means, deviations = (part[:, here] for part in of_paused)
            paused[here] = log_growth(model, means, deviations, self.regions[group])
        new = log_growth(model, *of_new, self.regions[self.new_group])
        return np.concatenate([paused - self.log_costs, new])


def front_questions(
    situation: Situation, front: "CurrentFront", race_share: float, rng: np.random.Generator
) -> Iterator[GrowthQuestion]:
    """Ask for the race while less than ``race_share`` of the budget is spent, then for the growth
    after a random horizon, then after the longest."""
    left = situation.left
    if left.spent_share < race_share:
        yield front_race(situation, front)
    longest = min(situation.rows.levels[-1], left.per_worker)
    most = max(int(longest / left.first_slice_end), 1)
    further = int(rng.integers(1, most + 1))
    region = front.open_region()
    yield growth_after(situation, region, left.first_slice_end * further, NUMBERS.least_log_growth)
    yield growth_after(situation, region, left.first_slice_end * most, -math.inf)


def front_race(situation: Situation, front: "CurrentFront") -> GrowthQuestion:
    """Ask for the growth at the next level of the front of that level, or of lower ones where no
    run has come so far."""
    rows, curves = situation.rows, situation.model.curves
    complete = np.zeros(len(curves.trial), dtype=bool)
    complete[curves.complete(len(complete))] = True
    level = np.array([rows.levels_reached(step) - 1 for step in rows.step], dtype=np.intp)
    ends = situation.slice_ends
    group = np.array([rows.levels_reached(end) - 1 for end in ends], dtype=np.intp)
    first = situation.left.first_slice_end
    new_group = rows.levels_reached(first) - 1
    regions = {}
    for place in {new_group, *group.tolist()}:
        reached = [known for known in range(place, -1, -1) if (complete & (level == known)).any()]
        here = complete & (level == reached[0]) if reached else complete
        losses = np.vstack([curves.losses[here], front.running])
        regions[place] = front.at_level(losses).open_region(losses)
    least_score = NUMBERS.least_log_growth
    costs = np.zeros(len(ends))
    return GrowthQuestion(ends, costs, group, first, new_group, regions, Race(), least_score)


def growth_after(
    situation: Situation, region: OpenRegion, length: float, least_score: float
) -> GrowthQuestion:
    """Ask for the growth after ``length`` further units, or at the expected end of a run."""
    steps = situation.steps_after(length)
    costs = np.log(np.minimum((steps - situation.used) / length, 1.0))
    group = np.zeros(len(steps), dtype=np.intp)
    return GrowthQuestion(steps, costs, group, length, 0, {0: region}, Growth(length), least_score)


# --- the region that a front leaves open ----------------------------------------------------------


def log_growth(model: StudyModel, means: Array, deviations: Array, region: OpenRegion) -> Array:
    """Return log EHVI (k,) of candidates with these means and deviations (m, k) in targets; minus
    infinity where nothing is open."""
    count, boxes = means.shape[1], len(region[0].high)
    values = np.full(count, -np.inf)
    if not boxes:
        return values
    step = max(1, MAX_CANDIDATES_TIMES_BOXES // boxes)
    for start in range(0, count, step):
        here = slice(start, start + step)
        total = np.zeros((len(values[here]), boxes))
        for metric, mean, std, strips in zip(model.each, means, deviations, region, strict=True):
            target = metric.target
            above = np.maximum(strips.edges - target.floor, target.least_above_floor)
            logs = mean[here] * target.scale + target.mean
            edges = log_improvement_on(logs, std[here] * target.scale, np.log(above))
            total += _between(edges, strips)
        values[here] = logsumexp(total, axis=1)
    return values


def _between(edges: Array, strips: Strips) -> Array:
    """Return the log of the improvement within each strip (k, boxes), from that below each edge."""
    value = edges[:, strips.high]
    closed = np.flatnonzero(strips.low >= 0)
    fall = edges[:, strips.low[closed]] - value[:, closed]
    # nearly nothing falls into a strip that lies far above
    with np.errstate(divide="ignore"):
        value[:, closed] += np.log(-np.expm1(np.minimum(fall, 0.0)))
    return value


@dataclass(frozen=True, eq=False)
class CurrentFront:
    """The front that candidates are to extend.

    ``losses`` (k, m): those of the front so far, and the expected outcomes of running slices, which
    are ``running`` (r, m). ``reference`` (m,): the point that volumes are measured from. ``best``
    (m,): losses that are good enough, minus infinity where lower is always better.
    """

    losses: Array
    running: Array
    reference: Array
    best: Array

    @staticmethod
    def of(history: History, model: StudyModel, new: NewConfigs) -> "CurrentFront":
        """Return the front at this moment."""
        problem = history.problem
        seen = history.front
        if not all(model.curves.usable[trial.id] for trial, _ in seen):
            # Trials that do not fit the space are unknown to the model, and hide others.
            fitting = [trial for trial in history.trials if model.curves.usable[trial.id]]
            seen = [(own, point) for own in fitting for point in own.curve if point.counted]
            seen = [pair for pair in seen if pair[1].feasible]
        front = np.array([point.losses for _, point in seen])
        front = np.clip(front, -MAX_LOSS, MAX_LOSS)
        reference = _reference(problem, model, new, front)
        best = np.array(problem.best_losses)
        if (front <= best).all(axis=1).any() or not (best < reference).all():
            # all goals are reached: lower is better again
            best = np.full(len(best), -np.inf)
        known = set(model.trials.tolist())
        under_way = [own for own in history.with_status("running", "stale") if own.id in known]
        trials = np.array([trial.id for trial in under_way], dtype=np.intp)
        ends = np.array([trial.granted for trial in under_way], dtype=float)
        running = model.losses(model.of_trials(trials, ends)[0])
        return CurrentFront(np.vstack([front, running]), running, reference, best)

    @property
    def log_volume(self) -> float:
        """The logarithm of the volume between the best of the front and the reference."""
        ideal = np.maximum(self.losses.min(axis=0), self.best)
        return float(np.log(np.maximum(self.reference - ideal, 1e-300)).sum())

    def at_level(self, losses: Array) -> "CurrentFront":
        """Return a copy for reports at one level (k, m), which may lie beyond the reference of ends."""
        far = np.quantile(losses, NUMBERS.level_reference_quantile, axis=0)
        beyond = far + NUMBERS.reference_margin * np.abs(far)
        return replace(self, reference=np.maximum(self.reference, beyond))

    def open_region(self, losses: Array | None = None) -> OpenRegion:
        """Return the region that the front, or that of other losses (k, m), leaves open."""
        known = np.maximum(self.losses if losses is None else losses, self.best)
        front = thinned_front(front_below(known, self.reference), self.reference)
        boxes = open_boxes(front, self.reference)
        lower = np.maximum(boxes.lower, self.best)
        left = (lower < boxes.upper).all(axis=1)
        sides = zip(lower[left].T, boxes.upper[left].T, strict=True)
        return tuple(Strips.between(low, high) for low, high in sides)


def _reference(problem: Problem, model: StudyModel, new: NewConfigs, front: Array) -> Array:
    """Return the study's own reference point as losses (m,), or one a tenth beyond three things: the
    front so far, the front of ends that are two standard deviations better than expected, and the
    expected other metrics of those that promise most in one. A front that is one corner so far must
    not cut off the rest."""
    if problem.reference_losses is not None:
        return np.clip(problem.reference_losses, -MAX_LOSS, MAX_LOSS)
    drawn = np.arange(len(new.x))
    at_end = np.full(len(drawn), model.curves.time_axis.last)
    ends, hoped = [], []
    for means, deviations in (model.ends_of_trials, new.predicted(model, drawn, at_end)):
        hoped.append(model.losses(means - NUMBERS.reference_optimism * deviations))
        ends.append(model.losses(means))
    best = problem.best_losses
    order = np.argsort(np.vstack(hoped), axis=0, kind="stable")
    promising = np.vstack(ends)[order[: NUMBERS.reference_promising].ravel()]
    known = np.maximum(np.vstack([front, promising]), best)
    far = default_reference(np.maximum(np.vstack([front, *hoped]), best))
    low, high = known.min(axis=0), known.max(axis=0)
    found: Array = np.maximum(far, high + NUMBERS.reference_margin * (high - low))
    return np.maximum(found, default_reference(known))
