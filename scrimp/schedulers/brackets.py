"""Synchronous brackets: rungs of fixed size that are filled, compared when all have arrived, and
thinned out.

Brackets are numbered from 0; number n has the shape n mod (number of shapes), and a trial belongs
to the bracket that its tag names. In a rung every slot is held by one trial until it has a result:
its value at the rung's level (the first report at a step of at least that level), its last value if
it ended normally before, or the worst if it failed, was stopped, or is not finite. A stale trial is
still running. When all slots have a result, the best of them move to the next rung; a run that
ended normally moves without running on. Failed slots are not filled again: a rung of which too few
are left is smaller than planned, and a bracket of which none is left ends.

When no further configuration may be added, an unfinished first rung counts as it is, and the same
share of it goes on.

In a *fresh* bracket (differential evolution) no trial moves up: every rung is filled with new
trials, and the best of the rung before are its parents.

    brackets = history.derive(BracketTable(synchronous_sizes(levels)))
    brackets.job()                                    # who is next, and to what budget
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from operator import attrgetter

from scrimp.history.events import Event, StudyChanged
from scrimp.history.fold import Fold
from scrimp.history.problem import Problem
from scrimp.history.standings import standings
from scrimp.history.trial import Observation, Trial

__all__ = ["Bracket", "BracketTable", "Brackets", "Job", "Shape", "report_at"]

Shape = tuple[tuple[int, float], ...]
"""The rungs of a bracket as (size, level)."""


@dataclass(frozen=True)
class Job:
    """Work for a free worker: fill a slot with a new trial (``trial`` is None) or let ``trial`` run
    to ``level``."""

    bracket: int
    rung: int
    slot: int
    level: float
    trial: int | None = None


class Bracket:
    """One bracket: the rung it is at, and who holds its slots. Read it, do not change it."""

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
        """The next thing to do here, if any."""
        for trial in self.waiting:
            return Job(self.number, self.rung, 0, self.level, trial)
        if may_add and len(self.members) < self.size:
            return Job(self.number, self.rung, len(self.members), self.level)
        return None

    def update(self, trial: Trial, added: bool, may_add: bool) -> None:
        """Take the newest view of one of its trials in, and move to the next rung when this one is
        complete."""
        if added or trial.id in self.members:
            self._look_at(trial)
            self.advance(may_add)

    def _look_at(self, trial: Trial) -> None:
        self.members[trial.id] = trial
        self.waiting.pop(trial.id, None)
        self.results.pop(trial.id, None)  # of a failed trial that is tried again
        if _is_settled(trial, self.level):
            failed = trial.status in ("failed", "stopped")
            self.results[trial.id] = None if failed else report_at(trial, self.level)
        elif trial.status == "paused":
            self.waiting[trial.id] = None

    def advance(self, may_add: bool) -> None:
        """Go to the next rung as often as this one is complete."""
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
                self._look_at(members[trial])


class Brackets:
    """The state of a `BracketTable`. Read it, do not change it."""

    def __init__(self, table: "BracketTable") -> None:
        self._table = table
        self._limit: int | None = None
        self._count = 0
        self._newest = -1
        self.running: dict[int, Bracket] = {}

    @property
    def may_add(self) -> bool:
        """Whether another configuration may join the study."""
        return self._limit is None or self._count < self._limit

    def job(self) -> Job | None:
        """What a free worker does: the oldest bracket that has work, else the first slot of a new
        one."""
        for bracket in self.running.values():
            job = bracket.job(self.may_add)
            if job is not None:
                return job
        return (
            Job(self._newest + 1, 0, 0, self._shape(self._newest + 1)[0][1])
            if self.may_add
            else None
        )

    def may_resume(self, trial: Trial) -> bool:
        """Whether a paused trial may go on: it is in a rung that is not decided, of a bracket that
        moves trials up."""
        number = trial.bracket
        bracket = None if number is None else self.running.get(number)
        if bracket is None or trial.id not in bracket.members:
            return False
        return not bracket.fresh or trial.id in bracket.waiting

    def _shape(self, number: int) -> Shape:
        return self._table.shapes[number % len(self._table.shapes)]

    def set_limit(self, limit: int | None) -> None:
        """Take a new limit in."""
        self._limit = limit
        if not self.may_add:
            self.close()

    def update(self, trial: Trial, added: bool) -> None:
        """Take the newest view of a trial in."""
        self._count += added
        number = trial.bracket
        if number is not None:
            bracket = self._bracket(number) if added else self.running.get(number)
            if bracket is not None:
                bracket.update(trial, added, self.may_add)
                self._drop(bracket)
        if added and not self.may_add:
            self.close()

    def _bracket(self, number: int) -> Bracket | None:
        if number > self._newest:
            self._newest = number
            self.running[number] = Bracket(
                number, self._shape(number), number >= self._table.promoting
            )
        return self.running.get(number)

    def close(self) -> None:
        """No further configuration: rungs that would have waited for one are complete."""
        for bracket in list(self.running.values()):
            bracket.advance(False)
            self._drop(bracket)

    def _drop(self, bracket: Bracket) -> None:
        if bracket.over:
            del self.running[bracket.number]


@dataclass(frozen=True)
class BracketTable(Fold[Brackets]):
    """How to keep `Brackets`: their ``shapes`` in turn; from number ``promoting`` on they are
    fresh."""

    shapes: tuple[Shape, ...]
    promoting: float = math.inf

    def begin(self, problem: Problem) -> Brackets:
        """No bracket yet."""
        del problem
        return Brackets(self)

    def step(
        self, state: Brackets, event: Event, before: Trial | None, trial: Trial | None
    ) -> None:
        """Take one event in."""
        if trial is not None and trial is not before:
            state.update(trial, added=before is None)
        elif isinstance(event, StudyChanged):
            if event.totals is not None and event.totals.n_trials is not None:
                state.set_limit(event.totals.n_trials)
            elif "n_trials" in event.lifted:
                state.set_limit(None)


def report_at(trial: Trial, level: float) -> Observation | None:
    """The first report at a step of at least ``level``, else the last report."""
    if not trial.curve:
        return None
    place = bisect_left(trial.curve, level, key=attrgetter("step"))
    return trial.curve[min(place, len(trial.curve) - 1)]


def _is_settled(trial: Trial, level: float) -> bool:
    """Whether it is known what the trial is worth at ``level``: it got there, or never will."""
    return trial.finished or trial.budget >= level
