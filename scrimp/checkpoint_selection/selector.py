"""The next cells to measure and the checkpoint to take, as pure functions of the scores so far.

    selector = Selector(find_method("kg"), seed=0)
    decision = selector.decide(table, pending=[], rng=rng)         # cells, and a fit to record
    decision = selector.decide(later, [], rng, memory=decision.fit)
    selector.recommend(later).checkpoint

Hyperparameters are refitted when the number of cells has grown by a quarter since the recorded fit.
``memory``, the fit of an earlier decision, makes a decision reproducible from a log; without it the
model is fitted from its prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from scrimp.checkpoint_selection.methods import (
    METHODS,
    SelectionMethod,
    find_method,
    positions,
    run_order,
)
from scrimp.checkpoint_selection.recommendation import (
    Answer,
    Recommendation,
    recommend_measured,
    recommend_modelled,
)
from scrimp.checkpoint_selection.row_means import RowMeans
from scrimp.checkpoint_selection.score_table import Cell, Mask, ScoreTable
from scrimp.checkpoint_selection.selection_numbers import NUMBERS
from scrimp.checkpoint_selection.task_grid import FittedTaskGrid, GridData, TaskGrid
from scrimp.checkpoint_selection.task_grid_algebra import Index
from scrimp.study_log.decision_record import BestCell, FirstCell, Fit
from scrimp.surrogates.surrogate import value_at


@dataclass(frozen=True)
class CellDecision:
    """Cells (row, column) to measure, most useful first, with a reason each; empty if there is
    nothing left to ask. ``fit`` is where the next decision starts."""

    cells: tuple[Cell, ...]
    reasons: tuple[FirstCell | BestCell, ...] = ()
    fit: Fit | None = None


@dataclass(frozen=True)
class Selector:
    """The settings of a selection; it holds no scores.

    ``planned``: the total number of cells, which stride needs; ``stderr``: count the given standard
    errors; ``answer``: the mean to maximise, see `Recommendation`.
    """

    method: SelectionMethod = METHODS["kg"]
    seed: int = 0
    planned: int | None = None
    stderr: bool = True
    refit: float = NUMBERS.refit_growth
    tolerance: float = 0.002
    answer: Answer = "measured"

    def decide(
        self,
        table: ScoreTable,
        pending: Sequence[Cell],
        rng: np.random.Generator,
        count: int = 1,
        memory: Fit | None = None,
    ) -> CellDecision:
        """Return the next ``count`` cells, given the scores and the cells under evaluation."""
        order = self._tie_order(table)
        rows = np.argsort(order)
        shuffled = [(int(rows[row]), column) for row, column in pending]
        decision = self._decide(_reordered(table, order), shuffled, rng, count, memory)
        cells = tuple((int(order[row]), column) for row, column in decision.cells)
        return replace(decision, cells=cells)

    def _decide(
        self,
        table: ScoreTable,
        pending: Sequence[Cell],
        rng: np.random.Generator,
        count: int,
        memory: Fit | None,
    ) -> CellDecision:
        busy = list(pending)
        reasons: list[FirstCell | BestCell] = []
        means: RowMeans | None = None
        total = len(pending) + count
        while len(busy) < total and self.has_more(table, busy):
            known = table.seen | _mask(table, busy)
            candidates = ~(known | table.closed)
            cell = self._planned(table, known, candidates)
            if cell is not None:
                reasons.append(FirstCell())
            else:
                if means is None and not self.method.blind:
                    fitted = self.fit(table, memory, self.refit)
                    memory = Fit(value_at(fitted.state, "cells", int), dict(fitted.state))
                    means = RowMeans.of(table, fitted)
                    for each in busy:
                        means = means.with_cell(each)
                cell, why = self._chosen(means, known, table.opened(known), candidates, rng)
                reasons.append(why)
            busy.append(cell)
            if means is not None and len(busy) < total:
                means = means.with_cell(cell)
        return CellDecision(tuple(busy[len(pending) :]), tuple(reasons), memory)

    def has_more(self, table: ScoreTable, pending: Sequence[Cell]) -> bool:
        """True if there is a cell to measure next; does not choose it."""
        known = table.seen | _mask(table, pending)
        candidates = ~(known | table.closed)
        if table.shape[0] == 1 or not candidates.any():
            return False
        return self.method.choice is not None or self._planned(table, known, candidates) is not None

    def recommend(self, table: ScoreTable, memory: Fit | None = None) -> Recommendation:
        """Return the answer that the scores so far support, on any table."""
        if table.seen.any():
            table = _reordered(table, self._tie_order(table))
        means = self.believe(table, memory)
        if means is None:
            return recommend_measured(table, self.tolerance, self.stderr)
        rng = np.random.default_rng([self.seed, int(table.seen.sum())])
        judge = None
        if self.method.judge and table.steps is not None:
            other = replace(self, method=find_method(self.method.judge))
            judge = other.believe(table)
        return recommend_modelled(means, self.tolerance, rng, judge, self.answer)

    def _tie_order(self, table: ScoreTable) -> Index:
        """Return the rows in the order that breaks ties: as listed, at random without an order."""
        if table.steps is not None:
            return np.arange(table.shape[0])
        return np.random.default_rng([self.seed, 3]).permutation(table.shape[0])

    def believe(
        self, table: ScoreTable, memory: Fit | None = None, growth: float = 1.0
    ) -> RowMeans | None:
        """Return the posterior of the row means, fitted as in `fit`; None without model or score."""
        if self.method.model is None or not table.seen.any():
            return None
        return RowMeans.of(table, self.fit(table, memory, growth))

    def fit(self, table: ScoreTable, memory: Fit | None, growth: float) -> FittedTaskGrid:
        """Return the grid's posterior, refitted if there are more cells than at the recorded fit and
        at least ``growth`` times as many.

        A recorded fit of a model with other parameters, from an earlier version, is not used.
        """
        model = self.method.grid_model(table)
        assert model is not None
        data, grid = self._data(table), TaskGrid(model)
        if memory is None or not grid.can_restore(data, memory.state):
            return grid.fit(data, None if memory is None else memory.state)
        recent = len(data.values) < growth * memory.n or len(data.values) == memory.n
        return grid.restore(data, memory.state) if recent else grid.fit(data, memory.state)

    def _chosen(
        self,
        means: RowMeans | None,
        known: Mask,
        opened: Mask,
        candidates: Mask,
        rng: np.random.Generator,
    ) -> tuple[Cell, BestCell]:
        """Return the method's choice with its reason."""
        assert self.method.choice is not None
        opens = False
        if self.method.opens and int(known.sum()) % self.method.opens == 0:
            new = candidates & ~opened
            if new.any():
                candidates, opens = new, True
        cell, value = self.method.choice(means, candidates, rng)
        log_value = float(value) if np.isfinite(value) else None
        return cell, BestCell(self.method.name, log_value, opens)

    def _planned(self, table: ScoreTable, known: Mask, candidates: Mask) -> Cell | None:
        """Return the next cell of the start design, or of stride's whole checkpoints."""
        rng = np.random.default_rng([self.seed, 1])
        if self.method.name == "stride":
            design = _stride(table, self.planned, rng)
        else:
            design = [] if self.method.start is None else self.method.start(table, rng)
            if (known | table.failed).sum() >= len(design):
                return None
        return next((cell for cell in design if candidates[cell]), None)

    def _data(self, table: ScoreTable) -> GridData:
        rows, columns = np.nonzero(table.seen)
        noise = None
        if self.stderr:
            noise = np.nan_to_num(np.square(table.errors[rows, columns]), nan=0.0)
        place = positions(table, self.method.coordinate)
        values = table.scores[rows, columns]
        return GridData(place, rows, columns, values, table.scales, noise, table.groups)


def _reordered(table: ScoreTable, order: Index) -> ScoreTable:
    """Return the table with its rows in another order; the table itself if it is the same."""
    same = bool((order == np.arange(len(order))).all())
    return table if same else table.part(order, np.arange(table.shape[1]))


def _mask(table: ScoreTable, cells: Sequence[Cell]) -> Mask:
    mask = np.zeros(table.shape, dtype=bool)
    for cell in cells:
        mask[cell] = True
    return mask


def _stride(table: ScoreTable, planned: int | None, rng: np.random.Generator) -> list[Cell]:
    """Return all cells of floor(planned / J) whole checkpoints, at least one, evenly spaced from a
    random place; of all checkpoints without a plan."""
    size, tasks = table.shape
    count = size if planned is None else min(max(planned // tasks, 1), size)
    places = np.floor((np.arange(count) + rng.random()) * size / count).astype(int)
    return [(int(row), column) for row in run_order(table)[places] for column in range(tasks)]
