"""Freeze-thaw: every decision asks which configuration, half trained or new, should get the next slice of training.

1. A few first configurations at the lowest budget.
2. A Gaussian process over all learning curves (`scrimp.surrogates.curve_gp`) predicts every candidate: paused trials, and a
   pool of new configurations. Slices grow by doubling.
3. Early, the candidate wins whose *next level* has the largest expected improvement over the best value at that level (Wistuba,
   Kadra, Grabocka, Supervising the Multi-Fidelity Race of Hyperparameter Configurations, 2022). Later a horizon h and a
   threshold T are drawn at random for each decision, and the candidate wins that is most likely to be below T after h further
   steps (Rakotoarison et al., In-Context Freeze-Thaw Bayesian Optimization for Hyperparameter Optimization, 2024).
4. Running slices count as if they had come out as predicted.

    create_study(..., budget=Budget("epoch", 1, 81), method="freeze-thaw")
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.improvement import log_expected_improvement
from scrimp.errors import MethodError, NumericalError
from scrimp.history.history import History
from scrimp.history.trial import Trial
from scrimp.policies.curve_rows import CurveTable, RowList
from scrimp.policies.freeze_thaw_model import NOTE, Belief, believe
from scrimp.policies.freeze_thaw_outlook import Outlook
from scrimp.policies.policy import Decision, Policy, Resume, Start
from scrimp.schedulers.ending import wait_or_finish
from scrimp.suggesters.bayesian import encoding_of
from scrimp.suggesters.first_design import first_configs
from scrimp.suggesters.known import KNOWN
from scrimp.suggesters.random import draw_fresh

__all__ = ["FreezeThaw"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    """The candidates of one decision: paused trials first, then new configurations; larger scores are better."""

    trials: list[Trial]
    slices: list[float]  # where each paused trial would go
    score: Array
    mean: Array
    deviation: Array
    new: NDArray[np.intp]  # places among the newcomers
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
        paused = [
            trial
            for trial in history.with_status("paused")
            if trial.id in rows.last and trial.id not in rows.dead and trial.budget < history.problem.full_budget
        ]
        paused = [trial for trial in paused if next_level(rows, trial) - trial.budget <= outlook.resume]
        if not outlook.add and not paused:
            return Decision(wait_or_finish(history, "no further configuration may be added and no slice is left"))
        usable = any(np.isfinite(loss) for loss in rows.loss)
        if outlook.add and (len(history.trials) < self.initial or not usable):
            first = first_configs(history, 1, 1, rng)
            if first:
                return Decision(Start(first[0], rows.levels[0], reason="first design"))
        try:
            return self._modelled(history, rows, outlook, paused, rng)
        except NumericalError as error:
            return _without_model(history, rows, paused, outlook, (rng, str(error)))

    def _modelled(
        self, history: History, rows: RowList, outlook: Outlook, paused: list[Trial], rng: np.random.Generator
    ) -> Decision:
        if not any(np.isfinite(loss) for loss in rows.loss):
            return Decision(wait_or_finish(history, "every configuration was tried, and nothing finite was reported"))
        running = [(trial.id, trial.granted) for trial in history.with_status("running", "stale")]
        belief = believe(history, rows, encoding_of(history.problem.space), running, rng)
        known = set(belief.curves.trial[belief.order].tolist())
        paused = [trial for trial in paused if trial.id in known]
        fresh = belief.unknown() if outlook.add else np.zeros(0, dtype=np.intp)
        if not paused and not len(fresh):
            return Decision(wait_or_finish(history, "every configuration of the space was tried to its end"))
        if outlook.share < self.race:
            scores = _race(belief, rows, paused, fresh)
        else:
            scores = _horizon(history, belief, rows, (paused, fresh), outlook, rng)
        return _best(history, rows, belief, scores)


def next_level(rows: RowList, trial: Trial) -> float:
    """Where the next slice of a paused trial ends."""
    reached = max(trial.budget, trial.granted)
    return next((level for level in rows.levels if level > reached * (1.0 + 1e-9)), rows.levels[-1])


def _race(belief: Belief, rows: RowList, paused: list[Trial], fresh: NDArray[np.intp]) -> Scores:
    """log EI at the next level, against the best at that level, or at lower ones where nobody has reached it."""
    slices = [next_level(rows, trial) for trial in paused]
    best = _best_by_level(belief, rows)
    ids = np.array([trial.id for trial in paused], dtype=np.intp)
    mean, deviation = belief.of_trials(ids, np.array(slices))
    incumbent = np.array([best[rows.levels.index(level)] for level in slices])
    new_mean, new_deviation = (part[fresh] for part in belief.of_newcomers(rows.levels[0]))
    mean, deviation = np.concatenate([mean, new_mean]), np.concatenate([deviation, new_deviation])
    incumbent = np.concatenate([incumbent, np.full(len(fresh), best[0])])
    score = log_expected_improvement(mean, deviation, incumbent)
    return Scores(paused, slices, score, mean, deviation, fresh, {"phase": "race"})


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
    candidates: tuple[list[Trial], NDArray[np.intp]],
    outlook: Outlook,
    rng: np.random.Generator,
) -> Scores:
    """P(curve below T after h further steps) for one random h and T, as its normal quantile."""
    paused, fresh = candidates
    full, unit = rows.levels[-1], rows.levels[0]
    most = max(int(min(full, outlook.each) / unit), 1)
    horizon = unit * int(rng.integers(1, most + 1))
    margin = 10.0 ** rng.uniform(-4.0, -1.0)
    seen = history.best
    lowest = belief.target.low if seen is None or seen[1].loss is None else seen[1].loss
    threshold = float(belief.target.forward(np.array([lowest]))[0]) - 2.0 * margin
    slices = [next_level(rows, trial) for trial in paused]
    ids = np.array([trial.id for trial in paused], dtype=np.intp)
    steps = np.minimum(np.array([trial.budget for trial in paused]) + horizon, full)
    mean, deviation = belief.of_trials(ids, steps)
    levels = np.array(rows.levels)
    snapped = float(levels[np.argmin(np.abs(np.log(levels / horizon)))])
    new_mean, new_deviation = (part[fresh] for part in belief.of_newcomers(snapped))
    mean, deviation = np.concatenate([mean, new_mean]), np.concatenate([deviation, new_deviation])
    reasons = {"phase": "horizon", "horizon": horizon, "threshold": threshold}
    return Scores(paused, slices, (threshold - mean) / deviation, mean, deviation, fresh, reasons)


def _best(history: History, rows: RowList, belief: Belief, scores: Scores) -> Decision:
    """The best candidate's next slice, with what was believed of it and of its competitors."""
    order = np.argsort(-np.round(scores.score, 9), kind="stable")[:4]
    place, count = int(order[0]), len(scores.trials)
    notes: dict[str, Any] = {**scores.reasons}
    if belief.record != history.note(NOTE):
        notes[NOTE] = dict(belief.record)
    if place < count:
        trial = scores.trials[place]
        return Decision(Resume(trial.id, scores.slices[place], reason=notes["phase"]), notes)
    config = belief.newcomers.config(int(scores.new[place - count]))
    return Decision(Start(config, rows.levels[0], reason=notes["phase"]), notes)


def _without_model(
    history: History, rows: RowList, paused: list[Trial], outlook: Outlook, why: tuple[np.random.Generator, str]
) -> Decision:
    """Successive halving over the same levels: the best of the highest level whose better half has somebody waiting."""
    rng, error = why
    notes = {"degraded": f"the curve model failed ({error}); successive halving instead"}
    by_level: dict[float, list[tuple[float, int]]] = {}
    for trial in paused:
        by_level.setdefault(next_level(rows, trial), []).append((float(trial.loss or 0.0), trial.id))
    for level in sorted(by_level, reverse=True):
        place = rows.levels.index(level) - 1
        there = sorted(loss for loss, step in zip(rows.loss, rows.step, strict=True) if step >= rows.levels[place])
        loss, trial_id = min(by_level[level])
        if loss <= there[(len(there) - 1) // 2] or not outlook.add:
            return Decision(Resume(trial_id, level, reason="in the better half"), notes)
    fresh = draw_fresh(history.derive(KNOWN), 1, rng) if outlook.add else []
    if fresh:
        return Decision(Start(fresh[0], rows.levels[0], reason="nobody waits in the better half"), notes)
    return Decision(wait_or_finish(history, "every configuration of the space was tried"), notes)
