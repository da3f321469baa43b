"""The battery for acquisitions, and an independent model to test them on.

An acquisition that needs more models than "loss" overrides `models` as well, and `context` where it
needs more information.

`DensePosterior` is a slow, obvious Gaussian process with a squared exponential kernel and dense
formulas. It shares no code with the package's own models, so it is an independent oracle for
everything that uses a `FittedSurrogate`.

    model = random_posterior(seed=0, n=12, d=3)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypedDict, Unpack

import numpy as np

from scrimp.acquisition.acquisition import (
    Acquisition,
    BoundAcquisition,
    Context,
    FantasyAverage,
    MeanStdAcquisition,
    fantasise,
)
from scrimp.json_values import JsonObject
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Posterior, PosteriorPullback

TEST_DIMENSION = 3


@dataclass(frozen=True, eq=False)
class DensePosterior(FittedSurrogate):
    """A Gaussian process with kernel k(x, x') = amplitude exp(-|(x - x') / scales|^2 / 2), a
    constant prior mean ``level`` and noise variance ``noise``."""

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
        """Return the covariances (n, m)."""
        squares = (((a[:, None, :] - b[None]) / self.scales) ** 2).sum(axis=2)
        values: Array = self.amplitude * np.exp(-0.5 * squares)
        return values

    @property
    def targets(self) -> Array:
        """The targets (n, F)."""
        return _columns(self.data.y)

    @property
    def data(self) -> Data:
        return self.observations

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        cross = self.kernel(x, self.data.x)
        mean = self.level + cross @ self.weights
        covariance = self.kernel(x, x) - cross @ self.inverse @ cross.T if joint else None
        variance = self.amplitude - ((cross @ self.inverse) * cross).sum(axis=1)
        return Posterior(mean, 0.0 * variance if self.means_only else variance, covariance)

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
        noise = [np.zeros(len(part)) + part.known_noise for part in (self.data, data)]
        both = Data(np.concatenate([self.data.x, data.x]), y, np.concatenate(noise))
        return replace(self, observations=both)

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        posterior = self.posterior(x, joint=True)
        assert posterior.covariance is not None
        mean, covariance = posterior.mean[:, 0], posterior.covariance
        return rng.multivariate_normal(mean, covariance, size=count, method="svd")

    @property
    def length_scales(self) -> Array:
        return self.scales

    @property
    def state(self) -> JsonObject:
        return {}

    def _noises(self, data: Data) -> Array:
        return np.full(len(data), self.noise) + data.known_noise


@dataclass(frozen=True, eq=False)
class SampledPosterior(FittedSurrogate):
    """Several models of the same data; an acquisition asks its members, never itself."""

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
    """Return a model of n noisy observations of a random smooth function of d inputs."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    length_scales = np.exp(rng.uniform(np.log(0.2), np.log(1.0), d)) * np.sqrt(d / 3)
    prior = DensePosterior(Data(x[:0], np.zeros(0)), length_scales)
    y = prior.sample(x, 1, rng)[0]
    y = (y - y.mean()) / y.std() + 0.01 * rng.standard_normal(n)
    return DensePosterior(Data(x, y), length_scales, **settings)


def _columns(y: Array) -> Array:
    return y[:, None] if y.ndim == 1 else y


def finite_differences(function: Callable[[Array], Array], x: Array, step: float = 1e-5) -> Array:
    """Return central differences (m, d) of a function of each row of x (m, d)."""
    gradient = np.zeros_like(x)
    for j in range(x.shape[1]):
        shift = step * np.eye(x.shape[1])[j]
        gradient[:, j] = (function(x + shift) - function(x - shift)) / (2.0 * step)
    return gradient


class AcquisitionBattery(ABC):
    """Tests for acquisitions: a deterministic score per row, its gradient, correct averages."""

    @abstractmethod
    def acquisition(self) -> Acquisition:
        """Return the acquisition under test."""

    def models(self) -> Mapping[str, FittedSurrogate]:
        """Return the models it needs, by name, over three inputs."""
        return {"loss": random_posterior(seed=1, d=TEST_DIMENSION)}

    def context(self, models: Mapping[str, FittedSurrogate]) -> Context:
        """Return the context it needs."""
        return Context(evaluated=models["loss"].data.x)

    def bound(self) -> BoundAcquisition:
        """Bind the acquisition to one model each, without fantasies."""
        models = self.models()
        return self.acquisition().bind(models, self.context(models))

    def with_fantasies(self) -> BoundAcquisition:
        """Bind the acquisition to models with fantasies at two pending inputs."""
        models, pending = self.models(), self.rows(2, seed=5)
        grown = {
            name: fantasise(model, pending, 4, np.random.default_rng(7))
            for name, model in models.items()
        }
        return self.acquisition().bind(grown, replace(self.context(models), pending=pending))

    def with_members(self) -> BoundAcquisition:
        """Bind the acquisition to models with two posterior samples each."""
        models = self.models()
        sampled = {name: _sampled(model) for name, model in models.items()}
        return self.acquisition().bind(sampled, self.context(models))

    def rows(self, count: int, seed: int = 3) -> Array:
        """Return inputs (count, 3) inside the unit cube."""
        return np.random.default_rng(seed).uniform(0.05, 0.95, (count, TEST_DIMENSION))

    def test_gives_one_finite_score_per_row(self) -> None:
        for bound in (self.bound(), self.with_fantasies(), self.with_members()):
            for count in (0, 1, 7):
                scores = bound(self.rows(count))
                assert scores.shape == (count,)
                assert np.isfinite(scores).all()

    def test_is_finite_at_evaluated_inputs(self) -> None:
        assert np.isfinite(self.bound()(self.models()["loss"].data.x)).all()

    def test_is_deterministic(self) -> None:
        np.testing.assert_array_equal(self.bound()(self.rows(7)), self.bound()(self.rows(7)))

    def test_scores_each_row_by_itself(self) -> None:
        """Skip acquisitions whose scores are joint."""
        bound, x = self.bound(), self.rows(7)
        if not bound.joint:
            alone = np.concatenate([bound(row[None]) for row in x])
            np.testing.assert_allclose(bound(x), alone, rtol=1e-9, atol=1e-12)

    def test_value_and_gradient_gives_the_same_scores(self) -> None:
        for bound in (self.bound(), self.with_fantasies(), self.with_members()):
            if not bound.joint:
                scores = bound.value_and_gradient(self.rows(7))[0]
                np.testing.assert_allclose(scores, bound(self.rows(7)), rtol=1e-9)

    def test_gradient_agrees_with_finite_differences(self) -> None:
        x = self.rows(7)
        for bound in (self.bound(), self.with_fantasies(), self.with_members()):
            if not bound.joint:
                gradient = bound.value_and_gradient(x)[1]
                expected = finite_differences(bound, x)
                error = 1e-6 * np.abs(expected).max()
                np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=error)

    def test_ranking_does_not_depend_on_the_units_of_the_loss(self) -> None:
        models, x = self.models(), self.rows(30)
        if not all(isinstance(model, DensePosterior) for model in models.values()):
            return
        scaled = {**models, "loss": rescaled(models["loss"])}
        scores = self.bound()(x)
        others = self.acquisition().bind(scaled, self.context(models))(x)
        np.testing.assert_array_equal(np.argsort(scores), np.argsort(others))

    def test_prefers_a_lower_mean(self) -> None:
        """No derivative by the mean is positive, for formulas of mean and std."""
        acquisition = self.acquisition()
        if isinstance(acquisition, MeanStdAcquisition):
            mean, std = np.linspace(-2.0, 2.0, 9)[:, None], np.full((9, 1), 0.7)
            assert (np.asarray(acquisition.derivatives(mean, std, np.zeros(1))[0]) <= 0.0).all()
            assert (np.diff(acquisition.alpha(mean, std, np.zeros(1))[:, 0]) <= 0.0).all()

    def test_averages_are_averages(self) -> None:
        """Average scores over fantasies; average their exponentials where they are logarithms."""
        bound, x = self.with_fantasies(), self.rows(7)
        if isinstance(bound, FantasyAverage):
            terms = bound.terms(x)
            expected = terms.mean(axis=1)
            # exp(terms) may be too small for a float.
            if bound.logarithmic:
                expected = np.logaddexp.reduce(terms, axis=1) - np.log(terms.shape[1])
            np.testing.assert_allclose(bound(x), expected, rtol=1e-9)


def _sampled(model: FittedSurrogate) -> FittedSurrogate:
    if not isinstance(model, DensePosterior):
        return model
    other = replace(model, scales=0.8 * model.scales, amplitude=1.5 * model.amplitude)
    return SampledPosterior((model, other))


def rescaled(model: FittedSurrogate) -> DensePosterior:
    """Return the model of targets times 10 plus 3."""
    assert isinstance(model, DensePosterior)
    data = Data(model.data.x, 10.0 * model.data.y + 3.0, model.data.noise)
    return replace(
        model,
        observations=data,
        amplitude=100.0 * model.amplitude,
        noise=100.0 * model.noise,
        level=10.0 * model.level + 3.0,
    )
