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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from typing import IO

import cloudpickle

from scrimp.errors import ObjectiveError
from scrimp.executors.executor import Assignment
from scrimp.executors.live_trial import Task
from scrimp.executors.process_tree import ProcessTree, inherited
from scrimp.executors.worker_slots import News, SlotWorker, WorkerSlots
from scrimp.plugins.plugins import VARIABLE, named_plugins
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
        self._kept = b""
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with self._source as source:
            while part := os.read(source.fileno(), KEPT_OUTPUT_BYTES):
                self._kept = (self._kept + part)[-KEPT_OUTPUT_BYTES:]
                try:
                    os.write(self._target, part)
                except OSError:  # our own standard error is closed; the end is still kept
                    continue

    def last_lines(self, timeout: float = 1.0) -> str:
        """Return the last lines of output, once it has ended or after ``timeout`` seconds."""
        self._thread.join(timeout)
        text = self._kept.decode("utf-8", "replace")
        return readable("\n".join(text.splitlines()[-MAX_MESSAGE_LINES:]))


@dataclass(eq=False)
class _WorkerProcess(SlotWorker):
    """A live process, with the pipe to it and the one that it lives by."""

    tree: ProcessTree
    connection: Connection
    lifeline: int
    errors: ErrorStream

    @property
    def alive(self) -> bool:
        return self.tree.process.poll() is None

    def begin(self, assignment: Assignment) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            self.connection.send(assignment)

    def news(self, assignment: Assignment) -> News:
        try:
            news: News = self.connection.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            return "gone", [assignment.ended("failed", self._cause_of_death())]
        return news

    def answer(self, goes_on: bool) -> None:
        # It may have died, or exceeded its time limit, while its report was made durable.
        with contextlib.suppress(OSError):
            self.connection.send(goes_on)

    def _cause_of_death(self) -> str:
        try:
            code = self.tree.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "its worker process closed the connection"
        if code < 0:
            return f"its worker process was killed by signal {-code} ({signal.strsignal(-code)})"
        return f"its worker process exited with code {code}\n{self.errors.last_lines()}".rstrip()

    def end(self) -> None:
        """Terminate it and everything it started, first with SIGTERM, then with SIGKILL."""
        if self.alive:
            self.tree.signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.tree.process.wait(timeout=2)
        self.tree.end()
        self.connection.close()
        with contextlib.suppress(OSError):
            os.close(self.lifeline)


class Processes(WorkerSlots[_WorkerProcess]):
    """An executor with one worker process per environment, which holds extra variables."""

    def __init__(
        self, task: Task, environments: Sequence[Mapping[str, str]], time_limit: float | None = None
    ) -> None:
        try:
            self._task = cloudpickle.dumps(task)
        except Exception as error:
            raise ObjectiveError(
                f"the objective {task.objective!r} cannot be sent to worker processes ({error}); "
                "define it at module level, or open files and devices inside it, or use workers=1"
            ) from None
        super().__init__(len(environments), time_limit)
        self._environments = environments

    def launch(self, slot: int) -> _WorkerProcess:
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
        worker = _WorkerProcess(tree, ours, lifeline_write, ErrorStream(tree.process.stderr))
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            ours.send(sys.path)
            ours.send_bytes(self._task)
        return worker

    def ready(self, active: Sequence[_WorkerProcess]) -> Sequence[_WorkerProcess]:
        found = wait([worker.connection for worker in active], timeout=0.2)
        for worker in filter(None, self._workers):
            worker.tree.look()
        return [worker for worker in active if worker.connection in found]
