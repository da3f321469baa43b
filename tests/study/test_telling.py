"""What is appended by hand; `test_study` has the same from the front door."""

import pytest

import scrimp
from scrimp.errors import ReportError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.study.ledger import Ledger
from scrimp.study.telling import (
    append_report,
    change_limits,
    end_trial,
    enqueue_config,
    make_room,
    open_trial,
)
from scrimp.study_log.events import StudyChanged
from scrimp.study_log.limits import Totals


def made() -> tuple[scrimp.Study, Ledger]:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        budget=scrimp.Budget("epoch", 1, 9),
        method="asha",
        storage="memory://",
        seed=0,
    )
    return study, Ledger(study._ledger.store, wall_clock)


def test_only_open_trials_can_be_told() -> None:
    study, ledger = made()
    trial = study.ask()  # which the ledger has not read yet
    assert open_trial(ledger, trial.id).id == open_trial(ledger, trial).id == 0
    for wrong in (1, -1, True, "0"):
        with pytest.raises(ReportError, match="has no trial"):
            open_trial(ledger, wrong)  # type: ignore[arg-type]
    assert end_trial(ledger, trial, "failed", "no").message == "no"
    with pytest.raises(ReportError, match="failed already"):
        open_trial(ledger, trial)


def test_a_report_that_does_not_count_is_refused() -> None:
    study, ledger = made()
    trial = open_trial(ledger, study.ask())
    append_report(ledger, trial, 1.0, {"value": 0.5}, {})
    assert ledger.history.trials[0].value == 0.5
    with pytest.raises(ReportError, match="another process"):
        append_report(ledger, trial, 1.0, {"value": 0.4}, {})


def test_a_configuration_is_queued_once() -> None:
    study, ledger = made()
    for _ in range(2):
        enqueue_config(ledger, {"x": 0.25})
    assert list(study.history.queue) == [{"x": 0.25}]
    with pytest.raises(StudyError, match="by name"):
        enqueue_config(ledger, [0.25])  # type: ignore[arg-type]


def test_room_is_made_for_one_more_where_a_total_is_used_up() -> None:
    study, ledger = made()
    assert not make_room(ledger)
    change_limits(ledger, StudyChanged(totals=Totals(n_trials=0)))
    length = ledger.history.length
    change_limits(ledger, StudyChanged(totals=Totals(n_trials=0)))
    assert ledger.history.length == length  # what holds already is not recorded again
    assert make_room(ledger) and study.history.totals.n_trials == 1 and not make_room(ledger)


def test_new_limits_resume_a_stopped_study() -> None:
    study, ledger = made()
    study.stop()
    ledger.refresh()
    change_limits(ledger, StudyChanged(totals=Totals(n_trials=3)))
    assert study.history.limits.halt != "stopped"
