"""The part of an axis of values that matters: a few runs that went astray must not press all others
into a line at the bottom."""

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["Span", "value_axis", "value_span"]

REACH = (4.0, 12.0)
"""The axis reaches at least, and at most, this many times as far from the best value as the middle
one lies; between them it reaches as far as the `SHARE` of all values that is best."""

SHARE = 0.85

WORTH = 1.5
"""An axis is cut only where all values would need this many times its length; curves, which begin
far from where they end, have a larger one."""

MARGIN = 0.06

Span = tuple[float, float]


def value_span(
    values: Sequence[float], sign: float, log: bool = False, worth: float = WORTH
) -> Span | None:
    """(lowest, highest) of the values worth showing, in the units of the axis (powers of ten when
    ``log``); None where all of them are.

    With losses l = sign * value, the best one b, the median m and the quantile q of `SHARE`, the
    axis ends at q, but not before b + 4 (m - b) nor beyond b + 12 (m - b), unless that saves too
    little.

    >>> value_span([0.0, 1.0, 2.0, 100.0], 1.0)
    (-0.36, 6.0)
    """
    known = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    if len(known) < 3:
        return None
    losses = sign * (np.log10(known) if log else np.array(known))
    best, middle, worst = (float(level) for level in np.quantile(losses, [0.0, 0.5, 1.0]))
    most = float(np.quantile(losses, SHARE, method="lower"))
    least, furthest = (reach * (middle - best) for reach in REACH)
    length = min(max(most - best, least), furthest)
    if length <= 0.0 or worst - best <= worth * length:
        return None
    ends = sorted((sign * (best - MARGIN * length), sign * (best + length)))
    return float(ends[0]), float(ends[1])


def value_axis(
    values: Sequence[float], sign: float, log: bool, worth: float = WORTH
) -> tuple[dict[str, str | list[float]], str]:
    """Settings of an axis of values, and words about what lies outside it (empty when nothing)."""
    if log and not any(value > 0 for value in values):
        log = False
    settings: dict[str, str | list[float]] = {"type": "log"} if log else {}
    span = value_span(values, sign, log, worth)
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
