"""Several metrics at once: which, in which direction, and how much of each counts.

    TradeOff({"val_error": "minimize", "latency_ms": "minimize"}, goals={"latency_ms": 5.0})

A report then has a loss for each metric, lower is better, and the study has no best report but a
front: the reports that no other one dominates. One report *dominates* another when it is at least
as good in every metric and better in one. A metric that has reached its *goal* counts as being
there: 3 ms are no better than 5 ms where 5 ms are good enough.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NotRequired, TypedDict

from scrimp.checks import did_you_mean, is_finite
from scrimp.errors import StudyError
from scrimp.json_values import Json

__all__ = ["MANY", "Direction", "Losses", "TradeOff", "dominates"]

Direction = Literal["minimize", "maximize"]

Losses = tuple[float, ...]
"""A report in all metrics, lower is better; what lies beyond a goal counts as the goal."""

MANY = 5
"""From so many metrics on nearly every report is on the front; the study says so when it is made."""


def dominates(first: Losses, second: Losses) -> bool:
    """Whether ``first`` is at least as good everywhere and better somewhere.

    >>> dominates((1.0, 2.0), (1.0, 3.0)), dominates((1.0, 2.0), (1.0, 2.0))
    (True, False)
    """
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))


@dataclass(frozen=True)
class TradeOff:
    """Two metrics or more. ``reference``: a value of each that hypervolumes are measured from;
    ``goals``: values that are good enough, of some; ``weights`` of what `Study.best` takes.
    ``beyond``: whether decisions measure from a reference beyond the worst result of a metric too;
    in studies that began before that was so, it is cut there."""

    metrics: Mapping[str, Direction]
    reference: Mapping[str, float] = field(default_factory=dict)
    goals: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    beyond: bool = field(default=True, compare=False)

    def __post_init__(self) -> None:
        check_metrics(self.metrics)
        self.check_table("reference", self.reference, whole=True)
        self.check_table("goals", self.goals)
        self.check_table("weights", self.weights, whole=True)
        if self.weights:
            check_weights(self.weights)

    def check_table(self, label: str, table: Mapping[str, float], whole: bool = False) -> None:
        """Refuse a table whose names are no metrics or whose values are no numbers; one that is to
        be ``whole`` names all metrics or none."""
        if not isinstance(table, Mapping):
            raise StudyError(
                f"{label} is {table!r}; it must be a table by metric, such as"
                f" {{{self.names[0]!r}: 1.0}}"
            )
        for name, number in table.items():
            if name not in self.metrics:
                hint = did_you_mean(str(name), self.names, ".")
                raise StudyError(
                    f"{label} names {name!r}, which is no metric of the study{hint} Its metrics:"
                    f" {', '.join(self.names)}"
                )
            if not is_finite(number):
                raise StudyError(f"{label} of {name!r} is {number!r}; it must be a finite number")
        missing = [name for name in self.names if name not in table]
        if whole and table and missing:
            raise StudyError(
                f"{label} leaves out {', '.join(missing)}; give a number for every metric, or none"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics, in order."""
        return tuple(self.metrics)

    @property
    def signs(self) -> tuple[float, ...]:
        """1 for each metric of which low values are good, -1 for the others."""
        return tuple(1.0 if way == "minimize" else -1.0 for way in self.metrics.values())

    @property
    def best_losses(self) -> Losses:
        """The losses below which nothing counts: the goals, minus infinity where there is none."""
        return tuple(
            sign * self.goals[name] if name in self.goals else -math.inf
            for name, sign in zip(self.names, self.signs, strict=True)
        )

    @property
    def reference_losses(self) -> Losses | None:
        """The reference as losses; None without one."""
        return self.as_losses(self.reference) if self.reference else None

    def as_losses(self, values: Mapping[str, float]) -> Losses:
        """Values of all metrics as losses."""
        pairs = zip(self.names, self.signs, strict=True)
        return tuple(sign * float(values[name]) for name, sign in pairs)

    def values(self, losses: Iterable[float]) -> dict[str, float]:
        """Losses in the user's directions again, by metric."""
        found = zip(self.names, self.signs, losses, strict=True)
        return {name: float(sign * loss) for name, sign, loss in found}

    def losses(self, metrics: Mapping[str, float | None]) -> Losses | None:
        """What counts of a report; None where a metric is missing or not finite."""
        found = []
        for name, sign, best in zip(self.names, self.signs, self.best_losses, strict=True):
            value = metrics.get(name)
            if value is None or not math.isfinite(value):
                return None
            found.append(max(sign * value, best))
        return tuple(found)

    def to_json(self) -> dict[str, Json]:
        """A plain JSON form; `from_json` restores it."""
        tables = {"reference": self.reference, "goals": self.goals, "weights": self.weights}
        found: dict[str, Json] = {"metrics": dict(self.metrics)}
        found |= {label: dict(table) for label, table in tables.items() if table}
        return found | ({"beyond": True} if self.beyond else {})

    @staticmethod
    def from_json(record: "_Record") -> "TradeOff":
        """What `to_json` wrote."""
        found = TradeOff(**record)
        return found if "beyond" in record else replace(found, beyond=False)


class _Record(TypedDict):
    """What `TradeOff.to_json` writes."""

    metrics: dict[str, Direction]
    reference: NotRequired[dict[str, float]]
    goals: NotRequired[dict[str, float]]
    weights: NotRequired[dict[str, float]]
    beyond: NotRequired[bool]


def check_metrics(metrics: object) -> None:
    """Refuse what is no table of at least two names with their directions."""
    if not isinstance(metrics, Mapping) or len(metrics) < 2:
        raise StudyError(
            f"metrics is {metrics!r}; it must be a table from names to directions, such as"
            " {'val_error': 'minimize', 'latency_ms': 'minimize'}"
        )
    for name, way in metrics.items():
        if not isinstance(name, str) or not name:
            raise StudyError(f"metrics names {name!r}; a metric's name is a text")
        if way not in ("minimize", "maximize"):
            raise StudyError(
                f"metric {name!r} has the direction {way!r}; it must be 'minimize' or 'maximize'"
            )


def check_weights(weights: Mapping[str, float]) -> None:
    """Refuse weights below 0, and weights that are all 0."""
    for name, weight in weights.items():
        if weight < 0:
            raise StudyError(f"weight of {name!r} is {weight!r}; it must be at least 0")
    if not any(weights.values()):
        raise StudyError("all weights are 0; give at least one metric a weight above 0")
