"""Bars are grants: they begin when granted and end when the trial paused, ended or was lost."""

import scrimp
from scrimp.plots.resources import Stretch, stretches
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Ended,
    Lost,
    Reported,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem


def test_stretches_of_a_made_up_log() -> None:
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

    def grant(
        trial: int, budget: float, attempt: int, time: float, worker: str = "a"
    ) -> BudgetGranted:
        return BudgetGranted(trial=trial, budget=budget, attempt=attempt, worker=worker, time=time)

    def told(trial: int, step: float, attempt: int, time: float) -> Reported:
        return Reported(trial=trial, step=step, metrics={"loss": 1.0}, attempt=attempt, time=time)

    log += [*added(0, 101), grant(0, 2, 1, 101), told(0, 1, 1, 102), told(0, 2, 1, 103)]  # paused
    log += [grant(0, 4, 2, 110), told(0, 4, 2, 115)]  # completed
    log += [*added(1, 104), grant(1, 2, 1, 104, "b"), Lost(trial=1, attempt=1, time=106)]
    log += [grant(1, 2, 2, 107, "a"), Ended(trial=1, status="failed", attempt=2, time=109)]
    log += [*added(2, 111), grant(2, 2, 1, 111, "")]  # still running when the log ends, at 115
    assert stretches(History.of(log)) == [
        Stretch(0, "a", 1.0, 3.0, "paused"),
        Stretch(0, "a", 10.0, 15.0, "completed"),
        Stretch(1, "b", 4.0, 6.0, "stale"),
        Stretch(1, "a", 7.0, 9.0, "failed"),
        Stretch(2, "asked by hand", 11.0, 15.0, "running"),
    ]


def test_bars_are_the_stretches(staged: scrimp.Study) -> None:
    picture = scrimp.plots.timeline(staged)
    bars = {
        (number, round(base, 9), round(width, 9))
        for trace in picture.data
        for (number, _), base, width in zip(trace.customdata, trace.base, trace.x, strict=True)
    }
    found = stretches(staged.history)
    assert bars == {
        (item.trial, round(item.begin, 9), round(item.end - item.begin, 9)) for item in found
    }
    assert all(item.end >= item.begin for item in found)


def test_overlapping_stretches_get_lanes() -> None:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    first, second = study.ask(count=2)
    study.tell(second, 1.0)
    study.tell(first, 2.0)
    lanes = {lane for trace in scrimp.plots.timeline(study).data for lane in trace.y}
    assert lanes == {"asked by hand · 1", "asked by hand · 2"}
