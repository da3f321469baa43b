"""Where the budget went: counts that can be made by hand."""

import numpy as np
import pytest

import scrimp
from scrimp.plots.resources import Course, at_bounds, courses
from scrimp.study_log.events import BudgetGranted, Decided, Lost, Reported, StudyCreated, TrialAdded
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem


def test_courses_of_a_made_up_log() -> None:
    problem = Problem(
        scrimp.Space(x=scrimp.Float(0, 1)),
        metrics={"loss": "minimize"},
        budget=Budget("epoch", 1, 4),
    )
    log = [
        StudyCreated(
            name="s", problem=problem.to_json(), method={"name": "asha", "settings": {}}, time=100.0
        )
    ]

    def added(trial: int, time: float) -> list[Decided | TrialAdded]:
        return [
            Decided(decision=trial, seen=0, time=time),
            TrialAdded(trial=trial, config={"x": 0.5}, time=time),
        ]

    def grant(trial: int, budget: float, attempt: int, time: float) -> BudgetGranted:
        return BudgetGranted(trial=trial, budget=budget, attempt=attempt, worker="a", time=time)

    def told(trial: int, step: float, attempt: int, time: float) -> Reported:
        return Reported(trial=trial, step=step, metrics={"loss": 1.0}, attempt=attempt, time=time)

    log += [
        *added(0, 101),
        grant(0, 2, 1, 101),
        told(0, 2, 1, 103),
        grant(0, 4, 2, 110),
        told(0, 4, 2, 115),
    ]
    log += [
        *added(1, 104),
        grant(1, 2, 1, 104),
        Lost(trial=1, attempt=1, time=106),
        grant(1, 2, 2, 107),
        told(1, 2, 2, 109),
    ]
    assert courses(History.of(log)) == [
        Course({"x": 0.5}, 4.0, 1.0, (10.0,), 15.0),
        Course({"x": 0.5}, 2.0, 4.0, (), None),  # taken up again after a loss, not gone on with
    ]


@pytest.mark.parametrize(
    ("parameter", "values", "expected"),
    [
        (scrimp.Float(0, 1), [0.0, 0.01, 0.5, 1.0], (0.75, 0.04)),
        (scrimp.Float(1e-4, 1, log=True), [1e-4, 0.01], (0.5, 0.04)),
        (scrimp.Int(1, 6), [1, 6, 3, 1], (0.75, 1 / 3)),
        (scrimp.Ordinal([8, 16, 32, 64]), [64, 16], (0.5, 0.5)),
        (scrimp.Categorical(["a", "b", "c"]), ["a"], None),
        (scrimp.Int(0, 1), [0, 1], None),
        (scrimp.Float(0, 1), [], None),
    ],
)
def test_the_share_at_bounds(parameter, values, expected) -> None:
    assert at_bounds(parameter, values) == (
        expected if expected is None else pytest.approx(expected)
    )


def counts(picture, place: int, kind: str) -> int:
    """The sum of the bars of one kind in a panel (0: over time, 1: how far, 2 on: parameters)."""
    axis = "y" if place == 0 else f"y{place + 1}"
    return sum(
        int(np.sum(trace.y)) for trace in picture.data if trace.yaxis == axis and trace.name == kind
    )


def test_every_configuration_is_counted_once(staged: scrimp.Study) -> None:
    picture = scrimp.plots.spending(staged)
    found = courses(staged.history)
    finished = staged.history.counts["completed"]
    resumed = sum(1 for course in found if course.resumed)
    assert len(found) == 30 and 0 < finished < resumed < 30
    assert counts(picture, 0, "started") == counts(picture, 1, "started") == 30
    for panel in range(2, 6):  # lr, layers, width, optimizer exist everywhere
        assert [counts(picture, panel, kind) for kind in ("started", "resumed", "finished")] == [
            30,
            resumed,
            finished,
        ]
    momentum = sum("momentum" in course.config for course in found)
    assert counts(picture, 6, "started") == momentum < 30
    assert (
        f"30 started, {resumed} resumed, {finished} finished" in picture.layout.meta["alternative"]
    )
    assert "at bounds (uniform 4%)" in picture.layout.annotations[2].text


def test_one_column_and_studies_without_budgets(whole: scrimp.Study) -> None:
    picture = scrimp.plots.spending(whole, ["b"], columns=1)
    assert [annotation.text.split(":")[0] for annotation in picture.layout.annotations] == [
        "over time",
        "budget reached",
        "b",
    ]
    assert counts(picture, 2, "resumed") == 0 and counts(picture, 2, "started") == len(
        whole.history.trials
    )
    empty = scrimp.create_study(
        "e", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    assert "0 started" in scrimp.plots.spending(empty).layout.meta["alternative"]
