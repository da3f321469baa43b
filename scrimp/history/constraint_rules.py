"""Constraints as a study file writes them: ``{at_most = 16}``, ``{at_least = 0.9}``, ``{equals =
0.5, tolerance = 0.01}``."""

from collections.abc import Mapping

from scrimp.checks import did_you_mean, is_finite
from scrimp.errors import StudyError
from scrimp.history.problem import AtLeast, AtMost, Constraint, Equals

__all__ = ["constraint_table", "constraint_words", "read_constraint"]

_KEYS = ("at_most", "at_least", "equals", "tolerance")


def read_constraint(rule: object) -> Constraint:
    """The constraint that a table stands for; `StudyError` says what to write.

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
    """What `read_constraint` reads.

    >>> constraint_table(Equals(0.5, 0.01))
    {'equals': 0.5, 'tolerance': 0.01}
    """
    match rule:
        case AtMost(limit):
            return {"at_most": limit}
        case AtLeast(limit):
            return {"at_least": limit}
        case Equals(value, tolerance):
            return {"equals": value, "tolerance": tolerance}


def constraint_words(name: str, rule: Constraint) -> str:
    """The rule for people.

    >>> constraint_words("memory_gb", AtMost(16)), constraint_words("heads", Equals(8, 0.5))
    ('memory_gb at most 16', 'heads equals 8 ± 0.5')
    """
    (kind, number), *tolerance = constraint_table(rule).items()
    return f"{name} {kind.replace('_', ' ')} {number:g}" + "".join(
        f" ± {width:g}" for _, width in tolerance
    )
