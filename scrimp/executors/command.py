"""Scripts as trials: one process tree per trial, with reports read from its output and checkpoints
committed with each report.

    rules = Rules(Command("python train.py --lr {lr}"), ("val_error",))
    CommandExecutor(rules, environments=[{}, {}])

Each script has a `Supervisor`, a thread that watches it from its start to the end of its last
child, so that copying a large checkpoint or ending a stubborn process delays no other trial;
``wait`` delivers their events and answers. If this process dies, the `keeper` of each script ends
it; a guard process ends those whose keeper was killed, and is replaced if it is killed itself. The
guard is told about a keeper before the keeper starts the script, so no script can outlive this
process. A script whose grant is used up has ``grace`` seconds to end by itself. Then, or at once
when it was stopped, failed or is overdue, its tree gets SIGTERM, and SIGKILL after ``grace`` more
seconds.

A report is a line of output with the marker and a JSON object: metrics by name, and optionally
``step`` (otherwise the next one), ``stderr`` (a standard error, or one per metric by name) and
``answer`` (true when the script waits to be told whether to continue).

    scrimp: {"val_error": 0.31, "step": 4}

All output is kept in a log beside the checkpoints. A log that cannot be written fails no trial. It
takes at most ``SCRIMP_LOG_BYTES`` (64 MB); beyond that, its first and last quarter are kept with a
note between.
"""

import contextlib
import json
import os
import queue
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from scrimp.errors import CheckpointError, ReportError
from scrimp.executors import keeper
from scrimp.executors.checkpoint_folder import DISK_FULL_ERRORS, step_text
from scrimp.executors.clock import wall_clock
from scrimp.executors.command_line import Command
from scrimp.executors.executor import Assignment
from scrimp.executors.live_trial import LiveTrial
from scrimp.executors.process_tree import ProcessTree, inherited
from scrimp.executors.worker_slots import News, SlotWorker, WorkerSlots
from scrimp.script import MARKER
from scrimp.study_log.events import Event
from scrimp.study_log.messages import cut

MAX_TAIL_LINES = 20
"""The number of lines of stderr in the message of a failure."""

TellGuard = Callable[[str, int, str], None]

MAX_LINE_BYTES = 1 << 16
"""Longer lines are split; no report is that long."""

LOG_BYTES_VARIABLE = "SCRIMP_LOG_BYTES"
"""The variable that limits the size of a trial's log."""

DEFAULT_LOG_BYTES = 64_000_000
MIN_LOG_BYTES = 4_000


@dataclass(frozen=True)
class ScriptReport:
    """A report as the script wrote it; its numbers are checked later."""

    metrics: dict[str, Any]
    step: Any = None
    stderr: Any = None
    answer: bool = False


def parse_report(line: str) -> ScriptReport | None:
    """Parse a line of output; None when it is not a report, `ReportError` when it is a broken one.

    >>> parse_report('scrimp: {"loss": 0.5, "step": 3}')
    ScriptReport(metrics={'loss': 0.5}, step=3, stderr=None, answer=False)
    """
    place = line.find(MARKER + "{")
    if place < 0:
        return None
    text = line[place + len(MARKER) :].strip()
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReportError(f"cannot read the report {text[:200]!r}: {error}") from None
    if not isinstance(record, dict):
        raise ReportError(f"the report {text[:200]!r} is not a JSON object")
    step, stderr, answer = (record.pop(key, None) for key in ("step", "stderr", "answer"))
    return ScriptReport(record, step, stderr, answer is True)


class Lines:
    """A splitter of bytes into complete lines."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, data: bytes) -> list[str]:
        """Return the lines that ``data`` completes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            lines.append(self._rest)
            self._rest = b""
        return [line.decode(errors="replace") for line in lines]

    def end(self) -> list[str]:
        """Return the last line, if it has no line end."""
        return self.add(b"\n") if self._rest else []


class ScriptLog:
    """The log of a script. What the disk refuses is dropped, and noted once it takes data again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        given = os.environ.get(LOG_BYTES_VARIABLE, "")
        self._most = (
            max(int(given), MIN_LOG_BYTES)
            if given.isascii() and given.isdigit() and len(given) < 16
            else DEFAULT_LOG_BYTES
        )
        self._size = 0
        self._descriptor: int | None = None
        self._dropped = 0

    def write(self, data: bytes) -> None:
        """Append ``data`` if possible."""
        try:
            if self._descriptor is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(
                    self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
                )
                self._size = os.fstat(self._descriptor).st_size
            if self._size + len(data) > self._most:
                self._shorten()
            if self._dropped:
                lost = f"{self._dropped} bytes are missing here: the disk did not take them"
                os.write(self._descriptor, f"[scrimp] {lost}\n".encode())
                self._dropped = 0
            while data:
                written = os.write(self._descriptor, data)
                data, self._size = data[written:], self._size + written
        except OSError:
            self._dropped += len(data)

    def _shorten(self) -> None:
        """Keep the first and the last quarter, in a new file that replaces the old one at once."""
        assert self._descriptor is not None
        quarter = self._most // 4
        with self._path.open("rb") as file:
            head = file.read(quarter)
            file.seek(max(self._size - quarter, len(head)))
            tail = file.read()
        left_out = f"{self._size - len(head) - len(tail)} bytes are left out here"
        note = f"\n[scrimp] {left_out}; {LOG_BYTES_VARIABLE} says how many are kept\n"
        fresh = self._path.with_name(f"{self._path.name}.new")
        fresh.write_bytes(head + note.encode() + tail)
        os.replace(fresh, self._path)
        os.close(self._descriptor)
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._size = os.fstat(self._descriptor).st_size

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None


@dataclass(frozen=True)
class Rules:
    """The settings that all scripts of an executor share. ``time_limit`` is seconds per grant;
    ``grace`` is the time a script has to end by itself, and again after SIGTERM."""

    command: Command
    metrics: tuple[str, ...]
    cost: str | None = None
    time_limit: float | None = None
    grace: float = 5.0


Inbox: TypeAlias = "queue.SimpleQueue[tuple[Supervisor, News]]"


@dataclass(eq=False)
class Supervisor(SlotWorker):
    """The thread that runs one assignment. ``folder`` holds its parameters and its pipe of answers;
    the name of the folder is the mark of its processes.

    ``stopped`` ends the script, whose later reports do not count; ``announced`` warns it of the
    shutdown: if it ends now, its trial is handed back. ``latest`` is what came last of its news.
    """

    rules: Rules
    environment: Mapping[str, str]
    folder: Path
    inbox: "Inbox"
    tell_guard: TellGuard

    # Each script has a supervisor of its own.
    alive = False

    def __post_init__(self) -> None:
        self.announced = self._closed = False
        self.latest: News = ("", [])
        self._answered = threading.Semaphore(0)
        self._tail: deque[str] = deque(maxlen=MAX_TAIL_LINES)
        self._failure = ""
        self._remark = ""
        self._terminate_at = self._kill_at = float("inf")
        self._warned = False

    def begin(self, assignment: Assignment) -> None:
        self._assignment, kept = assignment, assignment.checkpoint_dir
        path = self.folder / "log" if kept is None else kept.with_name(f"{kept.name}.log")
        self._log = ScriptLog(path)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def news(self, assignment: Assignment) -> News:
        return self.latest

    def answer(self, goes_on: bool) -> None:
        self._answered.release()

    def close(self) -> None:
        """End the script without waiting for its news to be taken."""
        self._closed = self.stopped = True
        self._answered.release()

    def end(self) -> None:
        """Wait until the script and everything it started are gone."""
        self._thread.join()

    def _tell(self, word: str, events: Sequence[Any]) -> None:
        self.inbox.put((self, (word, list(events))))

    def _run(self) -> None:
        try:
            metrics, cost = self.rules.metrics, self.rules.cost
            self._trial = LiveTrial(self._assignment, metrics, cost, self._emit, wall_clock)
            with self._script():
                events = self._watch()
            self._tell("done", events)
        except CheckpointError as error:
            self._tell("trouble", [error])
        except Exception as error:
            # Such as a missing folder, or no free process: only this trial fails.
            why = f"the script could not be run: {error!r}"
            self._tell("done", [self._assignment.ended("failed", why)])

    def _emit(self, events: list[Event]) -> bool:
        if self._closed:
            return False
        self._tell("report", events)
        self._answered.acquire()
        return not self.stopped

    @contextlib.contextmanager
    def _script(self) -> Iterator[None]:
        """Run the script within the block; everything it started is gone afterwards."""
        try:
            self.folder.mkdir(parents=True)
            params = json.dumps(self._assignment.config)
            (self.folder / "params.json").write_text(params, encoding="utf-8")
            os.mkfifo(self.folder / "answers")
        except OSError as error:
            raise CheckpointError(
                f"{self.folder} cannot be written ({error}); free some space there and run again"
            ) from error
        with contextlib.ExitStack() as stack:
            self._answers = os.open(self.folder / "answers", os.O_RDWR | os.O_NONBLOCK)
            stack.callback(os.close, self._answers)
            stack.callback(self._log.close)
            self._tree = self._launch()
            self._process = self._tree.process
            assert self._process.stdout is not None and self._process.stderr is not None
            stack.enter_context(self._process.stdout)
            stack.enter_context(self._process.stderr)
            stack.callback(self.tell_guard, "-", self._process.pid, self.folder.name)
            stack.callback(self._tree.end)
            yield

    def _launch(self) -> ProcessTree:
        trial, mark = self._trial, self.folder.name
        places = {
            "params": str(self.folder / "params.json"),
            "python": sys.executable,
            "trial": str(trial.id),
            "budget": step_text(trial.budget),
            "resume_step": step_text(trial.step),
        }
        if self._assignment.checkpoint_dir is not None:
            places["checkpoint_dir"] = str(trial.checkpoint_dir)
        words = self.rules.command.arguments(self._assignment.config, places)
        self._note(
            f"attempt {trial.attempt}, from {places['resume_step']} to {places['budget']}: {words}"
        )
        variables = {
            f"SCRIMP_{name.upper()}": text for name, text in places.items() if name != "python"
        }
        variables["SCRIMP_ATTEMPT"] = str(trial.attempt)
        variables["SCRIMP_ANSWERS"] = str(self.folder / "answers")
        return ProcessTree(
            words,
            mark,
            lambda keeper: self.tell_guard("+", keeper, mark),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.rules.command.folder,
            env={**inherited(), "PYTHONUNBUFFERED": "1", **self.environment, **variables},
        )

    def _watch(self) -> list[Event]:
        """Read until the script has ended; return the events that end the attempt."""
        began, limit = time.monotonic(), self.rules.time_limit
        for source, line in self._output():
            now = time.monotonic()
            overdue = limit is not None and now - began > limit
            if overdue and not self._failure and self._trial.goes_on:
                self._failure = f"it ran longer than the time limit of {limit:g} s and was ended"
            if self._failure or (self.stopped and not self._used_up):
                self._terminate_within(0)
            self._tree.look()
            self._pass_signals(now)
            if source == "stderr":
                self._tail.append(line)
            elif source == "stdout":
                self._read(line)
        return self._outcome(self._process.wait())

    def _output(self) -> Iterator[tuple[str, str]]:
        """Yield lines with their source, ("", "") while there are none; all of them are logged."""
        with selectors.DefaultSelector() as selector:
            for name in ("stdout", "stderr"):
                stream = getattr(self._process, name)
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
                    # If the keeper was killed, remaining processes hold the output open.
                    self._tree.end()
                yield "", ""
            # The script may close its output and continue.
            while self._process.poll() is None:
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
        """Record a report, or write to the log why it does not count."""
        trial, step = self._trial, report.step
        if self._over():
            self._note("ignored: a report that came after the end of the trial's grant")
            return
        if isinstance(step, int | float) and 0 < step <= trial.step:
            self._note(
                f"ignored: a report of step {step:g} after step {trial.step:g}; report each step"
                " once, in order"
            )
            return
        try:
            trial.report(report.metrics, step=step, stderr=report.stderr)
        except ReportError as error:
            self._failure = str(error)
        if self._over():
            ends_itself = self._used_up and not self._failure
            self._terminate_within(self.rules.grace if ends_itself else 0)

    def _over(self) -> bool:
        """Return whether reports of the script no longer count."""
        return bool(self._failure) or not self._trial.goes_on or self.stopped

    @property
    def _used_up(self) -> bool:
        return self._trial.step >= self._trial.budget

    def _terminate_within(self, seconds: float) -> None:
        self._terminate_at = min(self._terminate_at, time.monotonic() + seconds)

    def _pass_signals(self, now: float) -> None:
        if self.announced and not self._warned:
            self._warned = True
            self._tree.signal(signal.SIGUSR1)  # ignored unless the script handles it
        if now >= self._kill_at:
            self._tree.end()
        elif now >= self._terminate_at and self._kill_at == float("inf"):
            self._kill_at = now + self.rules.grace
            self._tree.signal(signal.SIGTERM)

    def _outcome(self, code: int) -> list[Event]:
        trouble = self._trial.trouble(self._disk_error()) if code or self._failure else None
        if trouble is not None:
            raise trouble
        failure = self._failure
        if not failure:
            if not code:
                self._trial.close()
            if not self._trial.goes_on or self.stopped or self._warned:
                return []
            if not code and self._trial.reported:
                message = "the script ended by itself before its grant"
                return [self._assignment.ended("completed", message)]
            example = ", ".join(f'"{name}": 0.3' for name in self.rules.metrics)
            failure = f"the script reported nothing; print a line such as scrimp: {{{example}}}"
            if code < 0:
                failure = f"the script was killed by signal {-code} ({signal.strsignal(-code)})"
            elif code:
                failure = f"the script exited with code {code}"
        last = [f"last remark: {self._remark}"] if self._remark else []
        message = cut("\n".join([failure, *last, *self._tail]), 4000)
        return [self._assignment.ended("failed", message)]

    def _disk_error(self) -> OSError:
        """Return the disk error that the script's last lines mention; an empty OSError if none."""
        words = "\n".join(self._tail)
        found = (number for number in DISK_FULL_ERRORS if os.strerror(number) in words)
        number = next(found, None)
        return OSError() if number is None else OSError(number, os.strerror(number))

    def _note(self, text: str) -> None:
        """Write a line of our own to the trial's log."""
        if text.startswith("ignored"):
            self._remark = text
        self._log.write(f"[scrimp] {text}\n".encode())


class CommandExecutor(WorkerSlots[Supervisor]):
    """An executor that runs a command in one slot per environment, which holds extra variables."""

    def __init__(self, rules: Rules, environments: Sequence[Mapping[str, str]]) -> None:
        # Supervisors watch the time limit: a script gets time to end.
        super().__init__(len(environments), time_limit=None)
        self._rules = rules
        self._environments = environments
        self._inbox: Inbox = queue.SimpleQueue()
        self._name = secrets.token_hex(8)
        self._launched = 0
        self._folder: Path | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._trees: dict[tuple[int, str], None] = {}
        self._telling = threading.Lock()

    def launch(self, slot: int) -> Supervisor:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="scrimp-"))
        self._watch_guard()
        folder = self._folder / f"{self._name}-{self._launched}"
        self._launched += 1
        environment = self._environments[slot]
        return Supervisor(self._rules, environment, folder, self._inbox, self._tell_guard)

    def announce_end(self) -> None:
        """Send SIGUSR1 to all scripts; a script that handles it can save, report and end early."""
        for supervisor in self._active:
            supervisor.announced = True

    def ready(self, active: Sequence[Supervisor]) -> Sequence[Supervisor]:
        self._watch_guard()
        try:
            supervisor, news = self._inbox.get(timeout=0.2)
        except queue.Empty:
            return []
        supervisor.latest = news
        return [supervisor] if supervisor in active else []

    def close(self) -> None:
        """End all scripts and everything they started."""
        for supervisor in self._active:
            supervisor.close()
        super().close()
        if self._guard is not None:
            self._guard.communicate()  # closes its input, by which it ends
            self._guard = self._folder = None

    def _watch_guard(self) -> None:
        """Start the guard, or a new one when it was killed, and tell it of all running scripts."""
        with self._telling:
            if self._folder is None or (self._guard is not None and self._guard.poll() is None):
                return
            if self._guard is not None and self._guard.stdin is not None:
                self._guard.stdin.close()
            command = [sys.executable, "-I", "-S", keeper.__file__, "guard", str(self._folder)]
            self._guard = subprocess.Popen(
                command, stdin=subprocess.PIPE, start_new_session=True, bufsize=0
            )
            for process, mark in self._trees:
                self._write(f"+ {process} {mark}\n")

    def _tell_guard(self, sign: str, process: int, mark: str) -> None:
        with self._telling:
            if sign == "+":
                self._trees[process, mark] = None
            else:
                self._trees.pop((process, mark), None)
            self._write(f"{sign} {process} {mark}\n")

    def _write(self, line: str) -> None:
        assert self._guard is not None and self._guard.stdin is not None
        # A guard that was killed is replaced, and the next one is told everything.
        with contextlib.suppress(OSError):
            os.write(self._guard.stdin.fileno(), line.encode())
