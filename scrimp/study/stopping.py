"""Stop rules: conditions on a history, combined with ``|`` (either) and ``&`` (both).

study.optimize(objective, stop=TargetReached(0.02) | (NoImprovement(20) & MaxSeconds(600)))
study.optimize(objective, n_trials=200, stop=LittleLeft(0.002))
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from scrimp.acquisition.gain_left import UNKNOWN_GAIN, GainLeft
from scrimp.checks import is_number, is_positive
from scrimp.errors import NumericalError, StudyError
from scrimp.methods.policy import Policy
from scrimp.study.decisions import policy_of
from scrimp.study_log.events import Ended, Event, Reported, Retried, StudyChanged
from scrimp.study_log.fold import Fold
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.standings import Front, with_report
from scrimp.study_log.trial import Trial
from scrimp.threads import one_thread

LEFT_TO_GAIN = "left to gain"
"""The attribute of a study that says where it stands by its stop rule."""


class StopRule(ABC):
    """A condition that ends a run. ``now`` is the time on the stopwatch, ``began`` the time when
    this run began."""

    @abstractmethod
    def satisfied(self, history: History, now: float, began: float) -> bool:
        """True if no further decision is needed."""

    def bound_to(self, policy: Policy) -> "StopRule":
        """Return the rule for a run of this policy; by default, self."""
        return self

    def words(self, history: History) -> str:
        """Return where the study stands by this rule, for the live display; "" by default."""
        return ""

    def __or__(self, other: "StopRule") -> "StopRule":
        return _Combined(any, (self, other)) if isinstance(other, StopRule) else NotImplemented

    def __and__(self, other: "StopRule") -> "StopRule":
        return _Combined(all, (self, other)) if isinstance(other, StopRule) else NotImplemented


@dataclass(frozen=True)
class _Combined(StopRule):
    """Two rules, of which ``any`` or ``all`` must be satisfied."""

    quantifier: Callable[[Iterable[bool]], bool]
    rules: tuple[StopRule, ...]

    def bound_to(self, policy: Policy) -> StopRule:
        return replace(self, rules=tuple(rule.bound_to(policy) for rule in self.rules))

    def words(self, history: History) -> str:
        return "; ".join(filter(None, (rule.words(history) for rule in self.rules)))

    def satisfied(self, history: History, now: float, began: float) -> bool:
        return self.quantifier(rule.satisfied(history, now, began) for rule in self.rules)


@dataclass(frozen=True)
class MaxTrials(StopRule):
    """Stop after this many trials have finished, failed ones included."""

    count: int

    def __post_init__(self) -> None:
        _positive("MaxTrials", self.count)

    def satisfied(self, history: History, now: float, began: float) -> bool:
        return sum(history.counts[end] for end in ("completed", "stopped", "failed")) >= self.count


@dataclass(frozen=True)
class MaxSeconds(StopRule):
    """Stop after this many seconds of the current run."""

    limit: float

    def __post_init__(self) -> None:
        _positive("MaxSeconds", self.limit)

    def satisfied(self, history: History, now: float, began: float) -> bool:
        return now - began >= self.limit


@dataclass(frozen=True)
class TargetReached(StopRule):
    """Stop once a value at least as good as this is reported, in the study's direction.

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
        metric, metrics = history.problem.metric, history.problem.metrics
        wanted = self.value if isinstance(self.value, Mapping) else {metric: self.value}
        if not wanted.keys() <= metrics.keys() or (len(metrics) > 1 and wanted is not self.value):
            raise StudyError(
                f"TargetReached({self.value!r}) does not fit the study's metrics,"
                f" {', '.join(metrics)}; give TargetReached({{{metric!r}: ...}}) by name"
            )

        def reached(value: float | None, name: str) -> bool:
            sign = 1.0 if metrics[name] == "minimize" else -1.0
            return value is not None and sign * value <= sign * wanted[name]

        points = [point.metrics for _, point in history.front]
        return any(all(reached(point.get(name), name) for name in wanted) for point in points)


@dataclass(frozen=True)
class NoImprovement(StopRule):
    """Stop once this many trials have finished since the best value last improved by more than
    ``least``; with several metrics, since the front last changed."""

    trials: int
    least: float = 0.0

    def __post_init__(self) -> None:
        _positive("NoImprovement", self.trials)

    def satisfied(self, history: History, now: float, began: float) -> bool:
        if self.least and history.problem.several:
            raise StudyError(
                f"NoImprovement(least={self.least!r}) is for one metric; with several metrics, leave"
                " least out: any change of the front counts"
            )
        return history.derive(_Standstill(self.least)).finished_since >= self.trials


@dataclass
class _Still:
    best: float | None = None
    front: Front = field(default_factory=list)
    finished_since: int = 0


@dataclass(frozen=True)
class _Standstill(Fold[_Still]):
    """Counts the trials that finished since the best loss improved."""

    least: float

    def begin(self, problem: Problem) -> _Still:
        return _Still()

    def step(self, state: _Still, event: Event, before: Trial | None, trial: Trial | None) -> None:
        if trial is None:
            return
        if isinstance(event, Reported) and trial is not before and self._improved(state, trial):
            state.finished_since = -1 if trial.finished else 0
        if trial.finished and before is not None and not before.finished:
            state.finished_since += 1

    def _improved(self, state: _Still, trial: Trial) -> bool:
        """True if the newest report is better than all before, or joins the front."""
        last = trial.last
        if last is None or last.loss is None or not last.feasible:
            return False
        if last.counted is not None and len(last.counted) > 1:
            before, state.front = state.front, with_report(state.front, last, trial.id)
            return state.front is not before
        if state.best is not None and last.loss >= state.best - self.least:
            return False
        state.best = last.loss
        return True


@dataclass(frozen=True)
class LittleLeft(StopRule):
    """Stop once the method's model expects the rest of the study to improve the best value by less
    than ``gain``, in the units of the metric (`scrimp.acquisition.gain_left` has the formula).

    The rest is what ``n_trials`` or ``total_budget`` leave, or any number of trials without them.
    With ``per_cost``: stop once no trial is expected to improve the best value by ``gain`` for each
    unit that it costs: of the study's cost, or else of its training budget, or else one per trial.

    The gain is computed whenever a worker is free and something was reported, for studies of one
    metric by a ``gp`` method or freeze-thaw. It has to be too little ``patience`` times in a row: a
    single model may be wrong.
    """

    gain: float
    per_cost: bool = False
    patience: int = 5
    policy: Policy | None = None

    def __post_init__(self) -> None:
        _positive("LittleLeft", self.gain)
        _positive("LittleLeft(patience=...)", self.patience)

    def bound_to(self, policy: Policy) -> StopRule:
        return replace(self, policy=policy)

    def satisfied(self, history: History, now: float, began: float) -> bool:
        stated = history.derive(_StatedGain(self.gain, self.per_cost))
        if stated.left is None:
            stated.left = self.left(history)
            value = stated.left.per_cost if self.per_cost else stated.left.expected
            stated.times_below = stated.times_below + 1 if value < self.gain else 0
        return stated.times_below >= self.patience

    def words(self, history: History) -> str:
        """Return the gain left as it was computed last, and the limit."""
        left = history.derive(_StatedGain(self.gain, self.per_cost)).left
        if left is None or not math.isfinite(left.expected):
            return ""
        if self.per_cost:
            return f"{left.per_cost:.3g} per unit of cost expected; ends below {self.gain:g}"
        return f"{left.expected:.3g} expected to gain; ends below {self.gain:g}"

    def left(self, history: History) -> GainLeft:
        """Return the gain that is left; infinite while nothing is known."""
        if history.problem.several:
            raise StudyError(
                "LittleLeft is for one metric; with several use scrimp.NoImprovement(20), which ends a"
                " study when its front has not moved"
            )
        policy = self.policy or policy_of(history)
        try:
            with one_thread():
                left = policy.gain_left(history, history.rng("gain left"))
        except NumericalError:
            return UNKNOWN_GAIN
        if left is None:
            raise StudyError(
                f"LittleLeft needs a model of what is left to gain, and method"
                f" {history.method.get('name')!r} has none; use 'gp' or 'freeze-thaw', or another rule"
                " such as scrimp.NoImprovement(20)"
            )
        return left


@dataclass
class _Stated:
    """The gain left as computed last, None after a report, and how often it was too little."""

    left: GainLeft | None = None
    times_below: int = 0


@dataclass(frozen=True)
class _StatedGain(Fold[_Stated]):
    """Forgets the gain left when a report or another limit comes."""

    gain: float
    per_cost: bool

    def begin(self, problem: Problem) -> _Stated:
        return _Stated()

    def step(self, state: _Stated, event: Event, before: Trial | None, trial: Trial | None) -> None:
        if isinstance(event, Reported | Ended | StudyChanged | Retried):
            state.left = None


def _positive(rule: str, number: float) -> None:
    if not is_positive(number):
        raise StudyError(f"{rule} takes a positive number; got {number!r}")
