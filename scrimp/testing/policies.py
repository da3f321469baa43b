"""The battery for policies: say how to make yours, and inherit the tests.

class TestMyPolicy(PolicyBattery):
    def policy(self) -> Policy:
        return MyPolicy()
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from scrimp.history.history import History
from scrimp.history.problem import Problem
from scrimp.policies.policy import Policy, Start
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.testing.play import World, play

__all__ = ["PolicyBattery"]


class PolicyBattery(ABC):
    """What every policy must keep, in worlds that are more and more hostile; the rules are in
    `play`.

    ``seeds``, ``events`` and ``trials`` say how long each world is played; a policy that fits a
    model at every decision takes fewer.
    """

    seeds: ClassVar[Sequence[int]] = range(2)
    events: ClassVar[int] = 120
    trials: ClassVar[int] = 12

    @abstractmethod
    def policy(self) -> Policy:
        """The policy under test."""

    def world(self, world: World) -> World:
        """Where it is played; a policy for studies of its own kind says which problem and method
        these have, with room for ``trials`` configurations."""
        return world

    def play(self, world: World) -> History:
        """The history that it makes there."""
        return play(self.policy(), self.world(world))

    def test_keeps_the_rules_in_a_calm_world(self) -> None:
        """Everything reports as it should."""
        for seed in self.seeds:
            history = self.play(World(seed=seed, events=self.events, workers=4))
            assert history.spent > 0

    def test_keeps_the_rules_with_one_worker(self) -> None:
        """One thing at a time."""
        for seed in self.seeds:
            self.play(World(seed=seed, events=self.events, workers=1, failing=0.1))

    def test_survives_failed_trials(self) -> None:
        """Many fail, some report values that are not finite."""
        for seed in self.seeds:
            self.play(World(seed=seed, events=self.events, failing=0.3, diverging=0.2))

    def test_survives_vanished_workers(self) -> None:
        """Trials go stale and are taken over."""
        for seed in self.seeds:
            self.play(World(seed=seed, events=self.events, vanishing=0.3))

    def test_survives_reports_that_skip_overshoot_or_come_late(self) -> None:
        """Steps in any order, runs that end by themselves."""
        for seed in self.seeds:
            self.play(World(seed=seed, events=self.events, skipping=0.6, ending_early=0.1))

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
        """Nothing can be learned, and nothing hangs."""
        history = self.play(World(n_trials=self.trials, failing=1.0, events=500))
        assert history.counts["failed"] == self.trials

    def test_works_without_budgets(self) -> None:
        """One step is a full training."""
        problem = Problem(Space(x=Float(0.0, 1.0)), metric="loss")
        history = self.play(World(problem=problem, n_trials=self.trials, failing=0.1, events=500))
        assert len(history.trials) == self.trials

    def test_the_outline_is_the_decision_without_its_configuration(self) -> None:
        """So that a configuration from the queue begins where, and as, one of the policy's own
        would."""
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
