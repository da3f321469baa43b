"""A Gaussian process over learning curves of many configurations: values f(x, t) on a logarithmic
time axis u.

    k((x, u, c), (x', u', c')) = s(u) s(u') { kx(x, x') [a1 + a2 k1(|u - u'|)] + [c = c'] a3 k2(|u - u'|) }
    s(u) = exp(g (u - 1/2)),     mean m + b u,     noise variance added to the diagonal

kx is Matern 5/2 with one length scale per column, k1 and k2 are Matern 5/2 with their own. The
first bracket is what similar configurations share: a level, and a shape that changes with time. The
last term is what a configuration has of its own. The *slope* b says that training lowers losses, so
a run that was left is expected to go on falling, not to return to the mean of all. The *growth* g
says how much more configurations differ late than early: where first steps tell nothing, there is
nothing to be won there.

Hyperparameters live on one vector of logarithms (m, b and g as they are) with normal priors there,
found by maximum a posteriori with a *tempered* likelihood: in a list its logarithm counts 0.3
times, because neighbouring values of a curve are not worth as much as independent ones and no real
curve follows the formula. Fitted in full, the model becomes sure of what it cannot know. In a
continuous space most runs give one row, and it counts in full. The gradient never
touches (n, n, d) arrays: with G = (K^-1 - alpha alpha^T) / 2, sums of G over the rows of each pair
of configurations, and of each pair of times, come first.

    # rows: features of configurations, which row is whose, times
    theta = fit_curves(rows, targets, columns)

Swersky, Snoek, Adams, Freeze-Thaw Bayesian Optimization, 2014, has the idea of sharing across
configurations; the product form is that of Lin et al., Scaling Gaussian Processes for Learning
Curve Prediction via Latent Kronecker Structure, 2024.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from scrimp.errors import NumericalError
from scrimp.gp.cholesky import cholesky, inverse_lower, log_determinant, solve
from scrimp.gp.matern import matern52, matern52_and_slope

__all__ = [
    "CurveParameters",
    "CurveRows",
    "curve_covariance",
    "fit_curve_process",
    "negative_log_posterior",
    "prior_mode",
]

Array = NDArray[np.float64]
Places = NDArray[np.intp]

SHARED = 9
"""How many parameters follow the length scales: level, shape, own, shape_time, own_time, noise,
mean, slope, growth."""

PRIOR_MEANS = (-0.8, 0.2, -3.0, -0.5, -0.5, -5.0, 0.0, -1.0, 0.0)
PRIOR_DEVIATIONS = (1.22, 1.22, 1.22, 0.7, 0.7, 1.4, 1.0, 1.0, 0.7)
LOWEST = (-5.0, -5.0, -5.0, -3.0, -3.0, -11.0, -3.0, -6.0, -4.0)
HIGHEST = (3.0, 3.0, 3.0, 2.0, 2.0, 0.0, 3.0, 6.0, 4.0)
LENGTH = 0.3  # a length-scale at its mode, in units of the diagonal of the cube
LENGTH_BOUND = 4.0
LEAST_NOISE = 1e-6
TEMPER = 0.3  # in a list


@dataclass(frozen=True)
class CurveRows:
    """n observations of C configurations with f features: ``owner`` says which column (hence length
    scale) a feature is of."""

    features: Array  # (C, f)
    owner: Places  # (f,)
    config: Places  # (n,)
    time: Array  # (n,)

    @property
    def dimension(self) -> int:
        """The number of length scales d."""
        return int(self.owner.max()) + 1 if len(self.owner) else 0


@dataclass(frozen=True)
class CurveParameters:
    """The vector of hyperparameters by name; everything natural, not logarithmic. Functions of
    times are of any shape."""

    lengths: Array  # (d,)
    level: float
    shape: float
    own: float
    shape_time: float
    own_time: float
    noise: float
    mean: float
    slope: float
    growth: float

    @staticmethod
    def of(theta: Array) -> "CurveParameters":
        """From the vector (d + 9,)."""
        return CurveParameters(
            np.exp(theta[:-SHARED]), *np.exp(theta[-SHARED:-3]).tolist(), *theta[-3:].tolist()
        )

    def means(self, times: Array) -> Array:
        """m + b u."""
        return self.mean + self.slope * times

    def scales(self, times: Array) -> Array:
        """s(u)."""
        return np.asarray(np.exp(self.growth * (times - 0.5)))

    def variances(self, times: Array) -> Array:
        """k of a point with itself, without noise."""
        return (self.level + self.shape + self.own) * self.scales(times) ** 2

    def own_variances(self, times: Array) -> Array:
        """The part of it that a configuration has of its own."""
        return self.own * self.scales(times) ** 2

    @property
    def noise_variance(self) -> float:
        """What is added to the diagonal."""
        return self.noise + LEAST_NOISE


def squared_distances(a: Array, b: Array) -> Array:
    """Between rows (m, f) and (n, f), as (m, n); rounding below zero is cut off."""
    squares: Array = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2.0 * (a @ b.T)
    return np.maximum(squares, 0.0, out=squares)


@lru_cache(maxsize=32)
def prior_mode(dimension: int) -> tuple[float, ...]:
    """The vector at which the prior is largest: where the first fit starts."""
    return (math.log(LENGTH * math.sqrt(max(dimension, 1))),) * dimension + PRIOR_MEANS


def curve_covariance(rows: CurveRows, theta: Array) -> Array:
    """K (n, n) of the observations, without noise: the formula written out."""
    p = CurveParameters.of(theta)
    scaled = rows.features / p.lengths[rows.owner]
    across = matern52(squared_distances(scaled, scaled))[np.ix_(rows.config, rows.config)]
    apart = (rows.time[:, None] - rows.time) ** 2
    shared = p.level + p.shape * matern52(apart / p.shape_time**2)
    same = rows.config[:, None] == rows.config
    scales = p.scales(rows.time)
    return np.asarray(
        np.outer(scales, scales)
        * (across * shared + same * p.own * matern52(apart / p.own_time**2))
    )


def negative_log_posterior(theta: Array, rows: CurveRows, targets: Array) -> tuple[float, Array]:
    """-0.3 log p(targets | theta) - log p(theta) up to a constant, and its gradient. Rows must be
    grouped by configuration."""
    return _Objective(rows, targets, np.array(prior_mode(rows.dimension)), TEMPER)(theta)


def fit_curve_process(
    rows: CurveRows,
    targets: Array,
    start: Array | None = None,
    steps: int = 8,
    mode: Array | None = None,
    temper: float = TEMPER,
) -> Array:
    """The vector of hyperparameters after at most ``steps`` iterations of L-BFGS-B from ``start``,
    or from the prior's mode.

    ``mode``: where the prior is largest, instead of `prior_mode`; ``temper``: how often the
    logarithm of the likelihood counts.
    `NumericalError` when no finite value is found.
    """
    order = np.argsort(rows.config, kind="stable")
    grouped = CurveRows(rows.features, rows.owner, rows.config[order], rows.time[order])
    mode = np.array(prior_mode(rows.dimension)) if mode is None else mode
    low = np.concatenate([np.full(rows.dimension, -LENGTH_BOUND), LOWEST])
    high = np.concatenate([np.full(rows.dimension, LENGTH_BOUND), HIGHEST])
    begin = np.clip(mode if start is None or start.shape != mode.shape else start, low, high)
    objective = _Objective(grouped, targets[order], mode, temper)
    found = minimize(
        objective,
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"maxiter": steps, "maxfun": 2 * steps + 4},
    )
    if not (np.isfinite(found.fun) and np.isfinite(found.x).all()):
        raise NumericalError(
            f"the likelihood of {len(targets)} curve values is not finite at any step of the fit;"
            " check the reported values"
        )
    return np.asarray(found.x, dtype=float)


class _Objective:
    """The negative log posterior with everything that does not depend on theta computed once."""

    def __init__(self, rows: CurveRows, targets: Array, mode: Array, temper: float) -> None:
        self.targets, self.temper = targets, temper
        configs, self.config = np.unique(rows.config, return_inverse=True)
        self.times = rows.time
        times, self.time = np.unique(rows.time, return_inverse=True)
        z = rows.features[configs]
        self.squares = np.zeros((rows.dimension, len(configs), len(configs)))
        for feature, column in enumerate(rows.owner):
            self.squares[column] += (z[:, feature, None] - z[:, feature]) ** 2
        self.apart = (times[:, None] - times) ** 2
        self.starts = np.flatnonzero(np.diff(self.config, prepend=-1))
        self.by_time = (self.time[:, None] == np.arange(len(times))).astype(float)
        self.same = (self.config[:, None] == self.config).astype(float)
        self.mode = mode
        self.deviation = np.concatenate([np.ones(rows.dimension), PRIOR_DEVIATIONS])

    def __call__(self, theta: Array) -> tuple[float, Array]:
        p = CurveParameters.of(theta)
        inverse_squares = p.lengths**-2
        kx, kx_slope = matern52_and_slope(np.tensordot(inverse_squares, self.squares, 1))
        k1, k1_slope = matern52_and_slope(self.apart / p.shape_time**2)
        k2, k2_slope = matern52_and_slope(self.apart / p.own_time**2)
        across = kx[np.ix_(self.config, self.config)]
        shared = (p.level + p.shape * k1)[np.ix_(self.time, self.time)]
        own = self.same * (p.own * k2)[np.ix_(self.time, self.time)]
        scales = p.scales(self.times)
        covariance = np.outer(scales, scales) * (across * shared + own)
        try:
            factor = cholesky(covariance + p.noise_variance * np.eye(len(scales)))
        except NumericalError:
            return 1e25, np.zeros_like(theta)
        residual = self.targets - p.means(self.times)
        alpha = solve(factor, residual)
        apart = (theta - self.mode) / self.deviation
        fit = 0.5 * float(residual @ alpha) + 0.5 * log_determinant(factor)
        value = self.temper * fit + 0.5 * float(apart @ apart)
        lower = inverse_lower(factor)
        half = 0.5 * (lower + np.tril(lower, -1).T - np.outer(alpha, alpha))
        gradient = np.empty_like(theta)
        gradient[-4:] = [
            p.noise * float(np.trace(half)),
            -float(alpha.sum()),
            -float(alpha @ self.times),
            2.0 * float(np.einsum("ij,ij->i", half, covariance) @ (self.times - 0.5)),
        ]
        half *= np.outer(scales, scales)
        by_pair = half * shared
        by_pair = (
            np.add.reduceat(np.add.reduceat(by_pair, self.starts, axis=0), self.starts, axis=1)
            * kx_slope
        )
        gradient[:-SHARED] = -2.0 * inverse_squares * np.tensordot(self.squares, by_pair, 2)
        gradient[-SHARED:-4] = self._by_amplitudes_and_times(
            p, half, (across, k1, k1_slope, k2, k2_slope)
        )
        return value, self.temper * gradient + apart / self.deviation

    def _by_amplitudes_and_times(
        self, p: CurveParameters, half: Array, parts: tuple[Array, ...]
    ) -> list[float]:
        """By level, shape, own, shape_time and own_time, from G s(u) s(u'); sums over pairs of
        times first."""
        across, k1, k1_slope, k2, k2_slope = parts
        all_pairs = self.by_time.T @ (half * across) @ self.by_time
        own_pairs = self.by_time.T @ (half * self.same) @ self.by_time
        return [
            p.level * float(all_pairs.sum()),
            p.shape * float((all_pairs * k1).sum()),
            p.own * float((own_pairs * k2).sum()),
            -2.0 * p.shape * float((all_pairs * k1_slope * self.apart).sum()) / p.shape_time**2,
            -2.0 * p.own * float((own_pairs * k2_slope * self.apart).sum()) / p.own_time**2,
        ]
