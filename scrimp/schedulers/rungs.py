"""Rungs: the budgets at which trials are compared, and the losses at each.

*Arithmetic.* The rungs r_0 < ... < r_{J-1} lie below the full budget r_J; together they are the
*levels*. Successive halving promotes the share r_j / r_{j+1} of the trials at rung j, so that every
level costs about the same. A *bracket* s skips the s lowest levels: Hyperband mixes brackets, because
early comparisons may mislead.

    levels = geometric_levels(1, 200)                 # (1, 3, 9, 27, 81, 200)
    promotion_quantiles(levels)                       # (1/3, 1/3, 1/3, 1/3, 0.405)
    bracket_law(levels, 4)                            # (0.609, 0.244, 0.102, 0.045)

*Losses.* The value of a trial at a rung is its first report at a step of at least the rung's level;
one report may pass several rungs. A run that ended normally before a rung counts there with its last
value. A failed trial does not count, unless it is retried. A value that is not finite counts as the
worst, and is never promoted; one that violates a constraint counts behind all feasible ones. With
several metrics a loss is a rank among all trials at the rung (`standings`).

    rungs = history.derive(RungTable(levels, promotion_quantiles(levels)))
    rungs.promotable()                                # (trial, index of its next level), or None

Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", 2016.
Li et al., "Hyperband", 2018. Li et al., "A system for massively parallel hyperparameter tuning", 2020.
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from msgspec.structs import replace

from scrimp.study_log.events import Ended, Event, Reported, Retried
from scrimp.study_log.fold import Fold
from scrimp.study_log.problem import Budget, Problem
from scrimp.study_log.standings import standings
from scrimp.study_log.trial import Observation, Trial

Levels = tuple[float, ...]
"""Budgets in increasing order; the last is the full budget, all others are rungs."""


def geometric_levels(minimum: float, maximum: float, reduction: float = 3) -> Levels:
    """Return r_j = minimum * reduction^j while below ``maximum``, then ``maximum``; rounded if the
    minimum is a whole number.

    >>> geometric_levels(1, 200)
    (1.0, 3.0, 9.0, 27.0, 81.0, 200.0)
    """
    whole = float(minimum).is_integer()
    levels: list[float] = []
    level = float(minimum)
    while level < maximum:
        rung = float(round(level)) if whole else level
        if rung < maximum and (not levels or rung > levels[-1]):
            levels.append(rung)
        level *= reduction
    return (*levels, float(maximum))


def linear_levels(minimum: float, maximum: float, increment: float) -> Levels:
    """Return minimum, minimum + increment, ... while below ``maximum``, then ``maximum``.

    >>> linear_levels(1, 8, 3)
    (1.0, 4.0, 7.0, 8.0)
    """
    count = max(math.ceil((maximum - minimum) / increment - 1e-9), 0)
    return (*(float(minimum + j * increment) for j in range(count)), float(maximum))


def halving_levels(
    budget: Budget | None, reduction: float = 3, increment: float | None = None
) -> Levels:
    """Return the levels of a problem, linear with an ``increment``; a single one without budgets."""
    if budget is None:
        return (1.0,)
    if increment is not None:
        return linear_levels(budget.minimum, budget.maximum, increment)
    return geometric_levels(budget.minimum, budget.maximum, reduction)


def promotion_quantiles(levels: Levels) -> tuple[float, ...]:
    """Return q_j = r_j / r_{j+1}, the share of the trials at each rung that is promoted."""
    return tuple(low / high for low, high in pairwise(levels))


def cutoff(ordered: Sequence[float], quantile: float) -> float:
    """Return the ``quantile`` of values in increasing order, interpolated linearly, as `numpy.quantile`
    does, without sorting.

    Infinite values count as the worst; an interpolation towards one is infinite.

    >>> cutoff([1.0, 2.0, 4.0], 0.75)
    3.0
    """
    place = quantile * (len(ordered) - 1)
    low = math.floor(place)
    share = place - low
    if share == 0.0 or ordered[low] == ordered[low + 1]:
        return ordered[low]
    below, above = ordered[low], ordered[low + 1]
    return below + (above - below) * share if share < 0.5 else above - (above - below) * (1 - share)


def bracket_law(levels: Levels, brackets: int) -> tuple[float, ...]:
    """Return the probability of each bracket: P(s) proportional to S / ((S - s) r_s), with S the number
    of levels.

    Every bracket spends about the same: bracket s has S - s levels and starts its trials at r_s.

    >>> [round(p, 3) for p in bracket_law((1, 3, 9, 27, 81, 200), 6)]
    [0.586, 0.234, 0.098, 0.043, 0.022, 0.018]
    """
    count = min(brackets, len(levels))
    weights = [len(levels) / ((len(levels) - s) * levels[s]) for s in range(count)]
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def draw_bracket(law: Sequence[float], uniform: float) -> int:
    """Return the bracket of a uniform number in [0, 1) under the probabilities ``law``."""
    return min(bisect_right(list(accumulate(law)), uniform), len(law) - 1)


def synchronous_sizes(
    levels: Levels, reduction: float = 3, rounding: str = "up"
) -> tuple[tuple[tuple[int, float], ...], ...]:
    """Return the rungs of each bracket b of synchronous Hyperband as (size, level), from level b on.

    With s = S - 1 the rung k of bracket b has ceil((s + 1) / (s - b + 1) * reduction^(s - b - k))
    slots. Rounded ``down``, that holds for the first rung only, and rung k has floor(n_0 /
    reduction^k), as Hyperband is published.

    >>> synchronous_sizes((1, 3, 9))
    (((9, 1), (3, 3), (1, 9)), ((5, 3), (2, 9)), ((3, 9),))
    >>> synchronous_sizes((1, 3, 9), rounding="down")
    (((9, 1), (3, 3), (1, 9)), ((5, 3), (1, 9)), ((3, 9),))
    """
    top = len(levels) - 1

    def size(bracket: int, rung: int) -> int:
        first = (top + 1) * reduction ** (top - bracket) / (top - bracket + 1)
        if rounding == "down":
            return max(math.floor(math.ceil(first - 1e-9) / reduction**rung + 1e-9), 1)
        return math.ceil(first / reduction**rung - 1e-9)

    brackets = range(top + 1)
    return tuple(tuple((size(b, k), levels[b + k]) for k in range(top - b + 1)) for b in brackets)


@dataclass(eq=False, slots=True)
class Rung:
    """One rung: all losses in increasing order, and the paused trials among them as (-loss,
    -trial), best last. ``points``: with several metrics, the observations of all trials here."""

    level: float
    quantile: float
    rule: str = "quantile"
    fewest: int = 0
    losses: list[float] = field(default_factory=list)
    waiting: list[tuple[float, int]] = field(default_factory=list)
    points: dict[int, Observation] = field(default_factory=dict)

    def passes(self, loss: float, least: int) -> bool | None:
        """True if ``loss`` is within the cutoff; None with fewer than ``least`` trials."""
        if loss == math.inf:
            return False
        if len(self.losses) < max(least, self.fewest):
            return None
        if self.rule == "quantile":
            return loss <= cutoff(self.losses, self.quantile)
        best = math.floor(len(self.losses) * self.quantile + 1e-9)
        if self.rule == "delayed" and len(self.losses) - len(self.waiting) + 1 > best:
            # The share has been promoted already.
            return False
        return best > 0 and loss <= self.losses[best - 1]


class Rungs:
    """The state of a `RungTable`. Callers must not change it."""

    def __init__(self, table: "RungTable", several: bool = False) -> None:
        self.table = table
        self.several = several
        fewest = table.fewest or (0,) * len(table.quantiles)
        pairs = zip(table.levels, table.quantiles, fewest, strict=False)
        self.rungs = [Rung(level, quantile, table.rule, few) for level, quantile, few in pairs]
        self.among_ended = table.among == "ended"
        # Trials whose losses others are compared with, if only ended ones count.
        self._counted: set[int] = set()
        self._entries: dict[int, list[float]] = {}
        self._waiting: dict[int, tuple[Rung, tuple[float, int]]] = {}
        self._lowest: dict[int, int] = {}
        self._stopped: set[int] = set()

    def promotable(self) -> tuple[int, int] | None:
        """Return the paused trial to promote, the best of the highest rung that has one, and the index
        of its next level; None without one."""
        for index in range(len(self.rungs) - 1, -1, -1):
            rung = self.rungs[index]
            if rung.waiting:
                loss, trial = rung.waiting[-1]
                if rung.passes(-loss, self.table.least):
                    return -trial, index + 1
        return None

    def stops(self, trial: int) -> bool:
        """True if the trial was beyond the cutoff when it reached its latest rung."""
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
        best = self.table.compare == "best" and not self.several
        judged = min(point.standing for point in trial.curve) if best else loss
        if self.rungs[index - 1].passes(judged, self.table.least) is False:
            self._stopped.add(trial.id)

    def settle(self, trial: Trial) -> None:
        """Put the trial into the waiting list of its highest rung if it is paused, else remove it."""
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
        """Count this ended trial from now on, if only ended trials count."""
        if self.among_ended and trial.id not in self._counted:
            self._counted.add(trial.id)
            for rung, loss in self._places(trial, self._entries.get(trial.id, [])):
                insort(rung.losses, loss)

    def forget(self, trial: Trial) -> None:
        """Remove a failed trial from every rung."""
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
        """Return what is ranked with several metrics: the latest report, or the mean of all."""
        last = trial.curve[-1]
        known = [point.counted for point in trial.curve if point.feasible and point.counted]
        if not self.table.average or not known:
            return last
        alike = [losses for losses in known if len(losses) == len(known[-1])]
        means = tuple(sum(column) / len(alike) for column in zip(*alike, strict=True))
        return replace(last, counted=means)

    def _loss(self, trial: Trial) -> float:
        if not self.table.average:
            return trial.curve[-1].standing
        known = [point.standing for point in trial.curve if point.feasible or point.loss is None]
        standings = known or [point.standing for point in trial.curve]
        return sum(standings) / len(standings)


@dataclass(frozen=True)
class RungTable(Fold[Rungs]):
    """The fold behind `Rungs`: ``quantiles[j]`` of the trials at ``levels[j]`` are promoted, once
    ``least`` can be compared.

    With ``average`` a trial's value is the mean of its feasible reports so far (of all, without
    any) instead of the latest. ``rule``: within the ``quantile``; among the ``top``, the best
    floor(share * number); or ``delayed``: among those, while fewer than that were promoted.
    ``compare``: a trial's ``value`` or its ``best`` report is compared with the others. ``fewest``:
    trials needed at each rung before any of them is promoted. ``bracket``: the only bracket that
    counts; None for all. ``among``: trials are compared with ``all`` so far, or with those that
    have ``ended``, by themselves or stopped.
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
        return Rungs(self, problem.several)

    def step(self, state: Rungs, event: Event, before: Trial | None, trial: Trial | None) -> None:
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
    """Return the lowest rung at which the trial is compared: the number of its bracket."""
    return trial.bracket or 0
