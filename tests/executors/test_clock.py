"""The one place that asks the machine for the time."""

import time

import pytest

from scrimp.executors.clock import stopwatch, stopwatch_of, wall_clock


def test_the_wall_clock_is_that_of_the_machine() -> None:
    assert abs(wall_clock() - time.time()) < 60.0


def test_nobody_sets_the_clock_of_a_process_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    before = wall_clock(), stopwatch()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= wall_clock() - before[0] < 600 and 0 <= stopwatch() - before[1] < 600


def test_simulated_time_is_measured_by_its_own_clock() -> None:
    def virtual() -> float:
        return 7.0

    assert stopwatch_of(virtual) is virtual and stopwatch_of(wall_clock) is stopwatch
