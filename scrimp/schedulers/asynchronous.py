"""Asynchronous successive halving (ASHA) and Hyperband: workers never wait for each other.

By *promotion* (the default) a trial pauses at every rung. A free worker continues the best paused
trial within the cutoff, from the highest rung down, or starts a new configuration. By *stopping* a
trial is granted the full budget at once, and ends at the first rung where its loss is beyond the
cutoff. The cutoff at rung j is the r_j / r_{j+1} quantile of all losses there, promoted ones included.
A single loss cannot be compared: by promotion it stays, by stopping it continues.

With ``brackets`` above 1 a new trial of bracket s starts at the s-th level (asynchronous Hyperband);
all brackets share one set of rungs. With ``bracket_rule`` "in-turn" each has its own rungs, and its
turn until it has spent (s_max + 1) R, as many full trainings as there are levels. Visit v belongs to
bracket v mod S and lasts until that bracket has spent v // S + 1 such shares.

    AsynchronousHalving(type="stopping", brackets=4)

Li et al., "A system for massively parallel hyperparameter tuning", 2020; Li et al., "Hyperband", 2018.
Stopping: Golovin et al., "Google Vizier", 2017, and Klein et al., "Model-based asynchronous
hyperparameter and neural architecture search", 2020.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from scrimp.errors import MethodError
from scrimp.plugins.settings import (
    SEVERAL_OR_NONE,
    AnyOf,
    above,
    at_least,
    check_settings,
    choices,
    setting,
)
from scrimp.schedulers.rungs import (
    Levels,
    Rungs,
    RungTable,
    bracket_law,
    draw_bracket,
    halving_levels,
    promotion_quantiles,
)
from scrimp.schedulers.scheduler import (
    NONE_LEFT,
    Request,
    Resume,
    Sample,
    Scheduler,
    Verdict,
    may_add,
    wait_or_finish,
)
from scrimp.study_log.decision_record import InBracket, Promoted
from scrimp.study_log.events import Event
from scrimp.study_log.fold import Fold
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Trial


@dataclass(frozen=True)
class _BracketSpending(Fold[dict[int, float]]):
    """The budget that the trials of each bracket have used or been granted."""

    def begin(self, problem: Problem) -> dict[int, float]:
        return {}

    def step(
        self, state: dict[int, float], event: Event, before: Trial | None, trial: Trial | None
    ) -> None:
        if trial is not None and trial is not before:
            bracket = trial.bracket or 0
            change = _used(trial) - (0.0 if before is None else _used(before))
            state[bracket] = state.get(bracket, 0.0) + change


BRACKET_SPENDING = _BracketSpending()


def _used(trial: Trial) -> float:
    return trial.budget if trial.finished else max(trial.granted, trial.budget)


def turn_of(spent: Mapping[int, float], brackets: int, share: float) -> int:
    """Return the bracket that has its turn.

    >>> [turn_of(spent, 2, 10.0) for spent in ({}, {0: 10.0}, {0: 10.0, 1: 9.0}, {0: 10.0, 1: 11.0})]
    [0, 1, 1, 0]
    """
    visits = [spent.get(bracket, 0.0) // share for bracket in range(brackets)]
    return visits.index(min(visits))


@dataclass(frozen=True)
class AsynchronousHalving(Scheduler):
    """ASHA; with more than one of ``brackets`` asynchronous Hyperband.

    ``type`` is promotion or stopping; ``brackets`` None means one per level. Rungs grow by the
    factor ``reduction``, or by ``increment`` when that is given. ``cutoff`` of promotions:
    ``quantile`` as above; ``top``, the best floor(n / reduction) of the n trials at a rung, as ASHA
    is published; ``delayed``: the same while fewer than that were promoted, the D-ASHA of
    Hyper-Tune (Li et al., 2022), which does not promote another trial only because a better one
    came late. ``full_rungs``: no trial is promoted from a rung r_j with fewer than R / r_j trials,
    as in the code of Hyper-Tune. ``bracket_rule``: a new trial's bracket is drawn at ``random``, or
    brackets take turns, ``in-turn``, each with its own rungs, as asynchronous Hyperband is
    published.
    """

    type: str = setting("promotion", choices("promotion", "stopping"))
    brackets: int | None = setting(1, at_least(1), "none is one per level")
    reduction: float = setting(
        3,
        above(1),
        "3 lets one trial in three continue",
        only_with=AnyOf((("increment", (None,)), ("cutoff", ("top", "delayed")))),
    )
    increment: float | None = setting(None, above(0), "it is the distance between rungs")
    cutoff: str = setting("quantile", choices("quantile", "top", "delayed"), paper=True)
    full_rungs: bool = setting(False, paper=True, only_with=("type", ("promotion",)))
    bracket_rule: str = setting(
        "random",
        choices("random", "in-turn"),
        paper=True,
        only_with=("brackets", SEVERAL_OR_NONE),
    )

    def __post_init__(self) -> None:
        check_settings(self)
        if self.cutoff != "quantile" and self.type == "stopping":
            raise MethodError(
                f"cutoff {self.cutoff!r} is a rule of promotion; use type='promotion', or"
                " cutoff='quantile'"
            )

    def levels(self, problem: Problem) -> Levels:
        return halving_levels(problem.budget, self.reduction, self.increment)

    def rungs(self, history: History, bracket: int = 0) -> Rungs:
        """Return the rungs; those of ``bracket`` if each has its own."""
        levels = self.levels(history.problem)
        plain = self.cutoff == "quantile"
        shares = promotion_quantiles(levels) if plain else (1 / self.reduction,) * (len(levels) - 1)
        fewest = [math.ceil(levels[-1] / level - 1e-9) for level in levels[:-1]]
        table = RungTable(
            levels,
            shares,
            rule=self.cutoff,
            fewest=tuple(fewest) if self.full_rungs else (),
            bracket=bracket if self._in_turn else None,
        )
        return history.derive(table)

    @property
    def _in_turn(self) -> bool:
        return self.bracket_rule == "in-turn"

    def law(self, problem: Problem) -> tuple[float, ...]:
        """Return the probability of each bracket."""
        levels = self.levels(problem)
        return bracket_law(levels, self.brackets or len(levels))

    def promotion(self, history: History, bracket: int = 0) -> Resume | None:
        """Return the next promotion, if any; of ``bracket`` if brackets take turns."""
        if self.type == "stopping":
            return None
        found = self.rungs(history, bracket).promotable()
        if found is None:
            return None
        trial, index = found
        levels = self.levels(history.problem)
        return Resume(trial, levels[index], Promoted(levels[index - 1]))

    def start(self, problem: Problem, bracket: int) -> Sample:
        """Request a new trial of ``bracket``."""
        levels = self.levels(problem)
        budget = levels[bracket] if self.type == "promotion" else levels[-1]
        return Sample(budget, bracket, {"bracket": bracket} if bracket else {}, InBracket(bracket))

    def next_request(self, history: History, rng: np.random.Generator) -> Request:
        """Promote the best trial that may be promoted, else start a new one."""
        law = self.law(history.problem)
        bracket = draw_bracket(law, rng.random()) if len(law) > 1 else 0
        others: list[int] = []
        if self._in_turn:
            levels, spent = self.levels(history.problem), history.derive(BRACKET_SPENDING)
            bracket = turn_of(spent, len(law), len(levels) * levels[-1])
            # Once nothing may be added, turns no longer end, and every bracket is finished.
            others = [] if may_add(history) else [s for s in range(len(law)) if s != bracket]
        for one in (bracket, *others):
            if (resume := self.promotion(history, one)) is not None:
                return resume
        if may_add(history):
            return self.start(history.problem, bracket)
        return wait_or_finish(history, NONE_LEFT)

    def review(self, history: History, trial: int) -> Verdict:
        if self.type != "stopping":
            return Verdict.CONTINUE
        bracket = history.trials[trial].bracket or 0
        stop = self.rungs(history, bracket).stops(trial)
        return Verdict.STOP if stop else Verdict.CONTINUE
