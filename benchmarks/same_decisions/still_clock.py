"""A clock that stands still until a study moves it, put in place of the machine's.

scrimp asks the standard library for the time, to date events and to measure costs and time limits.
With this clock a study with a time limit plays the same way every time. Import this module before
scrimp, which asks for the time while it is imported.
"""

import time

_now = 1_000.0
_BIRTH = 1_700_000_000.0


def pass_seconds(seconds: float) -> None:
    """Move the clock forward."""
    global _now
    _now += seconds


def restart() -> None:
    """Set the clock back to where every study begins."""
    global _now
    _now = 1_000.0


def install() -> None:
    """Put this clock in place of the machine's, in this process."""
    time.time = lambda: _BIRTH + _now
    time.monotonic = lambda: _now
    time.clock_gettime = lambda which: _now if which == _BOOT else _MACHINE[2](which)


def remove() -> None:
    """Give the machine its clock back: processes that wait for each other need one that moves."""
    time.time, time.monotonic, time.clock_gettime = _MACHINE


_MACHINE = time.time, time.monotonic, time.clock_gettime
_BOOT = getattr(time, "CLOCK_BOOTTIME", None)
