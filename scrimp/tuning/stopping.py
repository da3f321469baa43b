"""When to stop: rules over a history, combined with ``|`` (either) and ``&`` (both).

study.optimize(objective, until=TargetReached(0.02) | (NoImprovement(20) & Seconds(600)))
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from scrimp.checks import is_number, is_positive
from scrimp.errors import StudyError
from scrimp.history.events import Event, Reported
from scrimp.history.history import Fold, History
from scrimp.history.problem import Problem
from scrimp.history.trial import Trial

__all__ = ["NoImprovement", "Seconds", "StopRule", "TargetReached", "Trials"]


class StopRule(ABC):
    """Says whether enough was done. ``now`` is the stopwatch, ``began`` what it said when this run
    began."""

    @abstractmethod
    def satisfied(self, history: History, now: float, began: float) -> bool:
        """Whether no further decision is needed."""

    def __or__(self, other: "StopRule") -> "StopRule":
        return _Either(self, other) if isinstance(other, StopRule) else NotImplemented

    def __and__(self, other: "StopRule") -> "StopRule":
        return _Both(self, other) if isinstance(other, StopRule) else NotImplemented


@dataclass(frozen=True)
class _Either(StopRule):
    first: StopRule
    second: StopRule

    def satisfied(self, history: History, now: float, began: float) -> bool:
        return self.first.satisfied(history, now, began) or self.second.satisfied(
            history, now, began
        )


@dataclass(frozen=True)
class _Both(StopRule):
    first: StopRule
    second: StopRule

    def satisfied(self, history: History, now: float, began: float) -> bool:
        return self.first.satisfied(history, now, began) and self.second.satisfied(
            history, now, began
        )


@dataclass(frozen=True)
class Trials(StopRule):
    """After this many trials have finished, failed ones included."""

    count: int

    def __post_init__(self) -> None:
        _positive("Trials", self.count)

    def satisfied(self, history: History, now: float, began: float) -> bool:
        """Whether that many are completed, stopped or failed."""
        del now, began
        counts = history.counts
        return counts["completed"] + counts["stopped"] + counts["failed"] >= self.count


@dataclass(frozen=True)
class Seconds(StopRule):
    """After this much time in the present run."""

    limit: float

    def __post_init__(self) -> None:
        _positive("Seconds", self.limit)

    def satisfied(self, history: History, now: float, began: float) -> bool:
        """Whether the time is over."""
        del history
        return now - began >= self.limit


@dataclass(frozen=True)
class TargetReached(StopRule):
    """Once a value at least as good as this was reported, in the study's direction."""

    value: float

    def __post_init__(self) -> None:
        if not is_number(self.value) or math.isnan(self.value):
            raise StudyError(f"TargetReached takes a number; got {self.value!r}")

    def satisfied(self, history: History, now: float, began: float) -> bool:
        """Whether the best report is as good as the target."""
        del now, began
        best = history.best
        target = history.problem.sign * self.value
        return best is not None and best[1].loss is not None and best[1].loss <= target


@dataclass(frozen=True)
class NoImprovement(StopRule):
    """Once this many trials have finished since the best value last improved by more than
    ``least``."""

    trials: int
    least: float = 0.0

    def __post_init__(self) -> None:
        _positive("NoImprovement", self.trials)

    def satisfied(self, history: History, now: float, began: float) -> bool:
        """Whether the best has stood still for that long."""
        del now, began
        return history.derive(_Standstill(self.least)).finished_since >= self.trials


@dataclass
class _Still:
    best: float | None = None
    finished_since: int = 0


@dataclass(frozen=True)
class _Standstill(Fold[_Still]):
    """How many trials finished since the best loss improved."""

    least: float

    def begin(self, problem: Problem) -> _Still:
        del problem
        return _Still()

    def step(self, state: _Still, event: Event, before: Trial | None, trial: Trial | None) -> None:
        if trial is None:
            return
        if isinstance(event, Reported) and trial is not before:
            last = trial.last
            loss = trial.loss if last is not None and last.feasible else None
            if loss is not None and (state.best is None or loss < state.best - self.least):
                state.best, state.finished_since = loss, -1 if trial.finished else 0
        if trial.finished and before is not None and not before.finished:
            state.finished_since += 1


def _positive(rule: str, number: float) -> None:
    if not is_positive(number):
        raise StudyError(f"{rule} takes a positive number; got {number!r}")
