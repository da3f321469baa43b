"""The likelihood of "exp-decay-sum" at the cost of the configurations, not of the observations.

With k distinct configurations among n rows and L budgets, E (n, k) and Z (n, L) say which row
belongs to which. Rows of one configuration differ by a curve that all share, so the covariance of
the targets is

    K = E K_x E^T + Z B Z^T + s I,        B = g^2 (kappa(rho + rho') - kappa(rho) kappa(rho'))

With c the number of rows of each configuration, the columns of Q = E c^-1/2 are orthonormal, and
M = c^1/2 K_x c^1/2 + s I gives

    A^-1 = (E K_x E^T + s I)^-1 = Q M^-1 Q^T + (I - Q Q^T) / s
    K^-1 = A^-1 - A^-1 Z T Z^T A^-1,        G = Z^T A^-1 Z,    T = (I + B G)^-1 B
    log |K| = log |M| + (n - k) log s + log |I + B G|

so that M alone is factorised: k^3 instead of n^3, with the values and gradients of the dense
formula. Notation in the code: with R = [Z, r] and P = Q^T R, every product needed is R^T A^-1 R =
P^T M^-1 P + (R^T R - P^T P) / s.

    maximum_a_posteriori(SharedDecayPosterior.of(prior, NOISE, x, y), starts, SearchSettings())

Woodbury's identity: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section
A.3.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from scrimp.gp.budget import DecayPrior
from scrimp.gp.cholesky import cholesky_in_place, inverse_lower, log_determinant, solve
from scrimp.gp.kernel import Array
from scrimp.gp.marginal_likelihood import LogPosterior
from scrimp.gp.priors import Hyperparameter, ParameterVector

__all__ = ["SharedDecayPosterior"]


@dataclass(frozen=True, eq=False)
class SharedDecayPosterior(LogPosterior):
    """log p(y | x, hyperparameters) + log p(hyperparameters) under an `additive` prior; rows in the
    order of configurations."""

    prior: DecayPrior
    noise: Hyperparameter
    x: Array  # (n, d + 1)
    y: Array  # (n, F)
    first: NDArray[np.intp]  # (k,) the first row of each configuration

    @classmethod
    def of(
        cls, prior: DecayPrior, noise: Hyperparameter, x: Array, y: Array
    ) -> "SharedDecayPosterior":
        """For rows in any order."""
        _, configs = np.unique(x[:, :-1], axis=0, return_inverse=True)
        order = np.argsort(configs, kind="stable")
        return cls(
            prior, noise, x[order], y[order], np.flatnonzero(np.diff(configs[order], prepend=-1))
        )

    @cached_property
    def vector(self) -> ParameterVector:
        """The prior's parameters, then the noise variance."""
        return ParameterVector((*self.prior.parameters, self.noise))

    @property
    def size(self) -> int:
        return len(self.x)

    def part(self, size: int) -> "SharedDecayPosterior":
        """Whole configurations, about as many rows as asked for."""
        count = max(1, round(len(self.first) * size / self.size))
        chosen = np.zeros(len(self.first), dtype=bool)
        chosen[np.linspace(0, len(self.first) - 1, count).astype(np.intp)] = True
        rows = np.repeat(chosen, self._counts)
        return SharedDecayPosterior.of(self.prior, self.noise, self.x[rows], self.y[rows])

    @cached_property
    def _counts(self) -> NDArray[np.intp]:
        return np.diff(self.first, append=len(self.x))

    @cached_property
    def _budgets(self) -> tuple[Array, Array]:
        """The distinct budgets (L,) and Z (n, L)."""
        rho, index = np.unique(self.x[:, -1], return_inverse=True)
        return rho, np.eye(len(rho))[index]

    def value_and_gradient(self, values: Array) -> tuple[float, Array]:
        """The logarithm of the unnormalised posterior density at natural values (p,), and its
        gradient (p,)."""
        likelihood, gradient = self.likelihood_and_gradient(values)
        return likelihood + self.vector.log_density(values), gradient + self.vector.gradient(values)

    def likelihood_and_gradient(self, values: Array) -> tuple[float, Array]:
        """log p(y | x) at natural values (p,), and its gradient (p,)."""
        noise, root = float(values[-1]), np.sqrt(self._counts)
        prior, (rho, z) = self.prior.with_values(values[:-1]), self._budgets
        base, pull_base = prior.base.value_and_pullback(self.x[self.first, :-1])
        mean, curve, pull_curve = prior.curve_and_pullback(rho)
        middle = root[:, None] * base * root
        middle.flat[:: len(root) + 1] += noise
        factor = cholesky_in_place(middle.T)
        rows = np.column_stack([z, self.y - (z @ mean)[:, None]])  # R (n, L + F)
        sums = np.add.reduceat(rows, self.first) / root[:, None]  # P (k, L + F)
        algebra = _Algebra(factor, noise, curve, solve(factor, sums), sums, rows)
        d_mean, d_curve, d_middle, d_noise = algebra.gradient()
        d_base = pull_base(root[:, None] * d_middle * root)
        return algebra.log_density(), np.concatenate(
            [pull_curve(d_mean, d_curve), d_base, [d_noise]]
        )


class _Algebra:
    """R^T A^-1 R and what follows from it; the names are those of the module."""

    def __init__(
        self, factor: Array, noise: float, curve: Array, solved: Array, sums: Array, rows: Array
    ) -> None:
        count = len(curve)
        self.factor, self.noise, self.solved = factor, noise, solved  # L L^T = M; M^-1 P
        self.size, self.fantasies = len(rows), rows.shape[1] - count
        self.outside = rows.T @ rows - sums.T @ sums
        self.gram = sums.T @ solved + self.outside / noise
        self.g, self.v = self.gram[:count, :count], self.gram[:count, count:]  # v = Z^T A^-1 r
        self.core = np.eye(count) + curve @ self.g
        self.t = np.linalg.solve(self.core, curve)

    def log_density(self) -> float:
        """log N(r; 0, K), averaged over the columns of r."""
        squares = (
            self.gram.trace() - self.g.trace() - np.vdot(self.v, self.t @ self.v)
        ) / self.fantasies
        determinant = log_determinant(self.factor) + (self.size - len(self.factor)) * math.log(
            self.noise
        )
        determinant += float(np.linalg.slogdet(self.core)[1])
        return -0.5 * float(squares + determinant + self.size * math.log(2.0 * math.pi))

    def gradient(self) -> tuple[Array, Array, Array, float]:
        """Derivatives by the mean at each budget (L,), B (L, L), M (k, k; a lower triangle, as in
        the dense formula) and s."""
        t, count = self.t, len(self.t)
        chosen = np.concatenate([-t @ self.v, np.eye(self.fantasies)])  # K^-1 r = A^-1 R chosen
        left = np.eye(count) - self.g @ t
        per_budget = left @ self.v  # Z^T K^-1 r
        d_curve = 0.5 * (per_budget @ per_budget.T / self.fantasies - left @ self.g)
        inverse = inverse_lower(self.factor)
        twice = self.solved.T @ self.solved + self.outside / self.noise**2  # R^T A^-2 R
        trace = (
            inverse.trace()
            + (self.size - len(inverse)) / self.noise
            - np.vdot(t, twice[:count, :count])
        )
        d_noise = 0.5 * float(np.vdot(chosen, twice @ chosen) / self.fantasies - trace)
        strength, directions = np.linalg.eigh(
            0.5 * (t + t.T)
        )  # T has no negative values, but for rounding
        curves = self.solved[:, :count] @ (directions * np.sqrt(np.maximum(strength, 0.0)))
        added = np.column_stack([self.solved @ chosen / math.sqrt(self.fantasies), curves])
        d_middle = blas.dsyrk(1.0, added, beta=-1.0, c=inverse, lower=1, overwrite_c=1).T
        d_middle.flat[:: len(d_middle) + 1] *= 0.5
        return per_budget.mean(1), d_curve, d_middle, d_noise
