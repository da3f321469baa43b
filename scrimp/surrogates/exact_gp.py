"""Gaussian process regression with dense algebra: the model behind every GP method.

    fitted = ExactGP.over(columns).fit(Data(x, y), rng)           # y standardised, as by `Transformed`
    fitted.posterior(candidates).mean                             # (m, 1)
    grown = fitted.condition(Data(new_x, new_y))                  # same hyperparameters

The state is the factor L L^T = K + noise and the whitened residuals w = L^-1 (y - m): further data
append rows to both, and F fantasies are F columns of w on one factor. The posterior is that of the
noise-free function,

    mean(x) = m(x) + k(x)^T alpha,    variance(x) = k(x, x) - |L^-1 k(x)|^2,    alpha = L^-T w.

A fit is recorded as

    {"parameters": {"length_scale": [0.3, 0.7], "noise": [0.01]}, "explored": 40}

The next fit searches from the recorded values only, until the data have grown by half since several
starts were last tried ("explored"): then from the prior mode and from random points too. A first fit
to many observations starts with a part of them; the record of that part has "part", the number of
observations, and is never written to the log.

Formulas: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1;
leave-one-out: section 5.4.2.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from scrimp.errors import NumericalError, StudyError
from scrimp.gp.cholesky import (
    cholesky,
    cholesky_in_place,
    grow,
    grow_inverse,
    inverse_factor,
    log_determinant,
    multiply_lower,
    solve_lower,
)
from scrimp.gp.columns import Column
from scrimp.gp.decay import DecayPrior, SharedDecayPosterior
from scrimp.gp.hyperparameters import Hyperparameter, LogNormal, ParameterVector
from scrimp.gp.marginal_likelihood import (
    PARTIAL_FIT,
    HyperparameterPosterior,
    LogPosterior,
    SearchSettings,
    first_part,
    maximum_a_posteriori,
    polish,
    spread_rows,
)
from scrimp.gp.process import CrossPullback, MeanAndKernel, Prior
from scrimp.gp.stationary import kernel_by_name
from scrimp.json_values import Json, JsonObject
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Posterior,
    PosteriorPullback,
    RecordedSurrogate,
    Surrogate,
    as_columns,
    object_at,
    value_at,
)

NOISE = Hyperparameter("noise", LogNormal(-8.0, 2.0), bounds=(1e-6, 1.0))
"""Noise variance of standardised targets. The lower bound keeps factors well conditioned.

The prior is wide, because objectives are either deterministic or noisy: on ten test functions (50
trials, 8 seeds) it ends lower than LogNormal(-4, 1) on eight, the noisy one included.
"""

PART_KEY = "part"
"""Key of the number of observations in the record of a fit to a part of them."""

_EXPLORE_GROWTH = 1.5
"""Several starts are tried again when the data have grown by this factor (convention)."""


Fitted = TypeVar("Fitted", bound=FittedSurrogate)


class MaximumAPosteriori(Surrogate, Generic[Fitted]):
    """A model whose parameters are those of the highest posterior density, found by ``search`` and
    recorded by name."""

    search: SearchSettings

    @property
    @abstractmethod
    def vector(self) -> ParameterVector:
        """The parameters."""

    @abstractmethod
    def log_posterior(self, data: Data) -> LogPosterior:
        """Return the density that a fit maximises and a sampler draws from."""

    @abstractmethod
    def given(self, data: Data, values: Array, explored: int) -> Fitted:
        """Return the model with these values (p,); "explored" is recorded."""

    def fit(self, data: Data, rng: np.random.Generator, start: JsonObject | None = None) -> Fitted:
        starts, explored = self.starts(len(data), start, rng)
        found = maximum_a_posteriori(self.log_posterior(data), starts, self.search)
        return self.given(data, found, explored)

    def starts(
        self, size: int, state: JsonObject | None, rng: np.random.Generator
    ) -> tuple[list[Array], int]:
        """Return the starts of a fit to ``size`` observations, and "explored": the number of
        observations when several starts were last tried, this time included."""
        recorded = None if state is None else self.vector.from_json(state.get("parameters"))
        if state is not None and recorded is not None:
            explored = value_at(state, "explored", int)
            if size < _EXPLORE_GROWTH * explored:
                return [recorded], explored
        drawn = [self.vector.sample(rng) for _ in range(self.search.random_starts)]
        return [*([] if recorded is None else [recorded]), self.vector.initial, *drawn], size

    def restore(self, data: Data, state: JsonObject) -> Fitted:
        return self.given(data, *recorded_values(self.vector, state))


@dataclass(frozen=True, eq=False)
class ExactGP(MaximumAPosteriori["FittedGP"]):
    """A Gaussian process with a learned noise variance, fitted by maximum a posteriori.

    ``Data.noise`` is added to the learned variance.
    """

    prior: Prior
    noise: Hyperparameter = NOISE
    search: SearchSettings = field(default_factory=SearchSettings)

    @classmethod
    def over(cls, columns: Sequence[Column], kernel: str = "matern52-ard") -> "ExactGP":
        """Return a model with a constant mean and the kernel of that name over these columns."""
        return cls(MeanAndKernel(kernel_by_name(kernel, columns)))

    @cached_property
    def vector(self) -> ParameterVector:
        return ParameterVector((*self.prior.parameters, self.noise))

    def fit(
        self, data: Data, rng: np.random.Generator, start: JsonObject | None = None
    ) -> "FittedGP":
        posterior = self.log_posterior(data)
        size = first_part(len(data)) if isinstance(posterior, HyperparameterPosterior) else None
        if size is not None and not is_record(self.vector, start):
            part = self.roughly().fit(data.select(spread_rows(len(data), size)), rng)
            start = {**part.state, PART_KEY: size}
        if start is not None and PART_KEY in start:
            recorded, _ = recorded_values(self.vector, start)
            found = polish(posterior, recorded, value_at(start, PART_KEY, int), self.search)
            return self.given(data, found, len(data))
        starts, explored = self.starts(len(data), start, rng)
        return self.given(data, maximum_a_posteriori(posterior, starts, self.search), explored)

    def roughly(self) -> "ExactGP":
        """Return a copy with a coarser search, for a part of the data."""
        tolerance = max(self.search.tolerance, PARTIAL_FIT.part_tolerance)
        return replace(self, search=replace(self.search, tolerance=tolerance))

    def log_posterior(self, data: Data) -> LogPosterior:
        check_finite(data)
        # Rows that repeat a configuration are cheap if the prior allows it.
        if isinstance(self.prior, DecayPrior) and self.prior.additive and data.noise is None:
            return SharedDecayPosterior.of(self.prior, self.noise, data.x, as_columns(data.y))
        known, y = data.known_noise, as_columns(data.y)
        return HyperparameterPosterior(self.prior, self.noise, data.x, y, known)

    def given(self, data: Data, values: Array, explored: int) -> "FittedGP":
        state = record_of(self.vector, values, explored)
        return fitted_gp(self.prior.with_values(values[:-1]), float(values[-1]), data, state)


def fitted_gp(prior: Prior, noise: float, data: Data, state: Mapping[str, Json]) -> "FittedGP":
    """Return the posterior of a prior with its values and a noise variance, given data: no fit, one
    factorisation."""
    check_finite(data)
    covariance = prior.covariance(data.x, data.x)
    covariance.flat[:: len(data) + 1] += noise + data.known_noise
    factor = cholesky_in_place(covariance.T)
    whitened = solve_lower(factor, as_columns(data.y) - prior.mean(data.x)[:, None])
    return FittedGP(prior, noise, data, factor, whitened, state)


def check_finite(data: Data) -> None:
    """Raise `NumericalError` for observations that are not finite."""
    for name, values in (("inputs", data.x), ("targets", data.y), ("noise variances", data.noise)):
        if values is not None and not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0, 0])
            raise NumericalError(
                f"the {name} of observation {row} are not finite ({values[row]}); leave failed"
                " observations out, or wrap the model in Transformed(..., (Winsorise(), ...)) to"
                " count them as bad"
            )


@dataclass(frozen=True, eq=False)
class FittedGP(RecordedSurrogate):
    """A Gaussian process given data: hyperparameters, factor (n, n), whitened residuals (n, F)."""

    prior: Prior
    noise: float
    observed: Data
    factor: Array
    whitened: Array
    recorded: JsonObject

    @property
    def length_scales(self) -> Array:
        return self.prior.length_scales(self.observed.x.shape[1])

    @property
    def noise_variance(self) -> float:
        return self.noise

    @cached_property
    def alpha(self) -> Array:
        """K^-1 (y - m), as (n, F)."""
        return solve_lower(self.factor, self.whitened, transposed=True)

    @cached_property
    def inverse_factor(self) -> Array:
        """L^-1: with many candidates, multiplying by it is faster than solving."""
        return inverse_factor(self.factor)

    @property
    def log_marginal_likelihood(self) -> float:
        """log p(y | x), averaged over fantasies."""
        size, fantasies = self.whitened.shape
        squares = float(np.vdot(self.whitened, self.whitened)) / fantasies
        return float(-0.5 * (squares + log_determinant(self.factor) + size * np.log(2.0 * np.pi)))

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        covariance = self.prior.covariance(x, x) if joint else None
        before = Posterior(self.prior.mean(x)[:, None], self.prior.variance(x), covariance)
        return self.updated(before, self.prior.covariance(x, self.observed.x))[0]

    def updated(self, before: Posterior, cross: Array) -> tuple[Posterior, Array]:
        """Return the posterior of m values with the prior moments ``before`` and covariances ``cross``
        (m, n) with the observations, and L^-1 cross^T (n, m). The memory of ``cross`` is reused."""
        mean = before.mean + cross @ self.alpha
        # A few columns are solved for directly; with many, the inverse factor is faster.
        if "inverse_factor" not in self.__dict__ and 8 * len(cross) < len(self.factor):
            reduced = solve_lower(self.factor, cross.T)
        else:
            reduced = multiply_lower(self.inverse_factor, cross.T, overwrite=True)
        variance = before.variance - np.einsum("ij,ij->j", reduced, reduced)
        covariance = before.covariance
        if covariance is not None:
            covariance = covariance - reduced.T @ reduced
        return Posterior(mean, np.maximum(variance, 0.0), covariance), reduced

    def mean(self, x: Array) -> Array:
        return self.prior.mean(x)[:, None] + self.prior.covariance(x, self.observed.x) @ self.alpha

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        mean, variance, cross, pull_prior = self.prior.cross_and_pullback(x, self.observed.x)
        return self.updated_and_pullback(Posterior(mean[:, None], variance), cross, pull_prior)

    def updated_and_pullback(
        self, before: Posterior, cross: Array, pull_prior: CrossPullback
    ) -> tuple[Posterior, PosteriorPullback]:
        """Return marginals as `updated` does, and the chain rule through those of the prior."""
        inverse_factor = self.inverse_factor
        posterior, reduced = self.updated(before, cross)

        def pull(d_mean: Array, d_variance: Array) -> Array:
            solved = multiply_lower(inverse_factor, reduced, transposed=True).T
            d_cross = d_mean @ self.alpha.T - 2.0 * d_variance[:, None] * solved
            return pull_prior(d_mean.sum(1), d_variance, d_cross)

        return posterior, pull

    def condition(self, data: Data) -> "FittedGP":
        cross = self.prior.covariance(self.observed.x, data.x)
        corner = self.prior.covariance(data.x, data.x)
        corner.flat[:: len(data) + 1] += self.noise + data.known_noise
        factor = grow(self.factor, cross, corner)
        old, targets = len(self.observed), as_columns(data.y)
        below, inner = factor[old:, :old], factor[old:, old:]
        residual = targets - self.prior.mean(data.x)[:, None] - below @ self.whitened
        added = solve_lower(inner, residual)
        whitened = np.concatenate([np.broadcast_to(self.whitened, (old, added.shape[1])), added])
        both = joined(self.observed, data)
        grown = FittedGP(self.prior, self.noise, both, factor, whitened, self.recorded)
        # A cached inverse grows too, instead of being computed again.
        if "inverse_factor" in self.__dict__:
            grown.__dict__["inverse_factor"] = grow_inverse(self.inverse_factor, factor)
        return grown

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        scale = float(self.prior.variance(x).mean())
        return joint_draws(self.posterior(x, joint=True), scale, count, rng)

    def leave_one_out(self) -> Posterior:
        """Return the posterior at every observation given all the others, with fixed
        hyperparameters: mean (n, F), variance (n,).

        mean_i = y_i - alpha_i / K^-1_ii and variance_i = 1 / K^-1_ii less the observation's own
        noise.
        """
        precision = np.einsum("ij,ij->j", self.inverse_factor, self.inverse_factor)
        mean = as_columns(self.observed.y) - self.alpha / precision[:, None]
        own = self.noise + self.observed.known_noise
        return Posterior(mean, np.maximum(1.0 / precision - own, 0.0))


def joint_draws(posterior: Posterior, scale: float, count: int, rng: np.random.Generator) -> Array:
    """Draw ``count`` times (count, m) from a joint posterior; ``scale`` is that of the jitter."""
    if posterior.mean.shape[1] != 1:
        raise ValueError(
            f"joint draws need one set of targets, and this model has {posterior.mean.shape[1]}"
            " fantasies"
        )
    assert posterior.covariance is not None
    root = cholesky(posterior.covariance, scale=scale)
    return posterior.mean[:, 0] + rng.standard_normal((count, len(root))) @ root.T


def joined(old: Data, new: Data) -> Data:
    """Concatenate observations; the old targets are repeated for each fantasy of the new ones."""
    y_new, y_old = as_columns(new.y), as_columns(old.y)
    y = np.concatenate([np.broadcast_to(y_old, (len(old), y_new.shape[1])), y_new])
    noise = None
    if old.noise is not None or new.noise is not None:
        noise = np.concatenate([np.zeros(len(part)) + part.known_noise for part in (old, new)])
    y = y[:, 0] if new.y.ndim == 1 and old.y.ndim == 1 else y
    return Data(np.concatenate([old.x, new.x]), y, noise)


def record_of(vector: ParameterVector, values: Array, explored: int) -> dict[str, Json]:
    """Return the record of a fit with these values (p,)."""
    return {"parameters": vector.to_json(values), "explored": explored}


def is_record(vector: ParameterVector, state: JsonObject | None) -> bool:
    """True if there is a record, and it is of these parameters."""
    return state is not None and vector.from_json(state.get("parameters")) is not None


def recorded_values(vector: ParameterVector, state: JsonObject) -> tuple[Array, int]:
    """Return the values (p,) of a recorded fit and its "explored"; raise `StudyError` if it is of
    another model."""
    named = object_at(state, "parameters")
    values = vector.from_json(named)
    if values is None:
        sizes = {name: len(part) for name, part in named.items() if isinstance(part, Sequence)}
        own = {parameter.name: parameter.size for parameter in vector.parameters}
        raise StudyError(
            f"the recorded fit has parameters {sizes} where this model has {own}; the space, the"
            " kernel or the levels have changed: fit again"
        )
    return values, value_at(state, "explored", int)
