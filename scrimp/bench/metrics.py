"""Numbers that compare methods: ranks with ties averaged, and intervals of paired differences."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from scrimp.bench.results import RunRecord

__all__ = [
    "Cell",
    "average_ranks",
    "final_regrets",
    "mean_regret",
    "paired_interval",
    "ranks",
    "with_interval",
]

Cell = tuple[str, str, int]
"""Table, task, seed."""


def ranks(losses: Sequence[float | None]) -> NDArray[np.float64]:
    """1 for the lowest; equal ones share the average of their places; None (nothing found) is worse
    than any number.

    >>> ranks([0.5, 0.1, 0.5, None]).tolist()
    [2.5, 1.0, 2.5, 4.0]
    """
    values = np.array([math.inf if loss is None else loss for loss in losses])
    below = (values[None, :] < values[:, None]).sum(axis=1)
    equal = (values[None, :] == values[:, None]).sum(axis=1)
    return np.asarray(below + (equal + 1) / 2, dtype=float)


def final_regrets(records: Sequence[RunRecord]) -> dict[str, dict[Cell, float | None]]:
    """The last regret of every run: method -> (table, task, seed) -> regret."""
    found: dict[str, dict[Cell, float | None]] = {}
    for record in records:
        cell = (record["table"], record["task"], record["seed"])
        found.setdefault(record["method"], {})[cell] = record["regret"][-1]
    return found


def average_ranks(regrets: Mapping[str, Mapping[Cell, float | None]]) -> dict[str, float]:
    """Each method's rank in a cell (one task, one seed), averaged over the cells that all of them
    have; empty without any."""
    shared = (
        sorted(set.intersection(*(set(cells) for cells in regrets.values()))) if regrets else []
    )
    if not shared:
        return {}
    table = np.array([ranks([regrets[method][cell] for method in regrets]) for cell in shared])
    return dict(zip(regrets, table.mean(axis=0).tolist(), strict=True))


def mean_regret(regrets: Sequence[float | None]) -> float:
    """The mean; infinite when a run found nothing, NaN without runs."""
    return (
        math.nan
        if not regrets
        else float(np.mean([math.inf if regret is None else regret for regret in regrets]))
    )


def paired_interval(
    first: Sequence[float], second: Sequence[float], level: float = 0.95
) -> tuple[float, float, float]:
    """Mean of first - second over pairs, with its Student t interval at ``level``: (mean, low,
    high).

    mean ± t(n - 1) s / sqrt(n); with one pair the interval is everything.

    >>> [round(number, 3) for number in paired_interval([2.0, 3.0, 4.0], [1.0, 1.0, 1.0])]
    [2.0, -0.484, 4.484]
    """
    difference = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    mean, count = float(difference.mean()), len(difference)
    if count < 2:
        return mean, -math.inf, math.inf
    width = float(stdtrit(count - 1, (1 + level) / 2) * difference.std(ddof=1) / math.sqrt(count))
    return mean, mean - width, mean + width


def with_interval(mean: float, low: float, high: float, form: str) -> str:
    """A mean with its interval as text; of a single pair, which has none, the mean and the reason.

    >>> with_interval(1.0, 0.5, 1.5, ".1f"), with_interval(1.0, -math.inf, math.inf, ".1f")
    ('1.0 [0.5, 1.5]', '1.0 (one pair)')
    """
    if math.isinf(low) and math.isinf(high) and math.isfinite(mean):
        return f"{mean:{form}} (one pair)"
    return f"{mean:{form}} [{low:{form}}, {high:{form}}]"
