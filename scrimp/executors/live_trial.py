"""The trial that an objective receives: parameters, steps, reports, a checkpoint folder.

    def objective(trial):
        model = load(trial.checkpoint_dir) if trial.resumed else build(trial.params)
        for epoch in trial.steps():
            error = train_epoch(model)
            save(model, trial.checkpoint_dir)
            trial.report(val_error=error)

`run_objective` calls the objective and turns whatever it does (return, raise, report, end early)
into events. `InProcess` is the executor that does so in this process, where debuggers and print work as
usual.
"""

import errno
import logging
import math
import select
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, NoReturn, SupportsFloat, TypeVar, cast, overload

from scrimp.checks import did_you_mean, is_finite
from scrimp.errors import CheckpointError, OutputError, ReportError
from scrimp.executors.checkpoint_folder import CheckpointFolder
from scrimp.executors.clock import Clock, stopwatch_of, wall_clock
from scrimp.executors.executor import Assignment, Deliver, Executor
from scrimp.json_values import Config, Json
from scrimp.study_log.events import Event, Reported, as_annotation
from scrimp.study_log.messages import readable
from scrimp.study_log.reports import Stderr, as_metrics, as_standard_errors, report_events

logger = logging.getLogger("scrimp")

Default = TypeVar("Default")

Objective = Callable[["LiveTrial"], object]


class Task(NamedTuple):
    """The objective of a run, the names of its metrics, and the metric that is its cost, if any."""

    objective: Objective
    metrics: tuple[str, ...]
    cost: str | None = None


Emit = Callable[[list[Event]], bool]
"""A function that makes events durable and returns whether the trial continues."""


class Parameters(dict[str, Json]):
    """A configuration whose errors name the valid parameters. ``known`` lists every parameter of
    the space; None where that is not known."""

    def __init__(self, config: Config, known: Sequence[str] | None = None) -> None:
        super().__init__(config)
        self._known = known

    def __reduce__(self) -> tuple[type[dict[str, Json]], tuple[Config]]:
        return dict, (dict(self),)  # a pickled copy is plain data

    @overload
    def get(self, name: str, default: None = None, /) -> Json: ...

    @overload
    def get(self, name: str, default: Default, /) -> Json | Default: ...

    def get(self, name: str, default: Default | None = None, /) -> Json | Default | None:
        """Return the parameter, or ``default`` where it is inactive. Warn once of a name that the
        space does not have: a misspelt one would always give its default."""
        if self._known is not None and name not in self and name not in self._known:
            _tell_unknown(name, tuple(self._known))
        return super().get(name, default)

    def __missing__(self, name: str) -> NoReturn:
        absent = "; a parameter whose condition is not met is absent: use params.get"
        hint = did_you_mean(name, self, absent)
        raise KeyError(f"no parameter {name!r} among {', '.join(self) or 'none'}{hint}")

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("params", "report", "steps"):
            raise AttributeError(
                f"these are the parameters themselves, without .{name}: minimize passes them to the"
                " objective, which reads params['x']; study.optimize passes trials"
            )
        if name in self or name in (self._known or ()):
            raise AttributeError(f"parameters are read by name: params[{name!r}]")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


@cache
def _tell_unknown(name: object, known: tuple[str, ...]) -> None:
    """Warn of a parameter that the space does not have; once for each."""
    hint = did_you_mean(name, known, f"; it has {', '.join(known)}")
    words = "params.get(%r) always gives its default: the space has no %r%s"
    logger.warning(words, name, name, hint)


def _elsewhere(name: str) -> str:
    """Return the error message for an attribute that a trial does not have."""
    if name.startswith("suggest_"):
        kind = {"suggest_int": "Int", "suggest_categorical": "Categorical"}.get(name, "Float")
        example = 'Categorical(["a", "b"])' if kind == "Categorical" else f"{kind}(0, 1)"
        return (
            f"a trial has no {name}: define the space once, as in "
            f'create_study("name", scrimp.Space(x=scrimp.{example})), and read trial.params["x"]'
            " in the objective"
        )
    if name == "should_prune":
        return (
            "a trial has no should_prune: trial.report(...) returns False, and trial.steps() ends,"
            " when the trial should stop"
        )
    known = [word for word in dir(LiveTrial) if not word.startswith("_")]
    return f"a trial has no attribute {name!r}{did_you_mean(name, known)}"


class LiveTrial:
    """One attempt of a trial, as the objective sees it."""

    def __init__(
        self,
        assignment: Assignment,
        metrics: tuple[str, ...],
        cost: str | None,
        emit: Emit,
        clock: Clock,
    ) -> None:
        self._assignment = assignment
        self._metrics = metrics
        self._cost = cost
        self._emit = emit
        self._clock = clock
        self._stopwatch = stopwatch_of(clock)
        self._since = self._stopwatch()
        self._trouble: CheckpointError | None = None
        self._one_thread = threading.RLock()
        self._folder: CheckpointFolder | None = None
        self._resumed_at = 0.0
        if (path := assignment.checkpoint_dir) is not None:
            self._folder = CheckpointFolder(path, assignment.attempt, assignment.flush)
            parent = assignment.continue_from, assignment.parent_vouched
            self._resumed_at = self._folder.prepare(assignment.begin, assignment.vouched, *parent)
        self._step = self._resumed_at
        self._current: float | None = None
        self._goes_on = True
        self.reported = False
        self.failure: BaseException | None = None

    @property
    def id(self) -> int:
        """The trial's number in its study."""
        return self._assignment.trial

    @property
    def params(self) -> Config:
        """The configuration to evaluate, as a copy."""
        return Parameters(self._assignment.config, self._assignment.known)

    def __getattr__(self, name: str) -> NoReturn:
        """Point users of other libraries to scrimp's equivalent."""
        raise AttributeError(_elsewhere(name))

    def __getitem__(self, name: str) -> NoReturn:
        raise TypeError(f"a trial is not its parameters: read trial.params[{name!r}]")

    @property
    def attempt(self) -> int:
        """The number of this attempt; the first is 1."""
        return self._assignment.attempt

    @property
    def budget(self) -> float:
        """The budget up to which this attempt may train, counted from the trial's beginning."""
        return self._assignment.end

    @property
    def begin(self) -> float:
        """The budget that the trial had used before this attempt."""
        return self._assignment.begin

    @property
    def step(self) -> float:
        """The highest step reported, or the one from which this attempt resumed."""
        return self._step

    @property
    def resumed(self) -> bool:
        """True when ``checkpoint_dir`` holds a state to resume from."""
        return self._folder is not None and self._folder.holds_state

    @property
    def checkpoint_dir(self) -> Path:
        """A folder of this trial that survives pauses; each report commits what is in it."""
        if self._folder is None:
            raise ReportError("this study keeps no checkpoints; give optimize a storage on disk")
        with self._watched():
            return self._folder.open_work()

    @property
    def goes_on(self) -> bool:
        """False when the trial was stopped or its grant is used up."""
        return self._goes_on and self._step < self._assignment.end

    def steps(self) -> Iterator[int]:
        """Iterate over the steps to do, from the checkpoint to the end of the grant or a stop."""
        for step in range(math.floor(self._resumed_at) + 1, math.ceil(self._assignment.end) + 1):
            if not self._goes_on:
                return
            self._current = min(float(step), self._assignment.end)
            yield step
        self._current = None

    def report(
        self,
        value: SupportsFloat | Mapping[str, SupportsFloat] | None = None,
        /,
        *,
        step: float | None = None,
        stderr: Stderr = None,
        **metrics: SupportsFloat,
    ) -> bool:
        """Report metrics of the current step; return True to continue, False to end here. The report
        is durable when this returns.

        Args:
            value: The metric of the study, or metrics by name.
            step: Units of budget trained so far; by default that of `steps`.
            stderr: Standard error of the metric, or of each by name.
            metrics: Metrics by name.
        """
        stepped = self._current is not None or self.budget > 1.0  # without a budget it is 1
        first = {} if value is None else as_metrics(value, self._metrics, stepped)
        numbers = as_metrics({**first, **metrics}, self._metrics, stepped)
        errors = as_standard_errors(stderr, self._metrics)
        # Threads of the objective may report at the same time.
        with self._one_thread:
            return self._send(numbers, errors, self._place(step))

    def report_answers(self, mean: float, answers: str) -> bool:
        """Report packed answers to the questions of the grant, and their mean (by question)."""
        (metric,) = self._metrics
        return self._send({metric: mean}, {}, self._assignment.end, answers)

    def _send(
        self, numbers: Mapping[str, float], errors: dict[str, float], at: float, answers: str = ""
    ) -> bool:
        if not self._goes_on:
            return False
        if self._folder is not None:
            with self._watched():
                self._folder.commit(at)
        now = self._stopwatch()
        cost = numbers.get(self._cost) if self._cost is not None else None
        report = Reported(
            trial=self.id,
            step=at,
            metrics=dict(numbers),
            attempt=self.attempt,
            stderr=errors,
            cost=now - self._since if cost is None else cost,
            answers=answers,
            time=self._clock(),
        )
        self._since, self._step, self.reported = now, max(self._step, at), True
        events = report_events(report, self._metrics)
        self._goes_on = self._emit(events) and len(events) == 1
        if self._folder is not None and self._goes_on:
            # Only now, since a kill in between must leave the state of the report before. And not
            # when told to end: another attempt may have taken over and keep its states here too.
            self._folder.prune(at)
        return self.goes_on

    def set_user_attr(self, name: str, value: Json) -> None:
        """Attach plain data to the trial, such as a host, a commit or a path; None removes it. It
        is durable when this returns, and shown wherever the trial is."""
        said: list[Event] = [as_annotation(self.id, {name: value}, time=self._clock())]
        with self._one_thread:
            self._goes_on = self._emit(said) and self._goes_on

    def __deepcopy__(self, _: object) -> "LiveTrial":
        """Return the trial itself: a copied model or callback that holds it reports to it."""
        return self

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Remember a disk error, even if the objective catches it."""
        if self._trouble is not None:
            raise self._trouble
        try:
            yield
        except CheckpointError as error:
            self._trouble = error
            raise

    def trouble(self, error: BaseException | None = None) -> CheckpointError | None:
        """Return the disk error that kept this attempt from saving checkpoints; ``error`` is the
        objective's exception, if any."""
        if self._trouble is None and error is not None and self._folder is not None:
            self._trouble = self._folder.trouble(error)
        return self._trouble

    def close(self) -> None:
        """Discard the working folder after the attempt has ended well."""
        if self._folder is not None:
            self._folder.close()

    def _place(self, step: float | None) -> float:
        """Return the step of a report: the given one, that of the loop, or the next one."""
        if step is None:
            following = min(self._step + 1.0, self._assignment.end)
            return following if self._current is None else self._current
        if not is_finite(step) or step <= 0:
            raise ReportError(f"step is {step!r}; it must be a positive number of budget units")
        if step > self._assignment.end:
            raise ReportError(
                f"step {step:g} is beyond the grant of {self._assignment.end:g}; stop where"
                " trial.steps() ends"
            )
        return float(step)


def _failure(error: BaseException) -> str:
    """Format an exception for the log, even if its __str__ raises."""
    try:
        text = "".join(traceback.format_exception(error)[-6:])
        return readable(f"{type(error).__name__}: {error}\n{text}")
    except Exception:
        return f"{type(error).__name__}, which cannot be shown as text"


def _of_the_user(error: BaseException) -> TracebackType | None:
    """Return the traceback inside the objective; None for a wrong result, which raised nothing."""
    inside = None if error.__traceback__ is None else error.__traceback__.tb_next
    return None if inside is None or inside.tb_frame.f_code is LiveTrial.report.__code__ else inside


def _output_trouble(error: BaseException) -> OutputError | None:
    """Return an error if the objective could not print: its terminal was closed, or the program
    that read the output has ended."""
    broken = isinstance(error, OSError) and error.errno in (errno.EPIPE, errno.EIO)
    if not broken or not any(_abandoned(number) for number in (1, 2)):
        return None
    return OutputError(
        f"the objective cannot print: {error}. The terminal, or the program that read the output, is"
        " gone; no trial has failed: run again, with the output in a file"
    )


def _abandoned(descriptor: int) -> bool:
    """Return whether no one is left at the other end of a pipe or a terminal."""
    if sys.platform == "win32":
        return False
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return any(state & (select.POLLERR | select.POLLHUP) for _, state in poll.poll(0))


def run_objective(objective: Objective, trial: LiveTrial, clock: Clock) -> list[Event]:
    """Call the objective; return the events that end the attempt, none when it just used up its
    grant. Raises `CheckpointError` when the disk failed, `OutputError` when no one reads the output."""
    assignment = trial._assignment

    def ended(status: str, message: str) -> list[Event]:
        return [assignment.ended(status, message, clock())]

    try:
        result = objective(trial)
        if result is not None and trial.goes_on:
            # Reporting checks the type.
            trial.report(cast("SupportsFloat", result), step=assignment.end)
    except (Exception, SystemExit) as error:
        trouble = trial.trouble(error) or _output_trouble(error)
        if trouble is not None:
            raise trouble from error
        error.__traceback__ = _of_the_user(error)
        trial.failure = error
        return ended("failed", _failure(error))
    swallowed = trial.trouble()
    if swallowed is not None:
        raise swallowed
    trial.close()
    if not trial.goes_on:
        return []
    if trial.reported:
        return ended("completed", "the objective ended by itself before its grant")
    nothing = "the objective returned None and reported nothing"
    return ended("failed", f"{nothing}; return a number or call trial.report")


class InProcess(Executor):
    """An executor with one slot, which runs its trial inside ``wait``."""

    slots = 1

    def __init__(self, task: Task, clock: Clock = wall_clock) -> None:
        self._task = task
        self._clock = clock
        self._assignment: Assignment | None = None
        self._stopped = False
        self._undelivered: Exception | None = None
        self._cause: tuple[int, BaseException | None] = (-1, None)

    @property
    def busy(self) -> int:
        return 0 if self._assignment is None else 1

    @property
    def clock(self) -> Clock:
        return self._clock

    def start(self, assignment: Assignment) -> None:
        self._assignment, self._stopped, self._undelivered = assignment, False, None

    def stop(self, trial: int) -> None:
        """Make the next report of the objective return False."""
        if self._assignment is not None and self._assignment.trial == trial:
            self._stopped = True

    def wait(self, deliver: Deliver) -> None:
        """Run the assignment to its end, and deliver each report as it is made. An error while
        delivering belongs to the loop and is no failure of the objective."""
        if self._assignment is None:
            return

        def emit(events: list[Event]) -> bool:
            try:
                deliver(events)
            except Exception as error:
                self._undelivered = error
                raise
            return not self._stopped

        try:
            objective, metrics, cost = self._task
            trial = LiveTrial(self._assignment, metrics, cost, emit, self._clock)
            last = run_objective(objective, trial, self._clock)
            if self._undelivered is not None:
                raise self._undelivered
            self._cause = self._assignment.trial, trial.failure
            deliver(last)
        finally:
            self._assignment = None

    def cause(self, trial: int) -> BaseException | None:
        number, error = self._cause
        return error if number == trial else None

    def close(self) -> None:
        """Do nothing: there is nothing to free."""
