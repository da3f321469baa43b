"""Which cells to measure next and which checkpoint to take: pure functions of the scores so far.

    selector = Selector(SelectorSettings(method="kg", seed=0))
    # cells, and notes for the log
    decision = selector.decide(table, pending=[], rng=rng)
    # starts from the recorded fit
    decision = selector.decide(later, [], rng, memory=decision.fit)
    selector.recommend(later).checkpoint

The hyperparameters are refitted when the number of cells has grown by a quarter since the recorded
fit. ``memory`` (the fit of an earlier decision) is what makes a decision reproducible from a log;
without it the model is fitted afresh.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from scrimp.history.notes import BestCell, FirstCell, Fit
from scrimp.json_values import JsonObject
from scrimp.selection.methods import SelectionMethod, find_method, positions
from scrimp.selection.recommendation import Recommendation, recommend_measured, recommend_modelled
from scrimp.selection.row_means import RowMeans
from scrimp.selection.score_table import Cell, Mask, ScoreTable
from scrimp.selection.task_grid import FittedTaskGrid, GridData, TaskGrid
from scrimp.selection.task_grid_models import GridModel
from scrimp.surrogates.record_reading import whole_at

__all__ = ["CellDecision", "Selector", "SelectorSettings"]


@dataclass(frozen=True)
class SelectorSettings:
    """``options``: settings of the method, such as {"coordinate": "log"}; ``planned``: cells in
    all, needed by stride; ``stderr``: given standard errors become one part of the noise.
    """

    method: str = "kg"
    seed: int = 0
    planned: int | None = None
    stderr: bool = False
    refit: float = 1.25
    tolerance: float = 0.002
    options: JsonObject = field(default_factory=dict)


@dataclass(frozen=True)
class CellDecision:
    """Cells (row, column) to measure, most useful first, with a reason each; none when there is
    nothing left to ask. ``fit``: what the next decision starts from."""

    cells: tuple[Cell, ...]
    reasons: tuple[FirstCell | BestCell, ...] = ()
    fit: Fit | None = None


@dataclass(frozen=True)
class Selector:
    """Settings of a selection; holds no scores."""

    settings: SelectorSettings = field(default_factory=SelectorSettings)

    @cached_property
    def method(self) -> SelectionMethod:
        """The method of these settings."""
        return find_method(self.settings.method, self.settings.options)

    def decide(
        self,
        table: ScoreTable,
        pending: Sequence[Cell],
        rng: np.random.Generator,
        count: int = 1,
        memory: Fit | None = None,
    ) -> CellDecision:
        """The next ``count`` cells, given the scores so far and the cells under evaluation."""
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
                    means, memory = self._means(table, busy, memory)
                cell, why = self._chosen(means, known, candidates, rng)
                reasons.append(why)
            busy.append(cell)
            if means is not None and len(busy) < total:
                means = means.with_cell(cell)
        return CellDecision(tuple(busy[len(pending) :]), tuple(reasons), memory)

    def has_more(self, table: ScoreTable, pending: Sequence[Cell]) -> bool:
        """Whether there is a cell to measure next, without choosing it."""
        known = table.seen | _mask(table, pending)
        candidates = ~(known | table.closed)
        if table.shape[0] == 1 or not candidates.any():
            return False
        return self.method.choice is not None or self._planned(table, known, candidates) is not None

    def recommend(self, table: ScoreTable, memory: Fit | None = None) -> Recommendation:
        """The answer the scores so far support; also on a table somebody else made."""
        means = self.believe(table, memory)
        if means is None:
            return recommend_measured(table, self.settings.tolerance)
        rng = np.random.default_rng([self.settings.seed, int(table.seen.sum())])
        judge = None
        if self.method.judge and table.steps is not None:
            judge = Selector(replace(self.settings, method=self.method.judge, options={})).believe(
                table
            )
        return recommend_modelled(means, self.settings.tolerance, rng, judge)

    def believe(self, table: ScoreTable, memory: Fit | None = None) -> RowMeans | None:
        """What the model makes of all scores; None without a model or without a score."""
        model = self.method.grid_model(table)
        if model is None or not table.seen.any():
            return None
        return RowMeans.of(table, self.fit(table, model, memory, growth=1.0))

    def fit(
        self, table: ScoreTable, model: GridModel, memory: Fit | None, growth: float
    ) -> FittedTaskGrid:
        """The grid's posterior: refitted if there are at least ``growth`` times the cells of the
        recorded fit, and more.

        A fit that an earlier version recorded, of a model with other parameters, is made again.
        """
        data, grid = self._data(table), TaskGrid(model)
        if memory is None or not grid.can_restore(data, memory.state):
            return grid.fit(data, None if memory is None else memory.state)
        recent = len(data.values) < growth * memory.n or len(data.values) == memory.n
        return grid.restore(data, memory.state) if recent else grid.fit(data, memory.state)

    def _means(
        self, table: ScoreTable, busy: Sequence[Cell], memory: Fit | None
    ) -> tuple[RowMeans, Fit]:
        """The row means with cells under evaluation, and the fit they rest on."""
        model = self.method.grid_model(table)
        assert model is not None
        fitted = self.fit(table, model, memory, self.settings.refit)
        means = RowMeans.of(table, fitted)
        for cell in busy:
            means = means.with_cell(cell)
        return means, Fit(whole_at(fitted.state, "cells"), dict(fitted.state))

    def _chosen(
        self, means: RowMeans | None, known: Mask, candidates: Mask, rng: np.random.Generator
    ) -> tuple[Cell, BestCell]:
        """The method's choice, with its reason."""
        assert self.method.choice is not None
        opens = False
        if self.method.opens and int(known.sum()) % self.method.opens == 0:
            new = candidates & ~known.any(axis=0)
            if new.any():
                candidates, opens = new, True
        cell, value = self.method.choice(means, candidates, rng)
        log_value = float(value) if np.isfinite(value) else None
        return cell, BestCell(self.method.name, log_value, opens)

    def _planned(self, table: ScoreTable, known: Mask, candidates: Mask) -> Cell | None:
        """The next cell of the start design, or of stride's whole checkpoints."""
        rng = np.random.default_rng([self.settings.seed, 1])
        if self.method.name == "stride":
            design = _stride(table, self.settings.planned, rng)
        else:
            tried = int((known | table.failed).sum())
            if tried >= 2 * max(table.shape[1], 3):  # no design is longer
                return None
            design = self.method.start(table, rng)
            if tried >= len(design):
                return None
        return next((cell for cell in design if candidates[cell]), None)

    def _data(self, table: ScoreTable) -> GridData:
        rows, columns = np.nonzero(table.seen)
        noise = None
        if self.settings.stderr:
            noise = np.nan_to_num(np.square(table.errors[rows, columns]), nan=0.0)
        place = positions(table, self.method.coordinate)
        return GridData(place, rows, columns, table.scores[rows, columns], table.scales, noise)


def _mask(table: ScoreTable, cells: Sequence[Cell]) -> Mask:
    mask = np.zeros(table.shape, dtype=bool)
    for cell in cells:
        mask[cell] = True
    return mask


def _stride(table: ScoreTable, planned: int | None, rng: np.random.Generator) -> list[Cell]:
    """All cells of floor(planned / J) whole checkpoints, at least one, evenly spaced from a random
    place; all without a plan."""
    size, tasks = table.shape
    count = size if planned is None else min(max(planned // tasks, 1), size)
    order = np.arange(size) if table.steps is None else np.argsort(table.steps, kind="stable")
    rows = order[np.floor((np.arange(count) + rng.random()) * size / count).astype(int)]
    return [(int(row), column) for row in rows for column in range(tasks)]
