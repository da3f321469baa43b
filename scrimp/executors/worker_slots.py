"""Executors whose workers run elsewhere: one `SlotWorker` per slot, kept between trials.

A worker calls `run_assignment` and sends what happens, as a word with a list: ("report", events),
after which it waits for an answer; ("done", events) at the end of an attempt; ("trouble",
[error]) when the disk or the output failed. A worker that has died is ("gone", events), and is replaced.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from scrimp.errors import CheckpointError, OutputError
from scrimp.executors.clock import stopwatch, wall_clock
from scrimp.executors.executor import Assignment, Deliver, Executor
from scrimp.executors.live_trial import Emit, LiveTrial, Task, run_objective
from scrimp.study_log.events import Event

News = tuple[str, list[Any]]


def run_assignment(task: Task, assignment: Assignment, emit: Emit) -> News:
    """Run an attempt where the worker is; return its last news."""
    objective, metrics, cost = task
    try:
        trial = LiveTrial(assignment, metrics, cost, emit, wall_clock)
        return "done", run_objective(objective, trial, wall_clock)
    except (CheckpointError, OutputError) as error:
        return "trouble", [error.with_traceback(None)]


class SlotWorker(ABC):
    """A worker as the loop sees it. ``stopped``: its next report is answered with the end."""

    assignment: Assignment | None = None
    started = 0.0
    stopped = False

    @property
    def alive(self) -> bool:
        """False once it is known to have died."""
        return True

    @abstractmethod
    def begin(self, assignment: Assignment) -> None:
        """Send an assignment. A worker that died just now is found later, by its news."""

    @abstractmethod
    def news(self, assignment: Assignment) -> News:
        """Return what has happened, once it is ready."""

    @abstractmethod
    def answer(self, goes_on: bool) -> None:
        """Answer a report, now durable; ``goes_on``: the trial continues."""

    @abstractmethod
    def end(self) -> None:
        """End the worker and everything it started."""


W = TypeVar("W", bound=SlotWorker)


class WorkerSlots(Executor, Generic[W]):
    """An executor of workers; ``time_limit`` is seconds per grant."""

    def __init__(self, slots: int, time_limit: float | None) -> None:
        self.slots = slots
        self._workers: list[W | None] = [None] * slots
        self._time_limit = time_limit

    @abstractmethod
    def launch(self, slot: int) -> W:
        """Start a worker."""

    @abstractmethod
    def ready(self, active: Sequence[W]) -> Sequence[W]:
        """Wait a moment; return the workers that have news."""

    @property
    def busy(self) -> int:
        return len(self._active)

    @property
    def _active(self) -> list[W]:
        return [worker for worker in self._workers if worker is not None and worker.assignment]

    def start(self, assignment: Assignment) -> None:
        """Send the assignment to a free worker, starting one if necessary."""
        free = [n for n, worker in enumerate(self._workers) if not (worker and worker.assignment)]
        # A worker that is already there starts at once.
        slot = min(free, key=lambda number: self._workers[number] is None)
        worker = self._workers[slot]
        if worker is not None and not worker.alive:
            self._drop(worker)
            worker = None
        if worker is None:
            worker = self._workers[slot] = self.launch(slot)
        worker.assignment, worker.started, worker.stopped = assignment, stopwatch(), False
        worker.begin(assignment)

    def stop(self, trial: int) -> None:
        """Make the next report of this trial return False."""
        for worker in self._active:
            if worker.assignment is not None and worker.assignment.trial == trial:
                worker.stopped = True

    def wait(self, deliver: Deliver) -> None:
        """Deliver reports and ends; answer each report once it is durable."""
        events: list[Event] = []
        reporting: list[W] = []
        for worker in self.ready(self._active):
            assert worker.assignment is not None
            kind, news = worker.news(worker.assignment)
            if kind == "trouble":
                raise news[0]
            events += news
            if kind == "report":
                reporting.append(worker)
            else:
                worker.assignment = None
            if kind == "gone":
                self._drop(worker)
        events += self._overdue()
        if events:
            deliver(events)
        for worker in reporting:
            worker.answer(not worker.stopped)

    def close(self) -> None:
        """End all workers and everything they started."""
        for worker in filter(None, self._workers):
            self._drop(worker)

    def _drop(self, worker: W) -> None:
        self._workers[self._workers.index(worker)] = None
        worker.end()

    def _overdue(self) -> list[Event]:
        events: list[Event] = []
        limit = self._time_limit
        for worker in self._active:
            if limit is not None and worker.assignment and stopwatch() - worker.started > limit:
                message = f"it ran longer than the time limit of {limit:g} s and was ended"
                events.append(worker.assignment.ended("failed", message))
                self._drop(worker)
        return events
