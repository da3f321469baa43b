"""The current run, told from earlier ones by a break."""

from typing import Any

import pytest

import scrimp
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Event,
    Reported,
    StudyChanged,
    TrialAdded,
)
from scrimp.study_log.limits import Totals
from scrimp.study_log.record import StudyRecord
from scrimp.study_log.study_so_far import CURRENT_RUN


def trial(number: int, begin: float, end: float | None) -> list[Event]:
    events: list[Event] = [
        Decided(decision=number, seen=1, time=begin),
        TrialAdded(trial=number, config={"x": 0.5}, time=begin),
        BudgetGranted(trial=number, budget=1.0, time=begin),
    ]
    if end is not None:
        events.append(Reported(trial=number, step=1.0, metrics={"value": 1.0}, time=end))
    return events


@pytest.fixture
def study() -> Any:
    """Four trials of one run, and after a day two of another and a third that runs."""
    space = scrimp.Space(x=scrimp.Float(0, 1))
    made = scrimp.create_study("s", space, method="random", storage="memory://", seed=0)
    events: list[Event] = [StudyChanged(totals=Totals(n_trials=20), time=0.0)]
    for number in range(4):
        events += trial(number, 100.0 * number, 100.0 * number + 90.0)
    for number in range(4, 6):
        events += trial(number, 86400.0 + 10.0 * number, 86400.0 + 10.0 * number + 10.0)
    made._ledger.append([*events, *trial(6, 86460.0, None)])
    return made


def test_a_run_begins_after_a_break(study: Any) -> None:
    run = study.history.derive(CURRENT_RUN)
    assert (run.since, run.ended_before, run.ended, run.running) == (86440.0, 4, 6, 1)


def test_the_time_left_is_that_of_the_current_run(study: Any) -> None:
    # 2 of 20 trials in 20 seconds of this run, so 14 take 140 seconds.
    record = StudyRecord.of(study.history, now=86460.0)
    assert record.seconds == 20.0 and record.done_before == pytest.approx(0.2)
    assert record.seconds_left == pytest.approx(140.0)
    assert StudyRecord.of(study.history).seconds_left is None
