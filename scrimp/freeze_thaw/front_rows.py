"""What the rows of a study (`scrimp.freeze_thaw.curve_rows`) say about each of several metrics, and
how each metric behaves over training.

A metric is one of three kinds, as the rows so far show:

- *falling*: training lowers its loss (an error). A row stands for the lowest loss so far;
- *rising*: training raises it (time or energy so far). A row stands for the loss at its step;
- *constant*: it belongs to the configuration (latency, number of weights): within trials it varies
  by less than a fiftieth of what it varies between them, or not at all while fewer than four trials
  have gone on. The first row of a trial says it all.

Lowest losses are over feasible reports, or over all while none is. *Marked* rows are those of runs
that failed or have no feasible report yet. What a front may gain is a product over metrics, so it
is enough that one model learns them as infinite losses: that of the first metric that is not
constant.

    told = metric_rows(history, rows)
    told.kinds, told.losses                     # one kind per metric; (n, m)
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from scrimp.freeze_thaw.curve_rows import RowList
from scrimp.fronts.dominance import front_ranks
from scrimp.history.events import Event, Retried, StudyChanged
from scrimp.history.fold import Fold
from scrimp.history.history import History
from scrimp.history.problem import Problem
from scrimp.history.trial import Observation, Trial

__all__ = ["Kind", "MetricRows", "by_fronts", "kinds_of", "metric_rows"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Kind = Literal["falling", "rising", "constant"]

STEADY, EQUAL = 0.02, 1e-9
"""A metric that varies within trials by at most this share of what it varies between them is
constant; while few trials have gone on, only what is equal is."""

SEVERAL = 4
"""How many trials have to go on before a little change counts as none: from its first to its second
report an error often falls by a hundredth of what lies between trials."""


@dataclass(frozen=True, eq=False)
class MetricRows:
    """n rows in m metrics: ``losses`` (n, m) as models learn them, NaN where nothing was reported;
    ``marked`` (n,): rows of runs that failed or have nothing feasible; ``kinds`` (m,)."""

    trial: Places
    losses: Array
    marked: NDArray[np.bool_]
    kinds: tuple[Kind, ...]

    @property
    def marking(self) -> int:
        """The metric whose model learns marked rows as infinite losses."""
        return next((j for j, kind in enumerate(self.kinds) if kind != "constant"), 0)

    def of_metric(self, j: int) -> tuple[Places, Array]:
        """Which rows the model of metric j learns from, in order, and their losses."""
        column = self.losses[:, j]
        if j == self.marking:
            column = np.where(self.marked, math.inf, column)
        used = np.flatnonzero(~np.isnan(column))
        if self.kinds[j] == "constant":
            _, first = np.unique(self.trial[used], return_index=True)
            used = used[np.sort(first)]
        return used, column[used]

    def constants(self, j: int) -> dict[int, float]:
        """The loss of each trial in metric j, which is constant."""
        used, losses = self.of_metric(j)
        pairs = zip(self.trial[used].tolist(), losses.tolist(), strict=True)
        return {trial: loss for trial, loss in pairs if math.isfinite(loss)}

    def known(self, count: int) -> Array:
        """The losses (k, m) of those of the first ``count`` rows that are whole and not marked."""
        losses = self.losses[:count]
        return losses[~(self.marked[:count] | np.isnan(losses).any(axis=1))]

    def ranks(self, count: int) -> Array:
        """The front of each of the first ``count`` rows, (count,): 0 is the best; marked ones come
        last."""
        losses = np.where(self.marked[:count, None], math.inf, self.losses[:count])
        return front_ranks(losses).astype(float)


class _Seen:
    """Rows as they were read so far: lowest losses, losses at the row's own step, and those of the
    trial's first report, where that is another one."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Nothing was read."""
        self.lowest: list[list[float]] = []
        self.last: list[list[float]] = []
        self.first: list[list[float]] = []
        self.marked: list[bool] = []


@dataclass(frozen=True)
class _SeenRows(Fold[_Seen]):
    def begin(self, problem: Problem) -> _Seen:
        del problem
        return _Seen()

    def step(self, state: _Seen, event: Event, before: Trial | None, trial: Trial | None) -> None:
        if isinstance(event, Retried) or (
            isinstance(event, StudyChanged) and event.problem is not None
        ):
            state.clear()  # rows may have gone, or count otherwise


def metric_rows(history: History, rows: RowList) -> MetricRows:
    """Of all rows so far; what was read once is kept."""
    seen, problem = history.derive(_SeenRows()), history.problem
    for place in range(len(seen.marked), len(rows.trial)):
        trial = history.trials[rows.trial[place]]
        curve = [point for point in trial.curve if point.step <= rows.step[place]]
        feasible = [point for point in curve if point.feasible and point.loss is not None]
        dead = math.isinf(rows.standing[place])
        table = _table(feasible or curve, problem)
        seen.lowest.append(np.fmin.reduce(table, axis=0).tolist())
        seen.last.append(table[-1].tolist())
        seen.first.append(table[0].tolist() if len(table) > 1 else [math.nan] * table.shape[1])
        seen.marked.append(dead or not feasible)
    trials = np.array(rows.trial, dtype=np.intp)
    shape = (len(trials), len(problem.metrics))
    lowest, last, first = (
        np.array(part, dtype=float).reshape(shape) for part in (seen.lowest, seen.last, seen.first)
    )
    kinds = kinds_of(np.tile(trials, 2), np.vstack([first, last]))
    rising = np.array([kind == "rising" for kind in kinds])
    return MetricRows(
        trials, np.where(rising, last, lowest), np.array(seen.marked, dtype=bool), kinds
    )


def by_fronts(history: History, rows: RowList) -> RowList:
    """The rows for what ranks trials without a model: with several metrics their standings are the
    numbers of their fronts, each row's among those of its level."""
    if history.problem.trade_off is None:
        return rows
    told, level = metric_rows(history, rows), np.array([rows.reached(step) for step in rows.step])
    ranks = np.zeros(len(level))
    for place in np.unique(level):
        here = level == place
        whole = np.where(told.marked[here, None], math.inf, told.losses[here])
        ranks[here] = front_ranks(whole)
    ranks = np.where(told.marked, math.inf, ranks)
    ranked = copy.copy(rows)
    ranked.standing = ranks.tolist()
    ranked.lowest = dict(zip(rows.trial, ranked.standing, strict=True))
    return ranked


def _table(points: Sequence[Observation], problem: Problem) -> Array:
    """Losses (p, m) of reports, not cut off at goals; NaN where one is missing, one row of NaN
    without any."""
    assert problem.trade_off is not None
    pairs = list(zip(problem.trade_off.names, problem.trade_off.signs, strict=True))
    found = [
        [math.nan if (v := point.metrics.get(name)) is None else sign * v for name, sign in pairs]
        for point in points
    ]
    table = np.array(found or [[math.nan] * len(pairs)], dtype=float)
    return np.where(np.isfinite(table), table, math.nan)


def kinds_of(trial: Places, last: Array) -> tuple[Kind, ...]:
    """How each metric behaves, from losses (n, m) of reports of trials (n,), those of one trial in
    order of their steps. Where no trial has two reports yet, a metric counts as falling.

    >>> steps = np.array([[3.0, 10.0, 1.0], [2.0, 10.0, 2.0], [4.0, 50.0, 1.0], [1.0, 50.0, 2.0]])
    >>> kinds_of(np.array([0, 0, 1, 1]), steps)
    ('falling', 'constant', 'rising')
    """
    return tuple(_kind(trial, column) for column in last.T)


def _kind(trial: Places, column: Array) -> Kind:
    known = np.isfinite(column)
    order = np.argsort(trial[known], kind="stable")
    values = column[known][order]
    if not len(values):
        return "falling"
    _, starts, counts = np.unique(trial[known][order], return_index=True, return_counts=True)
    spread = np.maximum.reduceat(values, starts) - np.minimum.reduceat(values, starts)
    several = counts > 1
    if not several.any():
        return "falling"
    firsts, ends = values[starts], values[starts + counts - 1]
    between = float(np.ptp(firsts))
    steady = STEADY if several.sum() >= SEVERAL else EQUAL
    if float(np.max(spread[several])) <= steady * between or not spread.any():
        return "constant"
    return "rising" if float(np.median((ends - firsts)[several])) > 0.0 else "falling"
