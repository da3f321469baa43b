"""An event of every kind, with values that storages might spoil: for the battery and for tests."""

from scrimp.history import events as happened
from scrimp.history.events import (
    BudgetGranted,
    Ended,
    Enqueued,
    Event,
    Noted,
    Reported,
    TrialAdded,
)
from scrimp.history.limits import Totals
from scrimp.history.notes import Notes

__all__ = ["EVERY_KIND"]


EVERY_KIND: list[Event] = [
    happened.StudyChanged(totals=Totals(n_trials=30), time=1.5),
    happened.SourceAttached(study="ältere Studie 'x'; --", length=7, digest="ab" * 32),
    Enqueued(
        config={
            "lr": 1e-300,
            "n": 2**53 + 1,
            "kind": 'quo"te\\\n\x00\u2028💡',
            "flag": True,
            "none": None,
        }
    ),
    Noted(decision=0, seen=1, notes=Notes(own={"scales": [0.1, 1e308, -0.0], "text": ""})),
    TrialAdded(
        trial=0,
        config={"lr": 0.1 + 0.2},
        tag={"bracket": 1, "slot": [3, {"deep": None}]},
        continue_from=0,
    ),
    BudgetGranted(trial=0, budget=3.0, attempt=2, worker="host-1"),
    Reported(
        trial=0,
        step=1.0,
        metrics={"loss": 0.25, "memory": None},
        stderr=0.5,
        cost=12.0,
        further_stderr={"memory": 0.1},
        time=1e9,
    ),
    Ended(trial=0, status="failed", message="Traceback …\n  ValueError: x"),
    happened.Lost(trial=0, attempt=2, message="no sign of life"),
    happened.Retried(trial=0, time=2.5),
    happened.Annotated(trial=0, attributes={"git": ["a", {"b": None}]}, note="näh\n", time=3.0),
]
