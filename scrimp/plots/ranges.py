"""The part of an axis of values that matters: a few runs that went astray must not press all others
into a line at the bottom."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["Span", "value_axis", "value_span"]

REACH = 4.0
"""The axis reaches this many times as far from the best value as the middle one lies."""

WORTH = 1.5
"""An axis is cut only where all values would need this many times its length."""

MARGIN = 0.06

Span = tuple[float, float]


def value_span(values: Sequence[float], sign: float, log: bool = False) -> Span | None:
    """(lowest, highest) of the values worth showing, in the units of the axis (powers of ten when
    ``log``); None where all of them are.

    With losses l = sign * value, the best one b and the median m, the axis ends at b + `REACH`
    (m - b), unless that saves too little.

    >>> value_span([0.0, 1.0, 2.0, 100.0], 1.0)
    (-0.36, 6.0)
    """
    known = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    if len(known) < 3:
        return None
    losses = sign * (np.log10(known) if log else np.array(known))
    best, middle, worst = (float(level) for level in np.quantile(losses, [0.0, 0.5, 1.0]))
    length = REACH * (middle - best)
    if length <= 0.0 or worst - best <= WORTH * length:
        return None
    ends = sorted((sign * (best - MARGIN * length), sign * (best + length)))
    return float(ends[0]), float(ends[1])


def value_axis(values: Sequence[float], sign: float, log: bool) -> tuple[dict[str, Any], str]:
    """Settings of an axis of values, and words about what lies outside it (empty when nothing)."""
    if log and not any(value > 0 for value in values):
        log = False
    settings: dict[str, Any] = {"type": "log"} if log else {}
    span = value_span(values, sign, log)
    hidden = sum(value <= 0 for value in values) if log else 0
    if span is not None:
        low, high = (10 ** span[0], 10 ** span[1]) if log else span
        beyond = sum(not low <= value <= high for value in values if value > 0 or not log)
        return {**settings, "range": list(span)}, _outside(beyond + hidden)
    return settings, _outside(hidden)


def _outside(count: int) -> str:
    if not count:
        return ""
    return f" {count} point{' lies' if count == 1 else 's lie'} outside; a double click shows all."
