"""The contract of schedulers, the rules for the end of a study, and the simplest scheduler.

A scheduler requests a new configuration (`Sample`), grants more budget to a paused trial (`Resume`),
or says that there is nothing to do until a trial reports (`Wait`) or at all (`Finish`). After each
report it may end the trial (`Verdict.STOP`). It grants budget up to a rung; a trial that has used up
its grant is paused, so promotion needs no further command. A scheduler never chooses a
configuration; it is a frozen value, and a function of the history.

*The end of a study*: ``n_trials`` counts configurations added, failed ones included. After that only
promotions are granted, and the study ends when none is possible and nothing runs. A stale trial
counts as running, because the loop resumes it before it requests more.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from scrimp.json_values import Json
from scrimp.study_log.decision_record import Grant
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem


@dataclass(frozen=True)
class Sample:
    """Start a new configuration with this first budget; ``reason`` explains the budget. In a
    ``tag``, the names ``bracket`` and ``slot`` are reserved: whole numbers that place a trial."""

    budget: float
    bracket: int = 0
    tag: Mapping[str, Json] = field(default_factory=dict)
    reason: Grant | str = ""


@dataclass(frozen=True)
class Resume:
    """Continue a paused trial up to ``budget`` (cumulative); ``reason`` explains the budget."""

    trial: int
    budget: float
    reason: Grant | str = ""


@dataclass(frozen=True)
class Wait:
    """Nothing to do until a running trial reports."""

    reason: str = ""


@dataclass(frozen=True)
class Finish:
    """Nothing left to do."""

    reason: str = ""


Request = Sample | Resume | Wait | Finish


class Verdict(Enum):
    """The consequence of a report for its trial."""

    CONTINUE = "continue"
    STOP = "stop"


class Scheduler(ABC):
    """Decides the budgets of trials."""

    def levels(self, problem: Problem) -> tuple[float, ...]:
        """Return the budgets at which trials are compared, the full one last."""
        return (problem.full_budget,)

    @abstractmethod
    def next_request(self, history: History, rng: np.random.Generator) -> Request:
        """Return the next task of a free worker. Never `Wait` if nothing is running."""

    def may_resume(self, history: History, trial: int) -> bool:
        """True if this paused trial may ever be resumed, in a study that may still grow; otherwise its
        checkpoints are removed."""
        return True

    def review(self, history: History, trial: int) -> Verdict:
        """Decide whether this trial continues, as of its latest report; by default, it does."""
        return Verdict.CONTINUE


NONE_LEFT = "no further configuration may be added and none can be promoted"
ALL_TRIED = "every configuration of the space was tried"


def may_add(history: History) -> bool:
    """True if another configuration may be added to the study."""
    limit = history.totals.n_trials
    return limit is None or len(history.trials) < limit


def trials_left(history: History) -> float:
    """Return the number of full trainings that the limits of the study still allow, infinite without
    a limit on trials or on the budget."""
    totals, left = history.totals, math.inf
    if totals.n_trials is not None:
        left = max(totals.n_trials - len(history.trials), 0)
    if totals.budget is not None:
        left = min(left, max(totals.budget - history.spent, 0.0) / history.problem.full_budget)
    return left


def in_flight(history: History) -> int:
    """Return the number of trials that are running, or stale and about to be resumed."""
    counts = history.counts
    return counts["running"] + counts["stale"]


def wait_or_finish(history: History, reason: str) -> Wait | Finish:
    """Return `Wait` while something runs, else `Finish`."""
    return Wait(reason) if in_flight(history) else Finish(reason)


@dataclass(frozen=True)
class RunToEnd(Scheduler):
    """Every trial gets the full budget at once."""

    def next_request(self, history: History, rng: np.random.Generator) -> Request:
        if may_add(history):
            return Sample(history.problem.full_budget)
        return wait_or_finish(history, "no further configuration may be added")
