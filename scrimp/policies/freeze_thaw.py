"""Freeze-thaw: every decision asks which configuration, half trained or new, should get the next slice of training.

1. A few first configurations at the lowest budget.
2. A Gaussian process over all learning curves (`scrimp.surrogates.curve_gp`) predicts every candidate: paused trials, and a
   pool of new configurations. Slices grow by a factor of 1.6.
3. Early, the candidate wins whose *next level* has the largest expected improvement over the best value at that level (Wistuba,
   Kadra, Grabocka, Supervising the Multi-Fidelity Race of Hyperparameter Configurations, 2022). Later a horizon h and a
   threshold T are drawn at random for each decision, and the candidate wins that is most likely to be below T after h further
   steps (Rakotoarison et al., In-Context Freeze-Thaw Bayesian Optimization for Hyperparameter Optimization, 2024).
4. Running slices count as if they had come out as predicted.
5. Where many trials share the best value, some decisions are left to random scouts (`scrimp.policies.scouting`).

    create_study(..., budget=Budget("epoch", 1, 81), method="freeze-thaw")
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.improvement import log_expected_improvement
from scrimp.errors import MethodError, NumericalError
from scrimp.history.history import History
from scrimp.policies.curve_rows import SCOUT, CurveTable, RowList, Waiting
from scrimp.policies.freeze_thaw_model import NOTE, Belief, believe
from scrimp.policies.freeze_thaw_outlook import Outlook
from scrimp.policies.policy import Decision, Forecast, Policy, Resume, Start
from scrimp.policies.scouting import promotion, scouting_probability
from scrimp.schedulers.ending import wait_or_finish
from scrimp.suggesters.bayesian import encoding_of
from scrimp.suggesters.first_design import first_configs
from scrimp.suggesters.known import KNOWN
from scrimp.suggesters.random import draw_fresh

__all__ = ["FreezeThaw"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]
SHOWN = 4  # candidates a decision tells of: the winner and its competitors


@dataclass(frozen=True)
class Candidates:
    """Paused trials: ids, what they have used, where their next slice ends (m,) each; and places of newcomers (k,)."""

    trials: Places
    used: Array
    slices: Array
    new: Places


@dataclass(frozen=True)
class Scores:
    """Of all candidates, paused trials first: scores (larger is better) and what they rest on."""

    score: Array
    mean: Array
    deviation: Array
    step: Array
    reasons: dict[str, Any]


@dataclass(frozen=True)
class FreezeThaw(Policy):
    """``initial``: configurations before the model decides; ``race``: share of the budget decided by the next level alone."""

    initial: int = 4
    race: float = 0.15

    def __post_init__(self) -> None:
        if self.initial < 1:
            raise MethodError(f"initial is {self.initial}; at least one configuration comes before the model")
        if not 0.0 <= self.race <= 1.0:
            raise MethodError(f"race is {self.race}; it is a share of the budget, between 0 and 1")

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """The next slice."""
        rows = history.derive(CurveTable())
        outlook = Outlook.of(history, rows)
        waiting = [
            (trial, *slice_) for trial, slice_ in rows.waiting.items() if slice_[1] - slice_[0] <= outlook.resume
        ]
        if not outlook.add and not waiting:
            return Decision(wait_or_finish(history, "no further configuration may be added and no slice is left"))
        if outlook.add and (len(history.trials) < self.initial or not _has_values(rows)):
            first = first_configs(history, 1, 1, rng)
            if first:
                return Decision(Start(first[0], rows.levels[0], {SCOUT: True}, reason="first design"))
        try:
            return self._modelled(history, rows, outlook, waiting, rng)
        except NumericalError as error:
            notes = {"degraded": f"the curve model failed ({error}); successive halving instead"}
            return _scouted(history, rows, waiting, outlook.add, rng, notes)

    def forecast(
        self, history: History, trials: Sequence[int], steps: Sequence[float], rng: np.random.Generator
    ) -> Mapping[int, Forecast]:
        """The lowest loss the model expects of each trial after each step, with two standard deviations either way."""
        rows = history.derive(CurveTable())
        if not _has_values(rows):
            return {}
        belief = believe(history, rows, encoding_of(history.problem.space), [], rng)
        known = set(belief.curves.trial[belief.order].tolist())
        return {trial: _forecast(belief, trial, steps) for trial in trials if trial in known}

    def _modelled(
        self, history: History, rows: RowList, outlook: Outlook, waiting: list[Waiting], rng: np.random.Generator
    ) -> Decision:
        if not _has_values(rows):
            return Decision(wait_or_finish(history, "every configuration was tried, and nothing finite was reported"))
        running = [(trial.id, trial.granted) for trial in history.with_status("running", "stale")]
        belief = believe(history, rows, encoding_of(history.problem.space), running, rng)
        crowd = scouting_probability(np.array(list(rows.lowest.values())), belief.target.cap - belief.target.low)
        if rng.random() < crowd:
            notes = {"phase": "scout", "probability": crowd, **_noted(history, belief)}
            return _scouted(history, rows, waiting, outlook.add, rng, notes)
        trials = np.array([trial for trial, _, _ in waiting], dtype=np.intp)
        known = np.isin(trials, belief.curves.trial[belief.order])
        slices = np.array([slice_[1:] for slice_ in waiting], dtype=float).reshape(-1, 2)[known]
        fresh = belief.unknown() if outlook.add else np.zeros(0, dtype=np.intp)
        candidates = Candidates(trials[known], slices[:, 0], slices[:, 1], fresh)
        if not len(candidates.trials) and not len(fresh):
            return Decision(wait_or_finish(history, "every configuration of the space was tried to its end"))
        if outlook.share < self.race:
            scores = _race(belief, rows, candidates)
        else:
            scores = _horizon(history, belief, rows, candidates, outlook, rng)
        return _best(history, rows, belief, candidates, scores)


def _has_values(rows: RowList) -> bool:
    """Whether there is anything to learn from."""
    return bool(np.isfinite(rows.loss).any())


def _forecast(belief: Belief, trial: int, steps: Sequence[float]) -> Forecast:
    who = np.full(len(steps), trial, dtype=np.intp)
    mean, deviation = belief.of_trials(who, np.asarray(steps, dtype=float))
    parts = [belief.target.backward(mean + width * deviation) for width in (0.0, -2.0, 2.0)]
    return Forecast(tuple(steps), *(tuple(part.tolist()) for part in parts))


def _race(belief: Belief, rows: RowList, candidates: Candidates) -> Scores:
    """log EI at the next level, against the best at that level, or at lower ones where nobody has reached it."""
    best = _best_by_level(belief, rows)
    mean, deviation = _predicted(belief, candidates, candidates.slices, rows.levels[0])
    place = np.searchsorted(rows.levels, candidates.slices)
    incumbent = np.concatenate([best[place], np.full(len(candidates.new), best[0])])
    score = log_expected_improvement(mean, deviation, incumbent)
    step = np.concatenate([candidates.slices, np.full(len(candidates.new), rows.levels[0])])
    return Scores(score, mean, deviation, step, {"phase": "race"})


def _predicted(belief: Belief, candidates: Candidates, steps: Array, step: float) -> tuple[Array, Array]:
    """Mean and standard deviation of paused trials after ``steps`` (m,) and of newcomers after ``step``, in one."""
    mean, deviation = belief.of_trials(candidates.trials, steps)
    new_mean, new_deviation = belief.of_newcomers(step)
    places = candidates.new
    return np.concatenate([mean, new_mean[places]]), np.concatenate([deviation, new_deviation[places]])


def _best_by_level(belief: Belief, rows: RowList) -> Array:
    """The lowest target at each level; where there is none, that of lower levels, or of all."""
    levels = np.array(rows.levels)
    place = np.maximum(np.searchsorted(levels, belief.curves.step[belief.order] * (1.0 + 1e-9), side="right") - 1, 0)
    best = np.full(len(levels), np.inf)
    np.minimum.at(best, place, belief.z)
    lower = np.minimum.accumulate(best)
    best = np.where(np.isfinite(best), best, lower)
    return np.where(np.isfinite(best), best, belief.z.min())


def _horizon(
    history: History,
    belief: Belief,
    rows: RowList,
    candidates: Candidates,
    outlook: Outlook,
    rng: np.random.Generator,
) -> Scores:
    """P(curve below T after h further steps) for one random h and T, as its normal quantile."""
    full, unit = rows.levels[-1], rows.levels[0]
    most = max(int(min(full, outlook.each) / unit), 1)
    horizon = unit * int(rng.integers(1, most + 1))
    margin = 10.0 ** rng.uniform(-4.0, -1.0)
    seen = history.best
    lowest = belief.target.low if seen is None or seen[1].loss is None else seen[1].loss
    threshold = float(belief.target.forward(np.array([lowest]))[0]) - 2.0 * margin
    levels = np.array(rows.levels)
    steps, step = np.minimum(candidates.used + horizon, full), float(levels[np.abs(np.log(levels / horizon)).argmin()])
    mean, deviation = _predicted(belief, candidates, steps, step)
    aim = float(f"{belief.target.backward(np.array([threshold]))[0]:.6g}")
    reasons = {"phase": "horizon", "horizon": horizon, "threshold": aim}
    steps = np.concatenate([steps, np.full(len(candidates.new), step)])
    return Scores((threshold - mean) / deviation, mean, deviation, steps, reasons)


def _best(history: History, rows: RowList, belief: Belief, candidates: Candidates, scores: Scores) -> Decision:
    """The best candidate's next slice, with what was believed of it and of its competitors."""
    order = np.argsort(-np.round(scores.score, 9), kind="stable")[:SHOWN]
    shown = [_told(belief, candidates, scores, int(place)) for place in order]
    told = {"believed": shown[0], "acquisition": shown[0]["score"], "competitors": shown[1:]}
    notes = {**scores.reasons, **told, **_noted(history, belief)}
    place, count, reason = int(order[0]), len(candidates.trials), _reason(scores.reasons)
    if place < count:
        return Decision(Resume(int(candidates.trials[place]), float(candidates.slices[place]), reason), notes)
    config = belief.newcomers.config(int(candidates.new[place - count]))
    return Decision(Start(config, rows.levels[0], reason=reason), notes)


def _reason(reasons: Mapping[str, Any]) -> str:
    if reasons["phase"] == "race":
        return "the largest expected improvement at its next level"
    return f"most likely to be below {reasons['threshold']:.4g} after {reasons['horizon']:g} further steps"


def _told(belief: Belief, candidates: Candidates, scores: Scores, place: int) -> dict[str, Any]:
    """Who a candidate is, its score, and its predicted lowest loss after ``step`` with a band of two standard deviations."""
    mean, deviation = scores.mean[place], scores.deviation[place]
    loss, low, high = belief.target.backward(mean + deviation * np.array([0.0, -2.0, 2.0])).tolist()
    numbers = {"score": scores.score[place], "step": scores.step[place], "loss": loss, "low": low, "high": high}
    told = {name: float(f"{number:.6g}") for name, number in numbers.items()}
    count = len(candidates.trials)
    if place < count:
        return {"trial": int(candidates.trials[place]), **told}
    return {"config": belief.newcomers.config(int(candidates.new[place - count])), **told}


def _noted(history: History, belief: Belief) -> dict[str, Any]:
    """What the next decision needs to know of this one's model."""
    return {} if belief.record == history.note(NOTE) else {NOTE: dict(belief.record)}


def _scouted(  # the parts of a decision without a model
    history: History,
    rows: RowList,
    waiting: list[Waiting],
    add: bool,
    rng: np.random.Generator,
    notes: dict[str, Any],
) -> Decision:
    """The next step of successive halving: among scouts, or among all where the model failed or nothing may be added."""
    scouts = None if "degraded" in notes or not add else rows.scouts
    best = promotion(rows, waiting, scouts)
    fresh = draw_fresh(history.derive(KNOWN), 1, rng) if add and best is None else []
    if fresh:
        return Decision(Start(fresh[0], rows.levels[0], {SCOUT: True}, reason="a random scout"), notes)
    if best is None and waiting:
        best = min(waiting, key=lambda slice_: (rows.lowest.get(slice_[0], math.inf), slice_[0]))
    if best is None:
        return Decision(wait_or_finish(history, "every configuration of the space was tried"), notes)
    return Decision(Resume(best[0], best[2], "in the better half of its level"), notes)
