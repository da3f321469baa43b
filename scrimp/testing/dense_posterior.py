"""The slow, obvious Gaussian process that tests of acquisitions trust: squared exponential kernel,
dense formulas.

It shares no code with the package's own models, so it is an independent oracle for whatever rests
on a `FittedSurrogate`.

    model = random_posterior(seed=0, n=12, d=3)
"""

from dataclasses import dataclass, field, replace
from typing import TypedDict, Unpack

import numpy as np

from scrimp.json_values import JsonObject
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Posterior, PosteriorPullback

__all__ = ["DensePosterior", "SampledPosterior", "random_posterior"]


@dataclass(frozen=True, eq=False)
class DensePosterior(FittedSurrogate):
    """k(x, x') = amplitude exp(-|(x - x') / scales|^2 / 2), a constant prior mean ``level``, noise
    variance ``noise``."""

    observations: Data
    scales: Array
    amplitude: float = 1.0
    noise: float = 1e-4
    level: float = 0.0
    means_only: bool = False
    inverse: Array = field(init=False)
    weights: Array = field(init=False)

    def __post_init__(self) -> None:
        covariance = self.kernel(self.data.x, self.data.x) + np.diag(self._noises(self.data))
        object.__setattr__(self, "inverse", np.linalg.inv(covariance))
        object.__setattr__(self, "weights", self.inverse @ (self.targets - self.level))

    def kernel(self, a: Array, b: Array) -> Array:
        """(n, m)."""
        squares = (((a[:, None, :] - b[None]) / self.scales) ** 2).sum(axis=2)
        values: Array = self.amplitude * np.exp(-0.5 * squares)
        return values

    @property
    def targets(self) -> Array:
        """(n, F)."""
        return _columns(self.data.y)

    @property
    def data(self) -> Data:
        return self.observations

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        cross = self.kernel(x, self.data.x)
        mean = self.level + cross @ self.weights
        covariance = self.kernel(x, x) - cross @ self.inverse @ cross.T if joint else None
        variance = self.amplitude - ((cross @ self.inverse) * cross).sum(axis=1)
        return Posterior(mean, None if self.means_only else variance, covariance)

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        cross = self.kernel(x, self.data.x)

        def pull(d_mean: Array, d_variance: Array) -> Array:
            d_cross = d_mean @ self.weights.T - 2.0 * d_variance[:, None] * (cross @ self.inverse)
            inner = d_cross * cross
            d_x: Array = (inner @ self.data.x - inner.sum(axis=1)[:, None] * x) / self.scales**2
            return d_x

        return self.posterior(x), pull

    def condition(self, data: Data) -> "DensePosterior":
        own, new = self.targets, _columns(data.y)
        fantasies = max(own.shape[1], new.shape[1])
        y = np.concatenate([np.broadcast_to(part, (len(part), fantasies)) for part in (own, new)])
        added = [
            np.zeros(len(part)) if part.noise is None else part.noise for part in (self.data, data)
        ]
        return replace(
            self, observations=Data(np.concatenate([self.data.x, data.x]), y, np.concatenate(added))
        )

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        posterior = self.posterior(x, joint=True)
        assert posterior.covariance is not None
        return rng.multivariate_normal(
            posterior.mean[:, 0], posterior.covariance, size=count, method="svd"
        )

    @property
    def length_scales(self) -> Array:
        return self.scales

    @property
    def state(self) -> JsonObject:
        return {}

    def _noises(self, data: Data) -> Array:
        return np.full(len(data), self.noise) + (0.0 if data.noise is None else data.noise)


@dataclass(frozen=True, eq=False)
class SampledPosterior(FittedSurrogate):
    """Several models of the same data, to be averaged over; an acquisition asks its members, never
    itself."""

    models: tuple[DensePosterior, ...]

    @property
    def data(self) -> Data:
        return self.models[0].data

    @property
    def members(self) -> tuple[FittedSurrogate, ...]:
        return self.models

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        raise AssertionError("ask the members")

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        raise AssertionError("ask the members")

    def condition(self, data: Data) -> "SampledPosterior":
        return SampledPosterior(tuple(model.condition(data) for model in self.models))

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        return self.models[0].sample(x, count, rng)

    @property
    def state(self) -> JsonObject:
        return {}


class PosteriorSettings(TypedDict, total=False):
    """The settings of a `DensePosterior`."""

    amplitude: float
    noise: float
    level: float
    means_only: bool


def random_posterior(
    seed: int, n: int = 12, d: int = 3, **settings: Unpack[PosteriorSettings]
) -> DensePosterior:
    """A model of n noisy observations of a random smooth function of d inputs, standardised."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    length_scales = np.exp(rng.uniform(np.log(0.2), np.log(1.0), d)) * np.sqrt(d / 3)
    prior = DensePosterior(Data(x[:0], np.zeros(0)), length_scales)
    y = prior.sample(x, 1, rng)[0]
    y = (y - y.mean()) / y.std() + 0.01 * rng.standard_normal(n)
    return DensePosterior(Data(x, y), length_scales, **settings)


def _columns(y: Array) -> Array:
    return y[:, None] if y.ndim == 1 else y
