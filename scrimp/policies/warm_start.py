"""A policy that begins with configurations which past studies recommend, and then decides as it
would.

Any method learns this much from the past: the first configurations it starts are those of a
portfolio, at the budgets and with the tags the method itself gives out; from then on its models
rest on them.

    WarmStarted(policy, ({"lr": 1e-3}, {"lr": 1e-2})).decide(history, rng)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.history.notes import Notes, Recommended
from scrimp.policies.policy import Decision, Forecast, Policy, Start, Verdict
from scrimp.suggesters.known_configs import KNOWN
from scrimp.suggesters.past_knowledge import PastKnowledge
from scrimp.suggesters.suggester import Suggester

__all__ = ["WarmStarted"]


@dataclass(frozen=True)
class WarmStarted(Policy):
    """``inner``, whose first starts get ``configs``, as far as nobody tried them."""

    inner: Policy
    configs: tuple[Config, ...]

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """What ``inner`` decides; a new trial gets the next recommended configuration, and no model
        is fitted for it."""
        known = history.derive(KNOWN)
        left = [config for config in self.configs if config not in known]
        if not left or len(history.trials) >= len(self.configs):
            return self.inner.decide(history, rng)
        decision = self.inner.outline(history, rng)
        if not isinstance(decision.action, Start):
            return decision
        return Decision(replace(decision.action, config=dict(left[0])), Notes(reason=Recommended()))

    @property
    def chooser(self) -> Suggester | None:
        """That of ``inner``."""
        return self.inner.chooser

    @property
    def learns(self) -> bool:
        """As ``inner`` does."""
        return self.inner.learns

    def informed_by(self, past: PastKnowledge) -> Policy:
        """``inner`` takes what it can use."""
        return replace(self, inner=self.inner.informed_by(past))

    def outline(self, history: History, rng: np.random.Generator) -> Decision:
        """What ``inner`` says."""
        return self.inner.outline(history, rng)

    def may_resume(self, history: History, trial: int) -> bool:
        """What ``inner`` says."""
        return self.inner.may_resume(history, trial)

    def forecast(
        self,
        history: History,
        trials: Sequence[int],
        steps: Sequence[float],
        rng: np.random.Generator,
    ) -> Mapping[int, Forecast]:
        """What ``inner`` believes."""
        return self.inner.forecast(history, trials, steps, rng)

    def review(self, history: History, trial: int) -> Verdict:
        """What ``inner`` says."""
        return self.inner.review(history, trial)
