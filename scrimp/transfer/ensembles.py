"""Posteriors made of the model at hand and models of past studies, with weights w_t and w_i that sum to 1.

    TST    mean = w_t mu_t + sum_i w_i mu_i            variance = sigma_t^2                           `MeanEnsemble`
    RGPE   the same mean                               variance = w_t^2 sigma_t^2 + sum_i w_i^2 sigma_i^2    `LinearEnsemble`
    PoE    precision = sum beta_i / sigma_i^2          mean = precision-weighted means                `ExpertProduct`

All are surrogates like any other, in the units of the model at hand, so that any acquisition works with them. Conditioning them
conditions the model at hand; the past does not change.

Wistuba, Schilling, Schmidt-Thieme, Two-stage transfer surrogate model, 2016; Feurer et al., Practical transfer learning for
Bayesian optimization, 2022; Schilling, Wistuba, Schmidt-Thieme, Scalable hyperparameter optimization with products of Gaussian
process experts, 2016.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from scrimp.gp.cholesky import cholesky
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Posterior, PosteriorPullback
from scrimp.transfer.source_models import SourceModels

__all__ = ["ExpertProduct", "LinearEnsemble", "MeanEnsemble"]

LEAST_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class _Ensemble(FittedSurrogate):
    """What the three share: the model at hand, the past, and weights (M + 1,) of which the last is the model at hand's."""

    target: FittedSurrogate
    sources: SourceModels
    weights: Array

    @property
    def data(self) -> Data:
        return self.target.data

    @property
    def state(self) -> Mapping[str, Any]:
        return self.target.state

    def model_units(self, data: Data) -> Data:
        return self.target.model_units(data)

    def target_units(self, values: Array) -> Array:
        return self.target.target_units(values)

    def condition(self, data: Data) -> Self:
        return replace(self, target=self.target.condition(data))

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        posterior = self.posterior(x, joint=True)
        assert posterior.covariance is not None and posterior.variance is not None
        root = cholesky(posterior.covariance, scale=float(posterior.variance.mean()) + LEAST_VARIANCE)
        return posterior.mean[:, 0] + rng.standard_normal((count, len(x))) @ root.T

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The past studies with a weight."""
        return tuple(np.flatnonzero(self.weights[:-1] > 0.0).tolist())

    @abstractmethod
    def posterior(self, x: Array, *, joint: bool = False) -> Posterior: ...


class MeanEnsemble(_Ensemble):
    """Weighted means with the uncertainty of the model at hand alone: the past says where, never how sure."""

    def mean(self, x: Array) -> Array:
        past = self.sources.means(x) @ self.weights[:-1]
        return np.asarray(self.weights[-1] * self.target.mean(x) + past[:, None])

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        own = self.target.posterior(x, joint=joint)
        past = self.sources.means(x) @ self.weights[:-1]
        return Posterior(self.weights[-1] * own.mean + past[:, None], own.variance, own.covariance)

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        own, pull_own = self.target.posterior_and_pullback(x)
        means, pull_means = self.sources.means_and_pullback(x)

        def pull(d_mean: Array, d_variance: Array) -> Array:
            past = d_mean.sum(1)[:, None] * self.weights[:-1]
            return pull_own(self.weights[-1] * d_mean, d_variance) + pull_means(past)

        return Posterior(self.weights[-1] * own.mean + (means @ self.weights[:-1])[:, None], own.variance), pull


class LinearEnsemble(_Ensemble):
    """The weighted sum of independent Gaussian processes."""

    def mean(self, x: Array) -> Array:
        past = self.sources.means(x) @ self.weights[:-1]
        return np.asarray(self.weights[-1] * self.target.mean(x) + past[:, None])

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        own = self.target.posterior(x, joint=joint)
        assert own.variance is not None
        weights = self.weights
        past = self.sources.means(x) @ weights[:-1]
        squares = weights[list(self.used)] ** 2
        variance = weights[-1] ** 2 * own.variance + self.sources.variances(x, self.used) @ squares
        covariance = None
        if own.covariance is not None:
            covariance = weights[-1] ** 2 * own.covariance
            for one in self.used:
                covariance = covariance + weights[one] ** 2 * self.sources.covariance(one, x)
        return Posterior(weights[-1] * own.mean + past[:, None], variance, covariance)

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        own, pull_own = self.target.posterior_and_pullback(x)
        assert own.variance is not None
        weights = self.weights
        means, pull_means = self.sources.means_and_pullback(x)
        past_variances, pull_variances = self.sources.variances_and_pullback(x, self.used)
        squares = weights[list(self.used)] ** 2
        variance = weights[-1] ** 2 * own.variance + past_variances @ squares

        def pull(d_mean: Array, d_variance: Array) -> Array:
            total = pull_own(weights[-1] * d_mean, weights[-1] ** 2 * d_variance)
            total = total + pull_means(d_mean.sum(1)[:, None] * weights[:-1])
            return total + pull_variances(d_variance[:, None] * squares)

        return Posterior(weights[-1] * own.mean + (means @ weights[:-1])[:, None], variance), pull


class ExpertProduct(_Ensemble):
    """The generalised product of experts; ``weights`` are the exponents beta, such as 1/2 at hand and 1/(2M) for each past study.

    precision(x) = sum_i beta_i / sigma_i^2(x),   mean(x) = sum_i beta_i mu_i(x) / sigma_i^2(x) / precision(x)
    """

    @property
    def _betas(self) -> Array:
        """(U + 1,), the model at hand last."""
        return self.weights[[*self.used, -1]]

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        own = self.target.posterior(x, joint=joint)
        assert own.variance is not None
        past = self.sources.means(x)[:, list(self.used)]
        mean, precisions = self._product(own, past, self.sources.variances(x, self.used))
        variance, covariance = 1.0 / precisions.sum(axis=1), None
        if (
            own.covariance is not None
        ):  # the product has marginals only: the correlations are those of the model at hand
            ratio = np.sqrt(variance / np.maximum(own.variance, LEAST_VARIANCE))
            covariance = own.covariance * ratio[:, None] * ratio
        return Posterior(mean, variance, covariance)

    def _product(self, own: Posterior, past: Array, variances: Array) -> tuple[Array, Array]:
        """The mean (m, F), and every expert's precision (m, U + 1)."""
        assert own.variance is not None
        precisions = self._betas / np.maximum(np.column_stack([variances, own.variance]), LEAST_VARIANCE)
        mean = (precisions[:, :-1] * past).sum(axis=1, keepdims=True) + precisions[:, -1:] * own.mean
        return mean / precisions.sum(axis=1, keepdims=True), precisions

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        own, pull_own = self.target.posterior_and_pullback(x)
        assert own.variance is not None
        used, (means, pull_means) = list(self.used), self.sources.means_and_pullback(x)
        variances, pull_variances = self.sources.variances_and_pullback(x, self.used)
        mean, precisions = self._product(own, means[:, used], variances)
        every = np.column_stack([variances, own.variance])
        total = precisions.sum(axis=1)

        def pull(d_mean: Array, d_variance: Array) -> Array:
            # d precision = -precision / variance d variance; the mean moves by (mu_i - mean) / total of it
            gaps = [(d_mean * (means[:, [one]] - mean)).sum(axis=1) for one in used]
            gaps.append((d_mean * (own.mean - mean)).sum(axis=1))
            d_precisions = np.stack(gaps, axis=1) / total[:, None] - (d_variance / total**2)[:, None]
            slopes = np.where(
                every > LEAST_VARIANCE, -d_precisions * precisions / np.maximum(every, LEAST_VARIANCE), 0.0
            )
            shares = precisions / total[:, None]
            d_means = np.zeros_like(means)
            d_means[:, used] = d_mean.sum(axis=1, keepdims=True) * shares[:, :-1]
            at_hand = pull_own(d_mean * shares[:, -1:], slopes[:, -1])
            return at_hand + pull_variances(slopes[:, :-1]) + pull_means(d_means)

        return Posterior(mean, 1.0 / total), pull
