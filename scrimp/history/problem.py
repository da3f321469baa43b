"""What is being optimized: space, metric, direction, budget, constraints, cost.

Metrics become losses (lower is better) in exactly one method, `Problem.loss`, and where there are
several in `TradeOff.losses`; nothing else asks for the direction.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from scrimp.checks import is_finite, is_whole
from scrimp.errors import StudyError
from scrimp.history.trade_off import Direction, Losses, TradeOff
from scrimp.json_values import Json, JsonObject
from scrimp.space.space import Space

__all__ = [
    "AtLeast",
    "AtMost",
    "Budget",
    "Constraint",
    "Direction",
    "Equals",
    "Optimized",
    "Problem",
    "optimized",
]


@dataclass(frozen=True)
class Budget:
    """What a trial may spend, in units such as epochs: from ``minimum`` (the first grant) to
    ``maximum`` (a full training).

    >>> Budget("epoch", 1, 81)
    Budget(name='epoch', minimum=1, maximum=81)
    """

    name: str
    minimum: float
    maximum: float

    def __post_init__(self) -> None:
        for label, number in (("minimum", self.minimum), ("maximum", self.maximum)):
            if not is_finite(number) or number <= 0:
                raise StudyError(
                    f"budget {label} is {number!r}; it must be a positive finite number"
                )
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
        """So much of it, for people.

        >>> Budget("epoch", 1, 81).amount(1), Budget("epoch", 1, 81).amount(27.0)
        ('1 epoch', '27 epochs')
        """
        return f"{used:g} {self.name if used == 1 else self.units}"


@dataclass(frozen=True)
class AtMost:
    """A metric that must not exceed ``limit``."""

    limit: float

    @property
    def band(self) -> tuple[float, float]:
        """Where `deviation` has to lie."""
        return -math.inf, 0.0

    def deviation(self, value: float) -> float:
        """The signed distance from the limit that a model learns."""
        return value - self.limit

    def violation(self, value: float) -> float:
        """How far ``value`` is over the limit; feasible when not positive."""
        return value - self.limit


@dataclass(frozen=True)
class AtLeast:
    """A metric that must not fall below ``limit``."""

    limit: float

    @property
    def band(self) -> tuple[float, float]:
        """Where `deviation` has to lie."""
        return -math.inf, 0.0

    def deviation(self, value: float) -> float:
        """The signed distance from the limit that a model learns."""
        return self.limit - value

    def violation(self, value: float) -> float:
        """How far ``value`` is under the limit; feasible when not positive."""
        return self.limit - value


@dataclass(frozen=True)
class Equals:
    """A metric that must come out at ``value``, give or take ``tolerance``.

    >>> Equals(0.5, tolerance=0.01).violation(0.51) <= 0
    True
    """

    value: float
    tolerance: float

    @property
    def band(self) -> tuple[float, float]:
        """Where `deviation` has to lie."""
        return -self.tolerance, self.tolerance

    def deviation(self, value: float) -> float:
        """The signed distance from the wanted value that a model learns."""
        return value - self.value

    def violation(self, value: float) -> float:
        """How far ``value`` is outside the tolerance; feasible when not positive."""
        return max(value - (self.value + self.tolerance), (self.value - self.tolerance) - value)


Constraint = AtMost | AtLeast | Equals

_KINDS: Mapping[str, type[AtMost] | type[AtLeast] | type[Equals]] = {
    "at_most": AtMost,
    "at_least": AtLeast,
    "equals": Equals,
}


def _check_constraint(name: str, rule: object) -> None:
    """Refuse what is no rule, and rules that nothing can meet."""
    if not isinstance(rule, AtMost | AtLeast | Equals):
        raise StudyError(
            f"constraint on {name!r} is {rule!r}; use scrimp.AtMost(limit), scrimp.AtLeast(limit)"
            " or scrimp.Equals(value, tolerance)"
        )
    for label, number in vars(rule).items():
        if not is_finite(number):
            raise StudyError(
                f"constraint on {name!r} has {label} {number!r}; it must be a finite number"
            )
    if isinstance(rule, Equals) and rule.tolerance <= 0:
        raise StudyError(
            f"constraint on {name!r} has tolerance {rule.tolerance!r}; it must be positive, since"
            " measured numbers are never exactly equal; for whole numbers use 0.5"
        )


def _constraint_json(rule: Constraint) -> list[Json]:
    """The kind and its numbers."""
    return [
        next(kind for kind, made in _KINDS.items() if isinstance(rule, made)),
        *vars(rule).values(),
    ]


class Optimized(TypedDict):
    """What a problem is told of its metrics."""

    metric: str
    direction: Direction
    trade_off: TradeOff | None


def optimized(
    metric: str,
    direction: Direction,
    metrics: Mapping[str, Direction] | None,
    reference: Mapping[str, float] | None = None,
    goals: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Optimized:
    """One metric or several, as a problem takes them; ``metrics`` with a single name is one."""
    if not isinstance(metric, str):
        raise StudyError(
            f"metric is {metric!r}; it must be one name. Several go as metrics={{'val_error':"
            " 'minimize', 'latency_ms': 'minimize'}, each with its direction"
        )
    if metrics is None or (isinstance(metrics, Mapping) and len(metrics) == 1):
        for label, table in (("reference", reference), ("goals", goals), ("weights", weights)):
            if table:
                raise StudyError(
                    f"{label} is {table!r}, and the study has one metric; {label} belong to"
                    " several, given as metrics={'val_error': 'minimize', 'latency_ms': 'minimize'}"
                )
        for name, way in (metrics or {metric: direction}).items():
            return {"metric": name, "direction": way, "trade_off": None}
    if metric != "value" or direction != "minimize":
        raise StudyError(
            f"metric={metric!r} or direction={direction!r} is given beside metrics={metrics!r}; give"
            " metrics alone, each with its direction"
        )
    assert metrics is not None
    trade_off = TradeOff(metrics, reference or {}, goals or {}, weights or {})
    first, way = next(iter(metrics.items()))
    return {"metric": first, "direction": way, "trade_off": trade_off}


def _named(label: str, given: object, example: str) -> Mapping[str, Json]:
    """A table from names to values, as the user gave it."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
        raise StudyError(f"{label} is {given!r}; it must be a table by name, such as {example}")
    return given


@dataclass(frozen=True)
class Problem:
    """The question a study asks; a value that every method receives.

    With a ``trade_off`` there are several metrics; ``metric`` and ``direction`` are then those of
    the first.
    """

    space: Space
    metric: str = "value"
    direction: Direction = "minimize"
    budget: Budget | None = None
    constraints: Mapping[str, Constraint] = field(default_factory=dict)
    cost: str | None = None
    features: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    noisy: bool = False
    trade_off: TradeOff | None = None

    def __post_init__(self) -> None:
        if self.direction not in ("minimize", "maximize"):
            raise StudyError(
                f"direction is {self.direction!r}; it must be 'minimize' or 'maximize'"
            )
        if not isinstance(self.metric, str) or not self.metric:
            raise StudyError(
                f"metric is {self.metric!r}; it must be the name of a reported metric, such as"
                " 'val_error'"
            )
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
        for name, rule in _named(
            "constraints", self.constraints, "{'memory_gb': scrimp.AtMost(16)}"
        ).items():
            _check_constraint(name, rule)
        for name, number in _named("features", self.features, "{'rows': 1e5}").items():
            if not isinstance(number, int | float) or not math.isfinite(number):
                raise StudyError(f"feature {name!r} is {number!r}; it must be a finite number")
        if self.trade_off is not None and (self.metric, self.direction) != next(
            iter(self.trade_off.metrics.items())
        ):
            raise StudyError(
                f"metric {self.metric!r} ({self.direction}) is not the first of"
                f" {dict(self.trade_off.metrics)}; the metric of a trade-off is its first"
            )

    @property
    def metrics(self) -> Mapping[str, Direction]:
        """What is optimized, each with its direction."""
        return {self.metric: self.direction} if self.trade_off is None else self.trade_off.metrics

    @property
    def reported(self) -> str | tuple[str, ...]:
        """What every report must have: the metric, or the names of all where there are several."""
        return self.metric if self.trade_off is None else self.trade_off.names

    @property
    def sign(self) -> float:
        """1 when low values are good, -1 when high values are."""
        return 1.0 if self.direction == "minimize" else -1.0

    @property
    def full_budget(self) -> float:
        """The budget of a full training; 1 without budgets."""
        return 1.0 if self.budget is None else float(self.budget.maximum)

    def loss(self, metrics: Mapping[str, float | None]) -> float | None:
        """The study's metric as a loss, lower is better; None when it is missing or not finite.

        Of several metrics it is the first, and None as soon as any was reported as not finite.
        """
        value = metrics.get(self.metric)
        if value is None or not math.isfinite(value):
            return None
        if self.trade_off is not None and any(
            metrics.get(name, 0.0) is None for name in self.trade_off.metrics
        ):
            return None
        return self.sign * value

    def losses(self, metrics: Mapping[str, float | None]) -> Losses | None:
        """All metrics as losses, as far as they count (`TradeOff.losses`); None with one metric,
        and where one is missing."""
        return None if self.trade_off is None else self.trade_off.losses(metrics)

    def value(self, loss: float | None) -> float | None:
        """A loss in the user's direction again."""
        return None if loss is None else self.sign * loss

    def violation(self, metrics: Mapping[str, float | None]) -> float | None:
        """The largest violation over all constraints (feasible when not positive); None when one
        was not reported."""
        worst = -math.inf
        for name, rule in self.constraints.items():
            value = metrics.get(name)
            if value is None or not math.isfinite(value):
                return None
            worst = max(worst, rule.violation(value))
        return worst

    def feasible(self, metrics: Mapping[str, float | None]) -> bool:
        """Whether all constraints are known to hold."""
        violation = self.violation(metrics)
        return violation is not None and violation <= 0.0

    def to_json(self) -> dict[str, Json]:
        """A plain JSON form; `from_json` restores it."""
        several = {} if self.trade_off is None else {"trade_off": self.trade_off.to_json()}
        return several | {
            "space": self.space.to_json(),
            "metric": self.metric,
            "direction": self.direction,
            "budget": (
                None
                if self.budget is None
                else [self.budget.name, self.budget.minimum, self.budget.maximum]
            ),
            "constraints": {
                name: _constraint_json(rule) for name, rule in self.constraints.items()
            },
            "cost": self.cost,
            "features": dict(self.features),
            "seed": self.seed,
            "noisy": self.noisy,
        }

    @staticmethod
    def from_json(record: JsonObject) -> "Problem":
        """The problem that `to_json` wrote."""
        read: Mapping[str, Any] = record  # whose parts check themselves
        several = read.get("trade_off")
        return Problem(
            space=Space.from_json(read["space"]),
            metric=read["metric"],
            direction=read["direction"],
            budget=None if read["budget"] is None else Budget(*read["budget"]),
            constraints={
                name: _KINDS[kind](*numbers)
                for name, (kind, *numbers) in read["constraints"].items()
            },
            cost=read["cost"],
            features=read["features"],
            seed=read["seed"],
            noisy=read.get("noisy", False),
            trade_off=None if several is None else TradeOff.from_json(several),
        )
