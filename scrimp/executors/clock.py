"""Clocks: the rest of the library is given one and never asks the machine for the time.

A clock dates events; a stopwatch measures limits and costs. Neither changes when the machine's
clock is set.
"""

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""A function that returns the seconds since some fixed moment."""


def _since_boot() -> float:
    """Return the seconds since boot, including sleep where the system counts it."""
    try:
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    except (AttributeError, OSError):  # not Linux
        return time.monotonic()


_BOOT = time.time() - _since_boot()


def wall_clock() -> float:
    """Return the seconds since 1970: read when this process began, counted since."""
    return _BOOT + _since_boot()


def stopwatch() -> float:
    """Return the seconds since some moment, without the time the machine slept."""
    return time.monotonic()


def stopwatch_of(clock: Clock) -> Clock:
    """Return the stopwatch that belongs to ``clock``: the clock itself where time is simulated."""
    return stopwatch if clock is wall_clock else clock
