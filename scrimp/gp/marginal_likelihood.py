"""The marginal likelihood of hyperparameters, and its maximum.

With r = y - m(x), K the covariance plus noise, and alpha = K^-1 r,

    log p(y | x) = -1/2 r^T alpha - 1/2 log |K| - n/2 log 2 pi
    d/dK         = -1/2 (K^-1 - alpha alpha^T),      d/dm = alpha

so one Cholesky factor, one inverse and one pullback of the prior give the value and all
derivatives. Targets may be (n, F): the average over the F columns then counts. A fit maximises the
likelihood times the densities of the parameters (maximum a posteriori) by L-BFGS-B over encoded
parameters, from several starts. A first fit to many observations starts with some of them
(`first_part`, `polish`). Formulas: Rasmussen and Williams, Gaussian Processes for Machine Learning,
2006, chapter 5.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas
from scipy.optimize import minimize

from scrimp.errors import NumericalError
from scrimp.gp.cholesky import cholesky_in_place, inverse_lower, log_determinant, solve
from scrimp.gp.hyperparameters import Hyperparameter, ParameterVector
from scrimp.gp.kernel import Array
from scrimp.gp.process import Prior


@dataclass(frozen=True)
class PartialFitNumbers:
    """Numbers of a first fit to many observations, which starts with a part of them.

    All were measured on the time and the result of first decisions (benchmarks/speed/first_decision.py).
    ``whole_up_to``: observations up to which a fit sees all of them from the start. ``first_part``:
    observations in the first part, at most. ``growth``: of the part from search to search.
    ``part_tolerance``: a search in the first part ends with a step that gains fewer nats. ``gain``:
    one with all data ends with a step that gains fewer nats per observation. ``parameters``: up to this
    number each parameter is rescaled by itself; above it, directions of equal curvature are used.
    """

    whole_up_to: int = 300
    first_part: int = 200
    growth: float = 2.5
    part_tolerance: float = 0.02
    gain: float = 2e-3
    parameters: int = 12


PARTIAL_FIT = PartialFitNumbers()

_DIRECTION_BOUND = 1e3
"""Bounds along directions. No step gets there, but with bounds L-BFGS-B starts with a whole step."""

_DIFFERENCE_STEP = 1e-2
"""Step for differences of gradients; encoded parameters are of order one."""

_NO_FACTOR = 1e30
"""The objective where no factor exists: finite, so that a line search retreats from it."""


class LogPosterior(ABC):
    """The log density of p parameters given n observations that a fit maximises."""

    @property
    @abstractmethod
    def vector(self) -> ParameterVector:
        """The parameters."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of observations n."""

    @abstractmethod
    def part(self, size: int) -> "LogPosterior":
        """Return the posterior given about ``size`` of the observations, spread over all of them."""

    def likelihood_and_gradient(self, values: Array) -> tuple[float, Array]:
        """log p(y | x) at natural values (p,), and its gradient (p,); not needed by a class that
        overrides `value_and_gradient`."""
        raise NotImplementedError

    def value_and_gradient(self, values: Array) -> tuple[float, Array]:
        """The log of the unnormalised posterior density at values (p,), and its gradient."""
        likelihood, gradient = self.likelihood_and_gradient(values)
        density, slope = self.vector.log_density_and_gradient(values)
        return likelihood + density, gradient + slope

    def log_density(self, values: Array) -> float:
        """The logarithm of the unnormalised posterior density at natural values (p,)."""
        return self.value_and_gradient(values)[0]


@dataclass(frozen=True, eq=False)
class NoisyPosterior(LogPosterior):
    """log p(y | x, hyperparameters) + log p(hyperparameters), a function of the prior's parameters
    and the noise variance."""

    prior: Prior
    noise: Hyperparameter
    x: Array  # (n, d)
    y: Array  # (n, F)

    @cached_property
    def vector(self) -> ParameterVector:
        """The prior's parameters, then the noise variance."""
        return ParameterVector((*self.prior.parameters, self.noise))

    @property
    def size(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class HyperparameterPosterior(NoisyPosterior):
    """The posterior under any prior, at a cost of n^3. ``known_noise``: variances (n,) of the observations,
    added to the learned one."""

    known_noise: Array | float = 0.0

    def part(self, size: int) -> "HyperparameterPosterior":
        rows = spread_rows(len(self.x), size)
        noise = self.known_noise if isinstance(self.known_noise, float) else self.known_noise[rows]
        return HyperparameterPosterior(self.prior, self.noise, self.x[rows], self.y[rows], noise)

    def likelihood_and_gradient(self, values: Array) -> tuple[float, Array]:
        size, fantasies = self.y.shape
        mean, covariance, pull = self.prior.with_values(values[:-1]).value_and_pullback(self.x)
        covariance.flat[:: size + 1] += values[-1] + self.known_noise
        factor = cholesky_in_place(covariance.T)
        residual = self.y - mean[:, None]
        alpha = solve(factor, residual)
        value = gaussian_log_density(factor, residual, alpha)
        # Applied to symmetric matrices, the lower triangle of alpha alpha^T - K^-1 with half its
        # diagonal equals half of the whole matrix, so the upper triangle is never filled.
        weights = blas.dsyrk(
            1.0 / fantasies, alpha, beta=-1.0, c=inverse_lower(factor), lower=1, overwrite_c=1
        ).T
        weights.flat[:: size + 1] *= 0.5
        gradient = np.append(pull(alpha.sum(1) / fantasies, weights), weights.trace())
        return value, gradient

    def log_density(self, values: Array) -> float:
        size = len(self.x)
        prior = self.prior.with_values(values[:-1])
        covariance = prior.covariance(self.x, self.x)
        covariance.flat[:: size + 1] += values[-1] + self.known_noise
        factor = cholesky_in_place(covariance.T)
        residual = self.y - prior.mean(self.x)[:, None]
        likelihood = gaussian_log_density(factor, residual, solve(factor, residual))
        return likelihood + self.vector.log_density_and_gradient(values)[0]


def gaussian_log_density(factor: Array, residual: Array, alpha: Array) -> float:
    """log N(residual; 0, K), averaged over the columns of the residual (n, F)."""
    size, fantasies = residual.shape
    squares = float(np.vdot(residual, alpha)) / fantasies
    return float(-0.5 * (squares + log_determinant(factor) + size * math.log(2.0 * math.pi)))


def spread_rows(size: int, count: int) -> NDArray[np.intp]:
    """Indices of ``count`` of ``size`` rows, evenly spaced."""
    return np.linspace(0, size - 1, count).astype(np.intp)


@dataclass(frozen=True)
class SearchSettings:
    """Effort of a search for the best hyperparameters.

    ``random_starts``: draws from the densities, beside the recorded start and the modes of the
    densities. ``iterations``: of L-BFGS-B per start. ``tolerance``: a search ends with a step that
    gains fewer nats. ``race_rows``: with more observations than this, the starts are
    compared on that many of them, and only the winner is fitted to all.
    """

    random_starts: int = 1
    iterations: int = 100
    tolerance: float = 1e-3
    race_rows: int = 256


def maximum_a_posteriori(
    posterior: LogPosterior, starts: Sequence[Array], settings: SearchSettings
) -> Array:
    """Search with L-BFGS-B from each of ``starts`` and return the best natural values (p,); the
    first start if every search fails."""
    if len(starts) > 1 and posterior.size > settings.race_rows:
        part = posterior.part(settings.race_rows)
        # A part may be larger than asked for, and must not be divided again.
        once = replace(settings, race_rows=max(settings.race_rows, part.size))
        found = maximum_a_posteriori(part, starts, once)
        starts = [max((starts[0], found), key=posterior.log_density)]
    best_value, best = _NO_FACTOR, starts[0]
    share = settings.tolerance / max(posterior.size, 1)
    rule = _StoppingRule(share, iterations=settings.iterations)
    for start in starts:
        value, found = _climb(posterior, start, rule, np.ones(len(start)))
        if value < best_value:
            best_value, best = value, found
    return best


def first_part(size: int) -> int | None:
    """The number of observations that a first fit to ``size`` of them starts with, so that the parts
    of `polish` end with all; None for all of them."""
    if size <= PARTIAL_FIT.whole_up_to:
        return None
    part = float(size)
    while part > PARTIAL_FIT.first_part:
        part /= PARTIAL_FIT.growth
    return round(part)


def polish(posterior: LogPosterior, values: Array, seen: int, settings: SearchSettings) -> Array:
    """Improve natural values (p,) that were found on ``seen`` of the observations on larger and
    larger parts, then on all.

    A step costs the cube of the observations, so most steps are taken on small parts. With all data
    a search ends after a few steps, or with the first that gains little. Coordinates of about equal
    curvature make these steps longer; the curvature of a small part is accurate enough for that.
    """
    part, sizes = posterior.part(seen), [posterior.size]
    while sizes[0] > PARTIAL_FIT.growth * seen:
        sizes.insert(0, round(sizes[0] / PARTIAL_FIT.growth))
    evaluations = max(2, len(values) // 4)
    for size in sizes:
        if size == posterior.size:
            here = posterior
            gain = max(PARTIAL_FIT.gain * size, settings.tolerance)
            rule = _StoppingRule(0.05, gain, evaluations=evaluations)
        else:
            here = posterior.part(size)
            rule = _StoppingRule(0.01, max(0.1, settings.tolerance), evaluations=8 * evaluations)
        basis = _basis(_curvature(part, values) * (here.size / part.size))
        _, values = _climb(here, values, rule, basis)
    return values


@dataclass(frozen=True)
class _StoppingRule:
    """The end of a search: a step that gains less than ``gain`` nats and less than ``share`` of the
    gain so far (without ``gain``: than ``share`` of the log density), or a number of steps."""

    share: float
    gain: float | None = None
    iterations: int = 100
    evaluations: int = 15_000


def _climb(
    posterior: LogPosterior, start: Array, rule: _StoppingRule, basis: Array
) -> tuple[float, Array]:
    """Minimise the negative log density by L-BFGS-B from ``start``; return the minimum and its
    natural values.

    ``basis``: units (p,) of the coordinates, or directions (p, p) from ``start``. Steps along
    directions are cut off at the bounds of the parameters.
    """
    vector = posterior.vector
    lower, upper = vector.encode(vector.lower), vector.encode(vector.upper)
    turned, begin = basis.ndim == 2, vector.encode(start)
    first = np.zeros(len(begin)) if turned else begin / basis
    if turned:
        box = np.full((len(begin), 2), [-_DIRECTION_BOUND, _DIRECTION_BOUND])
    else:
        box = np.stack([lower, upper], axis=1) / basis[:, None]
    level: float | None = None if rule.gain is not None else 0.0

    def encoded(coordinates: Array) -> Array:
        if not turned:
            return coordinates * basis
        return np.clip(begin + basis @ coordinates, lower, upper)

    def objective(coordinates: Array) -> tuple[float, Array]:
        nonlocal level
        place = encoded(coordinates)
        values = vector.decode(place)
        try:
            value, gradient = posterior.value_and_gradient(values)
        except NumericalError:
            return _NO_FACTOR, np.zeros_like(coordinates)
        if level is None:
            # From now on the objective is minus the gain, shifted so that ftol is the rule.
            level = -value + (rule.gain or 0.0) / rule.share
        slopes = gradient * vector.slopes(values)
        inside = (lower < place) & (place < upper)
        return -value - level, -((slopes * inside) @ basis if turned else slopes * basis)

    limits = {"maxiter": rule.iterations, "maxfun": rule.evaluations}
    options = {**limits, "ftol": rule.share, "gtol": 1e-3}
    found = minimize(objective, first, jac=True, method="L-BFGS-B", bounds=box, options=options)
    value = float(found.fun) + (level or 0.0)
    return value, vector.decode(encoded(found.x))


def _curvature(posterior: LogPosterior, values: Array) -> Array:
    """Minus the second derivatives (p, p) of the log density by encoded parameters, from differences
    of the gradient; zero rows where no factor exists."""
    vector = posterior.vector
    middle, upper = vector.encode(values), vector.encode(vector.upper)
    found = np.zeros((len(middle), len(middle)))
    try:
        level = _slopes(posterior, middle)
        for place in range(len(middle)):
            moved = middle.copy()
            up = middle[place] + _DIFFERENCE_STEP <= upper[place]
            moved[place] += _DIFFERENCE_STEP if up else -_DIFFERENCE_STEP
            found[place] = (level - _slopes(posterior, moved)) / (moved[place] - middle[place])
    except NumericalError:
        pass
    return 0.5 * (found + found.T)


def _basis(curvature: Array) -> Array:
    """Coordinates of about equal curvature for a log density of curvature (p, p): units (p,) for a few
    parameters, directions (p, p) for many, which interact.

    A step of 1 lowers the log density by half a nat; it is at most 1 in the old coordinates.
    """
    if len(curvature) <= PARTIAL_FIT.parameters:
        return np.asarray(1.0 / np.sqrt(np.maximum(curvature.diagonal(), 1.0)))
    steepness, directions = np.linalg.eigh(curvature)
    return np.asarray(directions / np.sqrt(np.maximum(steepness, 1.0)))


def _slopes(posterior: LogPosterior, coordinates: Array) -> Array:
    values = posterior.vector.decode(coordinates)
    return posterior.value_and_gradient(values)[1] * posterior.vector.slopes(values)
