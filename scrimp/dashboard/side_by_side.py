"""Chosen trials of one study beside each other: parameters, results and metrics, row by row."""

from collections.abc import Sequence
from dataclasses import dataclass

from scrimp.history.history import History
from scrimp.history.trial import Trial
from scrimp.plots.metrics import reported_metrics

__all__ = ["MOST", "CompareRow", "compare_rows"]

MOST = 20
"""Trials beside each other at most."""


@dataclass(frozen=True)
class CompareRow:
    """One line: what it is about, a value for each trial, and which of them are the best."""

    label: str
    values: tuple[object, ...]
    good: frozenset[int] = frozenset()

    @property
    def differs(self) -> bool:
        """Whether the trials are not all alike here."""
        return len({repr(value) for value in self.values}) > 1


def compare_rows(history: History, trials: Sequence[Trial]) -> list[CompareRow]:
    """Results first, then every parameter that one of them has, then every other metric."""
    problem = history.problem
    rows = [
        CompareRow("status", tuple(trial.status for trial in trials)),
        *_results(history, trials),
        CompareRow("budget", tuple(trial.budget for trial in trials)),
    ]
    names = [name for name in problem.space if any(name in trial.config for trial in trials)]
    rows += [CompareRow(name, tuple(trial.config.get(name) for trial in trials)) for name in names]
    for name in reported_metrics(history):
        if name not in problem.metrics:
            rows.append(CompareRow(f"{name}, last", _last(trials, name)))
    return rows


def _results(history: History, trials: Sequence[Trial]) -> list[CompareRow]:
    """The best and the last value; with several metrics who is on the front, and the last of each."""
    problem = history.problem
    if problem.trade_off is None:
        best = tuple(trial.best for trial in trials)
        return [
            CompareRow(f"best {problem.metric}", best, _leaders(best, problem.sign)),
            CompareRow(f"last {problem.metric}", tuple(trial.value for trial in trials)),
        ]
    front = {trial.id for trial, _ in history.front}
    rows = [CompareRow("on the front", tuple(("no", "yes")[trial.id in front] for trial in trials))]
    for name, way in problem.metrics.items():
        given = _last(trials, name)
        good = _leaders(given, 1.0 if way == "minimize" else -1.0)
        rows.append(CompareRow(f"{name}, last", given, good))
    return rows


def _leaders(values: Sequence[float | None], sign: float) -> frozenset[int]:
    """Where the best values stand, of two that are known at least."""
    known = [sign * value for value in values if value is not None]
    return frozenset(
        place
        for place, value in enumerate(values)
        if value is not None and len(known) > 1 and sign * value == min(known)
    )


def _last(trials: Sequence[Trial], name: str) -> tuple[float | None, ...]:
    """What each reported last of a metric."""
    return tuple(None if trial.last is None else trial.last.metrics.get(name) for trial in trials)
