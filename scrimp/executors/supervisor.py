"""One script that runs as a trial, watched by a thread from its start to the end of its last child.

The script begins behind a gate: its keeper waits for a byte before it starts the script. The guard
learns of the keeper in between, so there is no moment at which the script runs and nobody would end
it. A script whose grant is used up has ``grace`` seconds to end by itself. Then, and at once when
it was stopped, failed or is overdue, its tree gets SIGTERM, and SIGKILL after as many seconds
again.
"""

import contextlib
import json
import os
import queue
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scrimp.errors import CheckpointError, ReportError
from scrimp.executors.checkpoint_folder import FULL, step_text
from scrimp.executors.clock import wall_clock
from scrimp.executors.command_line import Command
from scrimp.executors.environment import inherited
from scrimp.executors.executor import Assignment
from scrimp.executors.process_tree import ProcessTree
from scrimp.executors.report_lines import Lines, ScriptReport, parse_report
from scrimp.executors.run_context import RunContext
from scrimp.executors.script_log import ScriptLog
from scrimp.history.events import Ended, Event
from scrimp.history.reports import Names, cut, names_of

__all__ = ["News", "Rules", "Supervisor"]

TAIL = 20  # lines of stderr in the message of a failure

TellGuard = Callable[[str, int, str], None]


@dataclass(frozen=True)
class Rules:
    """What all scripts of an executor have in common."""

    command: Command
    metric: Names
    cost: str | None
    time_limit: float | None
    grace: float


@dataclass(frozen=True)
class News:
    """Events of one script; the supervisor waits until they are delivered, unless it ``ended``.
    ``trouble`` is the disk's."""

    supervisor: "Supervisor"
    events: list[Event]
    ended: bool
    trouble: CheckpointError | None = None


class Supervisor:
    """Runs one assignment; ``folder`` is for its parameters and its pipe of answers, and its name
    marks what runs."""

    def __init__(
        self,
        assignment: Assignment,
        rules: Rules,
        environment: Mapping[str, str],
        folder: Path,
        news: "queue.SimpleQueue[News]",
    ) -> None:
        self.assignment = assignment
        self._rules = rules
        self._environment = environment
        self._folder = folder
        self.mark = folder.name
        self._news = news
        self._stopped = threading.Event()
        self._closed = threading.Event()
        self._announced = threading.Event()
        self._delivered = threading.Semaphore(0)
        self._thread: threading.Thread | None = None

    def start(self, tell_guard: TellGuard) -> None:
        """Begin; from here on news come over the queue."""
        self._thread = threading.Thread(target=self._run, args=(tell_guard,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let the script end; its later reports do not count."""
        self._stopped.set()

    def announce_end(self) -> None:
        """Let the script know that all is to end; should it end now, its trial is handed back."""
        self._announced.set()

    def delivered(self) -> None:
        """The events posted last are durable, and ``stop`` was called if the trial is to end."""
        self._delivered.release()

    def close(self) -> None:
        """End without waiting for anybody to take news."""
        self._closed.set()
        self._stopped.set()
        self._delivered.release()

    def join(self) -> None:
        """Wait until the script and all it started are gone."""
        assert self._thread is not None
        self._thread.join()

    def _run(self, tell_guard: TellGuard) -> None:
        try:
            context = RunContext(
                self.assignment, self._rules.metric, self._rules.cost, self._emit, wall_clock
            )
            with _Script(self, context, tell_guard) as script:
                events = script.watch()
        except CheckpointError as error:
            self._news.put(News(self, [], ended=True, trouble=error))
            return
        except (
            Exception
        ) as error:  # a folder to run in that is gone, no process to be had: this trial fails
            events = [self.ended("failed", f"the script could not be run: {error!r}")]
        self._news.put(News(self, events, ended=True))

    def _emit(self, events: list[Event]) -> bool:
        if self._closed.is_set():
            return False
        self._news.put(News(self, events, ended=False))
        self._delivered.acquire()
        return not self._stopped.is_set()

    def ended(self, status: str, message: str) -> Event:
        """The event that ends this attempt."""
        trial, attempt = self.assignment.trial, self.assignment.attempt
        return Ended(
            trial=trial, status=status, message=message, attempt=attempt, time=wall_clock()
        )


class _Script:
    """The process, its output and its log."""

    def __init__(self, supervisor: Supervisor, context: RunContext, tell_guard: TellGuard) -> None:
        self._supervisor = supervisor
        self._rules = supervisor._rules
        self._context = context
        self._tell_guard = tell_guard
        self._mark = supervisor.mark
        self._tail: deque[str] = deque(maxlen=TAIL)
        self._failure = ""
        self._remark = ""
        self._terminate_at = self._kill_at = float("inf")
        self._warned = False

    def __enter__(self) -> "_Script":
        folder, assignment = self._supervisor._folder, self._supervisor.assignment
        try:
            folder.mkdir(parents=True)
            (folder / "params.json").write_text(json.dumps(assignment.config), encoding="utf-8")
            os.mkfifo(folder / "answers")
        except OSError as error:
            raise CheckpointError(
                f"{folder} cannot be written ({error}); make room there and run again"
            ) from error
        kept = assignment.checkpoint_dir
        path = folder / "log" if kept is None else kept.with_name(f"{kept.name}.log")
        with contextlib.ExitStack() as stack:
            self._answers = os.open(folder / "answers", os.O_RDWR | os.O_NONBLOCK)
            stack.callback(os.close, self._answers)
            self._log = ScriptLog(path)
            stack.callback(self._log.close)
            self._tree = self._launch()
            self._process = self._tree.process
            stack.callback(self._end)
            self._opened = stack.pop_all()
        return self

    def _launch(self) -> ProcessTree:
        places = _places(self._supervisor, self._context)
        words = self._rules.command.arguments(self._supervisor.assignment.config, places)
        self._note(
            f"attempt {self._context.attempt}, from {places['resume_step']} to {places['budget']}:"
            f" {words}"
        )
        variables = {
            f"SCRIMP_{name.upper()}": text for name, text in places.items() if name != "python"
        }
        variables["SCRIMP_ATTEMPT"] = str(self._context.attempt)
        variables["SCRIMP_ANSWERS"] = str(self._supervisor._folder / "answers")
        return ProcessTree(
            words,
            self._mark,
            lambda keeper: self._tell_guard("+", keeper, self._mark),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._rules.command.folder,
            env={
                **inherited(),
                "PYTHONUNBUFFERED": "1",
                **self._supervisor._environment,
                **variables,
            },
        )

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _end(self) -> None:
        self._tree.end()
        self._tell_guard("-", self._process.pid, self._mark)
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    def watch(self) -> list[Event]:
        """Read until the script has ended; the events that end the attempt."""
        began = time.monotonic()
        for source, line in self._output():
            now, limit = time.monotonic(), self._rules.time_limit
            if (
                limit is not None
                and now - began > limit
                and not self._failure
                and self._context.goes_on
            ):
                self._fail(f"it ran longer than the time limit of {limit:g} s and was ended")
            if self._supervisor._stopped.is_set() and not self._used_up:
                self._terminate_within(0)
            self._tree.look()
            self._pass_signals(now)
            if source == "stderr":
                self._tail.append(line)
            elif source == "stdout":
                self._read(line)
        return self._outcome(self._process.wait())

    def _output(self) -> Iterator[tuple[str, str]]:
        """Lines with their source as they come, and ("", "") while none come; all of it goes into
        the log."""
        with selectors.DefaultSelector() as selector:
            for name, stream in (
                ("stdout", self._process.stdout),
                ("stderr", self._process.stderr),
            ):
                assert stream is not None
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ, (name, Lines()))
            ended = False
            while selector.get_map():
                ready = selector.select(0 if ended else 0.1)
                for key, _ in ready:
                    name, lines = key.data
                    data = os.read(key.fd, 1 << 16)
                    self._log.write(data)
                    if not data:
                        selector.unregister(key.fileobj)
                    for line in lines.add(data) if data else lines.end():
                        yield name, line
                if not ready and ended:
                    return
                if not ended and self._process.poll() is not None:
                    ended = True
                    # what is left, should its keeper have been killed, holds its output open
                    self._tree.end()
                yield "", ""
            while self._process.poll() is None:  # it closed its output and goes on
                time.sleep(0.05)
                yield "", ""

    def _read(self, line: str) -> None:
        try:
            report = parse_report(line)
        except ReportError as error:
            self._note(f"ignored: {error}")
            return
        if report is not None:
            self._take(report)
            if report.answer:
                with contextlib.suppress(BlockingIOError):
                    os.write(self._answers, b"end\n" if self._over() else b"go\n")

    def _take(self, report: ScriptReport) -> None:
        """Record a report, or say in the log why it does not count."""
        context, step = self._context, report.step
        if self._over():
            self._note("ignored: a report that came after the end of the trial's grant")
            return
        if isinstance(step, int | float) and 0 < step <= context.step:
            self._note(
                f"ignored: a report of step {step:g} after step {context.step:g}; report each step"
                " once, in order"
            )
            return
        try:
            context.report(report.metrics, step=step, stderr=report.stderr)
        except ReportError as error:
            self._fail(str(error))
        if self._over():
            self._terminate_within(self._rules.grace if self._used_up else 0)

    def _over(self) -> bool:
        """Whether nothing the script says counts any more."""
        return (
            bool(self._failure) or not self._context.goes_on or self._supervisor._stopped.is_set()
        )

    @property
    def _used_up(self) -> bool:
        return self._context.step >= self._context.budget

    def _fail(self, message: str) -> None:
        self._failure = message
        self._terminate_within(0)

    def _terminate_within(self, seconds: float) -> None:
        self._terminate_at = min(self._terminate_at, time.monotonic() + seconds)

    def _pass_signals(self, now: float) -> None:
        if self._supervisor._announced.is_set() and not self._warned:
            self._warned = True
            self._tree.signal(signal.SIGUSR1)  # ignored unless the script handles it
        if now >= self._kill_at:
            self._tree.end()
        elif now >= self._terminate_at and self._kill_at == float("inf"):
            self._kill_at = now + self._rules.grace
            self._tree.signal(signal.SIGTERM)

    def _outcome(self, code: int) -> list[Event]:
        ended = self._supervisor.ended
        trouble = self._context.trouble(self._error_of_disk()) if code or self._failure else None
        if trouble is not None:
            raise trouble
        if self._failure:
            return [ended("failed", self._with_tail(self._failure))]
        if not code:
            self._context.close()
        if not self._context.goes_on or self._supervisor._stopped.is_set() or self._warned:
            return []
        if code:
            name = (
                f"was killed by signal {-code} ({signal.strsignal(-code)})"
                if code < 0
                else f"exited with code {code}"
            )
            return [ended("failed", self._with_tail(f"the script {name}"))]
        if self._context.reported:
            return [ended("completed", "the script ended by itself before its grant")]
        example = ", ".join(f'"{name}": 0.3' for name in names_of(self._rules.metric))
        example = f"scrimp: {{{example}}}"
        return [
            ended(
                "failed",
                self._with_tail(f"the script reported nothing; print a line such as {example}"),
            )
        ]

    def _error_of_disk(self) -> OSError:
        """What the script's last words say of a disk, as the error they were; one of no kind when
        they say nothing."""
        words = "\n".join(self._tail)
        for number in FULL:
            if os.strerror(number) in words:
                return OSError(number, os.strerror(number))
        return OSError()

    def _with_tail(self, message: str) -> str:
        last = [f"last remark: {self._remark}"] if self._remark else []
        return cut("\n".join([message, *last, *self._tail]), 4000)

    def _note(self, text: str) -> None:
        """A line of our own in the trial's log."""
        if text.startswith("ignored"):
            self._remark = text
        self._log.write(f"[scrimp] {text}\n".encode())


def _places(supervisor: Supervisor, context: RunContext) -> dict[str, str]:
    """The texts of the placeholders, which are the script's environment variables too."""
    places = {
        "params": str(supervisor._folder / "params.json"),
        "python": sys.executable,
        "trial": str(context.id),
        "budget": step_text(context.budget),
        "resume_step": step_text(context.step),
    }
    kept = supervisor.assignment.checkpoint_dir is not None
    return {**places, "checkpoint_dir": str(context.checkpoint_dir)} if kept else places
