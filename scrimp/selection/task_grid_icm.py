"""The intrinsic coregionalisation model of a grid: K((x, t), (x', t')) = K_x(x, x') K_t(t, t') with
K_t = L L' of low rank.

K_x is the squared exponential exp(-(x - x')^2 / (2 l^2)) and L (J, rank) holds the loadings of the
tasks on ``rank`` curves; its size is the output scale. Every task has its own loading to learn, so
the model needs cells of every task. Loadings have a standard normal prior (in units of the spread
within tasks), without which so many of them cannot be estimated.

`CoregionalDiagonal` is K_t = L L' + diag(v) of any rank up to the number of tasks: each task has a
curve of its own beside those it shares. There the prior of a loading shrinks as 1 / sqrt(rank), so
that more curves do not mean larger ones.

Bonilla, Chai, Williams, "Multi-task Gaussian process prediction", 2008; Swersky, Snoek, Adams,
"Multi-task Bayesian optimization", 2013.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from scrimp.gp.priors import IDENTITY, Hyperparameter, Normal, ParameterVector
from scrimp.selection.task_grid_algebra import GridPrior
from scrimp.selection.task_grid_cells import GridGradient
from scrimp.selection.task_grid_models import GridModel, PriorPullback, log_parameter
from scrimp.selection.task_grid_separable import SeparableGradient, SeparablePrior
from scrimp.surrogates.surrogate import Array

__all__ = ["Coregional", "CoregionalDiagonal", "squared_exponential"]


def squared_exponential(positions: Array, length: float) -> tuple[Array, Array]:
    """Correlations exp(-d^2 / 2), d = |x - x'| / length, and their derivatives by log length."""
    square = np.square((positions[:, None] - positions) / length)
    correlation = np.exp(-0.5 * square)
    return correlation, square * correlation


@dataclass(frozen=True)
class Coregional(GridModel):
    """K_x (x) L L' plus a level per task and one noise for all."""

    rank: int = 2

    def parameters(self, task_count: int) -> ParameterVector:
        loadings = [
            Hyperparameter(
                f"loading_{curve}", Normal(0.0, 1.0), (-10.0, 10.0), IDENTITY, size=task_count
            )
            for curve in range(min(self.rank, task_count))
        ]
        length = log_parameter("length", 0.4, 0.7, (0.03, 4.0))
        return ParameterVector((length, log_parameter("noise", 0.5, 1.0, (1e-2, 1e2)), *loadings))

    def start(self, task_count: int) -> Array:
        """Equal loadings on the first curve and small waves on the others."""
        return np.concatenate(
            [
                self.parameters(task_count).initial[:2],
                _waves(min(self.rank, task_count), task_count),
            ]
        )

    def prior(
        self, values: Array, positions: Array, task_count: int, level: float
    ) -> tuple[GridPrior, PriorPullback]:
        size = len(positions)
        correlation, by_length = squared_exponential(positions, float(np.exp(values[0])))
        loadings = values[2:].reshape(-1, task_count).T
        rank = loadings.shape[1]
        noise = np.full(task_count, float(np.exp(2.0 * values[1])))
        shared = np.asarray(np.kron(np.eye(rank), correlation), np.float64)
        prior = GridPrior(shared, np.full((size, size), level), loadings, noise)

        def pull(gradient: GridGradient) -> Array:
            blocks = np.einsum("pipk->ik", gradient.shared.reshape(rank, size, rank, size))
            by_noise = float((2.0 * noise * gradient.noise).sum())
            return np.concatenate(
                [[float((blocks * by_length).sum()), by_noise], gradient.loadings.T.ravel()]
            )

        return prior, pull


@dataclass(frozen=True)
class CoregionalDiagonal(GridModel):
    """K_x (x) (L L' + diag(v)) plus a level per task and one noise for all; ``rank="full"`` gives L
    a column per task."""

    rank: int | Literal["full"] = 2
    diagonal: bool = True

    def _columns(self, task_count: int) -> int:
        return task_count if self.rank == "full" else min(self.rank, task_count)

    def parameters(self, task_count: int) -> ParameterVector:
        columns = self._columns(task_count)
        spread = float(np.sqrt(2.0 / max(columns, 2)))
        loadings = [
            Hyperparameter(
                f"loading_{curve}", Normal(0.0, spread), (-10.0, 10.0), IDENTITY, size=task_count
            )
            for curve in range(columns)
        ]
        limits = (float(np.log(1e-3)), float(np.log(1e2)))
        own = [
            Hyperparameter(
                "log_own", Normal(float(np.log(0.3)), 0.7), limits, IDENTITY, size=task_count
            )
        ]
        length = log_parameter("length", 0.4, 0.7, (0.03, 4.0))
        noise = log_parameter("noise", 0.5, 1.0, (1e-2, 1e2))
        return ParameterVector((length, noise, *(own if self.diagonal else []), *loadings))

    def start(self, task_count: int) -> Array:
        """As for `Coregional`; the task's own curves begin at their prior."""
        columns = self._columns(task_count)
        head = self.parameters(task_count).initial[: -columns * task_count]
        return np.concatenate([head, _waves(columns, task_count)])

    def prior(
        self, values: Array, positions: Array, task_count: int, level: float
    ) -> tuple[SeparablePrior, PriorPullback]:
        correlation, by_length = squared_exponential(positions, float(np.exp(values[0])))
        noise = np.full(task_count, float(np.exp(2.0 * values[1])))
        split = 2 + (task_count if self.diagonal else 0)
        own = np.exp(2.0 * values[2:split]) if self.diagonal else np.zeros(task_count)
        loadings = values[split:].reshape(-1, task_count).T
        prior = SeparablePrior(correlation, loadings @ loadings.T + np.diag(own), level, noise)

        def pull(gradient: SeparableGradient) -> Array:
            head = [
                float((gradient.curve * by_length).sum()),
                float((2.0 * noise * gradient.noise).sum()),
            ]
            by_own = 2.0 * own * np.diag(gradient.tasks) if self.diagonal else np.zeros(0)
            return np.concatenate([head, by_own, 2.0 * (gradient.tasks @ loadings).T.ravel()])

        return prior, pull


def _waves(columns: int, task_count: int) -> Array:
    """Loadings to begin with (columns J,): one on the first curve, small waves after it; collinear
    columns of L would stay so."""
    place = (np.arange(task_count) + 0.5) / task_count
    waves = [0.3 * np.cos(np.pi * curve * place) for curve in range(1, columns)]
    return np.concatenate([np.ones(task_count), *waves])
