"""Evenly spaced numbers, and how they share the unit interval: what ``step`` means.

The i-th of k numbers owns [i/k, (i+1)/k) and sits in its middle, so that every number has the same
chance.

    Steps(0.0, 0.1, 11)[3]          # 0.3, where 3 * 0.1 is 0.30000000000000004
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from scrimp.checks import is_finite
from scrimp.errors import SpaceError
from scrimp.json_values import Scalar
from scrimp.space.values import plain

__all__ = ["Steps", "checked_step", "count_steps", "step_places", "step_units"]

MOST = 10**12  # beyond it, the unit interval in float64 no longer tells neighbours apart
ROUNDING = 1e-6  # the part of a step by which a number may miss the grid: float32, sums of steps


@dataclass(frozen=True)
class Steps(Sequence[float]):
    """The ``length`` numbers low, low + step, low + 2 step, ..., each rounded once from its exact
    decimal value."""

    low: float
    step: float
    length: int

    @cached_property
    def _whole(self) -> tuple[int, int, int]:
        """The first number and the step as whole multiples of 1/unit."""
        low, step = Fraction(repr(self.low)), Fraction(repr(self.step))
        unit = math.lcm(low.denominator, step.denominator)
        return int(low * unit), int(step * unit), unit

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, place: int) -> float: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[float]: ...
    def __getitem__(self, place: int | slice) -> float | Sequence[float]:
        places = range(self.length)[place]  # as lists do: from the end, and IndexError beyond it
        first, stride, unit = self._whole
        if isinstance(places, range):
            return tuple((first + i * stride) / unit for i in places)
        return (first + places * stride) / unit

    def nearest(self, number: float) -> float | None:
        """The number of the grid that ``number`` is up to rounding, or None."""
        found = self[min(max(round((number - self.low) / self.step), 0), self.length - 1)]
        return found if abs(number - found) <= ROUNDING * self.step else None


def count_steps(low: float, high: float, step: float) -> tuple[int, bool]:
    """How many numbers low, low + step, ... there are up to ``high``, and whether ``high`` is one
    of them."""
    ratio = (Fraction(repr(high)) - Fraction(repr(low))) / Fraction(repr(step))
    nearest = round(ratio)
    exact = abs(ratio - nearest) <= ROUNDING
    return (nearest if exact else math.floor(ratio)) + 1, exact


def checked_step(low: float, high: float, log: bool, label: str, step: object) -> tuple[float, int]:
    """The step in its normal form, and how many numbers it makes from ``low`` to ``high`` (both
    int, or both float).

    `SpaceError` where it cannot be. Where ``high`` is not one of the numbers, the last one before
    it counts; a warning says so.
    """
    number, whole = plain(step), isinstance(low, int)
    if not is_finite(number) or number <= 0 or (whole and number != int(number)):
        raise SpaceError(
            f"{label} is {step!r}; it must be a {'whole' if whole else 'finite'} number above 0"
        )
    number = int(number) if whole else float(number)
    if log and not (whole and number == 1):
        raise SpaceError(
            f"{label} is {number!r} with log=True; leave out one of them, or list the values in an"
            " Ordinal"
        )
    count, exact = count_steps(low, high, number)
    if count < 2:
        raise SpaceError(
            f"{label} is {number!r}, and {low!r} to {high!r} is less than that; it must be smaller"
        )
    if count > MOST or number < 4 * math.ulp(max(abs(low), abs(high))):
        raise SpaceError(
            f"{label} is {number!r}, too small for {low!r} to {high!r}; make it larger or leave"
            " it out"
        )
    if not exact:
        last = low + (count - 1) * number if whole else Steps(low, number, count)[-1]
        warnings.warn(
            f"high is {high!r}, which steps of {number!r} from {low!r} do not meet; it becomes"
            f" {last!r}",
            stacklevel=5,
        )
    return number, count


def step_units(
    numbers: Sequence[Scalar], low: float, step: float, count: int
) -> NDArray[np.float64]:
    """Where numbers lie in the unit interval (n,): low + i step in the middle of the i-th of
    ``count`` equal parts."""
    return ((np.asarray(numbers, dtype=float) - low) / step + 0.5) / count


def step_places(units: NDArray[np.float64], count: int) -> list[int]:
    """Which of ``count`` equal parts of the unit interval each place (n,) lies in; what lies
    outside is clipped."""
    parts = np.clip(np.floor(np.asarray(units, dtype=float) * count), 0, count - 1)
    return parts.astype(np.int64).tolist()  # type: ignore[no-any-return]
