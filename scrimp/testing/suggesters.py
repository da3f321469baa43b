"""The battery for suggesters: return yours, and inherit the tests.

    class TestMySuggester(SuggesterBattery):
        def suggester(self) -> Suggester:
            return MySuggester()

The functions that build histories can be used in tests of any decision:

    history = begin(Problem(space))
    history = tell(history, {"x": 0.5}, 0.25)          # a finished trial
    history = pend(history, {"x": 0.7})                # one under evaluation
    history = drive(RandomSuggester(), history, 10, lambda config: config["x"])
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest

from scrimp.json_values import Config
from scrimp.space.parameter import Categorical, Float, Int, Ordinal
from scrimp.space.space import Pool, Space
from scrimp.study.decisions import checked_record
from scrimp.study_log.constraints import AtMost
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Ended,
    Event,
    Lost,
    Reported,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from scrimp.suggesters.suggester import Request, Suggester, Suggestion

CONDITIONAL = Space(
    lr=Float(1e-5, 1e-1, log=True),
    layers=Int(1, 8),
    width=Ordinal([64, 128, 256, 512]),
    optimizer=Categorical(["adamw", "sgd"]),
    momentum=Float(0.0, 0.99, when={"optimizer": "sgd"}),
    batch=32,
)
FINITE = Space(a=Categorical(["x", "y", "z"]), b=Int(1, 2), c=Ordinal([1, 10], when={"a": "x"}))
"""A space of 8 configurations."""

SPACES = {
    "line": Space(x=Float(-1, 1)),
    "conditional": CONDITIONAL,
    "choices": Space(
        a=Categorical(list("abcdef")), b=Categorical([True, False, None, 1, 0]), c=Int(1, 2000)
    ),
    "pool": Pool(CONDITIONAL, CONDITIONAL.sample(40, np.random.default_rng(0))),
}


def begin(problem: Problem) -> History:
    """Return the history of a new study."""
    return History.of(
        [
            StudyCreated(
                name="test", problem=problem.to_json(), method={"name": "test", "settings": {}}
            )
        ]
    )


def pend(history: History, config: Config, budget: float | None = None) -> History:
    """Return the history with one more trial, which is running."""
    number = len(history.trials)
    granted = history.problem.full_budget if budget is None else budget
    return history.with_events(
        [
            Decided(decision=history.decisions, seen=history.length),
            TrialAdded(trial=number, config=config),
            BudgetGranted(trial=number, budget=granted),
        ]
    )


def tell(history: History, config: Config, value: float | None, **metrics: float) -> History:
    """Return the history with a trial that reported ``value`` at the end; None: it failed."""
    number, problem = len(history.trials), history.problem
    end: list[Event] = [Ended(trial=number, status="failed", message="test")]
    if value is not None:
        end = [
            Reported(
                trial=number, step=problem.full_budget, metrics={problem.metric: value, **metrics}
            )
        ]
    return pend(history, config).with_events(end)


def ask(suggester: Suggester, history: History, count: int = 1) -> Suggestion:
    """Return the suggestion that the loop would get."""
    budget = history.problem.budget
    request = Request(history.problem.full_budget if budget is None else budget.minimum)
    return suggester.suggest(history, request, count, history.rng("suggest"))


def drive(
    suggester: Suggester, history: History, trials: int, objective: Callable[[Config], float]
) -> History:
    """Return the history with ``trials`` more trials, each suggested, run to the end and told."""
    for _ in range(trials):
        config = ask(suggester, history).configs[0]
        history = tell(history, config, objective(config))
    return history


def _loss(config: Config) -> float:
    """Return a loss that depends on every parameter and is the same in every process."""
    return sum(
        len(str(value)) + (value if isinstance(value, int | float) else 0)
        for value in config.values()
    )


def _keys(space: Space, configs: Iterable[Config]) -> list[object]:
    return [space.key(config) for config in configs]


class SuggesterBattery(ABC):
    """Tests for every suggester."""

    @abstractmethod
    def suggester(self) -> Suggester:
        """Return the suggester under test."""

    @pytest.mark.parametrize("name", SPACES)
    def test_suggestions_are_valid_and_new(self, name: str) -> None:
        space = SPACES[name]
        history = drive(self.suggester(), begin(Problem(space)), 8, _loss)
        for config in space.sample(3, np.random.default_rng(1)):
            history = pend(history, config)
        suggestion = ask(self.suggester(), history, 3)
        assert len(suggestion.configs) == 3
        for config in suggestion.configs:
            assert space.validate(config) == config
            assert list(space.validate(config)) == list(config)
        keys = _keys(
            space,
            [trial.config for trial in history.trials if trial.id < 8] + list(suggestion.configs),
        )
        assert len(set(keys)) == len(keys)
        assert not set(_keys(space, suggestion.configs)) & set(
            _keys(space, [t.config for t in history.trials])
        )

    @pytest.mark.parametrize("name", SPACES)
    def test_the_same_history_gives_the_same_suggestion(self, name: str) -> None:
        """Ask again, with a new instance, and with the history folded again from the log."""
        history = drive(self.suggester(), begin(Problem(SPACES[name], seed=3)), 7, _loss)
        history = pend(history, ask(self.suggester(), history).configs[0])
        first, length = ask(self.suggester(), history, 2), history.length
        assert ask(self.suggester(), history, 2) == first
        assert ask(self.suggester(), History.of(history.events), 2) == first
        assert history.length == length

    def test_an_earlier_history_is_answered_as_it_was(self) -> None:
        early = drive(self.suggester(), begin(Problem(SPACES["conditional"])), 6, _loss)
        first = ask(self.suggester(), early)
        drive(self.suggester(), early, 2, _loss)
        assert ask(self.suggester(), early) == first

    def test_notes_are_plain_json(self) -> None:
        for trials in (0, 9):
            history = drive(self.suggester(), begin(Problem(SPACES["conditional"])), trials, _loss)
            record = ask(self.suggester(), history).record
            assert checked_record(record, "", 0) == checked_record(
                checked_record(record, "", 0), "", 0
            )

    def test_a_finite_space_is_exhausted_without_repetition(self) -> None:
        history = drive(self.suggester(), begin(Problem(FINITE)), 5, _loss)
        rest = ask(self.suggester(), history, 10).configs
        assert len(rest) == 3
        for config in rest:
            history = pend(history, config)
        assert len(set(_keys(FINITE, [trial.config for trial in history.trials]))) == 8
        assert ask(self.suggester(), history, 2).configs == ()

    def test_a_pool_is_exhausted_without_repetition(self) -> None:
        pool = Pool(CONDITIONAL, CONDITIONAL.sample(9, np.random.default_rng(2)))
        history = drive(self.suggester(), begin(Problem(pool)), 7, _loss)
        rest = ask(self.suggester(), history, 5).configs
        assert len(rest) == 2
        assert ask(self.suggester(), pend(pend(history, rest[0]), rest[1])).configs == ()

    @pytest.mark.parametrize("outcome", ["failed", "constant", "extreme", "pending", "stale"])
    def test_whatever_trials_do(self, outcome: str) -> None:
        space = SPACES["conditional"]
        history = begin(Problem(space))
        for number, config in enumerate(space.sample(10, np.random.default_rng(4))):
            value = {"constant": 1.0, "extreme": (-1.0) ** number * 1e300}.get(outcome)
            if outcome in ("pending", "stale"):
                history = pend(history, config)
            else:
                history = tell(history, config, value)
            if outcome == "stale":
                history = history.with_events([Lost(trial=number, attempt=1)])
        config = ask(self.suggester(), history).configs[0]
        assert space.validate(config) == config

    def test_curves_at_many_budgets(self) -> None:
        space = SPACES["conditional"]
        history = begin(Problem(space, budget=Budget("epoch", 1, 9)))
        for number, config in enumerate(space.sample(14, np.random.default_rng(5))):
            history = pend(history, config, budget=(1, 3, 9)[number % 3])
            for step in range(1, (1, 3, 9)[number % 3] + 1):
                metrics = {"value": None if number == 4 else _loss(config) / step}
                history = history.with_events([Reported(trial=number, step=step, metrics=metrics)])
        history = pend(history, space.sample(1, np.random.default_rng(6))[0], budget=1)
        for config in ask(self.suggester(), history, 2).configs:
            assert space.validate(config) == config

    def test_constraints_and_maximisation(self) -> None:
        space = SPACES["conditional"]
        problem = Problem(space, {"value": "maximize"}, constraints={"memory": AtMost(4.0)})
        history = begin(problem)
        for number, config in enumerate(space.sample(12, np.random.default_rng(7))):
            reported = {} if number == 5 else {"memory": float(config["layers"])}
            history = tell(history, config, _loss(config), **reported)
        config = ask(self.suggester(), history).configs[0]
        assert space.validate(config) == config

    def test_a_space_may_grow(self) -> None:
        """Suggestions come from the present space, and old trials do no harm."""
        old = Space(a=Categorical(["x", "y"]), b=Int(1, 3))
        new = Space(a=Categorical(["x", "y", "z"]), b=Int(1, 3), c=Categorical([0, 1], default=0))
        problem = Problem(old)
        history = drive(self.suggester(), begin(problem), 5, _loss)
        history = history.with_events([StudyChanged(problem=replace(problem, space=new).to_json())])
        configs = ask(self.suggester(), history, 20).configs
        assert len(configs) == 13  # of 18, without the 5 old trials, whose c is 0
        assert all(new.validate(config) == config for config in configs)
