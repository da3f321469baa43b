"""A study and its trials as plain values: one record for `scrimp show --json`, exports and pages.

    study_record(history)          name, direction, metric, method, best, counts, spent, trials, ...
    front_record(history)          with several metrics: trial, params, values, budget of each report
    trial_record(history, trial)   id, status, params, value, best, last, budget, curve, error

Flat rows, for tables and data frames, are in `scrimp.tuning.trial_table`.
"""

from typing import NotRequired, TypedDict

from scrimp.history.compromise import hypervolume_of, reference_of
from scrimp.history.constraint_rules import constraint_table
from scrimp.history.history import History
from scrimp.history.trade_off import Direction
from scrimp.history.trial import Observation, Trial
from scrimp.json_values import Config

__all__ = [
    "BestRecord",
    "FrontRecord",
    "StudyRecord",
    "TrialRecord",
    "best_record",
    "front_record",
    "study_record",
    "trial_record",
]


class BestRecord(TypedDict):
    """The best trial: its number, what it was, its value, and at which budget."""

    trial: int
    params: Config
    value: float | None
    budget: float


class FrontRecord(TypedDict):
    """One report of a front."""

    trial: int
    params: Config
    values: dict[str, float | None]
    budget: float


class TrialRecord(TypedDict):
    """One trial; ``curve`` holds pairs of budget and value, ``values`` the last of every metric."""

    id: int
    status: str
    params: Config
    value: float | None
    best: float | None
    last: float | None
    budget: float
    curve: list[list[float | None]]
    error: str
    values: NotRequired[dict[str, float | None]]


class SeveralRecord(TypedDict, total=False):
    """What a study of several metrics has beside: ``reference`` is what its ``hypervolume`` is
    measured from."""

    metrics: dict[str, Direction]
    reference: dict[str, float]
    goals: dict[str, float]
    weights: dict[str, float]
    front: list[FrontRecord]
    hypervolume: float


class StudyRecord(SeveralRecord):
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
        **_several(history),
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


def _several(history: History) -> SeveralRecord:
    """What a study of several metrics has beside; nothing of any other."""
    trade_off = history.problem.trade_off
    if trade_off is None:
        return {}
    found = bool(history.front)
    return {
        "metrics": dict(trade_off.metrics),
        "reference": trade_off.values(reference_of(history))
        if found
        else dict(trade_off.reference),
        "goals": dict(trade_off.goals),
        "weights": dict(trade_off.weights),
        "front": front_record(history),
        "hypervolume": hypervolume_of(history) if found else 0.0,
    }


def front_record(history: History) -> list[FrontRecord]:
    """The front, by the first metric."""
    return [
        {
            "trial": trial.id,
            "params": trial.config,
            "values": _values(history, point),
            "budget": point.step,
        }
        for trial, point in history.front
    ]


def _values(history: History, point: Observation | None) -> dict[str, float | None]:
    """The study's metrics in a report; None where one is missing."""
    metrics = {} if point is None else point.metrics
    return {name: metrics.get(name) for name in history.problem.metrics}


def trial_record(history: History, trial: Trial) -> TrialRecord:
    """One trial with its curve of [budget, value]; ``value`` is the ``last``, and ``error`` why it failed.

    With several metrics these are of the first, and ``values`` has the last of each.
    """
    record: TrialRecord = {
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
    if history.problem.trade_off is not None:
        record["values"] = _values(history, trial.last)
    return record
