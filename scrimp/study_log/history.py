"""The history of a study: its events, the state computed from them, and derived random generators.

A `History` never changes; `with_events` returns a longer one that shares its data. The newest
version answers in constant time. An older one still gives the same answers, but computes its part of
the log again.

Randomness is derived, never stored: ``rng(purpose)`` depends on the study's seed, the number of
decisions and the purpose. So a decision is a function of the history, and can be replayed.

    history = History.of(store.read())
    longer = history.with_events(news)
"""

import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
import numpy as np

from scrimp.errors import StudyError
from scrimp.json_values import Config, Json, JsonObject
from scrimp.study_log.decision_record import DecisionRecord
from scrimp.study_log.events import Event, SourceAttached, StudyCreated
from scrimp.study_log.fold import Fold, State
from scrimp.study_log.limits import Limits, Totals
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Observation, Trial

S = TypeVar("S")


def _of_state(name: str) -> Any:
    """Return a property that reads this field of the state after the events."""
    read = attrgetter(name)
    return property(lambda history: read(history._current()))


class History:
    """The first ``length`` events of a log, and the state after them."""

    __slots__ = ("_log", "_state", "length")

    def __init__(self, log: list[Event], length: int, state: State) -> None:
        self._log = log
        self._state = state
        self.length = length

    @staticmethod
    def of(events: Iterable[Event]) -> "History":
        """Return the history of these events; the first must be `StudyCreated`."""
        log = list(events)
        if not log or not isinstance(log[0], StudyCreated):
            raise StudyError(
                "the log does not begin with the creation of its study; it is empty or damaged"
            )
        return History([], 0, State()).with_events(log)

    def with_events(self, events: Iterable[Event]) -> "History":
        """Return a longer history; this one does not change."""
        state = self._current()
        log = self._log if len(self._log) == self.length else self._log[: self.length]
        apply, append = state.apply, log.append
        for event in events:
            apply(event)
            append(event)
        return History(log, state.length, state)

    def _current(self) -> State:
        """Return the state at this length; compute it again if a longer history has advanced it."""
        if self._state.length != self.length:
            events = self._log[: self.length]
            self._state = _folded(events, State(self._state.parsed), self._state.derived)
        return self._state

    def derive(self, fold: Fold[S]) -> S:
        """Return the state of ``fold`` at this length. It is shared: do not change it."""
        state = self._current()
        if fold not in state.derived:
            state.derive(fold, self._derived(fold))
        result: S = state.derived[fold]
        return result

    def _derived(self, fold: Fold[S]) -> S:
        """Compute the state of a fold for the first time."""
        events = self._log[: self.length]
        if fold.kinds is None:
            state: S = _folded(events, State(self._state.parsed), [fold]).derived[fold]
            return state
        state = fold.begin(self._state.parse(self.created.problem))
        for event in events:
            if type(event) in fold.kinds:
                fold.step(state, event, None, None)
        return state

    def remember(self, key: object, compute: Callable[[], S]) -> S:
        """Return ``compute()``, which is kept until the history grows; for a small number of keys."""
        remembered = self._current().remembered
        result: S = remembered[key] if key in remembered else compute()
        remembered[key] = result
        return result

    def rng(self, purpose: str) -> np.random.Generator:
        """Return a generator that depends on seed, number of decisions so far, and ``purpose``."""
        purpose_number = zlib.crc32(purpose.encode())
        return np.random.default_rng([self.problem.seed, self.decisions, purpose_number])

    @property
    def events(self) -> Sequence[Event]:
        """The events of the log up to this length."""
        return self._log[: self.length]

    def newest_events(self) -> Iterator[Event]:
        """Yield the events from the newest to the oldest."""
        for place in range(self.length - 1, -1, -1):
            yield self._log[place]

    @property
    def created(self) -> StudyCreated:
        """The first event."""
        created = self._current().created
        assert created is not None
        return created

    @property
    def identity(self) -> str:
        """Letters and digits that no other study has: drawn at creation, or a digest of the first
        event if that has others. Files and folders are named after it."""
        created = self.created
        if re.fullmatch("[A-Za-z0-9]{1,64}", created.identity):
            return created.identity
        return hashlib.sha256(msgspec.json.encode(created, order="deterministic")).hexdigest()[:32]

    @property
    def problem(self) -> Problem:
        """The problem with the current space."""
        problem = self._current().problem
        assert problem is not None
        return problem

    method: JsonObject = _of_state("method")
    """The JSON form of the method."""

    limits: Limits = _of_state("limits")
    """The limits of the study, its halt, and the place of its checkpoints."""

    @property
    def totals(self) -> Totals:
        """The limits on n_trials, budget and time."""
        return self._current().limits.totals

    objective: Mapping[str, Json] | None = _of_state("objective")
    """The record of the objective that workers evaluate; None without one."""

    plugins: tuple[str, ...] = _of_state("plugins")
    """The recorded modules that registered parts of the method."""

    sources: Sequence[SourceAttached] = _of_state("sources")
    """The past studies that this one learns from."""

    trials: Sequence[Trial] = _of_state("trials")
    """All trials, by number. The list is shared: do not change it."""

    def trial(self, number: int) -> Trial:
        """Return the trial with this number; `StudyError` if there is none."""
        trials = self.trials
        if isinstance(number, bool) or not 0 <= number < len(trials):
            raise StudyError(
                f"there is no trial {number}; the study has {len(trials)}, numbered from 0"
            )
        return trials[number]

    def vouched(self, trial: int) -> dict[int, float]:
        """Return the highest step that counts for each attempt of a trial."""
        return dict(self._current().vouched_by_attempt(trial))

    def with_status(self, *statuses: str) -> list[Trial]:
        """Return the trials in these states, in the order in which they entered them."""
        state = self._current()
        # Copied first, because another thread may extend the history meanwhile.
        found: list[Trial] = []
        for status in statuses:
            found += map(state.trials.__getitem__, list(state.by_status[status]))
        return found

    @property
    def interrupted(self) -> list[Trial]:
        """The paused trials whose grant is not used up: they failed right after a resume."""
        state = self._current()
        return list(map(state.trials.__getitem__, list(state.interrupted)))

    @property
    def counts(self) -> dict[str, int]:
        """The number of trials in each state."""
        return {status: len(members) for status, members in self._current().by_status.items()}

    queue: Sequence[Config] = _of_state("queue")
    """Configurations to try before the method decides."""

    advised: bool = _of_state("advised")
    """True once someone gave advice (`scrimp.study_log.advice`)."""

    decisions: int = _of_state("decisions")
    """The number of decisions, which is the number of the next one."""

    recorded: DecisionRecord = _of_state("recorded")
    """The latest value of everything that decisions recorded: fits, weights, reasons."""

    degraded: Sequence[tuple[int, str]] = _of_state("degraded")
    """Decisions that fell back to a simpler model, and why."""

    ignored: Sequence[tuple[int, str]] = _of_state("ignored")
    """Invalid entries of the log, which do not count: position and reason."""

    user_attrs: Mapping[str, Json] = _of_state("user_attrs")
    """The user's attributes of the study."""

    user_note: str = _of_state("user_note")
    """The user's note on the study."""

    spent: float = _of_state("spent")
    """The budget used by all trials."""

    repeated: float = _of_state("repeated")
    """The budget that was trained again for lack of a checkpoint; not part of ``spent``."""

    freed: int = _of_state("freed")
    """Bytes of checkpoints that were removed."""

    time: float = _of_state("time")
    """The time of the newest event."""

    @property
    def is_selection(self) -> bool:
        """True for a checkpoint selection, whose trials are cells of a table of scores."""
        return self.created.kind == "selection"

    @property
    def best(self) -> tuple[Trial, Observation] | None:
        """The best feasible report at any budget, with its trial; None before the first, in a
        checkpoint selection, and in a study of several metrics, which has a `front`."""
        front = [] if self.problem.several else self.front
        return front[0] if front else None

    @property
    def front(self) -> list[tuple[Trial, Observation]]:
        """The feasible reports that no other one dominates, with their trials, sorted by the first
        metric; the best alone with one metric. Empty for a checkpoint selection."""
        if self.is_selection:
            return []
        state = self._current()
        return [
            (state.trials[number], point)
            for _, number, step in sorted(state.front)
            for point in state.trials[number].curve
            if point.step == step
        ]

    @property
    def best_at_full_budget(self) -> tuple[Trial, Observation] | None:
        """The best feasible report at full budget, with its trial; None before the first."""
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
    """Apply ``events`` to ``state``, with ``folds`` that begin when the problem is known."""
    for event in events:
        state.apply(event)
        if isinstance(event, StudyCreated):
            assert state.problem is not None
            for fold in folds:
                state.derive(fold, fold.begin(state.problem))
    return state
