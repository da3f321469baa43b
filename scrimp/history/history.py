"""What happened, as a value: a fold over the event log with queries and derived random generators.

A `History` never changes; `with_events` gives a longer one and shares everything with it. The
newest version answers in constant time. An older one still answers, by folding its part of the log
again: sharing is a matter of time, not of result.

Randomness is derived, never stored: ``rng(purpose)`` depends on the study's seed, the number of
decisions taken and the purpose. So a decision is a function of the history, and can be replayed.

    history = History.of(store.read())
    longer = history.with_events(news)
"""

import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np

from scrimp.errors import StudyError
from scrimp.history.events import Config, Event, SourceAttached, StudyCreated
from scrimp.history.fold import Fold, State
from scrimp.history.limits import Limits, Totals
from scrimp.history.notes import Notes
from scrimp.history.problem import Problem
from scrimp.history.trial import Observation, Trial
from scrimp.json_values import Json, JsonObject

__all__ = ["Fold", "History"]

S = TypeVar("S")


class History:
    """The first ``length`` events of a log, folded."""

    __slots__ = ("_log", "_state", "length")

    def __init__(self, log: list[Event], length: int, state: State) -> None:
        self._log = log
        self._state = state
        self.length = length

    @staticmethod
    def of(events: Iterable[Event]) -> "History":
        """The history of these events; the first must be `StudyCreated`."""
        log = list(events)
        if not log or not isinstance(log[0], StudyCreated):
            raise StudyError(
                "the log does not begin with the creation of its study; it is empty or damaged"
            )
        return History([], 0, State()).with_events(log)

    def with_events(self, events: Iterable[Event]) -> "History":
        """The longer history; this one stays as it is."""
        state = self._current()
        log = self._log if len(self._log) == self.length else self._log[: self.length]
        for event in events:
            state.apply(event)
            log.append(event)
        return History(log, state.length, state)

    def _current(self) -> State:
        """The state at this length: shared when nobody went on from here, folded again
        otherwise."""
        if self._state.length != self.length:
            events = self._log[: self.length]
            self._state = _folded(events, State(self._state.parsed), self._state.derived)
        return self._state

    def derive(self, fold: Fold[S]) -> S:
        """The state ``fold`` keeps, advanced to this length. Shared: read it, do not change it."""
        state = self._current()
        if fold not in state.derived:
            state.derive(fold, self._derived(fold))
        result: S = state.derived[fold]
        return result

    def _derived(self, fold: Fold[S]) -> S:
        """The state of a fold that nobody has asked for yet."""
        events = self._log[: self.length]
        if fold.kinds is None:
            state: S = _folded(events, State(self._state.parsed), [fold]).derived[fold]
            return state
        state = fold.begin(self._state.parse(self.created.problem))
        for event in events:
            if type(event) in fold.kinds:
                fold.step(state, event, None, None)
        return state

    def rng(self, purpose: str) -> np.random.Generator:
        """A generator that depends on the seed, the number of decisions taken so far, and
        ``purpose``."""
        return np.random.default_rng(
            [self.problem.seed, self.decisions, zlib.crc32(purpose.encode())]
        )

    @property
    def events(self) -> Sequence[Event]:
        """The log up to this length."""
        return self._log[: self.length]

    @property
    def created(self) -> StudyCreated:
        """The first event."""
        created = self._current().created
        assert created is not None
        return created

    @property
    def identity(self) -> str:
        """What tells this study from every other: drawn when it was created, for older studies a
        digest of the first event."""
        created = self.created
        if created.identity:
            return created.identity
        return hashlib.sha256(msgspec.json.encode(created, order="deterministic")).hexdigest()[:32]

    @property
    def problem(self) -> Problem:
        """The question asked, with the space as it is now."""
        problem = self._current().problem
        assert problem is not None
        return problem

    @property
    def method(self) -> JsonObject:
        """The JSON form of the method."""
        return self._current().method

    @property
    def limits(self) -> Limits:
        """How far the study goes, whether it is halted, and where its checkpoints lie."""
        return self._current().limits

    @property
    def totals(self) -> Totals:
        """How much in all: n_trials, budget, timeout."""
        return self._current().limits.totals

    @property
    def objective(self) -> Mapping[str, Json] | None:
        """What workers evaluate, by name; None when nobody recorded it."""
        return self._current().objective

    @property
    def plugins(self) -> tuple[str, ...]:
        """Modules that registered names the method is made of, as recorded."""
        return self._current().plugins

    @property
    def sources(self) -> Sequence[SourceAttached]:
        """Past studies this one learns from."""
        return self._current().sources

    @property
    def trials(self) -> Sequence[Trial]:
        """All trials, by id. Read it, do not change it."""
        return self._current().trials

    def trial(self, number: int) -> Trial:
        """The trial with this number; `StudyError` where there is none."""
        trials = self.trials
        if isinstance(number, bool) or not 0 <= number < len(trials):
            raise StudyError(
                f"there is no trial {number}; the study has {len(trials)}, counted from 0"
            )
        return trials[number]

    def vouched(self, trial: int) -> dict[int, float]:
        """For each attempt of a trial the highest step reported while it was listened to: up to
        there its checkpoints count."""
        return dict(self._current().vouched.get(trial, {}))

    def with_status(self, *statuses: str) -> list[Trial]:
        """The trials in any of these states, in the order in which they came into them."""
        state = self._current()
        return [state.trials[number] for status in statuses for number in state.by_status[status]]

    @property
    def counts(self) -> dict[str, int]:
        """How many trials are in each state."""
        return {status: len(members) for status, members in self._current().by_status.items()}

    @property
    def queue(self) -> Sequence[Config]:
        """Configurations to try before the method decides."""
        return self._current().queue

    @property
    def decisions(self) -> int:
        """How many decisions were taken; the number of the next one."""
        return self._current().decisions

    @property
    def notes(self) -> Notes:
        """The newest word of the decisions on everything they note: fits, weights, reasons."""
        return self._current().notes

    def note(self, key: str) -> Json:
        """What the newest decision that noted ``key`` as its method's own said; None when none
        did."""
        return self._current().notes.own.get(key)

    @property
    def degraded(self) -> Sequence[tuple[int, str]]:
        """Decisions that fell back to a simpler model, and why."""
        return self._current().degraded

    @property
    def ignored(self) -> Sequence[tuple[int, str]]:
        """Entries of the log that do not count since they cannot be: where they stand, and why."""
        return self._current().ignored

    @property
    def user_attrs(self) -> Mapping[str, Json]:
        """What people said about the study, by name."""
        return self._current().user_attrs

    @property
    def user_note(self) -> str:
        """The note that people wrote on the study."""
        return self._current().user_note

    @property
    def spent(self) -> float:
        """Budget used over all trials, in units of the budget."""
        return self._current().spent

    @property
    def freed(self) -> int:
        """Bytes of checkpoints that were removed because no trial needs them any more."""
        return self._current().freed

    @property
    def time(self) -> float:
        """The time of the newest event."""
        return self._current().time

    @property
    def is_selection(self) -> bool:
        """Whether its trials are cells of a table of scores, each of which says little by itself,
        and not configurations of a study."""
        return self.created.kind == "selection"

    @property
    def most_trials(self) -> int | None:
        """How many trials there will be at most, as far as that is known."""
        return int(self.problem.space.size) if self.is_selection else self.totals.n_trials

    @property
    def best(self) -> tuple[Trial, Observation] | None:
        """The best feasible report at any budget, with its trial; None before the first.

        A selection of checkpoints has none: the score of a single cell says little. Nor has a study
        of several metrics: it has a `front`.
        """
        state = self._current()
        if state.best is None or self.is_selection or self.problem.trade_off is not None:
            return None
        _, number, step = state.best
        trial = state.trials[number]
        return trial, next(point for point in trial.curve if point.step == step)

    @property
    def front(self) -> list[tuple[Trial, Observation]]:
        """The feasible reports that no other one dominates, with their trials, by the first metric;
        with one metric the best alone."""
        state = self._current()
        if self.problem.trade_off is None:
            return [] if self.best is None else [self.best]
        return [
            (state.trials[number], point)
            for _, number, step in sorted(state.front)
            for point in state.trials[number].curve
            if point.step == step
        ]

    @property
    def best_at_full_budget(self) -> tuple[Trial, Observation] | None:
        """The best feasible report of a full training, with its trial; None before the first."""
        full = self.problem.full_budget
        ends = [
            (point.loss, trial.id, point)
            for trial in self.trials
            if (point := trial.last) is not None
            and point.loss is not None
            and point.step >= full
            and point.feasible
        ]
        if not ends:
            return None
        _, number, point = min(ends, key=lambda end: end[:2])
        return self.trials[number], point


def _folded(events: Sequence[Event], state: State, folds: Iterable[Fold[Any]]) -> State:
    """Fold ``events`` into ``state``, with ``folds`` that begin as soon as the problem is known."""
    for event in events:
        state.apply(event)
        if isinstance(event, StudyCreated):
            assert state.problem is not None
            for fold in folds:
                state.derive(fold, fold.begin(state.problem))
    return state
