"""Asynchronous successive halving (ASHA) and Hyperband: nobody waits for anybody.

By *promotion* (the default) a trial pauses at every rung. A free worker looks from the highest rung
down for the best paused trial within the cutoff and lets it go on; where there is none it starts a
new configuration. By *stopping* a trial is granted the full budget at once, and ends at the first
rung where its loss is beyond the cutoff. The cutoff at rung j is the r_j / r_{j+1} quantile of all
losses seen there, promoted ones included; a single loss cannot be compared, so by promotion it
stays and by stopping it goes on.

With ``brackets`` above 1 a new trial of bracket s starts at the s-th level (asynchronous
Hyperband); all brackets share one set of rungs. The bracket is drawn before anything else, so a
decision always uses the generator alike. With ``bracket_rule`` "in-turn" each bracket is an ASHA of
its own instead, with rungs of its own, and has the turn until it has spent as much as a bracket of
synchronous Hyperband may.

    AsynchronousHalving(type="stopping", brackets=4)

Li, Jamieson, Rostamizadeh, Gonina, Ben-tzur, Hardt, Recht and Talwalkar, "A system for massively
parallel hyperparameter tuning", 2020. Stopping: Golovin et al., "Google Vizier", 2017, and Klein et
al., "Model-based asynchronous hyperparameter and neural architecture search", 2020.
"""

import math
from dataclasses import dataclass

import numpy as np

from scrimp.errors import MethodError
from scrimp.history.history import History
from scrimp.history.notes import InBracket, Promoted
from scrimp.history.problem import Problem
from scrimp.schedulers.bracket_turns import BRACKET_SPENDING, turn_of
from scrimp.schedulers.rung_table import Rungs, RungTable
from scrimp.schedulers.rungs import (
    Levels,
    bracket_law,
    draw_bracket,
    halving_levels,
    promotion_quantiles,
)
from scrimp.schedulers.scheduler import Request, Resume, Sample, Scheduler, Verdict
from scrimp.schedulers.study_end import may_add, wait_or_finish

__all__ = ["AsynchronousHalving"]

CUTOFFS = ("quantile", "top", "delayed")
BRACKET_RULES = ("random", "in-turn")


@dataclass(frozen=True)
class AsynchronousHalving(Scheduler):
    """ASHA; with more than one of ``brackets`` asynchronous Hyperband.

    ``type`` is promotion or stopping; ``brackets`` None means one per level. Rungs grow by the
    factor ``reduction``, or by ``increment`` when that is given. ``cutoff`` of promotions:
    ``quantile`` as above; ``top``, the best floor(n / reduction) of the n trials at a rung, as ASHA
    is published; ``delayed``: the same while fewer than that have gone on, the D-ASHA of Hyper-Tune
    (Li et al., 2022), which does not promote another trial only because a better one came late.
    ``full_rungs``: no trial goes on from a rung r_j that holds fewer than R / r_j, as in the code
    of Hyper-Tune. ``bracket_rule``: a new trial's bracket is drawn at ``random``, or brackets have
    their turns, ``in-turn``, each with rungs of its own, as asynchronous Hyperband is published.
    """

    type: str = "promotion"
    brackets: int | None = 1
    reduction: float = 3
    increment: float | None = None
    cutoff: str = "quantile"
    full_rungs: bool = False
    bracket_rule: str = "random"

    def __post_init__(self) -> None:
        if self.bracket_rule not in BRACKET_RULES:
            raise MethodError(
                f"bracket_rule is {self.bracket_rule!r}; it must be one of"
                f" {', '.join(BRACKET_RULES)}"
            )
        if self.type not in ("promotion", "stopping"):
            raise MethodError(f"type is {self.type!r}; it must be 'promotion' or 'stopping'")
        if self.cutoff not in CUTOFFS:
            raise MethodError(f"cutoff is {self.cutoff!r}; it must be one of {', '.join(CUTOFFS)}")
        if self.cutoff != "quantile" and self.type == "stopping":
            raise MethodError(
                f"cutoff {self.cutoff!r} is a rule of promotion; use type='promotion', or"
                " cutoff='quantile'"
            )
        if self.brackets is not None and self.brackets < 1:
            raise MethodError(
                f"brackets is {self.brackets}; it must be at least 1, or None for one per level"
            )
        if not self.reduction > 1:
            raise MethodError(
                f"reduction is {self.reduction}; it must be above 1: 3 lets one trial in three"
                " go on"
            )

    def levels(self, problem: Problem) -> Levels:
        """The rungs and the full budget."""
        return halving_levels(problem.budget, self.reduction, self.increment)

    def rungs(self, history: History, bracket: int = 0) -> Rungs:
        """Who stands where; in ``bracket``, where brackets have rungs of their own."""
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
        """The probability of each bracket."""
        levels = self.levels(problem)
        return bracket_law(levels, self.brackets or len(levels))

    def promotion(self, history: History, bracket: int = 0) -> Resume | None:
        """The paused trial that goes on next, if any; of ``bracket``, where brackets have their
        turns."""
        if self.type == "stopping":
            return None
        found = self.rungs(history, bracket).promotable()
        if found is None:
            return None
        trial, index = found
        levels = self.levels(history.problem)
        return Resume(trial, levels[index], Promoted(levels[index - 1]))

    def start(self, problem: Problem, bracket: int) -> Sample:
        """A new trial of ``bracket``."""
        levels = self.levels(problem)
        budget = levels[bracket] if self.type == "promotion" else levels[-1]
        return Sample(budget, bracket, {"bracket": bracket} if bracket else {}, InBracket(bracket))

    def next_request(self, history: History, rng: np.random.Generator) -> Request:
        """Promote the best trial that may go on, else start a new one in a bracket drawn at
        random, or in the one that has the turn."""
        law = self.law(history.problem)
        bracket = draw_bracket(law, rng.random()) if len(law) > 1 else 0
        others: list[int] = []
        if self._in_turn:
            levels, spent = self.levels(history.problem), history.derive(BRACKET_SPENDING)
            bracket = turn_of(spent, len(law), len(levels) * levels[-1])
            # once nothing may be added, nobody's turn comes to an end, and every bracket is finished
            others = [] if may_add(history) else [s for s in range(len(law)) if s != bracket]
        for one in (bracket, *others):
            if (resume := self.promotion(history, one)) is not None:
                return resume
        if may_add(history):
            return self.start(history.problem, bracket)
        return wait_or_finish(
            history, "no further configuration may be added and none can be promoted"
        )

    def review(self, history: History, trial: int) -> Verdict:
        """By stopping: end a trial that was beyond the cutoff at its newest rung."""
        if self.type != "stopping":
            return Verdict.CONTINUE
        bracket = history.trials[trial].bracket or 0
        stop = self.rungs(history, bracket).stops(trial)
        return Verdict.STOP if stop else Verdict.CONTINUE
