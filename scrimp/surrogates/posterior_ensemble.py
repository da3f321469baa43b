"""A model averaged over posterior samples of its hyperparameters, instead of resting on the single
best ones.

    # 300 draws, 250 dropped, every 5th kept: 10 members
    model = PosteriorEnsemble(ExactGP.over(columns))
    fitted = model.fit(data, rng)
    # acquisitions average over them, one incumbent each
    fitted.members

Sampling runs over encoded parameters, where the posterior is nearly round; the log of the
encoding's slope is added, so the samples are of the density of the natural values. Snoek,
Larochelle, Adams, Practical Bayesian Optimization of Machine Learning Algorithms, 2012.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scrimp.errors import NumericalError, StudyError
from scrimp.gp.slice_sampling import SliceSettings, slice_sample
from scrimp.json_values import JsonObject
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.record_reading import list_at
from scrimp.surrogates.recorded_fit import record_of
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Posterior,
    PosteriorPullback,
    Surrogate,
)

__all__ = ["FittedEnsemble", "PosteriorEnsemble"]


@dataclass(frozen=True, eq=False)
class PosteriorEnsemble(Surrogate):
    """Slice sampling over the hyperparameters of ``model``; the chain begins at the best ones, or
    at the last recorded state."""

    model: ExactGP
    sampling: SliceSettings = field(default_factory=SliceSettings)

    def fit(
        self, data: Data, rng: np.random.Generator, start: JsonObject | None = None
    ) -> "FittedEnsemble":
        posterior, vector = self.model.hyperparameter_posterior(data), self.model.vector
        last = [] if start is None else _members(start)[-1:]
        recorded = vector.from_json(last[0].get("parameters")) if last else None
        begin = (
            vector.from_json(self.model.fit(data, rng).state["parameters"])
            if recorded is None
            else recorded
        )
        assert begin is not None
        lower, upper = vector.encode(vector.lower), vector.encode(vector.upper)

        def log_density(coordinates: Array) -> float:
            if (coordinates < lower).any() or (coordinates > upper).any():
                return -np.inf
            values = vector.decode(coordinates)
            try:
                return posterior.log_density(values) + float(np.log(vector.slopes(values)).sum())
            except NumericalError:
                return -np.inf

        chain = slice_sample(log_density, vector.encode(begin), rng, self.sampling)
        states = [record_of(vector, vector.decode(point), len(data)) for point in chain]
        return self.restore(data, {"members": states})

    def restore(self, data: Data, state: JsonObject) -> "FittedEnsemble":
        members = _members(state)
        if not members:
            raise StudyError("the recorded fit is of a model without posterior samples: fit anew")
        return FittedEnsemble(tuple(self.model.restore(data, member) for member in members))


def _members(state: JsonObject) -> list[JsonObject]:
    """The records of the sampled models."""
    return [member for member in list_at(state, "members") if isinstance(member, Mapping)]


@dataclass(frozen=True, eq=False)
class FittedEnsemble(FittedSurrogate):
    """The mixture of its members, with its first two moments as posterior."""

    models: tuple[FittedSurrogate, ...]

    @property
    def members(self) -> tuple[FittedSurrogate, ...]:
        return self.models

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
        return {"members": [dict(model.state) for model in self.models]}

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        return _mixture([model.posterior(x, joint=joint) for model in self.models])[0]

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        parts, pulls = zip(*(model.posterior_and_pullback(x) for model in self.models), strict=True)
        posterior, spread = _mixture(parts)

        def pull(d_mean: Array, d_variance: Array) -> Array:
            # the spread's own mean is zero, so its derivative through the average mean cancels
            within = d_mean + 2.0 / spread.shape[2] * d_variance[:, None] * spread
            gradients = [one(within[i], d_variance) for i, one in enumerate(pulls)]
            return np.asarray(np.mean(gradients, axis=0), dtype=np.float64)

        return posterior, pull

    def mean(self, x: Array) -> Array:
        return np.asarray(
            np.mean([model.mean(x) for model in self.models], axis=0), dtype=np.float64
        )

    def condition(self, data: Data) -> "FittedEnsemble":
        return FittedEnsemble(tuple(model.condition(data) for model in self.models))

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        """Draws of the mixture: each from a member chosen at random."""
        chosen = np.bincount(rng.integers(len(self.models), size=count), minlength=len(self.models))
        draws = [
            model.sample(x, int(k), rng) for model, k in zip(self.models, chosen, strict=True) if k
        ]
        return rng.permutation(np.concatenate(draws))


def _mixture(parts: Sequence[Posterior]) -> tuple[Posterior, Array]:
    """Mean and (co)variance of the mixture, and how far each member's mean lies from the common one
    (s, m, F).

    The variance is that within members plus that between them, the latter averaged over fantasies,
    which share one variance.
    """
    means = np.stack([part.mean for part in parts])
    mean = means.mean(0)
    spread = means - mean
    variances = [part.variance for part in parts if part.variance is not None]
    covariances = [part.covariance for part in parts if part.covariance is not None]
    variance = np.mean(variances, axis=0) + (spread**2).mean((0, 2))
    covariance = None
    if covariances:
        between = np.einsum("smf,snf->mn", spread, spread) / (len(parts) * mean.shape[1])
        covariance = np.mean(covariances, axis=0) + between
    return Posterior(mean, variance, covariance), spread
