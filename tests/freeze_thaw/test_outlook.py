"""How much is left: totals, reserves for configurations to come, and time limits."""

import math
from typing import Any

import pytest

from scrimp.freeze_thaw.curve_rows import CurveTable
from scrimp.freeze_thaw.outlook import Outlook
from scrimp.history.events import (
    BudgetGranted,
    Event,
    Reported,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.history.history import History
from scrimp.history.limits import Totals
from scrimp.history.problem import Budget, Problem
from scrimp.space.parameter import Float
from scrimp.space.space import Pool, Space


def outlook_of(totals: dict[str, Any], spent: int = 2) -> Outlook:
    problem = Problem(Space(x=Float(0.0, 1.0)), metric="loss", budget=Budget("epoch", 1, 9))
    events: list[Event] = [
        StudyCreated(name="outlook", problem=problem.to_json(), method={}),
        StudyChanged(totals=Totals(**totals)),
        TrialAdded(trial=0, config={"x": 0.5}),
        BudgetGranted(trial=0, budget=4),
    ]
    events += [
        Reported(trial=0, step=step, metrics={"loss": 1.0}, cost=3.0, time=3.0 * step)
        for step in range(1, spent + 1)
    ]
    history = History.of(events)
    return Outlook.of(history, history.derive(CurveTable()))


def test_without_limits_nothing_ends() -> None:
    outlook = outlook_of({})
    assert outlook == Outlook(share=2 / 180, each=math.inf, resume=math.inf, add=True, first=1.0)


def test_a_budget_counts_what_is_granted_as_spent() -> None:
    outlook = outlook_of({"budget": 40})
    assert outlook.share == pytest.approx(2 / 40) and outlook.each == 36 and outlook.resume == 36


def test_a_number_of_trials_stands_for_a_budget_and_reserves_a_start_for_each() -> None:
    outlook = outlook_of({"n_trials": 10})
    assert outlook.share == pytest.approx(2 / 30)  # 10 configurations x 1 epoch x rungs 1, 3, 9
    assert outlook.each == 26 and outlook.resume == 26 - 9 and outlook.add
    assert not outlook_of({"n_trials": 1}).add
    assert outlook.first == 1  # longer looks would leave nothing for the ten


def test_a_time_limit_counts_by_what_a_unit_has_cost() -> None:
    outlook = outlook_of({"timeout": 60.0})
    assert outlook.share == pytest.approx(0.1) and outlook.each == pytest.approx(54.0 / 3.0)
    later = outlook_of({"timeout": 60.0, "since": 3.0})  # counted from the begin of the run
    assert later.share == pytest.approx(0.05) and later.each == pytest.approx(57.0 / 3.0)


def test_a_new_configuration_is_judged_later_where_there_is_no_list() -> None:
    space = Space(x=Float(0.0, 1.0))
    for of, full, first in (
        (space, 27, 2.0),  # levels 1, 2, 3, 5, 8, ...
        (space, 50, 2.0),
        (space, 100, 3.0),
        (space, 1000, 5.0),
        (space, 3, 1.0),
        (Pool(space, [{"x": 0.1}, {"x": 0.2}]), 27, 1.0),
    ):
        problem = Problem(of, metric="loss", budget=Budget("epoch", 1, full))
        created = StudyCreated(name="outlook", problem=problem.to_json(), method={})
        history = History.of([created])
        assert Outlook.of(history, history.derive(CurveTable())).first == first


def test_a_cost_of_the_studys_own_is_not_in_seconds() -> None:
    problem = Problem(
        Space(x=Float(0.0, 1.0)), metric="loss", budget=Budget("epoch", 1, 9), cost="dollars"
    )
    events: list[Event] = [
        StudyCreated(name="outlook", problem=problem.to_json(), method={}),
        StudyChanged(totals=Totals(timeout=60.0)),
        TrialAdded(trial=0, config={"x": 0.5}),
        BudgetGranted(trial=0, budget=4),
        Reported(trial=0, step=1, metrics={"loss": 1.0, "dollars": 0.01}, cost=0.01, time=3.0),
        Reported(trial=0, step=2, metrics={"loss": 1.0, "dollars": 0.01}, cost=0.01, time=6.0),
    ]
    history = History.of(events)
    outlook = Outlook.of(history, history.derive(CurveTable()))
    assert outlook.each == pytest.approx(54.0 / 3.0)
    assert outlook.share == pytest.approx(0.1)
