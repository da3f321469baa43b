"""Which cells to measure next and which checkpoint to take: pure functions of the scores so far.

    selector = Selector(SelectorSettings(method="kg", seed=0))
    decision = selector.decide(table, pending=[], rng=rng)              # cells, and notes for the log
    decision = selector.decide(later, [], rng, memory=decision.notes)   # starts from the recorded fit
    selector.recommend(later).checkpoint

The hyperparameters are refitted when the number of cells has grown by a quarter since the recorded fit. ``memory`` (the notes
of an earlier decision) is what makes a decision reproducible from a log; without it the model is fitted afresh.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scrimp.checkpoints.methods import SelectionMethod, find_method, positions
from scrimp.checkpoints.recommendation import Recommendation, recommend_measured, recommend_modelled
from scrimp.checkpoints.row_means import RowMeans
from scrimp.checkpoints.score_table import Cell, Mask, ScoreTable
from scrimp.surrogates.surrogate import Array
from scrimp.surrogates.task_grid import FittedTaskGrid, GridData, TaskGrid
from scrimp.surrogates.task_grid_models import GridModel

__all__ = ["CellDecision", "Selector", "SelectorSettings"]


@dataclass(frozen=True)
class SelectorSettings:
    """``planned``: cells in all, needed by stride; ``stderr``: given standard errors become one part of the noise."""

    method: str = "kg"
    seed: int = 0
    planned: int | None = None
    stderr: bool = False
    refit: float = 1.25
    tolerance: float = 0.002


@dataclass(frozen=True)
class CellDecision:
    """Cells (row, column) to measure, most useful first; none when there is nothing left to ask. ``notes`` are plain JSON."""

    cells: tuple[Cell, ...]
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Selector:
    """Settings of a selection; holds no scores."""

    settings: SelectorSettings = field(default_factory=SelectorSettings)

    @property
    def method(self) -> SelectionMethod:
        """The method of these settings."""
        return find_method(self.settings.method)

    def decide(
        self,
        table: ScoreTable,
        pending: Sequence[Cell],
        rng: np.random.Generator,
        count: int = 1,
        memory: Mapping[str, Any] | None = None,
    ) -> CellDecision:
        """The next ``count`` cells, given the scores so far and the cells under evaluation."""
        busy = _mask(table, pending)
        chosen: list[Cell] = []
        notes: dict[str, Any] = {"reasons": []}
        if memory is not None and "fit" in memory:
            notes["fit"] = memory["fit"]
        while len(chosen) < count:
            candidates = ~(table.seen | table.failed | busy)
            if table.shape[0] == 1 or not candidates.any():
                break
            step = self._next(table, busy, candidates, rng, notes)
            if step is None:
                break
            chosen.append(step)
            busy[step] = True
        return CellDecision(tuple(chosen), notes)

    def recommend(self, table: ScoreTable, memory: Mapping[str, Any] | None = None) -> Recommendation:
        """The answer the scores so far support; also on a table somebody else made."""
        model = self.method.grid_model(table)
        if model is None:
            return recommend_measured(table, self.settings.tolerance)
        state = None if memory is None else memory.get("fit")
        data = self._data(table, table.seen, table.scores)
        if state is not None and len(data.values) == state["cells"]:
            fitted = TaskGrid(model).restore(data, state)
        else:
            fitted = TaskGrid(model).fit(data, state)
        means = RowMeans(table, table.seen, fitted)
        rng = np.random.default_rng([self.settings.seed, int(table.seen.sum())])
        return recommend_modelled(means, self.settings.tolerance, rng)

    def fit(self, table: ScoreTable, model: GridModel, memory: Mapping[str, Any] | None) -> FittedTaskGrid:
        """The grid's posterior: refitted when due, else the recorded hyperparameters on the present scores."""
        data = self._data(table, table.seen, table.scores)
        state = None if memory is None else memory.get("fit")
        if state is not None and len(data.values) < self.settings.refit * state["cells"]:
            return TaskGrid(model).restore(data, state)
        return TaskGrid(model).fit(data, state)

    def _next(
        self, table: ScoreTable, busy: Mask, candidates: Mask, rng: np.random.Generator, notes: dict[str, Any]
    ) -> Cell | None:
        """One cell, with its reason written to ``notes``."""
        planned = self._planned(table, busy, candidates)
        if planned is not None:
            notes["reasons"].append("start")
            return planned
        model = self.method.grid_model(table)
        if model is None or self.method.choice is None:
            return None
        reason = self.method.name
        opening = _unopened(table.seen | busy, candidates)
        if self.method.opens and int((table.seen | busy).sum()) % self.method.opens == 0 and opening.any():
            candidates, reason = opening, "open a task"
        means = None if self.method.blind else self._means(table, busy, model, notes)
        cell, value = self.method.choice(means, candidates, rng)
        notes["reasons"].append({"rule": reason, "log_value": value if np.isfinite(value) else None})
        return cell

    def _means(self, table: ScoreTable, busy: Mask, model: GridModel, notes: dict[str, Any]) -> RowMeans:
        """The row means with cells under evaluation counted as measured at their predicted mean."""
        fitted = self.fit(table, model, notes)
        notes["fit"] = dict(fitted.state)
        known = table.seen | busy
        if busy.any():
            scores = np.where(table.seen, table.scores, fitted.mean())
            fitted = TaskGrid(model).restore(self._data(table, known, scores), fitted.state)
        return RowMeans(table, known, fitted)

    def _planned(self, table: ScoreTable, busy: Mask, candidates: Mask) -> Cell | None:
        """The next cell of the start design, or of stride's whole checkpoints."""
        rng = np.random.default_rng([self.settings.seed, 1])
        if self.method.name == "stride":
            design = _stride(table, self.settings.planned, rng)
        else:
            design = self.method.start(table, rng)
            if int((table.seen | busy | table.failed).sum()) >= len(design):
                return None
        return next((cell for cell in design if candidates[cell]), None)

    def _data(self, table: ScoreTable, known: Mask, scores: Array) -> GridData:
        rows, columns = np.nonzero(known)
        noise = None
        if self.settings.stderr:
            noise = np.nan_to_num(np.square(table.errors[rows, columns]), nan=0.0)
        place = positions(table, self.method.warp)
        return GridData(place, rows, columns, scores[rows, columns], table.scales, noise)


def _mask(table: ScoreTable, cells: Sequence[Cell]) -> Mask:
    mask = np.zeros(table.shape, dtype=bool)
    for cell in cells:
        mask[cell] = True
    return mask


def _unopened(known: Mask, candidates: Mask) -> Mask:
    """Candidates in tasks that have no cell yet (K, J)."""
    return np.asarray(candidates & ~known.any(axis=0))


def _stride(table: ScoreTable, planned: int | None, rng: np.random.Generator) -> list[Cell]:
    """All cells of floor(planned / J) whole checkpoints, at least one, evenly spaced from a random place; all without a plan."""
    size, tasks = table.shape
    count = size if planned is None else min(max(planned // tasks, 1), size)
    order = np.arange(size) if table.steps is None else np.argsort(table.steps, kind="stable")
    rows = order[np.floor((np.arange(count) + rng.random()) * size / count).astype(int)]
    return [(int(row), column) for row in rows for column in range(tasks)]
