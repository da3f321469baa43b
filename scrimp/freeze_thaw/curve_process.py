"""Step 4 of a decision: the Gaussian process over learning curves: kernel, fit and posterior.

A curve value f(x, u) belongs to a configuration x and a time u on a logarithmic axis.

    k((x, u, c), (x', u', c')) = s(u) s(u') { kx(x, x') [a1 + a2 k1(|u - u'|)] + [c = c'] a3 k2(|u - u'|) }
    s(u) = exp(g (u - 1/2)),     mean m + b u,     noise variance added to the diagonal

kx is Matern 5/2 with one length scale per column, k1 and k2 are Matern 5/2 with their own. Similar
configurations share a *level* (a1) and the *shape* of their curve (a2); each run c also has a part of
its *own* (a3). The *slope* b says that training lowers losses, so a paused run is expected to keep
falling instead of returning to the mean of all runs. The *growth* g says whether configurations differ
more late (g > 0) or early (g < 0).

*Fit*. The hyperparameters are one vector theta: logarithms, but for m, b and g. They have normal
priors and are found by maximum a posteriori. In a list the log likelihood is weighted by 0.3,
because neighbouring values of a curve are not independent and no real curve follows the formula;
fitted in full, the model is too sure of itself.

*Posterior*. `CurveFactor` keeps the Cholesky factor L of K + noise I and appends one row per new
observation. With the whitened columns W = L^-1 k(rows, points) and residuals z~ = L^-1 (z - m(u)),

    mean = m(u) + W^T z~,        variance = k - column sums of W^2.

*Pending* evaluations are rows at the end whose entry of z~ is zero: their outcome is taken to be the
prediction. They narrow the variance and leave every mean as it is.

    theta = fit_curve_process(rows, targets)
    factor = CurveFactor(theta, owner)
    factor.append(features, configs, times)
    factor.with_pending(features, configs, times)

Swersky, Snoek, Adams, Freeze-Thaw Bayesian Optimization, 2014 (sharing across configurations). Lin
et al., Scaling Gaussian Processes for Learning Curve Prediction via Latent Kronecker Structure, 2024
(the product form). Ginsbourger, Le Riche, Carraro, Kriging is well-suited to parallelize
optimization, 2010 (pending evaluations: the kriging believer).
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas
from scipy.optimize import minimize

from scrimp.errors import NumericalError
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.gp.cholesky import cholesky, inverse_lower, log_determinant, solve
from scrimp.gp.stationary import matern52, matern52_and_slope

Array = NDArray[np.float64]
Places = NDArray[np.intp]

CurvePullback = Callable[[Array, Array], Array]
"""pull(d_mean (m,), d_deviation (m,)) -> d_scaled (m, f)."""

SHARED_PARAMETERS = 9
"""Parameters that follow the length scales in theta: level, shape, own, shape_time, own_time, noise,
mean, slope, growth."""

MIN_POSTERIOR_VARIANCE = 1e-10
"""Guards the square root against rounding below zero."""


# --- kernel ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CurveRows:
    """Observations of C configurations, n in all. ``owner`` gives the column, hence the length
    scale, of each of the f features."""

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
    """The hyperparameters by name, natural, not logarithmic. Functions of times take any shape."""

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
        """Read the vector theta (d + 9,)."""
        shared = theta[-SHARED_PARAMETERS:]
        lengths = np.exp(theta[:-SHARED_PARAMETERS])
        return CurveParameters(lengths, *np.exp(shared[:-3]).tolist(), *shared[-3:].tolist())

    def means(self, times: Array) -> Array:
        """Return m + b u."""
        return self.mean + self.slope * times

    def scales(self, times: Array) -> Array:
        """Return s(u)."""
        return np.asarray(np.exp(self.growth * (times - 0.5)))

    def variances(self, times: Array) -> Array:
        """Return k of a point with itself, without noise."""
        return (self.level + self.shape + self.own) * self.scales(times) ** 2

    def own_variances(self, times: Array) -> Array:
        """Return the part of the variance that belongs to the configuration alone."""
        return self.own * self.scales(times) ** 2

    def foretold(self, early: float, late: float) -> float:
        """Return the share of the variance of a run at time ``late`` that one observation of it at
        time ``early`` explains: their squared correlation under the prior."""
        apart = (late - early) / np.array([self.shape_time, self.own_time])
        shape, own = matern52(apart**2).tolist()
        together = self.level + self.shape * shape + self.own * own
        whole = self.level + self.shape + self.own
        noise = self.noise_variance / float(self.scales(np.array(early))) ** 2
        return float(together**2 / (whole * (whole + noise)))

    @property
    def noise_variance(self) -> float:
        """The variance added to the diagonal."""
        return self.noise + NUMBERS.least_noise


def squared_distances(a: Array, b: Array) -> Array:
    """Return squared distances (m, n) between rows (m, f) and (n, f), at least 0."""
    squares: Array = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2.0 * (a @ b.T)
    return np.maximum(squares, 0.0, out=squares)


# --- fit ------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def prior_mode(dimension: int) -> tuple[float, ...]:
    """Return the theta at which the prior is largest, where the first fit starts."""
    length = math.log(NUMBERS.length_scale_mode * math.sqrt(max(dimension, 1)))
    return (length,) * dimension + NUMBERS.prior_means


def fit_curve_process(
    rows: CurveRows,
    targets: Array,
    start: Array | None = None,
    iterations: int = NUMBERS.fit_iterations,
    mode: Array | None = None,
    likelihood_weight: float = NUMBERS.likelihood_weight_of_list,
) -> Array:
    """Return theta after at most ``iterations`` of L-BFGS-B from ``start``, or from the prior's
    ``mode``, which is `prior_mode` unless past studies moved it.

    Raises `NumericalError` when no finite value is found.
    """
    order = np.argsort(rows.config, kind="stable")
    grouped = CurveRows(rows.features, rows.owner, rows.config[order], rows.time[order])
    mode = np.array(prior_mode(rows.dimension)) if mode is None else mode
    bound = np.full(rows.dimension, NUMBERS.length_scale_log_bound)
    low = np.concatenate([-bound, NUMBERS.lower_bounds])
    high = np.concatenate([bound, NUMBERS.upper_bounds])
    begin = np.clip(mode if start is None or start.shape != mode.shape else start, low, high)
    found = minimize(
        NegativeLogPosterior(grouped, targets[order], mode, likelihood_weight),
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"maxiter": iterations, "maxfun": 2 * iterations + 4},
    )
    if not (np.isfinite(found.fun) and np.isfinite(found.x).all()):
        raise NumericalError(
            f"the likelihood of {len(targets)} curve values is not finite at any step of the fit;"
            " check the reported values"
        )
    return np.asarray(found.x, dtype=float)


class NegativeLogPosterior:
    """The function -w log p(targets | theta) - log p(theta) up to a constant, with its gradient; w
    is the ``weight`` of the likelihood. Rows must be grouped by configuration. Everything that does
    not depend on theta is computed once.

    The gradient never touches (n, n, d) arrays: with G = (K^-1 - alpha alpha^T) / 2, sums of G over
    the rows of each pair of configurations, and of each pair of times, come first.
    """

    def __init__(self, rows: CurveRows, targets: Array, mode: Array, weight: float) -> None:
        self.targets, self.weight = targets, weight
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
        lengths = np.full(rows.dimension, NUMBERS.length_scale_deviation)
        self.deviation = np.concatenate([lengths, NUMBERS.prior_deviations])

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
        value = self.weight * fit + 0.5 * float(apart @ apart)
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
        lengths = -2.0 * inverse_squares * np.tensordot(self.squares, by_pair, 2)
        gradient[:-SHARED_PARAMETERS] = lengths
        gradient[-SHARED_PARAMETERS:-4] = self._by_amplitudes_and_times(
            p, half, (across, k1, k1_slope, k2, k2_slope)
        )
        return value, self.weight * gradient + apart / self.deviation

    def _by_amplitudes_and_times(
        self, p: CurveParameters, half: Array, parts: tuple[Array, ...]
    ) -> list[float]:
        """Return the gradient by level, shape, own, shape_time and own_time from G s(u) s(u'),
        summed over pairs of times first."""
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


# --- posterior ------------------------------------------------------------------------------------


class CurveFactor:
    """The factor L of the observations in the order in which they came: features (n, f),
    configuration numbers (n,) and times (n,)."""

    def __init__(self, theta: Array, owner: Places) -> None:
        self.parameters = CurveParameters.of(theta)
        self._lengths = self.parameters.lengths[owner]
        self.size = 0
        self._scaled: Array = np.zeros((0, len(owner)))
        self._configs: Places = np.zeros(0, dtype=np.intp)
        self._times: Array = np.zeros(0)
        self.lower: Array = np.zeros((0, 0), order="F")

    def scaled(self, features: Array) -> Array:
        """Return features in units of the length scales."""
        return features / self._lengths

    def append(self, features: Array, configs: Places, times: Array) -> None:
        """Append rows (k, f), (k,), (k,): the first ones factorised together, others one by one."""
        n, k = self.size, len(times)
        if k == 0:
            return
        self._reserve(n + k)
        self._scaled[n : n + k], self._configs[n : n + k], self._times[n : n + k] = (
            self.scaled(features),
            configs,
            times,
        )
        self.size = n + k
        cross = self.cross(self._scaled[n : n + k], configs, times)
        try:
            if n == 0:
                cross[np.diag_indices(k)] += self.parameters.noise_variance
                self.lower[:k, :k] = cholesky(cross)
            else:
                self._append_rows(n, cross)
        except NumericalError:
            self.size = n
            raise

    def _append_rows(self, first: int, cross: Array) -> None:
        whole = self.parameters.variances(self._times[: self.size]) + self.parameters.noise_variance
        for n in range(first, self.size):
            row = blas.dtrsv(self.lower[:n, :n], cross[:n, n - first], lower=1)
            left = float(whole[n] - row @ row)
            if not left > 0.0:
                raise NumericalError(
                    f"observation {n} of the curve model is determined by the others ({left:.3g} of"
                    " variance left); its noise is too small for the data"
                )
            self.lower[n, :n], self.lower[n, n] = row, np.sqrt(left)

    def with_pending(self, features: Array, configs: Places, times: Array) -> "CurveFactor":
        """Return a copy that ends with these rows.

        The copy is valid only until this factor grows or makes another copy, because both overwrite
        its pending rows.
        """
        pending = copy.copy(self)
        pending.append(features, configs, times)
        return pending

    def cross(self, scaled: Array, configs: Places | None, times: Array, first: int = 0) -> Array:
        """Return k (n - first, m) between the rows from ``first`` on and m points: scaled features,
        configuration numbers, times (m,).

        Points without numbers were never observed, and may share one time (1,).
        """
        p, here = self.parameters, slice(first, self.size)
        across = matern52(squared_distances(self._scaled[here], scaled))
        apart = (self._times[here, None] - times) ** 2
        covariance: Array = across * (p.level + p.shape * matern52(apart / p.shape_time**2))
        if configs is not None:
            row, point = np.nonzero(self._configs[here, None] == configs)
            covariance[row, point] += p.own * matern52(apart[row, point] / p.own_time**2)
        covariance *= p.scales(self._times[here])[:, None]
        covariance *= p.scales(times)
        return covariance

    def whiten(self, targets: Array) -> Array:
        """Return z~ = L^-1 (z - m(u)) for targets z (n,) of the first n rows."""
        n = len(targets)
        residual = targets - self.parameters.means(self._times[:n])
        return np.asarray(blas.dtrsv(self.lower[:n, :n], residual, lower=1)) if n else residual

    def weights(self, targets: Array) -> Array:
        """Return K^-1 (z - m(u)) for targets z (n,) of the first n rows: the mean elsewhere is
        m(u) + k^T weights."""
        n = len(targets)
        half = self.whiten(targets)
        return np.asarray(blas.dtrsv(self.lower[:n, :n], half, lower=1, trans=1)) if n else half

    def columns(self, scaled: Array, configs: Places | None, times: Array) -> Array:
        """Return W (n, m) of m points."""
        cross = np.asfortranarray(self.cross(scaled, configs, times))
        return np.asarray(
            blas.dtrsm(1.0, self.lower[: self.size, : self.size], cross, lower=1, overwrite_b=1)
        )

    def marginals(self, columns: Array, times: Array, whitened: Array) -> tuple[Array, Array]:
        """Return mean (m,) and standard deviation (m,) of the noise-free curve at times (m,) or
        (1,), from W (n, m) and z~ (k,), k <= n."""
        mean = self.parameters.means(times) + whitened @ columns[: len(whitened)]
        left = self.parameters.variances(times) - np.einsum("ij,ij->j", columns, columns)
        return mean, np.sqrt(np.maximum(left, MIN_POSTERIOR_VARIANCE))

    def joint(
        self, scaled: Array, configs: Places, times: Array, whitened: Array
    ) -> tuple[Array, Array]:
        """Return mean (m,) and covariance (m, m) of m points by configuration number and time."""
        columns = self.columns(scaled, configs, times)
        mean, _ = self.marginals(columns, times, whitened)
        p, apart = self.parameters, (times[:, None] - times) ** 2
        across = matern52(squared_distances(scaled, scaled))
        prior = across * (p.level + p.shape * matern52(apart / p.shape_time**2))
        prior += (configs[:, None] == configs) * p.own * matern52(apart / p.own_time**2)
        prior *= np.outer(p.scales(times), p.scales(times))
        return mean, prior - columns.T @ columns

    def marginals_and_pullback(
        self, scaled: Array, times: Array, whitened: Array
    ) -> tuple[Array, Array, CurvePullback]:
        """Return mean and standard deviation (m,) of points that were never observed, and the chain
        rule to their scaled features.

        With k_i = kx(x, x_i) t_i,  L L^T the covariance, and W = L^-1 k:

            d k = L^-T (z~ d_mean - W d_deviation / deviation),     d x = sum_i d k_i t_i kx'(|x - x_i|^2) 2 (x - x_i)
        """
        p, rows = self.parameters, self._scaled[: self.size]
        lower = self.lower[: self.size, : self.size]
        kx, slope = matern52_and_slope(squared_distances(rows, scaled))
        apart = (self._times[: self.size, None] - times) ** 2
        shared = p.level + p.shape * matern52(apart / p.shape_time**2)
        shared *= p.scales(self._times[: self.size, None]) * p.scales(times)
        columns = np.asarray(blas.dtrsm(1.0, lower, np.asfortranarray(kx * shared), lower=1))
        mean, deviation = self.marginals(columns, times, whitened)
        known = np.pad(whitened, (0, self.size - len(whitened)))[:, None]

        def pull(d_mean: Array, d_deviation: Array) -> Array:
            inner = np.asfortranarray(known * d_mean - columns * (d_deviation / deviation))
            weights = 2.0 * blas.dtrsm(1.0, lower, inner, lower=1, trans_a=1) * shared * slope
            return np.asarray(scaled * weights.sum(axis=0)[:, None] - weights.T @ rows)

        return mean, deviation, pull

    def _reserve(self, size: int) -> None:
        room = len(self.lower)
        if size <= room:
            return
        room = max(size, 2 * room, 64)
        more = room - len(self.lower)
        self.lower = np.asfortranarray(np.pad(self.lower, (0, more)))
        self._scaled = np.pad(self._scaled, ((0, more), (0, 0)))
        self._configs = np.pad(self._configs, (0, more))
        self._times = np.pad(self._times, (0, more))


class CandidateColumns:
    """The whitened columns of candidates that were never observed, features (m, f), kept for each
    time that was asked for."""

    def __init__(self, factor: CurveFactor, features: Array) -> None:
        self._scaled = factor.scaled(features)
        self._kept: dict[float, tuple[int, Array]] = {}

    def at(self, factor: CurveFactor, time: float, observed: int) -> Array:
        """Return W (n, m) at one time for the rows of ``factor``: that of these candidates, or a
        copy with pending rows. The first ``observed`` rows are kept for the next call; rows beyond
        them are pending."""
        first, buffer = self._kept.get(time, (0, np.zeros((0, len(self._scaled)))))
        last = factor.size
        if last > len(buffer):
            buffer = np.pad(buffer, ((0, last + 32 - len(buffer)), (0, 0)))
        if first < last:
            cross = factor.cross(self._scaled, None, np.array([time]), first)
            if first:
                cross -= factor.lower[first:last, :first] @ buffer[:first]
            buffer[first:last] = blas.dtrsm(
                1.0, factor.lower[first:last, first:last], cross, lower=1
            )
        self._kept[time] = observed, buffer
        return buffer[:last]
