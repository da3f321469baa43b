"""What an objective holds while it runs: parameters, steps, reports, a checkpoint folder.

    def objective(trial):
        model = load(trial.checkpoint_dir) if trial.resumed else build(trial.params)
        for epoch in trial.steps():
            error = train_epoch(model)
            save(model, trial.checkpoint_dir)
            trial.report(val_error=error)

`run_objective` calls it and turns everything it may do (return, raise, report, end early) into
events.
"""

import logging
import math
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import NoReturn, SupportsFloat, TypeVar, cast, overload

from scrimp.checks import did_you_mean, is_finite
from scrimp.errors import CheckpointError, ReportError
from scrimp.executors.checkpoint_folder import CheckpointFolder
from scrimp.executors.clock import Clock, stopwatch_of
from scrimp.executors.executor import Assignment
from scrimp.history.annotations import as_annotation
from scrimp.history.events import Config, Ended, Event, Reported
from scrimp.history.reports import (
    Names,
    Stderr,
    as_metrics,
    as_standard_errors,
    readable,
    report_events,
)
from scrimp.json_values import Json

__all__ = ["Objective", "RunContext", "run_objective"]

logger = logging.getLogger("scrimp")

Default = TypeVar("Default")

Objective = Callable[["RunContext"], object]

Emit = Callable[[list[Event]], bool]
"""Make events durable; the answer says whether the trial goes on."""


class Parameters(dict[str, Json]):
    """A configuration that says what it holds when it is asked for something else.

    ``known``: every parameter of the space; None where nobody says.
    """

    def __init__(self, config: Config, known: Sequence[str] | None = None) -> None:
        super().__init__(config)
        self._known = known

    def __reduce__(self) -> tuple[type[dict[str, Json]], tuple[Config]]:
        return dict, (dict(self),)  # whoever keeps or sends it keeps plain data

    @overload
    def get(self, name: str, default: None = None, /) -> Json: ...

    @overload
    def get(self, name: str, default: Default, /) -> Json | Default: ...

    def get(self, name: str, default: Default | None = None, /) -> Json | Default | None:
        """The parameter, or ``default`` where its condition does not hold. A name that the space
        does not have is told once: a misspelt one would get its default for ever."""
        if self._known is not None and name not in self and name not in self._known:
            _tell_unknown(name, tuple(self._known))
        return super().get(name, default)

    def __missing__(self, name: str) -> NoReturn:
        absent = "; one whose condition does not hold is absent: use params.get"
        hint = did_you_mean(name, self, absent)
        raise KeyError(f"no parameter {name!r} among {', '.join(self) or 'none'}{hint}")

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("params", "report", "steps"):
            raise AttributeError(
                f"these are the parameters themselves, without .{name}: minimize hands them to the"
                " objective, which reads params['x']; trials are handed out by study.optimize"
            )
        if name in self or name in (self._known or ()):
            raise AttributeError(f"parameters are read by name: params[{name!r}]")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


@cache
def _tell_unknown(name: object, known: tuple[str, ...]) -> None:
    """Warn of a parameter that no configuration has; once for each."""
    hint = did_you_mean(name, known, f"; it has {', '.join(known)}")
    logger.warning(
        "params.get(%r) always gives its default: the space has no %r%s", name, name, hint
    )


def _elsewhere(name: str) -> str:
    """What to say of an attribute that a trial does not have."""
    if name.startswith("suggest_"):
        kind = {"suggest_int": "Int", "suggest_categorical": "Categorical"}.get(name, "Float")
        example = 'Categorical(["a", "b"])' if kind == "Categorical" else f"{kind}(0, 1)"
        return (
            f"a trial has no {name}: the space is said once, where the study is made, as in "
            f'create_study("name", scrimp.Space(x=scrimp.{example})), and the objective reads'
            ' trial.params["x"]'
        )
    if name == "should_prune":
        return (
            "a trial has no should_prune: trial.report(...) returns False, and trial.steps() ends,"
            " where it is to stop"
        )
    known = [word for word in dir(RunContext) if not word.startswith("_")]
    return f"a trial has no attribute {name!r}{did_you_mean(name, known)}"


class RunContext:
    """One attempt of one trial, seen from inside the objective."""

    def __init__(
        self, assignment: Assignment, metric: Names, cost: str | None, emit: Emit, clock: Clock
    ) -> None:
        self._assignment = assignment
        self._metric = metric
        self._cost = cost
        self._emit = emit
        self._clock = clock
        self._stopwatch = stopwatch_of(clock)
        self._since = self._stopwatch()
        self._folder = (
            None
            if assignment.checkpoint_dir is None
            else CheckpointFolder(assignment.checkpoint_dir, assignment.attempt, assignment.flush)
        )
        self._trouble: CheckpointError | None = None
        self._resumed_at = 0.0
        if self._folder is not None:
            self._resumed_at = self._folder.prepare(
                assignment.begin,
                assignment.vouched,
                assignment.continue_from,
                assignment.parent_vouched,
            )
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
        """The configuration to evaluate; a copy of its own."""
        return Parameters(self._assignment.config, self._assignment.known)

    def __getattr__(self, name: str) -> NoReturn:
        """Tell who comes from another library where its words have gone."""
        raise AttributeError(_elsewhere(name))

    def __getitem__(self, name: str) -> NoReturn:
        raise TypeError(f"a trial is not its parameters: read trial.params[{name!r}]")

    @property
    def attempt(self) -> int:
        """How often this trial was started or taken up."""
        return self._assignment.attempt

    @property
    def budget(self) -> float:
        """Where this grant ends, counted from the trial's beginning."""
        return self._assignment.end

    @property
    def step(self) -> float:
        """The highest step reported, or the one this attempt went on from."""
        return self._step

    @property
    def resumed(self) -> bool:
        """Whether ``checkpoint_dir`` holds a state to go on from."""
        return self._folder is not None and self._folder.holds_state

    @property
    def checkpoint_dir(self) -> Path:
        """A folder of this trial's own that survives pauses; what is saved before a report is
        committed by it."""
        if self._folder is None:
            raise ReportError("this study keeps no checkpoints; give optimize a storage on disk")
        with self._watched():
            return self._folder.open_work()

    @property
    def goes_on(self) -> bool:
        """False when the trial was stopped, or its grant is used up."""
        return self._goes_on and self._step < self._assignment.end

    def steps(self) -> Iterator[int]:
        """The steps to do: from where the checkpoint left off to the end of the grant, or until the
        trial is stopped."""
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
        """Tell metrics of the current step; True to go on, False to end here. Durable when it
        returns."""
        stepped = self._current is not None or self.budget > 1.0  # without a budget it is 1
        named = dict(metrics)
        if value is not None:
            named = {**as_metrics(value, self._metric, stepped), **metrics}
        numbers = as_metrics(named, self._metric, stepped)
        errors = as_standard_errors(stderr, self._metric)
        at = self._place(step)
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
            stderr=errors.first,
            cost=now - self._since if cost is None else cost,
            further_stderr=errors.further,
            time=self._clock(),
        )
        self._since, self._step, self.reported = now, max(self._step, at), True
        events = report_events(report, self._metric)
        self._goes_on = self._emit(events) and len(events) == 1
        if self._folder is not None and self._goes_on:
            # Not before: a kill in between must leave the state of the report before. And not when
            # told to end: whoever took the trial over meanwhile keeps its states here too.
            self._folder.prune(at)
        return self.goes_on

    def set_user_attr(self, name: str, value: Json) -> None:
        """Keep plain data with the trial: a host, a commit, a path; None takes it away.

        Durable when it returns, and shown wherever the trial is.
        """
        said: list[Event] = [as_annotation(self.id, {name: value}, time=self._clock())]
        self._goes_on = self._emit(said) and self._goes_on

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Remember that the disk refused, whatever the objective does with the error."""
        if self._trouble is not None:
            raise self._trouble
        try:
            yield
        except CheckpointError as error:
            self._trouble = error
            raise

    def trouble(self, error: BaseException | None = None) -> CheckpointError | None:
        """Why this attempt could not keep its checkpoints; ``error`` is what its objective failed
        with, if it did."""
        if self._trouble is None and error is not None and self._folder is not None:
            self._trouble = self._folder.trouble(error)
        return self._trouble

    def close(self) -> None:
        """The attempt has ended well; nobody needs its folder of work."""
        if self._folder is not None:
            self._folder.close()

    def _place(self, step: float | None) -> float:
        """The step a report is about: the one given, the loop's, or the next one."""
        if step is None:
            return (
                self._current
                if self._current is not None
                else min(self._step + 1.0, self._assignment.end)
            )
        if not is_finite(step) or step <= 0:
            raise ReportError(f"step is {step!r}; it must be a positive number of budget units")
        if step > self._assignment.end:
            raise ReportError(
                f"step {step:g} lies beyond the grant of {self._assignment.end:g}; stop where"
                " trial.steps() ends"
            )
        return float(step)


def _failure(error: BaseException) -> str:
    """What to say of an exception, however ill it behaves."""
    try:
        text = "".join(traceback.format_exception(error)[-6:])
        return readable(f"{type(error).__name__}: {error}\n{text}")
    except Exception:
        return f"{type(error).__name__}, which cannot be shown as text"


def _of_the_user(error: BaseException) -> TracebackType | None:
    """Where it came from in the objective, without what called that; None for a wrong result, which
    was returned and not raised."""
    inside = None if error.__traceback__ is None else error.__traceback__.tb_next
    return (
        None if inside is None or inside.tb_frame.f_code is RunContext.report.__code__ else inside
    )


def run_objective(objective: Objective, context: RunContext, clock: Clock) -> list[Event]:
    """Call the objective; return the events that end the attempt, none when it merely used up its
    grant.

    Raises `CheckpointError` when it was the disk that failed.
    """
    assignment = context._assignment

    def ended(status: str, message: str) -> list[Event]:
        return [
            Ended(
                trial=assignment.trial,
                status=status,
                message=message,
                attempt=assignment.attempt,
                time=clock(),
            )
        ]

    try:
        result = objective(context)
        if result is not None and context.goes_on:
            context.report(cast("SupportsFloat", result), step=assignment.end)  # which checks it
    except (Exception, SystemExit) as error:
        trouble = context.trouble(error)
        if trouble is not None:
            raise trouble from error
        error.__traceback__ = _of_the_user(error)
        context.failure = error
        return ended("failed", _failure(error))
    swallowed = context.trouble()
    if swallowed is not None:
        raise swallowed
    context.close()
    if not context.goes_on:
        return []
    if context.reported:
        return ended("completed", "the objective ended by itself before its grant")
    return ended(
        "failed",
        "the objective returned None and reported nothing; return a number or call trial.report",
    )
