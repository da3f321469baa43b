"""Synchronous successive halving and Hyperband, in which workers never wait.

A rung has a fixed size and is compared when all of its slots have a result; the best continue with
three times the budget. While a bracket waits for its last results, free workers fill the next one.
Hyperband runs brackets that start at higher and higher levels; successive halving repeats the first.

    SynchronousHalving()                              # successive halving
    SynchronousHalving(brackets=None)                 # Hyperband: one bracket per level

*Brackets* are numbered from 0; number n has the shape n mod (number of shapes), and tags its trials
with its number. A slot belongs to one trial until it has a result: the value at the rung's level (the
first report at a step of at least that level), the last value of a run that ended normally before, or
the worst for one that failed, was stopped or is not finite. A stale trial is still running. Failed
slots are not filled again: a rung may be smaller than planned, and a bracket without trials ends. When
no further configuration may be added, an unfinished first rung counts as it is, and the same share of
it is promoted.

In a *fresh* bracket (differential evolution) no trial moves up: every rung is filled with new trials,
and the best of the rung before are their parents.

Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", 2016.
Li et al., "Hyperband: a novel bandit-based approach", 2018.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from scrimp.plugins.settings import (
    SEVERAL_OR_NONE,
    AnyOf,
    ValueRule,
    above,
    at_least,
    check_settings,
    choices,
    setting,
)
from scrimp.schedulers.rungs import Levels, halving_levels, synchronous_sizes
from scrimp.schedulers.scheduler import (
    NONE_LEFT,
    Request,
    Resume,
    Sample,
    Scheduler,
    wait_or_finish,
)
from scrimp.study_log.decision_record import InBracket
from scrimp.study_log.events import Event, StudyChanged
from scrimp.study_log.fold import Fold
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.standings import standings
from scrimp.study_log.trial import Observation, Trial

Shape = tuple[tuple[int, float], ...]
"""The rungs of a bracket as (size, level)."""


@dataclass(frozen=True)
class Job:
    """Work for a free worker: a new trial (``trial`` is None), or ``trial`` up to ``level``."""

    bracket: int
    rung: int
    slot: int
    level: float
    trial: int | None = None


class Bracket:
    """One bracket: its current rung, and the trials in its slots. Callers must not change it."""

    def __init__(self, number: int, shape: Shape, fresh: bool) -> None:
        self.number = number
        self.shape = shape
        self.fresh = fresh
        self.rung = 0
        self.size, self.level = shape[0]
        self.members: dict[int, Trial] = {}
        self.results: dict[int, Observation | None] = {}
        self.waiting: dict[int, None] = {}
        self.leaders: list[int] = []
        self.over = False

    def job(self, may_add: bool) -> Job | None:
        """Return the next job of this bracket, if any."""
        for trial in self.waiting:
            return Job(self.number, self.rung, 0, self.level, trial)
        if may_add and len(self.members) < self.size:
            return Job(self.number, self.rung, len(self.members), self.level)
        return None

    def look_at(self, trial: Trial) -> None:
        """Note the trial in its slot, with its result once it got to the level, or never will."""
        self.members[trial.id] = trial
        self.waiting.pop(trial.id, None)
        # A failed trial that is retried has a result.
        self.results.pop(trial.id, None)
        if trial.finished or trial.budget >= self.level:
            failed = trial.status in ("failed", "stopped")
            self.results[trial.id] = None if failed else report_at(trial, self.level)
        elif trial.status == "paused":
            self.waiting[trial.id] = None

    def advance(self, may_add: bool) -> None:
        """Move to the next rung as long as the current one is complete."""
        while not self.over and len(self.results) == len(self.members):
            if len(self.members) < self.size and (may_add or not self.members):
                return
            self._next_rung()

    def _next_rung(self) -> None:
        points = {trial: point for trial, point in self.results.items() if point is not None}
        places = zip(standings(list(points.values())), points, strict=True)
        ranked = sorted((place, trial) for place, trial in places if place < math.inf)
        if self.rung + 1 == len(self.shape) or not ranked:
            self.over = True
            return
        members = self.members
        planned = self.shape[self.rung][0]
        self.rung += 1
        self.size, self.level = self.shape[self.rung]
        count = math.ceil(len(members) * self.size / planned - 1e-9)
        self.leaders = [trial for _, trial in ranked[:count]]
        self.members, self.results = {}, {}
        if not self.fresh:
            self.size = len(self.leaders)
            for trial in self.leaders:
                self.look_at(members[trial])


class Brackets:
    """The state of a `BracketTable`. Callers must not change it."""

    def __init__(self, table: "BracketTable") -> None:
        self._table = table
        self._limit: int | None = None
        self._count = 0
        self._newest = -1
        self.running: dict[int, Bracket] = {}

    @property
    def may_add(self) -> bool:
        """True if another configuration may be added to the study."""
        return self._limit is None or self._count < self._limit

    def job(self) -> Job | None:
        """Return the job of a free worker: in the oldest bracket that has one, else in a new one."""
        for bracket in self.running.values():
            job = bracket.job(self.may_add)
            if job is not None:
                return job
        number = self._newest + 1
        return Job(number, 0, 0, self._shape(number)[0][1]) if self.may_add else None

    def may_resume(self, trial: Trial) -> bool:
        """True if a paused trial may resume: its rung is undecided, its bracket promotes."""
        number = trial.bracket
        bracket = None if number is None else self.running.get(number)
        if bracket is None or trial.id not in bracket.members:
            return False
        return not bracket.fresh or trial.id in bracket.waiting

    def _shape(self, number: int) -> Shape:
        return self._table.shapes[number % len(self._table.shapes)]

    def set_limit(self, limit: int | None) -> None:
        """Set a new limit of configurations."""
        self._limit = limit
        if not self.may_add:
            self.close()

    def update(self, trial: Trial, added: bool) -> None:
        """Process a changed trial."""
        self._count += added
        number = trial.bracket
        if added and number is not None and number > self._newest:
            self._newest = number
            fresh = number >= self._table.promoting
            self.running[number] = Bracket(number, self._shape(number), fresh)
        bracket = None if number is None else self.running.get(number)
        if bracket is not None and (added or trial.id in bracket.members):
            bracket.look_at(trial)
            self._advance(bracket, self.may_add)
        if added and not self.may_add:
            self.close()

    def close(self) -> None:
        """Complete the rungs that would have waited for further configurations."""
        for bracket in list(self.running.values()):
            self._advance(bracket, False)

    def _advance(self, bracket: Bracket, may_add: bool) -> None:
        bracket.advance(may_add)
        if bracket.over:
            del self.running[bracket.number]


@dataclass(frozen=True)
class BracketTable(Fold[Brackets]):
    """The fold behind `Brackets`, with ``shapes`` in turn; fresh from number ``promoting`` on."""

    shapes: tuple[Shape, ...]
    promoting: float = math.inf

    def begin(self, problem: Problem) -> Brackets:
        return Brackets(self)

    def step(
        self, state: Brackets, event: Event, before: Trial | None, trial: Trial | None
    ) -> None:
        if trial is not None and trial is not before:
            state.update(trial, added=before is None)
        elif isinstance(event, StudyChanged):
            if event.totals is not None and event.totals.n_trials is not None:
                state.set_limit(event.totals.n_trials)
            elif "n_trials" in event.lifted:
                state.set_limit(None)


def report_at(trial: Trial, level: float) -> Observation | None:
    """Return the first report at a step of at least ``level``, else the last report."""
    if not trial.curve:
        return None
    place = bisect_left(trial.curve, level, key=attrgetter("step"))
    return trial.curve[min(place, len(trial.curve) - 1)]


NOT_WHOLE = ValueRule("that is no whole number", lambda value: not float(value).is_integer())
"""Factors between rungs whose powers are rounded even in the first bracket."""


@dataclass(frozen=True)
class SynchronousHalving(Scheduler):
    """``brackets`` brackets in turn (None: one per level); one trial in ``reduction`` is promoted.
    ``rounding`` of the sizes of rungs: up, or down as Hyperband is published."""

    brackets: int | None = setting(1, at_least(1), "none is one per level")
    reduction: float = setting(3, above(1), "3 lets one trial in three continue")
    rounding: str = setting(
        "up",
        choices("up", "down"),
        paper=True,
        only_with=AnyOf((("brackets", SEVERAL_OR_NONE), ("reduction", NOT_WHOLE))),
    )

    def __post_init__(self) -> None:
        check_settings(self)

    def levels(self, problem: Problem) -> Levels:
        return halving_levels(problem.budget, self.reduction)

    def shapes(self, problem: Problem) -> tuple[Shape, ...]:
        """Return the rungs of each bracket as (size, level)."""
        sizes = synchronous_sizes(self.levels(problem), self.reduction, self.rounding)
        return sizes[: self.brackets]

    def next_request(self, history: History, rng: np.random.Generator) -> Request:
        shapes = self.shapes(history.problem)
        job = history.derive(BracketTable(shapes)).job()
        if job is None:
            return wait_or_finish(history, NONE_LEFT)
        reason = InBracket(job.bracket, job.level)
        if job.trial is not None:
            return Resume(job.trial, job.level, reason)
        return Sample(job.level, job.bracket % len(shapes), {"bracket": job.bracket}, reason)

    def may_resume(self, history: History, trial: int) -> bool:
        """True as long as the rung of the trial is not decided."""
        brackets = history.derive(BracketTable(self.shapes(history.problem)))
        return brackets.may_resume(history.trials[trial])
