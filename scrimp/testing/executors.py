"""The battery for executors.

Its trials do what their configuration says, as `run_script` does: report 1 / step at every step of
their grant, or fail before the first report where ``fails`` is true. An executor that does not run
functions brings equivalent runs of its own. One executor serves all tests, so each test must leave
it as it found it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import pytest

from scrimp.executors.executor import Assignment, Executor
from scrimp.executors.live_trial import LiveTrial
from scrimp.json_values import Config
from scrimp.study_log.events import Ended, Event, Reported

FULL_BUDGET = 4.0


def run_script(trial: LiveTrial) -> None:
    """Run a trial as its configuration says."""
    if trial.params["fails"]:
        raise RuntimeError("as it was told")
    for step in trial.steps():
        trial.report(loss=1.0 / step)


def happened(
    executor: Executor, assignments: Sequence[Assignment], stop_at: float | None = None
) -> list[Event]:
    """Run the assignments and return all events; stop a trial at a report of ``stop_at``."""
    events: list[Event] = []

    def deliver(news: Sequence[Event]) -> None:
        events.extend(news)
        for event in news:
            if isinstance(event, Reported) and event.step == stop_at:
                executor.stop(event.trial)

    waiting = list(assignments)
    while waiting or executor.busy:
        while waiting and executor.busy < executor.slots:
            executor.start(waiting.pop(0))
            assert 0 < executor.busy <= executor.slots
        executor.wait(deliver)
    return events


class ExecutorBattery(ABC):
    """Tests for every executor: reports up to the grant, stopped trials, failures, free slots."""

    _made: ClassVar[Executor | None] = None

    @abstractmethod
    def make(self) -> Executor:
        """Return the executor under test; called once."""

    @pytest.fixture
    def executor(self) -> Executor:
        """The idle executor."""
        kind = type(self)
        if kind._made is None:
            kind._made = self.make()
        return kind._made

    @classmethod
    def teardown_class(cls) -> None:
        """Close the executor after all tests."""
        if cls._made is not None:
            cls._made.close()
            cls._made = None

    def config(self, fails: bool = False) -> Config:
        """Return the configuration of a run that reports, or of one that fails."""
        return {"fails": fails}

    def assignment(
        self, trial: int, end: float = FULL_BUDGET, begin: float = 0.0, fails: bool = False
    ) -> Assignment:
        """Return an assignment; a later ``begin`` makes it the second attempt."""
        return Assignment(trial, self.config(fails), 2 if begin else 1, begin, end)

    def test_reports_come_in_order_and_up_to_the_grant(self, executor: Executor) -> None:
        """Run more trials than there are slots; afterwards all slots are free."""
        count = executor.slots + 1
        events = happened(executor, [self.assignment(trial, 2.0) for trial in range(count)])
        reports = [event for event in events if isinstance(event, Reported)]
        assert len(reports) == 2 * count and not any(isinstance(event, Ended) for event in events)
        for trial in range(count):
            own = [event for event in reports if event.trial == trial]
            assert [(event.step, event.attempt) for event in own] == [(1.0, 1), (2.0, 1)]
            assert [event.metrics["loss"] for event in own] == [1.0, 0.5]
        times = [event.time for event in events]
        assert times == sorted(times) and executor.busy == 0

    def test_a_later_grant_is_another_attempt(self, executor: Executor) -> None:
        """End where the grant ends; without a checkpoint a trial may start from the beginning."""
        events = happened(executor, [self.assignment(10, FULL_BUDGET, begin=2.0)])
        reports = [event for event in events if isinstance(event, Reported)]
        assert {event.attempt for event in reports} == {2}
        assert [event.step for event in reports][-2:] == [3.0, 4.0] and len(reports) in (2, 4)

    def test_a_trial_that_is_stopped_says_no_more(self, executor: Executor) -> None:
        events = happened(executor, [self.assignment(20)], stop_at=2.0)
        assert [event.step for event in events if isinstance(event, Reported)] == [1.0, 2.0]
        assert len(happened(executor, [self.assignment(21)])) == FULL_BUDGET

    def test_a_failure_ends_its_trial_and_nothing_else(self, executor: Executor) -> None:
        events = happened(executor, [self.assignment(30, fails=True), self.assignment(31)])
        ends = [event for event in events if isinstance(event, Ended)]
        assert [(event.trial, event.status, event.attempt) for event in ends] == [(30, "failed", 1)]
        assert [event.step for event in events if isinstance(event, Reported)] == [1, 2, 3, 4]
        assert executor.busy == 0

    def test_nothing_to_do_is_no_mistake(self, executor: Executor) -> None:
        executor.stop(40)
        executor.wait(lambda events: pytest.fail(f"no trial ran, and yet {events}"))
        assert executor.busy == 0 and executor.slots >= 1 and executor.stopwatch() >= 0.0

    def test_closing_twice_is_fine(self, executor: Executor) -> None:
        """Last, since one executor serves all tests."""
        executor.close()
        executor.close()
        assert executor.busy == 0
