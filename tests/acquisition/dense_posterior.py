"""The slow, obvious Gaussian process that the tests of this folder trust: squared exponential kernel, dense formulas.

It shares no code with the package's own models, so it is an independent oracle for whatever rests on a `FittedSurrogate`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Posterior, PosteriorPullback


@dataclass(frozen=True, eq=False)
class DensePosterior(FittedSurrogate):
    observations: Data
    length_scales: Array
    amplitude: float = 1.0
    noise: float = 1e-4
    level: float = 0.0
    means_only: bool = False

    def __post_init__(self) -> None:
        known = self.observations.noise
        noise = np.full(len(self.observations), self.noise) if known is None else known
        covariance = self.kernel(self.observations.x, self.observations.x) + np.diag(noise + 1e-10)
        object.__setattr__(self, "_inverse", np.linalg.inv(covariance))
        object.__setattr__(self, "_weights", self._inverse @ (self.targets - self.level))

    def kernel(self, a: Array, b: Array) -> Array:
        squares = (((a[:, None, :] - b[None]) / self.length_scales) ** 2).sum(axis=2)
        return self.amplitude * np.exp(-0.5 * squares)

    @property
    def targets(self) -> Array:
        y = self.observations.y
        return y[:, None] if y.ndim == 1 else y

    @property
    def data(self) -> Data:
        return self.observations

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        cross = self.kernel(x, self.data.x)
        mean = self.level + cross @ self._weights
        covariance = self.kernel(x, x) - cross @ self._inverse @ cross.T if joint else None
        variance = self.amplitude - ((cross @ self._inverse) * cross).sum(axis=1)
        return Posterior(mean, None if self.means_only else variance, covariance)

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        cross = self.kernel(x, self.data.x)

        def pull(d_mean: Array, d_variance: Array) -> Array:
            d_cross = d_mean @ self._weights.T - 2.0 * d_variance[:, None] * (cross @ self._inverse)
            inner = d_cross * cross
            return (inner @ self.data.x - inner.sum(axis=1)[:, None] * x) / self.length_scales**2

        return self.posterior(x), pull

    def condition(self, data: Data) -> "DensePosterior":
        own, new = self.targets, data.y[:, None] if data.y.ndim == 1 else data.y
        fantasies = max(own.shape[1], new.shape[1])
        y = np.concatenate([np.broadcast_to(t, (len(t), fantasies)) for t in (own, new)])
        noise = np.concatenate([np.full(len(d), self.noise) if d.noise is None else d.noise for d in (self.data, data)])
        return replace(self, observations=Data(np.concatenate([self.data.x, data.x]), y, noise))

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        posterior = self.posterior(x, joint=True)
        return rng.multivariate_normal(posterior.mean[:, 0], posterior.covariance, size=count, method="svd")

    @property
    def state(self) -> Mapping[str, Any]:
        return {}


@dataclass(frozen=True, eq=False)
class SampledPosterior(FittedSurrogate):
    """Several models of the same data, to be averaged over."""

    models: tuple[DensePosterior, ...]

    @property
    def data(self) -> Data:
        return self.models[0].data

    @property
    def members(self) -> tuple[FittedSurrogate, ...]:
        return self.models

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        raise AssertionError("an acquisition asks the members")

    posterior_and_pullback = posterior  # type: ignore[assignment]

    def condition(self, data: Data) -> "SampledPosterior":
        return SampledPosterior(tuple(model.condition(data) for model in self.models))

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        return self.models[0].sample(x, count, rng)

    @property
    def state(self) -> Mapping[str, Any]:
        return {}


def random_posterior(seed: int, n: int = 12, d: int = 3, **settings: Any) -> DensePosterior:
    """A model of n noisy observations of a random smooth function, standardised."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    length_scales = np.exp(rng.uniform(np.log(0.2), np.log(1.0), d)) * np.sqrt(d / 3)
    prior = DensePosterior(Data(x[:0], np.zeros(0)), length_scales)
    y = prior.sample(x, 1, rng)[0]
    y = (y - y.mean()) / y.std() + 0.01 * rng.standard_normal(n)
    return DensePosterior(Data(x, y), length_scales, **settings)
