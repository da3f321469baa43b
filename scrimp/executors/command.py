"""Any script as a trial: one process tree per trial, reports read from its output, checkpoints kept
with each report.

A thread of its own supervises each script (`supervisor.py`), so that copying a large checkpoint or
ending a stubborn process holds up nobody else; ``wait`` hands their news on and answers. A `keeper`
per script, and a `guard` behind them, end all scripts should this process vanish; a guard that
vanishes itself is replaced.

    CommandExecutor(Command("python train.py --lr {lr}"), "val_error", environments=[{}, {}])
"""

import contextlib
import os
import queue
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from scrimp.executors import guard
from scrimp.executors.clock import Clock, wall_clock
from scrimp.executors.command_line import Command
from scrimp.executors.executor import Assignment, Deliver, Executor
from scrimp.executors.supervisor import News, Rules, Supervisor
from scrimp.history.reports import Names

__all__ = ["CommandExecutor"]


class CommandExecutor(Executor):
    """Runs ``command`` in as many slots as there are ``environments``, extra variables for each of
    them.

    ``time_limit`` is seconds per grant; ``grace`` is how long a script may take to end by itself,
    and again after SIGTERM.
    """

    def __init__(
        self,
        command: Command,
        metric: Names,
        cost: str | None = None,
        *,
        environments: Sequence[Mapping[str, str]],
        time_limit: float | None = None,
        grace: float = 5.0,
    ) -> None:
        self._rules = Rules(command, metric, cost, time_limit, grace)
        self._environments = list(environments)
        self._slots: list[Supervisor | None] = [None] * len(self._environments)
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._name = secrets.token_hex(8)
        self._launched = 0
        self._folder: Path | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._trees: dict[tuple[int, str], None] = {}
        self._telling = threading.Lock()

    @property
    def slots(self) -> int:
        """One per environment."""
        return len(self._environments)

    @property
    def busy(self) -> int:
        """Scripts that have not ended yet, those on their way out included."""
        return sum(supervisor is not None for supervisor in self._slots)

    @property
    def clock(self) -> Clock:
        """The machine's clock."""
        return wall_clock

    def start(self, assignment: Assignment) -> None:
        """Start the script in a free slot."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="scrimp-"))
        self._watch_guard()
        slot = self._slots.index(None)
        mark = f"{self._name}-{self._launched}"
        self._launched += 1
        supervisor = Supervisor(
            assignment, self._rules, self._environments[slot], self._folder / mark, self._news
        )
        self._slots[slot] = supervisor
        supervisor.start(self._tell_guard)

    def stop(self, trial: int) -> None:
        """End the script of a trial; one that has used up its grant may end by itself."""
        for supervisor in self._slots:
            if supervisor is not None and supervisor.assignment.trial == trial:
                supervisor.stop()

    def announce_end(self) -> None:
        """Send SIGUSR1 to all scripts: who handles it may save, report and end early."""
        for supervisor in self._slots:
            if supervisor is not None:
                supervisor.announce_end()

    def wait(self, deliver: Deliver) -> None:
        """Deliver reports and ends; a script that waits for the answer to its report goes on once
        it is durable."""
        self._watch_guard()
        try:
            news = self._news.get(timeout=0.2)
        except queue.Empty:
            return
        if news.ended:
            self._slots[self._slots.index(news.supervisor)] = None
        if news.trouble is not None:
            raise news.trouble
        if news.events:
            deliver(news.events)
        news.supervisor.delivered()

    def close(self) -> None:
        """End all scripts and what they started."""
        running = [supervisor for supervisor in self._slots if supervisor is not None]
        for supervisor in running:
            supervisor.close()
        for supervisor in running:
            supervisor.join()
        self._slots = [None] * len(self._environments)
        if self._guard is not None:
            assert self._guard.stdin is not None
            with contextlib.suppress(OSError):
                self._guard.stdin.close()
            self._guard.wait()
            self._guard = self._folder = None

    def _watch_guard(self) -> None:
        """Start the guard, and another one when it was killed, which is told of all that runs."""
        with self._telling:
            if self._folder is None or (self._guard is not None and self._guard.poll() is None):
                return
            if self._guard is not None and self._guard.stdin is not None:
                self._guard.stdin.close()
            command = [sys.executable, "-I", "-S", guard.__file__, str(self._folder)]
            self._guard = subprocess.Popen(
                command, stdin=subprocess.PIPE, start_new_session=True, bufsize=0
            )
            for keeper, mark in self._trees:
                self._write(f"+ {keeper} {mark}\n")

    def _tell_guard(self, sign: str, keeper: int, mark: str) -> None:
        with self._telling:
            if sign == "+":
                self._trees[keeper, mark] = None
            else:
                self._trees.pop((keeper, mark), None)
            self._write(f"{sign} {keeper} {mark}\n")

    def _write(self, line: str) -> None:
        assert self._guard is not None and self._guard.stdin is not None
        with contextlib.suppress(OSError):  # it was killed: the next one is told
            os.write(self._guard.stdin.fileno(), line.encode())
