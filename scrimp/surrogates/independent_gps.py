"""One Gaussian process per budget level, with one kernel for all: values at different levels are
scaled and shifted versions of each other, and levels do not share data.

    f(x, r) ~ GP(mu_r, c_r k(x, x')),    y = f + N(0, s)

k is shared and has no scale; s is shared, or one s_r per level (``separate_noise``).

The log likelihood is the sum over levels, so a fit costs the sum of n_r^3 instead of (sum of
n_r)^3. The last column of the input is the share of the full budget; a row belongs to the nearest
level. At a level without data the posterior is the prior.

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
    maximum_a_posteriori,
)
from scrimp.gp.process import CONSTANT_MEAN, MeanAndKernel
from scrimp.json_values import JsonObject
from scrimp.surrogates.budget_levels import nearest_level
from scrimp.surrogates.exact_gp import (
    NOISE,
    FittedGP,
    check_finite,
    fitted_gp,
    joined,
    joint_draws,
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
    as_columns,
)

LEVEL_SCALE = Hyperparameter("level_scale", LogNormal(0.0, 1.0), bounds=(1e-3, 1e3), initial=1.0)


@dataclass(frozen=True, eq=False)
class IndependentGPs(Surrogate):
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

    def fit(
        self, data: Data, rng: np.random.Generator, start: JsonObject | None = None
    ) -> "FittedIndependentGPs":
        starts, explored = search_from(self.vector, len(data), start, rng, self.search)
        return self._fitted(
            data, maximum_a_posteriori(self.log_posterior(data), starts, self.search), explored
        )

    def restore(self, data: Data, state: JsonObject) -> "FittedIndependentGPs":
        return self._fitted(data, *recorded_values(self.vector, state))

    def log_posterior(self, data: Data) -> "LevelsPosterior":
        """Return the density that a fit maximises."""
        check_finite(data)
        return LevelsPosterior(self, data)

    def level_of(self, x: Array) -> NDArray[np.intp]:
        """Return the index of the nearest level for each row."""
        return nearest_level(np.array(self.levels), x)

    def slots(self, level: int) -> NDArray[np.intp]:
        """Return the indices of a level's mean, scale, kernel parameters and noise variance in the
        parameter vector."""
        count, total = len(self.levels), self.vector.size
        noises = count if self.separate_noise else 1
        shared = np.arange(2 * count, total - noises)
        return np.concatenate(
            [[level, count + level], shared, [total - noises + (level if noises > 1 else 0)]]
        )

    def level_prior(self, values: Array) -> MeanAndKernel:
        """Return the prior of a level given its mean, its scale and the kernel's parameters."""
        kernel = Scaled(self.kernel.with_values(values[2:]), LEVEL_SCALE, float(values[1]))
        return MeanAndKernel(kernel, constant=float(values[0]))

    def _fitted(self, data: Data, values: Array, explored: int) -> "FittedIndependentGPs":
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
        rows = np.linspace(0, len(self.data) - 1, size).astype(np.intp)
        return LevelsPosterior(self.model, self.data.select(rows))

    @cached_property
    def _parts(self) -> list[tuple[NDArray[np.intp], HyperparameterPosterior]]:
        noise = replace(NOISE, size=1)
        parts = []
        for level, part in _by_level(self.data, self.model.level_of(self.data.x)):
            known = 0.0 if part.noise is None else part.noise
            slots = self.model.slots(level)
            prior = self.model.level_prior(self.vector.initial[slots[:-1]])
            x, y = part.x[:, :-1], as_columns(part.y)
            parts.append((slots, HyperparameterPosterior(prior, noise, x, y, known)))
        return parts

    def value_and_gradient(self, values: Array) -> tuple[float, Array]:
        total, gradient = self.vector.log_density_and_gradient(values)
        for slots, part in self._parts:
            value, slope = part.likelihood_and_gradient(values[slots])
            total += value
            gradient[slots] += slope
        return total, gradient


def _by_level(data: Data, levels: NDArray[np.intp]) -> Iterator[tuple[int, Data]]:
    """Yield the observations of each level that has some."""
    for level in np.unique(levels):
        yield int(level), data.select(np.flatnonzero(levels == level))


@dataclass(frozen=True, eq=False)
class FittedIndependentGPs(FittedSurrogate):
    """Fitted processes by level, except for levels without data."""

    model: IndependentGPs
    values: Array
    parts: Mapping[int, FittedGP]
    observed: Data
    recorded: JsonObject

    @property
    def data(self) -> Data:
        return self.observed

    @property
    def state(self) -> JsonObject:
        return self.recorded

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
        """F."""
        return as_columns(self.observed.y).shape[1] if len(self.observed) else 1

    def prior(self, level: int) -> MeanAndKernel:
        """Return the prior of a level."""
        return self.model.level_prior(self.values[self.model.slots(level)[:-1]])

    def _groups(self, x: Array) -> Iterator[tuple[int, NDArray[np.intp]]]:
        levels = self.model.level_of(x)
        for level in np.unique(levels):
            yield int(level), np.flatnonzero(levels == level)

    def _part(self, level: int, x: Array, joint: bool) -> Posterior:
        """Return the posterior of one level at configurations (k, d)."""
        if level in self.parts:
            return self.parts[level].posterior(x, joint=joint)
        prior = self.prior(level)
        mean = np.repeat(prior.mean(x)[:, None], self.fantasies, axis=1)
        return Posterior(mean, prior.variance(x), prior.covariance(x, x) if joint else None)

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        mean, variance = np.empty((len(x), self.fantasies)), np.empty(len(x))
        covariance = np.zeros((len(x), len(x))) if joint else None
        for level, rows in self._groups(x):
            part = self._part(level, x[rows, :-1], joint)
            mean[rows], variance[rows] = part.mean, part.variance
            if covariance is not None:
                covariance[np.ix_(rows, rows)] = part.covariance
        return Posterior(mean, variance, covariance)

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        mean, variance = np.empty((len(x), self.fantasies)), np.empty(len(x))
        pulls = []
        for level, rows in self._groups(x):
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
        for level, part in _by_level(data, self.model.level_of(data.x)):
            here = Data(part.x[:, :-1], part.y, part.noise)
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
        for level, rows in self._groups(x):
            configs = x[rows, :-1]
            scale = float(self.prior(level).variance(configs).mean())
            draws[:, rows] = joint_draws(self._part(level, configs, True), scale, count, rng)
        return draws
