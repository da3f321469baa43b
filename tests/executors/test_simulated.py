"""The virtual clock: order, delays, failures, early ends, and a whole study on it."""

import math
from dataclasses import dataclass

import pytest

from scrimp.errors import StudyError
from scrimp.executors.executor import Assignment
from scrimp.executors.simulated import Curve, Delays, Simulated, SimulatedCurves
from scrimp.json_values import Config
from scrimp.study_log.events import Reported
from scrimp.testing.executors import ExecutorBattery


@dataclass(frozen=True)
class Script(SimulatedCurves):
    """The run of {"run": name} is ``runs[name]``."""

    runs: dict
    levels: tuple = (1.0, 2.0, 3.0, 4.0)

    def curve(self, config):
        return self.runs[config["run"]]


def unit(*values, cost=1.0):
    return Curve(values, (cost,) * len(values))


def assignment(trial, run, end=4.0, begin=0.0, attempt=1):
    return Assignment(trial, {"run": run}, attempt, begin, end)


def drain(executor, stop=()):
    """Everything that happens, as (time, trial, what); trials in ``stop`` are stopped at their
    first report."""
    seen = []

    def deliver(events):
        for event in events:
            what = event.metrics["loss"] if isinstance(event, Reported) else event.status
            seen.append((event.time, event.trial, what))
            if isinstance(event, Reported) and event.trial in stop:
                executor.stop(event.trial)

    while executor.busy:
        executor.wait(deliver)
    return seen


def test_reports_level_by_level_in_the_order_of_time():
    source = Script({"slow": unit(0.4, 0.3, 0.2, 0.1, cost=2.5), "fast": unit(0.8, 0.7, 0.6, 0.5)})
    executor = Simulated(source, "loss", slots=2)
    executor.start(assignment(0, "slow", end=2.0))
    executor.start(assignment(1, "fast"))
    assert drain(executor) == [
        (1.0, 1, 0.8),
        (2.0, 1, 0.7),
        (2.5, 0, 0.4),
        (3.0, 1, 0.6),
        (4.0, 1, 0.5),
        (5.0, 0, 0.3),
    ]
    assert executor.clock() == 5.0
    executor.start(assignment(0, "slow", begin=2.0, attempt=2))  # resumes where it paused
    assert drain(executor) == [(7.5, 0, 0.2), (10.0, 0, 0.1)]


def test_what_happens_at_the_same_moment_is_delivered_in_one_wait_and_in_order():
    executor = Simulated(Script({"a": unit(0.4, 0.3, 0.2, 0.1)}), "loss", slots=3)
    for trial in (2, 0, 1):
        executor.start(assignment(trial, "a", end=1.0))
    batches = []
    executor.wait(lambda events: batches.append([event.trial for event in events]))
    assert batches == [[2], [0], [1]]
    assert executor.busy == 0


def test_reports_say_step_attempt_and_cost():
    executor = Simulated(Script({"a": Curve((0.5, 0.4, 0.3, 0.2), (1.0, 2.0, 3.0, 4.0))}), "loss")
    executor.start(assignment(7, "a", begin=1.0, end=2.0, attempt=3))
    seen = []
    executor.wait(seen.extend)
    assert seen == [
        Reported(trial=7, step=2.0, metrics={"loss": 0.4}, attempt=3, cost=2.0, time=2.0)
    ]


def test_a_run_that_diverges_fails_after_paying_for_the_level():
    executor = Simulated(
        Script({"bad": Curve((0.5, math.nan, 0.3, 0.2), (1.0, 1.5, 1.0, 1.0))}), "loss"
    )
    executor.start(assignment(0, "bad"))
    assert drain(executor) == [(1.0, 0, 0.5), (2.5, 0, "failed")]


def test_a_run_that_is_over_before_the_last_level_is_completed():
    executor = Simulated(Script({"short": unit(0.5, 0.4)}), "loss")
    executor.start(assignment(0, "short", end=2.0))  # the end of its grant is its own end
    assert drain(executor) == [(1.0, 0, 0.5), (2.0, 0, 0.4), (2.0, 0, "completed")]
    executor.start(assignment(0, "short", begin=2.0, attempt=2))
    assert drain(executor) == [(2.0, 0, "completed")]  # nothing left to do


def test_a_grant_between_two_levels_runs_to_the_next():
    executor = Simulated(Script({"a": unit(0.4, 0.3, 0.2, 0.1)}), "loss")
    executor.start(assignment(0, "a", end=1.5))
    assert drain(executor) == [(1.0, 0, 0.4), (2.0, 0, 0.3)]


def test_delays_of_starting_and_stopping():
    executor = Simulated(
        Script({"a": unit(0.4, 0.3, 0.2, 0.1)}), "loss", 1, Delays(start_delay=0.5, stop_delay=0.25)
    )
    executor.start(assignment(0, "a"))
    assert drain(executor, stop={0}) == [(1.5, 0, 0.4)]
    assert executor.clock() == 1.75  # the slot was in use until then
    executor.start(assignment(1, "a", end=1.0))
    assert drain(executor) == [(3.25, 1, 0.4)]
    executor.stop(1)  # not running: nothing happens
    assert executor.busy == 0


def test_a_stopped_run_is_silent_and_frees_its_slot():
    executor = Simulated(Script({"a": unit(0.4, 0.3, 0.2, 0.1)}), "loss", slots=2)
    executor.start(assignment(0, "a"))
    executor.start(assignment(1, "a"))
    executor.stop(0)
    assert executor.busy == 1
    executor.start(assignment(0, "a", end=1.0, attempt=2))
    assert drain(executor, stop={1}) == [(1.0, 1, 0.4), (1.0, 0, 0.4)]


def test_deciding_may_be_charged_to_the_clock():
    thinking = [0.0]
    delays = Delays(decision_clock=lambda: thinking[0])
    executor = Simulated(Script({"a": unit(0.4, 0.3, 0.2, 0.1)}), "loss", 2, delays)
    thinking[0] += 0.5
    executor.start(assignment(0, "a", end=2.0))
    thinking[0] += 3.0
    executor.start(assignment(1, "a", end=1.0))
    assert executor.clock() == 3.5
    assert drain(executor) == [
        (1.5, 0, 0.4),
        (2.5, 0, 0.3),
        (4.5, 1, 0.4),
    ]  # what happened meanwhile kept its time


def test_nothing_happens_after_the_limit():
    executor = Simulated(Script({"a": unit(0.4, 0.3, 0.2, 0.1)}), "loss", 1, Delays(limit=2.5))
    executor.start(assignment(0, "a"))
    assert drain(executor) == [(1.0, 0, 0.4), (2.0, 0, 0.3), (2.5, 0, "stopped")]
    assert executor.clock() == 2.5
    assert executor.busy == 0


def test_a_slot_must_be_free():
    executor = Simulated(Script({"a": unit(0.4)}), "loss")
    executor.start(assignment(0, "a"))
    with pytest.raises(StudyError, match="all 1 slots are in use"):
        executor.start(assignment(1, "a"))
    executor.close()
    executor.close()
    assert executor.busy == 0
    with pytest.raises(StudyError, match="slots is 0"):
        Simulated(Script({}), "loss", slots=0)


class TestSimulated(ExecutorBattery):
    def make(self) -> Simulated:
        runs = {"goes": unit(1.0, 0.5, 1 / 3, 0.25), "fails": unit(math.nan)}
        return Simulated(Script(runs), "loss", slots=2)

    def config(self, fails: bool = False) -> Config:
        return {"run": "fails" if fails else "goes"}
