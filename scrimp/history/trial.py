"""One configuration and everything that happened to it."""

import math
from typing import Literal

import msgspec

from scrimp.errors import ReportError
from scrimp.history.events import Config
from scrimp.history.trade_off import Losses
from scrimp.json_values import Json
from scrimp.space.html_table import html_table

__all__ = ["BEHIND", "STATUSES", "Observation", "Trial", "check_step"]

Status = Literal["running", "paused", "completed", "stopped", "failed", "stale"]
STATUSES: tuple[Status, ...] = ("running", "paused", "completed", "stopped", "failed", "stale")


BEHIND = 1e300
"""Behind every loss: where the standings begin of reports that are not known to be feasible."""


class Observation(msgspec.Struct, frozen=True, gc=False):
    """One report: metrics after ``step`` units of budget. ``loss`` is the study's metric, lower is
    better, or None.

    ``violation`` is the largest one over all constraints: not positive where all hold, None where
    one was not reported. ``losses``: in a study of several metrics what counts of each, None where
    one is missing; ``loss`` is then that of the first, and so is ``stderr``; ``further_stderr`` has
    the standard errors of the others by name, where some were told.
    """

    step: float
    metrics: dict[str, float | None]
    loss: float | None
    stderr: float | None = None
    cost: float | None = None
    time: float = 0.0
    violation: float | None = -math.inf
    losses: Losses | None = None
    further_stderr: dict[str, float] | None = None

    @property
    def feasible(self) -> bool:
        """Whether all constraints are known to hold."""
        return self.violation is not None and self.violation <= 0.0

    @property
    def standing(self) -> float:
        """What runs are ranked by where there is one metric, lower is better; infinite where there
        is no loss. Whoever ranks reports asks `scrimp.history.standings`, which knows several.

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
    budget with all constraints holding, in the user's direction. With several metrics these are
    of the first; the others stand in ``curve``. ``lost`` is the newest attempt
    that vanished; reports of that attempt or an older one no longer count. ``losses`` is how often
    that happened since its last report. ``user_attrs`` and ``note`` are what people and the
    objective said about it.
    """

    id: int
    config: Config
    tag: dict[str, Json] = {}
    continue_from: int | None = None
    granted: float = 0.0
    attempt: int = 0
    lost: int = 0
    losses: int = 0
    worker: str = ""
    status: Status = "paused"
    message: str = ""
    curve: tuple[Observation, ...] = ()
    value: float | None = None
    loss: float | None = None
    best: float | None = None
    decision: int | None = None
    started: float | None = None
    ended: float | None = None
    user_attrs: dict[str, Json] = {}
    note: str = ""

    def __repr__(self) -> str:
        """On one line: state, values, budget, configuration."""
        values = f"best={self.best!r}, last={self.value!r}, budget={self.budget:g}"
        return f"Trial({self.id}, {self.status}, {values}, params={self.config!r})"

    def _repr_html_(self) -> str:
        """The same as a table, for notebooks."""
        facts: dict[str, Json] = {
            "trial": self.id,
            "status": self.status,
            "best": self.best,
            "last": self.value,
            "budget": self.budget,
        }
        said = {"note": self.note, "message": self.message}
        facts |= {name: text for name, text in said.items() if text}
        metrics = {} if self.last is None else self.last.metrics
        rows = [*facts.items(), *self.config.items(), *metrics.items(), *self.user_attrs.items()]
        return html_table([], rows, caption=f"Trial {self.id}")

    @property
    def params(self) -> Config:
        """The configuration, under the name users know."""
        return self.config

    @property
    def budget(self) -> float:
        """The highest step reported."""
        return self.curve[-1].step if self.curve else 0.0

    @property
    def bracket(self) -> int | None:
        """The bracket its scheduler put it into, if any."""
        return _whole(self.tag.get("bracket"))

    @property
    def slot(self) -> int | None:
        """Its place in the bracket, if it has one."""
        return _whole(self.tag.get("slot"))

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


def _whole(number: Json) -> int | None:
    return number if isinstance(number, int) else None


def check_step(trial: Trial, step: object) -> None:
    """Refuse a report that a trial cannot make: beyond its grant, at a step it has reported, at none."""
    if isinstance(step, bool) or not isinstance(step, int | float) or not math.isfinite(step):
        raise ReportError(f"step is {step!r}; it must be a positive number of budget units")
    if step > trial.granted:
        raise ReportError(
            f"step {step} of trial {trial.id} lies beyond its grant of {trial.granted:g}; ask again first"
        )
    if step <= 0 or any(point.step == step for point in trial.curve):
        raise ReportError(
            f"step {step} of trial {trial.id} was reported already or is not positive;"
            f" go on with {trial.budget + 1:g}"
        )
