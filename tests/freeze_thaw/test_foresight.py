"""What the model foretells of each configuration from all others: against models that never saw it,
and where there is nothing to foretell."""

from collections.abc import Callable

import numpy as np
import pytest

from scrimp.encoding.encoding import Encoding
from scrimp.freeze_thaw.curve_gp import CurveParameters, CurveRows, curve_covariance
from scrimp.freeze_thaw.curve_rows import CurveTable
from scrimp.freeze_thaw.foresight import first_rows_from_others, foresight
from scrimp.freeze_thaw.model import CurveBelief, believe
from scrimp.history.events import BudgetGranted, Event, Reported, StudyCreated, TrialAdded
from scrimp.history.history import History
from scrimp.history.problem import Budget, Problem
from scrimp.json_values import Config
from scrimp.space.parameter import Float
from scrimp.space.space import Space

SPACE = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0))


def studied(loss: Callable[[Config], float], pending: bool = False) -> CurveBelief:
    """Thirty configurations, every third of them trained for longer."""
    problem = Problem(SPACE, metric="loss", budget=Budget("epoch", 1, 27), seed=3)
    events: list[Event] = [StudyCreated(name="known", problem=problem.to_json(), method={})]
    for trial, config in enumerate(SPACE.sample(30, np.random.default_rng(0))):
        until = 8 if trial % 3 == 0 else 3
        events += [TrialAdded(trial=trial, config=config), BudgetGranted(trial=trial, budget=until)]
        events += [
            Reported(trial=trial, step=step, metrics={"loss": loss(config) + 0.5 / step})
            for step in range(1, until + 1)
        ]
    history = History.of(events)
    rows = history.derive(CurveTable())
    running = [(0, 13.0), (1, 5.0)] if pending else []
    return believe(history, rows, Encoding(SPACE), running, np.random.default_rng(1))


def bowl(config: Config) -> float:
    return float((config["a"] - 0.37) ** 2 + (config["b"] - 0.61) ** 2)


@pytest.mark.parametrize("pending", [False, True])
def test_it_equals_models_that_never_saw_the_configuration(pending: bool) -> None:
    belief = studied(bowl, pending)
    curves, order = belief.curves, belief.order
    trial, times = curves.trial[order], curves.clock(curves.step[order])
    theta = np.array(belief.record.theta)
    rows = CurveRows(curves.features, curves.owner, trial, times)
    p = CurveParameters.of(theta)
    whole = curve_covariance(rows, theta) + p.noise_variance * np.eye(len(order))
    expected = []
    for own in np.unique(trial):
        rest, first = np.flatnonzero(trial != own), int(np.flatnonzero(trial == own)[0])
        weights = np.linalg.solve(whole[np.ix_(rest, rest)], belief.z[rest] - p.means(times[rest]))
        expected.append(p.means(times[first]) + whole[first, rest] @ weights)
    first_rows, foretold = first_rows_from_others(belief)
    np.testing.assert_allclose(foretold, expected, rtol=1e-6, atol=1e-8)
    assert len(np.unique(trial)) < len(order)  # some have several rows
    np.testing.assert_array_equal(first_rows, belief.z[np.unique(trial, return_index=True)[1]])


def test_a_bowl_is_foretold_and_noise_is_not() -> None:
    def noise(config: Config) -> float:
        return float(np.random.default_rng(int(1e9 * config["a"])).normal())

    assert foresight(studied(bowl)) > 0.9
    assert foresight(studied(noise)) < 0.3


def test_where_all_are_equal_nothing_is_foretold() -> None:
    assert foresight(studied(lambda config: 1.0)) == 0.0
