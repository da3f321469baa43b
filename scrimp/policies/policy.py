"""The contract of policies: the whole decision, what and how much together.

`Scheduled(scheduler, suggester)` makes a policy of two independent parts; methods that weigh new
configurations against paused ones (DyHPO, freeze-thaw, DEHB) are policies themselves. A decision is
a sum type with reasons, never a boolean or a string:

    match policy.decide(history, rng).action:
        case Start(config, budget): ...
        case Resume(trial, budget): ...
        case Wait() | Finish(): ...
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.history.notes import EMPTY, Grant, Notes
from scrimp.json_values import Json
from scrimp.schedulers.scheduler import Finish, Resume, Verdict, Wait
from scrimp.suggesters.past_knowledge import PastKnowledge
from scrimp.suggesters.suggester import Suggester

__all__ = [
    "Action",
    "Decision",
    "Finish",
    "Forecast",
    "Policy",
    "Resume",
    "Start",
    "Verdict",
    "Wait",
]


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
    """An action and what there is to say about it: fitted parameters, reasons, degraded flags. All
    of it goes into the log."""

    action: Action
    notes: Notes = EMPTY


@dataclass(frozen=True)
class Forecast:
    """How a curve model expects one trial to go on: losses after ``steps``, with a band of two
    standard deviations."""

    steps: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


class Policy(ABC):
    """Decides jointly; a frozen value, and a function of the history."""

    @property
    def chooser(self) -> Suggester | None:
        """The part that chooses configurations, which pictures ask what it believes; None for a
        method that decides jointly.

        A wrapper hands on what it wraps.
        """
        return None

    @property
    def learns(self) -> bool:
        """Whether it begins in its own way with past studies; others begin with configurations that
        these recommend (`WarmStarted`)."""
        return False

    def informed_by(self, past: PastKnowledge) -> "Policy":
        """The same with what it takes of past studies: nothing, for most."""
        del past
        return self

    @abstractmethod
    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """What a free worker should do next."""

    def outline(self, history: History, rng: np.random.Generator) -> Decision:
        """What `decide` says, as far as it does not need a configuration of its own: that of a
        `Start` is not looked at.

        It is asked when the configuration comes from the queue, or when there is no room for
        another. The default decides in full; a method whose configurations cost a model spares it.
        """
        return self.decide(history, rng)

    def may_resume(self, history: History, trial: int) -> bool:
        """Whether this paused trial may ever go on, in a study that may still grow; if not, its
        checkpoints are removed."""
        del history, trial
        return True

    def review(self, history: History, trial: int) -> Verdict:
        """Whether this trial goes on after its newest report."""
        del history, trial
        return Verdict.CONTINUE

    def forecast(
        self,
        history: History,
        trials: Sequence[int],
        steps: Sequence[float],
        rng: np.random.Generator,
    ) -> Mapping[int, Forecast]:
        """What the method's curve model believes of these trials after ``steps``, for pictures;
        nothing without such a model."""
        del history, trials, steps, rng
        return {}
