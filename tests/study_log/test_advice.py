"""The record of advisers; `test_advising` has the decisions."""

import scrimp
from scrimp.study_log.advice import ADVICE, AdviserRecord, adviser_records
from scrimp.study_log.decision_record import DecisionRecord, FromAdvice
from scrimp.study_log.events import (
    Advised,
    BudgetGranted,
    Decided,
    Ended,
    Event,
    Reported,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem

FIRST = StudyCreated(
    name="s",
    problem=Problem(scrimp.Space(x=scrimp.Float(0, 1))).to_json(),
    method={"name": "random"},
)


def tried(number: int, value: float | None, proposal: int | None = None) -> list[Event]:
    """The events of a trial, of the method or of a proposal; without a value it failed."""
    reason = None if proposal is None else FromAdvice(by="ann", proposal=proposal)
    events: list[Event] = [
        Decided(decision=number, seen=1, record=DecisionRecord(reason=reason)),
        TrialAdded(trial=number, config={"x": 0.01 * number}),
        BudgetGranted(trial=number, budget=1.0),
    ]
    if value is None:
        return [*events, Ended(trial=number, status="failed")]
    report = Reported(trial=number, step=1.0, metrics={"value": value})
    return [*events, report, Ended(trial=number, status="completed")]


def test_progress_and_misses_are_counted() -> None:
    advised = Advised(configs=tuple({"x": 0.1 * step} for step in range(5)), by="ann")
    values = [(5.0, None), (4.0, 0), (None, 1), (3.0, None), (3.5, None), (3.6, 2)]
    events = [event for number, (v, p) in enumerate(values) for event in tried(number, v, p)]
    history = History.of([FIRST, advised, *events])
    assert adviser_records(history) == [AdviserRecord("ann", 5, 2, 3, 1, 2, 3, 2, 1)]
    assert history.derive(ADVICE).tried == {1: "ann", 2: "ann", 5: "ann"}
    assert list(history.derive(ADVICE).open) == [3, 4]
    # The same when the fold begins later.
    later = History.of([FIRST, advised])
    assert later.derive(ADVICE).open and not later.derive(ADVICE).tried
    assert adviser_records(later.with_events(events)) == adviser_records(history)


def test_misses_begin_again_after_progress() -> None:
    advised = Advised(configs=tuple({"x": 0.1 * step} for step in range(4)), by="ann")
    values = [(5.0, None), (6.0, 0), (6.5, 1), (4.0, 2), (4.5, 3)]
    events = [event for number, (v, p) in enumerate(values) for event in tried(number, v, p)]
    (record,) = adviser_records(History.of([FIRST, advised, *events]))
    assert (record.tried, record.progress, record.misses) == (4, 1, 1)


def test_an_adviser_is_heard_by_its_record() -> None:
    def heard(misses: int, drought: int) -> bool:
        return AdviserRecord("ann", 9, 9, 9, 0, misses, 50, 5, drought).heard

    assert heard(0, 0) and heard(4, 0) and not heard(5, 19) and heard(5, 20)
    assert not heard(6, 39) and heard(6, 40) and not heard(7, 79) and heard(7, 80)


def test_without_advice_there_is_no_adviser() -> None:
    assert adviser_records(History.of([FIRST, *tried(0, 1.0)])) == ()


def test_only_the_newest_hundred_proposals_wait() -> None:
    study = scrimp.create_study("s", scrimp.Space(x=scrimp.Float(0, 1)), storage="memory://")
    for start in (0.0, 0.5):
        study.advise([{"x": start + 0.005 * step} for step in range(80)], by="ann")
    (found,) = adviser_records(study.history)
    assert (found.proposed, found.waiting) == (160, 100)
