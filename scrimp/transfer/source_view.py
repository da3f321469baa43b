"""The model of one past study as a surrogate like any other: over all columns of the space at hand,
in the units of the study at hand.

    SourceView(model.small, model.study.columns, shift=0.2, scale=1.5).posterior(x)
"""

from dataclasses import dataclass, replace

import numpy as np

from scrimp.json_values import JsonObject
from scrimp.surrogates.exact_gp import FittedGP
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Posterior,
    PosteriorPullback,
)

__all__ = ["SourceView"]


@dataclass(frozen=True, eq=False)
class SourceView(FittedSurrogate):
    """The model of a past study over all columns of the space at hand, in its units: shift + scale
    * value."""

    gp: FittedGP
    columns: tuple[int, ...]
    shift: float = 0.0
    scale: float = 1.0

    @property
    def data(self) -> Data:
        return self.gp.data

    @property
    def state(self) -> JsonObject:
        return self.gp.state

    @property
    def noise_variance(self) -> float:
        return self.gp.noise_variance * self.scale**2

    def _scaled(self, posterior: Posterior) -> Posterior:
        assert posterior.variance is not None
        covariance = None if posterior.covariance is None else posterior.covariance * self.scale**2
        return Posterior(
            self.shift + self.scale * posterior.mean, posterior.variance * self.scale**2, covariance
        )

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        return self._scaled(self.gp.posterior(x[:, list(self.columns)], joint=joint))

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        posterior, back = self.gp.posterior_and_pullback(x[:, list(self.columns)])

        def pull(d_mean: Array, d_variance: Array) -> Array:
            d_x = np.zeros_like(x)
            d_x[:, list(self.columns)] = back(self.scale * d_mean, self.scale**2 * d_variance)
            return d_x

        return self._scaled(posterior), pull

    def condition(self, data: Data) -> "SourceView":
        noise = None if data.noise is None else data.noise / self.scale**2
        own = Data(data.x[:, list(self.columns)], (data.y - self.shift) / self.scale, noise)
        return replace(self, gp=self.gp.condition(own))

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        return np.asarray(
            self.shift + self.scale * self.gp.sample(x[:, list(self.columns)], count, rng)
        )
