"""Several models as one: posterior samples of hyperparameters, and weighted sums.

`PosteriorEnsemble` averages a model over posterior samples of its hyperparameters, instead of taking
the single best ones.

    model = PosteriorEnsemble(ExactGP.over(columns))   # 300 draws, 250 dropped, every 5th kept
    fitted = model.fit(data, rng)
    fitted.members                                     # 10; acquisitions average over them

Sampling runs over encoded parameters, where the posterior is nearly round; the log of the
encoding's slope is added, so the samples follow the density of the natural values. Snoek,
Larochelle, Adams, Practical Bayesian Optimization of Machine Learning Algorithms, 2012.

`slice_sample` draws from a density known up to a factor, without tuning. From a point of log
density f, a level f - Exponential(1) is drawn; an interval of ``width`` is laid at random around
the point along a random unit direction and stepped out while its ends lie above the level; points
are drawn in it, and the interval is shrunk towards the old point, until one lies above the level.
Neal, Slice Sampling, 2003; Murray and Adams, Slice Sampling Covariance Hyperparameters, 2010.

`LinearEnsemble` is a weighted sum of independent models: mean sum w_k mean_k, variance sum w_k^2
variance_k. Its f is the weighted sum of the models' functions; in a mixture (`acquisition.weighted`,
`BoundMixture`) f is one of them with probability w_k. Feurer, Letham, Hutter, Bakshy, Practical
Transfer Learning for Bayesian Optimization, 2018, use it across tasks, the code of Hyper-Tune's
authors across levels.

    LinearEnsemble((0.7, 0.3), (AtBudget(fitted, 1 / 3), AtBudget(fitted, 1.0)))
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from scrimp.errors import NumericalError, StudyError
from scrimp.json_values import JsonObject
from scrimp.surrogates.exact_gp import ExactGP, record_of
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Posterior,
    PosteriorPullback,
    Surrogate,
    value_at,
)


@dataclass(frozen=True)
class SliceSettings:
    """``draws`` in all, of which the first ``burn_in`` are dropped and then every ``thin``-th kept:
    300, 250, 5 give 10.

    ``width``: of the first interval. ``steps_out``: the interval grows at most this often to each
    side.
    """

    draws: int = 300
    burn_in: int = 250
    thin: int = 5
    width: float = 1.0
    steps_out: int = 200


def slice_sample(
    log_density: Callable[[Array], float],
    start: Array,
    rng: np.random.Generator,
    settings: SliceSettings | None = None,
) -> Array:
    """Return draws (k, p) of a chain that starts at ``start`` (p,); the log density is minus infinity
    outside the support."""
    settings = settings or SliceSettings()
    point, height = start, log_density(start)
    if not np.isfinite(height):
        raise NumericalError(
            f"slice sampling cannot start at {start}, where the log density is {height}; start inside"
            " the support"
        )
    kept = []
    for draw in range(settings.draws):
        point, height = _next_point(log_density, point, height, rng, settings)
        if draw >= settings.burn_in and (draw - settings.burn_in + 1) % settings.thin == 0:
            kept.append(point)
    return np.array(kept)


def _next_point(
    log_density: Callable[[Array], float],
    point: Array,
    height: float,
    rng: np.random.Generator,
    settings: SliceSettings,
) -> tuple[Array, float]:
    """Make one transition of the chain; return the next point and its log density."""
    direction = rng.standard_normal(len(point))
    direction /= np.linalg.norm(direction)
    level = height - rng.exponential()
    low = -settings.width * rng.random()
    high = low + settings.width
    for _ in range(settings.steps_out):
        if log_density(point + low * direction) <= level:
            break
        low -= settings.width
    for _ in range(settings.steps_out):
        if log_density(point + high * direction) <= level:
            break
        high += settings.width
    while True:
        offset = rng.uniform(low, high)
        candidate = point + offset * direction
        value = log_density(candidate)
        if value > level:
            return candidate, value
        if offset < 0.0:
            low = offset
        else:
            high = offset
        if high - low < 1e-12:
            return point, height


@dataclass(frozen=True, eq=False)
class PosteriorEnsemble(Surrogate):
    """Slice sampling over the hyperparameters of ``model``; the chain starts at the last recorded
    sample, or without one at the best hyperparameters."""

    model: ExactGP
    sampling: SliceSettings = field(default_factory=SliceSettings)

    def fit(
        self, data: Data, rng: np.random.Generator, start: JsonObject | None = None
    ) -> "FittedEnsemble":
        posterior, vector = self.model.log_posterior(data), self.model.vector
        last = [] if start is None else _members(start)[-1:]
        recorded = vector.from_json(last[0].get("parameters")) if last else None
        if recorded is None:
            recorded = vector.from_json(self.model.fit(data, rng).state["parameters"])
        assert recorded is not None
        lower, upper = vector.encode(vector.lower), vector.encode(vector.upper)

        def log_density(coordinates: Array) -> float:
            if (coordinates < lower).any() or (coordinates > upper).any():
                return -np.inf
            values = vector.decode(coordinates)
            try:
                return posterior.log_density(values) + float(np.log(vector.slopes(values)).sum())
            except NumericalError:
                return -np.inf

        chain = slice_sample(log_density, vector.encode(recorded), rng, self.sampling)
        states = [record_of(vector, vector.decode(point), len(data)) for point in chain]
        return self.restore(data, {"members": states})

    def restore(self, data: Data, state: JsonObject) -> "FittedEnsemble":
        members = _members(state)
        if not members:
            raise StudyError("the recorded fit has no posterior samples: fit again")
        return FittedEnsemble(tuple(self.model.restore(data, member) for member in members))


def _members(state: JsonObject) -> list[JsonObject]:
    return value_at(state, "members", list[JsonObject], ())


class _Several(FittedSurrogate):
    """Several models of the same inputs: data and units of the first, numbers of the last."""

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


@dataclass(frozen=True, eq=False)
class FittedEnsemble(_Several):
    """A mixture of models; the posterior has its first two moments."""

    models: tuple[FittedSurrogate, ...]

    @property
    def members(self) -> tuple[FittedSurrogate, ...]:
        return self.models

    @property
    def state(self) -> JsonObject:
        return {"members": [dict(model.state) for model in self.models]}

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        return _mixture([model.posterior(x, joint=joint) for model in self.models])[0]

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        parts, pulls = zip(*(model.posterior_and_pullback(x) for model in self.models), strict=True)
        posterior, spread = _mixture(parts)

        def pull(d_mean: Array, d_variance: Array) -> Array:
            # The spread has mean zero, so its derivative through the average mean cancels.
            within = d_mean + 2.0 / spread.shape[2] * d_variance[:, None] * spread
            gradients = [one(within[i], d_variance) for i, one in enumerate(pulls)]
            return np.asarray(np.mean(gradients, axis=0), dtype=np.float64)

        return posterior, pull

    def mean(self, x: Array) -> Array:
        means = [model.mean(x) for model in self.models]
        return np.asarray(np.mean(means, axis=0), dtype=np.float64)

    def condition(self, data: Data) -> "FittedEnsemble":
        return FittedEnsemble(tuple(model.condition(data) for model in self.models))

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        """Draw from the mixture: each draw from a member chosen at random."""
        chosen = np.bincount(rng.integers(len(self.models), size=count), minlength=len(self.models))
        pairs = zip(self.models, chosen.tolist(), strict=True)
        draws = [model.sample(x, count, rng) for model, count in pairs if count]
        return rng.permutation(np.concatenate(draws))


def _mixture(parts: Sequence[Posterior]) -> tuple[Posterior, Array]:
    """Return mean and (co)variance of the mixture, and the difference of each member's mean from
    the common one (s, m, F).

    The variance is that within members plus that between them; the latter is averaged over
    fantasies, which share one variance.
    """
    means = np.stack([part.mean for part in parts])
    mean = means.mean(0)
    spread = means - mean
    covariances = [part.covariance for part in parts if part.covariance is not None]
    variance = np.mean([part.variance for part in parts], axis=0) + (spread**2).mean((0, 2))
    covariance = None
    if covariances:
        between = np.einsum("smf,snf->mn", spread, spread) / (len(parts) * mean.shape[1])
        covariance = np.mean(covariances, axis=0) + between
    return Posterior(mean, variance, covariance), spread


@dataclass(frozen=True, eq=False)
class LinearEnsemble(_Several):
    """``models`` in the same units, with a weight each; weights need not sum to 1. Data and units
    are those of the first model."""

    weights: tuple[float, ...]
    models: tuple[FittedSurrogate, ...]

    @property
    def state(self) -> JsonObject:
        states = [dict(model.state) for model in self.models]
        return {"weights": list(self.weights), "models": states}

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        return self._summed([model.posterior(x, joint=joint) for model in self.models])

    def _summed(self, parts: list[Posterior]) -> Posterior:
        mean, variance = np.zeros_like(parts[0].mean), np.zeros(len(parts[0].mean))
        covariance = None if parts[0].covariance is None else np.zeros_like(parts[0].covariance)
        for weight, part in zip(self.weights, parts, strict=True):
            mean += weight * part.mean
            variance += weight**2 * part.variance
            if covariance is not None and part.covariance is not None:
                covariance += weight**2 * part.covariance
        return Posterior(mean, variance, covariance)

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        pairs = [model.posterior_and_pullback(x) for model in self.models]

        def pull(d_mean: Array, d_variance: Array) -> Array:
            backs = zip(self.weights, (back for _, back in pairs), strict=True)
            parts = [back(w * d_mean, w**2 * d_variance) for w, back in backs]
            return np.asarray(np.sum(parts, axis=0), dtype=np.float64)

        return self._summed([posterior for posterior, _ in pairs]), pull

    def condition(self, data: Data) -> "LinearEnsemble":
        return LinearEnsemble(self.weights, tuple(model.condition(data) for model in self.models))

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        pairs = zip(self.weights, self.models, strict=True)
        draws = [weight * model.sample(x, count, rng) for weight, model in pairs]
        return np.asarray(np.sum(draws, axis=0), dtype=np.float64)

    def model_units(self, data: Data) -> Data:
        return self.models[0].model_units(data)

    def target_units(self, values: Array) -> Array:
        return self.models[0].target_units(values)
