"""Models of f(x, r) by budget level: views at one budget, a Gaussian process per level, and the weights
of levels in Hyper-Tune.

`AtBudget` turns a model of rows (x, share of the full budget) into a model of configurations, which
an acquisition over configurations needs. Its data are those of the whole model; conditioning on
observations made at this budget conditions the whole model.

    view = AtBudget(fitted, share=1.0)
    LogExpectedImprovement().bind({"loss": view}, Context(evaluated=configs))

*Weights* measure how far each level can be trusted to order configurations as the highest level
does. Take the highest level r* with enough observations, the configurations X* observed there and
their targets y*. For a level r below, draw f(X*, r) jointly from the model: the loss of a draw is
the share of pairs that it orders differently from y*. At r* the draws come from models that have not
seen the configurations they predict (cross-validation in at most 5 folds, pairs within a fold). The
weight theta_r is the share of draws in which r has the smallest loss; ties count for all, then
normalised. A joint model predicts lower levels from data below r* only: had it seen y*, the lower
levels would look better than they are.

    theta = level_weights(ranking_losses(model, data, fitted.state, (levels, top), 50, rng))

`IndependentGPs` has one Gaussian process per level, with one kernel for all: values at different levels
are scaled and shifted versions of each other, and levels do not share data.

    f(x, r) ~ GP(mu_r, c_r k(x, x')),    y = f + N(0, s)

k is shared and has no scale; s is shared, or one s_r per level (``separate_noise``). The log likelihood
is the sum over levels, so a fit costs the sum of n_r^3 instead of (sum of n_r)^3. The last column of the
input is the share of the full budget; a row belongs to the nearest level. At a level without data the
posterior is the prior.

    model = IndependentGPs(Matern52(columns), levels=(1 / 9, 1 / 3, 1.0))
    model.fit(Data(np.column_stack([x, share]), y), rng).posterior(rows)

Li et al., Hyper-Tune: Towards Efficient Hyper-parameter Tuning at Scale, 2022.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scrimp.gp.hyperparameters import Hyperparameter, LogNormal, ParameterVector
from scrimp.gp.kernel import Kernel, Scaled
from scrimp.gp.marginal_likelihood import (
    HyperparameterPosterior,
    LogPosterior,
    SearchSettings,
    spread_rows,
)
from scrimp.gp.process import CONSTANT_MEAN, MeanAndKernel
from scrimp.json_values import JsonObject
from scrimp.surrogates.exact_gp import (
    NOISE,
    FittedGP,
    MaximumAPosteriori,
    check_finite,
    fitted_gp,
    joined,
    joint_draws,
    record_of,
)
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Posterior,
    PosteriorPullback,
    RecordedSurrogate,
    Surrogate,
    SurrogateView,
    as_columns,
)


def with_share(x: Array, share: Array | float) -> Array:
    """Append a budget column to configurations (n, d), as (n, d + 1)."""
    return np.column_stack([x, np.broadcast_to(share, len(x))])


def nearest_level(levels: Array, x: Array) -> NDArray[np.intp]:
    """Return the index of the level nearest to the last column of each row."""
    return np.asarray(np.abs(x[:, -1:] - levels).argmin(axis=1), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class AtBudget(SurrogateView):
    """``inner`` at the budget ``share``."""

    inner: FittedSurrogate
    share: float

    @property
    def length_scales(self) -> Array:
        return self.inner.length_scales[:-1]

    @property
    def members(self) -> tuple[FittedSurrogate, ...]:
        return tuple(AtBudget(member, self.share) for member in self.inner.members)

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        return self.inner.posterior(with_share(x, self.share), joint=joint)

    def mean(self, x: Array) -> Array:
        return self.inner.mean(with_share(x, self.share))

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        posterior, pull = self.inner.posterior_and_pullback(with_share(x, self.share))
        return posterior, lambda d_mean, d_variance: pull(d_mean, d_variance)[:, :-1]

    def condition(self, data: Data) -> "AtBudget":
        here = Data(with_share(data.x, self.share), data.y, data.noise)
        return AtBudget(self.inner.condition(here), self.share)

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        return self.inner.sample(with_share(x, self.share), count, rng)


MIN_OBSERVATIONS_TO_COMPARE = 6
"""Observations that a level needs so that others are compared with it (convention)."""

MAX_FOLDS = 5
"""Folds of the cross-validation, as in the paper."""


def supported_level(levels: Array, x: Array) -> int:
    """Return the index of the highest level with enough observations among rows (x, share), or 0."""
    counts = np.bincount(nearest_level(levels, x), minlength=len(levels))
    enough = np.flatnonzero(counts >= MIN_OBSERVATIONS_TO_COMPARE)
    return int(enough[-1]) if len(enough) else 0


def pairwise_loss(draws: Array, targets: Array) -> Array:
    """Return the share of pairs that each draw (s, n) orders differently from the targets (n,), (s,).

    >>> pairwise_loss(np.array([[0.1, 0.3, 0.2]]), np.array([1.0, 2.0, 3.0])).round(3).tolist()
    [0.333]
    """
    pairs = len(targets) * (len(targets) - 1) / 2
    return discordant_pairs(draws, targets) / pairs


def discordant_pairs(draws: Array, targets: Array) -> Array:
    """Return the number of pairs that each draw (s, n) orders differently from the targets (n,), (s,)."""
    low, high = np.triu_indices(len(targets), 1)
    differs = (draws[:, low] < draws[:, high]) != (targets[low] < targets[high])
    return np.asarray(differs.sum(axis=1), dtype=np.float64)


def ranking_losses(
    model: Surrogate,
    data: Data,
    state: JsonObject,
    levels: tuple[Array, int],
    samples: int,
    rng: np.random.Generator,
) -> Array:
    """Return losses (k + 1, s) of the levels up to the k-th (``levels`` = shares and k > 0), for data
    of rows (x, share). Without ``samples``, losses of the means, (k + 1, 1)."""
    shares, top = levels
    level = nearest_level(shares, data.x)
    at_top = data.select(level == top)
    below = model.restore(data.select(level < top), state)
    losses = [
        pairwise_loss(_drawn(below, with_share(at_top.x[:, :-1], share), samples, rng), at_top.y)
        for share in shares[:top]
    ]
    return np.stack([*losses, _held_out_loss(model, at_top, state, samples, rng)])


def _held_out_loss(
    model: Surrogate, data: Data, state: JsonObject, samples: int, rng: np.random.Generator
) -> Array:
    """Return the mean loss over folds of at least two observations, each predicted from the others
    with the same hyperparameters."""
    total = np.zeros(max(samples, 1))
    folds = np.array_split(np.arange(len(data)), min(len(data) // 2, MAX_FOLDS))
    for fold in folds:
        inside = np.zeros(len(data), dtype=bool)
        inside[fold] = True
        others = model.restore(data.select(~inside), state)
        total += pairwise_loss(_drawn(others, data.x[fold], samples, rng), data.y[fold])
    return total / len(folds)


def level_weights(losses: Array) -> Array:
    """theta (k,) from losses (k, s).

    >>> level_weights(np.array([[0.1, 0.5], [0.2, 0.5]])).round(3).tolist()
    [0.667, 0.333]
    """
    least = losses == losses.min(axis=0)
    return np.asarray(least.sum(axis=1) / least.sum(), dtype=np.float64)


def cubed_weights(losses: Array) -> Array:
    """theta (k,) in proportion to the cube of the share of pairs in order, 1 - loss (k,), as in the
    authors' code; equal if no level orders any pair.

    >>> cubed_weights(np.array([0.5, 0.0])).round(3).tolist()
    [0.111, 0.889]
    """
    cubes = (1.0 - losses) ** 3
    return np.asarray(cubes / cubes.sum() if cubes.any() else np.full(len(cubes), 1 / len(cubes)))


def _drawn(model: FittedSurrogate, x: Array, samples: int, rng: np.random.Generator) -> Array:
    return model.sample(x, samples, rng) if samples else model.mean(x)[:, 0][None]


LEVEL_SCALE = Hyperparameter("level_scale", LogNormal(0.0, 1.0), bounds=(1e-3, 1e3), initial=1.0)


@dataclass(frozen=True, eq=False)
class IndependentGPs(MaximumAPosteriori["FittedIndependentGPs"]):
    """``kernel`` over the configuration's columns, without a scale; ``levels``: shares of the full
    budget, increasing."""

    kernel: Kernel
    levels: tuple[float, ...]
    separate_noise: bool = False
    search: SearchSettings = field(default_factory=SearchSettings)

    @cached_property
    def vector(self) -> ParameterVector:
        """Means and scales by level, the kernel's parameters, then the noise variances."""
        count = len(self.levels)
        noise = replace(NOISE, size=count if self.separate_noise else 1)
        own = (replace(CONSTANT_MEAN, size=count), replace(LEVEL_SCALE, size=count))
        return ParameterVector((*own, *self.kernel.parameters, noise))

    def log_posterior(self, data: Data) -> "LevelsPosterior":
        check_finite(data)
        return LevelsPosterior(self, data)

    def by_level(self, x: Array) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Yield the index of each level that is nearest to some rows, and these rows."""
        levels = nearest_level(np.array(self.levels), x)
        for level in np.unique(levels):
            yield int(level), np.flatnonzero(levels == level)

    def slots(self, level: int) -> NDArray[np.intp]:
        """Return the indices of a level's mean, scale, kernel parameters and noise variance in the
        parameter vector."""
        count, total = len(self.levels), self.vector.size
        noises = count if self.separate_noise else 1
        shared = np.arange(2 * count, total - noises)
        noise = total - noises + (level if noises > 1 else 0)
        return np.array([level, count + level, *shared, noise])

    def level_prior(self, values: Array) -> MeanAndKernel:
        """Return the prior of a level given its mean, its scale and the kernel's parameters."""
        kernel = Scaled(self.kernel.with_values(values[2:]), LEVEL_SCALE, float(values[1]))
        return MeanAndKernel(kernel, constant=float(values[0]))

    def given(self, data: Data, values: Array, explored: int) -> "FittedIndependentGPs":
        check_finite(data)
        state = record_of(self.vector, values, explored)
        empty = FittedIndependentGPs(self, values, {}, Data(data.x[:0], data.y[:0]), state)
        return empty.condition(data)


@dataclass(frozen=True, eq=False)
class LevelsPosterior(LogPosterior):
    """The sum of the levels' log likelihoods, plus the log densities of the parameters."""

    model: IndependentGPs
    data: Data

    @property
    def vector(self) -> ParameterVector:
        return self.model.vector

    @property
    def size(self) -> int:
        return len(self.data)

    def part(self, size: int) -> "LevelsPosterior":
        return LevelsPosterior(self.model, self.data.select(spread_rows(len(self.data), size)))

    @cached_property
    def _parts(self) -> list[tuple[NDArray[np.intp], HyperparameterPosterior]]:
        noise = replace(NOISE, size=1)
        parts = []
        for level, rows in self.model.by_level(self.data.x):
            part = self.data.select(rows)
            slots = self.model.slots(level)
            prior = self.model.level_prior(self.vector.initial[slots[:-1]])
            x, y = part.x[:, :-1], as_columns(part.y)
            posterior = HyperparameterPosterior(prior, noise, x, y, part.known_noise)
            parts.append((slots, posterior))
        return parts

    def value_and_gradient(self, values: Array) -> tuple[float, Array]:
        total, gradient = self.vector.log_density_and_gradient(values)
        for slots, part in self._parts:
            value, slope = part.likelihood_and_gradient(values[slots])
            total += value
            gradient[slots] += slope
        return total, gradient


@dataclass(frozen=True, eq=False)
class FittedIndependentGPs(RecordedSurrogate):
    """Fitted processes by level, except for levels without data."""

    model: IndependentGPs
    values: Array
    parts: Mapping[int, FittedGP]
    observed: Data
    recorded: JsonObject

    @property
    def length_scales(self) -> Array:
        """Length-scales of the shared kernel; unknown along the budget."""
        return np.append(self.prior(0).length_scales(self.observed.x.shape[1] - 1), np.nan)

    @property
    def noise_variance(self) -> float:
        """The largest noise variance over levels."""
        slots = range(len(self.model.levels))
        return max(float(self.values[self.model.slots(level)[-1]]) for level in slots)

    @property
    def fantasies(self) -> int:
        """The number of fantasies F."""
        return as_columns(self.observed.y).shape[1] if len(self.observed) else 1

    def prior(self, level: int) -> MeanAndKernel:
        """Return the prior of a level."""
        return self.model.level_prior(self.values[self.model.slots(level)[:-1]])

    def _part(self, level: int, x: Array, joint: bool) -> Posterior:
        if level in self.parts:
            return self.parts[level].posterior(x, joint=joint)
        prior = self.prior(level)
        mean = np.repeat(prior.mean(x)[:, None], self.fantasies, axis=1)
        return Posterior(mean, prior.variance(x), prior.covariance(x, x) if joint else None)

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        mean, variance = np.empty((len(x), self.fantasies)), np.empty(len(x))
        covariance = np.zeros((len(x), len(x))) if joint else None
        for level, rows in self.model.by_level(x):
            part = self._part(level, x[rows, :-1], joint)
            mean[rows], variance[rows] = part.mean, part.variance
            if covariance is not None:
                covariance[np.ix_(rows, rows)] = part.covariance
        return Posterior(mean, variance, covariance)

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        mean, variance = np.empty((len(x), self.fantasies)), np.empty(len(x))
        pulls = []
        for level, rows in self.model.by_level(x):
            if level not in self.parts:
                # A constant mean and a stationary kernel have no slope.
                part = self._part(level, x[rows, :-1], False)
            else:
                part, pull_part = self.parts[level].posterior_and_pullback(x[rows, :-1])
                pulls.append((rows, pull_part))
            mean[rows], variance[rows] = part.mean, part.variance

        def pull(d_mean: Array, d_variance: Array) -> Array:
            d_x = np.zeros_like(x)
            for rows, pull_part in pulls:
                d_x[rows, :-1] = pull_part(d_mean[rows], d_variance[rows])
            return d_x

        return Posterior(mean, variance), pull

    def condition(self, data: Data) -> "FittedIndependentGPs":
        parts = dict(self.parts)
        fantasies = as_columns(data.y).shape[1]
        for level, rows in self.model.by_level(data.x):
            here = data.select(rows)
            here = Data(here.x[:, :-1], here.y, here.noise)
            if level in parts:
                parts[level] = parts[level].condition(here)
            else:
                noise = float(self.values[self.model.slots(level)[-1]])
                parts[level] = fitted_gp(self.prior(level), noise, here, {})
        for level, old in parts.items():
            # Levels without new data are the same in every fantasy.
            if old.whitened.shape[1] < fantasies:
                parts[level] = replace(old, whitened=np.repeat(old.whitened, fantasies, axis=1))
        whole = joined(self.observed, data) if len(self.observed) else data
        return FittedIndependentGPs(self.model, self.values, parts, whole, self.recorded)

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        draws = np.empty((count, len(x)))
        for level, rows in self.model.by_level(x):
            configs = x[rows, :-1]
            scale = float(self.prior(level).variance(configs).mean())
            draws[:, rows] = joint_draws(self._part(level, configs, True), scale, count, rng)
        return draws
