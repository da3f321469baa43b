"""Worker processes on this machine: one per slot, kept alive between trials.

A worker is a new interpreter, so the objective is sent to it by value (functions of the main script
included) and no ``if __name__ == "__main__"`` is needed. BLAS is limited to one thread per worker;
CUDA_VISIBLE_DEVICES assigns the GPUs. A worker that dies or exceeds its time limit fails its trial
and is replaced; other trials are not affected. Each worker runs below a `keeper`, which ends it
with everything it started when it is done or this process is gone.
"""

import contextlib
import os
import pickle
import secrets
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from typing import IO

import cloudpickle

from scrimp.errors import CheckpointError, ObjectiveError
from scrimp.executors.clock import stopwatch
from scrimp.executors.executor import Assignment, Deliver, Executor
from scrimp.executors.live_trial import Objective
from scrimp.executors.process_tree import ProcessTree, inherited
from scrimp.plugins.plugins import VARIABLE, named_plugins
from scrimp.study_log.events import Event
from scrimp.study_log.messages import readable

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "NUMEXPR")}
"""Variables that limit linear algebra to one thread."""

KEPT_OUTPUT_BYTES = 8192
"""The number of bytes of output that are kept."""

MAX_MESSAGE_LINES = 12
"""The number of lines that an error message shows."""


class ErrorStream:
    """A thread that copies standard error of a process from ``source`` to ``target`` and keeps the
    end of it, which says why a worker died."""

    def __init__(self, source: IO[bytes], target: int = 2) -> None:
        self._source, self._target = source, target
        self._kept: deque[bytes] = deque()
        self._size = 0
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with self._source as source:
            while part := os.read(source.fileno(), KEPT_OUTPUT_BYTES):
                self._kept.append(part)
                self._size += len(part)
                while self._size - len(self._kept[0]) >= KEPT_OUTPUT_BYTES:
                    self._size -= len(self._kept.popleft())
                try:
                    os.write(self._target, part)
                except OSError:  # our own standard error is closed; the end is still kept
                    continue

    def last_lines(self, timeout: float = 1.0) -> str:
        """Return the last lines of output, once it has ended or after ``timeout`` seconds."""
        self._thread.join(timeout)
        text = b"".join(list(self._kept)).decode("utf-8", "replace")
        return readable("\n".join(text.splitlines()[-MAX_MESSAGE_LINES:]))


@dataclass(eq=False)
class _Worker:
    """A live process and its current assignment."""

    tree: ProcessTree
    connection: Connection
    lifeline: int
    errors: ErrorStream
    assignment: Assignment | None = None
    started: float = 0.0
    stopped: bool = False


class Processes(Executor):
    """An executor with one worker process per environment, which holds extra variables."""

    def __init__(
        self,
        objective: Objective,
        metrics: tuple[str, ...],
        cost: str | None = None,
        *,
        environments: Sequence[Mapping[str, str]],
        time_limit: float | None = None,
    ) -> None:
        try:
            self._objective = cloudpickle.dumps((objective, metrics, cost))
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
        return len(self._environments)

    @property
    def busy(self) -> int:
        return len(self._active)

    @property
    def _active(self) -> list[_Worker]:
        return [worker for worker in self._workers if worker is not None and worker.assignment]

    def _drop(self, worker: _Worker) -> None:
        self._workers[self._workers.index(worker)] = None
        _end(worker)

    def start(self, assignment: Assignment) -> None:
        """Send the assignment to a free worker, starting one if necessary."""
        free = [n for n, worker in enumerate(self._workers) if not (worker and worker.assignment)]
        # A worker that is already there starts at once.
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
        """Make the next report of this trial return False."""
        for worker in self._active:
            if worker.assignment is not None and worker.assignment.trial == trial:
                worker.stopped = True

    def wait(self, deliver: Deliver) -> None:
        """Deliver reports and ends; answer each report once it is durable."""
        active = {worker.connection: worker for worker in self._active}
        events: list[Event] = []
        reporting: list[_Worker] = []
        for connection in wait(list(active), timeout=0.2):
            worker = active[connection]  # type: ignore[index]
            kind, news = self._receive(worker)
            if kind == "trouble":
                raise CheckpointError(news[0])
            events += news
            if kind == "report":
                reporting.append(worker)
            else:
                worker.assignment = None
                if kind == "dead":
                    self._drop(worker)
        for worker in filter(None, self._workers):
            worker.tree.look()
        events += self._overdue()
        if events:
            deliver(events)
        for worker in reporting:
            # It may have died, or exceeded its time limit, while its report was made durable.
            with contextlib.suppress(OSError):
                worker.connection.send(not worker.stopped)

    def close(self) -> None:
        """End all workers and everything they started."""
        for worker in filter(None, self._workers):
            self._drop(worker)

    def _receive(self, worker: _Worker) -> tuple[str, list[Event]]:
        assert worker.assignment is not None
        try:
            kind, news = worker.connection.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            return "dead", [worker.assignment.ended("failed", _cause_of_death(worker))]
        return kind, news

    def _overdue(self) -> list[Event]:
        events: list[Event] = []
        limit = self._time_limit
        for worker in self._active:
            if limit is not None and worker.assignment and stopwatch() - worker.started > limit:
                message = f"it ran longer than the time limit of {limit:g} s and was ended"
                events.append(worker.assignment.ended("failed", message))
                self._drop(worker)
        return events

    def _launch(self, slot: int) -> _Worker:
        ours, theirs = Pipe()
        lifeline_read, lifeline_write = os.pipe()
        plugins = {VARIABLE: ",".join(named_plugins())}
        environment = {**inherited(), **plugins, **ONE_THREAD, **self._environments[slot]}
        program = [sys.executable, "-m", "scrimp.executors.worker_process"]
        tree = ProcessTree(
            [*program, str(theirs.fileno()), str(lifeline_read)],
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


def _cause_of_death(worker: _Worker) -> str:
    try:
        code = worker.tree.process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        return "its worker process closed the connection"
    if code < 0:
        return f"its worker process was killed by signal {-code} ({signal.strsignal(-code)})"
    return f"its worker process exited with code {code}\n{worker.errors.last_lines()}".rstrip()


def _end(worker: _Worker) -> None:
    """Terminate a worker and everything it started, first with SIGTERM, then with SIGKILL."""
    if worker.tree.process.poll() is None:
        worker.tree.signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.tree.process.wait(timeout=2)
    worker.tree.end()
    worker.connection.close()
    with contextlib.suppress(OSError):
        os.close(worker.lifeline)
