"""Who stands where: the losses at every rung, kept in order as events arrive.

What a trial's value at a rung is: the first report at a step of at least the rung's level. Reports
may skip steps, so one report may pass several rungs and counts at each; a report that arrives late
for a lower step changes nothing. A run that ended normally before a rung counts there, and at every
higher one, with its last value. A failed trial counts nowhere, unless it is tried again. A value
that is not finite counts as the worst, and never goes on; one that violates a constraint counts
behind all that do not, by the size of the violation. A trial of bracket s is not compared at the s
lowest rungs.

Each event costs one insertion into a sorted list; cutoffs and promotions look at its ends only,
never at all entries. With several metrics a loss is a place among all that came to the rung
(`standings`), and every arrival gives those places anew.

    rungs = history.derive(RungTable(levels, promotion_quantiles(levels)))
    # (trial, index of the level it goes on to), or None
    rungs.promotable()
"""

import math
from bisect import bisect_left, insort
from dataclasses import dataclass

from msgspec.structs import replace

from scrimp.history.events import Ended, Event, Reported, Retried
from scrimp.history.fold import Fold
from scrimp.history.problem import Problem
from scrimp.history.standings import standings
from scrimp.history.trial import Observation, Trial
from scrimp.schedulers.rungs import Levels, cutoff

__all__ = ["Rung", "RungTable", "Rungs"]


class Rung:
    """One rung: all losses in increasing order, and the paused trials among them as (-loss,
    -trial), best last."""

    __slots__ = ("fewest", "level", "losses", "points", "quantile", "rule", "waiting")

    def __init__(
        self, level: float, quantile: float, rule: str = "quantile", fewest: int = 0
    ) -> None:
        self.level = level
        self.quantile = quantile
        self.rule = rule
        self.fewest = fewest
        self.losses: list[float] = []
        self.waiting: list[tuple[float, int]] = []
        self.points: dict[int, Observation] = {}  # with several metrics, of all that came

    def passes(self, loss: float, least: int) -> bool | None:
        """Whether ``loss`` is within the cutoff; None while fewer than ``least`` trials can be
        compared."""
        if loss == math.inf:
            return False
        if len(self.losses) < max(least, self.fewest):
            return None
        if self.rule == "quantile":
            return loss <= cutoff(self.losses, self.quantile)
        best = math.floor(len(self.losses) * self.quantile + 1e-9)
        if self.rule == "delayed" and len(self.losses) - len(self.waiting) + 1 > best:
            return False  # as many as may have gone on already
        return best > 0 and loss <= self.losses[best - 1]


class Rungs:
    """The state of a `RungTable`. Read it, do not change it."""

    def __init__(self, table: "RungTable", several: bool = False) -> None:
        self.least = table.least
        self.average = table.average
        self.several = several
        fewest = table.fewest or (0,) * len(table.quantiles)
        pairs = zip(table.levels, table.quantiles, fewest, strict=False)
        self.rungs = [Rung(level, quantile, table.rule, few) for level, quantile, few in pairs]
        self.compare = table.compare
        self.among_ended = table.among == "ended"
        self._counted: set[int] = set()  # those whose losses others are compared with
        self._entries: dict[int, list[float]] = {}
        self._waiting: dict[int, tuple[Rung, tuple[float, int]]] = {}
        self._lowest: dict[int, int] = {}
        self._stopped: set[int] = set()

    def promotable(self) -> tuple[int, int] | None:
        """The paused trial that may go on, best of the highest rung that has one, and the index of
        its next level."""
        for index in range(len(self.rungs) - 1, -1, -1):
            rung = self.rungs[index]
            if rung.waiting:
                loss, trial = rung.waiting[-1]
                if rung.passes(-loss, self.least):
                    return -trial, index + 1
        return None

    def stops(self, trial: int) -> bool:
        """Whether the trial was beyond the cutoff when it reached its newest rung."""
        return trial in self._stopped

    def enter(self, trial: Trial, reached: float) -> None:
        """Note the trial's newest loss at every rung up to ``reached`` where it has none yet."""
        entries = self._entries.setdefault(trial.id, [])
        self._lowest[trial.id] = _first_rung(trial)
        index = _first_rung(trial) + len(entries)
        if index >= len(self.rungs) or self.rungs[index].level > reached:
            return
        loss = math.nan if self.several else self._loss(trial)
        counts = not self.among_ended or trial.id in self._counted
        while index < len(self.rungs) and self.rungs[index].level <= reached:
            entries.append(loss)
            if self.several:
                self.rungs[index].points[trial.id] = self._point(trial)
                self._rank(index)
            elif counts:
                insort(self.rungs[index].losses, loss)
            index += 1
        loss = entries[-1]
        best = self.compare == "best" and not self.several
        judged = min(point.standing for point in trial.curve) if best else loss
        if self.rungs[index - 1].passes(judged, self.least) is False:
            self._stopped.add(trial.id)

    def settle(self, trial: Trial) -> None:
        """Let the trial wait at its highest rung while it is paused, and only then."""
        held = self._waiting.pop(trial.id, None)
        if held is not None:
            rung, key = held
            del rung.waiting[bisect_left(rung.waiting, key)]
        entries = self._entries.get(trial.id)
        if entries and trial.status == "paused":
            rung, key = self.rungs[_first_rung(trial) + len(entries) - 1], (-entries[-1], -trial.id)
            insort(rung.waiting, key)
            self._waiting[trial.id] = rung, key

    def count(self, trial: Trial) -> None:
        """Where only ended trials count: let this one count from now on."""
        if self.among_ended and trial.id not in self._counted:
            self._counted.add(trial.id)
            for rung, loss in self._places(trial, self._entries.get(trial.id, [])):
                insort(rung.losses, loss)

    def forget(self, trial: Trial) -> None:
        """Take a failed trial out of every rung."""
        entries = self._entries.pop(trial.id, [])
        if not self.among_ended or trial.id in self._counted:
            self._counted.discard(trial.id)
            for rung, loss in self._places(trial, entries):
                del rung.losses[bisect_left(rung.losses, loss)]
        if self.several:
            for index, rung in enumerate(self.rungs):
                if rung.points.pop(trial.id, None) is not None:
                    self._rank(index)

    def _rank(self, index: int) -> None:
        """Give every trial at a rung its place anew."""
        rung = self.rungs[index]
        places = dict(zip(rung.points, standings(list(rung.points.values())), strict=True))
        for trial, place in places.items():
            self._entries[trial][index - self._lowest[trial]] = place
        held = places.keys() & self._counted if self.among_ended else places.keys()
        rung.losses = sorted(places[trial] for trial in held)
        rung.waiting = []
        for trial, (own, _) in list(self._waiting.items()):
            if own is rung:
                key = -places[trial], -trial
                insort(rung.waiting, key)
                self._waiting[trial] = rung, key

    def _places(self, trial: Trial, entries: list[float]) -> list[tuple[Rung, float]]:
        return list(zip(self.rungs[_first_rung(trial) :], entries, strict=False))

    def _point(self, trial: Trial) -> Observation:
        """What of a trial is ranked where there are several metrics: its newest report, or the mean
        of its reports in every metric."""
        last = trial.curve[-1]
        known = [point.losses for point in trial.curve if point.feasible and point.losses]
        if not self.average or not known:
            return last
        alike = [losses for losses in known if len(losses) == len(known[-1])]
        means = tuple(sum(column) / len(alike) for column in zip(*alike, strict=True))
        return replace(last, losses=means)

    def _loss(self, trial: Trial) -> float:
        if not self.average:
            return trial.curve[-1].standing
        known = [point.standing for point in trial.curve if point.feasible or point.loss is None]
        standings = known or [point.standing for point in trial.curve]
        return sum(standings) / len(standings)


@dataclass(frozen=True)
class RungTable(Fold[Rungs]):
    """How to keep `Rungs`: ``quantiles[j]`` of the trials at ``levels[j]`` go on, once ``least``
    can be compared.

    With ``average`` a trial's value is the mean of its feasible reports so far (of all, without
    any) instead of the newest. ``rule``: within the ``quantile``; among the ``top``, the best
    floor(share * number); or ``delayed``: among those, while fewer than that have gone on.
    ``compare``: what of a trial is held against the others, its ``value`` or its ``best`` report.
    ``fewest``: trials that each rung must hold before any of them goes on. ``bracket``: the only
    one whose trials stand here; None for all. ``among``: trials are compared with ``all`` that came
    so far, or with those that have ``ended``, by themselves or stopped.
    """

    levels: Levels
    quantiles: tuple[float, ...]
    least: int = 2
    average: bool = False
    rule: str = "quantile"
    compare: str = "value"
    fewest: tuple[int, ...] = ()
    bracket: int | None = None
    among: str = "all"

    def begin(self, problem: Problem) -> Rungs:
        """No trial at any rung."""
        return Rungs(self, problem.trade_off is not None)

    def step(self, state: Rungs, event: Event, before: Trial | None, trial: Trial | None) -> None:
        """Take one event in."""
        if before is None or trial is None or trial is before:
            return
        if self.bracket is not None and _first_rung(trial) != self.bracket:
            return
        if trial.status == "failed":
            state.forget(trial)
        elif isinstance(event, Retried):
            for place, point in enumerate(trial.curve, start=1):
                state.enter(replace(trial, curve=trial.curve[:place]), point.step)
        elif isinstance(event, Reported) and trial.budget > before.budget:
            state.enter(trial, trial.budget)
        elif isinstance(event, Ended) and trial.status == "completed" and trial.curve:
            state.enter(trial, math.inf)
        if trial.status in ("completed", "stopped"):
            state.count(trial)
        state.settle(trial)


def _first_rung(trial: Trial) -> int:
    """The lowest rung at which the trial is compared: the number of its bracket."""
    return trial.bracket or 0
