"""Acquisitions that mix what the model at hand and models of past studies promise, instead of mixing their posteriors.

    TAF     a(x) = w_t EI_t(x) + sum_i w_i max(0, eta_i - mu_i(x))        improvement of past means
    RMoGP   a(x) = w_t EI_t(x) + sum_i w_i EI_i(x; eta_i)                 expected improvement of every model

eta_i is the least mean of model i over what the study at hand has evaluated, so a past study counts until its own promise is
kept, and scales need not agree. Replacing EI_i by the improvement of the mean turns RMoGP into TAF. Weights may depend on x: as
shares of precision, beta_i / sigma_i^2(x), they give TAF on products of experts.

Scores are logarithms, so that where no past study promises anything, EI_t still tells candidates apart however small it is.

Wistuba, Schilling, Schmidt-Thieme, Scalable Gaussian process-based transfer surrogates for hyperparameter optimization, 2018;
Feurer et al., Practical transfer learning for Bayesian optimization, 2022.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from scrimp.acquisition.acquisition import Acquisition, Context, FantasyAverage, TermsPullback, model_named
from scrimp.acquisition.improvement import LogExpectedImprovement, log_expected_improvement_and_derivatives
from scrimp.surrogates.surrogate import Array, FittedSurrogate
from scrimp.transfer.source_models import SourceModels

__all__ = ["MixedImprovement"]

LEAST_VARIANCE = 1e-12
_NOTHING = -1e290  # the logarithm of no improvement, finite so that sums of exponentials work


@dataclass(frozen=True, eq=False)
class MixedImprovement(Acquisition):
    """Weights (M + 1,), the model at hand last. ``expected``: EI of past models (RMoGP) instead of their means' improvement
    (TAF). ``experts``: the weights are exponents beta of a product, to be divided by each model's variance at x."""

    sources: SourceModels
    weights: Array
    expected: bool = False
    experts: bool = False

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> "BoundMixture":
        own = LogExpectedImprovement().bind(models, context)
        known = context.evaluated if context.feasible is None else context.evaluated[context.feasible]
        if context.pending is not None:
            known = np.concatenate([known, context.pending])
        return BoundMixture(self, model_named(models, "loss"), own, self.sources.means(known).min(axis=0))


@dataclass(frozen=True, eq=False)
class BoundMixture(FantasyAverage):
    """The mixture with its incumbents: eta (M,) of the past models, and those of the model at hand in ``own``."""

    mixture: MixedImprovement
    target: FittedSurrogate
    own: FantasyAverage
    eta: Array

    @property
    def logarithmic(self) -> bool:
        return True

    def terms(self, x: Array) -> Array:
        mixture, logs = self.mixture, [self.own.terms(x)]
        means = mixture.sources.means(x)
        used = np.flatnonzero(mixture.weights[:-1] > 0.0).tolist()
        variances = {one: mixture.sources.variance(one, x) for one in used if mixture.expected or mixture.experts}
        shares = [self._weight(-1, self._own_variance(x))]
        for one in used:
            variance = variances.get(one)
            logs.append(self._improvement(means[:, one], variance, self.eta[one])[0][:, None])
            shares.append(self._weight(one, variance))
        return _mixed(logs, shares)

    def _own_variance(self, x: Array) -> Array | None:
        return self.target.posterior(x).variance if self.mixture.experts else None

    def _weight(self, which: int, variance: Array | None) -> Array:
        weight = float(self.mixture.weights[which])
        if not self.mixture.experts:
            return np.array([np.log(weight) if weight > 0.0 else _NOTHING])
        assert variance is not None
        return np.asarray(np.log(weight) - np.log(np.maximum(variance, LEAST_VARIANCE)))  # of unnormalised precision

    def _improvement(self, mean: Array, variance: Array | None, eta: float) -> tuple[Array, Array, Array]:
        """log improvement (m,), and its derivatives by mean and by variance."""
        if self.mixture.expected:
            assert variance is not None
            std = np.sqrt(np.maximum(variance, LEAST_VARIANCE))
            value, by_mean, by_std = log_expected_improvement_and_derivatives(mean, std, np.array(eta))
            return value, by_mean, 0.5 * by_std / std
        gain = eta - mean
        some = gain > 0.0
        safe = np.where(some, gain, 1.0)
        return np.where(some, np.log(safe), _NOTHING), np.where(some, -1.0 / safe, 0.0), np.zeros_like(mean)

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        own, pull_own = self.own.terms_and_pullback(x)
        mixture, uncertain = self.mixture, self.mixture.expected or self.mixture.experts
        used = np.flatnonzero(mixture.weights[:-1] > 0.0).tolist()
        means, pull_means = mixture.sources.means_and_pullback(x)
        variances = {one: mixture.sources.variance_and_pullback(one, x) for one in used} if uncertain else {}
        logs, shares, slopes = [own], [self._weight(-1, self._own_variance(x))], {}
        for one in used:
            variance = variances[one][0] if uncertain else None
            value, *slopes[one] = self._improvement(means[:, one], variance, float(self.eta[one]))
            logs.append(value[:, None])
            shares.append(self._weight(one, variance))
        share = _shares(_parts(logs, shares))
        weight = _shares(_parts([np.zeros((len(x), 1))] * len(shares), shares))

        def pull(d_terms: Array) -> Array:
            total = pull_own(d_terms * share[0])
            d_means = np.zeros_like(means)
            for place, one in enumerate(used, 1):
                d = (d_terms * share[place]).sum(axis=1)
                by_mean, d_variance = slopes[one][0], d * slopes[one][1]
                d_means[:, one] = d * by_mean
                if mixture.experts:
                    d_weight = (d_terms * (share[place] - weight[place])).sum(axis=1)
                    d_variance = d_variance - d_weight / np.maximum(variances[one][0], LEAST_VARIANCE)
                if uncertain:
                    total = total + variances[one][1](d_variance)
            if mixture.experts:
                total = total + self._pull_own_weight(x, (d_terms * (share[0] - weight[0])).sum(axis=1))
            return total + pull_means(d_means)

        return _mixed(logs, shares), pull

    def _pull_own_weight(self, x: Array, d: Array) -> Array:
        """Through the precision of the model at hand, where weights are shares of precision."""
        posterior, back = self.target.posterior_and_pullback(x)
        assert posterior.variance is not None
        return back(np.zeros_like(posterior.mean), -d / np.maximum(posterior.variance, LEAST_VARIANCE))


def _parts(logs: list[Array], shares: list[Array]) -> Array:
    """log weight + log improvement of every model: (K, m, F)."""
    width = max(part.shape[1] for part in logs)
    rows = len(logs[0])
    return np.stack(
        [np.broadcast_to(log + share[:, None], (rows, width)) for log, share in zip(logs, shares, strict=True)]
    )


def _mixed(logs: list[Array], shares: list[Array]) -> Array:
    """log of the weighted sum of improvements, (m, F), by weights that sum to 1 at every row."""
    none = [np.zeros((len(logs[0]), 1))] * len(shares)
    return np.asarray(logsumexp(_parts(logs, shares), axis=0) - logsumexp(_parts(none, shares), axis=0))


def _shares(parts: Array) -> Array:
    share = np.exp(parts - parts.max(axis=0))
    return np.asarray(share / share.sum(axis=0))
