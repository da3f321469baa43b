"""When to stop: rules over a history, combined with ``|`` (either) and ``&`` (both).

study.optimize(objective, until=TargetReached(0.02) | (NoImprovement(20) & Seconds(600)))
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from scrimp.checks import is_number, is_positive
from scrimp.errors import StudyError
from scrimp.history.events import Event, Reported
from scrimp.history.history import Fold, History
from scrimp.history.problem import Problem
from scrimp.history.standings import Front, with_report
from scrimp.history.trial import Observation, Trial

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
    """Once a value at least as good as this was reported, in the study's direction.

    With several metrics it takes values by name, and one report must reach them all:
    ``TargetReached({"val_error": 0.1, "latency_ms": 20})``.
    """

    value: float | Mapping[str, float]

    def __post_init__(self) -> None:
        values = self.value.values() if isinstance(self.value, Mapping) else [self.value]
        if not values or not all(is_number(value) and not math.isnan(value) for value in values):
            raise StudyError(
                f"TargetReached takes a number, or with several metrics numbers by name; got"
                f" {self.value!r}"
            )

    def satisfied(self, history: History, now: float, began: float) -> bool:
        """Whether the best report is as good as the target."""
        del now, began
        problem = history.problem
        metrics = problem.metrics
        wanted = self.value if isinstance(self.value, Mapping) else {problem.metric: self.value}
        if not wanted.keys() <= metrics.keys() or (len(metrics) > 1 and wanted is not self.value):
            raise StudyError(
                f"TargetReached({self.value!r}) does not fit the study's metrics,"
                f" {', '.join(metrics)}; give TargetReached({{{problem.metric!r}: ...}}) by name"
            )
        return any(_reaches(point, wanted, metrics) for _, point in history.front)


def _reaches(point: Observation, wanted: Mapping[str, float], metrics: Mapping[str, str]) -> bool:
    """Whether a report is as good as wanted in each of these metrics."""
    for name, target in wanted.items():
        value = point.metrics.get(name)
        sign = 1.0 if metrics[name] == "minimize" else -1.0
        if value is None or sign * value > sign * target:
            return False
    return True


@dataclass(frozen=True)
class NoImprovement(StopRule):
    """Once this many trials have finished since the best value last improved by more than
    ``least``; with several metrics, since the front last changed."""

    trials: int
    least: float = 0.0

    def __post_init__(self) -> None:
        _positive("NoImprovement", self.trials)

    def satisfied(self, history: History, now: float, began: float) -> bool:
        """Whether the best has stood still for that long."""
        del now, began
        if self.least and history.problem.trade_off is not None:
            raise StudyError(
                f"NoImprovement(least={self.least!r}) is for one metric; with several the front"
                " changes or stands still: leave least out"
            )
        return history.derive(_Standstill(self.least)).finished_since >= self.trials


@dataclass
class _Still:
    best: float | None = None
    front: Front = field(default_factory=list)
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
        if isinstance(event, Reported) and trial is not before and self._improved(state, trial):
            state.finished_since = -1 if trial.finished else 0
        if trial.finished and before is not None and not before.finished:
            state.finished_since += 1

    def _improved(self, state: _Still, trial: Trial) -> bool:
        """Whether the newest report is better than all before, or joins the front."""
        last = trial.last
        if last is None or last.loss is None or not last.feasible:
            return False
        if last.losses is not None:
            before, state.front = state.front, with_report(state.front, last, trial.id)
            return state.front is not before
        if state.best is not None and last.loss >= state.best - self.least:
            return False
        state.best = last.loss
        return True


def _positive(rule: str, number: float) -> None:
    if not is_positive(number):
        raise StudyError(f"{rule} takes a positive number; got {number!r}")
