"""The batteries for policies, schedulers and suggesters, and the random world in which they are
tested.

`play` runs a policy in a random world, one decision and one event at a time. Workers ask at random
moments; trials report, skip steps, overshoot, report late, fail, end early or vanish. Each decision
is checked:

- the same history gives the same decision, also when it is folded again from its log
- `Wait` only while something is in flight, `Finish` only when nothing is
- a grant is positive, more than the trial had, and never beyond the full budget; only a paused
  trial is resumed
- no configuration is added beyond the study's total, and every one is valid

    history = play(policy, World(seed=0, workers=3, failing=0.2))

The functions that build histories can be used in tests of any decision:

    history = begin(Problem(space))
    history = tell(history, {"x": 0.5}, 0.25)          # a finished trial
    history = pend(history, {"x": 0.7})                # one under evaluation
    history = drive(RandomSuggester(), history, 10, lambda config: config["x"])
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pytest

from scrimp.json_values import Config, Json
from scrimp.methods.policy import Action, Policy, Scheduled, Start
from scrimp.schedulers.scheduler import Finish, Resume, Scheduler, Verdict, Wait
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
from scrimp.study_log.limits import Totals
from scrimp.study_log.problem import Budget, Problem
from scrimp.study_log.trial import Trial
from scrimp.suggesters.suggester import Request, Suggester, Suggestion

PROBLEM = Problem(Space(x=Float(0.0, 1.0)), {"loss": "minimize"}, budget=Budget("epoch", 1, 9))


@dataclass(frozen=True)
class World:
    """The probabilities of events, and the largest number of events."""

    seed: int = 0
    workers: int = 3
    events: int = 120
    n_trials: int | None = None
    failing: float = 0.0
    vanishing: float = 0.0
    ending_early: float = 0.0
    skipping: float = 0.0
    diverging: float = 0.0
    problem: Problem = PROBLEM
    method: Mapping[str, Json] = field(default_factory=dict)


def play(policy: Policy, world: World) -> History:
    """Return the history in which the policy played; AssertionError where it breaks the contract."""
    game = _Game(policy, world)
    for _ in range(world.events):
        busy = len(game.history.with_status("running"))
        if busy < world.workers and (not busy or game.rng.random() < 0.7) and not game.waiting:
            if game.ask():
                return game.history
        elif busy:
            game.happen()
        else:
            raise AssertionError("the policy waits although nothing runs")
    return game.history


class _Game:
    def __init__(self, policy: Policy, world: World) -> None:
        self.policy = policy
        self.world = world
        self.rng = np.random.default_rng(world.seed)
        self.waiting = False
        problem, method = world.problem.to_json(), dict(world.method)
        created = StudyCreated(name="play", problem=problem, method=method)
        self.history = History.of([created, StudyChanged(totals=Totals(n_trials=world.n_trials))])

    def append(self, *events: Event) -> None:
        self.history = self.history.with_events(events)

    def ask(self) -> bool:
        """Let a free worker ask; return True when the study is over."""
        stale = self.history.with_status("stale")
        if stale:
            self._resume(stale[0], stale[0].granted)
            return False
        action = self._decision()
        check(action, self.history)
        decided = Decided(decision=self.history.decisions, seen=self.history.length)
        match action:
            case Wait():
                self.waiting = True
            case Finish():
                return True
            case Start():
                number = len(self.history.trials)
                added = TrialAdded(trial=number, config=action.config, tag=dict(action.tag))
                self.append(decided, added, BudgetGranted(trial=number, budget=action.budget))
            case Resume():
                self.append(decided)
                self._resume(self.history.trials[action.trial], action.budget)
        return False

    def _resume(self, trial: Trial, budget: float) -> None:
        self.append(BudgetGranted(trial=trial.id, budget=budget, attempt=trial.attempt + 1))

    def _decision(self) -> Action:
        decisions = [
            self.policy.decide(history, history.rng("decide"))
            for history in (self.history, self.history, History.of(self.history.events))
        ]
        assert decisions[0] == decisions[1], "the same history gave two decisions"
        assert decisions[0] == decisions[2], "a history folded again gave another decision"
        return decisions[0].action

    def happen(self) -> None:
        """Let something happen to one of the running trials."""
        self.waiting = False
        running = self.history.with_status("running")
        trial = running[self.rng.integers(len(running))]
        draw = self.rng.random(4)
        if draw[0] < self.world.failing:
            self.append(Ended(trial=trial.id, status="failed", attempt=trial.attempt))
        elif draw[1] < self.world.vanishing:
            self.append(Lost(trial=trial.id, attempt=trial.attempt))
            # The vanished worker may still report.
            if self.rng.random() < 0.5:
                self._report(trial)
        elif draw[2] < self.world.ending_early:
            self.append(Ended(trial=trial.id, status="completed", attempt=trial.attempt))
        else:
            self._report(trial)

    def _report(self, trial: Trial) -> None:
        full = self.world.problem.full_budget
        step = min(trial.budget + 1.0, full)
        if self.rng.random() < self.world.skipping:
            step = min(trial.budget + float(self.rng.integers(-2, 7)), full)
            step = max(step, 1.0)
        diverges = self.rng.random() < self.world.diverging
        loss = None if diverges else float(np.round(self.rng.random(), 2))
        metrics = {self.world.problem.metric: loss}
        self.append(Reported(trial=trial.id, step=step, metrics=metrics, attempt=trial.attempt))
        if self.history.trials[trial.id].status == "running":
            verdict = self.policy.review(self.history, trial.id)
            assert verdict is self.policy.review(History.of(self.history.events), trial.id), (
                "two verdicts on one report"
            )
            if verdict is Verdict.STOP:
                self.append(Ended(trial=trial.id, status="stopped", attempt=trial.attempt))


def check(action: Action, history: History) -> None:
    """Raise AssertionError when ``action`` breaks the contract."""
    full = history.problem.full_budget
    running = history.counts["running"]
    match action:
        case Wait():
            assert running, "Wait although nothing runs"
        case Finish():
            assert not running, "Finish although something runs"
        case Start():
            total = history.totals.n_trials
            assert total is None or len(history.trials) < total, (
                "a configuration beyond the study's total"
            )
            assert 0 < action.budget <= full, (
                f"a first grant of {action.budget}, where the full budget is {full}"
            )
            assert history.problem.space.validate(action.config) == action.config
        case Resume():
            trial = history.trials[action.trial]
            assert trial.status == "paused", f"a grant to a trial that is {trial.status}"
            assert trial.granted < action.budget <= full, (
                f"a grant of {action.budget} after {trial.granted} of {full}"
            )
            assert trial.budget < action.budget, (
                f"a grant of {action.budget} to a trial that used {trial.budget}"
            )


class PolicyBattery(ABC):
    """Tests for every policy, in increasingly hostile worlds; `play` checks the rules.

    ``seeds``, ``events`` and ``trials`` set the length of each world; a policy that fits a model at
    every decision uses fewer.
    """

    seeds: ClassVar[Sequence[int]] = range(2)
    events: ClassVar[int] = 120
    trials: ClassVar[int] = 12

    @abstractmethod
    def policy(self) -> Policy:
        """Return the policy under test."""

    def world(self, world: World) -> World:
        """Return the world to play in. A policy for its own kind of study sets problem and method,
        with room for ``trials`` configurations."""
        return world

    def play(self, world: World) -> History:
        """Return the history that the policy produces in a world."""
        return play(self.policy(), self.world(world))

    @pytest.mark.parametrize(
        "world",
        [
            pytest.param(World(workers=4), id="calm"),
            pytest.param(World(workers=1, failing=0.1), id="one worker"),
            pytest.param(World(failing=0.3, diverging=0.2), id="failing trials"),
            pytest.param(World(vanishing=0.3), id="vanishing workers"),
            pytest.param(World(skipping=0.6, ending_early=0.1), id="skipped and late reports"),
        ],
    )
    def test_keeps_the_rules(self, world: World) -> None:
        for seed in self.seeds:
            history = self.play(replace(world, seed=seed, events=self.events))
            assert history.spent > 0

    def test_ends_when_no_further_configuration_may_be_added(self) -> None:
        """After n_trials only promotions are granted; then the study ends, all is done."""
        for seed in self.seeds:
            world = World(
                seed=seed,
                events=2_000,
                n_trials=self.trials,
                failing=0.05,
                vanishing=0.05,
                skipping=0.1,
            )
            history = self.play(world)
            assert len(history.trials) == self.trials
            assert history.counts["running"] + history.counts["stale"] == 0

    def test_ends_when_everything_fails(self) -> None:
        history = self.play(World(n_trials=self.trials, failing=1.0, events=500))
        assert history.counts["failed"] == self.trials

    def test_works_without_budgets(self) -> None:
        problem = Problem(Space(x=Float(0.0, 1.0)), {"loss": "minimize"})
        history = self.play(World(problem=problem, n_trials=self.trials, failing=0.1, events=500))
        assert len(history.trials) == self.trials

    def test_the_outline_is_the_decision_without_its_configuration(self) -> None:
        """A configuration from the queue starts with the budget and tag of the policy's own."""
        history = self.play(World(workers=2, events=min(self.events, 30)))
        for length in (1, history.length // 2, history.length):
            part = History.of(history.events[:length])
            decided, outlined = (
                act(part, part.rng("decide")).action
                for act in (self.policy().decide, self.policy().outline)
            )
            if isinstance(decided, Start):
                assert isinstance(outlined, Start)
                assert (outlined.budget, outlined.tag) == (decided.budget, decided.tag)
                assert outlined.continue_from == decided.continue_from
            else:
                assert outlined == decided


@dataclass(frozen=True)
class UniformSuggester(Suggester):
    """Uniform draws that ignore the history: the simplest partner of a scheduler."""

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        return Suggestion(tuple(history.problem.space.sample(count, rng)))


class SchedulerBattery(PolicyBattery):
    """Tests for every scheduler: the rules for policies, with configurations drawn at random."""

    @abstractmethod
    def scheduler(self) -> Scheduler:
        """Return the scheduler under test."""

    def policy(self) -> Policy:
        """Return the scheduler with random configurations."""
        return Scheduled(self.scheduler(), UniformSuggester())


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
    method: dict[str, Json] = {"name": "test", "settings": {}}
    return History.of([StudyCreated(name="test", problem=problem.to_json(), method=method)])


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
        whole: dict[str, float | None] = {problem.metric: value, **metrics}
        end = [Reported(trial=number, step=problem.full_budget, metrics=whole)]
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
        known = _keys(space, [trial.config for trial in history.trials])
        new = _keys(space, suggestion.configs)
        assert len({*known[:8], *new}) == 8 + len(new)
        assert not set(new) & set(known)

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
            once = checked_record(record, "", 0)
            assert checked_record(once, "", 0) == once

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
