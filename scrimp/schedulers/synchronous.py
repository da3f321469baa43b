"""Synchronous successive halving and Hyperband, in which workers never wait.

A rung is compared when all of its slots have a result; the best go on with three times the budget.
While a bracket waits for its last results, free workers fill the next bracket. Hyperband runs
through brackets that begin at higher and higher levels; successive halving repeats the first.

    SynchronousHalving()                              # successive halving
    # Hyperband: as many brackets as there are levels
    SynchronousHalving(brackets=None)

Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter
optimization", 2016. Li, Jamieson, DeSalvo, Rostamizadeh and Talwalkar, "Hyperband: a novel
bandit-based approach", 2018.
"""

from dataclasses import dataclass

import numpy as np

from scrimp.errors import MethodError
from scrimp.history.history import History
from scrimp.history.notes import InBracket
from scrimp.history.problem import Problem
from scrimp.schedulers.brackets import BracketTable, Shape
from scrimp.schedulers.rungs import Levels, halving_levels, synchronous_sizes
from scrimp.schedulers.scheduler import Request, Resume, Sample, Scheduler, Verdict
from scrimp.schedulers.study_end import wait_or_finish

__all__ = ["SynchronousHalving"]


@dataclass(frozen=True)
class SynchronousHalving(Scheduler):
    """Brackets in turn, ``brackets`` of them (None: one per level); one trial in ``reduction`` goes
    on.

    ``rounding`` of the sizes of rungs: up, or down as Hyperband is published.
    """

    brackets: int | None = 1
    reduction: float = 3
    rounding: str = "up"

    def __post_init__(self) -> None:
        if self.brackets is not None and self.brackets < 1:
            raise MethodError(
                f"brackets is {self.brackets}; it must be at least 1, or None for one per level"
            )
        if not self.reduction > 1:
            raise MethodError(
                f"reduction is {self.reduction}; it must be above 1: 3 lets one trial in three"
                " go on"
            )
        if self.rounding not in ("up", "down"):
            raise MethodError(f"rounding is {self.rounding!r}; it must be 'up' or 'down'")

    def levels(self, problem: Problem) -> Levels:
        """The rungs and the full budget."""
        return halving_levels(problem.budget, self.reduction)

    def shapes(self, problem: Problem) -> tuple[Shape, ...]:
        """The rungs of each bracket as (size, level)."""
        return synchronous_sizes(self.levels(problem), self.reduction, self.rounding)[
            : self.brackets
        ]

    def next_request(self, history: History, rng: np.random.Generator) -> Request:
        """The oldest bracket that has work, else a new one."""
        del rng
        shapes = self.shapes(history.problem)
        job = history.derive(BracketTable(shapes)).job()
        if job is None:
            return wait_or_finish(
                history, "no further configuration may be added and none can be promoted"
            )
        reason = InBracket(job.bracket, job.level)
        if job.trial is not None:
            return Resume(job.trial, job.level, reason)
        return Sample(job.level, job.bracket % len(shapes), {"bracket": job.bracket}, reason)

    def may_resume(self, history: History, trial: int) -> bool:
        """As long as its rung is not decided."""
        return history.derive(BracketTable(self.shapes(history.problem))).may_resume(
            history.trials[trial]
        )

    def review(self, history: History, trial: int) -> Verdict:
        """Always on: trials pause by themselves at the end of their grant."""
        del history, trial
        return Verdict.CONTINUE
