"""All trials of a study as a table, one row each, under the same names in data frames and exports.

``id``, ``status``, ``value`` (= ``last``), ``best``, ``last``, ``budget``; parameters as
``params_<name>``, the metrics of the last report as ``metrics_<name>``; ``feasible`` (whether all
constraints held in the last report), ``cost``, ``seconds`` (of training, without pauses),
``started``, ``ended``, ``worker``, ``message``, ``note``, and attributes as ``attrs_<name>``.
"""

from collections import defaultdict
from typing import TYPE_CHECKING

from scrimp.errors import StudyError
from scrimp.history.events import BudgetGranted, Ended, Lost, Reported
from scrimp.history.history import History
from scrimp.history.trial import Trial
from scrimp.json_values import Json

if TYPE_CHECKING:
    import pandas

__all__ = ["COLUMNS", "running_seconds", "trial_frame", "trial_rows"]

COLUMNS = ("id", "status", "value", "best", "last", "budget")
"""What every table begins with."""


def trial_rows(history: History) -> list[dict[str, Json]]:
    """One flat row per trial, all with the same columns; None where a trial lacks one."""
    reports = (trial.last.metrics for trial in history.trials if trial.last is not None)
    metrics = dict.fromkeys(name for report in reports for name in report)
    attributes = dict.fromkeys(name for trial in history.trials for name in trial.user_attrs)
    seconds = running_seconds(history)
    found = []
    for trial in history.trials:
        last = {} if trial.last is None else trial.last.metrics
        row = dict(zip(COLUMNS, _values(trial), strict=True))
        row |= {f"params_{name}": trial.config.get(name) for name in history.problem.space}
        row |= {f"metrics_{name}": last.get(name) for name in metrics}
        row |= {
            "feasible": None if trial.last is None else trial.last.feasible,
            "cost": trial.cost,
            "seconds": seconds.get(trial.id),
            "started": trial.started,
            "ended": trial.ended,
            "worker": trial.worker,
            "message": trial.message,
            "note": trial.note,
        }
        row |= {f"attrs_{name}": trial.user_attrs.get(name) for name in attributes}
        found.append(row)
    return found


def _values(trial: Trial) -> tuple[Json, ...]:
    return trial.id, trial.status, trial.value, trial.best, trial.value, trial.budget


def running_seconds(history: History) -> dict[int, float]:
    """How long each trial has run: from every grant to its last sign of life, pauses left out."""
    since: dict[int, tuple[int, float]] = {}  # attempt and the time it was last heard of
    spent: dict[int, float] = defaultdict(float)
    for event in history.events:
        if isinstance(event, BudgetGranted):
            since[event.trial] = event.attempt, event.time
        elif isinstance(event, Reported | Ended | Lost) and event.trial in since:
            attempt, heard = since[event.trial]
            if event.attempt == attempt:
                spent[event.trial] += max(event.time - heard, 0.0)
                since[event.trial] = attempt, max(event.time, heard)
    return dict(spent)


def trial_frame(history: History) -> "pandas.DataFrame":
    """A pandas DataFrame of `trial_rows`, with times as timestamps in UTC."""
    try:
        import pandas
    except ImportError:
        raise StudyError(
            "dataframe needs pandas, which is not installed; pip install pandas"
        ) from None
    frame = pandas.DataFrame(trial_rows(history))
    for name in ("started", "ended"):
        if name in frame:
            frame[name] = pandas.to_datetime(frame[name].astype(float), unit="s", utc=True)
    return frame
