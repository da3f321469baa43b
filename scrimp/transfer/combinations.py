"""Combinations of the new study's model with the models of past studies: posteriors, acquisitions.

With weights w_t of the new study and w_i of past studies that sum to 1 (`weights`):

    TST    mean = w_t mu_t + sum_i w_i mu_i        variance = sigma_t^2                                      `WeightedEnsemble`
    RGPE   the mean of TST                         variance = w_t^2 sigma_t^2 + sum_i w_i^2 sigma_i^2        `WeightedEnsemble`
    PoE    mean = precision-weighted means         precision = sum_i beta_i / sigma_i^2                      `ExpertProduct`
    TAF    a(x) = w_t EI_t(x) + sum_i w_i max(0, eta_i - mu_i(x))        improvement of past means           `MixedImprovement`
    RMoGP  a(x) = w_t EI_t(x) + sum_i w_i EI_i(x; eta_i)                 EI of every model                   `MixedImprovement`

*Posteriors* (the first three) are surrogates in the units of the new study's model, so any
acquisition works with them. Conditioning one conditions the model of the new study; past models do
not change. Other readings of the variances in the literature are settings.

*Acquisitions* (the last two). eta_i is the lowest mean of model i at the configurations that the new
study has evaluated, so a past study counts until its own best is reached, and the scales of studies
need not agree. Weights may depend on x: with shares of precision, beta_i / sigma_i^2(x), TAF is that
of products of experts. Scores are logarithms, so that EI_t still orders candidates where no past
model improves.

*Noisy improvement* (RGPE). The variance of an ensemble is not small at evaluated configurations, so
plain EI would expect an improvement there. Noisy EI draws the noise-free values of every model at
the evaluated configurations X, pending ones included, conditions each model on its own draws, and
averages EI over them:

    a(x)   = 1/S sum_s EI(x; best_s, models | f_s(X))
    best_s = min over X of  w_t f_t,s + sum_i w_i f_i,s

Wistuba, Schilling, Schmidt-Thieme, Two-stage transfer surrogate model, 2016, and Scalable Gaussian
process-based transfer surrogates for hyperparameter optimization, 2018; Feurer et al., Practical
transfer learning for Bayesian optimization, 2022; Schilling, Wistuba, Schmidt-Thieme, Scalable
hyperparameter optimization with products of Gaussian process experts, 2016; Letham, Karrer, Ottoni,
Bakshy, Constrained Bayesian optimization with noisy experiments, 2019.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from scrimp.acquisition.acquisition import (
    Acquisition,
    BoundAcquisition,
    Context,
    FantasyAverage,
    TermsPullback,
    model_named,
)
from scrimp.acquisition.improvement import (
    LogExpectedImprovement,
    log_expected_improvement_and_derivatives,
)
from scrimp.surrogates.ensembles import LinearEnsemble
from scrimp.surrogates.exact_gp import joint_draws
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Posterior,
    PosteriorPullback,
    SurrogateView,
)
from scrimp.surrogates.target_transform import process_of
from scrimp.transfer.past import SourceModels
from scrimp.transfer.source_model import MIN_VARIANCE


@dataclass(frozen=True)
class CombinationNumbers:
    """Numbers of the combinations; all but the draws only keep sums and factors finite."""

    min_exponent: float = 1e-6
    """Exponent of an expert that has learned nothing (stability)."""
    log_of_nothing: float = -1e290
    """The logarithm of no improvement: finite, so that sums of exponentials work (stability)."""
    smallest: float = 1e-300
    """Added before a logarithm that may be of 0 (stability)."""
    noisy_draws: int = 30
    """Draws of noise-free values, unless pending evaluations set their number (convention)."""
    draw_noise: float = 1e-6
    """Noise variance of drawn values, for standardised targets (stability)."""


NUMBERS = CombinationNumbers()


# --- posteriors -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Ensemble(SurrogateView):
    """The model of the new study ``inner``, past models, and weights (M + 1,), its own last."""

    inner: FittedSurrogate
    sources: SourceModels
    weights: Array

    def mean(self, x: Array) -> Array:
        return self.posterior(x).mean

    def condition(self, data: Data) -> Self:
        return replace(self, inner=self.inner.condition(data))

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        posterior = self.posterior(x, joint=True)
        scale = float(posterior.variance.mean()) + MIN_VARIANCE
        return joint_draws(posterior, scale, count, rng)

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The past studies with a weight above 0."""
        return tuple(np.flatnonzero(self.weights[:-1] > 0.0).tolist())


@dataclass(frozen=True, eq=False)
class WeightedEnsemble(_Ensemble):
    """The weighted sum of models.

    ``variance``: of a sum of independent processes (``rgpe``), the inverse of the weighted
    precisions, 1 / (w_t / sigma_t^2 + sum_i w_i / sigma_i^2) (``poe``), or that of the new study's
    model alone (``tst``).
    """

    variance: str = "rgpe"

    def mean(self, x: Array) -> Array:
        return self._mean(self.inner.mean(x), self.sources.means(x))

    def _mean(self, own: Array, past: Array) -> Array:
        """The weighted mean (m, F) of the new study's means (m, F) and of past means (m, M)."""
        return np.asarray(self.weights[-1] * own + (past @ self.weights[:-1])[:, None])

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        own = self.inner.posterior(x, joint=joint)
        mean = self._mean(own.mean, self.sources.means(x))
        if self.variance == "tst":
            return Posterior(mean, own.variance, own.covariance)
        variance, _ = self._variance(self.sources.variances(x, self.used), own.variance)
        covariance = None
        if own.covariance is not None and self.variance == "poe":
            covariance = _correlated_alike(own, variance)
        elif own.covariance is not None:
            covariance = self.weights[-1] ** 2 * own.covariance
            for one in self.used:
                past = self.sources.view(one).posterior(x, joint=True).covariance
                assert past is not None
                covariance += self.weights[one] ** 2 * past
        return Posterior(mean, variance, covariance)

    def _variance(self, past: Array, own: Array) -> tuple[Array, Array]:
        """The variance (m,) from those of past models (m, U) and of the new study's (m,), and its
        derivative by each of them (m, U + 1)."""
        weights = self.weights[[*self.used, -1]]
        variances = np.column_stack([past, own])
        if self.variance == "rgpe":
            slopes = np.broadcast_to(weights**2, variances.shape)
            return weights[-1] ** 2 * own + past @ weights[:-1] ** 2, slopes
        variances = np.maximum(variances, MIN_VARIANCE)
        variance = 1.0 / (weights / variances).sum(axis=1)
        return variance, variance[:, None] ** 2 * weights / variances**2

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        weights = self.weights
        own, pull_own = self.inner.posterior_and_pullback(x)
        means, pull_means = self.sources.means_and_pullback(x)
        mean = self._mean(own.mean, means)

        def pull_tst(d_mean: Array, d_variance: Array) -> Array:
            through_past = pull_means(d_mean.sum(1)[:, None] * weights[:-1])
            return pull_own(weights[-1] * d_mean, d_variance) + through_past

        if self.variance == "tst":
            return Posterior(mean, own.variance), pull_tst
        past_variances, pull_variances = self.sources.variances_and_pullback(x, self.used)
        variance, slopes = self._variance(past_variances, own.variance)

        def pull(d_mean: Array, d_variance: Array) -> Array:
            d_variances = d_variance[:, None] * slopes
            return pull_tst(d_mean, d_variances[:, -1]) + pull_variances(d_variances[:, :-1])

        return Posterior(mean, variance), pull


@dataclass(frozen=True, eq=False)
class ExpertProduct(_Ensemble):
    """The generalised product of experts; ``weights`` are the exponents beta, such as 1/2 for the
    new study and 1/(2M) for each past study.

    precision(x) = sum_i beta_i / sigma_i^2(x) / sum_i beta_i
    mean(x) = sum_i beta_i mu_i(x) / sigma_i^2(x) / sum_i beta_i / sigma_i^2(x)

    ``entropic``: beta_i(x) = log(prior variance / sigma_i^2(x)) / 2 instead, the information that
    the expert has about x, for experts with a weight (Cao, Fleet, Generalized product of experts,
    2014). These exponents do not sum to 1, and ``scaling`` is the reading of the precision:
    ``gpoe`` divides by their sum, as above; ``poe`` does not, as Schilling et al. print it;
    ``rbcm`` corrects by the priors, precision(x) = sum_i beta_i (1 / sigma_i^2(x) - 1 / prior_i) +
    1 / prior_t, so that the mean is the prior's where no expert has learned anything (Deisenroth,
    Ng, Distributed Gaussian processes, 2015).
    """

    entropic: bool = False
    scaling: str = "gpoe"

    @cached_property
    def _priors(self) -> Array:
        """Prior variances (U + 1,), that of the new study last."""
        prior = process_of(self.inner).prior
        return np.append(self.sources.sizes(self.used), prior.variance(self.data.x[:1]))

    def _betas(self, variances: Array) -> Array:
        """Exponents (m or 1, U + 1), that of the new study last."""
        if not self.entropic:
            return self.weights[None, [*self.used, -1]]
        return np.maximum(0.5 * np.log(self._priors / variances), NUMBERS.min_exponent)

    def shares(self, x: Array) -> Array:
        """The weights (m, M + 1) of the models' means in the mean at x: shares of beta / variance."""
        own = self.inner.posterior(x).variance
        variances = _with_own(self.sources.variances(x, self.used), own)
        precisions = self._betas(variances) / variances
        found = np.zeros((len(x), len(self.weights)))
        found[:, [*self.used, -1]] = precisions / precisions.sum(axis=1, keepdims=True)
        return found

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        own = self.inner.posterior(x, joint=joint)
        variances = _with_own(self.sources.variances(x, self.used), own.variance)
        means = self.sources.means(x)
        mean, variance, _ = self._product(own.mean, means, variances, self._betas(variances))
        covariance = None if own.covariance is None else _correlated_alike(own, variance)
        return Posterior(mean, variance, covariance)

    def _product(
        self, own: Array, past: Array, variances: Array, betas: Array
    ) -> tuple[Array, Array, Array]:
        """The mean (m, F), the variance (m,), and the divisor of the means (m, 1)."""
        precisions = betas / variances
        total: Array = precisions.sum(axis=1)
        if self.scaling == "rbcm":
            total = total + 1.0 / self._priors[-1] - (betas / self._priors).sum(axis=1)
        mean = (precisions[:, :-1] * past[:, list(self.used)]).sum(axis=1, keepdims=True)
        mean = mean + precisions[:, -1:] * own
        size = betas.sum(axis=1) if self.scaling == "gpoe" else 1.0
        return mean / total[:, None], size / total, total[:, None]

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        own, pull_own = self.inner.posterior_and_pullback(x)
        used, (means, pull_means) = list(self.used), self.sources.means_and_pullback(x)
        past, pull_variances = self.sources.variances_and_pullback(x, self.used)
        variances = _with_own(past, own.variance)
        betas = self._betas(variances)
        mean, variance, total = self._product(own.mean, means, variances, betas)
        precisions = betas / variances

        def pull(d_mean: Array, d_variance: Array) -> Array:
            # d mean / d precision_i = (mu_i - mean) / total, d variance / d precision_i =
            # -variance / total, and d variance / d beta_i = 1 / total.
            past_part = means[:, used] * d_mean.sum(axis=1, keepdims=True)
            every_part = np.column_stack([past_part, (d_mean * own.mean).sum(axis=1)])
            d_total = ((d_mean * mean).sum(axis=1) + d_variance * variance)[:, None] / total
            d_precisions = every_part / total - d_total
            slopes = -d_precisions * precisions / variances
            if self.entropic:
                by_beta = {"gpoe": d_variance[:, None] / total, "rbcm": d_total / self._priors}
                d_betas = d_precisions / variances + by_beta.get(self.scaling, 0.0)
                slopes -= np.where(betas > NUMBERS.min_exponent, 0.5 * d_betas / variances, 0.0)
            slopes[variances <= MIN_VARIANCE] = 0.0
            d_means = np.zeros_like(means)
            d_means[:, used] = d_mean.sum(axis=1, keepdims=True) * precisions[:, :-1] / total
            result = pull_own(d_mean * precisions[:, -1:] / total, slopes[:, -1])
            return result + pull_variances(slopes[:, :-1]) + pull_means(d_means)

        return Posterior(mean, variance), pull


def _with_own(past: Array, own: Array) -> Array:
    """The variances (m, U + 1) of past models and, last, of the new study's."""
    return np.maximum(np.column_stack([past, own]), MIN_VARIANCE)


def _correlated_alike(own: Posterior, variance: Array) -> Array:
    """The covariance (m, m) with these variances (m,) and the correlations of the target."""
    assert own.covariance is not None
    ratio = np.sqrt(variance / np.maximum(own.variance, MIN_VARIANCE))
    return np.asarray(own.covariance * ratio[:, None] * ratio)


# --- acquisitions ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MixedImprovement(Acquisition):
    """TAF or RMoGP with weights (M + 1,), that of the new study last.

    ``expected``: EI of past models (RMoGP) instead of the improvement of their means (TAF).
    ``experts``: weights are exponents beta, divided by the variance of each model at x. ``own``:
    the log improvement of the new study's model.
    """

    sources: SourceModels
    weights: Array
    expected: bool = False
    experts: bool = False
    own: Acquisition = field(default_factory=LogExpectedImprovement)

    def bind(
        self, models: Mapping[str, FittedSurrogate], context: Context
    ) -> "BoundMixedImprovement":
        own, known = self.own.bind(models, context), context.evaluated
        assert isinstance(own, FantasyAverage)
        if context.feasible is not None:
            known = known[context.feasible]
        if context.pending is not None:
            known = np.concatenate([known, context.pending])
        eta = self.sources.means(known).min(axis=0)
        return BoundMixedImprovement(self, model_named(models, "loss"), own, eta)


@dataclass(frozen=True, eq=False)
class BoundMixedImprovement(FantasyAverage):
    """The mixture with its incumbents: eta (M,) of past models, ``own`` of the new study."""

    mixture: MixedImprovement
    target: FittedSurrogate
    own: FantasyAverage
    eta: Array
    logarithmic: ClassVar[bool] = True

    @cached_property
    def _used(self) -> list[int]:
        return np.flatnonzero(self.mixture.weights[:-1] > 0.0).tolist()

    @property
    def _uncertain(self) -> bool:
        return self.mixture.expected or self.mixture.experts

    def terms(self, x: Array) -> Array:
        means = self.mixture.sources.means(x)[:, self._used]
        variances = np.ones_like(means)
        if self._uncertain:
            variances = self.mixture.sources.variances(x, self._used)
        own_variance = self.target.posterior(x).variance if self.mixture.experts else None
        logs, _, _ = self._improvements(means, variances)
        past, own = self._log_weights(variances, own_variance)
        top = _logsumexp(past + logs)
        return np.asarray(
            np.logaddexp(own + self.own.terms(x), top) - np.logaddexp(own, _logsumexp(past))
        )

    def _log_weights(self, variances: Array, own: Array | None) -> tuple[Array, Array]:
        """Log weights of past models (m or 1, U) and of the new study (m or 1, 1), unnormalised."""
        weights = self.mixture.weights
        with np.errstate(divide="ignore"):
            past = np.log(weights[self._used])[None]
            last = np.full((1, 1), max(np.log(weights[-1]), NUMBERS.log_of_nothing))
        if own is not None:
            past = past - np.log(np.maximum(variances, MIN_VARIANCE))
            last = last - np.log(np.maximum(own, MIN_VARIANCE))[:, None]
        return past, last

    def _improvements(self, means: Array, variances: Array) -> tuple[Array, Array, Array]:
        """Log improvements (m, U) of past models, and their derivatives by mean and by variance."""
        eta = self.eta[self._used]
        if self.mixture.expected:
            std = np.sqrt(np.maximum(variances, MIN_VARIANCE))
            value, by_mean, by_std = log_expected_improvement_and_derivatives(means, std, eta)
            return value, by_mean, 0.5 * by_std / std
        gain = eta - means
        some = gain > 0.0
        safe = np.where(some, gain, 1.0)
        logs = np.where(some, np.log(safe), NUMBERS.log_of_nothing)
        return logs, np.where(some, -1.0 / safe, 0.0), np.zeros_like(means)

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        used, sources = self._used, self.mixture.sources
        own_terms, pull_own = self.own.terms_and_pullback(x)
        means, pull_means = sources.means_and_pullback(x)
        variances, pull_variances = np.ones((len(x), len(used))), None
        if self._uncertain:
            variances, pull_variances = sources.variances_and_pullback(x, used)
        own_variance = None
        if self.mixture.experts:
            posterior, pull_target = self.target.posterior_and_pullback(x)
            own_variance = posterior.variance
        logs, by_mean, by_variance = self._improvements(means[:, used], variances)
        past, own = self._log_weights(variances, own_variance)
        top, size = _logsumexp(past + logs), np.logaddexp(own, _logsumexp(past))
        total = np.logaddexp(own + own_terms, top)

        def pull(d_terms: Array) -> Array:
            d_own = d_terms * np.exp(own + own_terms - total)
            d_past = (d_terms * np.exp(top - total)).sum(axis=1, keepdims=True)
            d_logs = d_past * np.exp(past + logs - top)
            d_means, d_variances = np.zeros_like(means), d_logs * by_variance
            d_means[:, used] = d_logs * by_mean
            result = pull_own(d_own) + pull_means(d_means)
            if own_variance is not None:
                # Weights are shares of precision: d log weight = -d variance / variance.
                whole = d_terms.sum(axis=1, keepdims=True)
                d_shares = d_logs - whole * np.exp(past - size)
                d_variances -= d_shares / np.maximum(variances, MIN_VARIANCE)
                d_own_share = d_own.sum(axis=1) - (whole * np.exp(own - size))[:, 0]
                d_own_variance = -d_own_share / np.maximum(own_variance, MIN_VARIANCE)
                result = result + pull_target(np.zeros_like(posterior.mean), d_own_variance)
            return result if pull_variances is None else result + pull_variances(d_variances)

        return total - size, pull


def _logsumexp(logs: Array) -> Array:
    """Log of the sum of exponentials over columns, (m, 1); that of nothing without columns."""
    top = logs.max(axis=1, keepdims=True, initial=NUMBERS.log_of_nothing)
    return np.asarray(
        top + np.log(np.exp(logs - top).sum(axis=1, keepdims=True) + NUMBERS.smallest)
    )


@dataclass(frozen=True, eq=False)
class NoisyImprovement(Acquisition):
    """Noisy EI of a weighted sum of models with weights (M + 1,). ``target``: the new study's model
    without pending evaluations."""

    target: FittedSurrogate
    sources: SourceModels
    weights: Array
    seed: int = 0

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundAcquisition:
        rows = context.evaluated
        if context.pending is not None:
            rows = np.concatenate([rows, context.pending])
        # As many draws as the other models have fantasies of pending evaluations: terms must match.
        fantasies = model_named(models, "loss").mean(rows[:1]).shape[1]
        draws = fantasies if fantasies > 1 else NUMBERS.noisy_draws
        rng = np.random.default_rng(self.seed)
        used = np.flatnonzero(self.weights[:-1] > 0.0).tolist()
        known = []
        for part in (self.target, *(self.sources.view(one) for one in used)):
            # A model adds its own noise to that of the data.
            less = np.full(len(rows), NUMBERS.draw_noise - part.noise_variance)
            known.append(part.condition(Data(rows, part.sample(rows, draws, rng).T, less)))
        weights = (float(self.weights[-1]), *self.weights[used].tolist())
        ensemble = LinearEnsemble(weights, tuple(known))
        return LogExpectedImprovement().bind({"loss": ensemble}, context)
