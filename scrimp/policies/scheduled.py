"""A scheduler and a suggester as one policy: how much comes from the one, what from the other.

Scheduled(AsynchronousHalving(), RandomSuggester())          # ASHA
"""

from dataclasses import dataclass, replace

import numpy as np

from scrimp.history.history import History
from scrimp.policies.policy import Decision, Policy, Start, Verdict
from scrimp.schedulers.scheduler import Sample, Scheduler
from scrimp.schedulers.study_end import wait_or_finish
from scrimp.suggesters.past_knowledge import PastKnowledge
from scrimp.suggesters.suggester import Request, Suggester

__all__ = ["Scheduled"]


@dataclass(frozen=True)
class Scheduled(Policy):
    """Asks ``scheduler`` what to do, and ``suggester`` for the configuration when that is a new
    one."""

    scheduler: Scheduler
    suggester: Suggester

    @property
    def chooser(self) -> Suggester:
        """The suggester."""
        return self.suggester

    @property
    def learns(self) -> bool:
        """As the suggester does."""
        return self.suggester.learns

    def informed_by(self, past: PastKnowledge) -> Policy:
        """The suggester takes what it can use; schedulers go by this study's own results."""
        return replace(self, suggester=self.suggester.informed_by(past))

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """The scheduler's request, with a configuration where it asks for one."""
        wanted = self.scheduler.next_request(history, rng)
        if not isinstance(wanted, Sample):
            return Decision(wanted)
        request = Request(
            wanted.budget, wanted.bracket, wanted.tag, self.scheduler.levels(history.problem)
        )
        suggestion = self.suggester.suggest(history, request, 1, rng)
        if not suggestion.configs:
            return Decision(
                wait_or_finish(history, "every configuration of the space was tried"),
                suggestion.notes,
            )
        start = Start(suggestion.configs[0], wanted.budget, wanted.tag, reason=wanted.reason)
        return Decision(start, suggestion.notes)

    def outline(self, history: History, rng: np.random.Generator) -> Decision:
        """The scheduler's request alone: no model is fitted."""
        wanted = self.scheduler.next_request(history, rng)
        if not isinstance(wanted, Sample):
            return Decision(wanted)
        return Decision(Start({}, wanted.budget, wanted.tag, reason=wanted.reason))

    def may_resume(self, history: History, trial: int) -> bool:
        """The scheduler's answer."""
        return self.scheduler.may_resume(history, trial)

    def review(self, history: History, trial: int) -> Verdict:
        """The scheduler's verdict."""
        return self.scheduler.review(history, trial)
