"""A study and its trials as plain values: one record for `scrimp show --json`, exports and pages.

    study_record(history)          name, direction, metric, method, best, counts, spent, trials, ...
    trial_record(history, trial)   id, status, params, value, best, last, budget, curve, error

Flat rows, for tables and data frames, are in `scrimp.tuning.trial_table`.
"""

from typing import Any

from scrimp.history.constraint_rules import constraint_table
from scrimp.history.history import History
from scrimp.history.trial import Trial

__all__ = ["best_record", "study_record", "trial_record"]


def study_record(history: History) -> dict[str, Any]:
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


def best_record(history: History) -> dict[str, Any] | None:
    """The best trial; None before there is one."""
    if history.best is None:
        return None
    trial, point = history.best
    value = history.problem.value(point.loss)
    return {"trial": trial.id, "params": trial.config, "value": value, "budget": point.step}


def trial_record(history: History, trial: Trial) -> dict[str, Any]:
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
