"""A trial, one configuration with its reports, and the reports themselves."""

import math
from typing import Literal, NoReturn

import msgspec

from scrimp.errors import ReportError
from scrimp.json_values import Config, Json
from scrimp.space.html_table import html_table
from scrimp.study_log.problem import Losses

Status = Literal["running", "paused", "completed", "stopped", "failed", "stale"]
STATUSES: tuple[Status, ...] = ("running", "paused", "completed", "stopped", "failed", "stale")


INFEASIBLE_STANDING = 1e300
"""Lower bound of the standings of reports that are not known to be feasible; above every loss."""


class Observation(msgspec.Struct, frozen=True, gc=False):
    """One report: metrics after ``step`` units of budget.

    ``losses``: the study's m metrics, lower is better (`Problem.losses`); None if the report does
    not count, NaN for a missing metric. ``counted``: the losses as they count in comparisons, cut
    at the goals; None if one is missing (`Problem.counted`). ``stderr``: known standard errors by
    metric. ``violation``: the largest violation of a constraint, not positive if all hold, None if
    one was not reported.
    """

    step: float
    metrics: dict[str, float | None]
    losses: Losses | None
    counted: Losses | None
    stderr: dict[str, float] = {}
    cost: float | None = None
    time: float = 0.0
    violation: float | None = -math.inf

    @property
    def loss(self) -> float | None:
        """The loss of the metric, or of the first of several; None if the report does not count."""
        return None if self.losses is None else self.losses[0]

    @property
    def feasible(self) -> bool:
        """True if all constraints are known to hold."""
        return self.violation is not None and self.violation <= 0.0

    @property
    def standing(self) -> float:
        """The standing with one metric, lower is better; infinite without a loss. Rank reports by
        `scrimp.study_log.standings`, which handles several metrics too.

        Feasible reports are ranked by their loss; then those whose constraints were not all
        reported, by their loss; then those that violate a constraint, by the violation. With s(v) =
        v / (1 + |v|), the latter have INFEASIBLE_STANDING times 2 + s(loss) and 3 + s(violation).
        """
        if self.loss is None:
            return math.inf
        if self.feasible:
            return self.loss
        group, size = (2.0, self.loss) if self.violation is None else (3.0, self.violation)
        return INFEASIBLE_STANDING * (group + size / (1.0 + abs(size)))


class Trial(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The state of one trial; every event about it makes a new one.

    ``granted`` and ``budget`` are cumulative: the budget it may use, and the highest step reported.
    ``status`` is running, paused (its grant is used up), completed, stopped, failed or stale (its
    worker vanished). ``value``: the value at its highest budget; ``best``: its best value at any
    budget with all constraints met; both in the user's direction, and of the first of several
    metrics. ``lost``: its latest attempt that vanished; reports of that attempt or an earlier one do
    not count. ``lost_workers``: workers lost since its last report. ``user_attrs`` and ``note`` are
    written by users and the objective.
    """

    id: int
    config: Config
    tag: dict[str, Json] = {}
    continue_from: int | None = None
    granted: float = 0.0
    attempt: int = 0
    lost: int = 0
    lost_workers: int = 0
    worker: str = ""
    status: Status = "paused"
    message: str = ""
    curve: tuple[Observation, ...] = ()
    value: float | None = None
    best: float | None = None
    decision: int | None = None
    started: float | None = None
    ended: float | None = None
    user_attrs: dict[str, Json] = {}
    note: str = ""

    def __repr__(self) -> str:
        """Return state, values, budget and configuration on one line."""
        values = f"best={self.best!r}, last={self.value!r}, budget={self.budget:g}"
        return f"Trial({self.id}, {self.status}, {values}, params={self.config!r})"

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
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
        """The configuration."""
        return self.config

    @property
    def budget(self) -> float:
        """The highest step reported."""
        return self.curve[-1].step if self.curve else 0.0

    @property
    def bracket(self) -> int | None:
        """The bracket of the scheduler, if any."""
        return _whole(self.tag.get("bracket"))

    @property
    def slot(self) -> int | None:
        """The place in the bracket, if any."""
        return _whole(self.tag.get("slot"))

    @property
    def last(self) -> Observation | None:
        """The report at the highest budget."""
        return self.curve[-1] if self.curve else None

    @property
    def loss(self) -> float | None:
        """The loss of the last report; of the first of several metrics."""
        return None if self.last is None else self.last.loss

    @property
    def losses(self) -> NoReturn:
        """Refuse the former name of ``lost_workers``."""
        raise AttributeError(
            "trial.losses is now called trial.lost_workers; the losses of a report are those of a"
            " point of trial.curve, such as trial.curve[-1].losses"
        )

    @property
    def finished(self) -> bool:
        """True if the trial is completed, stopped or failed."""
        return self.status in ("completed", "stopped", "failed")

    @property
    def cost(self) -> float | None:
        """The sum of the costs of its reports; None if none was reported."""
        costs = [point.cost for point in self.curve if point.cost is not None]
        return sum(costs) if costs else None


def _whole(number: Json) -> int | None:
    return number if isinstance(number, int) else None


def check_step(trial: Trial, step: object) -> None:
    """Refuse a step beyond the trial's grant, one that was reported already, and a step of 0."""
    if isinstance(step, bool) or not isinstance(step, int | float) or not math.isfinite(step):
        raise ReportError(f"step is {step!r}; it must be a positive number of budget units")
    if step > trial.granted:
        raise ReportError(
            f"step {step} of trial {trial.id} is beyond its grant of {trial.granted:g}; ask again first"
        )
    if step <= 0 or any(point.step == step for point in trial.curve):
        raise ReportError(
            f"step {step} of trial {trial.id} was reported already or is not positive;"
            f" continue with {trial.budget + 1:g}"
        )
