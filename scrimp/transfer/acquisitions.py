"""Acquisitions that mix what the model at hand and models of past studies promise, instead of
mixing their posteriors.

    TAF     a(x) = w_t EI_t(x) + sum_i w_i max(0, eta_i - mu_i(x))        improvement of past means
    RMoGP   a(x) = w_t EI_t(x) + sum_i w_i EI_i(x; eta_i)                 expected improvement of every model

eta_i is the least mean of model i over what the study at hand has evaluated, so a past study counts
until its own promise is kept, and scales need not agree. Replacing EI_i by the improvement of the
mean turns RMoGP into TAF. Weights may depend on x: as shares of precision, beta_i / sigma_i^2(x),
they give TAF on products of experts.

Scores are logarithms, so that where no past study promises anything, EI_t still tells candidates
apart however small it is.

Wistuba, Schilling, Schmidt-Thieme, Scalable Gaussian process-based transfer surrogates for
hyperparameter optimization, 2018; Feurer et al., Practical transfer learning for Bayesian
optimization, 2022.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from scrimp.acquisition.acquisition import Acquisition, FantasyAverage, TermsPullback
from scrimp.acquisition.context import Context, model_named
from scrimp.acquisition.improvement import (
    LogExpectedImprovement,
    log_expected_improvement_and_derivatives,
)
from scrimp.surrogates.surrogate import Array, FittedSurrogate
from scrimp.transfer.source_models import SourceModels

__all__ = ["MixedImprovement"]

LEAST_VARIANCE = 1e-12
_NOTHING = -1e290  # the logarithm of no improvement, finite so that sums of exponentials work
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class MixedImprovement(Acquisition):
    """Weights (M + 1,), the model at hand last. ``expected``: EI of past models (RMoGP) instead of
    their means' improvement (TAF). ``experts``: the weights are exponents beta of a product, to be
    divided by each model's variance at x. ``at_hand``: the logarithm of what the model at hand
    promises."""

    sources: SourceModels
    weights: Array
    expected: bool = False
    experts: bool = False
    at_hand: Acquisition = field(default_factory=LogExpectedImprovement)

    def bind(
        self, models: Mapping[str, FittedSurrogate], context: Context
    ) -> "BoundMixedImprovement":
        own = self.at_hand.bind(models, context)
        assert isinstance(own, FantasyAverage)
        known = (
            context.evaluated if context.feasible is None else context.evaluated[context.feasible]
        )
        if context.pending is not None:
            known = np.concatenate([known, context.pending])
        return BoundMixedImprovement(
            self, model_named(models, "loss"), own, self.sources.means(known).min(axis=0)
        )


@dataclass(frozen=True, eq=False)
class BoundMixedImprovement(FantasyAverage):
    """The mixture with its incumbents: eta (M,) of the past models, and those of the model at hand
    in ``own``."""

    mixture: MixedImprovement
    target: FittedSurrogate
    own: FantasyAverage
    eta: Array

    @property
    def logarithmic(self) -> bool:
        return True

    @cached_property
    def _used(self) -> list[int]:
        return np.flatnonzero(self.mixture.weights[:-1] > 0.0).tolist()

    @property
    def _uncertain(self) -> bool:
        return self.mixture.expected or self.mixture.experts

    def terms(self, x: Array) -> Array:
        means = self.mixture.sources.means(x)[:, self._used]
        variances = (
            self.mixture.sources.variances(x, self._used)
            if self._uncertain
            else np.ones_like(means)
        )
        own_variance = self.target.posterior(x).variance if self.mixture.experts else None
        logs, _, _ = self._improvements(means, variances)
        past, own = self._log_weights(variances, own_variance)
        top = _logsumexp(past + logs)
        return np.asarray(
            np.logaddexp(own + self.own.terms(x), top) - np.logaddexp(own, _logsumexp(past))
        )

    def _log_weights(self, variances: Array, own: Array | None) -> tuple[Array, Array]:
        """Of past models (m or 1, U) and of the model at hand (m or 1, 1), not normalised."""
        weights = self.mixture.weights
        with np.errstate(divide="ignore"):
            past, last = (
                np.log(weights[self._used])[None],
                np.full((1, 1), max(np.log(weights[-1]), _NOTHING)),
            )
        if own is None:
            return past, last
        return (
            past - np.log(np.maximum(variances, LEAST_VARIANCE)),
            last - np.log(np.maximum(own, LEAST_VARIANCE))[:, None],
        )

    def _improvements(self, means: Array, variances: Array) -> tuple[Array, Array, Array]:
        """log improvements (m, U) of past models, and their derivatives by mean and by variance."""
        eta = self.eta[self._used]
        if self.mixture.expected:
            std = np.sqrt(np.maximum(variances, LEAST_VARIANCE))
            value, by_mean, by_std = log_expected_improvement_and_derivatives(means, std, eta)
            return value, by_mean, 0.5 * by_std / std
        gain = eta - means
        some = gain > 0.0
        safe = np.where(some, gain, 1.0)
        return (
            np.where(some, np.log(safe), _NOTHING),
            np.where(some, -1.0 / safe, 0.0),
            np.zeros_like(means),
        )

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        used, sources = self._used, self.mixture.sources
        own_terms, pull_own = self.own.terms_and_pullback(x)
        means, pull_means = sources.means_and_pullback(x)
        variances, pull_variances = np.ones((len(x), len(used))), None
        if self._uncertain:
            variances, pull_variances = sources.variances_and_pullback(x, used)
        own_variance, pull_own_variance = self._own_variance_and_pullback(x)
        logs, by_mean, by_variance = self._improvements(means[:, used], variances)
        past, own = self._log_weights(variances, own_variance)
        top, size = _logsumexp(past + logs), np.logaddexp(own, _logsumexp(past))
        total = np.logaddexp(own + own_terms, top)

        def pull(d_terms: Array) -> Array:
            d_own = d_terms * np.exp(own + own_terms - total)
            d_logs = (d_terms * np.exp(top - total)).sum(axis=1, keepdims=True) * np.exp(
                past + logs - top
            )
            d_means, d_variances = np.zeros_like(means), d_logs * by_variance
            d_means[:, used] = d_logs * by_mean
            result = pull_own(d_own) + pull_means(d_means)
            if (
                pull_own_variance is not None
            ):  # weights are shares of precision: d log weight = -d variance / variance
                whole = d_terms.sum(axis=1, keepdims=True)
                d_variances -= (d_logs - whole * np.exp(past - size)) / np.maximum(
                    variances, LEAST_VARIANCE
                )
                result = result + pull_own_variance(
                    d_own.sum(axis=1) - (whole * np.exp(own - size))[:, 0]
                )
            return result if pull_variances is None else result + pull_variances(d_variances)

        return total - size, pull

    def _own_variance_and_pullback(
        self, x: Array
    ) -> tuple[Array | None, Callable[[Array], Array] | None]:
        """The variance of the model at hand (m,), and the chain rule from its log precision, where
        weights depend on it."""
        if not self.mixture.experts:
            return None, None
        posterior, back = self.target.posterior_and_pullback(x)
        variance = posterior.variance
        assert variance is not None
        return variance, lambda d: back(
            np.zeros_like(posterior.mean), -d / np.maximum(variance, LEAST_VARIANCE)
        )


def _logsumexp(logs: Array) -> Array:
    """Over columns, (m, 1); nothing at all where there are none."""
    top = logs.max(axis=1, keepdims=True, initial=_NOTHING)
    return np.asarray(top + np.log(np.exp(logs - top).sum(axis=1, keepdims=True) + _TINY))
