"""The state of a study, advanced one event at a time, in constant time each.

`State` is mutable and private to `History`, which shares it between versions of the same log.
With a `Fold`, policies keep state of their own: a rung table, for instance, advances with every
event instead of being computed from all trials again.

Values of a log are checked before they are used, since anyone who can write to a storage may have
written them. One that fails is left out of the state and listed as ignored, with the reason; the
study continues.
"""

import threading
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar, Generic, TypeVar

from msgspec.structs import replace

from scrimp.checks import is_whole
from scrimp.errors import ConfigError, StudyError
from scrimp.json_values import Config, Json, JsonObject
from scrimp.space.growth import grown_config
from scrimp.space.parameter import Categorical
from scrimp.space.space import Space
from scrimp.study_log.decision_record import EMPTY_RECORD, latest_record
from scrimp.study_log.events import (
    Advised,
    Annotated,
    BudgetGranted,
    CheckpointsRemoved,
    Decided,
    Ended,
    Enqueued,
    Event,
    Lost,
    Reported,
    Retried,
    SourceAttached,
    StudyChanged,
    StudyCreated,
    TrialAdded,
    annotation_objection,
    with_attributes,
)
from scrimp.study_log.limits import Limits
from scrimp.study_log.messages import shortened
from scrimp.study_log.problem import Problem
from scrimp.study_log.standings import Front, measured_again, with_report
from scrimp.study_log.trial import STATUSES, Observation, Trial

S = TypeVar("S")

ENDS = ("completed", "stopped", "failed")
"""States in which a trial may end."""

MAX_DECISIONS_AHEAD = 1000
"""Difference by which the number of a decision may exceed the length of the log: each decision
appends at least one event. Every store can keep counting from there."""

MAX_BRACKETS_ABOVE_TRIAL = 1000
"""Difference by which the number of a bracket may exceed that of its trial: brackets that open one
after another have trials, others are few."""


class Fold(ABC, Generic[S]):
    """Incremental state of a policy: a hashable value that defines the first state and how one event
    advances it.

    ``step`` changes ``state`` in place; ``before`` and ``trial`` are the trial of the event, before
    and after it. A fold that names the ``kinds`` of events it needs gets only those, without trials:
    other events cost nothing, and it can begin in the middle of a study without computing all
    trials again.
    """

    kinds: ClassVar[tuple[type, ...] | None] = None

    @abstractmethod
    def begin(self, problem: Problem) -> S:
        """Return the state before any trial."""

    @abstractmethod
    def step(self, state: S, event: Event, before: Trial | None, trial: Trial | None) -> None:
        """Apply one event."""


K = TypeVar("K")


class Kept(Generic[K]):
    """A ``value`` kept between decisions, with a ``lock``: pages ask from several threads."""

    def __init__(self, make: Callable[[], K]) -> None:
        self.lock, self.value = threading.Lock(), make()


@dataclass(frozen=True)
class Cache(Fold[Kept[K]]):
    """A value that ``make`` returns, one for each ``key``, which its reader fills. It is made again when
    a trial is retried or the problem changes; that changes time, never results.

        kept = history.derive(Cache(dict, encoding))
        with kept.lock: ...
    """

    make: Callable[[], K]
    key: Hashable = None
    kinds = (Retried, StudyChanged)

    def begin(self, problem: Problem) -> Kept[K]:
        return Kept(self.make)

    def step(self, state: Kept[K], event: Event, before: Trial | None, trial: Trial | None) -> None:
        if isinstance(event, Retried) or (
            isinstance(event, StudyChanged) and event.problem is not None
        ):
            state.value = self.make()


class State:
    """The current state of a study, which `History` reads."""

    def __init__(self, parsed: dict[int, tuple[JsonObject, Problem]] | None = None) -> None:
        # States of the same log share it, so that a large pool is read once.
        self.parsed = {} if parsed is None else parsed
        self.length = 0
        self.created: StudyCreated | None = None
        self.problem: Problem | None = None
        self.method: JsonObject = {}
        self.limits = Limits()
        self.objective: JsonObject | None = None
        self.plugins: tuple[str, ...] = ()
        self.sources: list[SourceAttached] = []
        self.trials: list[Trial] = []
        self.by_status: dict[str, dict[int, None]] = {status: {} for status in STATUSES}
        self.interrupted: dict[int, None] = {}
        self.vouched: dict[int, dict[int, float]] = {}
        self.queue: deque[Config] = deque()
        self.advised = False
        self.decisions = 0
        self.recorded = EMPTY_RECORD
        self.degraded: list[tuple[int, str]] = []
        self.ignored: list[tuple[int, str]] = []
        self.user_attrs: dict[str, Json] = {}
        self.user_note = ""
        self.spent = 0.0
        self.repeated = 0.0
        self.freed = 0
        self.front: Front = []
        self.time = 0.0
        self.derived: dict[Fold[Any], Any] = {}
        self.remembered: dict[object, Any] = {}
        self._watching: list[tuple[Fold[Any], Any]] = []
        self._waiting: dict[type, list[tuple[Fold[Any], Any]]] = {}

    def derive(self, fold: Fold[S], state: S) -> None:
        """Advance ``state`` from now on."""
        self.derived[fold] = state
        if fold.kinds is None:
            self._watching.append((fold, state))
        for kind in fold.kinds or ():
            self._waiting.setdefault(kind, []).append((fold, state))

    def apply(self, event: Event) -> None:
        """Apply one event. Every process applies all events of all others, so this is kept lean."""
        before: Trial | None = None
        trial: Trial | None = None
        kind = type(event)
        if kind in ABOUT_TRIALS:
            number: int = event.trial  # type: ignore[union-attr, assignment]
            if not 0 <= number < len(self.trials):
                raise StudyError(
                    f"event {self.length} of the log is about trial {number}, which was never"
                    " added; the log is damaged"
                )
            before = trial = self.trials[number]
            # Attempts are numbered in turn. A worker that resumes a trial goes through all attempts
            # before, so a huge number would keep it busy for ever.
            attempt: int = event.attempt if kind is not Retried else 0  # type: ignore[union-attr]
            newest = max(before.attempt + (kind is BudgetGranted), 1)
            if 0 <= attempt <= newest:
                trial = ABOUT_TRIALS[kind](self, event, before)
            else:
                words = f"trial {number} has the attempt {shortened(attempt)}"
                self.ignored.append((self.length, f"{words}; it must be at most {newest}"))
            if trial is not before:
                self.trials[number] = trial
                if trial.status != before.status:
                    del self.by_status[before.status][number]
                    self.by_status[trial.status][number] = None
                    if trial.status != "paused":
                        self.interrupted.pop(number, None)
        elif kind is TrialAdded:
            trial = self._added(event)  # type: ignore[arg-type]
        else:
            ABOUT_THE_STUDY[kind](self, event)
        self.length += 1
        if self.remembered:
            self.remembered.clear()
        if event.time > self.time:
            self.time = event.time
        for fold, state in self._watching:
            fold.step(state, event, before, trial)
        if kind in self._waiting:
            for fold, state in self._waiting[kind]:
                fold.step(state, event, None, None)

    def _record_decision(self, event: Decided) -> None:
        if not 0 <= event.decision <= self.length + MAX_DECISIONS_AHEAD:
            words = f"a decision has the number {shortened(event.decision)}; the next one is"
            self.ignored.append((self.length, f"{words} {self.decisions}"))
            return
        self.decisions = max(self.decisions, event.decision + 1)
        if event.record is not EMPTY_RECORD:
            self.recorded = latest_record(self.recorded, event.record)
            if event.record.degraded:
                self.degraded.append((event.decision, event.record.degraded))

    def _enqueue(self, event: Enqueued) -> None:
        assert self.problem is not None
        try:
            self.problem.space.validate(event.config)
        except (ConfigError, TypeError) as error:
            # A list as a value is not hashable: a TypeError.
            why = f"a configuration in the queue does not fit the space: {shortened(error)}"
            self.ignored.append((self.length, why))
        else:
            self.queue.append(event.config)

    def _note_advice(self, _: Advised) -> None:
        self.advised = True

    def _create(self, event: StudyCreated) -> None:
        if self.created is not None:
            self.ignored.append((self.length, "the study is created a second time"))
            return
        self.created, self.method, self.plugins = event, event.method, event.plugins
        self.problem = self.parse(event.problem)
        self._check_cells()

    def _check_cells(self) -> None:
        """Raise `StudyError` for a selection whose configurations are not cells of a table."""
        if self.created is None or self.problem is None:
            return
        cells = {"checkpoint": Categorical, "task": Categorical}
        kinds = {name: type(parameter) for name, parameter in self.problem.space.items()}
        if self.created.kind == "selection" and kinds != cells:
            raise StudyError(
                f"event {self.length} of the log describes a selection without checkpoints and tasks;"
                " the log is damaged: restore a backup, or delete the study"
            )

    def _attach(self, event: SourceAttached) -> None:
        self.sources.append(event)

    def _count_freed(self, event: CheckpointsRemoved) -> None:
        self.freed += event.size

    def _annotate(self, event: Annotated) -> None:
        """Apply an annotation. Folds see no trial with it, since no decision depends on it."""
        objection = annotation_objection(event)
        if event.trial is not None and not 0 <= event.trial < len(self.trials):
            objection = f"trial {event.trial} is annotated, which was never added"
        if objection:
            self.ignored.append((self.length, objection))
        elif event.trial is None:
            self.user_attrs = with_attributes(self.user_attrs, event)
            self.user_note = self.user_note if event.note is None else event.note
        else:
            trial = self.trials[event.trial]
            note = trial.note if event.note is None else event.note
            attributes = with_attributes(trial.user_attrs, event)
            self.trials[trial.id] = replace(trial, user_attrs=attributes, note=note)

    def parse(self, record: JsonObject) -> Problem:
        """Return the problem that an event records."""
        # The record is kept, so that its id stays unique.
        if id(record) not in self.parsed:
            try:
                self.parsed[id(record)] = record, Problem.from_json(record)
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                raise StudyError(
                    f"event {self.length} of the log records a problem that cannot be read"
                    f" ({error!r}); it is damaged, or a newer scrimp wrote it: use that version, or"
                    " restore the study from a backup"
                ) from None
        return self.parsed[id(record)][1]

    def _change(self, event: StudyChanged) -> None:
        if event.problem is not None:
            old, self.problem = self.problem, self.parse(event.problem)
            self._check_cells()
            if old is not None and old.space != self.problem.space:
                self._move_to(old.space, self.problem.space)
            if old is not None and (old.metrics, old.goals) != (
                self.problem.metrics,
                self.problem.goals,
            ):
                self._measure_again(self.problem)
        if event.method is not None:
            self.method = event.method
        self.limits = event.limits_after(self.limits)
        if event.objective is not None:
            self.objective = event.objective
        if event.plugins is not None:
            self.plugins = event.plugins

    def _move_to(self, old: Space, new: Space) -> None:
        """Move all trials and the queue to a larger space; a trial that does not fit stays."""
        for number, trial in enumerate(self.trials):
            config = grown_config(trial.config, old, new)
            if config is not None:
                self.trials[number] = replace(trial, config=config)
        moved = (grown_config(config, old, new) for config in self.queue)
        self.queue = deque(config for config in moved if config is not None)

    def _measure_again(self, problem: Problem) -> None:
        """Compute the losses of all reports again, after a change of metrics or goals."""
        self.trials = [measured_again(trial, problem) for trial in self.trials]
        self.front = []
        for trial in self.trials:
            for point in trial.curve:
                if point.feasible:
                    self.front = with_report(self.front, point, trial.id)

    def _added(self, event: TrialAdded) -> Trial:
        if event.trial != len(self.trials):
            raise StudyError(
                f"the log adds trial {event.trial} where {len(self.trials)} is next; it is damaged:"
                " export what is good"
            )
        if event.enqueued and self.queue:
            self.queue.popleft()
        objection = tag_objection(event.tag, event.trial) if event.tag else ""
        if objection:
            self.ignored.append((self.length, objection))
        trial = _new_trial(event, self.decisions - 1, {} if objection else event.tag)
        self.trials.append(trial)
        self.by_status[trial.status][trial.id] = None
        return trial

    def _granted(self, event: BudgetGranted, before: Trial) -> Trial:
        if before.finished:
            return before
        return replace(
            before,
            granted=event.budget,
            attempt=event.attempt,
            worker=event.worker,
            status="running",
            message="",
            started=event.time if before.started is None else before.started,
        )

    def _ended(self, event: Ended, before: Trial) -> Trial:
        if event.status not in ENDS:
            self.ignored.append(
                (self.length, f"trial {event.trial} ends as {shortened(event.status)}")
            )
            return before
        if _too_late(event, before):
            return before
        return replace(before, status=event.status, message=event.message, ended=event.time)

    def _lost(self, event: Lost, before: Trial) -> Trial:
        if before.status != "running" or event.attempt != before.attempt:
            return before
        paused = event.paused and bool(before.curve)
        if paused:
            self.interrupted[before.id] = None
        return replace(
            before,
            status="paused" if paused else "stale",
            lost=event.attempt,
            lost_workers=before.lost_workers + (not event.handed_back),
            message=event.message,
        )

    def _reported(self, event: Reported, before: Trial) -> Trial:
        problem = self.problem
        assert problem is not None
        if _too_late(event, before):
            return before
        if event.attempt > 1 or before.id in self.vouched:
            vouched = self.vouched[before.id] = self.vouched_by_attempt(before.id)
            vouched[event.attempt] = max(event.step, vouched.get(event.attempt, 0.0))
        point = observation(event, problem)
        curve = _with_point(before.curve, point)
        if curve is before.curve:
            # The first report of a step counts; this one trained it again.
            place = bisect_left(curve, point.step, key=attrgetter("step"))
            self.repeated += point.step - (curve[place - 1].step if place else 0.0)
            return before
        last, loss, best = curve[-1], point.loss, before.best
        self.spent += last.step - before.budget
        status, end = before.status, before.ended
        # A value that is not finite completes nothing: an `Ended` event follows it.
        if loss is not None:
            if last.step >= problem.full_budget:
                status, end = "completed", event.time
            elif last.step >= before.granted and status == "running":
                status = "paused"
            if point.feasible:
                self.front = with_report(self.front, point, before.id)
                if best is None or loss < problem.sign * best:
                    best = problem.value(loss)
        return replace(
            before,
            curve=curve,
            status=status,
            ended=end,
            value=problem.value(last.loss),
            best=best,
            lost_workers=0,
        )

    def vouched_by_attempt(self, trial: int) -> dict[int, float]:
        """Return the highest step that counts for each attempt of a trial. It is stored once a
        second attempt reports; until then it is the budget."""
        if trial in self.vouched:
            return self.vouched[trial]
        before = self.trials[trial] if 0 <= trial < len(self.trials) else None
        return {1: max(before.budget, 0.0)} if before is not None and before.curve else {}

    def _retried(self, _: Retried, before: Trial) -> Trial:
        """Return a failed trial as a stale one, with its finite reports."""
        assert self.problem is not None
        if before.status != "failed":
            return before
        curve = tuple(point for point in before.curve if point.loss is not None)
        last = curve[-1] if curve else None
        good = 0.0 if last is None else last.step
        vouched = self.vouched_by_attempt(before.id).items()
        self.vouched[before.id] = {attempt: min(step, good) for attempt, step in vouched if good}
        return replace(
            before,
            status="stale",
            message="it failed, and will be tried again",
            curve=curve,
            value=None if last is None else self.problem.value(last.loss),
            ended=None,
            lost=before.attempt,
            lost_workers=0,
        )


ABOUT_TRIALS: dict[type, Callable[[State, Any, Trial], Trial]] = {
    BudgetGranted: State._granted,
    Reported: State._reported,
    Ended: State._ended,
    Lost: State._lost,
    Retried: State._retried,
}
"""The trial after an event about it."""

ABOUT_THE_STUDY: dict[type, Callable[[State, Any], None]] = {
    Decided: State._record_decision,
    Enqueued: State._enqueue,
    Advised: State._note_advice,
    StudyCreated: State._create,
    StudyChanged: State._change,
    SourceAttached: State._attach,
    CheckpointsRemoved: State._count_freed,
    Annotated: State._annotate,
}


def _new_trial(event: TrialAdded, decision: int, tag: dict[str, Json]) -> Trial:
    return Trial(
        id=event.trial,
        config=event.config,
        tag=tag,
        continue_from=event.continue_from,
        decision=decision,
    )


def started(decided: Decided, added: TrialAdded, granted: BudgetGranted) -> Trial:
    """Return the trial that a decision starts, without the rest of the log."""
    tag = {} if tag_objection(added.tag, added.trial) else added.tag
    return State()._granted(granted, _new_trial(added, decided.decision, tag))


def after(trial: Trial, events: Iterable[Event], problem: Problem) -> Trial:
    """Return a trial after further events about it, without the rest of the log. Right for a trial
    of one attempt."""
    state = State()
    state.problem = problem
    for event in events:
        trial = ABOUT_TRIALS[type(event)](state, event, trial)
    return trial


def tag_objection(tag: Mapping[str, Json], trial: int) -> str:
    """Return the reason why the tag of a trial does not count; empty if it does. Without a tag, the
    trial belongs to no bracket."""
    for name in ("bracket", "slot"):
        number = tag.get(name, 0)
        if not is_whole(number) or number > trial + MAX_BRACKETS_ABOVE_TRIAL:
            return (
                f"trial {trial} has the {name} {shortened(number)}; it must be a whole number of at"
                f" most {trial + MAX_BRACKETS_ABOVE_TRIAL}"
            )
    if "slot" in tag and "bracket" not in tag:
        return f"trial {trial} has a slot and no bracket"
    return ""


def observation(event: Reported, problem: Problem) -> Observation:
    """Return a report with its losses and its violation of constraints."""
    losses = problem.losses(event.metrics)
    return Observation(
        event.step,
        event.metrics,
        losses,
        problem.counted(losses),
        event.stderr,
        event.cost,
        event.time,
        problem.violation(event.metrics),
    )


def _too_late(event: Reported | Ended, before: Trial) -> bool:
    """Return True for an event after the end of its trial, or of an attempt that was lost or
    replaced; it does not count."""
    return before.finished or event.attempt <= before.lost or event.attempt < before.attempt


def _with_point(curve: tuple[Observation, ...], point: Observation) -> tuple[Observation, ...]:
    """Return the curve with one more report, sorted by step; unchanged if it has that step."""
    if not curve or point.step > curve[-1].step:
        return (*curve, point)
    place = bisect_left(curve, point.step, key=attrgetter("step"))
    return curve if curve[place].step == point.step else (*curve[:place], point, *curve[place:])
