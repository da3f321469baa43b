"""Costs of a unit of training: measured, predicted like scikit-learn's ridge regression, and counted
only where time or a cost is short."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scrimp.encoding.encoding import Encoding
from scrimp.freeze_thaw.budget_left import BudgetLeft, UnitCosts
from scrimp.freeze_thaw.curve_rows import CurveTable
from scrimp.freeze_thaw.freeze_thaw import FreezeThaw
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.freeze_thaw.scoring import questions, score_candidates
from scrimp.freeze_thaw.study_curves import StudyCurves
from scrimp.methods.policy import Action, Start
from scrimp.space.parameter import Categorical, Float
from scrimp.space.space import Pool, Space
from scrimp.study_log.decision_record import Gain
from scrimp.study_log.events import (
    BudgetGranted,
    Ended,
    Event,
    Reported,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.limits import Totals
from scrimp.study_log.problem import Budget, Problem
from scrimp.suggesters.untried_configs import first_configs
from tests.freeze_thaw.modelled import modelled

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
    ending: float = 0.0,
    seconds: Callable[[dict[str, Any]], float] = seconds_of,
    **problem: Any,
) -> History:
    """Trials of three epochs each, of which the first pays for what is ``loaded``; all end alike."""
    asked = Problem(
        space, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, 27), seed=3, **problem
    )
    events: list[Event] = [StudyCreated(name="dear", problem=asked.to_json(), method={})]
    if totals is not None:
        events.append(StudyChanged(totals=totals))
    for trial, config in enumerate(space.sample(trials, np.random.default_rng(0))):
        events += [TrialAdded(trial=trial, config=config), BudgetGranted(trial=trial, budget=3)]
        for step in range(1, 4):
            cost = seconds(config) + loaded * (trial == 0 and step == 1)
            loss = {"loss": 0.5 + 0.3 * config["rate"] + 0.5 / step}
            events.append(Reported(trial=trial, step=step, metrics=loss, cost=cost, time=ending))
    return History.of(events)


def costs_of(history: History) -> UnitCosts:
    rows, space = history.derive(CurveTable()), history.problem.space
    costs = UnitCosts.of(rows, StudyCurves.of(history, rows, Encoding(space)))
    assert costs is not None
    return costs


def by_cost(history: History) -> bool:
    return BudgetLeft.of(history, history.derive(CurveTable())).costs_count


def test_a_trial_costs_what_it_took_and_not_what_was_loaded_before() -> None:
    history = studied()
    costs = costs_of(history)
    seconds = [seconds_of(dict(trial.config)) for trial in history.trials]
    np.testing.assert_allclose(np.exp(costs.of_trials[:20]), seconds)


def test_others_are_foretold_as_a_ridge_regression_does() -> None:
    from sklearn.linear_model import Ridge

    history = studied()
    costs = costs_of(history)
    logs = np.log([seconds_of(dict(trial.config)) for trial in history.trials])
    peer = Ridge(alpha=NUMBERS.cost_ridge).fit(costs.curves.features, logs)
    others = SPACE.sample(30, np.random.default_rng(5))
    x = Encoding(SPACE).encode(others)
    np.testing.assert_allclose(costs.of_configs(x), peer.predict(costs.curves.featured(x)))
    truth = np.log([seconds_of(config) for config in others])
    assert np.corrcoef(costs.of_configs(x), truth)[0, 1] > 0.99


def test_costs_count_where_time_or_a_cost_is_short_and_nowhere_else() -> None:
    assert by_cost(studied()) and by_cost(studied(None, cost="dollars"))
    assert not by_cost(studied(Totals(budget=300.0))) and not by_cost(studied(None))
    assert by_cost(studied(Totals(budget=1e5, timeout=1e3), ending=500.0))  # the tighter limit
    assert not by_cost(studied(Totals(budget=300.0, timeout=1e5), ending=500.0))
    assert not by_cost(studied(ending=2e4))  # the time limit of a run that is over
    rows = SPACE.sample(30, np.random.default_rng(0))
    assert not by_cost(studied(space=Pool(SPACE, rows)))


def test_few_costs_or_equal_ones_foretell_nothing() -> None:
    alike = studied(space=Space(rate=Float(0, 1)), seconds=lambda config: 0.1, loaded=0.0)
    for history in (studied(trials=3), alike):
        rows, space = history.derive(CurveTable()), history.problem.space
        assert UnitCosts.of(rows, StudyCurves.of(history, rows, Encoding(space))) is None


@pytest.mark.parametrize("strange", [math.inf, math.nan, 0.0, -1.0])
def test_a_strange_cost_says_nothing(strange: float) -> None:
    history = studied(trials=6)
    trial = len(history.trials)
    (config,) = SPACE.sample(1, np.random.default_rng(9))
    added = [TrialAdded(trial=trial, config=config), BudgetGranted(trial=trial, budget=3)]
    told = Reported(trial=trial, step=1, metrics={"loss": 1.0}, cost=strange)
    more = History.of([*history.events, *added, told])
    assert trial not in more.derive(CurveTable()).unit_costs
    assert np.isfinite(costs_of(more).of_trials).all()


def test_seconds_do_not_mix_with_a_cost_that_is_reported() -> None:
    problem = Problem(
        SPACE, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, 27), cost="dollars"
    )
    events: list[Event] = [StudyCreated(name="mixed", problem=problem.to_json(), method={})]
    for trial, config in enumerate(SPACE.sample(6, np.random.default_rng(0))):
        own = {"dollars": 2.0} if trial not in (0, 3) else {}
        events += [
            TrialAdded(trial=trial, config=config),
            BudgetGranted(trial=trial, budget=3),
            Reported(
                trial=trial, step=1, metrics={"loss": 1.0} | own, cost=own.get("dollars", 0.01)
            ),
        ]
    silent = History.of(events[:4]).derive(CurveTable()).unit_costs
    assert silent == {0: 0.01}  # measured, as long as none is reported
    assert History.of(events).derive(CurveTable()).unit_costs == dict.fromkeys((1, 2, 4, 5), 2.0)


def test_a_gain_is_divided_by_what_it_costs() -> None:
    history = studied()
    found, rng = modelled(history), np.random.default_rng(0)
    (gain,) = questions(found.situation, 0.0, rng)
    assert isinstance(gain.record, Gain) and gain.record.per_unit and gain.record.per_cost
    scores = score_candidates(gain, found.situation, found.new, np.arange(3), rng)
    assert gain.costs is not None
    configs = [dict(history.trials[own.trial].config) for own in scores.paused]
    units = scores.steps - np.array([own.used for own in scores.paused] + [0.0])
    seconds = [seconds_of(config) for config in configs]
    seconds.append(math.exp(gain.costs.of_configs(scores.new.x)[0]))
    goals = np.full(len(seconds), gain.goal)
    wins = gain.formula(scores.means[0], scores.deviations[0], goals)
    np.testing.assert_allclose(scores.score, wins - np.log(units * seconds))


def next_of_first_design(history: History) -> Action:
    """The next step of the first design where no paused trial leads."""
    rows, rng = history.derive(CurveTable()), np.random.default_rng(1)
    decision = FreezeThaw(initial=9).first_design(
        history, rows, BudgetLeft.of(history, rows), [], rng
    )
    assert decision is not None
    return decision.action


def test_the_first_design_takes_the_cheapest_of_those_that_come_next() -> None:
    for history, spread in (
        (studied(trials=6), NUMBERS.first_configs_compared_by_cost),
        (studied(None, trials=6), 1),
    ):
        some = first_configs(history, spread, spread, np.random.default_rng(1))
        action = next_of_first_design(history)
        assert isinstance(action, Start) and action.config == min(some, key=seconds_of)


def test_the_users_guess_comes_first_however_dear() -> None:
    space = Space(
        width=Float(16.0, 256.0, log=True, prior=(250.0, 0.1)),
        kind=Categorical(["u", "v"]),
        rate=Float(0, 1),
    )
    history = studied(trials=6, space=space)
    action = next_of_first_design(history)
    assert isinstance(action, Start) and action.config["width"] == 250.0


def late(loaded: float, *between: Event) -> float:
    """The share that is spent when 60 s of 100 have passed, ``loaded`` of them before training
    began; ``between`` comes after the first report."""
    problem = Problem(SPACE, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, 27))
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
        told = Reported(trial=0, step=step, metrics={"loss": 1.0}, cost=time - last, time=time)
        events += [told, *(between if step == 1 else ())]
    history = History.of(events)
    return BudgetLeft.of(history, history.derive(CurveTable())).spent_share


def test_what_passes_before_anything_is_trained_is_not_spent() -> None:
    assert late(0.0) == pytest.approx(60 / 100)
    assert late(40.0) == pytest.approx(20 / 60)
    other = StudyChanged(totals=Totals(n_trials=500), time=60.0)  # the time limit stays
    assert late(40.0, other) == pytest.approx(20 / 60)


def test_trials_that_fail_without_a_report_are_no_start() -> None:
    problem = Problem(SPACE, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, 27))
    one, other = SPACE.sample(2, np.random.default_rng(0))
    events: list[Event] = [
        StudyCreated(name="late", problem=problem.to_json(), method={}, time=0.0),
        StudyChanged(totals=Totals(timeout=100.0, since=0.0), time=0.0),
        TrialAdded(trial=0, config=one),
        BudgetGranted(trial=0, budget=3),
        Ended(trial=0, status="failed", message="out of memory", time=40.0),
        TrialAdded(trial=1, config=other, time=40.0),
        BudgetGranted(trial=1, budget=3, time=40.0),
        Reported(trial=1, step=1, metrics={"loss": 1.0}, cost=10.0, time=50.0),
    ]
    history = History.of(events)
    assert BudgetLeft.of(history, history.derive(CurveTable())).spent_share == pytest.approx(0.5)
