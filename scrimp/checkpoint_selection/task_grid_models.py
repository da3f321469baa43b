"""Models of a grid of scores: how hyperparameters become the covariances of `task_grid_algebra`.

A `GridModel` has parameters with priors. It turns their values into a prior over the grid, together
with the pullback of gradients to the parameters. All numbers are in units of the spread within
tasks (`task_grid.ScoreUnits`).

Each task has noise sigma exp(d_j) with d_j ~ N(0, 0.3^2): most tasks have too few cells for more. In
the coregional models all tasks have the same noise. The medians and spreads of the priors were set
once by looking at real tables (benchmarks/notebook.md, "Checkpoints").

Bonilla, Chai, Williams, "Multi-task Gaussian process prediction", 2008; Swersky, Snoek, Adams,
"Multi-task Bayesian optimization", 2013.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from scrimp.checkpoint_selection.task_grid_algebra import GridGradient, GridPrior
from scrimp.checkpoint_selection.task_grid_separable import SeparableGradient, SeparablePrior
from scrimp.gp.hyperparameters import Hyperparameter, Normal, ParameterVector
from scrimp.gp.stationary import matern52_by_length
from scrimp.surrogates.surrogate import Array

PriorPullback = Callable[[Any], Array]
"""A function from the gradient by the parts of the prior to that by the parameters (p,)."""

AnyPrior = GridPrior | SeparablePrior

LENGTH_BOUNDS = (0.03, 4.0)
"""Bounds of length scales, where the run has length 1."""
START_LENGTH_BOUNDS = (0.01, 4.0)
"""Bounds of the length over which tasks differ more at the start."""
TREND_VARIANCE = 4.0
"""Variance of the linear trend relative to that of the curve."""


class GridModel(ABC):
    """A family of priors over grids; a frozen value without data."""

    @abstractmethod
    def parameters(self, task_count: int) -> ParameterVector:
        """Return names, priors and bounds of the p parameters; scales are given by their logarithm."""

    @abstractmethod
    def prior(
        self, values: Array, positions: Array, task_count: int, level: float
    ) -> tuple[AnyPrior, PriorPullback]:
        """Return the prior at ``values`` (p,) on rows at ``positions`` (K,), with task levels of
        variance ``level``, and its pullback."""

    def start(self, task_count: int) -> Array:
        """Return the values (p,) at which a first fit starts."""
        return self.parameters(task_count).initial

    def smooth(self, values: Array, positions: Array) -> Array | None:
        """Return the smooth part of the shared curve's covariance (K, K); None if all is smooth."""
        return None


def log_parameter(
    name: str, median: float, spread: float, bounds: tuple[float, float] = (1e-4, 1e4)
) -> Hyperparameter:
    """Return the logarithm of a scale, normal around log(median) with deviation ``spread``."""
    limits = (float(np.log(bounds[0])), float(np.log(bounds[1])))
    return Hyperparameter(f"log_{name}", Normal(float(np.log(median)), spread), limits, "identity")


def _noise_parameters(task_count: int) -> tuple[Hyperparameter, Hyperparameter]:
    """Return log sigma and the deviations d_j of the tasks."""
    deviations = Normal(0.0, 0.3)
    return (
        log_parameter("noise", 0.5, 1.0, (1e-2, 1e2)),
        Hyperparameter("task_noise", deviations, (-3.0, 3.0), "identity", size=task_count),
    )


@dataclass(frozen=True)
class SharedCurve(GridModel):
    """m_j + g(x) + h_j(x) + e_ij with x in [0, 1]: a level per task, a curve that all tasks share,
    with a linear trend and a jitter of each row, and an own curve per task. The default: it has no
    loading per task, so it works before every task has been seen.

    Cov g = s_g^2 [M52(l_g) + 4 (x - 1/2)(x' - 1/2)] + (rho sigma)^2 1(x = x')
    Cov h_j = s_h^2 M52(l_h) a(x) a(x'), a(x) = 1 + A exp(-x / tau)

    The jitter affects a checkpoint on all tasks at once; it is part of the measured mean and not of
    the underlying one. Tasks differ most at the start of training (an untrained model may score
    anything), hence the amplitude a(x): without it, one odd early score would make all curves wilder
    up to their end.
    """

    jitter: float = 0.3
    """Prior median of rho."""

    def parameters(self, task_count: int) -> ParameterVector:
        noise, deviations = _noise_parameters(task_count)
        return ParameterVector(
            (
                log_parameter("shared_scale", 1.0, 1.0),
                log_parameter("shared_length", 0.4, 0.7, LENGTH_BOUNDS),
                log_parameter("own_scale", 0.5, 1.0),
                log_parameter("own_length", 0.4, 0.7, LENGTH_BOUNDS),
                noise,
                log_parameter("row_jitter", self.jitter, 0.7, (1e-3, 1.0)),
                log_parameter("start_scale", 1.0, 1.0),
                log_parameter("start_length", 0.15, 0.7, START_LENGTH_BOUNDS),
                deviations,
            )
        )

    def prior(
        self, values: Array, positions: Array, task_count: int, level: float
    ) -> tuple[GridPrior, PriorPullback]:
        scale, length, own_scale, own_length = np.exp(values[:4])
        noise_scale, jitter_share, start_scale, start_length = np.exp(values[4:8])
        curve, curve_by_length = matern52_by_length(positions, length)
        own, own_by_length = matern52_by_length(positions, own_length)
        centred = positions - 0.5
        shared = scale**2 * (curve + TREND_VARIANCE * np.outer(centred, centred))
        jitter = (jitter_share * noise_scale) ** 2
        noise = np.exp(2.0 * (values[4] + values[8:]))
        start = own_scale * start_scale * np.exp(-positions / start_length)
        amplitude = own_scale + start
        curves = own * np.outer(amplitude, amplitude)
        total = shared + jitter * np.eye(len(positions))
        prior = GridPrior(total, level + curves, np.ones((task_count, 1)), noise)

        def pull(gradient: GridGradient) -> Array:
            by_task = 2.0 * noise * gradient.noise
            by_jitter = 2.0 * jitter * float(np.trace(gradient.shared))
            by_amplitude = 2.0 * ((gradient.own * own) @ amplitude)
            head = [
                2.0 * float((gradient.shared * shared).sum()),
                scale**2 * float((gradient.shared * curve_by_length).sum()),
                float(by_amplitude @ amplitude),
                float(amplitude @ (gradient.own * own_by_length) @ amplitude),
                float(by_task.sum()) + by_jitter,
                by_jitter,
                float(by_amplitude @ start),
                float(by_amplitude @ (start * positions)) / start_length,
            ]
            return np.concatenate([head, by_task])

        return prior, pull

    def smooth(self, values: Array, positions: Array) -> Array | None:
        curve = matern52_by_length(positions, float(np.exp(values[1])))[0]
        trend = TREND_VARIANCE * np.outer(positions - 0.5, positions - 0.5)
        return np.asarray(np.exp(2.0 * values[0]) * (curve + trend))


@dataclass(frozen=True)
class RowEffects(GridModel):
    """m_j + g_i + e_ij with independent row effects g_i: rows without order, such as other models."""

    def parameters(self, task_count: int) -> ParameterVector:
        scale = log_parameter("shared_scale", 1.0, 1.0)
        return ParameterVector((scale, *_noise_parameters(task_count)))

    def prior(
        self, values: Array, positions: Array, task_count: int, level: float
    ) -> tuple[GridPrior, PriorPullback]:
        size, noise = len(positions), np.exp(2.0 * (values[1] + values[2:]))
        shared = float(np.exp(2.0 * values[0])) * np.eye(size)
        prior = GridPrior(shared, np.full((size, size), level), np.ones((task_count, 1)), noise)

        def pull(gradient: GridGradient) -> Array:
            by_task = 2.0 * noise * gradient.noise
            by_scale = 2.0 * float((gradient.shared * shared).sum())
            return np.concatenate([[by_scale, float(by_task.sum())], by_task])

        return prior, pull


@dataclass(frozen=True)
class TaskCurves(GridModel):
    """m_j + h_j(x) + e_ij: a Gaussian process per task, with shared hyperparameters."""

    def parameters(self, task_count: int) -> ParameterVector:
        scale = log_parameter("own_scale", 1.0, 1.0)
        length = log_parameter("own_length", 0.4, 0.7, LENGTH_BOUNDS)
        return ParameterVector((scale, length, *_noise_parameters(task_count)))

    def prior(
        self, values: Array, positions: Array, task_count: int, level: float
    ) -> tuple[GridPrior, PriorPullback]:
        variance = float(np.exp(2.0 * values[0]))
        own, own_by_length = matern52_by_length(positions, float(np.exp(values[1])))
        noise = np.exp(2.0 * (values[2] + values[3:]))
        curves, no_loadings = level + variance * own, np.zeros((task_count, 1))
        prior = GridPrior(np.eye(len(positions)), curves, no_loadings, noise)

        def pull(gradient: GridGradient) -> Array:
            by_task = 2.0 * noise * gradient.noise
            head = [
                2.0 * variance * float((gradient.own * own).sum()),
                variance * float((gradient.own * own_by_length).sum()),
                float(by_task.sum()),
            ]
            return np.concatenate([head, by_task])

        return prior, pull


def squared_exponential(positions: Array, length: float) -> tuple[Array, Array]:
    """Return exp(-d^2 / 2), d = |x - x'| / length, and the derivatives by log length (K, K)."""
    square = np.square((positions[:, None] - positions) / length)
    correlation = np.exp(-0.5 * square)
    return correlation, square * correlation


@dataclass(frozen=True)
class Coregional(GridModel):
    """K_x (x) (L L' + diag(v)) plus a level per task and one noise for all, with K_x the squared
    exponential and L (J, rank) the loadings of the tasks on ``rank`` curves, whose size is the output
    scale. Every task has loadings to learn, so every task needs cells. Without a prior so many
    loadings cannot be estimated: it is standard normal.

    With ``rank="full"`` L has a column per task; without ``diagonal`` v = 0, otherwise each task has
    an own curve. In both cases the prior of a loading shrinks as 1 / sqrt(rank), so that more curves
    do not mean larger ones. A low rank alone has the faster algebra. Without ``levels`` the prior mean
    of all tasks is the mean of their scores, as published.
    """

    rank: int | Literal["full"] = 2
    diagonal: bool = False
    levels: bool = True

    @property
    def low_rank(self) -> bool:
        """True if K_t = L L' with few columns."""
        return self.rank != "full" and not self.diagonal

    def _columns(self, task_count: int) -> int:
        return task_count if self.rank == "full" else min(self.rank, task_count)

    def parameters(self, task_count: int) -> ParameterVector:
        columns = self._columns(task_count)
        prior = Normal(0.0, 1.0 if self.low_rank else float(np.sqrt(2.0 / max(columns, 2))))
        own = replace(log_parameter("own", 0.3, 0.7, (1e-3, 1e2)), size=task_count)
        head = (
            log_parameter("length", 0.4, 0.7, LENGTH_BOUNDS),
            log_parameter("noise", 0.5, 1.0, (1e-2, 1e2)),
        )
        loadings = (
            Hyperparameter(f"loading_{curve}", prior, (-10.0, 10.0), "identity", size=task_count)
            for curve in range(columns)
        )
        return ParameterVector((*head, *([own] if self.diagonal else []), *loadings))

    def start(self, task_count: int) -> Array:
        """Return equal loadings on the first curve and small waves on the others."""
        columns = self._columns(task_count)
        head = self.parameters(task_count).initial[: -columns * task_count]
        # Collinear columns of L would stay collinear.
        place = (np.arange(task_count) + 0.5) / task_count
        waves = [0.3 * np.cos(np.pi * curve * place) for curve in range(1, columns)]
        return np.concatenate([head, np.ones(task_count), *waves])

    def prior(
        self, values: Array, positions: Array, task_count: int, level: float
    ) -> tuple[AnyPrior, PriorPullback]:
        correlation, by_length = squared_exponential(positions, float(np.exp(values[0])))
        noise = np.full(task_count, float(np.exp(2.0 * values[1])))
        split = 2 + (task_count if self.diagonal else 0)
        loadings = values[split:].reshape(-1, task_count).T
        level = level if self.levels else 0.0
        if self.low_rank:
            return _low_rank(correlation, by_length, loadings, noise, level)
        own = np.exp(2.0 * values[2:split]) if self.diagonal else np.zeros(task_count)
        prior = SeparablePrior(correlation, loadings @ loadings.T + np.diag(own), level, noise)

        def pull(gradient: SeparableGradient) -> Array:
            by_noise = float((2.0 * noise * gradient.noise).sum())
            head = [float((gradient.curve * by_length).sum()), by_noise]
            by_own = 2.0 * own * np.diag(gradient.tasks) if self.diagonal else np.zeros(0)
            return np.concatenate([head, by_own, 2.0 * (gradient.tasks @ loadings).T.ravel()])

        return prior, pull


def _low_rank(
    correlation: Array, by_length: Array, loadings: Array, noise: Array, level: float
) -> tuple[GridPrior, PriorPullback]:
    """Return K_x (x) L L' as independent curves that all tasks share, and its pullback."""
    size, rank = len(correlation), loadings.shape[1]
    shared = np.asarray(np.kron(np.eye(rank), correlation), np.float64)
    prior = GridPrior(shared, np.full((size, size), level), loadings, noise)

    def pull(gradient: GridGradient) -> Array:
        blocks = np.einsum("pipk->ik", gradient.shared.reshape(rank, size, rank, size))
        head = [float((blocks * by_length).sum()), float((2.0 * noise * gradient.noise).sum())]
        return np.concatenate([head, gradient.loadings.T.ravel()])

    return prior, pull
