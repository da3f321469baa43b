"""Ending on request: a signal asks a process to finish its step, hand its trials back and go.

Cluster schedulers send one before they take a machine away: SIGTERM, or SIGUSR1 and SIGUSR2, by
which jobs on Slurm learn that they are preempted. A second SIGTERM ends the process at once.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["REQUESTS", "ends_on_request"]

REQUESTS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


@contextmanager
def ends_on_request() -> Iterator[Callable[[], bool]]:
    """Within it, these signals are remembered instead of ending the process; what it yields says
    whether one came.

    Signals belong to the main thread: elsewhere nothing is installed, and the answer stays no.
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
