"""Worker processes on this machine: one per slot, kept alive between trials.

A worker is a fresh interpreter, so the objective is sent to it by value (functions of the main
script included) and no ``if __name__ == "__main__"`` is needed. BLAS is pinned to one thread per
worker, devices are dealt out through CUDA_VISIBLE_DEVICES. A worker that dies, or runs over its
time limit, fails its trial and is replaced; nobody else notices. Each runs below a `keeper`, which
ends it with everything it started, whatever it does, when it is over or this process is gone.
"""

import contextlib
import os
import pickle
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait

import cloudpickle

from scrimp.catalogs.plugins import VARIABLE, named_plugins
from scrimp.errors import CheckpointError, ObjectiveError
from scrimp.executors.clock import Clock, stopwatch, wall_clock
from scrimp.executors.environment import inherited
from scrimp.executors.error_stream import ErrorStream
from scrimp.executors.executor import Assignment, Deliver, Executor
from scrimp.executors.process_tree import ProcessTree
from scrimp.executors.run_context import Objective
from scrimp.history.events import Ended, Event
from scrimp.history.reports import Names

__all__ = ["ONE_THREAD", "Processes"]

_THREAD_VARIABLES = ("OPENBLAS", "OMP", "MKL", "NUMEXPR")

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in _THREAD_VARIABLES}
"""Environment of a process whose linear algebra uses one thread."""


@dataclass
class _Worker:
    """One live process and what it is doing."""

    tree: ProcessTree
    connection: Connection
    lifeline: int
    errors: ErrorStream
    assignment: Assignment | None = None
    started: float = 0.0
    stopped: bool = False


class Processes(Executor):
    """``slots`` worker processes; ``environments`` holds extra variables for each of them."""

    def __init__(
        self,
        objective: Objective,
        metric: Names,
        cost: str | None = None,
        *,
        environments: Sequence[Mapping[str, str]],
        time_limit: float | None = None,
    ) -> None:
        try:
            self._objective = cloudpickle.dumps((objective, metric, cost))
        except Exception as error:
            raise ObjectiveError(
                f"the objective {objective!r} cannot be sent to worker processes ({error}); "
                "define it at module level, or open files and devices inside it, or use workers=1"
            ) from None
        self._environments = list(environments)
        self._time_limit = time_limit
        self._workers: list[_Worker | None] = [None] * len(self._environments)

    @property
    def slots(self) -> int:
        """One per environment."""
        return len(self._environments)

    @property
    def busy(self) -> int:
        """Workers with an assignment."""
        return sum(worker is not None and worker.assignment is not None for worker in self._workers)

    @property
    def clock(self) -> Clock:
        """The machine's clock."""
        return wall_clock

    def start(self, assignment: Assignment) -> None:
        """Hand the assignment to a free worker, starting one when there is none."""
        free = [
            slot
            for slot, worker in enumerate(self._workers)
            if worker is None or worker.assignment is None
        ]
        slot = min(free, key=lambda number: self._workers[number] is None)
        worker = self._workers[slot]
        if worker is None or worker.tree.process.poll() is not None:
            if worker is not None:
                _end(worker)
            worker = self._workers[slot] = self._launch(slot)
        worker.assignment, worker.started, worker.stopped = assignment, stopwatch(), False
        # A worker that died just now is found by `wait`, which fails the trial.
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            worker.connection.send(assignment)

    def stop(self, trial: int) -> None:
        """The next answer to this trial's report says that it ends here."""
        for worker in self._workers:
            if (
                worker is not None
                and worker.assignment is not None
                and worker.assignment.trial == trial
            ):
                worker.stopped = True

    def wait(self, deliver: Deliver) -> None:
        """Deliver reports and ends; answer each report once it is durable."""
        active = {
            worker.connection: slot
            for slot, worker in enumerate(self._workers)
            if worker and worker.assignment
        }
        events: list[Event] = []
        reporting: list[_Worker] = []
        for connection in wait(list(active), timeout=0.2):
            slot = active[connection]  # type: ignore[index]
            worker = self._workers[slot]
            assert worker is not None
            kind, news = self._receive(worker)
            if kind == "trouble":
                raise CheckpointError(news[0])
            events += news
            if kind == "report":
                reporting.append(worker)
            else:
                worker.assignment = None
                if kind == "dead":
                    _end(worker)
                    self._workers[slot] = None
        for worker in self._workers:
            if worker is not None:
                worker.tree.look()
        events += self._overdue()
        if events:
            deliver(events)
        for worker in reporting:
            with contextlib.suppress(
                OSError
            ):  # it died, or was ended for its time, while its report was made durable
                worker.connection.send(not worker.stopped)

    def close(self) -> None:
        """End all workers and what they started."""
        for slot, worker in enumerate(self._workers):
            if worker is not None:
                _end(worker)
                self._workers[slot] = None

    def _receive(self, worker: _Worker) -> tuple[str, list[Event]]:
        try:
            kind, news = worker.connection.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            return "dead", [_failed(worker, _cause_of_death(worker))]
        return kind, news

    def _overdue(self) -> list[Event]:
        events: list[Event] = []
        if self._time_limit is None:
            return events
        for slot, worker in enumerate(self._workers):
            if (
                worker is None
                or worker.assignment is None
                or stopwatch() - worker.started <= self._time_limit
            ):
                continue
            events.append(
                _failed(
                    worker,
                    f"it ran longer than the time limit of {self._time_limit:g} s and was ended",
                )
            )
            _end(worker)
            self._workers[slot] = None
        return events

    def _launch(self, slot: int) -> _Worker:
        ours, theirs = Pipe()
        lifeline_read, lifeline_write = os.pipe()
        plugins = {VARIABLE: ",".join(named_plugins())}
        environment = {**inherited(), **plugins, **ONE_THREAD, **self._environments[slot]}
        arguments = [
            "-m",
            "scrimp.executors.worker_process",
            str(theirs.fileno()),
            str(lifeline_read),
        ]
        tree = ProcessTree(
            [sys.executable, *arguments],
            secrets.token_hex(8),
            pass_fds=(theirs.fileno(), lifeline_read),
            env=environment,
            stderr=subprocess.PIPE,
        )
        theirs.close()
        os.close(lifeline_read)
        assert tree.process.stderr is not None
        worker = _Worker(tree, ours, lifeline_write, ErrorStream(tree.process.stderr))
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            ours.send(sys.path)
            ours.send_bytes(self._objective)
        return worker


def _failed(worker: _Worker, message: str) -> Ended:
    assert worker.assignment is not None
    return worker.assignment.failed(message)


def _cause_of_death(worker: _Worker) -> str:
    try:
        code = worker.tree.process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        return "its worker process closed the connection"
    if code < 0:
        return f"its worker process was killed by signal {-code} ({signal.strsignal(-code)})"
    return f"its worker process exited with code {code}\n{worker.errors.last_lines()}".rstrip()


def _end(worker: _Worker) -> None:
    """Politely, then firmly, with everything it started."""
    if worker.tree.process.poll() is None:
        worker.tree.signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.tree.process.wait(timeout=2)
    worker.tree.end()
    worker.connection.close()
    with contextlib.suppress(OSError):
        os.close(worker.lifeline)
