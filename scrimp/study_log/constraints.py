"""Constraints: limits on metrics, and their written forms.

In Python ``AtMost(16)``, ``AtLeast(0.9)``, ``Equals(0.5, tolerance=0.01)``; in a study file
``{at_most = 16}``, ``{at_least = 0.9}``, ``{equals = 0.5, tolerance = 0.01}``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scrimp.checks import did_you_mean, is_finite
from scrimp.errors import StudyError
from scrimp.json_values import Json


@dataclass(frozen=True)
class AtMost:
    """A metric that must not exceed ``limit``."""

    limit: float

    band = (-math.inf, 0.0)

    def deviation(self, value: float) -> float:
        """Return the signed distance from the limit, which a model learns; feasible up to 0."""
        return value - self.limit

    violation = deviation


@dataclass(frozen=True)
class AtLeast:
    """A metric that must not fall below ``limit``."""

    limit: float

    band = (-math.inf, 0.0)

    def deviation(self, value: float) -> float:
        """Return the signed distance from the limit, which a model learns; feasible up to 0."""
        return self.limit - value

    violation = deviation


@dataclass(frozen=True)
class Equals:
    """A metric that must equal ``value`` within ``tolerance``.

    >>> Equals(0.5, tolerance=0.01).violation(0.51) <= 0
    True
    """

    value: float
    tolerance: float

    @property
    def band(self) -> tuple[float, float]:
        """The interval of allowed deviations."""
        return -self.tolerance, self.tolerance

    def deviation(self, value: float) -> float:
        """Return the signed distance from the wanted value, which a model learns."""
        return value - self.value

    def violation(self, value: float) -> float:
        """Return the distance of ``value`` from the tolerated interval; feasible if not positive."""
        return max(value - (self.value + self.tolerance), (self.value - self.tolerance) - value)


Constraint = AtMost | AtLeast | Equals

CONSTRAINT_KINDS: Mapping[str, type[AtMost] | type[AtLeast] | type[Equals]] = {
    "at_most": AtMost,
    "at_least": AtLeast,
    "equals": Equals,
}


def check_constraint(name: str, rule: object) -> None:
    """Refuse anything but a constraint, and constraints that no value can meet."""
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


def constraint_json(rule: Constraint) -> list[Json]:
    """Return the kind of a constraint and its numbers."""
    kind, *_ = constraint_table(rule)
    return [kind, *vars(rule).values()]


_KEYS = ("at_most", "at_least", "equals", "tolerance")


def read_constraint(rule: object) -> Constraint:
    """Read a constraint from a table of a study file; `StudyError` says what to write.

    >>> read_constraint({"equals": 0.5, "tolerance": 0.01})
    Equals(value=0.5, tolerance=0.01)
    """
    given: Mapping[str, object] = rule if isinstance(rule, dict) else {}
    numbers = {key: number for key, number in given.items() if is_finite(number)}
    match tuple(sorted(given)) if len(numbers) == len(given) else ():
        case ("at_most",):
            return AtMost(numbers["at_most"])
        case ("at_least",):
            return AtLeast(numbers["at_least"])
        case ("equals", "tolerance") if numbers["tolerance"] > 0:
            return Equals(numbers["equals"], numbers["tolerance"])
    hints = (did_you_mean(key, _KEYS) for key in given if key not in _KEYS)
    hint = next(filter(None, hints), "")
    raise StudyError(
        f"is {rule!r}; write {{at_most = 16}}, {{at_least = 0.9}} or {{equals = 0.5, tolerance ="
        f" 0.01}} with numbers, and a tolerance above 0{hint}"
    )


def constraint_table(rule: Constraint) -> dict[str, float]:
    """Return the table that `read_constraint` reads.

    >>> constraint_table(Equals(0.5, 0.01))
    {'equals': 0.5, 'tolerance': 0.01}
    """
    kind = next(kind for kind, made in CONSTRAINT_KINDS.items() if isinstance(rule, made))
    return dict(zip((kind, "tolerance"), vars(rule).values(), strict=False))


def constraint_words(name: str, rule: Constraint) -> str:
    """Describe a constraint.

    >>> constraint_words("memory_gb", AtMost(16)), constraint_words("heads", Equals(8, 0.5))
    ('memory_gb at most 16', 'heads equals 8 ± 0.5')
    """
    (kind, number), *tolerance = constraint_table(rule).items()
    return f"{name} {kind.replace('_', ' ')} {number:g}" + "".join(
        f" ± {width:g}" for _, width in tolerance
    )
