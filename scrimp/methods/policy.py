"""The contract of policies, the whole decision of configuration and budget together, and policies
composed of other parts.

`Scheduled(scheduler, suggester)` makes a policy of two independent parts; methods that weigh new
configurations against paused ones (DyHPO, freeze-thaw, DEHB) are policies themselves. A decision is
a sum type with reasons, never a boolean or a string:

    match Scheduled(AsynchronousHalving(), RandomSuggester()).decide(history, rng).action:      # ASHA
        case Start(config, budget): ...
        case Resume(trial, budget): ...
        case Wait() | Finish(): ...

`WarmStarted` starts any method with configurations that past studies recommend, at the budgets and
with the tags that the method itself gives out; its models then learn from these trials.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from scrimp.acquisition.gain_left import GainLeft
from scrimp.json_values import Config, Json
from scrimp.schedulers.scheduler import (
    ALL_TRIED,
    Finish,
    Resume,
    RunToEnd,
    Sample,
    Scheduler,
    Verdict,
    Wait,
    trials_left,
    wait_or_finish,
)
from scrimp.study_log.decision_record import EMPTY_RECORD, DecisionRecord, Grant, Recommended
from scrimp.study_log.history import History
from scrimp.suggesters.suggester import ForecastPoints, PastKnowledge, Request, Suggester
from scrimp.suggesters.untried_configs import KNOWN

if TYPE_CHECKING:  # loading it takes SciPy
    from scrimp.surrogates.forecast import ForecastColumn


@dataclass(frozen=True)
class Start:
    """Try a new configuration with this first budget; ``continue_from`` names a trial whose
    checkpoint it begins with."""

    config: Config
    budget: float
    tag: Mapping[str, Json] = field(default_factory=dict)
    continue_from: int | None = None
    reason: Grant | str = ""


Action = Start | Resume | Wait | Finish


@dataclass(frozen=True)
class Decision:
    """An action and its record for the log: fitted parameters, reasons, degraded flags."""

    action: Action
    record: DecisionRecord = EMPTY_RECORD


class Policy(ABC):
    """Decides jointly; a frozen value, and a function of the history."""

    guided: ClassVar[bool] = True
    """False for policies that take no notice of the user's guesses, the priors of parameters."""

    @property
    def chooser(self) -> Suggester | None:
        """The part that chooses configurations, whose beliefs pictures show; None for a method that
        decides jointly. A wrapper returns that of its inner policy.
        """
        return None

    @property
    def learns(self) -> bool:
        """True for methods that start in their own way with past studies; others start with
        configurations that these recommend (`WarmStarted`)."""
        return False

    def informed_by(self, past: PastKnowledge) -> "Policy":
        """Return a copy informed by past studies; by default, self."""
        return self

    @abstractmethod
    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """Decide what a free worker does next."""

    def outline(self, history: History, rng: np.random.Generator) -> Decision:
        """Decide without choosing a configuration: that of a `Start` is ignored.

        Called when the configuration comes from the queue, or when there is no room for another
        one. The default decides in full; methods whose configurations need a model skip it here.
        """
        return self.decide(history, rng)

    def may_resume(self, history: History, trial: int) -> bool:
        """Return False for a paused trial that can never resume, even in a study that grows; its
        checkpoints are then removed."""
        return True

    def review(self, history: History, trial: int) -> Verdict:
        """Decide whether this trial continues after its newest report."""
        return Verdict.CONTINUE

    def gain_left(self, history: History, rng: np.random.Generator) -> GainLeft | None:
        """Return the improvement that the rest of the study is expected to bring; None without a
        model of it, the default."""
        return None

    def forecast(
        self, history: History, points: ForecastPoints, rng: np.random.Generator
    ) -> "Sequence[ForecastColumn]":
        """Predict every metric, constraint and cost that the method has a model of, with the
        hyperparameters that its last decision recorded; empty without a model, the default."""
        return ()


@dataclass(frozen=True)
class Scheduled(Policy):
    """``scheduler`` decides how much to train, ``suggester`` which new configuration to try."""

    scheduler: Scheduler
    suggester: Suggester

    @property
    def chooser(self) -> Suggester:
        return self.suggester

    @property
    def learns(self) -> bool:
        return self.suggester.learns

    def informed_by(self, past: PastKnowledge) -> Policy:
        """Return a copy whose suggester is informed by past studies; schedulers are not."""
        return replace(self, suggester=self.suggester.informed_by(past))

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """The scheduler's request, with a configuration where it asks for one."""
        wanted = self.scheduler.next_request(history, rng)
        if not isinstance(wanted, Sample):
            return Decision(wanted)
        levels = self.scheduler.levels(history.problem)
        request = Request(wanted.budget, wanted.bracket, wanted.tag, levels)
        suggestion = self.suggester.suggest(history, request, 1, rng)
        if not suggestion.configs:
            return Decision(wait_or_finish(history, ALL_TRIED), suggestion.record)
        start = Start(suggestion.configs[0], wanted.budget, wanted.tag, reason=wanted.reason)
        return Decision(start, suggestion.record)

    def outline(self, history: History, rng: np.random.Generator) -> Decision:
        """The scheduler's request alone: no model is fitted."""
        wanted = self.scheduler.next_request(history, rng)
        if not isinstance(wanted, Sample):
            return Decision(wanted)
        return Decision(Start({}, wanted.budget, wanted.tag, reason=wanted.reason))

    def forecast(
        self, history: History, points: ForecastPoints, rng: np.random.Generator
    ) -> "Sequence[ForecastColumn]":
        """The forecast of the suggester at the levels of the scheduler."""
        levels = self.scheduler.levels(history.problem)
        return self.suggester.forecast(history, replace(points, levels=levels), rng)

    def gain_left(self, history: History, rng: np.random.Generator) -> GainLeft | None:
        """Return the suggester's expectation, where trials run to their end."""
        if not isinstance(self.scheduler, RunToEnd):
            return None
        return self.suggester.gain_left(history, trials_left(history), rng)

    def may_resume(self, history: History, trial: int) -> bool:
        return self.scheduler.may_resume(history, trial)

    def review(self, history: History, trial: int) -> Verdict:
        return self.scheduler.review(history, trial)


@dataclass(frozen=True)
class WarmStarted(Policy):
    """``inner``, whose first starts get ``configs``, unless they were tried already."""

    inner: Policy
    configs: tuple[Config, ...]

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """Return the decision of ``inner``; a new trial gets the next recommended configuration, and
        no model is fitted for it."""
        known = history.derive(KNOWN)
        left = [config for config in self.configs if config not in known]
        if not left or len(history.trials) >= len(self.configs):
            return self.inner.decide(history, rng)
        decision = self.inner.outline(history, rng)
        if not isinstance(decision.action, Start):
            return decision
        start = replace(decision.action, config=dict(left[0]))
        return Decision(start, DecisionRecord(reason=Recommended()))

    @property
    def chooser(self) -> Suggester | None:
        return self.inner.chooser

    @property
    def learns(self) -> bool:
        return self.inner.learns

    def informed_by(self, past: PastKnowledge) -> Policy:
        return replace(self, inner=self.inner.informed_by(past))

    def outline(self, history: History, rng: np.random.Generator) -> Decision:
        return self.inner.outline(history, rng)

    def gain_left(self, history: History, rng: np.random.Generator) -> GainLeft | None:
        return self.inner.gain_left(history, rng)

    def may_resume(self, history: History, trial: int) -> bool:
        return self.inner.may_resume(history, trial)

    def forecast(
        self, history: History, points: ForecastPoints, rng: np.random.Generator
    ) -> "Sequence[ForecastColumn]":
        return self.inner.forecast(history, points, rng)

    def review(self, history: History, trial: int) -> Verdict:
        return self.inner.review(history, trial)
