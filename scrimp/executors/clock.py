"""Time, in one place: the rest of the library is handed a clock and never asks the machine."""

import time
from collections.abc import Callable

__all__ = ["Clock", "wall_clock"]

Clock = Callable[[], float]
"""Seconds since some fixed moment."""


def wall_clock() -> float:
    """Seconds since 1970 on this machine."""
    return time.time()
