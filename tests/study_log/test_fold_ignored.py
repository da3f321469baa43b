"""A storage is input: what cannot be does not count, and says so."""

from typing import Any

import pytest

from scrimp.errors import StudyError
from scrimp.space.parameter import Float, Int
from scrimp.space.space import Space
from scrimp.study_log.decision_record import DecisionRecord
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Ended,
    Enqueued,
    Event,
    Lost,
    Reported,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem

PROBLEM = Problem(Space(x=Float(0, 1), n=Int(1, 3)))
FIRST = StudyCreated(name="s", problem=PROBLEM.to_json(), method={"name": "random", "settings": {}})
RUNNING: list[Event] = [
    TrialAdded(trial=0, config={"x": 0.5, "n": 1}),
    BudgetGranted(trial=0, budget=1.0),
]


@pytest.mark.parametrize(
    "config",
    [
        {"x": "0; id", "n": 1},
        {"x": 2.0, "n": 1},
        {"x": 0.5, "n": 1.5},
        {"x": 0.5, "n": True},
        {"x": 0.5},
        {"x": 0.5, "n": 1, "other": 1},
        {"x": [0.5], "n": 1},
        {"x": {"y": 1}, "n": 1},
        {},
    ],
)
def test_what_does_not_fit_the_space_is_not_in_the_queue(config: dict[str, Any]) -> None:
    history = History.of([FIRST, Enqueued(config=config), Enqueued(config={"x": 0.5, "n": 2})])
    assert list(history.queue) == [{"x": 0.5, "n": 2}]
    ((position, why),) = history.ignored
    assert position == 1 and "does not fit the space" in why and len(why) < 500


def test_an_end_that_is_none_does_not_count() -> None:
    history = History.of([FIRST, *RUNNING, Ended(trial=0, status="owned")])
    assert history.trials[0].status == "running" and "'owned'" in history.ignored[0][1]
    assert history.with_events([Ended(trial=0, status="failed")]).trials[0].status == "failed"


def test_a_study_begins_once() -> None:
    other = StudyCreated(
        name="t", problem=Problem(Space(y=Float(0, 9))).to_json(), method={"name": "gp"}
    )
    history = History.of([FIRST, other])
    assert history.created is FIRST or history.created == FIRST
    assert list(history.problem.space) == ["x", "n"] and "second time" in history.ignored[0][1]


@pytest.mark.parametrize("problem", [{}, {"space": {"parameters": 3}}, {"space": None}])
def test_a_problem_that_cannot_be_read_is_named(problem: dict[str, Any]) -> None:
    with pytest.raises(
        StudyError, match="event 1 of the log records a problem that cannot be read"
    ):
        History.of([FIRST, StudyChanged(problem=problem)])


@pytest.mark.parametrize(
    "tag",
    [
        {"bracket": "x"},
        {"bracket": -1},
        {"bracket": True},
        {"bracket": 10**12},
        {"bracket": None},
        {"bracket": 1.5},
        {"bracket": 0, "slot": [1]},
        {"slot": 1},
    ],
)
def test_a_tag_that_no_method_writes_does_not_count(tag: dict[str, Any]) -> None:
    history = History.of([FIRST, TrialAdded(trial=0, config={"x": 0.5, "n": 1}, tag=tag)])
    assert history.trials[0].tag == {}
    ((position, why),) = history.ignored
    assert position == 1 and why.startswith("trial 0 has ")


def test_tags_of_methods_count() -> None:
    for tag in ({"bracket": 3}, {"bracket": 0, "slot": 7}, {"scout": True}, {}):
        history = History.of([FIRST, TrialAdded(trial=0, config={"x": 0.5, "n": 1}, tag=tag)])
        assert history.trials[0].tag == tag and not history.ignored


@pytest.mark.parametrize("attempt", [3, 10**12, 10**30, -1])
def test_attempts_out_of_turn_do_not_count(attempt: int) -> None:
    """A state of theirs would be vouched for, and whoever takes the trial up looks through all."""
    for event in (
        BudgetGranted(trial=0, budget=1.0, attempt=attempt),
        Reported(trial=0, step=1.0, metrics={"value": 0.1}, attempt=attempt),
        Ended(trial=0, status="completed", attempt=attempt),
    ):
        history = History.of([FIRST, *RUNNING, event])
        assert history.trials[0].status == "running" and history.trials[0].attempt == 1
        assert not history.vouched(0) and "has the attempt" in history.ignored[0][1]
    again = [Lost(trial=0), BudgetGranted(trial=0, budget=1.0, attempt=2)]
    assert History.of([FIRST, *RUNNING, *again]).trials[0].attempt == 2


@pytest.mark.parametrize("number", [-1, 1002, 10**15 - 1, 10**30])
def test_decisions_without_measure_do_not_count(number: int) -> None:
    history = History.of(
        [FIRST, Decided(decision=number, seen=1, record=DecisionRecord(own={"mine": 1}))]
    )
    assert (
        history.decisions == 0
        and history.recorded.own.get("mine") is None
        and len(history.ignored) == 1
    )
