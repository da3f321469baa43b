"""Means of many past models through one kernel: exact at common points, smooth in between.

A continuous space has no list of candidates to work out beforehand, and M models of n observations
each are M n kernel values per candidate. With p common points Z and W = (k(Z, Z) + jitter)^-1
mu(Z), all M means are

    mu(x) ~ k(x, Z) W

one block of kernel values for all models. `common_means` measures what is lost on points it was not
given, and declines when that is more than a trifle.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scrimp.acquisition.domain import Domain
from scrimp.acquisition.maximize import MaximizeSettings
from scrimp.gp.cholesky import cholesky, solve
from scrimp.gp.kernel import Kernel
from scrimp.surrogates.surrogate import Array

__all__ = ["LEAST_SHARE", "SEARCH", "CommonMeans", "common_means", "common_rows"]

SEARCH = MaximizeSettings(candidates=768, starts=6)
"""How far a decision looks when models of past studies score every candidate."""

JITTER = 1e-6
MOST = 512
LEAST_SHARE = 0.98  # of the variance of each model's mean, to be explained on points held back


@dataclass(frozen=True, eq=False)
class CommonMeans:
    """The kernel, the common points (p, d) and the weights (p, M)."""

    kernel: Kernel
    points: Array
    weights: Array

    def __call__(self, x: Array) -> Array:
        """(m, M)"""
        return np.asarray(self.kernel(x, self.points) @ self.weights)

    def only(self, used: Sequence[int]) -> "CommonMeans":
        """Of some models."""
        return replace(self, weights=self.weights[:, list(used)])

    def and_pullback(self, x: Array) -> tuple[Array, Callable[[Array], Array]]:
        """(m, M), and pull(d (m, M)) -> d_x (m, d)."""
        cross, back = self.kernel.cross_and_pullback(x, self.points)
        return np.asarray(cross @ self.weights), lambda d: back(d @ self.weights.T)


def common_means(
    kernel: Kernel, points: Array, values: Array, held_back: int, least: float = LEAST_SHARE
) -> CommonMeans | None:
    """The means with values (p, M) at ``points``; the last ``held_back`` of them judge, and None
    means "not good enough"."""
    kept = len(points) - held_back
    covariance = kernel(points[:kept], points[:kept])
    covariance.flat[:: kept + 1] += JITTER
    found = CommonMeans(kernel, points[:kept], solve(cholesky(covariance), values[:kept]))
    truth = values[kept:]
    lost = ((found(points[kept:]) - truth) ** 2).mean(axis=0) / np.maximum(truth.var(axis=0), 1e-12)
    return found if float(np.median(1.0 - lost)) >= least else None


def common_rows(domain: Domain, tried: Array, seed: int) -> Array:
    """Points all over the space and, half as many, among those that past studies ``tried`` (t, d),
    in random order."""
    rng = np.random.default_rng(seed)
    count = min(MOST, 64 * domain.dimension)
    some = tried[rng.permutation(len(tried))[: count // 2]]
    return rng.permutation(np.unique(np.concatenate([domain.sample(count, rng), some]), axis=0))
