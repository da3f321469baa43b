"""A weighted sum of independent models as one: mean sum w_k mean_k, variance sum w_k^2 variance_k.

Here f is the weighted sum of the models' functions; in a mixture (`acquisition.weighted`,
`BoundMixture`) f is one of them with probability w_k. Feurer, Letham, Hutter, Bakshy, Practical
Transfer Learning for Bayesian Optimization, 2018, use it across tasks, the code of Hyper-Tune's
authors across levels.

    LinearEnsemble((0.7, 0.3), (AtBudget(fitted, 1 / 3), AtBudget(fitted, 1.0)))
"""

from dataclasses import dataclass

import numpy as np

from scrimp.json_values import JsonObject
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Posterior, PosteriorPullback


@dataclass(frozen=True, eq=False)
class LinearEnsemble(FittedSurrogate):
    """``models`` in the same units, with a weight each; weights need not sum to 1. Data and units
    are those of the first model."""

    weights: tuple[float, ...]
    models: tuple[FittedSurrogate, ...]

    @property
    def data(self) -> Data:
        return self.models[0].data

    @property
    def length_scales(self) -> Array:
        return self.models[-1].length_scales

    @property
    def noise_variance(self) -> float:
        return self.models[-1].noise_variance

    @property
    def state(self) -> JsonObject:
        return {
            "weights": list(self.weights),
            "models": [dict(model.state) for model in self.models],
        }

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        return self._summed([model.posterior(x, joint=joint) for model in self.models])

    def _summed(self, parts: list[Posterior]) -> Posterior:
        mean, variance = np.zeros_like(parts[0].mean), np.zeros(len(parts[0].mean))
        covariance = None if parts[0].covariance is None else np.zeros_like(parts[0].covariance)
        for weight, part in zip(self.weights, parts, strict=True):
            mean += weight * part.mean
            if part.variance is not None:
                variance += weight**2 * part.variance
            if covariance is not None and part.covariance is not None:
                covariance += weight**2 * part.covariance
        return Posterior(mean, variance, covariance)

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        pairs = [model.posterior_and_pullback(x) for model in self.models]

        def pull(d_mean: Array, d_variance: Array) -> Array:
            parts = [
                back(w * d_mean, w**2 * d_variance)
                for w, (_, back) in zip(self.weights, pairs, strict=True)
            ]
            return np.asarray(np.sum(parts, axis=0), dtype=np.float64)

        return self._summed([posterior for posterior, _ in pairs]), pull

    def condition(self, data: Data) -> "LinearEnsemble":
        """Add the same observations to every model."""
        return LinearEnsemble(self.weights, tuple(model.condition(data) for model in self.models))

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        draws = [
            w * model.sample(x, count, rng)
            for w, model in zip(self.weights, self.models, strict=True)
        ]
        return np.asarray(np.sum(draws, axis=0), dtype=np.float64)

    def model_units(self, data: Data) -> Data:
        return self.models[0].model_units(data)

    def target_units(self, values: Array) -> Array:
        return self.models[0].target_units(values)
