"""Trials on a Ray cluster: one actor per slot, with the CPUs and GPUs a trial needs. Needs ``pip
install 'scrimp[ray]'``.

An actor runs the objective in a thread; the loop fetches its events and answers each report once it
is durable. An actor that dies, alone or with its node, loses its trial: the loop resumes it in a
new actor, from its checkpoint. So checkpoints must be where all nodes can reach them: on a shared
file system, or at a URL (`shared_checkpoints`).

    RayExecutor(objective, ("val_error",), settings=RaySettings(cpus=4, gpus=1, checkpoints="s3://bucket/runs"), slots=16)
"""

import contextlib
import queue
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

from scrimp.checks import is_number
from scrimp.errors import CheckpointError, ObjectiveError, StudyError
from scrimp.executors.checkpoint_folder import CheckpointFolder
from scrimp.executors.clock import stopwatch, wall_clock
from scrimp.executors.executor import Assignment, Deliver, Executor
from scrimp.executors.live_trial import LiveTrial, Objective, run_objective
from scrimp.executors.shared_checkpoints import SharedCheckpoints, check_url
from scrimp.study_log.events import Event, Lost


@dataclass(frozen=True)
class RaySettings:
    """The ``address`` of a cluster (None: the connected one, or a local one), and the resources of
    each trial.

    ``checkpoints`` is an fsspec URL; without it, checkpoints go to the study's folder, which all
    nodes must then share.
    """

    address: str | None = None
    cpus: float = 1.0
    gpus: float = 0.0
    checkpoints: str | None = None

    @staticmethod
    def of(settings: "RaySettings | Mapping[str, object]") -> "RaySettings":
        """Return the settings, given as such or by name; `StudyError` for an unknown one."""
        if isinstance(settings, RaySettings):
            return settings
        valid = [field.name for field in fields(RaySettings)]
        for name in settings:
            if name not in valid:
                raise StudyError(f"ray has no setting {name!r}; its settings: {', '.join(valid)}")
        return RaySettings(**cast(dict[str, Any], settings))

    def __post_init__(self) -> None:
        for name, value in (("cpus", self.cpus), ("gpus", self.gpus)):
            if not is_number(value) or not value >= 0:
                raise StudyError(f"{name} is {value!r}; it must be a number of at least 0")
        if self.checkpoints is not None:
            check_url(self.checkpoints)


@dataclass
class _Slot:
    """An actor, its assignment, and the pending call for its events."""

    actor: Any
    assignment: Assignment | None = None
    news: Any = None
    started: float = 0.0
    stopped: bool = False


class RayExecutor(Executor):
    """An executor with ``slots`` actors; ``time_limit`` is seconds per grant."""

    def __init__(
        self,
        objective: Objective,
        metrics: tuple[str, ...],
        cost: str | None = None,
        *,
        settings: RaySettings,
        slots: int,
        time_limit: float | None = None,
    ) -> None:
        try:
            import ray
        except ImportError as error:
            raise ObjectiveError(
                f"running on Ray needs it installed ({error}): pip install 'scrimp[ray]'"
            ) from error
        self._ray: Any = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            ray.init(address=settings.address, include_dashboard=False, log_to_driver=False)
        try:
            self._arguments = ray.put((objective, metrics, cost))
        except Exception as error:
            raise ObjectiveError(
                f"the objective {objective!r} cannot be sent to Ray ({error}); open files and"
                " devices inside it"
            ) from error
        self._settings = settings
        self._time_limit = time_limit
        self._slots: list[_Slot | None] = [None] * slots

    @property
    def slots(self) -> int:
        """The requested number; Ray starts actors as resources become free."""
        return len(self._slots)

    @property
    def busy(self) -> int:
        return len(self._active())

    def _active(self) -> list[_Slot]:
        return [slot for slot in self._slots if slot is not None and slot.assignment is not None]

    def start(self, assignment: Assignment) -> None:
        """Send the assignment to a free actor, creating one if necessary."""
        free = [n for n, slot in enumerate(self._slots) if not (slot and slot.assignment)]
        # An actor that is already there starts at once.
        place = min(free, key=lambda number: self._slots[number] is None)
        slot = self._slots[place]
        if slot is None:
            actor = self._ray.remote(_Actor).options(
                num_cpus=self._settings.cpus, num_gpus=self._settings.gpus, max_concurrency=3
            )
            slot = self._slots[place] = _Slot(actor.remote(self._arguments))
        slot.assignment, slot.started, slot.stopped = assignment, stopwatch(), False
        slot.actor.start.remote(assignment, self._settings.checkpoints)
        slot.news = slot.actor.news.remote()

    def stop(self, trial: int) -> None:
        """Make the next report of this trial return False."""
        for slot in self._active():
            if slot.assignment is not None and slot.assignment.trial == trial:
                slot.stopped = True

    def wait(self, deliver: Deliver) -> None:
        """Deliver reports, ends and losses; answer each report once it is durable."""
        active = self._active()
        if not active:
            return
        ready, _ = self._ray.wait(
            [slot.news for slot in active], num_returns=len(active), timeout=0.2
        )
        events: list[Event] = []
        reporting = []
        for slot in active:
            if slot.news not in ready:
                continue
            kind, news = self._received(slot)
            if kind == "trouble":
                raise CheckpointError(news[0])
            events += news
            if kind == "report":
                reporting.append(slot)
            else:
                slot.assignment = None
        events += self._overdue()
        if events:
            deliver(events)
        for slot in reporting:
            slot.actor.answer.remote(not slot.stopped)
            slot.news = slot.actor.news.remote()

    def _received(self, slot: _Slot) -> tuple[str, list[Any]]:
        assert slot.assignment is not None
        try:
            kind, news = self._ray.get(slot.news)
        except self._ray.exceptions.RayError as error:
            trial, attempt = slot.assignment.trial, slot.assignment.attempt
            self._drop(slot)
            message = f"its actor is gone: {str(error).splitlines()[0]}"
            return "lost", [Lost(trial=trial, attempt=attempt, message=message, time=wall_clock())]
        return kind, news

    def _overdue(self) -> list[Event]:
        events: list[Event] = []
        for slot in self._active():
            assert slot.assignment is not None
            if self._time_limit is None or stopwatch() - slot.started <= self._time_limit:
                continue
            message = f"it ran longer than the time limit of {self._time_limit:g} s and was ended"
            events.append(slot.assignment.ended("failed", message))
            self._drop(slot)
        return events

    def _drop(self, slot: _Slot) -> None:
        slot.assignment = None
        with contextlib.suppress(Exception):
            self._ray.kill(slot.actor)
        self._slots[self._slots.index(slot)] = None

    def close(self) -> None:
        """End all actors, and the local cluster if this executor started it."""
        for slot in self._slots:
            if slot is not None:
                self._drop(slot)
        if self._ours and self._ray.is_initialized():
            self._ray.shutdown()
            self._ours = False


class _Actor:
    """The remote part: runs one assignment at a time in a thread."""

    def __init__(self, arguments: tuple[Objective, tuple[str, ...], str | None]) -> None:
        self._objective, self._metrics, self._cost = arguments
        self._news: queue.SimpleQueue[tuple[str, list[Any]]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def start(self, assignment: Assignment, url: str | None) -> None:
        """Start an assignment; ``news`` returns what happens."""
        threading.Thread(target=self._run, args=(assignment, url), daemon=True).start()

    def news(self) -> tuple[str, list[Any]]:
        """Wait for a report, which needs an answer, or for the end."""
        return self._news.get()

    def answer(self, goes_on: bool) -> None:
        """Answer the last report, now durable; ``goes_on``: the trial continues."""
        self._answers.put(goes_on)

    def _run(self, assignment: Assignment, url: str | None) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="scrimp-ray-") as scratch:
                last = self._carried_out(assignment, url, Path(scratch))
        except CheckpointError as error:
            self._news.put(("trouble", [str(error)]))
            return
        except Exception as error:
            last = [assignment.ended("failed", f"the trial could not be run: {error!r}")]
        self._news.put(("done", last))

    def _carried_out(self, assignment: Assignment, url: str | None, scratch: Path) -> list[Event]:
        shared = None
        if url is not None and assignment.checkpoint_dir is not None:
            shared = SharedCheckpoints.of(url, assignment.checkpoint_dir)
            assignment = _brought_here(assignment, url, shared, scratch)

        def emit(events: list[Event]) -> bool:
            if shared is not None:
                assert assignment.checkpoint_dir is not None
                try:
                    shared.push(CheckpointFolder(assignment.checkpoint_dir, assignment.attempt))
                except Exception as error:  # fsspec file systems raise errors of many libraries
                    raise CheckpointError(
                        f"checkpoints cannot be written to {url}: {error!r}; no trial has failed:"
                        " fix the cause and run again"
                    ) from error
            self._news.put(("report", events))
            goes_on = self._answers.get()
            if shared is not None and goes_on:
                shared.prune(assignment.attempt)
            return goes_on

        trial = LiveTrial(assignment, self._metrics, self._cost, emit, wall_clock)
        return run_objective(self._objective, trial, wall_clock)


def _brought_here(
    assignment: Assignment, url: str, shared: SharedCheckpoints, scratch: Path
) -> Assignment:
    """Return the assignment with local folders that hold the states committed elsewhere."""
    own, parent = scratch / "trial", assignment.continue_from
    shared.fetch(own, assignment.vouched or {}, assignment.begin)
    if parent is not None:
        SharedCheckpoints.of(url, parent).fetch(scratch / "parent", assignment.parent_vouched or {})
        parent = scratch / "parent"
    # Without flushing, since the states that count are at the URL.
    return replace(assignment, checkpoint_dir=own, continue_from=parent, flush=False)
