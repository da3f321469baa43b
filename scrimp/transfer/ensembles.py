"""Posteriors made of the model at hand and models of past studies, with weights w_t and w_i that
sum to 1.

    TST    mean = w_t mu_t + sum_i w_i mu_i            variance = sigma_t^2                           `MeanEnsemble`
    RGPE   the same mean                               variance = w_t^2 sigma_t^2 + sum_i w_i^2 sigma_i^2    `WeightedEnsemble`
    PoE    precision = sum beta_i / sigma_i^2          mean = precision-weighted means                `ExpertProduct`

The variances of the last two have other readings in the literature, which are settings of theirs.

All are surrogates like any other, in the units of the model at hand, so that any acquisition works
with them. Conditioning them conditions the model at hand; the past does not change.

Wistuba, Schilling, Schmidt-Thieme, Two-stage transfer surrogate model, 2016; Feurer et al.,
Practical transfer learning for Bayesian optimization, 2022; Schilling, Wistuba, Schmidt-Thieme,
Scalable hyperparameter optimization with products of Gaussian process experts, 2016.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from scrimp.gp.cholesky import cholesky
from scrimp.json_values import JsonObject
from scrimp.surrogates.exact_gp import FittedGP
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Posterior, PosteriorPullback
from scrimp.surrogates.target_transform import FittedTransformed
from scrimp.transfer.source_models import SourceModels

__all__ = ["ExpertProduct", "MeanEnsemble", "WeightedEnsemble"]

LEAST_VARIANCE = 1e-12
LEAST_BETA = 1e-6


@dataclass(frozen=True, eq=False)
class _Ensemble(FittedSurrogate):
    """What the three share: the model at hand, the past, and weights (M + 1,) of which the last is
    the model at hand's."""

    target: FittedSurrogate
    sources: SourceModels
    weights: Array

    @property
    def data(self) -> Data:
        return self.target.data

    @property
    def length_scales(self) -> Array:
        return self.target.length_scales

    @property
    def noise_variance(self) -> float:
        return self.target.noise_variance

    @property
    def state(self) -> JsonObject:
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
        root = cholesky(
            posterior.covariance, scale=float(posterior.variance.mean()) + LEAST_VARIANCE
        )
        return posterior.mean[:, 0] + rng.standard_normal((count, len(x))) @ root.T

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The past studies with a weight."""
        return tuple(np.flatnonzero(self.weights[:-1] > 0.0).tolist())

    @abstractmethod
    def posterior(self, x: Array, *, joint: bool = False) -> Posterior: ...


class MeanEnsemble(_Ensemble):
    """Weighted means with the uncertainty of the model at hand alone: the past says where, never
    how sure."""

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

        return (
            Posterior(
                self.weights[-1] * own.mean + (means @ self.weights[:-1])[:, None], own.variance
            ),
            pull,
        )


@dataclass(frozen=True, eq=False)
class WeightedEnsemble(_Ensemble):
    """The weighted sum of independent Gaussian processes.

    ``harmonic``: the variance is 1 / (w_t / sigma_t^2 + sum_i w_i / sigma_i^2) instead, weighted
    precisions under weighted means.
    """

    harmonic: bool = False

    def mean(self, x: Array) -> Array:
        past = self.sources.means(x) @ self.weights[:-1]
        return np.asarray(self.weights[-1] * self.target.mean(x) + past[:, None])

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        own = self.target.posterior(x, joint=joint)
        assert own.variance is not None
        weights = self.weights
        past = self.sources.means(x) @ weights[:-1]
        variance, _ = self._variance(self.sources.variances(x, self.used), own.variance)
        covariance = None
        if own.covariance is not None and self.harmonic:
            covariance = _correlated_alike(own, variance)
        elif own.covariance is not None:
            covariance = weights[-1] ** 2 * own.covariance
            for one in self.used:
                covariance = covariance + weights[one] ** 2 * self.sources.covariance(one, x)
        return Posterior(weights[-1] * own.mean + past[:, None], variance, covariance)

    def _variance(self, past: Array, own: Array) -> tuple[Array, Array]:
        """The variance (m,) of past variances (m, U) and the one at hand (m,), and its slope by
        each of them (m, U + 1)."""
        weights = self.weights[[*self.used, -1]]
        variances = np.column_stack([past, own])
        if not self.harmonic:
            return weights[-1] ** 2 * own + past @ weights[:-1] ** 2, np.broadcast_to(
                weights**2, variances.shape
            )
        variances = np.maximum(variances, LEAST_VARIANCE)
        variance = 1.0 / (weights / variances).sum(axis=1)
        return variance, variance[:, None] ** 2 * weights / variances**2

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        own, pull_own = self.target.posterior_and_pullback(x)
        assert own.variance is not None
        weights = self.weights
        means, pull_means = self.sources.means_and_pullback(x)
        past_variances, pull_variances = self.sources.variances_and_pullback(x, self.used)
        variance, slopes = self._variance(past_variances, own.variance)

        def pull(d_mean: Array, d_variance: Array) -> Array:
            d_variances = d_variance[:, None] * slopes
            total = pull_own(weights[-1] * d_mean, d_variances[:, -1])
            total = total + pull_means(d_mean.sum(1)[:, None] * weights[:-1])
            return total + pull_variances(d_variances[:, :-1])

        return Posterior(weights[-1] * own.mean + (means @ weights[:-1])[:, None], variance), pull


@dataclass(frozen=True, eq=False)
class ExpertProduct(_Ensemble):
    """The generalised product of experts; ``weights`` are the exponents beta, such as 1/2 at hand
    and 1/(2M) for each past study.

    precision(x) = sum_i beta_i / sigma_i^2(x) / sum_i beta_i, mean(x) = sum_i beta_i mu_i(x) /
    sigma_i^2(x) / (the same sum)

    ``entropic``: beta_i(x) = log(prior variance / sigma_i^2(x)) / 2 instead, what the expert has
    learned about x, of those with a weight (Cao, Fleet, Generalized product of experts, 2014). They
    do not sum to 1, and ``scaling`` says what then is the precision: ``gpoe`` divides by their sum,
    as above; ``poe`` does not, as Schilling et al. print it; ``rbcm`` corrects by the priors,
    precision(x) = sum_i beta_i (1 / sigma_i^2(x) - 1 / prior_i) + 1 / prior_t, and the mean goes to
    the prior's where nobody knows anything (Deisenroth, Ng, Distributed Gaussian processes, 2015).
    """

    entropic: bool = False
    scaling: str = "gpoe"

    @cached_property
    def _priors(self) -> Array:
        """Prior variances (U + 1,), of the model at hand last."""
        gp = self.target.inner if isinstance(self.target, FittedTransformed) else self.target
        assert isinstance(gp, FittedGP)
        return np.append(self.sources.sizes(self.used), gp.prior.variance(self.data.x[:1]))

    def _betas(self, variances: Array) -> Array:
        """(m or 1, U + 1), the model at hand last."""
        if not self.entropic:
            return self.weights[None, [*self.used, -1]]
        return np.maximum(0.5 * np.log(self._priors / variances), LEAST_BETA)

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        own = self.target.posterior(x, joint=joint)
        assert own.variance is not None
        variances = self._with_own(self.sources.variances(x, self.used), own.variance)
        mean, variance, _ = self._product(
            own.mean, self.sources.means(x), variances, self._betas(variances)
        )
        covariance = None if own.covariance is None else _correlated_alike(own, variance)
        return Posterior(mean, variance, covariance)

    def _with_own(self, past: Array, own: Array) -> Array:
        return np.maximum(np.column_stack([past, own]), LEAST_VARIANCE)

    def _product(
        self, own: Array, past: Array, variances: Array, betas: Array
    ) -> tuple[Array, Array, Array]:
        """The mean (m, F), the variance (m,), and every expert's beta / variance (m, U + 1)."""
        precisions = betas / variances
        total = self._total(precisions, betas)
        mean = (precisions[:, :-1] * past[:, list(self.used)]).sum(
            axis=1, keepdims=True
        ) + precisions[:, -1:] * own
        return (
            mean / total[:, None],
            (betas.sum(axis=1) if self.scaling == "gpoe" else 1.0) / total,
            precisions,
        )

    def _total(self, precisions: Array, betas: Array) -> Array:
        """What means are divided by (m,)."""
        total: Array = precisions.sum(axis=1)
        if self.scaling == "rbcm":
            total = total + 1.0 / self._priors[-1] - (betas / self._priors).sum(axis=1)
        return total

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        own, pull_own = self.target.posterior_and_pullback(x)
        assert own.variance is not None
        used, (means, pull_means) = list(self.used), self.sources.means_and_pullback(x)
        past, pull_variances = self.sources.variances_and_pullback(x, self.used)
        variances = self._with_own(past, own.variance)
        betas = self._betas(variances)
        mean, variance, precisions = self._product(own.mean, means, variances, betas)
        total = self._total(precisions, betas)[:, None]

        def pull(d_mean: Array, d_variance: Array) -> Array:
            # the mean moves by (mu_i - mean) / total of a precision, the variance by -variance /
            # total and 1 / total of a beta
            past_part = means[:, used] * d_mean.sum(axis=1, keepdims=True)
            every_part = np.column_stack([past_part, (d_mean * own.mean).sum(axis=1)])
            d_total = ((d_mean * mean).sum(axis=1) + d_variance * variance)[
                :, None
            ] / total  # less, as it grows
            d_precisions = every_part / total - d_total
            slopes = -d_precisions * precisions / variances
            if self.entropic:
                by_beta = {"gpoe": d_variance[:, None] / total, "rbcm": d_total / self._priors}.get(
                    self.scaling, 0.0
                )
                d_betas = d_precisions / variances + by_beta
                slopes -= np.where(betas > LEAST_BETA, 0.5 * d_betas / variances, 0.0)
            slopes[variances <= LEAST_VARIANCE] = 0.0
            d_means = np.zeros_like(means)
            d_means[:, used] = d_mean.sum(axis=1, keepdims=True) * precisions[:, :-1] / total
            at_hand = pull_own(d_mean * precisions[:, -1:] / total, slopes[:, -1])
            return at_hand + pull_variances(slopes[:, :-1]) + pull_means(d_means)

        return Posterior(mean, variance), pull


def _correlated_alike(own: Posterior, variance: Array) -> Array:
    """The covariance (m, m) where only marginal variances (m,) are known: the correlations are
    those of the model at hand."""
    assert own.covariance is not None and own.variance is not None
    ratio = np.sqrt(variance / np.maximum(own.variance, LEAST_VARIANCE))
    return np.asarray(own.covariance * ratio[:, None] * ratio)
