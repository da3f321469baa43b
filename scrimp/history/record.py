"""A study and its trials as plain values: one record for `scrimp show --json`, exports and pages.

    study_record(history)          name, direction, metric, method, best, counts, spent, trials, ...
    trial_record(history, trial)   id, status, params, value, best, last, budget, curve, error

Flat rows, for tables and data frames, are in `scrimp.tuning.trial_table`.
"""

from typing import TypedDict

from scrimp.history.constraint_rules import constraint_table
from scrimp.history.history import History
from scrimp.history.trial import Trial
from scrimp.json_values import Config

__all__ = [
    "BestRecord",
    "StudyRecord",
    "TrialRecord",
    "best_record",
    "study_record",
    "trial_record",
]


class BestRecord(TypedDict):
    """The best trial: its number, what it was, its value, and at which budget."""

    trial: int
    params: Config
    value: float | None
    budget: float


class TrialRecord(TypedDict):
    """One trial; ``curve`` holds pairs of budget and value."""

    id: int
    status: str
    params: Config
    value: float | None
    best: float | None
    last: float | None
    budget: float
    curve: list[list[float | None]]
    error: str


class StudyRecord(TypedDict):
    """A study with all its trials; ``counts`` of trials by status, ``freed`` in bytes."""

    name: str
    direction: str
    metric: str
    method: str
    constraints: dict[str, dict[str, float]]
    best: BestRecord | None
    counts: dict[str, int]
    spent: float
    freed: int
    trials: list[TrialRecord]


def study_record(history: History) -> StudyRecord:
    """Where the study stands, with all its trials."""
    problem = history.problem
    return {
        "name": history.created.name,
        "direction": problem.direction,
        "metric": problem.metric,
        "method": str(history.method.get("name", "unknown")),
        "constraints": {name: constraint_table(rule) for name, rule in problem.constraints.items()},
        "best": best_record(history),
        "counts": {status: count for status, count in history.counts.items() if count},
        "spent": history.spent,
        "freed": history.freed,
        "trials": [trial_record(history, trial) for trial in history.trials],
    }


def best_record(history: History) -> BestRecord | None:
    """The best trial; None before there is one."""
    if history.best is None:
        return None
    trial, point = history.best
    value = history.problem.value(point.loss)
    return {"trial": trial.id, "params": trial.config, "value": value, "budget": point.step}


def trial_record(history: History, trial: Trial) -> TrialRecord:
    """One trial with its curve of [budget, value]; ``value`` is the ``last``, and ``error`` why it failed."""
    return {
        "id": trial.id,
        "status": trial.status,
        "params": trial.config,
        "value": trial.value,
        "best": trial.best,
        "last": trial.value,
        "budget": trial.budget,
        "curve": [[point.step, history.problem.value(point.loss)] for point in trial.curve],
        "error": trial.message if trial.status in ("failed", "stale") else "",
    }
