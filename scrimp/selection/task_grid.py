"""A Gaussian process over a grid of scores, rows (checkpoints) times tasks, from a few of its
cells.

    data = GridData(np.sqrt(steps), rows, tasks, scores, task_count=12)
    fitted = TaskGrid().fit(data)                       # hyperparameters by maximum a posteriori
    fitted.mean()                                       # (K, J), in the units of the scores
    # the same hyperparameters with further cells: one factorisation
    TaskGrid().restore(more_data, fitted.state)

Scores are centred and divided by the spread within tasks (`ScoreUnits`), so one set of priors fits
accuracies and percentages. The beliefs themselves are the `GridModel`; the algebra is in
`task_grid_algebra`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from scrimp.gp.priors import Density, Normal, ParameterVector
from scrimp.json_values import Json, JsonObject
from scrimp.selection.task_grid_algebra import GridSolution
from scrimp.selection.task_grid_cells import GridCells, Index, group_cells
from scrimp.selection.task_grid_models import GridModel, SharedCurve
from scrimp.selection.task_grid_separable import SeparableSolution
from scrimp.surrogates.record_reading import number_at, numbers_at, object_at, whole_at
from scrimp.surrogates.surrogate import Array

__all__ = ["FittedTaskGrid", "GridData", "ScoreUnits", "TaskGrid", "measure_units"]

_ITERATIONS, _TOLERANCE = 40, 1e-5
_SPREADS_OF_A_WARM_START = (
    2.0  # a start is moved this many prior standard deviations towards the prior, at most
)


@dataclass(frozen=True)
class GridData:
    """n observed cells of a grid whose rows lie at ``positions``; a row may appear once per task.

    ``scales``: scores of task j are divided by scales[j] before anything else, for tasks in
    different units. ``noise``: known variances of the scores, as one part of their noise.
    """

    positions: Array  # (K,), any increasing coordinate; moved to [0, 1]
    rows: Index  # (n,)
    tasks: Index  # (n,)
    values: Array  # (n,)
    scales: Array  # (J,)
    noise: Array | None = None  # (n,)


@dataclass(frozen=True)
class ScoreUnits:
    """Scores become (y / scale_j - offset) / unit; ``level`` is the prior variance of a task's
    level in these units."""

    offset: float
    unit: float
    level: float


def measure_units(values: Array, tasks: Index, task_count: int) -> ScoreUnits:
    """Units from scores: offset = mean of the task means, unit = spread within tasks.

    unit^2 = [sum (y_ij - c_j)^2 + 2 (0.15 s_b)^2] / [sum_j (n_j - 1) + 2] with task means c_j and
    their spread s_b: the two extra terms define it while every task has one cell. The level's
    standard deviation is twice s_b, at least six units. Scores that do not vary at all, such as a
    single one, say nothing of their spread but that they may be that large: s_b is their size then.
    """
    counts = np.bincount(tasks, minlength=task_count)
    opened = counts > 0
    if not opened.any():
        return ScoreUnits(0.0, 1.0, 36.0)
    centres = np.bincount(tasks, weights=values, minlength=task_count)[opened] / counts[opened]
    between = float(centres.std())
    full = np.zeros(task_count)
    full[opened] = centres
    within = float(np.square(values - full[tasks]).sum())
    size = float(np.abs(values).max())
    if np.ptp(values) <= 1e-9 * size:
        within, between = 0.0, size or 1.0
    square = (within + 2.0 * (0.15 * between) ** 2) / (float((counts[opened] - 1).sum()) + 2.0)
    unit = float(np.sqrt(square))
    return ScoreUnits(float(centres.mean()), unit, 4.0 * max(between / unit, 3.0) ** 2)


@dataclass(frozen=True)
class FittedTaskGrid:
    """A posterior over the whole grid. ``solution`` is in model units; `mean`, `variance` are in
    those of the scores."""

    solution: GridSolution | SeparableSolution
    units: ScoreUnits
    scales: Array  # (J,)
    values: Array  # (p,) hyperparameters
    smooth_covariance: Array | None
    state: JsonObject

    def mean(self, *, smooth: bool = False) -> Array:
        """E f (K, J); without the jitter of single rows when ``smooth``."""
        standard = self.solution.mean(self.smooth_covariance if smooth else None)
        return (standard * self.units.unit + self.units.offset) * self.scales

    @cached_property
    def variance(self) -> Array:
        """Var f (K, J), of the noise-free score."""
        return self.solution.variance * np.square(self.units.unit * self.scales)

    @property
    def noise(self) -> Array:
        """Noise variances (J,)."""
        return self.solution.prior.noise * np.square(self.units.unit * self.scales)

    def task_correlations(self, *, kernel: bool = False) -> Array:
        """How two tasks move together along the run (J, J): the correlation over rows that the
        posterior expects.

        corr_jj' = E sum_k (f_kj - f_j)(f_kj' - f_j') / sqrt(the same for j, j' alone), f_j the mean
        over rows; with ``kernel`` before any score, which for a product K_x (x) K_t is K_t scaled
        to a unit diagonal.
        """
        together = (self.solution.prior if kernel else self.solution).between_tasks()
        size = np.sqrt(np.maximum(np.diag(together), 1e-300))
        correlation = np.clip(together / np.outer(size, size), -1.0, 1.0) * np.outer(
            np.sign(self.scales), np.sign(self.scales)
        )
        np.fill_diagonal(correlation, 1.0)
        return np.asarray(correlation)

    def standardise(self, values: Array, tasks: Index) -> Array:
        """Scores to model units."""
        return (values / self.scales[tasks] - self.units.offset) / self.units.unit


@dataclass(frozen=True)
class TaskGrid:
    """Settings of the grid model; a frozen value without data."""

    model: GridModel = field(default_factory=SharedCurve)

    def fit(self, data: GridData, start: Mapping[str, Json] | None = None) -> FittedTaskGrid:
        """Maximum a posteriori hyperparameters by L-BFGS, from the ``state`` of an earlier fit
        where there is one."""
        units = measure_units(data.values / data.scales[data.tasks], data.tasks, len(data.scales))
        cells = _cells(data, units)
        positions = _unit_interval(data.positions)
        task_count = len(data.scales)
        vector = self.model.parameters(task_count)

        def objective(values: Array) -> tuple[float, Array]:
            prior, pull = self.model.prior(values, positions, task_count, units.level)
            solution = prior.solve(cells)
            value = solution.negative_log_likelihood - vector.log_density(values)
            return value, pull(solution.gradient()) - vector.gradient(values)

        def scaled(coordinates: Array) -> tuple[float, Array]:
            value, gradient = objective(coordinates * steps)
            return value, gradient * steps

        steps = _step_sizes(vector, cells)
        result = minimize(
            scaled,
            self._start(task_count, start) / steps,
            jac=True,
            method="L-BFGS-B",
            bounds=np.stack([vector.lower, vector.upper], axis=1) / steps[:, None],
            options={
                "maxiter": _ITERATIONS,
                "maxfun": 2 * _ITERATIONS,
                "ftol": _TOLERANCE,
                "gtol": 1e-4,
            },
        )
        return self._fitted(data, np.asarray(result.x) * steps, units, len(data.values))

    def can_restore(self, data: GridData, state: JsonObject) -> bool:
        """Whether ``state`` is of a model with the parameters of this one; the number of tasks it
        was fitted to may differ."""
        return set(object_at(state, "parameters")) == {
            part.name for part in self.model.parameters(len(data.scales)).parameters
        }

    def restore(self, data: GridData, state: JsonObject) -> FittedTaskGrid:
        """The model with the recorded hyperparameters and units of ``state`` on ``data``: no fit,
        one factorisation."""
        values = self.model.parameters(len(data.scales)).from_json(state.get("parameters"))
        if values is None:
            values = self._start(len(data.scales), state)
        units = ScoreUnits(*(number_at(state, name) for name in ("offset", "unit", "level")))
        return self._fitted(data, values, units, whole_at(state, "cells"))

    def _start(self, task_count: int, state: JsonObject | None) -> Array:
        """Where a fit begins: the recorded values, no further from the prior than two spreads; or
        the prior's own start."""
        first = self.model.start(task_count)
        vector = self.model.parameters(task_count)
        recorded = (
            None
            if state is None
            else vector.from_json(_resized(object_at(state, "parameters"), task_count))
        )
        if recorded is None:
            return first
        reach = np.concatenate(
            [
                np.full(part.size, _SPREADS_OF_A_WARM_START * _spread(part.density))
                for part in vector.parameters
            ]
        )
        return np.asarray(np.clip(recorded, vector.initial - reach, vector.initial + reach))

    def _fitted(
        self, data: GridData, values: Array, units: ScoreUnits, cells_at_fit: int
    ) -> FittedTaskGrid:
        positions = _unit_interval(data.positions)
        task_count = len(data.scales)
        prior, _ = self.model.prior(values, positions, task_count, units.level)
        state: JsonObject = {
            "cells": cells_at_fit,
            "offset": units.offset,
            "unit": units.unit,
            "level": units.level,
            "parameters": self.model.parameters(task_count).to_json(values),
        }
        smooth = self.model.smooth(values, positions)
        return FittedTaskGrid(
            prior.solve(_cells(data, units)), units, data.scales, values, smooth, state
        )


def _step_sizes(vector: ParameterVector, cells: GridCells) -> Array:
    """Rough standard deviations of the parameters given the data, in which L-BFGS needs half the
    evaluations.

    The information about a log noise is 2 per cell; about the rest it is taken to be 10.
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
    """The standard deviation of a parameter's prior; all are normal here."""
    assert isinstance(density, Normal)
    return density.sd


def _resized(named: JsonObject, task_count: int) -> dict[str, Sequence[float]]:
    """Recorded values by name, those per task cut or filled with zeros when tasks came or went."""
    parts = {name: numbers_at(named, name) for name in named}
    return {
        name: part if len(part) == 1 else [*part, *[0.0] * task_count][:task_count]
        for name, part in parts.items()
    }


def _cells(data: GridData, units: ScoreUnits) -> GridCells:
    scales = data.scales[data.tasks]
    values = (data.values / scales - units.offset) / units.unit
    known = (
        np.zeros(len(values)) if data.noise is None else data.noise / np.square(scales * units.unit)
    )
    return group_cells(data.rows, data.tasks, values, known, len(data.scales))


def _unit_interval(positions: Array) -> Array:
    """Positions moved to [0, 1]; a single row lies at 1."""
    low, high = float(positions.min()), float(positions.max())
    return (positions - low) / (high - low) if high > low else np.ones(len(positions))
