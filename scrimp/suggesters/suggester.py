"""The contract of suggesters: which configuration to try, as a function of the history.

A suggester is a frozen value holding settings only. Asked twice with the same history, request and
generator it gives the same answer, so a crash, a resume, many workers and a replay need no code.
What it learned (fitted hyperparameters, reasons, degraded flags) goes into ``notes``, which the
loop writes to the log; the next suggestion may start from there.

    suggestion = BayesianSuggester(...).suggest(history, request, count=1, rng=history.rng("suggest"))
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.history.notes import EMPTY, Notes
from scrimp.json_values import Json
from scrimp.suggesters.past_knowledge import PastKnowledge

__all__ = ["Request", "Suggester", "Suggestion"]


@dataclass(frozen=True)
class Request:
    """What the suggested configuration is for: the first budget it gets, its bracket, and the tag
    its trial will carry.

    ``levels``: the budgets at which trials are compared, the full budget last; none without a
    scheduler that compares.
    """

    budget: float
    bracket: int = 0
    tag: Mapping[str, Json] = field(default_factory=dict)
    levels: tuple[float, ...] = ()


@dataclass(frozen=True)
class Suggestion:
    """Configurations to try, best first, and what there is to say about them. Fewer than asked for:
    the space is exhausted."""

    configs: tuple[Config, ...]
    notes: Notes = EMPTY


class Suggester(ABC):
    """Decides what to try."""

    learns: ClassVar[bool] = False
    """Whether it is made to learn from past studies, so that it begins in its own way with them."""

    def informed_by(self, past: PastKnowledge) -> "Suggester":
        """The same with what it takes of past studies: nothing, for most."""
        del past
        return self

    @abstractmethod
    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """``count`` configurations for ``request``, given all that happened. Pending trials are in
        the history."""
