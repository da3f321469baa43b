"""One run of a study in this process: executors, stop rules and progress put together for
``Study.optimize``."""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from scrimp.checks import is_positive, is_whole
from scrimp.errors import ObjectiveError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.executors.command_line import Command
from scrimp.executors.executor import Executor
from scrimp.executors.in_process import InProcess
from scrimp.executors.ray import RayExecutor, RaySettings
from scrimp.executors.run_context import Objective
from scrimp.history.events import StudyChanged
from scrimp.history.history import History
from scrimp.history.limits import Durable, Lifted, Placement, Totals, lifted
from scrimp.history.problem import Problem
from scrimp.history.trial import Trial
from scrimp.json_values import Json
from scrimp.policies.policy import Policy
from scrimp.tuning.checkpoint_cleanup import check_keep
from scrimp.tuning.ledger import LEASE_SECONDS, Ledger
from scrimp.tuning.outcomes import Alarm, Catch, log_outcome
from scrimp.tuning.progress import Progress
from scrimp.tuning.signing import SignedOnly
from scrimp.tuning.stopping import Seconds, StopRule
from scrimp.tuning.tuner import Tuner, TunerSettings

__all__ = ["DURABLE", "Run", "run", "run_limits", "run_totals"]

DURABLE = get_args(Durable)
"""What survives a power cut once a report is acknowledged: the log with the checkpoints, or the log
alone."""


@dataclass(frozen=True)
class Run:
    """What a user asked ``optimize`` for, besides totals."""

    objective: Objective | Command
    workers: int = 1
    gpus_per_worker: int = 0
    timeout: float | None = None
    until: StopRule | None = None
    time_limit: float | None = None
    keep: str = "best"
    lease: float = LEASE_SECONDS
    ending: Callable[[], bool] = bool
    ray: RaySettings | Mapping[str, Json] | None = None
    durable: Durable | None = None
    signed: SignedOnly | None = None
    catch: Catch = ()

    def check(self, n_trials: int | None, budget: float | None, history: History) -> None:
        """Refuse what cannot be, before anything is recorded."""
        if isinstance(self.objective, Command):
            self.objective.check(history.problem.space)
        elif not callable(self.objective):
            raise ObjectiveError(
                f"the objective is {self.objective!r}; it must be a function of a trial, or a"
                " scrimp.Command"
            )
        _count("n_trials", n_trials, optional=True)
        _count("workers", self.workers)
        _count("gpus_per_worker", self.gpus_per_worker, least=0)
        for name, value in (
            ("budget", budget),
            ("timeout", self.timeout),
            ("time_limit", self.time_limit),
        ):
            _positive(name, value)
        if self.until is not None and not isinstance(self.until, StopRule):
            raise StudyError(
                f"until is {self.until!r}; it must be a stop rule such as scrimp.NoImprovement(20)"
            )
        check_keep(self.keep)
        if self.durable not in (None, *DURABLE):
            raise StudyError(
                f"durable is {self.durable!r}; it must be one of {', '.join(map(repr, DURABLE))}"
            )
        space = history.problem.space
        if not space.searched and len(space) and n_trials != 1:
            raise StudyError(
                f"all parameters are constants ({', '.join(space)}), so there is nothing to search;"
                " give at least one a range, such as scrimp.Float(0, 1)"
            )
        endless = (
            n_trials is None and budget is None and self.timeout is None and self.until is None
        )
        if endless and not math.isfinite(space.size):
            raise StudyError("this would never end; give n_trials, budget, timeout or until")
        if self.ray is not None:
            RaySettings.of(self.ray)
            if isinstance(self.objective, Command):
                raise StudyError(
                    "Ray runs functions; start the command from one, or use worker processes"
                )
        in_process = (
            self.workers == 1 and self.ray is None and not isinstance(self.objective, Command)
        )
        if self.time_limit is not None and in_process:
            raise StudyError(
                "time_limit needs worker processes that can be ended; use workers=2 or more"
            )

    @property
    def placement(self) -> Placement:
        """What the study records of its checkpoints: the URL, for whoever looks for them later, and
        how durable they are."""
        url = None if self.ray is None else RaySettings.of(self.ray).checkpoints
        return Placement(url, self.durable)

    def flush(self, ledger: Ledger) -> bool:
        """Whether reports wait until their checkpoints are on disk."""
        asked = (
            self.durable if self.durable is not None else ledger.history.limits.placement.durable
        )
        return ledger.store.durable and asked != "log"

    @property
    def rule(self) -> StopRule | None:
        """The stop rule with the time-out in it."""
        if self.timeout is None:
            return self.until
        seconds = Seconds(self.timeout)
        return seconds if self.until is None else self.until | seconds

    def executor(self, problem: Problem) -> Executor:
        """A script per trial for a command; a function runs on Ray, in this process, or in worker
        processes for more than one."""
        if isinstance(self.objective, Command):
            from scrimp.executors.command import CommandExecutor

            return CommandExecutor(
                self.objective,
                problem.reported,
                problem.cost,
                environments=_devices(self.workers, self.gpus_per_worker),
                time_limit=self.time_limit,
            )
        if self.ray is not None:
            return RayExecutor(
                self.objective,
                problem.reported,
                problem.cost,
                settings=RaySettings.of(self.ray),
                slots=self.workers,
                time_limit=self.time_limit,
            )
        if self.workers == 1 and self.gpus_per_worker == 0:
            return InProcess(self.objective, problem.reported, problem.cost)
        from scrimp.executors.processes import Processes

        environments = _devices(self.workers, self.gpus_per_worker)
        return Processes(
            self.objective,
            problem.reported,
            problem.cost,
            environments=environments,
            time_limit=self.time_limit,
        )


def run_totals(n_trials: int | None, budget: float | None, timeout: float | None) -> Totals:
    """What a run is limited to; a time limit counts from now on, so that methods plan for its end."""
    return Totals(n_trials, budget, timeout, None if timeout is None else wall_clock())


def run_limits(
    history: History, n_trials: int | None, budget: float | None, request: Run
) -> StudyChanged:
    """The limits a run sets; those it does not give are lifted, unless somebody else's run is under
    way."""
    totals = run_totals(n_trials, budget, request.timeout)
    gone: tuple[Lifted, ...] = ()
    if not any(trial.worker for trial in history.with_status("running")):
        gone = lifted(n_trials=n_trials, budget=budget, timeout=request.timeout)
    return StudyChanged(totals=totals, placement=request.placement, lifted=gone)


def run(  # one call that puts the parts together
    ledger: Ledger,
    policy: Policy,
    request: Run,
    checkpoints: Callable[[], Path],
    finished: Callable[[Trial], None],
    progress: bool | None,
) -> None:
    """Carry out ``request`` and return when the study ends, enough was done, or somebody
    interrupts."""
    executor = request.executor(ledger.history.problem)

    def tell(trial: Trial) -> None:
        log_outcome(ledger.history, trial)
        finished(trial)

    with Progress(executor.stopwatch, progress, ledger.history) as display:
        settings = TunerSettings(
            request.rule,
            checkpoints(),
            display.update,
            tell,
            keep=request.keep,
            lease=request.lease,
            ending=request.ending,
            flush=request.flush(ledger),
            signed=request.signed,
            url=request.placement.checkpoints,
            alarm=Alarm(request.catch, executor.slots),
        )
        settings.check(ledger.history)
        Tuner(ledger, policy, executor, settings).run()


def _devices(workers: int, gpus: int) -> list[Mapping[str, str]]:
    """Environment variables that deal ``gpus`` devices to each worker."""
    if gpus == 0:
        return [{} for _ in range(workers)]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    devices = visible.split(",") if visible is not None else _installed_devices()
    devices = [device.strip() for device in devices if device.strip()]
    if len(devices) < workers * gpus:
        raise StudyError(
            f"{workers} workers with {gpus} GPUs each need {workers * gpus} devices, and"
            f" {len(devices)} are visible; use fewer workers or set CUDA_VISIBLE_DEVICES"
        )
    return [
        {"CUDA_VISIBLE_DEVICES": ",".join(devices[slot * gpus : (slot + 1) * gpus])}
        for slot in range(workers)
    ]


def _installed_devices() -> list[str]:
    try:
        return [
            str(number) for number, _ in enumerate(sorted(os.listdir("/proc/driver/nvidia/gpus")))
        ]
    except OSError:
        return []


def _count(name: str, value: object, least: int = 1, optional: bool = False) -> None:
    if value is None and optional:
        return
    if not is_whole(value, least):
        raise StudyError(f"{name} is {value!r}; it must be an integer of at least {least}")


def _positive(name: str, value: object) -> None:
    if value is not None and (not is_positive(value)):
        raise StudyError(f"{name} is {value!r}; it must be a positive number")
