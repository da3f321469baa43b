"""Which run should get the next slice of training so that the front of several metrics grows most.

Every candidate, a paused trial or a newcomer, is looked at after some further training, and scored
by the hypervolume that it is expected to add then (`scrimp.freeze_thaw.front_ground`):

- *Race*, early: at its next level, to the front of what anybody had at that level;
- *Growth*, later: after h further steps, h drawn anew for each decision, to the front of all
  reports. A run that is over sooner costs less: its score is per unit of training.

In a continuous space one newcomer competes, the nominee: what an evolution from the drawn ones and
the trials of the front finds to add most, at the end of training, to the front of expected ends. As
with one metric, what a run has of its own is no reason to choose it.

    GrowFront(history, rows, belief, outlook, waiting).decide(race=0.15, rng=rng)
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scrimp.freeze_thaw.climb import DIGITS, PARENTS, evolved, shared_deviation
from scrimp.freeze_thaw.curve_rows import RowList, Waiting
from scrimp.freeze_thaw.front_ground import Ground, Open, added
from scrimp.freeze_thaw.front_model import FrontBelief
from scrimp.freeze_thaw.outlook import Outlook
from scrimp.freeze_thaw.questions import steps_after
from scrimp.history.history import History
from scrimp.history.notes import CurveFit, Expected, Growth, Modelled, Notes, Race, Rival
from scrimp.policies.policy import Decision, Resume, Start
from scrimp.schedulers.study_end import wait_or_finish

__all__ = ["GrowFront", "GrowthQuestion"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Beliefs = tuple[list[Array], list[Array]]
"""Means and standard deviations, one array for each metric."""

LEAST_GROWTH = math.log(1e-5)
"""The logarithm of the share of the whole volume below which a question has no answer."""

SHOWN = 4  # candidates a decision tells of: the winner and its competitors


@dataclass(frozen=True, eq=False)
class GrowthQuestion:
    """Of paused trials: the ``steps`` (k,) at which they are looked at, the logarithm of what they
    cost (k,) beside a newcomer, and what is open to each, by ``group`` (k,); of newcomers: one
    step, one group."""

    steps: Array
    log_costs: Array
    group: Places
    step: float
    newcomer: int
    regions: dict[int, Open]
    asked: Race | Growth
    hope: float = -math.inf

    def scores(self, belief: FrontBelief, seen: Beliefs, unseen: Beliefs) -> Array:
        """log EHVI of paused trials and newcomers per cost, (k + c,)."""
        old = np.full(len(self.steps), -np.inf)
        for group in np.unique(self.group):
            here = self.group == group
            means, deviations = ([part[here] for part in side] for side in seen)
            old[here] = added(belief, means, deviations, self.regions[group])
        new = added(belief, *unseen, self.regions[self.newcomer])
        return np.concatenate([old - self.log_costs, new])


@dataclass(frozen=True)
class GrowFront:
    """One decision: the models, what is left to spend, and who waits."""

    history: History
    rows: RowList
    belief: FrontBelief
    outlook: Outlook
    waiting: list[Waiting]

    def decide(self, race: float, rng: np.random.Generator) -> Decision:
        """The next slice; the first ``race`` of the budget asks for the next level alone."""
        known = set(self.belief.trials.tolist())
        waiting = [slice_ for slice_ in self.waiting if slice_[0] in known]
        new = self.belief.first.unknown() if self.outlook.add else np.zeros(0, dtype=np.intp)
        if not waiting and not len(new):
            text = "every configuration of the space was tried to its end"
            return Decision(wait_or_finish(self.history, text))
        running = [
            (trial.id, trial.granted) for trial in self.history.with_status("running", "stale")
        ]
        ground = Ground.of(self.history, self.belief, running)
        game = replace(self, waiting=waiting)
        if len(new) and self.belief.first.newcomers.rows is None:
            x = nominee(self.belief, ground, new, rng)
            newcomers = replace(self.belief.first.newcomers, x=x)
            each = tuple(replace(own, newcomers=newcomers) for own in self.belief.each)
            game, new = (
                replace(game, belief=replace(self.belief, each=each)),
                np.arange(len(x)),
            )
        return game._best(ground, race, new, rng)

    def _best(self, ground: Ground, race: float, new: Places, rng: np.random.Generator) -> Decision:
        belief, first = self.belief, self.belief.first
        x, listed = first.newcomers.x[new], first.newcomers.rows is not None
        trials = np.array([trial for trial, _, _ in self.waiting], dtype=np.intp)
        for question in self._questions(ground, race, rng):
            steps = first.newcomer_steps(x, question.step)
            unseen = belief.of_newcomers(new, steps) if listed else belief.of_configs(x, steps)
            seen = belief.of_trials(trials, question.steps)
            score = question.scores(belief, seen, unseen) - ground.log_volume
            if score.max() >= question.hope:
                break
        means, deviations = (
            np.stack([np.concatenate(pair) for pair in zip(*both, strict=True)])
            for both in zip(seen, unseen, strict=True)
        )
        order = np.argsort(-np.round(score, 9), kind="stable")[:SHOWN]
        best = int(order[0])
        step = float(np.concatenate([question.steps, steps])[best])
        reason = Modelled(
            _digits(score[best]),
            rivals=tuple(self._rival(int(place), score, new) for place in order[1:]),
            question=question.asked,
            each=self._expected(means[:, best], deviations[:, best], step),
        )
        notes = Notes(reason=reason, curves=self._new_fit())
        if best < len(self.waiting):
            trial, _, end = self.waiting[best]
            return Decision(Resume(trial, end), notes)
        config = first.newcomers.config(int(new[best - len(self.waiting)]))
        return Decision(Start(config, self.outlook.first), notes)

    def _questions(
        self, ground: Ground, race: float, rng: np.random.Generator
    ) -> Iterator[GrowthQuestion]:
        """The race while it is on, then a random horizon, then the longest."""
        outlook = self.outlook
        if outlook.share < race:
            yield self._race(ground)
        most = max(int(min(self.rows.levels[-1], outlook.each) / outlook.first), 1)
        further = int(rng.integers(1, most + 1))
        region = ground.open_strips()
        yield self._after(region, outlook.first * further, LEAST_GROWTH)
        yield self._after(region, outlook.first * most, -math.inf)

    def _after(self, region: Open, length: float, hope: float) -> GrowthQuestion:
        """What is added after ``length`` further steps, or at the expected end of a run."""
        steps = steps_after(self.belief.first, self.waiting, length)
        used = np.array([used for _, used, _ in self.waiting], dtype=float)
        costs = np.log(np.minimum((steps - used) / length, 1.0))
        group = np.zeros(len(steps), dtype=np.intp)
        return GrowthQuestion(steps, costs, group, length, 0, {0: region}, Growth(length), hope)

    def _race(self, ground: Ground) -> GrowthQuestion:
        """What is added at the next level to the front of what anybody had there, or at lower
        levels where nobody has come so far."""
        rows, told = self.rows, self.belief.told
        whole = ~(told.marked | np.isnan(told.losses).any(axis=1))
        level = np.array([rows.reached(step) - 1 for step in rows.step], dtype=np.intp)
        slices = np.array([end for _, _, end in self.waiting], dtype=float)
        group = np.array([rows.reached(end) - 1 for end in slices], dtype=np.intp)
        newcomer = rows.reached(self.outlook.first) - 1
        regions = {}
        for place in {newcomer, *group.tolist()}:
            reached = [known for known in range(place, -1, -1) if (whole & (level == known)).any()]
            here = whole & (level == reached[0]) if reached else whole
            losses = np.vstack([told.losses[here], ground.coming])
            regions[place] = ground.at_level(losses).open_strips(losses)
        costs = np.zeros(len(slices))
        step = self.outlook.first
        return GrowthQuestion(slices, costs, group, step, newcomer, regions, Race(), LEAST_GROWTH)

    def _rival(self, place: int, score: Array, new: Places) -> Rival:
        if place < len(self.waiting):
            return Rival(_digits(score[place]), trial=self.waiting[place][0])
        config = self.belief.first.newcomers.config(int(new[place - len(self.waiting)]))
        return Rival(_digits(score[place]), config)

    def _expected(self, means: Array, deviations: Array, step: float) -> dict[str, Expected]:
        """What was believed of the winner in each metric (m,), in the directions of the metrics."""
        trade_off = self.history.problem.trade_off
        assert trade_off is not None
        found = {}
        around = means[:, None] + deviations[:, None] * np.array([0.0, -2.0, 2.0])
        for name, sign, own, values in zip(
            trade_off.names, trade_off.signs, self.belief.each, around, strict=True
        ):
            middle, *ends = (_digits(sign * loss) for loss in own.target.backward(values))
            found[name] = Expected(middle, min(ends), max(ends), step)
        return found

    def _new_fit(self) -> CurveFit | None:
        """What the next decision needs to know of this one's models; None where it knows."""
        record = self.belief.record
        return None if record == self.history.notes.curves else record


def nominee(belief: FrontBelief, ground: Ground, places: Places, rng: np.random.Generator) -> Array:
    """A configuration (1, d) that nobody tried: the most that an evolution from the newcomers at
    ``places`` and the trials whose expected ends add most finds to add at the end of training."""
    first, trials = belief.first, belief.trials
    curves = first.curves
    means, deviations = belief.of_trials(trials, first.ends(curves.x[trials]))
    ends = belief.losses(means)
    region = ground.open_strips(np.vstack([ground.front, ends]))

    def score(x: Array) -> Array:
        steps = first.newcomer_steps(x, curves.clock.last)
        means, deviations = belief.of_configs(x, steps)
        shared = [
            shared_deviation(own, deviation, own.curves.clock(steps))
            for own, deviation in zip(belief.each, deviations, strict=True)
        ]
        return added(belief, means, shared, region)

    open_ = added(belief, means, deviations, ground.open_strips())
    parents = curves.x[trials[np.argsort(-open_, kind="stable")[:PARENTS]]]
    best = evolved(score, first, first.newcomers.x[places], parents, rng)
    return first.newcomers.encoding.domain.snap(np.round(best, DIGITS))


def _digits(number: float) -> float:
    """In six digits."""
    return float(f"{number:.6g}")
