"""The problem of a study: space, metrics with their directions, budget, constraints, cost.

    Problem(space)                                                  # minimize "value"
    Problem(space, {"val_error": "minimize", "latency_ms": "minimize"}, goals={"latency_ms": 5.0})

A study has m metrics, usually one. `Problem.losses` alone turns metrics into losses, lower is
better; nothing else depends on the direction.

With several metrics no report is best in all. The study has a *front* instead: the reports that no
other one dominates. One report *dominates* another if it is at least as good in every metric and
better in one. A metric beyond its *goal* counts as the goal: with a goal of 5 ms, 3 ms are no better
than 5 ms.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from scrimp.checks import did_you_mean, is_finite, is_whole
from scrimp.errors import StudyError
from scrimp.json_values import Json, JsonObject
from scrimp.space.space import Space
from scrimp.study_log.constraints import (
    CONSTRAINT_KINDS,
    Constraint,
    check_constraint,
    constraint_json,
)

Direction = Literal["minimize", "maximize"]

Losses = tuple[float, ...]
"""The m metrics of a report, lower is better; NaN for one that was not reported."""

MANY_METRICS = 5
"""Number of metrics from which on nearly every report is on the front; a new study warns."""


@dataclass(frozen=True)
class Budget:
    """The training budget of a trial in units such as epochs: ``minimum`` is the first grant,
    ``maximum`` a full training.

    >>> Budget("epoch", 1, 81)
    Budget(name='epoch', minimum=1, maximum=81)
    """

    name: str
    minimum: float
    maximum: float

    def __post_init__(self) -> None:
        for label, number in (("minimum", self.minimum), ("maximum", self.maximum)):
            if not is_finite(number) or number <= 0:
                raise StudyError(f"budget {label} is {number!r}; it must be positive and finite")
        if self.minimum > self.maximum:
            raise StudyError(
                f"budget minimum {self.minimum} is above its maximum {self.maximum}; swap them or"
                " raise the maximum"
            )
        if not isinstance(self.name, str) or not self.name:
            raise StudyError(f"budget name is {self.name!r}; give the unit a name, such as 'epoch'")

    @property
    def units(self) -> str:
        """The unit in the plural."""
        return self.name if self.name.endswith("s") else f"{self.name}s"

    def amount(self, used: float) -> str:
        """Format an amount with its unit.

        >>> Budget("epoch", 1, 81).amount(1), Budget("epoch", 1, 81).amount(27.0)
        ('1 epoch', '27 epochs')
        """
        return f"{used:g} {self.name if used == 1 else self.units}"


def dominates(first: Losses, second: Losses) -> bool:
    """Return True if ``first`` is at least as good in every metric and better in one.

    >>> dominates((1.0, 2.0), (1.0, 3.0)), dominates((1.0, 2.0), (1.0, 2.0))
    (True, False)
    """
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))


def metrics_of(
    metric: str, direction: Direction, metrics: Mapping[str, Direction] | None
) -> Mapping[str, Direction]:
    """Return the metrics of a study, from the one that a user named or from the table of several.

    >>> metrics_of("val_error", "minimize", None)
    {'val_error': 'minimize'}
    """
    if not isinstance(metric, str):
        raise StudyError(
            f"metric is {metric!r}; it must be one name. For several, use metrics={{'val_error':"
            " 'minimize', 'latency_ms': 'minimize'}, each with its direction"
        )
    if metrics is None:
        return {metric: direction}
    one = isinstance(metrics, Mapping) and len(metrics) == 1
    if not one and (metric != "value" or direction != "minimize"):
        raise StudyError(
            f"metric={metric!r} or direction={direction!r} is given beside metrics={metrics!r}; give"
            " metrics alone, each with its direction"
        )
    return metrics


def check_metrics(
    metrics: Mapping[str, Direction],
    reference: Mapping[str, float],
    goals: Mapping[str, float],
    weights: Mapping[str, float],
) -> None:
    """Refuse metrics without a name or a direction, and tables that do not fit them."""
    if not isinstance(metrics, Mapping) or not metrics:
        raise StudyError(
            f"metrics is {metrics!r}; it must be a table from names to directions, such as"
            " {'val_error': 'minimize', 'latency_ms': 'minimize'}"
        )
    for name, way in metrics.items():
        if not isinstance(name, str) or not name:
            raise StudyError(
                f"metric is {name!r}; it must be the name of a reported metric, such as 'val_error'"
            )
        if way not in ("minimize", "maximize"):
            raise StudyError(
                f"direction of metric {name!r} is {way!r}; it must be 'minimize' or 'maximize'"
            )
    for label, table in (("reference", reference), ("goals", goals), ("weights", weights)):
        check_table(metrics, label, table, whole=label != "goals")
        if table and len(metrics) == 1:
            raise StudyError(
                f"{label} is {table!r}, and the study has one metric; {label} belong to"
                " several, given as metrics={'val_error': 'minimize', 'latency_ms': 'minimize'}"
            )
    if weights:
        check_weights(weights)


def check_table(
    metrics: Mapping[str, Direction], label: str, table: Mapping[str, float], whole: bool = False
) -> None:
    """Refuse a table with names that are not metrics, or values that are not numbers. A ``whole``
    table must name all metrics or none."""
    if not isinstance(table, Mapping):
        raise StudyError(
            f"{label} is {table!r}; it must be a table by metric, such as"
            f" {{{next(iter(metrics))!r}: 1.0}}"
        )
    for name, number in table.items():
        if name not in metrics:
            hint = did_you_mean(str(name), tuple(metrics), ".")
            raise StudyError(
                f"{label} names {name!r}, which is not a metric of the study{hint} Its metrics:"
                f" {', '.join(metrics)}"
            )
        if not is_finite(number):
            raise StudyError(f"{label} of {name!r} is {number!r}; it must be a finite number")
    missing = [name for name in metrics if name not in table]
    if whole and table and missing:
        raise StudyError(
            f"{label} leaves out {', '.join(missing)}; give a number for every metric, or none"
        )


def check_weights(weights: Mapping[str, float]) -> None:
    """Refuse weights below 0, and weights that are all 0."""
    for name, weight in weights.items():
        if weight < 0:
            raise StudyError(f"weight of {name!r} is {weight!r}; it must be at least 0")
    if not any(weights.values()):
        raise StudyError("all weights are 0; give at least one metric a weight above 0")


def _check_named(label: str, given: object, example: str) -> None:
    """Refuse anything but a table of values by name."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
        raise StudyError(f"{label} is {given!r}; it must be a table by name, such as {example}")


@dataclass(frozen=True)
class Problem:
    """The problem of a study, which every method receives.

    ``metrics``: the metrics to optimize, each with its direction, in order. With several of them,
    ``reference``: the value of each that hypervolumes are measured from; ``goals``: values that are
    good enough; ``weights``: the importance of each for `Study.best`. All three may be empty.
    """

    space: Space
    metrics: Mapping[str, Direction] = field(default_factory=lambda: {"value": "minimize"})
    reference: Mapping[str, float] = field(default_factory=dict)
    goals: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    budget: Budget | None = None
    constraints: Mapping[str, Constraint] = field(default_factory=dict)
    cost: str | None = None
    features: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    noisy: bool = False

    def __post_init__(self) -> None:
        check_metrics(self.metrics, self.reference, self.goals, self.weights)
        if not is_whole(self.seed):
            raise StudyError(f"seed is {self.seed!r}; it must be an integer of at least 0")
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise StudyError(
                f"budget is {self.budget!r}; it must be a scrimp.Budget such as"
                " scrimp.Budget('epoch', 1, 81)"
            )
        if self.cost is not None and (not isinstance(self.cost, str) or not self.cost):
            raise StudyError(
                f"cost is {self.cost!r}; it must be the name of a reported metric, such as"
                " 'seconds'"
            )
        if not isinstance(self.noisy, bool):
            raise StudyError(f"noisy is {self.noisy!r}; it must be True or False")
        _check_named("constraints", self.constraints, "{'memory_gb': scrimp.AtMost(16)}")
        for name, rule in self.constraints.items():
            check_constraint(name, rule)
        _check_named("features", self.features, "{'rows': 1e5}")
        for name, number in self.features.items():
            if not isinstance(number, int | float) or not math.isfinite(number):
                raise StudyError(f"feature {name!r} is {number!r}; it must be a finite number")

    @property
    def several(self) -> bool:
        """True with two or more metrics: the study has a front instead of a best report."""
        return len(self.metrics) > 1

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The m metrics, in order."""
        return tuple(self.metrics)

    @cached_property
    def signs(self) -> tuple[float, ...]:
        """The factor from value to loss of each metric: 1 to minimize it, -1 to maximize it."""
        return tuple(1.0 if way == "minimize" else -1.0 for way in self.metrics.values())

    @cached_property
    def _others(self) -> tuple[tuple[str, float], ...]:
        """The metrics behind the first, with their signs."""
        return tuple(zip(self.names[1:], self.signs[1:], strict=True))

    @property
    def metric(self) -> str:
        """The name of the metric; the first of several."""
        return self.names[0]

    @property
    def direction(self) -> Direction:
        """The direction of the metric; that of the first of several."""
        return self.metrics[self.metric]

    @property
    def sign(self) -> float:
        """The factor from value to loss of the metric, or of the first of several."""
        return self.signs[0]

    @property
    def full_budget(self) -> float:
        """The budget of a full training; 1 without budgets."""
        return 1.0 if self.budget is None else float(self.budget.maximum)

    @cached_property
    def best_losses(self) -> Losses:
        """The goals as losses, below which nothing counts; minus infinity without a goal."""
        return tuple(
            sign * self.goals[name] if name in self.goals else -math.inf
            for name, sign in zip(self.names, self.signs, strict=True)
        )

    @cached_property
    def reference_losses(self) -> Losses | None:
        """The reference as losses; None without one."""
        return self.as_losses(self.reference) if self.reference else None

    def as_losses(self, values: Mapping[str, float]) -> Losses:
        """Convert values of all metrics to losses."""
        pairs = zip(self.names, self.signs, strict=True)
        return tuple(sign * float(values[name]) for name, sign in pairs)

    def values(self, losses: Iterable[float]) -> dict[str, float]:
        """Convert losses to values by metric, in the user's directions."""
        found = zip(self.names, self.signs, losses, strict=True)
        return {name: float(sign * loss) for name, sign, loss in found}

    def value(self, loss: float | None) -> float | None:
        """Convert a loss of the metric, or of the first of several, to a value."""
        return None if loss is None else self.sign * loss

    def losses(self, metrics: Mapping[str, float | None]) -> Losses | None:
        """Return the m metrics of a report as losses, lower is better.

        None if the report does not count: its first metric is missing, or any of them is not
        finite. NaN for another metric that is missing, such as one that was added later.
        """
        value = metrics.get(self.names[0])
        if value is None or not math.isfinite(value):
            return None
        found = [self.signs[0] * value]
        for name, sign in self._others:
            value = metrics.get(name, math.nan)
            if value is None or math.isinf(value):
                return None
            found.append(sign * value)
        return tuple(found)

    def counted(self, losses: Losses | None) -> Losses | None:
        """Return the losses as they count in comparisons: one beyond its goal counts as the goal.
        None if a metric is missing, since such a report cannot be compared."""
        if losses is None or any(map(math.isnan, losses)):
            return None
        if not self.goals:
            return losses
        return tuple(max(loss, best) for loss, best in zip(losses, self.best_losses, strict=True))

    def violation(self, metrics: Mapping[str, float | None]) -> float | None:
        """Return the largest violation of all constraints, feasible if not positive; None if a
        constrained metric was not reported."""
        worst = -math.inf
        for name, rule in self.constraints.items():
            value = metrics.get(name)
            if value is None or not math.isfinite(value):
                return None
            worst = max(worst, rule.violation(value))
        return worst

    def to_json(self) -> dict[str, Json]:
        """Return a plain JSON form; `from_json` restores it."""
        tables = {"reference": self.reference, "goals": self.goals, "weights": self.weights}
        used: dict[str, Json] = {label: dict(table) for label, table in tables.items() if table}
        return {
            "space": self.space.to_json(),
            "metrics": dict(self.metrics),
            **used,
            "budget": (
                None
                if self.budget is None
                else [self.budget.name, self.budget.minimum, self.budget.maximum]
            ),
            "constraints": {name: constraint_json(rule) for name, rule in self.constraints.items()},
            "cost": self.cost,
            "features": dict(self.features),
            "seed": self.seed,
            "noisy": self.noisy,
        }

    @staticmethod
    def from_json(record: JsonObject) -> "Problem":
        """Restore the problem that `to_json` wrote."""
        # Each part checks itself.
        read: Mapping[str, Any] = record
        plain = {name: read[name] for name in ("metrics", "cost", "features", "seed", "noisy")}
        tables = {name: read.get(name, {}) for name in ("reference", "goals", "weights")}
        return Problem(
            space=Space.from_json(read["space"]),
            budget=None if read["budget"] is None else Budget(*read["budget"]),
            constraints={
                name: CONSTRAINT_KINDS[kind](*numbers)
                for name, (kind, *numbers) in read["constraints"].items()
            },
            **plain,
            **tables,
        )
