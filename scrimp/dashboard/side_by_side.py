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
    best = tuple(trial.best for trial in trials)
    known = [problem.sign * value for value in best if value is not None]
    good = frozenset(
        place
        for place, value in enumerate(best)
        if value is not None and len(known) > 1 and problem.sign * value == min(known)
    )
    rows = [
        CompareRow("status", tuple(trial.status for trial in trials)),
        CompareRow(f"best {problem.metric}", best, good),
        CompareRow(f"last {problem.metric}", tuple(trial.value for trial in trials)),
        CompareRow("budget", tuple(trial.budget for trial in trials)),
    ]
    names = [name for name in problem.space if any(name in trial.config for trial in trials)]
    rows += [CompareRow(name, tuple(trial.config.get(name) for trial in trials)) for name in names]
    for name in reported_metrics(history):
        if name != problem.metric:
            given = tuple(
                None if trial.last is None else trial.last.metrics.get(name) for trial in trials
            )
            rows.append(CompareRow(f"{name}, last", given))
    return rows
