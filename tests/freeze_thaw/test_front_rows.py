"""Rows of several metrics: which kind each metric is, what a row stands for, marks, ranks."""

import math

import numpy as np
import pytest

import scrimp
from scrimp.freeze_thaw.curve_rows import CurveTable
from scrimp.freeze_thaw.front_rows import MetricRows, by_fronts, kinds_of, metric_rows
from scrimp.history.history import History
from scrimp.tuning.study import Study


def study_of(**settings: object) -> Study:
    space = scrimp.Pool(scrimp.Space(x=scrimp.Float(0, 1)), [{"x": 0.1 * k} for k in range(10)])
    metrics = {"error": "minimize", "score": "maximize", "weights": "minimize"}
    return scrimp.create_study(
        "rows",
        space,
        metrics=metrics,
        budget=scrimp.Budget("epoch", 1, 9),
        method="asha",
        storage="memory://",
        **settings,
    )


def history_of(study: Study) -> History:
    return study._ledger.history


def told_by(study: Study) -> MetricRows:
    history = history_of(study)
    return metric_rows(history, history.derive(CurveTable()))


def test_rows_stand_for_what_their_kind_says() -> None:
    study = study_of()
    begun = [(0.5, 3.0, 10.0), (0.7, 2.0, 40.0), (0.2, 4.0, 5.0)]
    for trial, (error, score, weights) in zip(study.ask(3), begun, strict=True):
        study.report(trial, step=1, error=error, score=score, weights=weights)
    trial = study.ask()  # the best goes on to 3
    before = trial.curve[-1].metrics
    for step, fallen in ((2, 0.1), (3, 0.05)):
        study.report(
            trial,
            step=step,
            error=before["error"] - fallen,
            score=before["score"] - step,
            weights=before["weights"],
        )
    told = told_by(study)
    assert told.kinds == ("falling", "rising", "constant")
    rows = np.flatnonzero(told.trial == trial.id)
    lowest = [before["error"] - fallen for fallen in (0.0, 0.1, 0.1)]
    assert told.losses[rows, 0].tolist() == pytest.approx(lowest)
    # of a metric that training makes worse, a row says what it was then, not the lowest
    last = [-before["score"] + step for step in (0, 2, 3)]
    assert told.losses[rows, 1].tolist() == pytest.approx(last)
    used, _ = told.of_metric(2)
    assert len(used) == len(study.trials) == len(set(told.trial[used].tolist()))
    assert told.constants(2)[trial.id] == before["weights"]


def test_failed_and_infeasible_runs_are_marked_in_one_metric() -> None:
    study = study_of(constraints={"memory": scrimp.AtMost(1.0)})
    *others, failing = study.ask(3)
    for trial, memory in zip(others, (0.5, 2.0), strict=True):
        study.report(trial, step=1, error=0.5, score=1.0, weights=memory, memory=memory)
    study.tell(failing, state="failed")
    told = told_by(study)
    assert told.marked.tolist() == [False, True, True]
    assert told.marking == 0
    assert told.of_metric(0)[1].tolist() == [0.5, math.inf, math.inf]
    assert told.of_metric(2)[1].tolist() == [0.5, 2.0]  # what it weighs is known all the same
    assert told.known(3).tolist() == [[0.5, -1.0, 0.5]]


def test_kinds_of_a_metric_that_is_measured_with_noise() -> None:
    rng = np.random.default_rng(0)
    trial = np.repeat(np.arange(20), 3)
    latency = rng.uniform(5, 50, 20)[trial] + rng.normal(0, 0.05, 60)
    loss = rng.uniform(5, 50, 20)[trial] * np.tile([1.0, 0.7, 0.5], 20)
    assert kinds_of(trial, np.column_stack([latency, loss, -loss])) == (
        "constant",
        "falling",
        "rising",
    )
    assert kinds_of(np.arange(20), latency[:20, None]) == ("falling",)  # nobody can say yet
    assert kinds_of(np.array([0, 0]), np.array([[1.0], [1.0]])) == ("constant",)


def test_a_little_change_in_few_trials_does_not_make_a_metric_constant() -> None:
    trial = np.repeat(np.arange(4), 2)
    error = np.array([0.9, 0.899, 0.7, 0.698, 0.5, 0.499, 0.3, 0.299])
    assert kinds_of(trial[:6], error[:6, None]) == ("falling",)
    assert kinds_of(trial, error[:, None]) == ("constant",)


def test_ranks_without_a_model_are_those_of_fronts() -> None:
    study = study_of()
    begun = [(0.5, 10.0), (0.4, 10.0), (0.6, 5.0)]
    for trial, (error, weights) in zip(study.ask(3), begun, strict=True):
        study.report(trial, step=1, error=error, score=1.0, weights=weights)
    history = history_of(study)
    rows = history.derive(CurveTable())
    assert by_fronts(history, rows).standing == [1.0, 0.0, 0.0]
    assert rows.standing == [0.5, 0.4, 0.6]  # the study's own are as they were
