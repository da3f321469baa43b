"""Shutdown on request: after a signal a process finishes its step, hands its trials back and exits.

Cluster schedulers send a signal before they take a machine away: SIGTERM, or SIGUSR1 and SIGUSR2
for preempted jobs on Slurm. A second SIGTERM ends the process at once.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_NAMES = ("SIGTERM", "SIGUSR1", "SIGUSR2")
REQUESTS = tuple(vars(signal)[name] for name in _NAMES if name in vars(signal))
"""The signals of this system that ask for a shutdown."""


@contextmanager
def ends_on_request() -> Iterator[Callable[[], bool]]:
    """Catch these signals within the block, and yield a function that returns whether one came.

    Signals can only be handled in the main thread; in others nothing is installed, and the function
    returns False.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {number: signal.getsignal(number) for number in REQUESTS}

    def remember(number: int, _: object) -> None:
        came.append(number)
        if number == signal.SIGTERM:
            signal.signal(signal.SIGTERM, before[signal.SIGTERM])

    for number in REQUESTS:
        signal.signal(number, remember)
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
