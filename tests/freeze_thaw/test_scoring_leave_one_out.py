"""The model's leave_one_out_r2, predictions of each configuration from all others: against models that
never saw it, and where there is nothing to predict."""

from collections.abc import Callable

import numpy as np
import pytest

from scrimp.freeze_thaw.curve_process import CurveParameters, CurveRows
from scrimp.freeze_thaw.scoring import leave_one_out, leave_one_out_r2
from scrimp.freeze_thaw.study_model import StudyModel
from scrimp.json_values import Config
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.study_log.events import BudgetGranted, Event, Reported, StudyCreated, TrialAdded
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from tests.freeze_thaw.dense_curves import curve_covariance
from tests.freeze_thaw.modelled import modelled

SPACE = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0))


def studied(loss: Callable[[Config], float], pending: bool = False) -> StudyModel:
    """Thirty configurations, every third of them trained for longer."""
    problem = Problem(SPACE, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, 27), seed=3)
    events: list[Event] = [StudyCreated(name="known", problem=problem.to_json(), method={})]
    for trial, config in enumerate(SPACE.sample(30, np.random.default_rng(0))):
        until = 8 if trial % 3 == 0 else 3
        events += [TrialAdded(trial=trial, config=config), BudgetGranted(trial=trial, budget=until)]
        events += [
            Reported(trial=trial, step=step, metrics={"loss": loss(config) + 0.5 / step})
            for step in range(1, until + 1)
        ]
    history = History.of(events)
    return modelled(history, [(0, 13.0), (1, 5.0)] if pending else [], seed=1).model


def bowl(config: Config) -> float:
    return float((config["a"] - 0.37) ** 2 + (config["b"] - 0.61) ** 2)


@pytest.mark.parametrize("pending", [False, True])
def test_it_equals_models_that_never_saw_the_configuration(pending: bool) -> None:
    model = studied(bowl, pending)
    own_model = model.first
    curves, order = own_model.curves, own_model.order
    trial, times = curves.trial[order], curves.time_axis(curves.step[order])
    theta = np.array(model.fits[0].theta)
    rows = CurveRows(model.curves.features, model.curves.owner, trial, times)
    p = CurveParameters.of(theta)
    whole = curve_covariance(rows, theta) + p.noise_variance * np.eye(len(order))
    expected = []
    for own in np.unique(trial):
        rest, first = np.flatnonzero(trial != own), int(np.flatnonzero(trial == own)[0])
        weights = np.linalg.solve(
            whole[np.ix_(rest, rest)], own_model.z[rest] - p.means(times[rest])
        )
        expected.append(p.means(times[first]) + whole[first, rest] @ weights)
    first_rows, predicted = leave_one_out(own_model)
    np.testing.assert_allclose(predicted, expected, rtol=1e-6, atol=1e-8)
    assert len(np.unique(trial)) < len(order)  # some have several rows
    np.testing.assert_array_equal(first_rows, own_model.z[np.unique(trial, return_index=True)[1]])


def test_a_bowl_is_predicted_and_noise_is_not() -> None:
    def noise(config: Config) -> float:
        return float(np.random.default_rng(int(1e9 * config["a"])).normal())

    assert leave_one_out_r2(studied(bowl).first) > 0.9
    assert leave_one_out_r2(studied(noise).first) < 0.3


def test_where_all_are_equal_nothing_is_predicted() -> None:
    assert leave_one_out_r2(studied(lambda config: 1.0).first) == 0.0
