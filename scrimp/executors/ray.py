"""Trials on a Ray cluster: one actor per slot, with the CPUs and GPUs a trial needs. Needs ``pip
install 'scrimp[ray]'``.

An actor runs the objective in a thread; the loop fetches its events and answers each report once it
is durable. An actor that dies, alone or with its node, loses its trial: the loop resumes it in a
new actor, from its checkpoint. So checkpoints must be where all nodes can reach them: on a shared
file system, or at a URL (`shared_checkpoints`).

    RayExecutor(Task(objective, ("val_error",)), RaySettings(cpus=4, gpus=1, checkpoints="s3://bucket/runs"), slots=16)
"""

import contextlib
import queue
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

from scrimp.checks import is_number
from scrimp.errors import CheckpointError, ObjectiveError, StudyError
from scrimp.executors.checkpoint_folder import CheckpointFolder
from scrimp.executors.clock import wall_clock
from scrimp.executors.executor import Assignment
from scrimp.executors.live_trial import Task
from scrimp.executors.shared_checkpoints import SharedCheckpoints, check_url
from scrimp.executors.worker_slots import News, SlotWorker, WorkerSlots, run_assignment
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


@dataclass(eq=False)
class _ActorSlot(SlotWorker):
    """An ``actor``, and the pending call for its events."""

    ray: Any
    actor: Any
    url: str | None
    pending: Any = None

    def begin(self, assignment: Assignment) -> None:
        self.actor.start.remote(assignment, self.url)
        self.pending = self.actor.news.remote()

    def news(self, assignment: Assignment) -> News:
        try:
            news: News = self.ray.get(self.pending)
        except self.ray.exceptions.RayError as error:
            trial, attempt = assignment.trial, assignment.attempt
            message = f"its actor is gone: {str(error).splitlines()[0]}"
            return "gone", [Lost(trial=trial, attempt=attempt, message=message, time=wall_clock())]
        return news

    def answer(self, goes_on: bool) -> None:
        self.actor.answer.remote(goes_on)
        self.pending = self.actor.news.remote()

    def end(self) -> None:
        with contextlib.suppress(Exception):
            self.ray.kill(self.actor)


class RayExecutor(WorkerSlots[_ActorSlot]):
    """An executor with ``slots`` actors, which Ray starts as resources become free."""

    def __init__(
        self, task: Task, settings: RaySettings, slots: int, time_limit: float | None = None
    ) -> None:
        try:
            import ray
        except ImportError as error:
            raise ObjectiveError(
                f"running on Ray needs it installed ({error}): pip install 'scrimp[ray]'"
            ) from error
        super().__init__(slots, time_limit)
        self._ray: Any = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            ray.init(address=settings.address, include_dashboard=False, log_to_driver=False)
        try:
            self._task = ray.put(task)
        except Exception as error:
            raise ObjectiveError(
                f"the objective {task.objective!r} cannot be sent to Ray ({error}); open files and"
                " devices inside it"
            ) from error
        self._settings = settings

    def launch(self, slot: int) -> _ActorSlot:
        actor = self._ray.remote(_Actor).options(
            num_cpus=self._settings.cpus, num_gpus=self._settings.gpus, max_concurrency=3
        )
        return _ActorSlot(self._ray, actor.remote(self._task), self._settings.checkpoints)

    def ready(self, active: Sequence[_ActorSlot]) -> Sequence[_ActorSlot]:
        if not active:
            return []
        calls = [slot.pending for slot in active]
        found, _ = self._ray.wait(calls, num_returns=len(calls), timeout=0.2)
        return [slot for slot in active if slot.pending in found]

    def close(self) -> None:
        """End all actors, and the local cluster if this executor started it."""
        super().close()
        if self._ours and self._ray.is_initialized():
            self._ray.shutdown()
            self._ours = False


class _Actor:
    """The remote part: runs one assignment at a time in a thread."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def start(self, assignment: Assignment, url: str | None) -> None:
        """Start an assignment; ``news`` returns what happens."""
        threading.Thread(target=self._run, args=(assignment, url), daemon=True).start()

    def news(self) -> News:
        """Wait for what happens next."""
        return self._news.get()

    def answer(self, goes_on: bool) -> None:
        """Answer the last report, now durable; ``goes_on``: the trial continues."""
        self._answers.put(goes_on)

    def _run(self, assignment: Assignment, url: str | None) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="scrimp-ray-") as scratch:
                last = self._carried_out(assignment, url, Path(scratch))
        except Exception as error:
            why = f"the trial could not be run: {error!r}"
            last = "done", [assignment.ended("failed", why)]
        self._news.put(last)

    def _carried_out(self, assignment: Assignment, url: str | None, scratch: Path) -> News:
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

        return run_assignment(self._task, assignment, emit)


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
