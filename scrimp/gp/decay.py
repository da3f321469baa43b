"""Exponential decay of learning curves towards a function of the configuration.

`decay`: the part of a curve's first error that is left at rho, an average of exponential decays:

    kappa(rho) = E[exp(-lambda rho)] = (beta / (beta + rho))^alpha,    lambda ~ Gamma(shape alpha, mean rate), beta = alpha / rate

The curves have the covariance Cov(exp(-lambda rho), exp(-lambda rho')) = kappa(rho + rho') -
kappa(rho) kappa(rho').

`DecayPrior`: the prior over (x, rho) with k_x over configurations and the size g of the decay; d is
the share of k_x that decays too:

    k = k_x [1 - d (kappa(rho) + kappa(rho') - d kappa(rho + rho'))] + (g - d m)^2 (kappa(rho + rho') - kappa(rho) kappa(rho'))
    mean = m + (g - d m) kappa(rho)

Mean and covariance share parameters. With d = 0 all configurations share one deviation of the
curve; ``separate`` gives each configuration its own. Whatever depends on budgets alone is computed
on the few distinct budgets and spread by products with indicator matrices.

`SharedDecayPosterior`: the likelihood of the prior with d = 0 and a shared curve at the cost of the
configurations, not of the observations. With k distinct configurations among n rows and L budgets,
E (n, k) and Z (n, L) say which row belongs to which, and the covariance of the targets is

    K = E K_x E^T + Z B Z^T + s I,        B = g^2 (kappa(rho + rho') - kappa(rho) kappa(rho'))

With c the number of rows of each configuration, the columns of Q = E c^-1/2 are orthonormal, and
M = c^1/2 K_x c^1/2 + s I gives

    A^-1 = (E K_x E^T + s I)^-1 = Q M^-1 Q^T + (I - Q Q^T) / s
    K^-1 = A^-1 - A^-1 Z T Z^T A^-1,        G = Z^T A^-1 Z,    T = (I + B G)^-1 B
    log |K| = log |M| + (n - k) log s + log |I + B G|

so that only M is factorised: k^3 instead of n^3, with the values and gradients of the dense
formula. Notation in the code: with R = [Z, r] and P = Q^T R, every product needed is R^T A^-1 R =
P^T M^-1 P + (R^T R - P^T P) / s.

    prior = DecayPrior(kernel_by_name("matern52-ard", columns), share=0.0)
    maximum_a_posteriori(SharedDecayPosterior.of(prior, NOISE, x, y), starts, SearchSettings())

Swersky, Snoek, Adams, Freeze-Thaw Bayesian Optimization, 2014; Tiao, Klein, Archambeau, Seeger,
Model-based Asynchronous Hyperparameter and Neural Architecture Search, 2020. Woodbury's identity:
Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section A.3.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from scrimp.gp.cholesky import cholesky_in_place, inverse_lower, log_determinant, solve
from scrimp.gp.hyperparameters import Flat, Hyperparameter, LogNormal
from scrimp.gp.kernel import Array, Kernel, with_fields
from scrimp.gp.marginal_likelihood import NoisyPosterior, spread_rows
from scrimp.gp.process import CONSTANT_MEAN, CrossPullback, Prior, PriorPullback

SHAPE = Hyperparameter("decay_shape", LogNormal(0.0, 1.5), bounds=(1e-2, 250.0), initial=1.0)
RATE = Hyperparameter("decay_rate", LogNormal(1.5, 1.5), bounds=(1e-3, 500.0), initial=3.0)
SIZE = Hyperparameter("decay_size", LogNormal(0.0, 1.0), bounds=(1e-3, 20.0), initial=0.5)
"""Height of a curve's start above its end, in standard deviations of the targets; early values are
often several above."""
DECAYING_SHARE = Hyperparameter(
    "decay_share", Flat(0.0, 1.0), bounds=(0.0, 1.0), encoding="logit", initial=0.5
)


SCALARS = (CONSTANT_MEAN, SHAPE, RATE, SIZE, DECAYING_SHARE)


def decay(
    rho: Array, shape: float, rate: float
) -> tuple[Array, Callable[[Array], tuple[float, float]]]:
    """kappa(rho) of any shape, and pull(d) -> gradients of shape and rate.

    >>> value, _ = decay(np.array([0.0, 1.0]), 1.0, 1.0)
    >>> value.tolist()
    [1.0, 0.5]
    """
    grown = rho * (rate / shape)
    value: Array = np.exp(-shape * np.log1p(grown))

    def pull(d: Array) -> tuple[float, float]:
        weighted = d * value
        by_shape = grown / (1.0 + grown) - np.log1p(grown)
        return float((weighted * by_shape).sum()), float(-(weighted * rho / (1.0 + grown)).sum())

    return value, pull


def decay_curve(
    rho: Array, numbers: tuple[float, float, float, float, float]
) -> tuple[Array, Array, Callable[[Array, Array, Array | None], Array]]:
    """Return the mean (L,) and the curve's covariance (L, L) at budgets rho for ``numbers`` m, alpha,
    rate, g - d m and d, and pull(dm, dB, d_factor) -> gradients of m, alpha, rate, g and d, where
    d_factor is that of the factor of k_x, if it depends on budgets."""
    mean, shape, rate, left, share = numbers
    once, pull_once = decay(rho, shape, rate)
    both, pull_both = decay(rho[:, None] + rho, shape, rate)
    unscaled = both - np.outer(once, once)

    def pull(d_mean: Array, d_added: Array, d_factor: Array | None) -> Array:
        d_both = left**2 * d_added
        d_once = left * d_mean - left**2 * (d_added + d_added.T) @ once
        d_left = 2.0 * left * float((d_added * unscaled).sum())
        d_left += float(d_mean @ once)
        d_share = -mean * d_left
        if d_factor is not None:
            d_both = d_both + share**2 * d_factor
            d_once = d_once - share * (d_factor.sum(0) + d_factor.sum(1))
            d_share += float((d_factor * (2.0 * share * both - once[:, None] - once)).sum())
        by_once, by_both = pull_once(d_once), pull_both(d_both)
        d_shape, d_rate = by_once[0] + by_both[0], by_once[1] + by_both[1]
        return np.array([d_mean.sum() - share * d_left, d_shape, d_rate, d_left, d_share])

    return mean + left * once, left**2 * unscaled, pull


def same_rows(x1: Array, x2: Array) -> Array:
    """[x1_i = x2_j] as 0 or 1 (n, m); rows are compared bit by bit."""
    known: dict[bytes, int] = {}
    first, second = ([known.setdefault(row.tobytes(), len(known)) for row in x] for x in (x1, x2))
    return np.equal.outer(first, second).astype(np.float64)


class _Levels:
    """The distinct budgets of rows: values (L,) and the indicator (n, L) of each row's level."""

    def __init__(self, rho: Array) -> None:
        self.values, index = np.unique(rho, return_inverse=True)
        self.indicator = np.eye(len(self.values))[index]


@lru_cache(maxsize=16)
def _levels_of(rho: bytes) -> _Levels:
    # A fit asks for the same ones many times.
    return _Levels(np.frombuffer(rho))


@dataclass(frozen=True, eq=False)
class DecayPrior(Prior):
    """Exponential decay towards a function of the configuration; the module has the formulas.

    ``share``: d, or None to learn it. ``separate``: each configuration has its own curve.
    """

    base: Kernel
    share: float | None = None
    separate: bool = False
    scalars: Array = field(
        default_factory=lambda: np.array([parameter.start for parameter in SCALARS])
    )

    @cached_property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        return (*SCALARS[: self._own], *self.base.parameters)

    @property
    def _own(self) -> int:
        return len(SCALARS) if self.share is None else len(SCALARS) - 1

    @property
    def values(self) -> Array:
        return np.concatenate([self.scalars[: self._own], self.base.values])

    def with_values(self, values: Array) -> "DecayPrior":
        scalars = np.append(values[: self._own], self.scalars[self._own :])
        return with_fields(self, scalars=scalars, base=self.base.with_values(values[self._own :]))

    @property
    def _numbers(self) -> tuple[float, float, float, float, float]:
        """m, alpha, rate, g - d m and d."""
        mean, shape, rate, size, learned = (float(v) for v in self.scalars)
        share = learned if self.share is None else self.share
        return mean, shape, rate, size - share * mean, share

    def length_scales(self, dimension: int) -> Array:
        """Length-scales of the configuration's kernel; unknown along the budget."""
        return np.append(self.base.length_scales(dimension - 1), np.nan)

    @property
    def additive(self) -> bool:
        """True if the covariance is k_x plus that of one curve, which all configurations share."""
        return self.share == 0.0 and not self.separate

    def mean(self, x: Array) -> Array:
        mean, shape, rate, left, _ = self._numbers
        return mean + left * decay(x[:, -1], shape, rate)[0]

    def variance(self, x: Array) -> Array:
        _, shape, rate, left, share = self._numbers
        once, twice = decay(x[:, -1], shape, rate)[0], decay(2.0 * x[:, -1], shape, rate)[0]
        factor = 1.0 - share * (2.0 * once - share * twice)
        return self.base.diagonal(x[:, :-1]) * factor + left**2 * (twice - once**2)

    def covariance(self, x1: Array, x2: Array) -> Array:
        covariance = self.base(x1[:, :-1], x1[:, :-1] if x2 is x1 else x2[:, :-1])
        first = _levels_of(x1[:, -1].tobytes())
        second = first if x2 is x1 else _levels_of(x2[:, -1].tobytes())
        factor, added = self._tables(first.values, second.values)
        return self._combined(covariance, (x1, x2), (first, second), factor, added)

    def _tables(self, rho1: Array, rho2: Array) -> tuple[Array, Array]:
        """The factor of k_x and the term added to it, for pairs of budgets."""
        _, shape, rate, left, share = self._numbers
        once1, once2 = decay(rho1, shape, rate)[0], decay(rho2, shape, rate)[0]
        both = decay(rho1[:, None] + rho2, shape, rate)[0]
        factor = 1.0 - share * (once1[:, None] + once2 - share * both)
        return factor, left**2 * (both - np.outer(once1, once2))

    def _combined(
        self,
        covariance: Array,
        x: tuple[Array, Array],
        levels: tuple[_Levels, _Levels],
        factor: Array,
        added: Array,
    ) -> Array:
        """Return k_x times the factor plus the added term, in the memory of k_x."""
        first, second = levels
        if self.share != 0.0:
            covariance *= _spread(first, factor, second)
        deviation = _spread(first, added, second)
        if self.separate:
            deviation *= same_rows(x[0][:, :-1], x[1][:, :-1])
        covariance += deviation
        return covariance

    def value_and_pullback(self, x: Array) -> tuple[Array, Array, PriorPullback]:
        base, pull_base = self.base.value_and_pullback(x[:, :-1])
        levels = _levels_of(x[:, -1].tobytes())
        factor, added = self._tables(levels.values, levels.values)
        same = same_rows(x[:, :-1], x[:, :-1]) if self.separate else None
        covariance = self._combined(base.copy(), (x, x), (levels, levels), factor, added)

        def pull(d_mean: Array, d_covariance: Array) -> Array:
            z = levels.indicator
            d_shared = d_covariance if same is None else d_covariance * same
            d_base, d_factor = d_covariance, None
            if self.share != 0.0:
                d_factor = z.T @ (d_covariance * base) @ z
                d_base = d_covariance * _spread(levels, factor, levels)
            tables = (z.T @ d_mean, z.T @ d_shared @ z, d_factor)
            scalars = decay_curve(levels.values, self._numbers)[2](*tables)
            return np.concatenate([scalars[: self._own], pull_base(d_base)])

        return self.mean(x), covariance, pull

    def cross_and_pullback(self, x1: Array, x2: Array) -> tuple[Array, Array, Array, CrossPullback]:
        base, pull_base = self.base.cross_and_pullback(x1[:, :-1], x2[:, :-1])
        _, pull_diagonal = self.base.diagonal_and_pullback(x1[:, :-1])
        first, second = _levels_of(x1[:, -1].tobytes()), _levels_of(x2[:, -1].tobytes())
        factor, added = self._tables(first.values, second.values)
        cross = self._combined(base, (x1, x2), (first, second), factor, added)

        def pull(d_mean: Array, d_variance: Array, d_cross: Array) -> Array:
            # No search moves along the budget: its slope is left at zero.
            d_x = np.zeros_like(x1)
            once = self._tables(x1[:, -1], x1[:, -1])[0].diagonal() if self.share != 0.0 else 1.0
            d_base = d_cross if self.share == 0.0 else d_cross * _spread(first, factor, second)
            d_x[:, :-1] = pull_base(d_base) + pull_diagonal(d_variance * once)
            return d_x

        return self.mean(x1), self.variance(x1), cross, pull


def _spread(first: _Levels, table: Array, second: _Levels) -> Array:
    """Spread a table of pairs of levels (L1, L2) to pairs of rows (n, m)."""
    return np.asarray(first.indicator @ (table @ second.indicator.T), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SharedDecayPosterior(NoisyPosterior):
    """The posterior under an `additive` prior, at a cost of k^3; rows of one configuration stand
    together. ``first`` (k,): the first row of each configuration."""

    prior: DecayPrior
    first: NDArray[np.intp]

    @classmethod
    def of(
        cls, prior: DecayPrior, noise: Hyperparameter, x: Array, y: Array
    ) -> "SharedDecayPosterior":
        """Sort the rows by configuration."""
        _, configs = np.unique(x[:, :-1], axis=0, return_inverse=True)
        order = np.argsort(configs, kind="stable")
        first = np.flatnonzero(np.diff(configs[order], prepend=-1))
        return cls(prior, noise, x[order], y[order], first)

    def part(self, size: int) -> "SharedDecayPosterior":
        count = max(1, round(len(self.first) * size / self.size))
        chosen = np.zeros(len(self.first), dtype=bool)
        chosen[spread_rows(len(self.first), count)] = True
        rows = np.repeat(chosen, self._counts)
        return SharedDecayPosterior.of(self.prior, self.noise, self.x[rows], self.y[rows])

    @cached_property
    def _counts(self) -> NDArray[np.intp]:
        return np.diff(self.first, append=len(self.x))

    @cached_property
    def _budgets(self) -> _Levels:
        return _Levels(self.x[:, -1])

    def likelihood_and_gradient(self, values: Array) -> tuple[float, Array]:
        noise, root = float(values[-1]), np.sqrt(self._counts)
        prior, z = self.prior.with_values(values[:-1]), self._budgets.indicator
        base, pull_base = prior.base.value_and_pullback(self.x[self.first, :-1])
        mean, curve, pull_curve = decay_curve(self._budgets.values, prior._numbers)
        middle = root[:, None] * base * root
        middle.flat[:: len(root) + 1] += noise
        factor = cholesky_in_place(middle.T)
        rows = np.column_stack([z, self.y - (z @ mean)[:, None]])  # R (n, L + F)
        sums = np.add.reduceat(rows, self.first) / root[:, None]  # P (k, L + F)
        algebra = _Algebra(factor, noise, curve, solve(factor, sums), sums, rows)
        d_mean, d_curve, d_middle, d_noise = algebra.gradient()
        d_base = pull_base(root[:, None] * d_middle * root)
        d_scalars = pull_curve(d_mean, d_curve, None)[: prior._own]
        return algebra.log_density(), np.concatenate([d_scalars, d_base, [d_noise]])


class _Algebra:
    """R^T A^-1 R and the likelihood; the names are those of the module's docstring."""

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
        squares = self.gram.trace() - self.g.trace() - np.vdot(self.v, self.t @ self.v)
        squares /= self.fantasies
        outside = self.size - len(self.factor)
        determinant = log_determinant(self.factor) + outside * math.log(self.noise)
        determinant += float(np.linalg.slogdet(self.core)[1])
        return -0.5 * float(squares + determinant + self.size * math.log(2.0 * math.pi))

    def gradient(self) -> tuple[Array, Array, Array, float]:
        """Return derivatives by the mean at each budget (L,), B (L, L), M (k, k; a lower triangle,
        as in the dense formula) and s."""
        t, count = self.t, len(self.t)
        chosen = np.concatenate([-t @ self.v, np.eye(self.fantasies)])  # K^-1 r = A^-1 R chosen
        left = np.eye(count) - self.g @ t
        per_budget = left @ self.v  # Z^T K^-1 r
        d_curve = 0.5 * (per_budget @ per_budget.T / self.fantasies - left @ self.g)
        inverse = inverse_lower(self.factor)
        twice = self.solved.T @ self.solved + self.outside / self.noise**2  # R^T A^-2 R
        trace = inverse.trace() + (self.size - len(inverse)) / self.noise
        trace -= np.vdot(t, twice[:count, :count])
        d_noise = 0.5 * float(np.vdot(chosen, twice @ chosen) / self.fantasies - trace)
        # T has no negative eigenvalues except by rounding.
        strength, directions = np.linalg.eigh(0.5 * (t + t.T))
        curves = self.solved[:, :count] @ (directions * np.sqrt(np.maximum(strength, 0.0)))
        added = np.column_stack([self.solved @ chosen / math.sqrt(self.fantasies), curves])
        d_middle = blas.dsyrk(1.0, added, beta=-1.0, c=inverse, lower=1, overwrite_c=1).T
        d_middle.flat[:: len(d_middle) + 1] *= 0.5
        return per_budget.mean(1), d_curve, d_middle, d_noise
