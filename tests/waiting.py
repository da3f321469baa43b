"""Waiting for other processes: as long as a test may take, since machines may be busy."""

import time
from collections.abc import Callable

from tests.conftest import MAX_TEST_SECONDS

PATIENCE = 0.8 * MAX_TEST_SECONDS
"""Seconds until a wait has failed; for ``timeout=`` of processes, queues and threads too."""


def eventually(reached: Callable[[], object], pause: float = 0.02) -> None:
    """Return once ``reached()`` is true."""
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(pause)
