"""What a unit of training costs: measured, foretold as scikit-learn's ridge regression foretells it,
and counted only where time or a cost is short."""

import math
from typing import Any

import numpy as np
import pytest

from scrimp.encoding.encoding import Encoding
from scrimp.freeze_thaw.curve_rows import CurveTable
from scrimp.freeze_thaw.freeze_thaw import CHEAPEST_OF, FreezeThaw, _asked
from scrimp.freeze_thaw.model import StudyCurves, believe
from scrimp.freeze_thaw.outlook import Outlook
from scrimp.freeze_thaw.questions import later
from scrimp.freeze_thaw.unit_costs import RIDGE, UnitCosts
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
from scrimp.history.notes import Gain
from scrimp.history.problem import Budget, Problem
from scrimp.policies.policy import Start
from scrimp.space.parameter import Categorical, Float
from scrimp.space.space import Pool, Space
from scrimp.suggesters.first_design import first_configs

SPACE = Space(width=Float(16.0, 256.0, log=True), kind=Categorical(["u", "v"]), rate=Float(0, 1))
TIMED = Totals(timeout=1e4)


def seconds_of(config: dict[str, Any]) -> float:
    """A product: linear in its logarithm."""
    return float(config["width"]) / 16.0 * (3.0 if config["kind"] == "v" else 1.0)


def studied(
    totals: Totals | None = TIMED,
    trials: int = 20,
    space: Space = SPACE,
    loaded: float = 40.0,
    **problem: Any,
) -> History:
    """Trials of three epochs each, of which the first pays for what is ``loaded``; all end alike."""
    asked = Problem(space, metric="loss", budget=Budget("epoch", 1, 27), seed=3, **problem)
    events: list[Event] = [StudyCreated(name="dear", problem=asked.to_json(), method={})]
    if totals is not None:
        events.append(StudyChanged(totals=totals))
    for trial, config in enumerate(space.sample(trials, np.random.default_rng(0))):
        events += [TrialAdded(trial=trial, config=config), BudgetGranted(trial=trial, budget=3)]
        for step in range(1, 4):
            cost = seconds_of(config) + loaded * (trial == 0 and step == 1)
            loss = {"loss": 0.5 + 0.3 * config["rate"] + 0.5 / step}
            events.append(Reported(trial=trial, step=step, metrics=loss, cost=cost))
    return History.of(events)


def costs_of(history: History) -> UnitCosts | None:
    rows, space = history.derive(CurveTable()), history.problem.space
    return UnitCosts.of(history, rows, StudyCurves.of(history, rows, Encoding(space)))


def test_a_trial_costs_what_it_took_and_not_what_was_loaded_before() -> None:
    history = studied()
    costs = costs_of(history)
    assert costs is not None
    seconds = [seconds_of(dict(trial.config)) for trial in history.trials]
    np.testing.assert_allclose(np.exp(costs.of_trials(np.arange(20))), seconds)


def test_others_are_foretold_as_a_ridge_regression_does() -> None:
    from sklearn.linear_model import Ridge

    history = studied()
    costs = costs_of(history)
    assert costs is not None
    logs = np.log([seconds_of(dict(trial.config)) for trial in history.trials])
    peer = Ridge(alpha=RIDGE).fit(costs.curves.features, logs)
    others = SPACE.sample(30, np.random.default_rng(5))
    x = Encoding(SPACE).encode(others)
    np.testing.assert_allclose(costs.of_configs(x), peer.predict(costs.curves.featured(x)))
    truth = np.log([seconds_of(config) for config in others])
    assert np.corrcoef(costs.of_configs(x), truth)[0, 1] > 0.99


def test_costs_count_where_time_or_a_cost_is_short_and_nowhere_else() -> None:
    assert costs_of(studied(Totals(budget=300.0))) is None
    assert costs_of(studied(None)) is None
    assert costs_of(studied(None, cost="dollars")) is not None
    assert costs_of(studied(trials=3)) is None  # too few to foretell anything
    rows = SPACE.sample(30, np.random.default_rng(0))
    assert costs_of(studied(space=Pool(SPACE, rows))) is None


def test_a_gain_is_divided_by_what_it_costs() -> None:
    history = studied()
    rows = history.derive(CurveTable())
    belief = believe(history, rows, Encoding(SPACE), [], np.random.default_rng(0))
    waiting = [(trial, *slice_) for trial, slice_ in rows.waiting.items()]
    (gain,) = later(
        history, belief, rows, waiting, Outlook.of(history, rows), np.random.default_rng(0)
    )
    assert isinstance(gain.asked, Gain) and gain.asked.per_unit and gain.asked.per_cost
    new = np.arange(3)
    told, scores = _asked(belief, gain, waiting, new, np.random.default_rng(0))
    assert gain.costs is not None
    who = [dict(history.trials[trial].config) for trial, _, _ in waiting]
    units = scores.step - np.array([used for _, used, _ in waiting] + [0.0])
    seconds = [seconds_of(config) for config in who]
    seconds.append(math.exp(gain.costs.of_configs(told.newcomers.x)[0]))
    goals = np.full(len(seconds), gain.goal)
    wins = gain.formula(scores.mean, scores.deviation, goals)
    np.testing.assert_allclose(scores.score, wins - np.log(units * seconds))


def test_the_first_design_takes_the_cheapest_of_those_that_come_next() -> None:
    for history, spread in ((studied(trials=6), CHEAPEST_OF), (studied(None, trials=6), 1)):
        some = first_configs(history, spread, spread, np.random.default_rng(1))
        action = FreezeThaw(initial=9).decide(history, np.random.default_rng(1)).action
        assert isinstance(action, Start) and action.config == min(some, key=seconds_of)


@pytest.mark.parametrize(("loaded", "share"), [(0.0, 60 / 100), (40.0, 20 / 60)])
def test_what_passes_before_anything_is_trained_is_not_spent(loaded: float, share: float) -> None:
    """60 s of 100 have passed, 40 of them before training began, or none."""
    problem = Problem(SPACE, metric="loss", budget=Budget("epoch", 1, 27))
    (config,) = SPACE.sample(1, np.random.default_rng(0))
    begin = 7.0
    events: list[Event] = [
        StudyCreated(name="late", problem=problem.to_json(), method={}, time=0.0),
        StudyChanged(totals=Totals(timeout=100.0, since=begin), time=begin),
        TrialAdded(trial=0, config=config, time=begin),
        BudgetGranted(trial=0, budget=27, time=begin),
    ]
    ends = [begin + loaded + 10.0, begin + loaded + 20.0, begin + 60.0]
    for step, (time, last) in enumerate(zip(ends, [begin, *ends], strict=False), start=1):
        events.append(
            Reported(trial=0, step=step, metrics={"loss": 1.0}, cost=time - last, time=time)
        )
    history = History.of(events)
    outlook = Outlook.of(history, history.derive(CurveTable()))
    assert outlook.share == pytest.approx(share)
