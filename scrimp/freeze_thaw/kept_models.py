"""What freeze-thaw keeps of its models between decisions: nothing once rows may have gone.

kept = history.derive(WhileRowsLast(Kept))
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from scrimp.history.events import Event, Retried, StudyChanged
from scrimp.history.fold import Fold
from scrimp.history.problem import Problem
from scrimp.history.trial import Trial

__all__ = ["WhileRowsLast"]


class Clearable(Protocol):
    """Something that can forget what it keeps."""

    def clear(self) -> None:
        """Keep nothing."""


K = TypeVar("K", bound=Clearable)


@dataclass(frozen=True)
class WhileRowsLast(Fold[K]):
    """What ``make`` makes, cleared when a trial is tried again or the problem changes."""

    make: Callable[[], K]

    def begin(self, problem: Problem) -> K:
        """Nothing is kept yet."""
        del problem
        return self.make()

    def step(self, state: K, event: Event, before: Trial | None, trial: Trial | None) -> None:
        """Rows may have gone."""
        if isinstance(event, Retried) or (
            isinstance(event, StudyChanged) and event.problem is not None
        ):
            state.clear()
