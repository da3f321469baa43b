"""One run of a study in this process: limits, executor, stop rules and progress display for
``Study.optimize``."""

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from scrimp.checks import is_positive, is_whole
from scrimp.display.card import NotebookOutput, notebook_output, study_card
from scrimp.display.study_words import failure_line, summary_line
from scrimp.display.terminal import on_terminal
from scrimp.errors import ObjectiveError, StudyError
from scrimp.executors.clock import Clock, wall_clock
from scrimp.executors.command_line import Command
from scrimp.executors.executor import Executor
from scrimp.executors.live_trial import InProcess, Objective, Task
from scrimp.executors.ray import RayExecutor, RaySettings
from scrimp.json_values import Json
from scrimp.methods.policy import Policy
from scrimp.study.checkpoint_cleanup import Keep
from scrimp.study.ledger import LEASE_SECONDS, Ledger
from scrimp.study.outcomes import Alarm, Catch, log_outcome
from scrimp.study.signing import SignedOnly
from scrimp.study.stopping import MaxSeconds, StopRule
from scrimp.study.tuner import Tuner, TunerSettings
from scrimp.study_log.events import StudyChanged
from scrimp.study_log.history import History
from scrimp.study_log.limits import Durable, Lifted, Placement, Totals, lifted
from scrimp.study_log.messages import printable
from scrimp.study_log.problem import Problem
from scrimp.study_log.record import StudyRecord, share_done
from scrimp.study_log.trial import Trial

if TYPE_CHECKING:
    from rich.live import Live


SECONDS_BETWEEN_SCREENS = 0.2
"""Time between two drawings on a terminal."""

SECONDS_BETWEEN_CARDS = 1.0
"""Time between two drawings in a notebook."""

MAX_SECONDS_BETWEEN_LINES = 60.0
"""Time after which a plain line is printed even if nothing improved."""

FAILURES_PRINTED = 3
"""Failures that get a plain line each."""


@dataclass(frozen=True)
class Run:
    """The request of one run: what to evaluate, until when, with which workers.

    The fields up to ``catch`` are the arguments of `Study.optimize`. ``lease`` is the silence, in
    seconds, after which other workers take over; ``ending`` says when to stop early; ``signed``
    refuses studies that are not signed.
    """

    objective: Objective | Command
    _: KW_ONLY
    n_trials: int | None = None
    total_budget: float | None = None
    timeout: float | None = None
    stop: StopRule | None = None
    workers: int = 1
    gpus_per_worker: int = 0
    time_limit: float | None = None
    ray: RaySettings | Mapping[str, Json] | None = None
    keep: str = "best"
    durable: Durable | None = None
    catch: Catch = ()
    lease: float = LEASE_SECONDS
    ending: Callable[[], bool] = bool
    signed: SignedOnly | None = None

    def check(self, history: History) -> None:
        """Validate the request before anything is recorded."""
        if isinstance(self.objective, Command):
            self.objective.check(history.problem.space)
        elif not callable(self.objective):
            raise ObjectiveError(
                f"the objective is {self.objective!r}; it must be a function of a trial, or a"
                " scrimp.Command"
            )
        for name, least in (("n_trials", 1), ("workers", 1), ("gpus_per_worker", 0)):
            value = getattr(self, name)
            if not is_whole(value, least) and (value is not None or name != "n_trials"):
                raise StudyError(f"{name} is {value!r}; it must be an integer of at least {least}")
        for name in ("total_budget", "timeout", "time_limit"):
            value = getattr(self, name)
            if value is not None and not is_positive(value):
                raise StudyError(f"{name} is {value!r}; it must be a positive number")
        if self.stop is not None and not isinstance(self.stop, StopRule):
            raise StudyError(
                f"stop is {self.stop!r}; it must be a stop rule such as scrimp.NoImprovement(20)"
            )
        for name, valid in (("keep", get_args(Keep)), ("durable", (None, *get_args(Durable)))):
            value = getattr(self, name)
            if value not in valid:
                words = ", ".join(repr(word) for word in valid if word)
                raise StudyError(f"{name} is {value!r}; it must be one of {words}")
        # A run that has nothing to search, or that would never end.
        space = history.problem.space
        if not space.searched and len(space) and self.n_trials != 1:
            raise StudyError(
                f"all parameters are constants ({', '.join(space)}), so there is nothing to search;"
                " give at least one a range, such as scrimp.Float(0, 1)"
            )
        limits = (self.n_trials, self.total_budget, self.timeout, self.stop)
        if all(limit is None for limit in limits) and not math.isfinite(space.size):
            raise StudyError(
                "this run would never end; give n_trials, total_budget, timeout or stop"
            )
        self._check_workers()

    def _check_workers(self) -> None:
        """Refuse combinations of objective, workers and time limit that cannot be run."""
        command = isinstance(self.objective, Command)
        if self.on_ray is not None and command:
            raise StudyError(
                "Ray runs functions; start the command from a function, or use worker processes"
            )
        if self.on_ray is not None and self.gpus_per_worker:
            raise StudyError(
                "gpus_per_worker has no effect on Ray, which gives out devices itself; give"
                f" ray={{..., 'gpus': {self.gpus_per_worker}}}"
            )
        if sys.platform == "win32" and self.ray is None and (command or not self._here):
            raise StudyError(
                "worker processes and commands need Linux or macOS; on Windows run functions with"
                " workers=1: several threads, or processes of your own, may share a study"
            )
        in_process = self.workers == 1 and self.ray is None and not command
        if self.time_limit is not None and in_process:
            raise StudyError(
                "time_limit needs worker processes that can be ended; use workers=2 or more"
            )

    def limits(self, history: History, lift_all: bool = False) -> StudyChanged:
        """Return the limits that this run sets. A time limit counts from now, so that methods plan
        for its end.

        Limits that are not given are lifted, unless another run is in progress; with ``lift_all``
        even then.
        """
        begun = None if self.timeout is None else wall_clock()
        gone: tuple[Lifted, ...] = ()
        if lift_all or not any(trial.worker for trial in history.with_status("running")):
            gone = lifted(n_trials=self.n_trials, budget=self.total_budget, timeout=self.timeout)
        return StudyChanged(
            totals=Totals(self.n_trials, self.total_budget, self.timeout, begun),
            placement=self.placement,
            lifted=gone,
        )

    @property
    def placement(self) -> Placement:
        """The URL and the durability of the checkpoints, as the study records them."""
        return Placement(None if self.on_ray is None else self.on_ray.checkpoints, self.durable)

    @cached_property
    def on_ray(self) -> RaySettings | None:
        """The settings of Ray, if the workers run on it."""
        return None if self.ray is None else RaySettings.of(self.ray)

    @property
    def _here(self) -> bool:
        return self.workers == 1 and self.gpus_per_worker == 0

    def flush(self, ledger: Ledger) -> bool:
        """True if reports wait until their checkpoints are on disk."""
        recorded = ledger.history.limits.placement.durable
        return ledger.store.durable and (self.durable or recorded) != "log"

    @property
    def rule(self) -> StopRule | None:
        """The stop rule, including the timeout."""
        if self.timeout is None:
            return self.stop
        seconds = MaxSeconds(self.timeout)
        return seconds if self.stop is None else self.stop | seconds

    def executor(self, problem: Problem) -> Executor:
        """Return the executor: for a command, on Ray, in this process, or of worker processes."""
        limit = self.time_limit
        devices = _devices(self.workers, self.gpus_per_worker) if self.ray is None else []
        if isinstance(self.objective, Command):
            from scrimp.executors.command import CommandExecutor, Rules

            rules = Rules(self.objective, problem.names, problem.cost, limit)
            return CommandExecutor(rules, devices)
        task = Task(self.objective, problem.names, problem.cost)
        if self.on_ray is not None:
            return RayExecutor(task, self.on_ray, self.workers, limit)
        if self._here:
            return InProcess(task)
        from scrimp.executors.processes import Processes

        return Processes(task, devices, limit)


def run(
    ledger: Ledger,
    policy: Policy,
    request: Run,
    checkpoints: Callable[[], Path],
    finished: Callable[[Trial], None],
    progress: bool | None,
) -> NotebookOutput | None:
    """Carry out ``request``; return when the study ends, a limit is reached, or on an interrupt, with
    the card in a notebook if one was shown."""
    executor = request.executor(ledger.history.problem)

    def log_and_notify(trial: Trial) -> None:
        log_outcome(ledger.history, trial)
        finished(trial)

    with Progress(executor.stopwatch, progress, ledger.history, request.rule) as display:
        settings = TunerSettings(
            stop=request.rule,
            checkpoints=checkpoints,
            observe=display.update,
            finished=log_and_notify,
            keep=request.keep,
            lease=request.lease,
            ending=request.ending,
            flush=request.flush(ledger),
            signed=request.signed,
            url=request.placement.checkpoints,
            alarm=Alarm(request.catch, executor.slots),
        )
        Tuner(ledger, policy, executor, settings).run()
    return display.card


def _devices(workers: int, gpus: int) -> list[Mapping[str, str]]:
    """Return the environment variables that give ``gpus`` devices to each worker."""
    if gpus == 0:
        return [{} for _ in range(workers)]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    devices = visible.split(",") if visible is not None else _installed_devices()
    devices = [device.strip() for device in devices if device.strip()]
    if len(devices) < workers * gpus:
        raise StudyError(
            f"{workers} workers with {gpus} GPUs each need {workers * gpus} devices, but"
            f" {len(devices)} are visible; use fewer workers or set CUDA_VISIBLE_DEVICES"
        )
    return [
        {"CUDA_VISIBLE_DEVICES": ",".join(devices[slot * gpus : (slot + 1) * gpus])}
        for slot in range(workers)
    ]


def _installed_devices() -> list[str]:
    try:
        return [str(number) for number in range(len(os.listdir("/proc/driver/nvidia/gpus")))]
    except OSError:
        return []


class Progress:
    """Shows the state of a run: live on a terminal, as a card in a notebook, as lines in a pipe.

    A context manager whose ``update`` observes the history. ``enabled=None`` shows on a terminal
    and in a notebook; True also prints plain lines in a pipe: one when the best value changes, one a
    minute, and one for each of the first failures. ``before`` is the history when the run began.
    A terminal or a pipe that goes away ends the display, and not the run.
    """

    def __init__(
        self,
        clock: Clock,
        enabled: bool | None = None,
        before: History | None = None,
        stop: StopRule | None = None,
    ) -> None:
        self._clock, self._stop = clock, stop
        self._card: NotebookOutput | None = None if enabled is False else notebook_output()
        self._terminal = self._card is None and on_terminal(sys.stderr)
        live = self._terminal or self._card is not None
        self._enabled = live if enabled is None else enabled
        self._every = SECONDS_BETWEEN_SCREENS if self._terminal else SECONDS_BETWEEN_CARDS
        self._began = clock()
        self._drawn = -SECONDS_BETWEEN_CARDS
        self._history: History | None = None
        self._live: Live | None = None
        self._best: list[object] = []
        self._done = 0.0 if before is None else share_done(before) or 0.0
        self._old = 0 if before is None else before.counts["failed"]
        self._failures = self._old
        self._said = clock()

    @property
    def card(self) -> NotebookOutput | None:
        """The card in a notebook; None if none was shown."""
        return self._card if self._history is not None else None

    def __enter__(self) -> "Progress":
        if self._enabled and self._terminal:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), auto_refresh=False)
            self._live.start()
        return self

    def update(self, history: History) -> None:
        """Draw again, unless that was done a moment ago."""
        if not self._enabled:
            return
        self._history = history
        with self._while_it_can_be_seen():
            if not self._terminal and self._card is None:
                self._plain_line(history)
            elif time.monotonic() - self._drawn >= self._every:
                self._draw(history)

    @contextmanager
    def _while_it_can_be_seen(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self._enabled = False

    def _draw(self, history: History, over: bool = False) -> None:
        self._drawn = time.monotonic()
        record = self._record(history, over=over or None)
        if self._card is not None:
            self._card.show(study_card(record))
            return
        from rich.console import Group

        from scrimp.display.terminal import screen

        assert self._live is not None
        left = "" if self._stop is None else self._stop.words(history)
        lines = screen(record, self._live.console.width, left)
        self._live.update(Group(*lines), refresh=True)

    def _record(self, history: History, over: bool | None = None) -> StudyRecord:
        seconds = self._clock() - self._began
        return StudyRecord.of(history, seconds=seconds, done_before=self._done, over=over)

    def _plain_line(self, history: History) -> None:
        now = self._clock()
        best: list[object] = [point.counted for _, point in history.front]
        if best != self._best or now - self._said >= MAX_SECONDS_BETWEEN_LINES:
            self._best, self._said = best, now
            self._print(summary_line(self._record(history)))
        failed = history.with_status("failed")
        for trial in failed[self._failures : self._old + FAILURES_PRINTED]:
            self._print(f"failed: {failure_line(trial)}")
        self._failures = max(self._failures, len(failed))

    @staticmethod
    def _print(line: str) -> None:
        print(printable(line), file=sys.stderr, flush=True)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        history = self._history
        if not self._enabled:
            return
        with self._while_it_can_be_seen():
            if history is not None and (self._live is not None or self._card is not None):
                left = history.counts["running"] + history.counts["stale"]
                self._draw(history, over=kind is None and not left and not history.limits.halt)
            if self._live is not None:
                self._live.stop()
