"""Rows as arrays: kinds of metrics, infeasible rows, targets, rows that a fit keeps, lengths of runs."""

import math

import numpy as np
import pytest

import scrimp
from scrimp.encoding.encoding import encoding_of
from scrimp.freeze_thaw.curve_rows import CurveTable
from scrimp.freeze_thaw.curve_target import CurveTarget
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.freeze_thaw.study_curves import (
    StudyCurves,
    TimeAxis,
    by_metric,
    expected_ends,
    kinds_of,
)
from scrimp.gp.columns import Column, Features
from scrimp.study.study import Study
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from scrimp.study_log.trial import INFEASIBLE_STANDING


def of_standings(trial: np.ndarray, standing: np.ndarray, listed: bool = True) -> StudyCurves:
    """Rows of one metric after 1, 2, 3, ... units."""
    trials = int(trial.max()) + 1
    problem = Problem(scrimp.Space(x=scrimp.Float(0, 1)), budget=Budget("epoch", 1, 8))
    return StudyCurves(
        trial=trial,
        step=np.array([float((trial[:row] == own).sum() + 1) for row, own in enumerate(trial)]),
        standing=standing,
        losses=standing[:, None],
        infeasible=~(standing < INFEASIBLE_STANDING),
        kinds=("falling",),
        usable=np.ones(trials, dtype=bool),
        x=np.zeros((trials, 1)),
        features=np.zeros((trials, 1)),
        map=Features((Column(),)),
        time_axis=TimeAxis.of(problem),
        levels=np.array([1.0, 2.0, 3.0]),
        run_lengths={},
        listed=listed,
    )


def test_targets_are_losses_once_a_row_is_feasible() -> None:
    trial = np.arange(8)
    violated = INFEASIBLE_STANDING * np.linspace(3.1, 3.8, 8)
    standing = violated.copy()
    standing[[3, 5]] = 0.7, 0.4
    (none,), (mixed,) = (of_standings(trial, own).metrics for own in (violated, standing))
    assert not mixed.feasible(trial[:3]) and mixed.feasible(trial)
    # later rows change nothing
    for one, other in zip(mixed.targets(trial[:3]), none.targets(trial[:3]), strict=True):
        np.testing.assert_array_equal(one, other)
    target, z = mixed.targets(trial)
    assert (target.low, target.cap) == (0.4, 0.7) and z.argmin() == 5 and z[0] == z.max() > z[3]


def test_a_list_stretches_the_best_losses_and_a_continuous_space_does_not() -> None:
    trial = np.repeat(np.arange(5), 2)
    losses = np.random.default_rng(0).random(10)
    for listed, shift in ((False, 0.5), (True, 0.05)):
        (own,) = of_standings(trial, losses, listed).metrics
        target, z = own.targets(np.arange(10))
        expected = CurveTarget.learn(losses, losses[::2], shift)
        np.testing.assert_array_equal(z, expected.forward(losses))
        assert target == expected and target.shift == shift


def test_of_too_many_rows_the_worst_trials_keep_their_last() -> None:
    trials = 120
    trial = np.repeat(np.arange(trials), 3)
    (own,) = of_standings(trial, np.repeat(np.linspace(0.0, 1.0, trials), 3)).metrics
    assert len(own.kept(NUMBERS.max_rows)) == NUMBERS.max_rows
    kept = own.kept(3 * trials)
    assert len(kept) == NUMBERS.rows_after_dropping
    counts = np.bincount(trial[kept], minlength=trials)
    assert (counts[:60] == 3).all() and (counts[60:] == 1).all()
    assert (kept[trial[kept] >= 60] % 3 == 2).all()


@pytest.mark.parametrize(
    ("low", "high", "end"), [(1, 100, 1.0), (3, 300, 1.0), (5, 5, 0.0), (2, 6, np.log10(3))]
)
def test_the_time_axis_runs_from_the_first_level_to_the_last(
    low: float, high: float, end: float
) -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    clock = TimeAxis.of(Problem(space, budget=Budget("epoch", low, high)))
    assert float(clock(np.array(float(low)))) == 0.0 and clock.end == pytest.approx(end)


# --- several metrics ------------------------------------------------------------------------------


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


def curves_of(study: Study) -> StudyCurves:
    history = history_of(study)
    rows, encoding = history.derive(CurveTable()), encoding_of(history.problem.space)
    return by_metric(history, rows, StudyCurves.of(history, rows, encoding))


def test_the_kind_of_a_metric_decides_its_losses() -> None:
    study = study_of()
    begun = [(0.5, 3.0, 10.0), (0.7, 2.0, 40.0), (0.2, 4.0, 5.0)]
    for trial, (error, score, weights) in zip(study.ask(3), begun, strict=True):
        study.report(trial, step=1, error=error, score=score, weights=weights)
    trial = study.ask()  # the best continues to 3
    before = trial.curve[-1].metrics
    for step, fallen in ((2, 0.1), (3, 0.05)):
        study.report(
            trial,
            step=step,
            error=before["error"] - fallen,
            score=before["score"] - step,
            weights=before["weights"],
        )
    curves = curves_of(study)
    assert curves.kinds == ("falling", "rising", "constant")
    rows = np.flatnonzero(curves.trial == trial.id)
    lowest = [before["error"] - fallen for fallen in (0.0, 0.1, 0.1)]
    assert curves.losses[rows, 0].tolist() == pytest.approx(lowest)
    # of a rising metric, a row has the loss at its step, not the lowest
    last = [-before["score"] + step for step in (0, 2, 3)]
    assert curves.losses[rows, 1].tolist() == pytest.approx(last)
    constant = curves.metrics[2]
    assert len(constant.trial) == len(study.trials) == len(set(constant.trial.tolist()))
    assert constant.constants[trial.id] == before["weights"]
    assert curves.metrics[0].constants == {}


def test_failed_and_infeasible_runs_are_marked_in_one_metric() -> None:
    study = study_of(constraints={"memory": scrimp.AtMost(1.0)})
    *others, failing = study.ask(3)
    for trial, memory in zip(others, (0.5, 2.0), strict=True):
        study.report(trial, step=1, error=0.5, score=1.0, weights=memory, memory=memory)
    study.tell(failing, state="failed")
    curves = curves_of(study)
    assert curves.infeasible.tolist() == [False, True, True]
    assert curves.metrics[0].losses.tolist() == [0.5, math.inf, math.inf]
    # the weights of an infeasible run are known all the same
    assert curves.metrics[2].losses.tolist() == [0.5, 2.0]
    assert curves.losses[curves.complete(3)].tolist() == [[0.5, -1.0, 0.5]]


def test_several_metrics_are_one_column_of_standings_while_nothing_is_feasible() -> None:
    study = study_of(constraints={"memory": scrimp.AtMost(1.0)})
    first, second = study.ask(2)
    study.report(first, step=1, error=0.5, score=1.0, weights=2.0, memory=2.0)
    curves = curves_of(study)
    assert curves.losses.shape == (1, 1) and curves.kinds == ("falling",)
    assert not curves.metrics[0].feasible(np.arange(1))
    study.report(second, step=1, error=0.7, score=1.0, weights=2.0, memory=0.5)
    assert curves_of(study).losses.shape == (2, 3)


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
    assert kinds_of(np.arange(20), latency[:20, None]) == ("falling",)
    assert kinds_of(np.array([0, 0]), np.array([[1.0], [1.0]])) == ("constant",)


def test_a_little_change_in_few_trials_does_not_make_a_metric_constant() -> None:
    trial = np.repeat(np.arange(4), 2)
    error = np.array([0.9, 0.899, 0.7, 0.698, 0.5, 0.499, 0.3, 0.299])
    assert kinds_of(trial[:6], error[:6, None]) == ("falling",)
    assert kinds_of(trial, error[:, None]) == ("constant",)


def test_a_length_that_follows_from_the_configuration_is_learned_from_a_few_runs() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((200, 4))
    lengths = 100.0 * np.exp(-1.5 * x[:, 0] - 0.5 * x[:, 2])
    predicted = expected_ends(x[:25], lengths[:25], x, 100.0)
    assert np.abs(np.log(predicted / lengths)).max() < 0.1
    assert predicted.max() <= 100.0


def test_runs_that_last_to_the_full_budget_change_nothing() -> None:
    x = np.random.default_rng(0).random((6, 2))
    np.testing.assert_array_equal(expected_ends(x[:0], np.zeros(0), x, 50.0), 50.0)
    np.testing.assert_array_equal(expected_ends(x[:3], np.full(3, 50.0), x, 50.0), 50.0)
