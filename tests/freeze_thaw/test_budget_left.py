"""What is left to spend, and the questions of a decision."""

import math
from typing import Any

import pytest

from scrimp.freeze_thaw.budget_left import BudgetLeft
from scrimp.freeze_thaw.curve_rows import CurveTable
from scrimp.space.parameter import Float
from scrimp.space.space import Pool, Space
from scrimp.study_log.events import (
    BudgetGranted,
    Event,
    Reported,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.limits import Totals
from scrimp.study_log.problem import Budget, Problem


def left_of(totals: dict[str, Any], spent: int = 2) -> BudgetLeft:
    problem = Problem(
        Space(x=Float(0.0, 1.0)), metrics={"loss": "minimize"}, budget=Budget("epoch", 1, 9)
    )
    events: list[Event] = [
        StudyCreated(name="left", problem=problem.to_json(), method={}),
        StudyChanged(totals=Totals(**totals)),
        TrialAdded(trial=0, config={"x": 0.5}),
        BudgetGranted(trial=0, budget=4),
    ]
    events += [
        Reported(trial=0, step=step, metrics={"loss": 1.0}, cost=3.0, time=3.0 * step)
        for step in range(1, spent + 1)
    ]
    history = History.of(events)
    return BudgetLeft.of(history, history.derive(CurveTable()))


def test_without_limits_nothing_ends() -> None:
    left = left_of({})
    assert left == BudgetLeft(2 / 180, math.inf, math.inf, may_add=True, first_slice_end=1.0)


def test_a_budget_counts_what_is_granted_as_spent() -> None:
    left = left_of({"budget": 40})
    assert (
        left.spent_share == pytest.approx(2 / 40)
        and left.per_worker == 36
        and left.largest_slice == 36
    )


def test_a_number_of_trials_stands_for_a_budget_and_reserves_a_start_for_each() -> None:
    left = left_of({"n_trials": 10})
    assert left.spent_share == pytest.approx(2 / 30)  # 10 configurations x 1 epoch x rungs 1, 3, 9
    assert left.per_worker == 26 and left.largest_slice == 26 - 9 and left.may_add
    assert not left_of({"n_trials": 1}).may_add
    assert left.first_slice_end == 1  # longer looks would leave nothing for the ten


def test_a_time_limit_counts_by_what_a_unit_has_cost() -> None:
    left = left_of({"timeout": 60.0})
    assert left.spent_share == pytest.approx(0.1) and left.per_worker == pytest.approx(54.0 / 3.0)
    later = left_of({"timeout": 60.0, "since": 3.0})  # counted from the begin of the run
    assert later.spent_share == pytest.approx(0.05) and later.per_worker == pytest.approx(
        57.0 / 3.0
    )


def test_a_new_configuration_is_judged_later_where_there_is_no_list() -> None:
    space = Space(x=Float(0.0, 1.0))
    for of, full, first in (
        (space, 27, 1.0),  # levels 1, 2, 3, 5, 8, ...
        (space, 50, 1.0),
        (space, 100, 2.0),
        (space, 1000, 3.0),
        (space, 3, 1.0),
        (Pool(space, [{"x": 0.1}, {"x": 0.2}]), 27, 1.0),
    ):
        problem = Problem(of, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, full))
        created = StudyCreated(name="left", problem=problem.to_json(), method={})
        history = History.of([created])
        assert BudgetLeft.of(history, history.derive(CurveTable())).first_slice_end == first


def test_a_cost_of_the_studys_own_is_not_in_seconds() -> None:
    problem = Problem(
        Space(x=Float(0.0, 1.0)),
        metrics={"loss": "minimize"},
        budget=Budget("epoch", 1, 9),
        cost="dollars",
    )
    events: list[Event] = [
        StudyCreated(name="left", problem=problem.to_json(), method={}),
        StudyChanged(totals=Totals(timeout=60.0)),
        TrialAdded(trial=0, config={"x": 0.5}),
        BudgetGranted(trial=0, budget=4),
        Reported(trial=0, step=1, metrics={"loss": 1.0, "dollars": 0.01}, cost=0.01, time=3.0),
        Reported(trial=0, step=2, metrics={"loss": 1.0, "dollars": 0.01}, cost=0.01, time=6.0),
    ]
    history = History.of(events)
    left = BudgetLeft.of(history, history.derive(CurveTable()))
    assert left.per_worker == pytest.approx(54.0 / 3.0)
    assert left.spent_share == pytest.approx(0.1)
