"""The model of one past study, and how it is fitted or restored."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from scrimp.gp.catalog import kernel_by_name
from scrimp.gp.columns import Column
from scrimp.gp.marginal_likelihood import SearchSettings
from scrimp.gp.mean import ZeroMean
from scrimp.gp.priors import Hyperparameter, LogNormal
from scrimp.gp.process import MeanAndKernel
from scrimp.json_values import JsonObject
from scrimp.surrogates.exact_gp import ExactGP, FittedGP, fitted_gp
from scrimp.surrogates.surrogate import Array, Data
from scrimp.surrogates.target_transform import LearnedStep, TargetStep
from scrimp.transfer.row_cache import RowCache
from scrimp.transfer.source_studies import SourceStudy

__all__ = ["NOISE", "NO_NOISE", "USUAL_KERNEL", "SourceFit", "SourceModel"]

USUAL_KERNEL = "matern52-ard"

LEAST_LEARNED = 0.1  # of a study, for its model to be believed

NO_NOISE = 1e-8  # of the prior variance: what keeps the factor stable

NOISE = Hyperparameter("noise", LogNormal(-4.0, 1.0), bounds=(1e-4, 1.0))


@dataclass(frozen=True)
class SourceFit:
    """How models of past studies are fitted, over the ``columns`` of the space at hand."""

    columns: tuple[Column, ...]
    fit_rows: int = 120
    mean_rows: int = 1000
    variance_rows: int = 200
    kernel: str = USUAL_KERNEL

    def hyperparameters(self, study: SourceStudy, steps: Sequence[TargetStep]) -> JsonObject:
        """The state of the fit, as plain JSON values: all that needs to be kept."""
        data = self._data(study, steps, self.fit_rows)
        return self._gp(study).fit(data, np.random.default_rng(len(study.y))).state

    def restored(
        self, study: SourceStudy, steps: Sequence[TargetStep], state: JsonObject
    ) -> "SourceModel":
        """The model with these hyperparameters; `ScrimpError` when they belong to another space."""
        gp = self._gp(study)
        whole = gp.restore(self._data(study, steps, self.mean_rows), state)
        small = (
            whole
            if len(study.y) <= self.variance_rows
            else gp.restore(self._data(study, steps, self.variance_rows), state)
        )
        return SourceModel(study, whole, small, _normalised(study.y, steps)[1])

    def fit(self, study: SourceStudy, steps: Sequence[TargetStep]) -> "SourceModel":
        """Hyperparameters and model at once."""
        return self.restored(study, steps, self.hyperparameters(study, steps))

    def _gp(self, study: SourceStudy) -> ExactGP:
        kernel = kernel_by_name(self.kernel, [self.columns[column] for column in study.columns])
        return ExactGP(
            MeanAndKernel(kernel, ZeroMean()), NOISE, SearchSettings(random_starts=0, iterations=30)
        )

    def _data(self, study: SourceStudy, steps: Sequence[TargetStep], most: int) -> Data:
        """At most so many observations, the same ones every time; targets normalised over all of
        the study."""
        z, _ = _normalised(study.y, steps)
        rows = np.arange(len(z))
        if len(z) > most:
            rows = np.sort(np.random.default_rng(len(z)).permutation(len(z))[:most])
        return Data(study.x[rows][:, list(study.columns)], z[rows])


def _normalised(y: Array, steps: Sequence[TargetStep]) -> tuple[Array, tuple[LearnedStep, ...]]:
    learned: list[LearnedStep] = []
    for step in steps:
        learned.append(step.learn(y))
        y = learned[-1].forward(y)
    return y, tuple(learned)


@dataclass(frozen=True, eq=False)
class SourceModel:
    """A past study with its models: of the mean, and of the variance, in units that ``steps`` lead
    to."""

    study: SourceStudy
    whole: FittedGP
    small: FittedGP
    steps: tuple[LearnedStep, ...]

    @cached_property
    def denoised(self) -> "SourceModel":
        """The model of what lies under the noise: refitted, without noise, to its own means at what
        the study tried.

        Those means lie in the span of the same kernel functions, so they are interpolated exactly
        and the mean stays what it is; only the variance shrinks.
        """
        noise = NO_NOISE * self.size
        return replace(
            self, small=fitted_gp(self.small.prior, noise, self.small.observed, self.small.state)
        )

    def informed(self, data: Data) -> "SourceModel":
        """The model of the variance, given further observations; it is small enough to serve for
        the mean, too."""
        small = self.small.condition(Data(self._own(data.x), data.y))
        return replace(self, whole=small, small=small)

    def losses(self, values: Array) -> Array:
        """Values of the model as losses of the study."""
        for step in reversed(self.steps):
            values = step.backward(values)
        return values

    @cached_property
    def _mean(self) -> RowCache:
        return RowCache(lambda x: self.whole.mean(self._own(x)))

    @cached_property
    def _variance(self) -> RowCache:
        def variance(x: Array) -> Array:
            found = self.small.posterior(self._own(x)).variance
            assert found is not None
            return found[:, None]

        return RowCache(variance)

    def _own(self, x: Array) -> Array:
        return x[:, list(self.study.columns)]

    def mean(self, x: Array) -> Array:
        """(m,)"""
        return self._mean(x)[:, 0]

    def variance(self, x: Array) -> Array:
        """(m,)"""
        return self._variance(x)[:, 0]

    def mean_and_pullback(self, x: Array) -> tuple[Array, Callable[[Array], Array]]:
        """The mean (m,) and pull(d_mean (m,)) -> d_x (m, d)."""
        own = self._own(x)
        prior = self.whole.prior
        _, _, cross, pull_prior = prior.cross_and_pullback(own, self.whole.observed.x)
        zero = np.zeros(len(x))

        def pull(d_mean: Array) -> Array:
            return self._back(x, pull_prior(zero, zero, d_mean[:, None] * self.whole.alpha[:, 0]))

        return cross @ self.whole.alpha[:, 0], pull

    def variance_and_pullback(self, x: Array) -> tuple[Array, Callable[[Array], Array]]:
        """The variance (m,) and pull(d_variance (m,)) -> d_x (m, d)."""
        posterior, pull_small = self.small.posterior_and_pullback(self._own(x))
        assert posterior.variance is not None
        none = np.zeros((len(x), 1))
        return posterior.variance, lambda d_variance: self._back(x, pull_small(none, d_variance))

    def samples(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        """Joint draws (count, m)."""
        return self.small.sample(self._own(x), count, rng)

    def covariance(self, x: Array) -> Array:
        """(m, m)"""
        covariance = self.small.posterior(self._own(x), joint=True).covariance
        assert covariance is not None
        return covariance

    def _back(self, x: Array, d_own: Array) -> Array:
        d_x = np.zeros_like(x)
        d_x[:, list(self.study.columns)] = d_own
        return d_x

    @property
    def size(self) -> float:
        """The prior variance."""
        prior = self.whole.prior
        assert isinstance(prior, MeanAndKernel)
        return float(prior.kernel.values[0])

    @property
    def log_length_scales(self) -> Array:
        """(d,) over all columns of the space; NaN where the study has none."""
        prior = self.whole.prior
        assert isinstance(prior, MeanAndKernel)
        scales = np.full(self.study.dimension, math.nan)
        scales[list(self.study.columns)] = np.log(prior.length_scales(len(self.study.columns)))
        return scales

    @cached_property
    def learned(self) -> float:
        """How much of the study its model predicts: R^2 of leave-one-out means, on the n rows of
        the variance model, less what p = min(d, n / 4) fitted length-scales explain of pure noise:
        1 - (1 - R^2) (n - 1) / (n - p - 1)."""
        y = self.small.observed.y
        residual = y - self.small.leave_one_out().mean[:, 0]
        missed = float(residual @ residual) / max(float(((y - y.mean()) ** 2).sum()), 1e-12)
        count = len(y)
        freedom = max(count - 1.0 - min(len(self.study.columns), count / 4.0), 1.0)
        return 1.0 - missed * max(count - 1.0, 1.0) / freedom

    @property
    def teaches(self) -> bool:
        """Whether there is more to it than noise."""
        return self.learned > LEAST_LEARNED
