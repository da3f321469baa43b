"""The one place that asks the machine for the time."""

import time

from scrimp.executors.clock import wall_clock


def test_the_wall_clock_is_that_of_the_machine() -> None:
    before = time.time()
    now = wall_clock()
    assert before <= now <= time.time()
