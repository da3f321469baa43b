"""Ending on request: SIGTERM asks a process to finish its step, hand its trials back and go.

Cluster schedulers send it before they take a machine away. A second one ends the process at once.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["ends_on_request"]


@contextmanager
def ends_on_request() -> Iterator[Callable[[], bool]]:
    """Within it, SIGTERM is remembered instead of ending the process; what it yields says whether
    one came.

    Signals belong to the main thread: elsewhere nothing is installed, and the answer stays no.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.getsignal(signal.SIGTERM)

    def remember(number: int, _: object) -> None:
        came.append(number)
        signal.signal(signal.SIGTERM, before)

    signal.signal(signal.SIGTERM, remember)
    try:
        yield lambda: bool(came)
    finally:
        signal.signal(signal.SIGTERM, before)
