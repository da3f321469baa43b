"""A prior over the study at hand, made of past studies: their average, their differences, and a
rest.

With mu_i the means of M past models, m(x) their average and A_i(x) = (mu_i(x) - m(x)) / sqrt(M), a
new task is believed to be

    c y(x) = a + g m(x) + h(x) + noise,      h ~ GP(0, rho sum_i A_i A_i' + (1 - rho) kappa k)

The offset a is flat, the scale c > 0 is found in closed form, kappa is the mean variance of the
first part, and k is a Matern kernel with the length-scales that past studies share. Which g (0 or
1), rho and noise: nobody knows, so `beliefs` lists a grid of them, and `evidences` says how
probable each is after n evaluations. With g = 0 the average joins the covariance, where its sign
does not matter: even a past that is upside down tells which configurations belong together.

The closed form: with Sigma = covariance + noise, P = Sigma^-1 - Sigma^-1 1 1' Sigma^-1 / (1'
Sigma^-1 1), yy = y'Py, ym = g y'Pm, mm = g m'Pm, a density of c with k0 = 1 observation of size s0,
and q = yy + k0 / s0^2,

    c = (ym + sqrt(ym^2 + 4 (n - 1 + k0) q)) / (2 q)
    log evidence = (n - 1 + k0) log c - c^2 q / 2 + c ym - mm / 2 - log|Sigma| / 2 - log(1' Sigma^-1 1) / 2
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from scrimp.gp.kernel import Kernel
from scrimp.surrogates.surrogate import Array
from scrimp.transfer.source_models import MeansPullback, SourceModels

__all__ = ["Blocks", "TaskBasis", "TaskBelief", "beliefs", "evidences"]

SHARES = (0.0, 0.5, 0.8, 0.95)
NOISES = (0.003, 0.03, 0.2)


@dataclass(frozen=True)
class TaskBelief:
    """One belief about the task at hand, as a sum of four covariances (see `TaskBasis.blocks`) and
    a mean.

    ``parts``: what the differences, the average, the rest and the model at hand's own kernel are
    multiplied by.
    """

    gain: float
    parts: tuple[float, float, float, float]
    noise: float

    def covariance(self, blocks: Array) -> Array:
        """Of n targets in units of the scale, noise included, from blocks (4, n, n)."""
        return np.asarray(
            np.tensordot(np.array(self.parts), blocks, 1) + self.noise * np.eye(blocks.shape[1])
        )


def beliefs(kappa: float) -> tuple[TaskBelief, ...]:
    """The grid: with the past average as mean or among the covariances, four shares of past
    differences, three noises."""
    found = []
    for share in SHARES:
        for noise in NOISES:
            found.append(TaskBelief(0.0, (share, share, 1.0 - share, 0.0), noise))
            found.append(TaskBelief(1.0, (share, 0.0, (1.0 - share) * kappa, 0.0), noise * kappa))
    return tuple(found)


Blocks = tuple[Array, Array]
"""Covariances (4, n, m) between two sets of inputs, and variances (4, n) of the first."""


@dataclass(frozen=True, eq=False)
class TaskBasis:
    """What a task is made of: averages and differences of past means, a ``rest`` and an ``own``
    kernel of unit variance."""

    sources: SourceModels
    rest: Kernel
    own: Kernel
    kappa: float

    def directions(self, x: Array) -> tuple[Array, Array]:
        """m (n,) and A (n, M)."""
        return _directions(self.sources.means(x))

    def blocks(self, x1: Array, x2: Array) -> Blocks:
        """sum_i A_i(x1) A_i(x2), m(x1) m(x2), rest(x1, x2) and own(x1, x2)."""
        (m1, a1), (m2, a2) = self.directions(x1), self.directions(x2)
        ones = np.ones(len(x1))
        cross = np.stack([a1 @ a2.T, np.outer(m1, m2), self.rest(x1, x2), self.own(x1, x2)])
        return cross, np.stack([np.einsum("ij,ij->i", a1, a1), m1**2, ones, ones])

    def blocks_and_pullback(
        self, x1: Array, x2: Array
    ) -> tuple[Array, Blocks, Callable[[Array, Array, Array], Array]]:
        """m(x1), the blocks, and pull(dm (n,), d_cross (4, n, m), d_variance (4, n)) -> gradient of
        x1 (n, d)."""
        means, back = self.sources.means_and_pullback(x1)
        (m1, a1), (m2, a2) = _directions(means), self.directions(x2)
        rest, pull_rest = self.rest.cross_and_pullback(x1, x2)
        own, pull_own = self.own.cross_and_pullback(x1, x2)
        ones = np.ones(len(x1))
        cross = np.stack([a1 @ a2.T, np.outer(m1, m2), rest, own])
        variance = np.stack([np.einsum("ij,ij->i", a1, a1), m1**2, ones, ones])
        chained = _chained(back, len(self.sources))

        def pull(dm: Array, d_cross: Array, d_variance: Array) -> Array:
            d_differences = d_cross[0] @ a2 + 2.0 * d_variance[0][:, None] * a1
            d_average = dm + d_cross[1] @ m2 + 2.0 * d_variance[1] * m1
            return chained(d_average, d_differences) + pull_rest(d_cross[2]) + pull_own(d_cross[3])

        return m1, (cross, variance), pull


def _directions(means: Array) -> tuple[Array, Array]:
    average = means.mean(axis=1)
    return average, (means - average[:, None]) / np.sqrt(means.shape[1])


def _chained(back: MeansPullback, count: int) -> Callable[[Array, Array], Array]:
    """From gradients of m (n,) and A (n, M) to those of x."""

    def pull(d_average: Array, d_differences: Array) -> Array:
        d_means = d_differences / np.sqrt(count)
        return back(d_means + ((d_average - d_means.sum(axis=1)) / count)[:, None])

    return pull


def evidences(
    covariances: Array, gains: Sequence[float], y: Array, average: Array, size: float
) -> tuple[Array, Array]:
    """log evidence (K,) and scale c (K,) of K beliefs with covariances (K, n, n), noise included.

    ``y`` (n,) standardised targets, ``average`` m (n,) of past means at the same inputs, ``size``
    s0.
    """
    count, gain = len(y), np.asarray(gains, dtype=float)
    factors = np.linalg.cholesky(covariances)
    ones = np.ones(count)
    right = np.broadcast_to(np.stack([ones, y, average], axis=1), (len(gain), count, 3))
    whitened = np.linalg.solve(factors, right)
    products = np.einsum("kni,knj->kij", whitened, whitened)  # v' Sigma^-1 w for v, w in 1, y, m
    flat = products[:, 0, 0]
    centred = products - products[:, :, :1] * products[:, :1, :] / flat[:, None, None]
    yy, ym, mm = centred[:, 1, 1], gain * centred[:, 1, 2], gain * centred[:, 2, 2]
    q, freedom = yy + 1.0 / size**2, count  # n - 1 + k0, k0 = 1
    scale = (ym + np.sqrt(ym**2 + 4.0 * freedom * q)) / (2.0 * q)
    determinants = 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    log_evidence = (
        freedom * np.log(scale)
        - 0.5 * scale**2 * q
        + scale * ym
        - 0.5 * mm
        - 0.5 * determinants
        - 0.5 * np.log(flat)
    )
    return np.asarray(log_evidence), np.asarray(scale)
