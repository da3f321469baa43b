"""Time, in one place: the rest of the library is handed a clock and never asks the machine.

There are two: a clock dates events, a stopwatch measures limits and costs. Neither moves when
somebody sets the machine's clock.
"""

import time
from collections.abc import Callable

__all__ = ["Clock", "stopwatch", "stopwatch_of", "wall_clock"]

Clock = Callable[[], float]
"""Seconds since some fixed moment."""


def _since_boot() -> float:
    """Seconds that go on while the machine sleeps, where it can tell."""
    try:
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    except (AttributeError, OSError):  # not Linux
        return time.monotonic()


_BOOT = time.time() - _since_boot()


def wall_clock() -> float:
    """Seconds since 1970: asked of the machine when this process began, counted since."""
    return _BOOT + _since_boot()


def stopwatch() -> float:
    """Seconds since some moment, without those that the machine slept."""
    return time.monotonic()


def stopwatch_of(clock: Clock) -> Clock:
    """What measures time where ``clock`` dates it: the stopwatch, or the clock itself where time is
    simulated."""
    return stopwatch if clock is wall_clock else clock
