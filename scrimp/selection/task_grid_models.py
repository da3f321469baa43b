"""What may be believed about a grid of scores: how hyperparameters become the covariances of
`task_grid_algebra`.

A `GridModel` names its parameters with their priors and turns values into a `GridPrior`, together
with the chain rule back to the parameters. All numbers are in units of the spread within tasks (see
`task_grid.Units`). The models:

    SharedCurve   f_j(x) = m_j + g(x) + h_j(x): a level per task, a curve all tasks share, a curve
                  of its own. The default: it needs no loading per task, so it can be used before
                  every task has been seen.
    RowEffects    f_ij = m_j + g_i: rows without an order, such as different models.
    OwnCurves     f_j(x) = m_j + h_j(x): one Gaussian process per task, nothing shared but the
                  hyperparameters.
    Coregional    K_x (x) K_t with low-rank K_t = L L', in `task_grid_icm`; there also
                  CoregionalDiagonal, any rank.

Each task has noise sigma exp(d_j) with d_j ~ N(0, 0.3^2): most tasks have too few cells to say more
than that.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from scrimp.gp.matern import matern52_by_length
from scrimp.gp.priors import IDENTITY, Hyperparameter, Normal, ParameterVector
from scrimp.selection.task_grid_algebra import GridPrior
from scrimp.selection.task_grid_cells import GridGradient
from scrimp.selection.task_grid_separable import SeparablePrior
from scrimp.surrogates.surrogate import Array

__all__ = [
    "AnyPrior",
    "GridModel",
    "PriorPullback",
    "RowEffects",
    "SharedCurve",
    "TaskCurves",
    "log_parameter",
]

PriorPullback = Callable[[Any], Array]
"""pull(gradient by the parts of the prior) -> gradient by the parameters (p,)."""

AnyPrior = GridPrior | SeparablePrior

_LENGTHS = (0.03, 4.0)
_START_LENGTHS = (0.01, 4.0)
_TREND = 4.0  # variance of the linear term relative to the curve's


class GridModel(ABC):
    """A family of priors over grids; a frozen value without data."""

    @abstractmethod
    def parameters(self, task_count: int) -> ParameterVector:
        """Names, priors and bounds of the p parameters; all are searched as they are, scales by
        their logarithm."""

    @abstractmethod
    def prior(
        self, values: Array, positions: Array, task_count: int, level: float
    ) -> tuple[AnyPrior, PriorPullback]:
        """The prior at ``values`` (p,) on rows at ``positions`` (K,), with task levels of variance
        ``level``."""

    def start(self, task_count: int) -> Array:
        """Where a fit begins when nothing is known (p,)."""
        return self.parameters(task_count).initial

    def smooth(self, values: Array, positions: Array) -> Array | None:
        """Covariance (K, K) of the shared curve with its smooth part; None when all of it is
        smooth."""
        return None


def log_parameter(
    name: str, median: float, spread: float, bounds: tuple[float, float] = (1e-4, 1e4)
) -> Hyperparameter:
    """The logarithm of a scale, normal around log(median) with standard deviation ``spread``."""
    limits = (float(np.log(bounds[0])), float(np.log(bounds[1])))
    return Hyperparameter(f"log_{name}", Normal(float(np.log(median)), spread), limits, IDENTITY)


def _task_noise(log_noise: float, deviations: Array) -> Array:
    return np.asarray(np.exp(2.0 * (log_noise + deviations)))


def _deviations(task_count: int) -> Hyperparameter:
    return Hyperparameter("task_noise", Normal(0.0, 0.3), (-3.0, 3.0), IDENTITY, size=task_count)


@dataclass(frozen=True)
class SharedCurve(GridModel):
    """m_j + g(x) + h_j(x) + e_ij with x in [0, 1]; g also carries a linear trend and a jitter of
    each row.

    Cov g = s_g^2 [M52(l_g) + 4 (x - 1/2)(x' - 1/2)] + (rho sigma)^2 1(x = x')
    Cov h_j = s_h^2 M52(l_h) a(x) a(x'), a(x) = 1 + A exp(-x / tau)

    The jitter is what happens to a checkpoint on all tasks at once; it belongs to the measured
    mean, not to the underlying one. Tasks differ most while training begins (an untrained model may
    score anything), hence the amplitude a(x): without it an odd early score makes all curves
    wilder, to their end.
    """

    jitter: float = 0.3  # prior median of rho

    def parameters(self, task_count: int) -> ParameterVector:
        return ParameterVector(
            (
                log_parameter("shared_scale", 1.0, 1.0),
                log_parameter("shared_length", 0.4, 0.7, _LENGTHS),
                log_parameter("own_scale", 0.5, 1.0),
                log_parameter("own_length", 0.4, 0.7, _LENGTHS),
                log_parameter("noise", 0.5, 1.0, (1e-2, 1e2)),
                log_parameter("row_jitter", self.jitter, 0.7, (1e-3, 1.0)),
                log_parameter("start_scale", 1.0, 1.0),
                log_parameter("start_length", 0.15, 0.7, _START_LENGTHS),
                _deviations(task_count),
            )
        )

    def prior(
        self, values: Array, positions: Array, task_count: int, level: float
    ) -> tuple[GridPrior, PriorPullback]:
        (
            scale,
            length,
            own_scale,
            own_length,
            noise_scale,
            jitter_share,
            start_scale,
            start_length,
        ) = np.exp(values[:8])
        curve, curve_by_length = matern52_by_length(positions, length)
        own, own_by_length = matern52_by_length(positions, own_length)
        centred = positions - 0.5
        shared = scale**2 * (curve + _TREND * np.outer(centred, centred))
        jitter = (jitter_share * noise_scale) ** 2
        noise = _task_noise(values[4], values[8:])
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
        centred = positions - 0.5
        return np.asarray(np.exp(2.0 * values[0]) * (curve + _TREND * np.outer(centred, centred)))


@dataclass(frozen=True)
class RowEffects(GridModel):
    """m_j + g_i + e_ij with independent row effects g_i: rows need no order and no distance."""

    def parameters(self, task_count: int) -> ParameterVector:
        return ParameterVector(
            (
                log_parameter("shared_scale", 1.0, 1.0),
                log_parameter("noise", 0.5, 1.0, (1e-2, 1e2)),
                _deviations(task_count),
            )
        )

    def prior(
        self, values: Array, positions: Array, task_count: int, level: float
    ) -> tuple[GridPrior, PriorPullback]:
        size = len(positions)
        noise = _task_noise(values[1], values[2:])
        shared = float(np.exp(2.0 * values[0])) * np.eye(size)
        prior = GridPrior(shared, np.full((size, size), level), np.ones((task_count, 1)), noise)

        def pull(gradient: GridGradient) -> Array:
            by_task = 2.0 * noise * gradient.noise
            by_scale = 2.0 * float((gradient.shared * shared).sum())
            return np.concatenate([[by_scale, float(by_task.sum())], by_task])

        return prior, pull


@dataclass(frozen=True)
class TaskCurves(GridModel):
    """m_j + h_j(x) + e_ij: a Gaussian process per task, with hyperparameters they agree on."""

    def parameters(self, task_count: int) -> ParameterVector:
        return ParameterVector(
            (
                log_parameter("own_scale", 1.0, 1.0),
                log_parameter("own_length", 0.4, 0.7, _LENGTHS),
                log_parameter("noise", 0.5, 1.0, (1e-2, 1e2)),
                _deviations(task_count),
            )
        )

    def prior(
        self, values: Array, positions: Array, task_count: int, level: float
    ) -> tuple[GridPrior, PriorPullback]:
        size = len(positions)
        variance = float(np.exp(2.0 * values[0]))
        own, own_by_length = matern52_by_length(positions, float(np.exp(values[1])))
        noise = _task_noise(values[2], values[3:])
        nothing = np.zeros((task_count, 1))  # no task follows the shared curve
        prior = GridPrior(np.eye(size), level + variance * own, nothing, noise)

        def pull(gradient: GridGradient) -> Array:
            by_task = 2.0 * noise * gradient.noise
            head = [
                2.0 * variance * float((gradient.own * own).sum()),
                variance * float((gradient.own * own_by_length).sum()),
                float(by_task.sum()),
            ]
            return np.concatenate([head, by_task])

        return prior, pull
