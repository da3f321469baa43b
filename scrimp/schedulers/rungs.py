"""The arithmetic of rungs: where trials are compared, how many go on, and how often each bracket is
drawn.

A *rung* is a budget at which trials are compared. The rungs r_0 < ... < r_{J-1} lie below the full
budget r_J; together they are the *levels*. Successive halving lets the share r_j / r_{j+1} of the
trials at rung j go on, so that every level costs about the same. A *bracket* s skips the s lowest
levels: Hyperband mixes brackets, because early comparisons may mislead.

    levels = geometric_levels(1, 200)                 # (1, 3, 9, 27, 81, 200)
    promotion_quantiles(levels)                       # (1/3, 1/3, 1/3, 1/3, 0.405)
    bracket_law(levels, 4)                            # (0.609, 0.244, 0.102, 0.045)

Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter
optimization", 2016. Li, Jamieson, DeSalvo, Rostamizadeh and Talwalkar, "Hyperband", 2018. Li et
al., "A system for massively parallel hyperparameter tuning" (ASHA), 2020.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from scrimp.errors import MethodError
from scrimp.history.problem import Budget

__all__ = [
    "Levels",
    "bracket_law",
    "cutoff",
    "draw_bracket",
    "geometric_levels",
    "halving_levels",
    "linear_levels",
    "promotion_quantiles",
    "synchronous_sizes",
]

Levels = tuple[float, ...]
"""Budgets in increasing order; the last is the full budget, all others are rungs."""


def geometric_levels(minimum: float, maximum: float, reduction: float = 3) -> Levels:
    """r_j = minimum * reduction^j while below ``maximum``, then ``maximum``; rounded where the
    minimum is a whole number.

    >>> geometric_levels(1, 200)
    (1.0, 3.0, 9.0, 27.0, 81.0, 200.0)
    """
    if not reduction > 1:
        raise MethodError(
            f"reduction is {reduction}; it must be above 1: 3 lets one trial in three go on"
        )
    whole = float(minimum).is_integer()
    levels: list[float] = []
    level = float(minimum)
    while level < maximum:
        rung = float(round(level)) if whole else level
        if rung < maximum and (not levels or rung > levels[-1]):
            levels.append(rung)
        level *= reduction
    return (*levels, float(maximum))


def linear_levels(minimum: float, maximum: float, increment: float) -> Levels:
    """minimum, minimum + increment, ... while below ``maximum``, then ``maximum``.

    >>> linear_levels(1, 8, 3)
    (1.0, 4.0, 7.0, 8.0)
    """
    if not increment > 0:
        raise MethodError(
            f"increment is {increment}; it must be positive: it is the distance between rungs"
        )
    count = max(math.ceil((maximum - minimum) / increment - 1e-9), 0)
    return (*(float(minimum + j * increment) for j in range(count)), float(maximum))


def halving_levels(
    budget: Budget | None, reduction: float = 3, increment: float | None = None
) -> Levels:
    """The levels of a problem: linear when ``increment`` is given, else geometric; a single one
    without budgets."""
    if budget is None:
        return (1.0,)
    if increment is not None:
        return linear_levels(budget.minimum, budget.maximum, increment)
    return geometric_levels(budget.minimum, budget.maximum, reduction)


def promotion_quantiles(levels: Levels) -> tuple[float, ...]:
    """q_j = r_j / r_{j+1}, the share of the trials at each rung that goes on."""
    return tuple(low / high for low, high in pairwise(levels))


def cutoff(ordered: Sequence[float], quantile: float) -> float:
    """The ``quantile`` of values in increasing order, interpolated linearly: `numpy.quantile`
    without sorting again.

    Infinite values count as the worst; an interpolation towards one is infinite.

    >>> cutoff([1.0, 2.0, 4.0], 0.75)
    3.0
    """
    place = quantile * (len(ordered) - 1)
    low = math.floor(place)
    share = place - low
    if share == 0.0 or ordered[low] == ordered[low + 1]:
        return ordered[low]
    below, above = ordered[low], ordered[low + 1]
    return below + (above - below) * share if share < 0.5 else above - (above - below) * (1 - share)


def bracket_law(levels: Levels, brackets: int) -> tuple[float, ...]:
    """The probability of each bracket: P(s) proportional to S / ((S - s) r_s), with S the number of
    levels.

    It spends about the same on every bracket: a bracket has S - s levels and starts its trials at
    r_s.

    >>> [round(p, 3) for p in bracket_law((1, 3, 9, 27, 81, 200), 6)]
    [0.586, 0.234, 0.098, 0.043, 0.022, 0.018]
    """
    count = min(brackets, len(levels))
    if count < 1:
        raise MethodError(f"brackets is {brackets}; it must be at least 1")
    weights = [len(levels) / ((len(levels) - s) * levels[s]) for s in range(count)]
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def draw_bracket(law: Sequence[float], uniform: float) -> int:
    """The bracket that a uniform number in [0, 1) picks under ``law``."""
    return min(bisect_right(list(accumulate(law)), uniform), len(law) - 1)


def synchronous_sizes(
    levels: Levels, reduction: float = 3, rounding: str = "up"
) -> tuple[tuple[tuple[int, float], ...], ...]:
    """Synchronous Hyperband: for each bracket b its rungs as (size, level), all levels from b on.

    With s = S - 1 the rung k of bracket b has ceil((s + 1) / (s - b + 1) * reduction^(s - b - k))
    slots. Rounded ``down``, that holds for the first rung only, and rung k has floor(n_0 /
    reduction^k), as Hyperband is published.

    >>> synchronous_sizes((1, 3, 9))
    (((9, 1), (3, 3), (1, 9)), ((5, 3), (2, 9)), ((3, 9),))
    >>> synchronous_sizes((1, 3, 9), rounding="down")
    (((9, 1), (3, 3), (1, 9)), ((5, 3), (1, 9)), ((3, 9),))
    """
    top = len(levels) - 1

    def size(bracket: int, rung: int) -> int:
        first = (top + 1) * reduction ** (top - bracket) / (top - bracket + 1)
        if rounding == "down":
            return max(math.floor(math.ceil(first - 1e-9) / reduction**rung + 1e-9), 1)
        return math.ceil(first / reduction**rung - 1e-9)

    return tuple(
        tuple((size(b, k), levels[b + k]) for k in range(top - b + 1)) for b in range(top + 1)
    )
