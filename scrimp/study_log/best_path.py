"""The improvements of the best value: the budget spent until then, the trial, and the value.

history.derive(BEST_PATH).points              # [(1.0, 0, 0.9), (3.0, 2, 0.4), ...]
"""

import math
from dataclasses import dataclass, field

from scrimp.study_log.events import Event
from scrimp.study_log.fold import Fold
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Trial


@dataclass
class Path:
    """``points`` are improvements: (units of budget spent over all trials, trial, value); ``spent``
    is the budget spent by now. With ``several`` metrics there are no points."""

    sign: float
    several: bool = False
    spent: float = 0.0
    points: list[tuple[float, int, float]] = field(default_factory=list)

    @property
    def loss(self) -> float:
        """The lowest loss so far."""
        return self.sign * self.points[-1][2] if self.points else math.inf


@dataclass(frozen=True)
class BestPath(Fold[Path]):
    """Follows the best feasible value of a study."""

    def begin(self, problem: Problem) -> Path:
        """Return an empty path."""
        return Path(problem.sign, problem.several)

    def step(self, state: Path, event: Event, before: Trial | None, trial: Trial | None) -> None:
        """Apply one event."""
        if trial is None or before is None or trial is before:
            return
        state.spent += max(trial.budget - before.budget, 0.0)
        if state.several:
            return
        if trial.best is not None and state.sign * trial.best < state.loss:
            state.points.append((state.spent, trial.id, trial.best))


BEST_PATH = BestPath()
