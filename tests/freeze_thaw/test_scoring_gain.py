"""The gain left by the curve model: joint draws, limits, and costs."""

import math
from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.freeze_thaw.curve_process import CurveRows
from scrimp.freeze_thaw.freeze_thaw import FreezeThaw
from scrimp.freeze_thaw.scoring import best_loss_seen
from scrimp.study_log.events import BudgetGranted, Event, Reported, TrialAdded
from scrimp.study_log.history import History
from tests.freeze_thaw.dense_curves import curve_covariance
from tests.freeze_thaw.modelled import modelled

SPACE = scrimp.Space(a=scrimp.Float(0.0, 1.0), b=scrimp.Float(0.0, 1.0))


def played(total: float, space: scrimp.Space = SPACE, **more: Any) -> scrimp.Study:
    study = scrimp.create_study(
        "left",
        space,
        metric="loss",
        budget=scrimp.Budget("epoch", 1, 9),
        method="freeze-thaw",
        storage="memory://",
        seed=0,
        **more,
    )

    def objective(trial: scrimp.LiveTrial) -> None:
        far = (trial.params["a"] - 0.3) ** 2 + (trial.params["b"] - 0.6) ** 2
        for epoch in trial.steps():
            trial.report(loss=far + 0.5 / epoch, dollars=1.0 + 9.0 * trial.params["a"])

    study.optimize(objective, total_budget=total, progress=False)
    return study


def left(history: History) -> tuple[float, float]:
    found = FreezeThaw().gain_left(history, np.random.default_rng(0))
    return found.expected, found.per_cost


def test_joint_posteriors_equal_dense_algebra() -> None:
    model = modelled(played(30).history).model
    metric, curves = model.first, model.curves
    trials = np.array([0, 1, 1])
    times = metric.curves.time_axis(np.array([9.0, 5.0, 9.0]))
    scaled = metric.factor.scaled(curves.features[trials])
    mean, covariance = metric.factor.joint(scaled, trials, times, metric.whitened)
    seen, order = metric.curves, metric.order
    config = np.concatenate([seen.trial[order], trials])
    when = np.concatenate([seen.time_axis(seen.step[order]), times])
    theta = np.array(model.fits[0].theta)
    whole = curve_covariance(CurveRows(curves.features, curves.owner, config, when), theta)
    n, p = len(order), metric.factor.parameters
    known = whole[:n, :n] + p.noise_variance * np.eye(n)
    gain = np.linalg.solve(known, whole[:n, n:])
    np.testing.assert_allclose(mean, p.means(times) + gain.T @ (metric.z - p.means(when[:n])))
    np.testing.assert_allclose(covariance, whole[n:, n:] - whole[n:, :n] @ gain, atol=1e-9)


def test_less_is_left_late_than_early_and_nothing_at_the_end() -> None:
    study = played(90)
    events = study.history.events
    early, late = (left(History.of(events[: int(share * len(events))])) for share in (0.4, 0.9))
    assert 0.0 < late[0] < early[0] < math.inf
    assert left(study.history)[0] == pytest.approx(0.0, abs=1e-3)


def test_before_the_first_design_is_complete_nothing_is_known() -> None:
    history = played(90).history
    assert left(History.of(history.events[:4])) == (math.inf, math.inf)


def test_an_exhausted_list_has_nothing_left() -> None:
    pool = scrimp.Pool(SPACE, SPACE.sample(6, np.random.default_rng(0)))
    study = played(200, pool)
    assert left(study.history)[0] == 0.0


def test_a_cost_of_the_study_divides_the_gain_per_unit() -> None:
    plain, dear = (played(40, **more).history for more in ({}, {"cost": "dollars"}))
    assert left(dear)[1] < left(plain)[1] or left(dear)[1] == 0.0


def test_the_best_is_taken_over_the_trials_that_fit_the_space() -> None:
    history = played(30).history
    added = len(history.trials)
    outside: list[Event] = [
        TrialAdded(trial=added, config={"a": 0.5}),
        BudgetGranted(trial=added, budget=9.0),
        Reported(trial=added, step=9.0, metrics={"loss": -5.0}),
    ]
    longer = history.with_events(outside)
    assert longer.best is not None and longer.best[1].loss == -5.0
    assert history.best is not None
    curves = modelled(longer).model.curves
    assert best_loss_seen(longer, curves) == history.best[1].loss
