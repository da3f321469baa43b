"""The fold: from events to the present state, one event at a time, in constant time each.

`State` is mutable and private to `History`, which shares it between versions of the same log.
`Fold` is how policies keep state of their own: a rung table, for instance, advances with every
event instead of being computed from all trials again.
"""

from abc import ABC, abstractmethod
from collections import deque
from typing import Any, ClassVar, Generic, TypeVar

from msgspec.structs import replace

from scrimp.errors import StudyError
from scrimp.history.advanced import ended, given_up, granted, observation, with_point
from scrimp.history.annotations import annotation_objection, with_attributes
from scrimp.history.events import (
    Annotated,
    BudgetGranted,
    CheckpointsRemoved,
    Config,
    Ended,
    Enqueued,
    Event,
    Lost,
    Noted,
    Reported,
    Retried,
    SourceAttached,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.history.limits import Limits
from scrimp.history.notes import EMPTY, newest
from scrimp.history.problem import Problem
from scrimp.history.standings import Front, measured_again, with_report
from scrimp.history.trial import STATUSES, Observation, Trial
from scrimp.history.vetting import (
    ENDS,
    MOST_DECISIONS,
    attempt_objection,
    queue_objection,
    shortened,
    tag_objection,
)
from scrimp.json_values import Json, JsonObject
from scrimp.space.growth import grown_config
from scrimp.space.space import Space

__all__ = ["Fold", "State"]

S = TypeVar("S")

ABOUT_TRIALS = frozenset({Reported, BudgetGranted, Ended, Lost, Retried})


class Fold(ABC, Generic[S]):
    """Incremental state of a policy: a hashable value that says how to begin and how one event
    advances the state.

    ``step`` changes ``state`` in place; ``before`` and ``trial`` are the trial the event is about,
    before and after it. A fold that names the ``kinds`` of events it needs gets those alone,
    without trials: it costs nothing with all others, and begins in the middle of a study without
    going through all that happened to the trials again.
    """

    kinds: ClassVar[tuple[type, ...] | None] = None

    @abstractmethod
    def begin(self, problem: Problem) -> S:
        """The state before any trial."""

    @abstractmethod
    def step(self, state: S, event: Event, before: Trial | None, trial: Trial | None) -> None:
        """Take one event in."""


class State:
    """Everything a history can be asked, kept current."""

    def __init__(self, parsed: dict[int, tuple[JsonObject, Problem]] | None = None) -> None:
        self.parsed = (
            {} if parsed is None else parsed
        )  # shared by states over the same log: a large pool is read once
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
        self.vouched: dict[int, dict[int, float]] = {}
        self.queue: deque[Config] = deque()
        self.decisions = 0
        self.notes = EMPTY
        self.degraded: list[tuple[int, str]] = []
        self.ignored: list[tuple[int, str]] = []
        self.user_attrs: dict[str, Json] = {}
        self.user_note = ""
        self.spent = 0.0
        self.freed = 0
        self.best: tuple[float, int, float] | None = None
        self.front: Front = []
        self.time = 0.0
        self.derived: dict[Fold[Any], Any] = {}
        self._watching: list[tuple[Fold[Any], Any]] = []
        self._waiting: dict[type, list[tuple[Fold[Any], Any]]] = {}

    def derive(self, fold: Fold[S], state: S) -> None:
        """Keep ``state`` current from now on."""
        self.derived[fold] = state
        if fold.kinds is None:
            self._watching.append((fold, state))
        for kind in fold.kinds or ():
            self._waiting.setdefault(kind, []).append((fold, state))

    def apply(self, event: Event) -> None:
        """Take one event in."""
        before: Trial | None = None
        trial: Trial | None = None
        kind = type(event)
        if kind in ABOUT_TRIALS:
            before = self._known(event.trial)  # type: ignore[union-attr, arg-type]
            trial = self._about_trial(event, before)  # type: ignore[arg-type]
        elif isinstance(event, TrialAdded):
            trial = self._added(event)
        else:
            self._about_study(event)
        self.length += 1
        if event.time > self.time:
            self.time = event.time
        for fold, state in self._watching:
            fold.step(state, event, before, trial)
        if kind in self._waiting:
            for fold, state in self._waiting[kind]:
                fold.step(state, event, None, None)

    def _about_study(self, event: Event) -> None:
        match event:
            case Noted() if not 0 <= event.decision < MOST_DECISIONS:
                words = f"a decision has the number {shortened(event.decision)}, which none has"
                self.ignored.append((self.length, words))
            case Noted():
                self.decisions = max(self.decisions, event.decision + 1)
                self.notes = newest(self.notes, event.notes)
                if event.notes.degraded:
                    self.degraded.append((event.decision, event.notes.degraded))
            case Enqueued():
                assert self.problem is not None
                objection = queue_objection(self.problem.space, event.config)
                if objection:
                    self.ignored.append((self.length, objection))
                else:
                    self.queue.append(event.config)
            case StudyCreated() if self.created is not None:
                self.ignored.append((self.length, "the study is created a second time"))
            case StudyCreated():
                self.created, self.method, self.plugins = event, event.method, event.plugins
                self.problem = self.parse(event.problem)
            case StudyChanged():
                self._change(event)
            case SourceAttached():
                self.sources.append(event)
            case CheckpointsRemoved():
                self.freed += event.size
            case Annotated():
                self._annotate(event)

    def _annotate(self, event: Annotated) -> None:
        """What was said; folds see no trial with it, for it changes nothing that anybody decides by."""
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
        """The problem that an event records."""
        if id(record) not in self.parsed:  # the record is kept, so that its id stays its own
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
            if old is not None and old.space != self.problem.space:
                self._move_to(old.space, self.problem.space)
            if old is not None and old.trade_off != self.problem.trade_off:
                self._measure_again(self.problem)
        if event.method is not None:
            self.method = event.method
        self.limits = event.limits_after(self.limits)
        if event.objective is not None:
            self.objective = event.objective
        if event.plugins is not None:
            self.plugins = event.plugins

    def _move_to(self, old: Space, new: Space) -> None:
        """Give every trial its place in a space that grew; one that fits no longer keeps its
        configuration as it was."""
        for number, trial in enumerate(self.trials):
            config = grown_config(trial.config, old, new)
            if config is not None:
                self.trials[number] = replace(trial, config=config)
        moved = (grown_config(config, old, new) for config in self.queue)
        self.queue = deque(config for config in moved if config is not None)

    def _measure_again(self, problem: Problem) -> None:
        """A metric has joined, or goals have changed: what was reported counts by the new rule."""
        self.trials = [measured_again(trial, problem) for trial in self.trials]
        self.front = []
        for trial in self.trials:
            for point in trial.curve:
                self._consider_best(trial.id, point)

    def _added(self, event: TrialAdded) -> Trial:
        if event.trial != len(self.trials):
            raise StudyError(
                f"the log adds trial {event.trial} where {len(self.trials)} was due; it is damaged:"
                " export what is good"
            )
        if event.enqueued and self.queue:
            self.queue.popleft()
        objection = tag_objection(event.tag, event.trial) if event.tag else ""
        if objection:
            self.ignored.append((self.length, objection))
        trial = Trial(
            id=event.trial,
            config=event.config,
            tag={} if objection else event.tag,
            continue_from=event.continue_from,
            decision=self.decisions - 1,
        )
        self.trials.append(trial)
        self.by_status[trial.status][trial.id] = None
        return trial

    def _known(self, number: int) -> Trial:
        if not 0 <= number < len(self.trials):
            raise StudyError(
                f"event {self.length} of the log is about trial {number}, which was never added;"
                " the log is damaged"
            )
        return self.trials[number]

    def _about_trial(
        self, event: Reported | BudgetGranted | Ended | Lost | Retried, before: Trial
    ) -> Trial:
        if not isinstance(event, Retried):
            newest = before.attempt + isinstance(event, BudgetGranted)
            objection = attempt_objection(before.id, event.attempt, max(newest, 1))
            if objection:
                self.ignored.append((self.length, objection))
                return before
        match event:
            case Reported():
                trial = self._reported(event, before)
            case BudgetGranted():
                trial = before if before.finished else granted(event, before)
            case Ended() if event.status not in ENDS:
                trial = before
                self.ignored.append(
                    (self.length, f"trial {event.trial} ends as {shortened(event.status)}")
                )
            case Ended():
                trial = before if given_up(event, before) else ended(event, before)
            case Lost():
                trial = before
                if before.status == "running" and event.attempt == before.attempt:
                    losses = before.losses if event.handed_back else before.losses + 1
                    trial = replace(
                        before,
                        status="stale",
                        lost=event.attempt,
                        losses=losses,
                        message=event.message,
                    )
            case Retried():
                trial = self._retried(before) if before.status == "failed" else before
        if trial is not before:
            self.trials[trial.id] = trial
            if trial.status != before.status:
                del self.by_status[before.status][before.id]
                self.by_status[trial.status][trial.id] = None
        return trial

    def _reported(self, event: Reported, before: Trial) -> Trial:
        assert self.problem is not None
        if given_up(event, before):
            return before  # in the log, but not counted
        vouched = self.vouched.setdefault(before.id, {})
        vouched[event.attempt] = max(event.step, vouched.get(event.attempt, 0.0))
        point = observation(event, self.problem)
        loss = point.loss
        curve = with_point(before.curve, point)
        if curve is before.curve:
            return before  # the first report of a step counts
        self.spent += curve[-1].step - before.budget
        self._consider_best(before.id, point)
        status, end = before.status, before.ended
        if loss is None:
            pass  # a value that is not finite completes nothing: the end that follows it says why
        elif curve[-1].step >= self.problem.full_budget:
            status, end = "completed", event.time
        elif curve[-1].step >= before.granted and status == "running":
            status = "paused"
        last = curve[-1].loss
        value = self.problem.value(last)
        best = self._better(before.best, point)
        return replace(
            before,
            curve=curve,
            status=status,
            ended=end,
            loss=last,
            value=value,
            best=best,
            losses=0,
        )

    def _better(self, best: float | None, point: Observation) -> float | None:
        """The better of a trial's best value and a report's, in the user's direction."""
        assert self.problem is not None
        if (
            point.loss is None
            or not point.feasible
            or (best is not None and self.problem.sign * best <= point.loss)
        ):
            return best
        return self.problem.value(point.loss)

    def _retried(self, before: Trial) -> Trial:
        """The failed trial as one that was lost, with what it reported while all was well."""
        assert self.problem is not None
        curve = tuple(point for point in before.curve if point.loss is not None)
        last = curve[-1] if curve else None
        good = 0.0 if last is None else last.step
        vouched = self.vouched.get(before.id, {}).items()
        self.vouched[before.id] = {attempt: min(step, good) for attempt, step in vouched if good}
        loss = None if last is None else last.loss
        value = self.problem.value(loss)
        state = {
            "curve": curve,
            "loss": loss,
            "value": value,
            "ended": None,
            "lost": before.attempt,
            "losses": 0,
        }
        return replace(
            before, status="stale", message="it failed, and is to be tried again", **state
        )

    def _consider_best(self, trial: int, point: Observation) -> None:
        if point.loss is None or not point.feasible:
            return
        if self.problem is not None and self.problem.trade_off is not None:
            self.front = with_report(self.front, point, trial)
        elif self.best is None or point.loss < self.best[0]:
            self.best = (point.loss, trial, point.step)
