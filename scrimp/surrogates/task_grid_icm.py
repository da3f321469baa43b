"""The intrinsic coregionalisation model of a grid: K((x, t), (x', t')) = K_x(x, x') K_t(t, t') with K_t = L L' of low rank.

K_x is the squared exponential exp(-(x - x')^2 / (2 l^2)) and L (J, rank) holds the loadings of the tasks on ``rank`` curves;
its size is the output scale. Every task has its own loading to learn, so the model needs cells of every task. Loadings
have a standard normal prior (in units of the spread within tasks), without which so many of them cannot be estimated.

Bonilla, Chai, Williams, "Multi-task Gaussian process prediction", 2008; Swersky, Snoek, Adams, "Multi-task Bayesian
optimization", 2013.
"""

from dataclasses import dataclass

import numpy as np

from scrimp.gp.priors import IDENTITY, Normal, Parameter, ParameterVector
from scrimp.surrogates.surrogate import Array
from scrimp.surrogates.task_grid_algebra import GridGradient, GridPrior
from scrimp.surrogates.task_grid_models import GridModel, PriorPullback, log_parameter

__all__ = ["Coregional", "squared_exponential"]


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
            Parameter(f"loading_{curve}", Normal(0.0, 1.0), (-10.0, 10.0), IDENTITY, size=task_count)
            for curve in range(min(self.rank, task_count))
        ]
        length = log_parameter("length", 0.4, 0.7, (0.03, 4.0))
        return ParameterVector((length, log_parameter("noise", 0.5, 1.0, (1e-2, 1e2)), *loadings))

    def start(self, task_count: int) -> Array:
        """Equal loadings on the first curve and small waves on the others: collinear columns of L would stay collinear."""
        place = (np.arange(task_count) + 0.5) / task_count
        waves = [0.3 * np.cos(np.pi * curve * place) for curve in range(1, min(self.rank, task_count))]
        return np.concatenate([self.parameters(task_count).initial[:2], np.ones(task_count), *waves])

    def prior(self, values: Array, positions: Array, task_count: int, level: float) -> tuple[GridPrior, PriorPullback]:
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
            return np.concatenate([[float((blocks * by_length).sum()), by_noise], gradient.loadings.T.ravel()])

        return prior, pull
