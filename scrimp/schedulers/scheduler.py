"""The contract of schedulers: how much budget, and for whom.

A scheduler asks for a new configuration (`Sample`), or grants more budget to a paused one
(`Resume`), or says that there is nothing to do until something reports (`Wait`) or ever again
(`Finish`). After each report it may end the trial (`Verdict.STOP`). It grants budget up to a rung;
a trial that has used up its grant is paused, so promotion needs no further command. It never sees
an array and never chooses a configuration; it is a frozen value, and a function of the history.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from scrimp.history.history import History
from scrimp.history.notes import Grant
from scrimp.history.problem import Problem
from scrimp.json_values import Json

__all__ = ["Finish", "Request", "Resume", "Sample", "Scheduler", "Verdict", "Wait"]


@dataclass(frozen=True)
class Sample:
    """Start a new configuration with this first budget; ``reason``: why this much.

    Of a ``tag``, ``bracket`` and ``slot`` are scrimp's: whole numbers that place a trial. Other
    names are yours.
    """

    budget: float
    bracket: int = 0
    tag: Mapping[str, Json] = field(default_factory=dict)
    reason: Grant | str = ""


@dataclass(frozen=True)
class Resume:
    """Let a paused trial go on until ``budget`` (cumulative); ``reason``: why this much."""

    trial: int
    budget: float
    reason: Grant | str = ""


@dataclass(frozen=True)
class Wait:
    """Nothing to do until something running reports."""

    reason: str = ""


@dataclass(frozen=True)
class Finish:
    """Nothing left to do, ever."""

    reason: str = ""


Request = Sample | Resume | Wait | Finish


class Verdict(Enum):
    """What a report means for its trial."""

    CONTINUE = "continue"
    STOP = "stop"


class Scheduler(ABC):
    """Decides how much."""

    def levels(self, problem: Problem) -> tuple[float, ...]:
        """The budgets at which trials are compared, the full budget last: what a model of budgets
        looks at."""
        return (problem.full_budget,)

    @abstractmethod
    def next_request(self, history: History, rng: np.random.Generator) -> Request:
        """What a free worker should do. Never `Wait` when nothing is running."""

    def may_resume(self, history: History, trial: int) -> bool:
        """Whether this paused trial may ever go on, in a study that may still grow; if not, its
        checkpoints are removed."""
        del history, trial
        return True

    @abstractmethod
    def review(self, history: History, trial: int) -> Verdict:
        """Whether this trial goes on, judged at its newest report's place in the log."""
