"""Advice and the record of each adviser: what a person, a program or a model proposed, what was tried
of it, and what it brought.

    study.advise([{"lr": 3e-4}], by="claude", why="smaller models like small rates")

`scrimp.study.advising` gives a proposal the place of a configuration of the method. An adviser is heard
while one of its last `MAX_MISSES` trials brought progress (`standings.progress`; with several metrics,
a place on the front), and it begins with as many tries. So bad advice costs a few trials and then
nothing. Later it gets another try when the study's own last 20 trials brought no progress either, then
after 40, 80 and so on: then little is lost.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.json_values import Config
from scrimp.study_log.decision_record import FromAdvice
from scrimp.study_log.events import Advised, Decided, Event, TrialAdded
from scrimp.study_log.fold import Fold
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.standings import progress
from scrimp.study_log.trial import Trial

MAX_MISSES = 5
"""Trials in a row without progress after which an adviser is no longer heard; so much may bad advice
cost."""

LONG_DROUGHT = 20
"""The study's own trials without progress after which such an adviser gets another try, and twice as
many for each further one; convention."""

MAX_SHARE_ADVISED = 1 / 3
"""Share of all trials that may come from advisers; convention, that of the one published method."""

MAX_OPEN_PROPOSALS = 100
"""Proposals of one adviser that wait to be tried; older ones are dropped."""

MAX_OPEN_IN_ALL = 1000
"""Proposals of all advisers that wait, so that many names do not make decisions slow."""


@dataclass(frozen=True)
class Proposal:
    """A configuration that an adviser proposes, with its reason and the number of the call."""

    config: Config
    by: str
    why: str
    call: int


class Advice:
    """Proposals by number, as they stand: those ``open``, and the adviser of each trial that one
    proposed (``tried``). ``proposed``: the number of proposals of each adviser; ``count``: of all."""

    def __init__(self) -> None:
        self.open: dict[int, Proposal] = {}
        self.tried: dict[int, str] = {}
        self.proposed: dict[str, int] = {}
        self.count = 0
        self.calls = 0
        self.decided: FromAdvice | None = None

    def add(self, event: Advised) -> None:
        """Add proposals; the oldest of the adviser go, if there are too many."""
        self.calls += 1
        for config in event.configs:
            self.open[self.count] = Proposal(config, event.by, event.why, self.calls)
            self.count += 1
        self.proposed[event.by] = self.proposed.get(event.by, 0) + len(event.configs)
        waiting = [number for number, one in self.open.items() if one.by == event.by]
        for number in [*waiting[:-MAX_OPEN_PROPOSALS], *list(self.open)[:-MAX_OPEN_IN_ALL]]:
            self.open.pop(number, None)


@dataclass(frozen=True)
class AdviceTaken(Fold[Advice]):
    """The fold that keeps `Advice`."""

    kinds = (Advised, Decided, TrialAdded)

    def begin(self, problem: Problem) -> Advice:
        return Advice()

    def step(self, state: Advice, event: Event, before: Trial | None, trial: Trial | None) -> None:
        """Add a proposal, or give the trial of a decision to its adviser; the record comes first."""
        if isinstance(event, Advised):
            state.add(event)
        elif isinstance(event, Decided):
            reason = event.record.reason
            state.decided = reason if isinstance(reason, FromAdvice) else None
        elif isinstance(event, TrialAdded):
            if state.decided is not None:
                state.tried[event.trial] = state.decided.by
                state.open.pop(state.decided.proposal, None)
            state.decided = None


ADVICE = AdviceTaken()


@dataclass(frozen=True)
class AdviserRecord:
    """The record of an adviser: its proposals, those that wait, its trials, those with progress, and
    those since the last with progress (``misses``). ``own_tried`` and ``own_progress``: the same of
    the study's own trials; ``drought``: those since the last progress of anyone."""

    by: str
    proposed: int
    waiting: int
    tried: int
    progress: int
    misses: int
    own_tried: int
    own_progress: int
    drought: int

    @property
    def heard(self) -> bool:
        """True if its next proposal may be tried."""
        more = self.misses - MAX_MISSES
        return more < 0 or self.drought >= LONG_DROUGHT * 2**more


def adviser_records(history: History) -> Sequence[AdviserRecord]:
    """Return the record of every adviser, in the order in which they came."""
    return history.remember("advisers", lambda: _records(history)) if history.advised else ()


def _records(history: History) -> Sequence[AdviserRecord]:
    advice = history.derive(ADVICE)
    brought = _progress(history)
    last = max(np.flatnonzero(brought).tolist(), default=-1)
    own = [
        trial.id
        for trial in history.trials
        if trial.id not in advice.tried and (trial.best is not None or trial.status != "running")
    ]
    own_progress, drought = int(brought[own].sum()), len(own) - bisect_right(own, last)
    waiting = Counter(proposal.by for proposal in advice.open.values())
    tried: dict[str, list[int]] = {by: [] for by in advice.proposed}
    for trial, by in advice.tried.items():
        tried.setdefault(by, []).append(trial)
    records = []
    for by, trials in tried.items():
        hits = np.flatnonzero(brought[trials])
        record = AdviserRecord(
            by=by,
            proposed=advice.proposed.get(by, 0),
            waiting=waiting[by],
            tried=len(trials),
            progress=len(hits),
            misses=len(trials) - (int(hits[-1]) + 1 if len(hits) else 0),
            own_tried=len(own),
            own_progress=own_progress,
            drought=drought,
        )
        records.append(record)
    return records


def _progress(history: History) -> NDArray[np.bool_]:
    """True for the trials that brought progress (n,)."""
    problem, trials = history.problem, history.trials
    if problem.several:
        front = {trial.id for trial, _ in history.front}
        return np.array([trial.id in front for trial in trials], dtype=bool)
    sign = problem.sign
    losses = [np.inf if trial.best is None else sign * trial.best for trial in trials]
    return progress(np.array(losses, dtype=float))
