"""The posterior of a curve process that grows one observation at a time, with exact structured
algebra.

Kept are the factor L of K + noise I and, per time asked for, the whitened columns W = L^-1 k(rows,
candidates). A new observation appends a row to L and a row to each W in use; nothing is computed
twice. With z~ = L^-1 (z - m(u)),

    mean = m(u) + W^T z~,        variance = k - column sums of W^2.

*Pending* evaluations are rows at the end whose entry of z~ is zero: their outcome is taken to be
what the model expects (Ginsbourger, Le Riche, Carraro, Kriging is well-suited to parallelize
optimization, 2010, the kriging believer). They narrow the variance, leave every mean as it is, and
belong to a twin of the factor, which grows on without them.

    factor = CurveFactor(theta, owner)
    factor.append(features, configs, times)               # observations
    twin = factor.with_pending(features, configs, times)
"""

import copy
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from scrimp.errors import NumericalError
from scrimp.freeze_thaw.curve_gp import CurveParameters, squared_distances
from scrimp.gp.cholesky import cholesky
from scrimp.gp.matern import matern52, matern52_and_slope

__all__ = ["CandidateColumns", "CurveFactor", "CurvePullback"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]

CurvePullback = Callable[[Array, Array], Array]
"""pull(d_mean (m,), d_deviation (m,)) -> d_scaled (m, f)."""

LEAST_VARIANCE = 1e-10


class CurveFactor:
    """Rows in the order in which they came: features (n, f), configuration numbers (n,) and times
    (n,)."""

    def __init__(self, theta: Array, owner: Places) -> None:
        self.parameters = CurveParameters.of(theta)
        self._lengths = self.parameters.lengths[owner]
        self.size = 0
        self._scaled: Array = np.zeros((0, len(owner)))
        self._configs: Places = np.zeros(0, dtype=np.intp)
        self._times: Array = np.zeros(0)
        self.lower: Array = np.zeros((0, 0), order="F")

    def scaled(self, features: Array) -> Array:
        """Features in units of the length scales."""
        return features / self._lengths

    def append(self, features: Array, configs: Places, times: Array) -> None:
        """Rows (k, f), (k,), (k,). The first ones are factorised together, later ones one after the
        other."""
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
        """A twin that ends with these rows. Both share the rows before them, which never change;
        the pending ones last until this factor grows or another twin is made."""
        twin = copy.copy(self)
        twin.append(features, configs, times)
        return twin

    def cross(self, scaled: Array, configs: Places | None, times: Array, first: int = 0) -> Array:
        """k (n - first, m) between the rows from ``first`` on and m points: scaled features,
        numbers, times (m,).

        Without numbers the points were never observed, and may share one time (1,).
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
        """L^-1 (z - m(u)) for targets z (n,) of the first n rows."""
        n = len(targets)
        residual = targets - self.parameters.means(self._times[:n])
        return np.asarray(blas.dtrsv(self.lower[:n, :n], residual, lower=1)) if n else residual

    def weights(self, targets: Array) -> Array:
        """K^-1 (z - m(u)) for targets z (n,) of the first n rows: the mean elsewhere is m(u) + k^T
        weights."""
        n = len(targets)
        half = self.whiten(targets)
        return np.asarray(blas.dtrsv(self.lower[:n, :n], half, lower=1, trans=1)) if n else half

    def columns(self, scaled: Array, configs: Places | None, times: Array) -> Array:
        """W (n, m) of m points."""
        cross = np.asfortranarray(self.cross(scaled, configs, times))
        return np.asarray(
            blas.dtrsm(1.0, self.lower[: self.size, : self.size], cross, lower=1, overwrite_b=1)
        )

    def marginals(self, columns: Array, times: Array, whitened: Array) -> tuple[Array, Array]:
        """Mean (m,) and standard deviation (m,) of the noise-free curve at times (m,) or (1,), from
        W (n, m), z~ (k,), k <= n."""
        mean = self.parameters.means(times) + whitened @ columns[: len(whitened)]
        left = self.parameters.variances(times) - np.einsum("ij,ij->j", columns, columns)
        return mean, np.sqrt(np.maximum(left, LEAST_VARIANCE))

    def marginals_and_pullback(
        self, scaled: Array, times: Array, whitened: Array
    ) -> tuple[Array, Array, CurvePullback]:
        """Mean and standard deviation (m,) of points that were never observed, and the chain rule
        to their scaled features.

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
    """Candidates that were never observed, features (m, f), with their whitened columns kept per
    time."""

    def __init__(self, factor: CurveFactor, features: Array) -> None:
        self._scaled = factor.scaled(features)
        self._kept: dict[float, tuple[int, Array]] = {}

    def at(self, factor: CurveFactor, time: float, observed: int) -> Array:
        """W (n, m) at one time for the rows of ``factor``, the one of these candidates or a twin;
        the first ``observed`` rows are kept for the next time, rows beyond them are pending."""
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
