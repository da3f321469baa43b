"""Any policy may begin with what past studies recommend."""

import numpy as np

from scrimp.history.problem import Budget, Problem
from scrimp.policies.policy import Start
from scrimp.policies.scheduled import Scheduled
from scrimp.policies.warm_start import WarmStarted
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.schedulers.run_to_end import RunToEnd
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.suggesters.random import RandomSuggester
from scrimp.testing.suggesters import begin, pend, tell

SPACE = Space(lr=Float(0.0, 1.0))
COLD = Scheduled(RunToEnd(), RandomSuggester())
WARM = WarmStarted(COLD, ({"lr": 0.25}, {"lr": 0.75}))


def test_the_first_starts_are_those_recommended_then_the_policy_decides() -> None:
    history = begin(Problem(SPACE))
    for expected in (0.25, 0.75):
        action = WARM.decide(history, history.rng("decide")).action
        assert isinstance(action, Start) and action.config == {"lr": expected} and action.budget == 1.0
        history = tell(history, action.config, 0.5)
    assert WARM.decide(history, history.rng("decide")) == COLD.decide(history, history.rng("decide"))


def test_what_somebody_tried_is_not_repeated() -> None:
    history = pend(begin(Problem(SPACE)), {"lr": 0.25})
    action = WARM.decide(history, np.random.default_rng(0)).action
    assert isinstance(action, Start) and action.config == {"lr": 0.75}
    both = WarmStarted(COLD, ({"lr": 0.25}, {"lr": 0.25}))
    assert both.decide(history, history.rng("decide")) == COLD.decide(history, history.rng("decide"))


def test_budgets_tags_and_everything_else_are_the_policys_own() -> None:
    inner = Scheduled(AsynchronousHalving(), RandomSuggester())
    warm = WarmStarted(inner, ({"lr": 0.25},))
    history = begin(Problem(SPACE, budget=Budget("epoch", 1, 9)))
    action, cold = warm.decide(history, history.rng("x")).action, inner.decide(history, history.rng("x")).action
    assert isinstance(action, Start) and isinstance(cold, Start)
    assert (action.budget, action.tag) == (cold.budget, cold.tag) and action.config == {"lr": 0.25}
    history = pend(history, {"lr": 0.25}, budget=1)
    assert warm.review(history, 0) == inner.review(history, 0)
    assert warm.may_resume(history, 0) == inner.may_resume(history, 0)
    assert warm.forecast(history, [0], [1.0], history.rng("x")) == {}
