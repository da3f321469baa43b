"""How well hyperparameters explain the data, and the best of them.

With r = y - m(x), K the covariance plus noise, and alpha = K^-1 r,

    log p(y | x) = -1/2 r^T alpha - 1/2 log |K| - n/2 log 2 pi
    d/dK         = -1/2 (K^-1 - alpha alpha^T),      d/dm = alpha

so one Cholesky factor, one inverse and one pullback of the prior give the value and all
derivatives. Targets may be (n, F): then the average over the F columns counts. The fit maximises
the likelihood times the parameters' densities (maximum a posteriori) by L-BFGS-B over encoded
parameters, from several starts. A fit to many data from nothing begins with few of them
(`first_part`, `polished`). Formulas: Rasmussen and Williams, Gaussian Processes for Machine
Learning, 2006, chapter 5.
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
from scrimp.gp.kernel import Array
from scrimp.gp.priors import Hyperparameter, ParameterVector
from scrimp.gp.process import Prior

__all__ = [
    "PART_TOLERANCE",
    "HyperparameterPosterior",
    "LogPosterior",
    "SearchSettings",
    "first_part",
    "maximum_a_posteriori",
    "polished",
    "spread_rows",
]


class LogPosterior(ABC):
    """What a fit maximises: a log density of p parameters given n observations, whatever the
    algebra behind it."""

    @property
    @abstractmethod
    def vector(self) -> ParameterVector:
        """The parameters."""

    @property
    @abstractmethod
    def size(self) -> int:
        """n."""

    @abstractmethod
    def part(self, size: int) -> "LogPosterior":
        """The same for about ``size`` of the observations, spread over all of them."""

    @abstractmethod
    def value_and_gradient(self, values: Array) -> tuple[float, Array]:
        """The logarithm of the unnormalised posterior density at natural values (p,), and its
        gradient (p,)."""

    def log_density(self, values: Array) -> float:
        """The logarithm of the unnormalised posterior density at natural values (p,)."""
        return self.value_and_gradient(values)[0]


@dataclass(frozen=True, eq=False)
class HyperparameterPosterior(LogPosterior):
    """log p(y | x, hyperparameters) + log p(hyperparameters), as a function of prior's parameters
    and the noise variance.

    ``known_noise``: variances (n,) of the observations, added to the learned one; 0 without.
    """

    prior: Prior
    noise: Hyperparameter
    x: Array  # (n, d)
    y: Array  # (n, F)
    known_noise: Array | float = 0.0

    @cached_property
    def vector(self) -> ParameterVector:
        """The prior's parameters, then the noise variance."""
        return ParameterVector((*self.prior.parameters, self.noise))

    @property
    def size(self) -> int:
        return len(self.x)

    def part(self, size: int) -> "HyperparameterPosterior":
        return self.with_rows(spread_rows(len(self.x), size))

    def with_rows(self, rows: NDArray[np.intp]) -> "HyperparameterPosterior":
        """The same for some of the observations."""
        noise = self.known_noise if isinstance(self.known_noise, float) else self.known_noise[rows]
        return HyperparameterPosterior(self.prior, self.noise, self.x[rows], self.y[rows], noise)

    def likelihood_and_gradient(self, values: Array) -> tuple[float, Array]:
        """log p(y | x) at natural values (p,), and its gradient (p,)."""
        size, fantasies = self.y.shape
        mean, covariance, pull = self.prior.with_values(values[:-1]).value_and_pullback(self.x)
        covariance.flat[:: size + 1] += values[-1] + self.known_noise
        factor = cholesky_in_place(covariance.T)
        residual = self.y - mean[:, None]
        alpha = solve(factor, residual)
        value = _gaussian_log_density(factor, residual, alpha)
        # The lower triangle of alpha alpha^T - K^-1 with its diagonal halved acts on symmetric
        # matrices like half of the whole, so the upper triangle is never filled.
        weights = blas.dsyrk(
            1.0 / fantasies, alpha, beta=-1.0, c=inverse_lower(factor), lower=1, overwrite_c=1
        ).T
        weights.flat[:: size + 1] *= 0.5
        gradient = np.append(pull(alpha.sum(1) / fantasies, weights), weights.trace())
        return value, gradient

    def value_and_gradient(self, values: Array) -> tuple[float, Array]:
        """The logarithm of the unnormalised posterior density at natural values (p,), and its
        gradient (p,)."""
        likelihood, gradient = self.likelihood_and_gradient(values)
        return likelihood + self.vector.log_density(values), gradient + self.vector.gradient(values)

    def log_density(self, values: Array) -> float:
        """The logarithm of the unnormalised posterior density at natural values (p,)."""
        size = len(self.x)
        prior = self.prior.with_values(values[:-1])
        covariance = prior.covariance(self.x, self.x)
        covariance.flat[:: size + 1] += values[-1] + self.known_noise
        factor = cholesky_in_place(covariance.T)
        residual = self.y - prior.mean(self.x)[:, None]
        likelihood = _gaussian_log_density(factor, residual, solve(factor, residual))
        return likelihood + self.vector.log_density(values)


def _gaussian_log_density(factor: Array, residual: Array, alpha: Array) -> float:
    """log N(residual; 0, K), averaged over the columns of the residual (n, F)."""
    size, fantasies = residual.shape
    squares = float(np.vdot(residual, alpha)) / fantasies
    return float(-0.5 * (squares + log_determinant(factor) + size * math.log(2.0 * math.pi)))


def spread_rows(size: int, count: int) -> NDArray[np.intp]:
    """``count`` of ``size`` rows, evenly over all of them."""
    return np.linspace(0, size - 1, count).astype(np.intp)


@dataclass(frozen=True)
class SearchSettings:
    """How hard to look for the best hyperparameters.

    ``random_starts``: draws from the densities, beside the recorded start and the densities' modes.
    ``iterations``: of L-BFGS-B per start. ``tolerance``: a step that gains less than this many nats
    is the last. ``rows``: with more observations than this, starts race on that many of them, and
    all data see the winner only. ``most``: with more observations than this, the search looks at
    that many of them alone; None for no limit.
    """

    random_starts: int = 1
    iterations: int = 100
    tolerance: float = 1e-3
    rows: int = 256
    most: int | None = None


def maximum_a_posteriori(
    posterior: LogPosterior, starts: Sequence[Array], settings: SearchSettings
) -> Array:
    """The best natural values (p,) found by L-BFGS-B from each of ``starts``; the first start when
    every search fails."""
    if settings.most is not None and posterior.size > settings.most:
        posterior = posterior.part(settings.most)
    if len(starts) > 1 and posterior.size > settings.rows:
        part = posterior.part(settings.rows)
        once = replace(
            settings, rows=max(settings.rows, part.size), most=None
        )  # a part may be larger than asked for
        starts = [
            max((starts[0], maximum_a_posteriori(part, starts, once)), key=posterior.log_density)
        ]
    best_value, best = _HOPELESS, starts[0]
    for start in starts:
        share = settings.tolerance / max(posterior.size, 1)
        patience = _Patience(share, iterations=settings.iterations)
        value, found = _climbed(posterior, start, patience, np.ones(len(start)))
        if value < best_value:
            best_value, best = value, found
    return best


def first_part(size: int) -> int | None:
    """How many of ``size`` observations a fit from nothing looks at first, so that `polished` ends
    with all; None: all of them.

    Each step up is by ``GROWTH``; below ``LARGE`` observations there is none.
    """
    if size <= LARGE:
        return None
    part = float(size)
    while part > FIRST:
        part /= GROWTH
    return round(part)


def polished(posterior: LogPosterior, values: Array, seen: int, settings: SearchSettings) -> Array:
    """Natural values (p,) that were found on ``seen`` of the observations, brought to more and more
    of them, and then to all.

    A step costs the cube of the observations, so most steps are taken where they are cheap: with
    all data a search ends when a step gains little of what is gained, and after few in any case. It
    gains more in coordinates of about the same curvature, which a small part tells well enough.
    """
    part, sizes = posterior.part(seen), [posterior.size]
    while sizes[0] > GROWTH * seen:
        sizes.insert(0, round(sizes[0] / GROWTH))
    few = max(2, len(values) // 4)
    for size in sizes:
        here = posterior if size == posterior.size else posterior.part(size)
        least, share, most = (
            (LEAST_GAIN * size, 0.05, few) if here is posterior else (0.1, 0.01, 8 * few)
        )
        basis = _basis(_curvature(part, values) * (here.size / part.size))
        patience = _Patience(share, max(least, settings.tolerance), evaluations=most)
        _, values = _climbed(here, values, patience, basis)
    return values


@dataclass(frozen=True)
class _Patience:
    """When a search ends: with a step that gains less than ``least`` nats and ``share`` of all that
    is gained so far (without ``least``: than ``share`` of the log density), or after so many."""

    share: float
    least: float | None = None
    iterations: int = 100
    evaluations: int = 15_000


def _climbed(
    posterior: LogPosterior, start: Array, patience: _Patience, basis: Array
) -> tuple[float, Array]:
    """The least negative log density that L-BFGS-B finds from ``start``, and where.

    ``basis``: the units (p,) of the coordinates, or directions (p, p) to go from ``start``. The
    bounds are a box in units; directions may lead out of it, and end at its sides.
    """
    vector = posterior.vector
    lower, upper = vector.encode(vector.lower), vector.encode(vector.upper)
    turned, begin = basis.ndim == 2, vector.encode(start)
    first = np.zeros(len(begin)) if turned else begin / basis
    box = (
        np.stack([lower, upper], axis=1) / basis[:, None]
        if not turned
        else [(-_FAR, _FAR)] * len(begin)
    )
    level: float | None = None if patience.least is not None else 0.0

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
            return _HOPELESS, np.zeros_like(coordinates)
        if level is None:  # from here on the objective is what was gained, and a little
            level = -value + (patience.least or 0.0) / patience.share
        slopes = gradient * vector.slopes(values)
        inside = (lower < place) & (place < upper)
        return -value - level, -((slopes * inside) @ basis if turned else slopes * basis)

    options = {
        "maxiter": patience.iterations,
        "maxfun": patience.evaluations,
        "ftol": patience.share,
        "gtol": 1e-3,
    }
    found = minimize(objective, first, jac=True, method="L-BFGS-B", bounds=box, options=options)
    value = float(found.fun) + (level or 0.0)
    return value, vector.decode(encoded(found.x))


def _curvature(posterior: LogPosterior, values: Array) -> Array:
    """Minus the second derivatives (p, p) of the log density by encoded parameters, from differences
    of the gradient."""
    vector = posterior.vector
    middle, upper = vector.encode(values), vector.encode(vector.upper)
    found = np.zeros((len(middle), len(middle)))
    try:
        level = _slopes(posterior, middle)
        for place in range(len(middle)):
            moved = middle.copy()
            moved[place] += _SMALL if middle[place] + _SMALL <= upper[place] else -_SMALL
            found[place] = (level - _slopes(posterior, moved)) / (moved[place] - middle[place])
    except NumericalError:
        pass  # what is known by now will do
    return 0.5 * (found + found.T)


def _basis(curvature: Array) -> Array:
    """Coordinates in which a log density of this curvature (p, p) is about as steep everywhere: units
    (p,) of few parameters, directions (p, p) of many, which explain the data together.

    A step of 1 is where the density falls by a half of a nat; at most 1 in the old coordinates.
    """
    if len(curvature) <= FEW:
        return np.asarray(1.0 / np.sqrt(np.maximum(curvature.diagonal(), 1.0)))
    steepness, directions = np.linalg.eigh(curvature)
    return np.asarray(directions / np.sqrt(np.maximum(steepness, 1.0)))


def _slopes(posterior: LogPosterior, coordinates: Array) -> Array:
    """The gradient (p,) of the log density by encoded parameters."""
    values = posterior.vector.decode(coordinates)
    return posterior.value_and_gradient(values)[1] * posterior.vector.slopes(values)


LARGE = 300
"""With more observations than this, a fit from nothing begins with a part of them."""

FIRST = 200  # observations at most in the first part
GROWTH = 2.5  # from part to part
PART_TOLERANCE = 0.02  # nats: a step in the first part that gains less is the last
LEAST_GAIN = 2e-3  # nats per observation: a step with all data that gains less is the last
FEW = 12  # parameters up to which each has a unit of its own, and no direction is turned
_FAR = 1e3  # no step goes there, but with a box L-BFGS-B begins with a whole step
_SMALL = 1e-2  # for differences: encoded parameters are of order one

_HOPELESS = 1e30
"""The objective where no factor exists: finite, so that a line search retreats from it."""
