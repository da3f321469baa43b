"""Several models of the same study, each with its probability: a surrogate, and the expected improvement under it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scrimp.acquisition.acquisition import Acquisition, Context, model_named
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.acquisition.mixture import BoundMixture
from scrimp.errors import MethodError
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Posterior, PosteriorPullback
from scrimp.surrogates.target_transform import LearnedStep

__all__ = ["WeightedImprovement", "WeightedModels"]


@dataclass(frozen=True, eq=False)
class WeightedModels(FittedSurrogate):
    """The mixture of ``models`` with probabilities ``weights`` (K,); its posterior has the mixture's first two moments."""

    models: tuple[FittedSurrogate, ...]
    weights: Array
    steps: tuple[LearnedStep, ...] = ()

    @property
    def data(self) -> Data:
        return self.models[0].data

    @property
    def state(self) -> Mapping[str, Any]:
        return {"weights": self.weights.tolist()}

    def target_units(self, values: Array) -> Array:
        for step in reversed(self.steps):
            values = step.backward(values)
        return values

    def model_units(self, data: Data) -> Data:
        y = data.y
        for step in self.steps:
            y = step.forward(y)
        return Data(data.x, y, data.noise)

    def mean(self, x: Array) -> Array:
        means = np.stack([model.mean(x) for model in self.models])
        return np.asarray(np.einsum("k,kmf->mf", self.weights, means))

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        parts = [model.posterior(x, joint=joint) for model in self.models]
        mean, variance, spread = self._moments(parts)
        covariance = None
        if joint:
            within = np.stack([part.covariance for part in parts if part.covariance is not None])
            between = np.einsum("k,kmf,knf->mn", self.weights, spread, spread) / mean.shape[1]
            covariance = np.einsum("k,kmn->mn", self.weights, within) + between
        return Posterior(mean, variance, covariance)

    def _moments(self, parts: list[Posterior]) -> tuple[Array, Array, Array]:
        means = np.stack([part.mean for part in parts])
        mean = np.einsum("k,kmf->mf", self.weights, means)
        spread = means - mean
        within = np.stack([part.variance for part in parts if part.variance is not None])
        variance = self.weights @ within + np.einsum("k,kmf->m", self.weights, spread**2) / mean.shape[1]
        return mean, variance, spread

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        pairs = [model.posterior_and_pullback(x) for model in self.models]
        mean, variance, spread = self._moments([part for part, _ in pairs])

        def pull(d_mean: Array, d_variance: Array) -> Array:
            total = np.zeros_like(x)
            for (_, back), weight, far in zip(pairs, self.weights, spread, strict=True):
                inner = d_mean + 2.0 * d_variance[:, None] * far / mean.shape[1]
                total += back(weight * inner, weight * d_variance)
            return total

        return Posterior(mean, variance), pull

    def condition(self, data: Data) -> "WeightedModels":
        return WeightedModels(tuple(model.condition(data) for model in self.models), self.weights, self.steps)

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        drawn = rng.multinomial(count, self.weights / self.weights.sum())
        draws = [model.sample(x, int(k), rng) for model, k in zip(self.models, drawn, strict=True) if k]
        return rng.permutation(np.concatenate(draws))


@dataclass(frozen=True)
class WeightedImprovement(Acquisition):
    """The expected improvement under `WeightedModels`: the weighted sum of each model's own."""

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundMixture:
        mixture = model_named(models, "loss")
        if not isinstance(mixture, WeightedModels):
            raise MethodError(f"WeightedImprovement needs WeightedModels, not {type(mixture).__name__}")
        improvement = LogExpectedImprovement()
        parts = tuple(improvement.bind({"loss": model}, context) for model in mixture.models)
        return BoundMixture(tuple(mixture.weights.tolist()), parts)
