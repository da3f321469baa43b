"""One Gaussian process per budget level, tied together by one kernel: values at different rungs are
scaled and shifted versions of each other that depend on the configuration alike, and know nothing
of each other's data.

    f(x, r) ~ GP(mu_r, c_r k(x, x')),    y = f + N(0, s)       k shared, without a scale; s shared, or one s_r per level

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

from scrimp.errors import StudyError
from scrimp.gp.cholesky import cholesky
from scrimp.gp.kernel import Kernel, Scaled
from scrimp.gp.marginal_likelihood import (
    HyperparameterPosterior,
    LogPosterior,
    SearchSettings,
    maximum_a_posteriori,
)
from scrimp.gp.mean import CONSTANT_MEAN, ConstantMean
from scrimp.gp.priors import Hyperparameter, LogNormal, ParameterVector
from scrimp.gp.process import MeanAndKernel
from scrimp.json_values import JsonObject
from scrimp.surrogates.exact_gp import NOISE, FittedGP, as_columns, check_finite, fitted_gp, joined
from scrimp.surrogates.record_reading import whole_at
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Posterior,
    PosteriorPullback,
    Surrogate,
)

__all__ = ["FittedIndependentGPs", "IndependentGPs"]

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
        recorded = None if start is None else self.vector.from_json(start.get("parameters"))
        explored = 0 if start is None or recorded is None else whole_at(start, "explored")
        starts = [] if recorded is None else [recorded]
        if len(data) >= 1.5 * explored:
            starts += [self.vector.initial]
            starts += [self.vector.sample(rng) for _ in range(self.search.random_starts)]
            explored = len(data)
        return self._fitted(
            data, maximum_a_posteriori(self.log_posterior(data), starts, self.search), explored
        )

    def restore(self, data: Data, state: JsonObject) -> "FittedIndependentGPs":
        values = self.vector.from_json(state.get("parameters"))
        if values is None:
            raise StudyError(
                "the recorded fit is of another model, space or set of levels: fit anew"
            )
        return self._fitted(data, values, whole_at(state, "explored"))

    def log_posterior(self, data: Data) -> "LevelsPosterior":
        """What a fit maximises."""
        check_finite(data)
        return LevelsPosterior(self, data)

    def level_of(self, x: Array) -> NDArray[np.intp]:
        """The index of the nearest level for each row."""
        return nearest_level(np.array(self.levels), x)

    def slots(self, level: int) -> NDArray[np.intp]:
        """Where a level's mean, scale, kernel parameters and noise variance stand in the parameter
        vector."""
        count, total = len(self.levels), self.vector.size
        noises = count if self.separate_noise else 1
        shared = np.arange(2 * count, total - noises)
        return np.concatenate(
            [[level, count + level], shared, [total - noises + (level if noises > 1 else 0)]]
        )

    def level_prior(self, values: Array) -> MeanAndKernel:
        """The prior of a level from its own mean, scale and the kernel's parameters."""
        kernel = Scaled(self.kernel.with_values(values[2:]), LEVEL_SCALE, float(values[1]))
        return MeanAndKernel(kernel, ConstantMean(value=float(values[0])))

    def _fitted(self, data: Data, values: Array, explored: int) -> "FittedIndependentGPs":
        check_finite(data)
        state: JsonObject = {"parameters": self.vector.to_json(values), "explored": explored}
        empty = FittedIndependentGPs(self, values, {}, Data(data.x[:0], data.y[:0]), state)
        return empty.condition(data)


def nearest_level(levels: Array, x: Array) -> NDArray[np.intp]:
    """The index of the level nearest to the last column of each row."""
    return np.asarray(np.abs(x[:, -1:] - levels).argmin(axis=1), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class LevelsPosterior(LogPosterior):
    """The sum of the levels' log likelihoods, and the densities of the parameters once."""

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
        return LevelsPosterior(self.model, _rows(self.data, rows))

    @cached_property
    def _parts(self) -> list[tuple[NDArray[np.intp], HyperparameterPosterior]]:
        noise = replace(NOISE, size=1)
        parts = []
        for level, part in _by_level(self.data, self.model.level_of(self.data.x)):
            known = 0.0 if part.noise is None else part.noise
            slots = self.model.slots(level)
            prior = self.model.level_prior(self.vector.initial[slots[:-1]])
            parts.append(
                (
                    slots,
                    HyperparameterPosterior(
                        prior, noise, part.x[:, :-1], as_columns(part.y), known
                    ),
                )
            )
        return parts

    def value_and_gradient(self, values: Array) -> tuple[float, Array]:
        total, gradient = self.vector.log_density(values), self.vector.gradient(values)
        for slots, part in self._parts:
            value, slope = part.likelihood_and_gradient(values[slots])
            total += value
            gradient[slots] += slope
        return total, gradient


def _by_level(data: Data, levels: NDArray[np.intp]) -> Iterator[tuple[int, Data]]:
    """The observations of each level that has some."""
    for level in np.unique(levels):
        yield int(level), _rows(data, np.flatnonzero(levels == level))


def _rows(data: Data, rows: NDArray[np.intp]) -> Data:
    return Data(data.x[rows], data.y[rows], None if data.noise is None else data.noise[rows])


@dataclass(frozen=True, eq=False)
class FittedIndependentGPs(FittedSurrogate):
    """Fitted processes by level; a level without data is not among them."""

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
        """Those of the shared kernel; levels know nothing of each other."""
        return np.append(self.prior(0).length_scales(self.observed.x.shape[1] - 1), np.nan)

    @property
    def noise_variance(self) -> float:
        """The largest over levels."""
        slots = range(len(self.model.levels))
        return max(float(self.values[self.model.slots(level)[-1]]) for level in slots)

    @property
    def fantasies(self) -> int:
        """F."""
        return as_columns(self.observed.y).shape[1] if len(self.observed) else 1

    def prior(self, level: int) -> MeanAndKernel:
        """The prior of a level."""
        return self.model.level_prior(self.values[self.model.slots(level)[:-1]])

    def _groups(self, x: Array) -> Iterator[tuple[int, NDArray[np.intp]]]:
        levels = self.model.level_of(x)
        for level in np.unique(levels):
            yield int(level), np.flatnonzero(levels == level)

    def _part(self, level: int, x: Array, joint: bool) -> Posterior:
        """The posterior of one level at configurations (k, d)."""
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

    def mean(self, x: Array) -> Array:
        mean = np.empty((len(x), self.fantasies))
        for level, rows in self._groups(x):
            known = level in self.parts
            mean[rows] = (
                self.parts[level].mean(x[rows, :-1])
                if known
                else self.prior(level).mean(x[rows, :-1])[:, None]
            )
        return mean

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        mean, variance = np.empty((len(x), self.fantasies)), np.empty(len(x))
        pulls = []
        for level, rows in self._groups(x):
            if (
                level not in self.parts
            ):  # a constant mean and a stationary kernel: no slope anywhere
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
            if old.whitened.shape[1] < fantasies:  # untouched levels are the same in every fantasy
                parts[level] = replace(old, whitened=np.repeat(old.whitened, fantasies, axis=1))
        whole = joined(self.observed, data) if len(self.observed) else data
        return FittedIndependentGPs(self.model, self.values, parts, whole, self.recorded)

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        draws = np.empty((count, len(x)))
        for level, rows in self._groups(x):
            if level in self.parts:
                draws[:, rows] = self.parts[level].sample(x[rows, :-1], count, rng)
            else:
                prior = self.prior(level)
                root = cholesky(prior.covariance(x[rows, :-1], x[rows, :-1]))
                draws[:, rows] = (
                    prior.mean(x[rows, :-1]) + rng.standard_normal((count, len(rows))) @ root.T
                )
        return draws
