"""The best value as it improved: after how much spending, by which trial, to what.

history.derive(BEST_PATH).points              # [(1.0, 0, 0.9), (3.0, 2, 0.4), ...]
"""

import math
from dataclasses import dataclass, field

from scrimp.history.events import Event
from scrimp.history.fold import Fold
from scrimp.history.problem import Problem
from scrimp.history.trial import Trial

__all__ = ["BEST_PATH", "BestPath", "Path"]


@dataclass
class Path:
    """``points`` are improvements: (units of budget spent over all trials, trial, value); ``spent`` is where it ends.
    There are none with ``several`` metrics: no value is best."""

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
        """Nothing is spent, nothing found."""
        return Path(problem.sign, problem.trade_off is not None)

    def step(self, state: Path, event: Event, before: Trial | None, trial: Trial | None) -> None:
        """Take one event in."""
        if trial is None or before is None or trial is before:
            return
        state.spent += max(trial.budget - before.budget, 0.0)
        if state.several:
            return
        if trial.best is not None and state.sign * trial.best < state.loss:
            state.points.append((state.spent, trial.id, trial.best))


BEST_PATH = BestPath()
