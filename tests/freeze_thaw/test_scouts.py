"""Scouts: the probability that they are sent, and the next one of successive halving."""

import numpy as np

import scrimp
from scrimp.freeze_thaw.curve_rows import SCOUT, CurveTable, PausedTrial, RowList
from scrimp.freeze_thaw.scouts import (
    copies_probability,
    crowd_probability,
    promotion,
    ranked_by_fronts,
    stuck_trials,
)
from scrimp.space.parameter import Float
from scrimp.space.space import Pool, Space
from scrimp.study_log.events import BudgetGranted, Event, Reported, StudyCreated, TrialAdded
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem


def rows_of(curves: list[list[float]], scouts: set[int]) -> RowList:
    """Paused trials with one loss per step."""
    space = Pool(Space(x=Float(0.0, 1.0)), [{"x": 0.5}, {"x": 0.6}])
    problem = Problem(space, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, 8))
    events: list[Event] = [StudyCreated(name="scouts", problem=problem.to_json(), method={})]
    for trial, losses in enumerate(curves):
        tag = {SCOUT: True} if trial in scouts else {}
        events += [
            TrialAdded(trial=trial, config={"x": 0.5}, tag=tag),
            BudgetGranted(trial=trial, budget=len(losses)),
        ]
        events += [
            Reported(trial=trial, step=k + 1, metrics={"loss": loss})
            for k, loss in enumerate(losses)
        ]
    return History.of(events).derive(CurveTable())


def paused_of(rows: RowList) -> list[PausedTrial]:
    return list(rows.paused.values())


def test_copies_of_the_best_call_for_scouts() -> None:
    apart = np.linspace(0.0, 1.0, 40)
    assert copies_probability(apart) == 0.0
    assert copies_probability(np.concatenate([apart, np.full(4, 0.01)])) == 4 / 44
    assert copies_probability(np.zeros(10)) == 1 / 3


def test_a_crowd_at_the_best_value_calls_for_scouts() -> None:
    spread = np.linspace(0.5, 1.0, 40)
    assert crowd_probability(spread, 0.5) == 0.0
    some = np.concatenate([spread, np.full(4, 0.5)])
    assert crowd_probability(some, 0.5) == 3 * 4 / 44
    assert crowd_probability(np.full(30, 0.7), 0.5) == 0.75


def test_the_better_half_continues_from_the_highest_level_down() -> None:
    rows = rows_of([[0.9], [0.3], [0.5], [0.4], [0.8, 0.7], [0.8, 0.6]], scouts=set(range(6)))
    assert promotion(rows, paused_of(rows)) == (5, 2.0, 3.0)
    rows = rows_of([[0.9], [0.3], [0.5], [0.4], [0.8, 0.7]], scouts=set(range(5)))
    assert promotion(rows, paused_of(rows)) == (
        1,
        1.0,
        2.0,
    )  # one trial alone at a level cannot be compared


def test_scouts_are_compared_with_scouts_alone() -> None:
    curves = [[0.1], [0.2], [0.3], [0.8], [0.9]]
    rows = rows_of(curves, scouts={3, 4})
    assert promotion(rows, paused_of(rows)) == (0, 1.0, 2.0)
    assert promotion(rows, paused_of(rows), rows.scouts) == (3, 1.0, 2.0)


def test_a_new_one_is_due_when_the_better_half_has_continued() -> None:
    rows = rows_of([[0.1, 0.1], [0.9], [0.8]], scouts={0, 1, 2})
    assert promotion(rows, paused_of(rows), rows.scouts) is None


def test_stuck_trials_share_the_best_value_and_do_not_fall() -> None:
    flat, fell, late, young, above = (
        [0.7] * 3,
        [0.9, 0.7, 0.7],
        [0.72, 0.71, 0.7],
        [0.7, 0.7],
        [0.8] * 3,
    )
    rows = rows_of([flat, fell, late, young, above], scouts=set())
    assert stuck_trials(rows, 0.5) == {0}
    assert stuck_trials(rows, 2.5) == {0, 2}  # of a wider range 0.02 is no movement


def test_ranks_without_a_model_are_those_of_fronts() -> None:
    space = scrimp.Pool(scrimp.Space(x=scrimp.Float(0, 1)), [{"x": 0.1 * k} for k in range(10)])
    metrics = {"error": "minimize", "score": "maximize", "weights": "minimize"}
    budget = scrimp.Budget("epoch", 1, 9)
    study = scrimp.create_study(
        "ranks", space, metrics=metrics, budget=budget, method="asha", storage="memory://", seed=0
    )
    begun = [(0.5, 10.0), (0.4, 10.0), (0.6, 5.0)]
    for trial, (error, weights) in zip(study.ask(3), begun, strict=True):
        study.report(trial, step=1, error=error, score=1.0, weights=weights)
    history = study._ledger.history
    rows = history.derive(CurveTable())
    assert ranked_by_fronts(history, rows).standing.tolist() == [1.0, 0.0, 0.0]
    assert rows.standing.tolist() == [0.5, 0.4, 0.6]
