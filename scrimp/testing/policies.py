"""The batteries for policies and schedulers, and the random world in which they are tested.

    class TestMyPolicy(PolicyBattery):
        def policy(self) -> Policy:
            return MyPolicy()

    class TestMyScheduler(SchedulerBattery):
        def scheduler(self) -> Scheduler:
            return MyScheduler()

`play` runs a policy in a random world, one decision and one event at a time. Workers ask at random
moments; trials report, skip steps, overshoot, report late, fail, end early or vanish. Each decision
is checked:

- the same history gives the same decision, also when it is folded again from its log
- `Wait` only while something is in flight, `Finish` only when nothing is
- a grant is positive, more than the trial had, and never beyond the full budget; only a paused
  trial is resumed
- no configuration is added beyond the study's total, and every one is valid

    history = play(policy, World(seed=0, workers=3, failing=0.2))
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pytest

from scrimp.json_values import Json
from scrimp.methods.policy import Action, Policy, Scheduled, Start
from scrimp.schedulers.scheduler import Finish, Resume, Scheduler, Verdict, Wait
from scrimp.space.parameter import Float
from scrimp.space.space import Space
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


def _problem() -> Problem:
    return Problem(
        Space(x=Float(0.0, 1.0)), metrics={"loss": "minimize"}, budget=Budget("epoch", 1, 9)
    )


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
    problem: Problem = field(default_factory=_problem)
    method: Mapping[str, Json] = field(default_factory=dict)


def play(policy: Policy, world: World) -> History:
    """Return the history after ``world.events`` events, or when the policy finished; AssertionError
    where it breaks the contract."""
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
        created = StudyCreated(
            name="play", problem=world.problem.to_json(), method=dict(world.method)
        )
        self.history = History.of([created, StudyChanged(totals=Totals(n_trials=world.n_trials))])

    def append(self, *events: Event) -> None:
        self.history = self.history.with_events(events)

    def ask(self) -> bool:
        """Let a free worker ask; return True when the study is over."""
        stale = self.history.with_status("stale")
        if stale:
            self.append(
                BudgetGranted(
                    trial=stale[0].id, budget=stale[0].granted, attempt=stale[0].attempt + 1
                )
            )
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
                attempt = self.history.trials[action.trial].attempt + 1
                self.append(
                    decided,
                    BudgetGranted(trial=action.trial, budget=action.budget, attempt=attempt),
                )
        return False

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
        loss = (
            None
            if self.rng.random() < self.world.diverging
            else float(np.round(self.rng.random(), 2))
        )
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
        """After n_trials only promotions are granted; then the study is over, with nothing in
        flight."""
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
        """A configuration from the queue starts with the budget and tag that the policy would give
        its own."""
        history = self.play(World(workers=2, events=min(self.events, 30)))
        for length in (1, history.length // 2, history.length):
            part = History.of(history.events[:length])
            decided, outlined = (
                act(part, part.rng("decide")).action
                for act in (self.policy().decide, self.policy().outline)
            )
            if isinstance(decided, Start):
                assert isinstance(outlined, Start)
                assert (outlined.budget, outlined.tag, outlined.continue_from) == (
                    decided.budget,
                    decided.tag,
                    decided.continue_from,
                )
            else:
                assert outlined == decided


@dataclass(frozen=True)
class UniformSuggester(Suggester):
    """Uniform draws that ignore the history: the simplest partner of a scheduler."""

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """Draw ``count`` configurations at random."""
        del request
        return Suggestion(tuple(history.problem.space.sample(count, rng)))


class SchedulerBattery(PolicyBattery):
    """Tests for every scheduler: the rules for policies, with configurations drawn at random."""

    @abstractmethod
    def scheduler(self) -> Scheduler:
        """Return the scheduler under test."""

    def policy(self) -> Policy:
        """Return the scheduler with random configurations."""
        return Scheduled(self.scheduler(), UniformSuggester())
