"""A Gaussian process over a grid of scores, rows (checkpoints) times tasks, fitted to some cells.

    data = GridData(np.sqrt(steps), rows, tasks, scores, scales=np.ones(12))
    fitted = TaskGrid().fit(data)                       # hyperparameters by maximum a posteriori
    fitted.mean()                                       # (K, J), in the units of the scores
    TaskGrid().restore(more_data, fitted.state)         # further cells, the same hyperparameters

Scores are centred and divided by the spread within tasks (`ScoreUnits`), so one set of priors fits
accuracies and percentages. The prior is a `GridModel` of `task_grid_models`; the algebra is in
`task_grid_algebra`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from scrimp.checkpoint_selection.selection_numbers import NUMBERS
from scrimp.checkpoint_selection.task_grid_algebra import (
    GridCells,
    GridSolution,
    Index,
    group_cells,
)
from scrimp.checkpoint_selection.task_grid_models import GridModel, SharedCurve
from scrimp.checkpoint_selection.task_grid_separable import SeparableSolution
from scrimp.gp.hyperparameters import Density, Normal, ParameterVector
from scrimp.json_values import Json, JsonObject
from scrimp.surrogates.surrogate import Array, object_at, value_at


@dataclass(frozen=True)
class GridData:
    """n observed cells of a grid whose rows lie at ``positions``; a row may appear once per task.

    ``scales``: scores of task j are divided by scales[j] first, for tasks in different units.
    ``noise``: known variances of the scores, which add to the fitted noise. ``groups``: the benchmark of
    each task, where tasks of one benchmark share a level.
    """

    positions: Array  # (K,): any coordinate; mapped to [0, 1]
    rows: Index  # (n,)
    tasks: Index  # (n,)
    values: Array  # (n,)
    scales: Array  # (J,)
    noise: Array | None = None  # (n,)
    groups: Index | None = None  # (J,)


@dataclass(frozen=True)
class ScoreUnits:
    """Model units: (y / scale_j - offset_j) / unit. ``level`` is the prior variance of a task's level
    in these units. The offset is one number, or one per task where tasks share levels (J,)."""

    offset: float | Array
    unit: float
    level: float


def measure_units(values: Array, tasks: Index, task_count: int) -> ScoreUnits:
    """Return units: offset = mean of the task means, unit = spread within tasks.

    unit^2 = [sum (y_ij - c_j)^2 + 2 (0.15 s_b)^2] / [sum_j (n_j - 1) + 2] with task means c_j and
    their spread s_b: the two extra terms define it while every task has one cell. The level's
    standard deviation is twice s_b, and at least six units. If the scores do not vary at all, such as
    a single one, s_b is their size. One task says nothing about the level of others: while no other
    has a score, the level's standard deviation is twice their size.
    """
    counts = np.bincount(tasks, minlength=task_count)
    if not counts.any():
        return ScoreUnits(0.0, 1.0, 36.0)
    means = np.bincount(tasks, weights=values, minlength=task_count) / np.maximum(counts, 1)
    centres = means[counts > 0]
    between = float(centres.std())
    within = float(np.square(values - means[tasks]).sum())
    size = float(np.abs(values).max())
    if np.ptp(values) <= 1e-9 * size:
        within, between = 0.0, size or 1.0
    square = (within + 2.0 * (0.15 * between) ** 2) / (len(values) - len(centres) + 2.0)
    unit = float(np.sqrt(square))
    if len(centres) == 1 < task_count:
        between = size
    return ScoreUnits(float(centres.mean()), unit, 4.0 * max(between / unit, 3.0) ** 2)


def group_units(values: Array, tasks: Index, groups: Index) -> ScoreUnits:
    """Return units where tasks of a group share a level: spread and offsets are those of the groups.

    Once every group has a cell, the level of a task lies within one unit of that of its group; until
    then it is as free as that of a task.
    """
    count = int(groups.max()) + 1
    own = groups[tasks]
    units = measure_units(values, own, count)
    cells = np.bincount(own, minlength=count)
    sums = np.bincount(own, weights=values, minlength=count)
    offsets = np.where(cells > 0, sums / np.maximum(cells, 1), units.offset)
    return ScoreUnits(offsets[groups], units.unit, 1.0 if cells.all() else units.level)


@dataclass(frozen=True)
class FittedTaskGrid:
    """The posterior over the grid: ``solution`` in model units, the rest in those of the scores."""

    model: GridModel
    data: GridData
    solution: GridSolution | SeparableSolution
    units: ScoreUnits
    values: Array  # (p,) hyperparameters
    smooth_covariance: Array | None
    state: JsonObject

    def extended(self, positions: Array) -> "FittedTaskGrid":
        """Return the posterior with further rows at ``positions`` (S,), within the present range."""
        data = replace(self.data, positions=np.concatenate([self.data.positions, positions]))
        return TaskGrid(self.model).restore(data, self.state)

    def mean(self, *, smooth: bool = False) -> Array:
        """Return E f (K, J), with ``smooth`` without the jitter of single rows."""
        standard = self.solution.mean(self.smooth_covariance if smooth else None)
        return (standard * self.units.unit + self.units.offset) * self.data.scales

    @cached_property
    def variance(self) -> Array:
        """Var f (K, J) of the noise-free score."""
        return self.solution.variance * np.square(self.units.unit * self.data.scales)

    @property
    def noise(self) -> Array:
        """Noise variances (J,)."""
        return self.solution.prior.noise * np.square(self.units.unit * self.data.scales)

    def task_correlations(self, *, kernel: bool = False) -> Array:
        """Return the correlations of tasks over rows that the posterior expects (J, J).

        corr_jj' = E sum_k (f_kj - f_j)(f_kj' - f_j') / sqrt(the same for j, j' alone), f_j the mean
        over rows; with ``kernel`` under the prior, which for K_x (x) K_t is K_t scaled to a unit
        diagonal.
        """
        together = (self.solution.prior if kernel else self.solution).between_tasks()
        size = np.sqrt(np.maximum(np.diag(together), 1e-300))
        signs = np.sign(self.data.scales)
        correlation = np.clip(together / np.outer(size, size), -1.0, 1.0) * np.outer(signs, signs)
        np.fill_diagonal(correlation, 1.0)
        return np.asarray(correlation)


@dataclass(frozen=True)
class TaskGrid:
    """The model to fit; a frozen value without data."""

    model: GridModel = field(default_factory=SharedCurve)

    def fit(self, data: GridData, start: Mapping[str, Json] | None = None) -> FittedTaskGrid:
        """Fit hyperparameters by maximum a posteriori, from the ``state`` of an earlier fit if any."""
        task_count, values = len(data.scales), data.values / data.scales[data.tasks]
        if data.groups is None:
            units = measure_units(values, data.tasks, task_count)
        else:
            units = group_units(values, data.tasks, data.groups)
        cells, positions = _cells(data, units), _unit_interval(data.positions)
        vector = self.model.parameters(task_count)
        steps = _step_sizes(vector, cells)

        def objective(coordinates: Array) -> tuple[float, Array]:
            values = coordinates * steps
            prior, pull = self.model.prior(values, positions, task_count, units.level)
            solution = prior.solve(cells)
            density, slope = vector.log_density_and_gradient(values)
            gradient = pull(solution.gradient()) - slope
            return solution.negative_log_likelihood - density, gradient * steps

        result = minimize(
            objective,
            self._start(task_count, start) / steps,
            jac=True,
            method="L-BFGS-B",
            bounds=np.stack([vector.lower, vector.upper], axis=1) / steps[:, None],
            options={
                "maxiter": NUMBERS.max_fit_iterations,
                "maxfun": 2 * NUMBERS.max_fit_iterations,
                "ftol": NUMBERS.fit_tolerance,
                "gtol": 1e-4,
            },
        )
        return self._fitted(data, np.asarray(result.x) * steps, units, len(data.values))

    def can_restore(self, data: GridData, state: JsonObject) -> bool:
        """True if ``state`` is of the same parameters; the number of tasks may differ."""
        return set(object_at(state, "parameters")) == {
            part.name for part in self.model.parameters(len(data.scales)).parameters
        }

    def restore(self, data: GridData, state: JsonObject) -> FittedTaskGrid:
        """Return the posterior given ``data`` with the hyperparameters and units in ``state``."""
        values = self.model.parameters(len(data.scales)).from_json(state.get("parameters"))
        if values is None:
            values = self._start(len(data.scales), state)
        several = isinstance(state.get("offset"), Sequence)
        listed = value_at(state, "offset", tuple[float, ...]) if several else ()
        offset = np.array(listed) if several else value_at(state, "offset", float)
        unit, level = value_at(state, "unit", float), value_at(state, "level", float)
        units = ScoreUnits(offset, unit, level)
        return self._fitted(data, values, units, value_at(state, "cells", int))

    def _start(self, task_count: int, state: JsonObject | None) -> Array:
        """Return the recorded values, kept near the prior's centre, or the start of the model."""
        vector, recorded = self.model.parameters(task_count), None
        if state is not None:
            recorded = vector.from_json(_resized(object_at(state, "parameters"), task_count))
        if recorded is None:
            return self.model.start(task_count)
        spreads = [np.full(part.size, _spread(part.density)) for part in vector.parameters]
        reach = NUMBERS.max_start_deviations * np.concatenate(spreads)
        return np.asarray(np.clip(recorded, vector.initial - reach, vector.initial + reach))

    def _fitted(
        self, data: GridData, values: Array, units: ScoreUnits, cells_at_fit: int
    ) -> FittedTaskGrid:
        positions, task_count = _unit_interval(data.positions), len(data.scales)
        prior, _ = self.model.prior(values, positions, task_count, units.level)
        state: JsonObject = {
            "cells": cells_at_fit,
            "offset": units.offset if isinstance(units.offset, float) else units.offset.tolist(),
            "unit": units.unit,
            "level": units.level,
            "parameters": self.model.parameters(task_count).to_json(values),
        }
        smooth = self.model.smooth(values, positions)
        solution = prior.solve(_cells(data, units))
        return FittedTaskGrid(self.model, data, solution, units, values, smooth, state)


def _step_sizes(vector: ParameterVector, cells: GridCells) -> Array:
    """Return rough standard deviations of the parameters given the data; scaled by them, L-BFGS
    needs half the evaluations.

    The information about a log noise is 2 per cell; for the other parameters 10 is assumed.
    """
    information = {
        "log_noise": np.array([2.0 * cells.counts.sum()]),
        "task_noise": 2.0 * cells.counts,
    }
    parts = [
        information.get(part.name, np.full(part.size, 10.0)) + 1.0 / _spread(part.density) ** 2
        for part in vector.parameters
    ]
    return np.asarray(1.0 / np.sqrt(np.concatenate(parts)))


def _spread(density: Density) -> float:
    """Return the standard deviation of a parameter's prior; all are normal here."""
    assert isinstance(density, Normal)
    return density.sd


def _resized(named: JsonObject, task_count: int) -> dict[str, Sequence[float]]:
    """Return recorded values by name, cut or filled with zeros if the number of tasks changed."""
    parts = {name: value_at(named, name, tuple[float, ...]) for name in named}
    return {
        name: part if len(part) == 1 else [*part, *[0.0] * task_count][:task_count]
        for name, part in parts.items()
    }


def _cells(data: GridData, units: ScoreUnits) -> GridCells:
    scales = data.scales[data.tasks]
    offsets = units.offset if isinstance(units.offset, float) else units.offset[data.tasks]
    values = (data.values / scales - offsets) / units.unit
    noise = np.zeros(len(values)) if data.noise is None else data.noise
    known = noise / np.square(scales * units.unit)
    return group_cells(data.rows, data.tasks, values, known, len(data.scales))


def _unit_interval(positions: Array) -> Array:
    """Map positions to [0, 1]; a single row lies at 1."""
    low, high = float(positions.min()), float(positions.max())
    return (positions - low) / (high - low) if high > low else np.ones(len(positions))
