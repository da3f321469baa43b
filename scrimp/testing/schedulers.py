"""The battery for schedulers: say how to make yours, and inherit the tests.

class TestMyScheduler(SchedulerBattery):
    def scheduler(self) -> Scheduler:
        return MyScheduler()
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from scrimp.history.history import History
from scrimp.policies.policy import Policy
from scrimp.policies.scheduled import Scheduled
from scrimp.schedulers.scheduler import Scheduler
from scrimp.suggesters.suggester import Request, Suggester, Suggestion
from scrimp.testing.policies import PolicyBattery

__all__ = ["SchedulerBattery", "UniformSuggester"]


@dataclass(frozen=True)
class UniformSuggester(Suggester):
    """Uniform draws, whatever happened: the plainest partner of a scheduler."""

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """``count`` configurations at random."""
        del request
        return Suggestion(tuple(history.problem.space.sample(count, rng)))


class SchedulerBattery(PolicyBattery):
    """What every scheduler must keep: the rules for policies, with configurations drawn at
    random."""

    @abstractmethod
    def scheduler(self) -> Scheduler:
        """The scheduler under test."""

    def policy(self) -> Policy:
        """The scheduler with random configurations."""
        return Scheduled(self.scheduler(), UniformSuggester())
