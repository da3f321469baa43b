"""One configuration and everything that happened to it."""

import math
from typing import Any

import msgspec

from scrimp.history.events import Config

__all__ = ["BEHIND", "STATUSES", "Observation", "Trial"]

STATUSES = ("running", "paused", "completed", "stopped", "failed", "stale")


BEHIND = 1e300
"""Behind every loss: where the standings begin of reports that are not known to be feasible."""


class Observation(msgspec.Struct, frozen=True, gc=False):
    """One report: metrics after ``step`` units of budget. ``loss`` is the study's metric, lower is
    better, or None.

    ``violation`` is the largest one over all constraints: not positive where all hold, None where
    one was not reported.
    """

    step: float
    metrics: dict[str, float | None]
    loss: float | None
    stderr: float | None = None
    cost: float | None = None
    time: float = 0.0
    violation: float | None = -math.inf

    @property
    def feasible(self) -> bool:
        """Whether all constraints are known to hold."""
        return self.violation is not None and self.violation <= 0.0

    @property
    def standing(self) -> float:
        """What runs are ranked by, lower is better; infinite where there is no loss.

        Feasible ones by their loss, behind them those whose constraints were not all reported, by
        their loss, behind them those that violate one, by the size of the violation: BEHIND (2 +
        s(loss)) and BEHIND (3 + s(violation)) with s(v) = v / (1 + |v|).
        """
        if self.loss is None:
            return math.inf
        if self.feasible:
            return self.loss
        group, size = (2.0, self.loss) if self.violation is None else (3.0, self.violation)
        return BEHIND * (group + size / (1.0 + abs(size)))


class Trial(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A frozen view of one trial; every event about it makes a new view.

    ``granted`` and ``budget`` are cumulative: what it may use, and the highest step it reported.
    ``status`` is running, paused (its grant is used up), completed, stopped, failed or stale (its
    worker vanished). ``value`` is the last one reported at its highest budget, in the user's
    direction; ``loss`` the same, lower is better. ``best`` is the best one that it reported at any
    budget with all constraints holding, in the user's direction. ``lost`` is the newest attempt
    that vanished; reports of that attempt or an older one no longer count. ``losses`` is how often
    that happened since its last report.
    """

    id: int
    config: Config
    tag: dict[str, Any] = {}
    continue_from: int | None = None
    granted: float = 0.0
    attempt: int = 0
    lost: int = 0
    losses: int = 0
    worker: str = ""
    status: str = "paused"
    message: str = ""
    curve: tuple[Observation, ...] = ()
    value: float | None = None
    loss: float | None = None
    best: float | None = None
    decision: int | None = None
    started: float | None = None
    ended: float | None = None

    @property
    def params(self) -> Config:
        """The configuration, under the name users know."""
        return self.config

    @property
    def budget(self) -> float:
        """The highest step reported."""
        return self.curve[-1].step if self.curve else 0.0

    @property
    def last(self) -> Observation | None:
        """The report at the highest budget."""
        return self.curve[-1] if self.curve else None

    @property
    def finished(self) -> bool:
        """Whether it will never run again."""
        return self.status in ("completed", "stopped", "failed")

    @property
    def cost(self) -> float | None:
        """The summed cost of its reports; None when none was reported."""
        costs = [point.cost for point in self.curve if point.cost is not None]
        return sum(costs) if costs else None
