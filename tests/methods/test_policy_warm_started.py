"""Any policy may begin with what past studies recommend."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.methods.policy import Policy, Scheduled, Start, WarmStarted
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.schedulers.scheduler import RunToEnd
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.study_log.problem import Budget, Problem
from scrimp.suggesters import bayesian
from scrimp.suggesters.bayesian import BayesianSuggester
from scrimp.suggesters.suggester import ForecastPoints, Suggester, Suggestion
from scrimp.suggesters.untried_configs import RandomSuggester
from scrimp.testing.policies import PolicyBattery, begin, pend, tell

SPACE = Space(lr=Float(0.0, 1.0))
COLD = Scheduled(RunToEnd(), RandomSuggester())
WARM = WarmStarted(COLD, ({"lr": 0.25}, {"lr": 0.75}))


class TestWarmStarted(PolicyBattery):
    def policy(self) -> Policy:
        scheduled = Scheduled(AsynchronousHalving(brackets=2), RandomSuggester())
        return WarmStarted(scheduled, ({"x": 0.25}, {"x": 0.75}, {"x": 0.5}))


@pytest.fixture
def study(tmp_path: Path) -> scrimp.Study:
    """A study with a model of its own that begins with what a past one recommends."""
    url = f"sqlite:///{tmp_path}/s.db"
    past = scrimp.create_study("past", SPACE, method="sobol", storage=url, seed=0)
    past.optimize(lambda trial: (trial.params["lr"] - 0.3) ** 2, n_trials=8)
    made = scrimp.create_study(
        "new", SPACE, method="gp-ei:initial=3", learn_from=["past"], storage=url, seed=0
    )
    made.optimize(lambda trial: (trial.params["lr"] - 0.35) ** 2, n_trials=5)
    return made


def test_pictures_show_the_model_that_decides(study: scrimp.Study) -> None:
    assert isinstance(study.suggester, BayesianSuggester) and study.suggester.acquisition == "ei"
    assert "otherwise" not in json.dumps(
        scrimp.plots.surrogate(study, "lr").to_plotly_json(), default=str
    )


def test_a_queued_configuration_costs_no_model(
    study: scrimp.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("a model was fitted")

    monkeypatch.setattr(bayesian, "fit_models", refuse)
    study.enqueue({"lr": 0.123})
    assert study.ask().params == {"lr": 0.123}
    with pytest.raises(StudyError, match="a model was fitted"):
        study.ask()


def test_recommended_configurations_cost_no_model() -> None:
    @dataclass(frozen=True)
    class Costly(Suggester):
        def suggest(self, *arguments: object) -> Suggestion:
            raise AssertionError("a model was fitted")

    history = begin(Problem(SPACE))
    warm = WarmStarted(Scheduled(RunToEnd(), Costly()), ({"lr": 0.25},))
    action = warm.decide(history, history.rng("decide")).action
    assert isinstance(action, Start) and action.config == {"lr": 0.25}


def test_the_first_starts_are_those_recommended_then_the_policy_decides() -> None:
    history = begin(Problem(SPACE))
    for expected in (0.25, 0.75):
        action = WARM.decide(history, history.rng("decide")).action
        assert (
            isinstance(action, Start) and action.config == {"lr": expected} and action.budget == 1.0
        )
        history = tell(history, action.config, 0.5)
    assert WARM.decide(history, history.rng("decide")) == COLD.decide(
        history, history.rng("decide")
    )


def test_what_somebody_tried_is_not_repeated() -> None:
    history = pend(begin(Problem(SPACE)), {"lr": 0.25})
    action = WARM.decide(history, np.random.default_rng(0)).action
    assert isinstance(action, Start) and action.config == {"lr": 0.75}
    both = WarmStarted(COLD, ({"lr": 0.25}, {"lr": 0.25}))
    assert both.decide(history, history.rng("decide")) == COLD.decide(
        history, history.rng("decide")
    )


def test_budgets_tags_and_everything_else_are_the_policys_own() -> None:
    inner = Scheduled(AsynchronousHalving(), RandomSuggester())
    warm = WarmStarted(inner, ({"lr": 0.25},))
    history = begin(Problem(SPACE, budget=Budget("epoch", 1, 9)))
    action, cold = (
        warm.decide(history, history.rng("x")).action,
        inner.decide(history, history.rng("x")).action,
    )
    assert isinstance(action, Start) and isinstance(cold, Start)
    assert (action.budget, action.tag) == (cold.budget, cold.tag) and action.config == {"lr": 0.25}
    history = pend(history, {"lr": 0.25}, budget=1)
    assert warm.review(history, 0) == inner.review(history, 0)
    assert warm.may_resume(history, 0) == inner.may_resume(history, 0)
    points = ForecastPoints([{"lr": 0.25}], np.ones(1))
    assert warm.forecast(history, points, history.rng("x")) == ()
