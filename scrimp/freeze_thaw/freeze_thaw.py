"""Freeze-thaw: every decision asks which configuration, half trained or new, should get the next
slice of training.

1. A few first configurations: those of a list at the lowest budget, those of a continuous space
   for longer where a full training is long (`scrimp.freeze_thaw.curve_rows`), as all new ones.
2. A Gaussian process over all learning curves (`scrimp.freeze_thaw.curve_gp`) predicts every
   candidate: paused trials, and new configurations: rows of a list, or in a continuous space the
   one that is expected to end best. Slices grow by a factor of 1.6.
3. Early, the candidate wins whose *next level* has the largest expected improvement over the best
   value at that level (Wistuba, Kadra, Grabocka, Supervising the Multi-Fidelity Race of
   Hyperparameter Configurations, 2022). Later, in a list, a horizon h and a threshold T are drawn
   at random for each decision, and the candidate wins that is most likely to be below T after h
   further steps (Rakotoarison et al., In-Context Freeze-Thaw Bayesian Optimization for
   Hyperparameter Optimization, 2024); in a continuous space that with the largest expected
   improvement on the best value by the end of its training, for each step until then, or for what
   these steps cost where time or a cost is short (`scrimp.freeze_thaw.unit_costs`).
4. Running slices count as if they had come out as predicted.
5. Where many trials share the best value, or in a continuous space are expected to end with it,
   some decisions are left to random scouts (`scrimp.freeze_thaw.plateau_scouts`).

    create_study(..., budget=Budget("epoch", 1, 81), method="freeze-thaw")
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain

import msgspec
import numpy as np
from numpy.typing import NDArray

from scrimp.encoding.encoding import encoding_of
from scrimp.errors import MethodError, NumericalError
from scrimp.freeze_thaw.climb import nominee
from scrimp.freeze_thaw.curve_rows import SCOUT, CurveTable, RowList, Waiting
from scrimp.freeze_thaw.front_growth import GrowFront
from scrimp.freeze_thaw.front_model import believe_front
from scrimp.freeze_thaw.front_rows import by_fronts
from scrimp.freeze_thaw.hint import Hint, Taught
from scrimp.freeze_thaw.model import CurveBelief, StudyCurves, believe
from scrimp.freeze_thaw.outlook import Outlook
from scrimp.freeze_thaw.past_curves import prior_centre
from scrimp.freeze_thaw.plateau_scouts import (
    PLATEAU,
    copying_probability,
    promotion,
    scouting_probability,
    stuck,
)
from scrimp.freeze_thaw.questions import Question, later, race
from scrimp.freeze_thaw.unit_costs import UnitCosts
from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.history.notes import (
    AheadOfHalf,
    CurveFit,
    Expected,
    FirstDesign,
    Gain,
    Horizon,
    Modelled,
    Notes,
    Race,
    Rival,
    Scouted,
)
from scrimp.policies.policy import Decision, Forecast, Policy, Resume, Start
from scrimp.schedulers.study_end import wait_or_finish
from scrimp.space.space import Pool, Space
from scrimp.suggesters.first_design import first_configs, guess
from scrimp.suggesters.known_configs import KNOWN
from scrimp.suggesters.past_knowledge import PastKnowledge
from scrimp.suggesters.random import draw_fresh

__all__ = ["FreezeThaw"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]
FEW = 4  # configurations of the first design of a list
EACH = 3  # for each parameter, where configurations are not a list
DESIGN = 0.25  # the share of the budget after which none is added to it
SHORT_DESIGN = 0.1  # the same where they are trained for the lowest budget only
CHEAPEST_OF = 3  # points of the first design that are looked at, where costs count
SHOWN = 4  # candidates a decision tells of: the winner and its competitors


@dataclass(frozen=True)
class Scores:
    """Of all candidates, paused trials before newcomers: scores (larger is better) and what they
    rest on, (m + k,) each."""

    score: Array
    mean: Array
    deviation: Array
    step: Array
    waiting: list[Waiting]  # m
    new: Places  # (k,) places among the newcomers of the belief
    question: Race | Horizon | Gain


@dataclass(frozen=True)
class FreezeThaw(Policy):
    """``initial``: configurations before the model decides, None for 4 of a list and 3 for each
    parameter of a continuous space while less than a quarter of the budget is spent (a tenth where
    first slices are of the lowest budget); ``race``: share of the budget decided by the
    next level alone; ``hint``: whether the curve model sees what past studies expect of a
    configuration (`scrimp.freeze_thaw.hint`).

    ``shapes``: the centre of the curve model's prior, as past studies taught it
    (`scrimp.freeze_thaw.past_curves`).
    """

    initial: int | None = None
    race: float = 0.15
    hint: bool = False
    shapes: tuple[float, ...] = field(default=(), metadata={"handed_in": True})
    past: PastKnowledge | None = field(default=None, metadata={"handed_in": True})

    def __post_init__(self) -> None:
        if self.initial is not None and self.initial < 1:
            raise MethodError(
                f"initial is {self.initial}; at least one configuration comes before the model"
            )
        if not 0.0 <= self.race <= 1.0:
            raise MethodError(f"race is {self.race}; it is a share of the budget, between 0 and 1")

    def informed_by(self, past: PastKnowledge) -> Policy:
        """With how the curves of past studies went, and what they expect of configurations."""
        return replace(self, shapes=prior_centre(past.curves()), past=past)

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """The next slice."""
        rows = history.derive(CurveTable())
        outlook = Outlook.of(history, rows)
        waiting = [
            (trial, *slice_)
            for trial, slice_ in rows.waiting.items()
            if slice_[1] - slice_[0] <= outlook.resume
        ]
        if not outlook.add and not waiting:
            return Decision(
                wait_or_finish(
                    history, "no further configuration may be added and no slice is left"
                )
            )
        if outlook.add and (
            len(history.trials) < self._first(history, outlook) or not _has_values(rows)
        ):
            first = _designed(history, rows, outlook, rng)
            if first:
                return Decision(
                    Start(first[0], outlook.first, {SCOUT: True}), Notes(reason=FirstDesign())
                )
        try:
            return self._modelled(history, rows, outlook, waiting, rng)
        except NumericalError as error:
            notes = Notes(degraded=f"the curve model failed ({error}); successive halving instead")
            return _scouted(history, by_fronts(history, rows), waiting, outlook, rng, notes)

    def _taught(self, history: History) -> Taught:
        """What past studies teach in the space of this one."""
        past = self.past if self.hint else None
        return taught_by(past, history.problem.space, self.shapes)

    def _first(self, history: History, outlook: Outlook) -> int:
        """How many configurations the first design has by now: a model of few points in many
        dimensions knows corners only."""
        if self.initial is not None:
            return self.initial
        space, budget = history.problem.space, history.problem.budget
        if isinstance(space, Pool):
            return FEW
        short = budget is None or outlook.first <= budget.minimum
        most = SHORT_DESIGN if short else DESIGN
        return FEW if outlook.share >= most else max(FEW, EACH * len(space))

    def forecast(
        self,
        history: History,
        trials: Sequence[int],
        steps: Sequence[float],
        rng: np.random.Generator,
    ) -> Mapping[int, Forecast]:
        """The lowest loss the model expects of each trial after each step, with two standard
        deviations either way."""
        rows = history.derive(CurveTable())
        if history.problem.trade_off is not None:
            space = encoding_of(history.problem.space)
            several = believe_front(history, rows, space, [], rng)
            if several is None:
                return {}
            of_all = set(several.trials.tolist())
            return {own: _forecast(several.first, own, steps) for own in trials if own in of_all}
        if history.best is None:
            return {}
        belief = believe(
            history, rows, encoding_of(history.problem.space), [], rng, self._taught(history)
        )
        if not belief.feasible:  # the first report that is was made between two levels
            return {}
        known = set(belief.curves.trial[belief.order].tolist())
        return {trial: _forecast(belief, trial, steps) for trial in trials if trial in known}

    def _modelled(
        self,
        history: History,
        rows: RowList,
        outlook: Outlook,
        waiting: list[Waiting],
        rng: np.random.Generator,
    ) -> Decision:
        if not _has_values(rows):
            return Decision(
                wait_or_finish(
                    history, "every configuration was tried, and nothing finite was reported"
                )
            )
        running = [(trial.id, trial.granted) for trial in history.with_status("running", "stale")]
        if history.problem.trade_off is not None:
            space = encoding_of(history.problem.space)
            several = believe_front(history, rows, space, running, rng)
            if several is not None:
                return GrowFront(history, rows, several, outlook, waiting).decide(self.race, rng)
        belief = believe(
            history, rows, encoding_of(history.problem.space), running, rng, self._taught(history)
        )
        spread = belief.target.cap - belief.target.low
        crowd = scouting_probability(np.array(list(rows.lowest.values())), spread)
        if outlook.add and crowd >= PLATEAU:
            still = stuck(rows, spread)
            waiting = [slice_ for slice_ in waiting if slice_[0] not in still]
        scouts = crowd
        if outlook.add and not belief.curves.listed:
            _, ends = belief.ending_targets
            scouts = max(crowd, copying_probability(belief.target.behind(ends)))
        if rng.random() < scouts:
            notes = Notes(reason=Scouted(scouts), curves=_new_fit(history, belief))
            return _scouted(history, rows, waiting, outlook, rng, notes)
        known = set(belief.curves.trial[belief.order].tolist())
        waiting = [slice_ for slice_ in waiting if slice_[0] in known]
        fresh = belief.unknown() if outlook.add else np.zeros(0, dtype=np.intp)
        if not waiting and not len(fresh):
            return Decision(
                wait_or_finish(history, "every configuration of the space was tried to its end")
            )
        early = [race(belief, rows, waiting, outlook.first)] if outlook.share < self.race else []
        for question in chain(early, later(history, belief, rows, waiting, outlook, rng)):
            answered, scores = _asked(belief, question, waiting, fresh, rng)
            if scores.score.max() >= question.hope:
                break
        return _best(history, outlook.first, answered, scores)


@lru_cache(maxsize=8)
def taught_by(past: PastKnowledge | None, space: Space, shapes: tuple[float, ...]) -> Taught:
    """Worked out once: the models of a past do not change."""
    hint = None if past is None else Hint.over(encoding_of(space), past)
    return Taught(shapes, hint)


def _designed(
    history: History, rows: RowList, outlook: Outlook, rng: np.random.Generator
) -> list[Config]:
    """The next configuration of the first design; where costs count, the cheapest of three, unless
    it is the user's guess."""
    if not outlook.by_cost:
        return first_configs(history, 1, 1, rng)
    encoding = encoding_of(history.problem.space)
    costs = UnitCosts.of(rows, StudyCurves.of(history, rows, encoding))
    count = 1 if costs is None else CHEAPEST_OF
    some = first_configs(history, count, count, rng)
    if costs is None or not some or some[0] == guess(history):
        return some[:1]
    return [some[int(np.argmin(costs.of_configs(encoding.encode(some))))]]


def _has_values(rows: RowList) -> bool:
    """Whether there is anything to learn from."""
    return bool(np.isfinite(rows.standing).any())


def _forecast(belief: CurveBelief, trial: int, steps: Sequence[float]) -> Forecast:
    who = np.full(len(steps), trial, dtype=np.intp)
    mean, deviation = belief.of_trials(who, np.asarray(steps, dtype=float))
    parts = [belief.target.backward(mean + width * deviation) for width in (0.0, -2.0, 2.0)]
    return Forecast(tuple(steps), *(tuple(part.tolist()) for part in parts))


def _asked(
    belief: CurveBelief,
    question: Question,
    waiting: list[Waiting],
    new: Places,
    rng: np.random.Generator,
) -> tuple[CurveBelief, Scores]:
    """The answers of paused trials and newcomers. In a space without a list the drawn newcomers are
    replaced by their nominee."""
    if len(new) and belief.newcomers.rows is None:
        best = nominee(belief, question, new, rng)
        belief, new = (
            replace(belief, newcomers=replace(belief.newcomers, x=best)),
            np.arange(len(best)),
        )
        steps = belief.newcomer_steps(best, question.step)
        unseen = belief.of_configs(best, steps)
    else:
        steps = belief.newcomer_steps(belief.newcomers.x[new], question.step)
        unseen = belief.of_newcomers(new, steps)
    paused = np.array([trial for trial, _, _ in waiting], dtype=np.intp)
    seen = belief.of_trials(paused, question.steps)
    mean, deviation = (np.concatenate(both) for both in zip(seen, unseen, strict=True))
    goals = np.concatenate([question.goals, np.full(len(new), question.goal)])
    score = question.formula(mean, deviation, goals)
    step = np.concatenate([question.steps, steps])
    if isinstance(question.asked, Gain):
        used = np.array([used for _, used, _ in waiting] + [0.0] * len(new))
        score = score - np.log(step - used)
        if question.costs is not None:
            own = question.costs.of_trials(paused)
            unseen_costs = question.costs.of_configs(belief.newcomers.x[new])
            score = score - np.concatenate([own, unseen_costs])
    return belief, Scores(score, mean, deviation, step, waiting, new, question.asked)


def _best(history: History, first: float, belief: CurveBelief, scores: Scores) -> Decision:
    """The best candidate's next slice, with what was believed of it and of its competitors."""
    order = np.argsort(-np.round(scores.score, 9), kind="stable")[:SHOWN]
    winner, *others = (_told(belief, scores, int(place)) for place in order)
    reason = Modelled(winner.score, winner.expected, tuple(others), question=scores.question)
    notes = Notes(reason=reason, curves=_new_fit(history, belief))
    place, count = int(order[0]), len(scores.waiting)
    if place < count:
        trial, _, end = scores.waiting[place]
        return Decision(Resume(trial, end), notes)
    config = belief.newcomers.config(int(scores.new[place - count]))
    return Decision(Start(config, first), notes)


def _told(belief: CurveBelief, scores: Scores, place: int) -> Rival:
    """Who a candidate is, its score, and its predicted lowest loss after its step with a band of
    two standard deviations, in six digits."""
    mean, deviation = scores.mean[place], scores.deviation[place]
    band = belief.target.backward(mean + deviation * np.array([0.0, -2.0, 2.0])).tolist()
    numbers = (scores.score[place], scores.step[place], *band)
    score, step, loss, low, high = (float(f"{number:.6g}") for number in numbers)
    known = belief.feasible and math.isfinite(loss)
    expected = Expected(loss, low, high, step) if known else None
    count = len(scores.waiting)
    if place < count:
        return Rival(score, trial=scores.waiting[place][0], expected=expected)
    return Rival(score, belief.newcomers.config(int(scores.new[place - count])), expected=expected)


def _new_fit(history: History, belief: CurveBelief) -> CurveFit | None:
    """What the next decision needs to know of this one's model; None where it knows."""
    return None if belief.record == history.notes.curves else belief.record


def _scouted(  # the parts of a decision without a model
    history: History,
    rows: RowList,
    waiting: list[Waiting],
    outlook: Outlook,
    rng: np.random.Generator,
    notes: Notes,
) -> Decision:
    """The next step of successive halving: among scouts, or among all where the model failed or
    nothing may be added."""
    chance = notes.reason.probability if isinstance(notes.reason, Scouted) else None
    scouts = None if notes.degraded or not outlook.add else rows.scouts
    best = promotion(rows, waiting, scouts)
    fresh = draw_fresh(history.derive(KNOWN), 1, rng) if outlook.add and best is None else []
    if fresh:
        sent = msgspec.structs.replace(notes, reason=Scouted(chance))
        return Decision(Start(fresh[0], outlook.first, {SCOUT: True}), sent)
    if best is None and waiting:
        best = min(waiting, key=lambda slice_: (rows.lowest.get(slice_[0], math.inf), slice_[0]))
    if best is None:
        return Decision(
            wait_or_finish(history, "every configuration of the space was tried"), notes
        )
    ahead = msgspec.structs.replace(notes, reason=AheadOfHalf(chance))
    return Decision(Resume(best[0], best[2]), ahead)
