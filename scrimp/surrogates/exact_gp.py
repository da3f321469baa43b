"""Gaussian process regression with dense algebra: the model behind every GP method of moderate
size.

    # y standardised: see target_transform
    fitted = ExactGP.over(columns).fit(Data(x, y), rng)
    fitted.posterior(candidates).mean                             # (m, 1)
    # same hyperparameters, the factor grows by blocks
    grown = fitted.condition(Data(new_x, new_y))

Everything rests on the factor L L^T = K + noise and the whitened residuals w = L^-1 (y - m):
growing the data appends rows to both, and F fantasies are F columns of w on one factor. The
posterior is that of the noise-free function,

    mean(x) = m(x) + k(x)^T alpha,    variance(x) = k(x, x) - |L^-1 k(x)|^2,    alpha = L^-T w.

Formulas: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1;
leave-one-out: section 5.4.2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from scrimp.errors import NumericalError
from scrimp.gp.budget import DecayPrior
from scrimp.gp.catalog import kernel_by_name
from scrimp.gp.cholesky import (
    cholesky,
    cholesky_in_place,
    grow,
    grow_inverse,
    inverse_factor,
    log_determinant,
    multiply_lower,
    solve_lower,
    solve_lower_transposed,
)
from scrimp.gp.columns import Column
from scrimp.gp.marginal_likelihood import (
    PART_TOLERANCE,
    HyperparameterPosterior,
    LogPosterior,
    SearchSettings,
    first_part,
    maximum_a_posteriori,
    polished,
    spread_rows,
)
from scrimp.gp.priors import Hyperparameter, LogNormal, ParameterVector
from scrimp.gp.process import MeanAndKernel, Prior
from scrimp.gp.shared_decay import SharedDecayPosterior
from scrimp.json_values import Json, JsonObject
from scrimp.surrogates.record_reading import whole_at
from scrimp.surrogates.recorded_fit import (
    PART,
    found_in_part,
    is_record,
    record_of,
    recorded_values,
    search_from,
)
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Posterior,
    PosteriorPullback,
    Surrogate,
)

__all__ = [
    "NOISE",
    "ExactGP",
    "FittedGP",
    "as_columns",
    "check_finite",
    "fitted_gp",
    "joined",
    "part_of",
]

NOISE = Hyperparameter("noise", LogNormal(-8.0, 2.0), bounds=(1e-6, 1.0))
"""Noise variance of standardised targets, with the floor that keeps factors well conditioned.

Wide, because objectives are deterministic or noisy and nothing in between: on ten test functions
(50 trials, 8 seeds) it ends lower than LogNormal(-4, 1) on eight, with the noisy one among them.
"""


@dataclass(frozen=True, eq=False)
class ExactGP(Surrogate):
    """A Gaussian process with a learned noise variance, fitted by maximum a posteriori.

    ``Data.noise`` is added to the learned variance. A fit goes on from a recorded ``start``; see
    `recorded_fit`.
    """

    prior: Prior
    noise: Hyperparameter = NOISE
    search: SearchSettings = field(default_factory=SearchSettings)

    @classmethod
    def over(cls, columns: Sequence[Column], kernel: str = "matern52-ard") -> "ExactGP":
        """A constant mean and the kernel of that name over these columns."""
        return cls(MeanAndKernel(kernel_by_name(kernel, columns)))

    @cached_property
    def vector(self) -> ParameterVector:
        """The prior's parameters, then the noise variance."""
        return ParameterVector((*self.prior.parameters, self.noise))

    def fit(
        self, data: Data, rng: np.random.Generator, start: JsonObject | None = None
    ) -> "FittedGP":
        posterior = self.hyperparameter_posterior(data)
        if isinstance(posterior, HyperparameterPosterior):
            start = self._start_in_part(data, rng, start)
        if start is not None and PART in start:
            found = polished(
                posterior,
                recorded_values(self.vector, start)[0],
                whole_at(start, PART),
                self.search,
            )
            return self._fitted(data, found, len(data))
        starts, explored = search_from(self.vector, len(data), start, rng, self.search)
        return self._fitted(data, maximum_a_posteriori(posterior, starts, self.search), explored)

    def _start_in_part(
        self, data: Data, rng: np.random.Generator, start: Mapping[str, Json] | None
    ) -> Mapping[str, Json] | None:
        """Where a fit to many data begins that has no record to go on from: with a fit to some of
        them."""
        size = first_part(len(data))
        if size is None or is_record(self.vector, start):
            return start
        return found_in_part(self.roughly().fit(part_of(data, size), rng).state, size)

    def roughly(self) -> "ExactGP":
        """The same with a search for a part of the data, which is polished on all of them."""
        tolerance = max(self.search.tolerance, PART_TOLERANCE)
        return replace(self, search=replace(self.search, tolerance=tolerance))

    def restore(self, data: Data, state: Mapping[str, Json]) -> "FittedGP":
        return self._fitted(data, *recorded_values(self.vector, state))

    def hyperparameter_posterior(self, data: Data) -> LogPosterior:
        """What a fit maximises and a sampler samples; rows that repeat a configuration are cheap
        where the prior allows it."""
        check_finite(data)
        if isinstance(self.prior, DecayPrior) and self.prior.additive and data.noise is None:
            return SharedDecayPosterior.of(self.prior, self.noise, data.x, as_columns(data.y))
        noise = 0.0 if data.noise is None else data.noise
        return HyperparameterPosterior(self.prior, self.noise, data.x, as_columns(data.y), noise)

    def _fitted(self, data: Data, values: Array, explored: int) -> "FittedGP":
        state = record_of(self.vector, values, explored)
        return fitted_gp(self.prior.with_values(values[:-1]), float(values[-1]), data, state)


def fitted_gp(prior: Prior, noise: float, data: Data, state: Mapping[str, Json]) -> "FittedGP":
    """The posterior of a prior with its values and a noise variance, given data: no fit, one
    factorisation."""
    check_finite(data)
    covariance = prior.covariance(data.x, data.x)
    covariance.flat[:: len(data) + 1] += noise if data.noise is None else noise + data.noise
    factor = cholesky_in_place(covariance.T)
    whitened = solve_lower(factor, as_columns(data.y) - prior.mean(data.x)[:, None])
    return FittedGP(prior, noise, data, factor, whitened, state)


def check_finite(data: Data) -> None:
    """Refuse observations that are not finite."""
    for name, values in (("inputs", data.x), ("targets", data.y), ("noise variances", data.noise)):
        if values is not None and not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0, 0])
            raise NumericalError(
                f"the {name} of observation {row} are not finite ({values[row]}); leave failed"
                " observations out, or wrap the model in Transformed(..., (Winsorise(), ...)) to"
                " count them as bad"
            )


def as_columns(y: Array) -> Array:
    """(n,) or (n, F) to (n, F)."""
    return y[:, None] if y.ndim == 1 else y


@dataclass(frozen=True, eq=False)
class FittedGP(FittedSurrogate):
    """A Gaussian process given data: hyperparameters, the factor (n, n) and the whitened residuals
    (n, F)."""

    prior: Prior
    noise: float
    observed: Data
    factor: Array
    whitened: Array
    recorded: Mapping[str, Json]

    @property
    def data(self) -> Data:
        return self.observed

    @property
    def state(self) -> JsonObject:
        return self.recorded

    @property
    def length_scales(self) -> Array:
        return self.prior.length_scales(self.observed.x.shape[1])

    @property
    def noise_variance(self) -> float:
        return self.noise

    @cached_property
    def alpha(self) -> Array:
        """K^-1 (y - m), as (n, F)."""
        return solve_lower_transposed(self.factor, self.whitened)

    @cached_property
    def inverse_factor(self) -> Array:
        """L^-1: multiplying by it is faster than solving, and many candidates are asked about."""
        return inverse_factor(self.factor)

    @property
    def log_marginal_likelihood(self) -> float:
        """log p(y | x), averaged over fantasies."""
        size, fantasies = self.whitened.shape
        squares = float(np.vdot(self.whitened, self.whitened)) / fantasies
        return float(-0.5 * (squares + log_determinant(self.factor) + size * np.log(2.0 * np.pi)))

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        cross = self.prior.covariance(x, self.observed.x)
        mean = self.prior.mean(x)[:, None] + cross @ self.alpha
        reduced = self._reduced(cross.T)
        variance = self.prior.variance(x) - np.einsum("ij,ij->j", reduced, reduced)
        covariance = self.prior.covariance(x, x) - reduced.T @ reduced if joint else None
        return Posterior(mean, np.maximum(variance, 0.0), covariance)

    def _reduced(self, cross: Array) -> Array:
        """L^-1 b for b (n, m), which may be overwritten; for a few columns the inverse is not worth
        computing."""
        if "inverse_factor" not in self.__dict__ and 8 * cross.shape[1] < len(cross):
            return solve_lower(self.factor, cross)
        return multiply_lower(self.inverse_factor, cross, overwrite=True)

    def mean(self, x: Array) -> Array:
        return self.prior.mean(x)[:, None] + self.prior.covariance(x, self.observed.x) @ self.alpha

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        prior_mean, prior_variance, cross, pull_prior = self.prior.cross_and_pullback(
            x, self.observed.x
        )
        mean = prior_mean[:, None] + cross @ self.alpha
        reduced = multiply_lower(self.inverse_factor, cross.T)  # (n, m)
        variance = prior_variance - np.einsum("ij,ij->j", reduced, reduced)

        def pull(d_mean: Array, d_variance: Array) -> Array:
            solved = multiply_lower(self.inverse_factor, reduced, transposed=True).T
            d_cross = d_mean @ self.alpha.T - 2.0 * d_variance[:, None] * solved
            return pull_prior(d_mean.sum(1), d_variance, d_cross)

        return Posterior(mean, np.maximum(variance, 0.0)), pull

    def condition(self, data: Data) -> "FittedGP":
        cross = self.prior.covariance(self.observed.x, data.x)
        corner = self.prior.covariance(data.x, data.x)
        corner.flat[:: len(data) + 1] += (
            self.noise if data.noise is None else self.noise + data.noise
        )
        factor = grow(self.factor, cross, corner)
        old, targets = len(self.observed), as_columns(data.y)
        below, inner = factor[old:, :old], factor[old:, old:]
        residual = targets - self.prior.mean(data.x)[:, None] - below @ self.whitened
        added = solve_lower(inner, residual)
        whitened = np.concatenate([np.broadcast_to(self.whitened, (old, added.shape[1])), added])
        grown = FittedGP(
            self.prior, self.noise, joined(self.observed, data), factor, whitened, self.recorded
        )
        if (
            "inverse_factor" in self.__dict__
        ):  # what is known already grows too, instead of being computed anew
            grown.__dict__["inverse_factor"] = grow_inverse(self.inverse_factor, factor)
        return grown

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        posterior = self.posterior(x, joint=True)
        if posterior.mean.shape[1] != 1:
            raise ValueError(
                f"joint draws need one set of targets, and this model has {posterior.mean.shape[1]}"
                " fantasies"
            )
        assert posterior.covariance is not None
        root = cholesky(posterior.covariance, scale=float(self.prior.variance(x).mean()))
        return posterior.mean[:, 0] + rng.standard_normal((count, len(x))) @ root.T

    def leave_one_out(self) -> Posterior:
        """At every observation, the posterior given all the others, hyperparameters fixed: mean (n,
        F), variance (n,).

        mean_i = y_i - alpha_i / K^-1_ii and variance_i = 1 / K^-1_ii less the observation's own
        noise.
        """
        precision = np.einsum("ij,ij->j", self.inverse_factor, self.inverse_factor)
        mean = as_columns(self.observed.y) - self.alpha / precision[:, None]
        own = self.noise if self.observed.noise is None else self.noise + self.observed.noise
        return Posterior(mean, np.maximum(1.0 / precision - own, 0.0))


def part_of(data: Data, size: int) -> Data:
    """``size`` of the observations, evenly over all of them: the rows that a posterior takes for
    its part."""
    rows = spread_rows(len(data), size)
    return Data(data.x[rows], data.y[rows], None if data.noise is None else data.noise[rows])


def joined(old: Data, new: Data) -> Data:
    """Observations one after the other; the old targets are repeated for each fantasy of the
    new."""
    y_new, y_old = as_columns(new.y), as_columns(old.y)
    y = np.concatenate([np.broadcast_to(y_old, (len(old), y_new.shape[1])), y_new])
    noise = None
    if old.noise is not None or new.noise is not None:
        parts = [np.zeros(len(part)) if part.noise is None else part.noise for part in (old, new)]
        noise = np.concatenate(parts)
    return Data(
        np.concatenate([old.x, new.x]), y[:, 0] if new.y.ndim == 1 and old.y.ndim == 1 else y, noise
    )
