"""The task prior: a Gaussian process over the new study, made of past studies.

*Prior.* With mu_i the means of M past models, m(x) their average and A_i(x) = (mu_i(x) - m(x)) /
sqrt(M), the new task is

    c y(x) = a + g m(x) + h(x) + noise,      h ~ GP(0, rho sum_i A_i A_i' + (1 - rho) kappa k)

a multiple of the past average, plus a mixture of past differences, plus a residual of its own. The
offset a is flat, the scale c > 0 is found in closed form, kappa is the mean variance of the first
part of h, and k is a Matern kernel with the length-scales that past studies share.

*Components.* g (0 or 1), rho and the noise are unknown, so 24 values of them are components of a
mixture (`components`), weighted by their evidence after n evaluations (`log_evidences`); the cold
model, the Gaussian process fitted to the new study alone, is one more (`task_posterior`). With
g = 0 the average joins the covariance, where its sign does not matter: even inverted past studies
tell which configurations are alike.

*Evidence.* With Sigma = covariance + noise, P = Sigma^-1 - Sigma^-1 1 1' Sigma^-1 / (1' Sigma^-1
1), yy = y'Py, ym = g y'Pm, mm = g m'Pm, a density of c with k0 = 1 observation of size s0, and
q = yy + k0 / s0^2,

    c = (ym + sqrt(ym^2 + 4 (n - 1 + k0) q)) / (2 q)
    log evidence = (n - 1 + k0) log c - c^2 q / 2 + c ym - mm / 2 - log|Sigma| / 2 - log(1' Sigma^-1 1) / 2

*Posterior.* Every component is a sum of the same four covariances, so K of them cost little more
than one. The flat offset is integrated out: with r = y - mean, s = 1' Sigma^-1 1 and
a = 1' Sigma^-1 r / s,

    mean(x) = m(x) + a + k(x) Sigma^-1 (r - a),    variance(x) = k(x, x) - k Sigma^-1 k + (1 - 1' Sigma^-1 k(x))^2 / s

*Acquisition.* The expected improvement of the mixture, plus the improvement that past means predict
(`TaskAcquisition`).

    posterior = task_posterior(basis, cold)
    MixtureImprovement().bind({"loss": posterior}, context)        # log sum_k w_k EI_k(x)
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from scrimp.acquisition.acquisition import (
    Acquisition,
    Context,
    FantasyAverage,
    TermsPullback,
    incumbents,
    log_summed,
    model_named,
)
from scrimp.acquisition.improvement import log_expected_improvement_and_derivatives
from scrimp.errors import MethodError, NumericalError
from scrimp.gp.kernel import Kernel, Scaled
from scrimp.gp.process import MeanAndKernel
from scrimp.json_values import JsonObject
from scrimp.surrogates.exact_gp import FittedGP, joined, joint_draws
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Posterior,
    PosteriorPullback,
    RecordedSurrogate,
    as_columns,
)
from scrimp.surrogates.target_transform import FittedTransformed
from scrimp.transfer.combinations import BoundMixedImprovement, MixedImprovement
from scrimp.transfer.past import SourceModels
from scrimp.transfer.source_model import MIN_VARIANCE


@dataclass(frozen=True)
class MixtureNumbers:
    """Numbers of the mixture, all measured on the SVM and random forest tables unless said
    otherwise (notebook, Transfer)."""

    shares: tuple[float, ...] = (0.0, 0.5, 0.8, 0.95)
    """rho, the share of past differences in the covariance."""
    noises: tuple[float, ...] = (0.003, 0.03, 0.2)
    """Noise variances, in units of the other part of the covariance."""
    cold_prior: float = 0.3
    """Prior probability of the cold model; the other components share the rest."""
    cold_from: int = 4
    """Evaluations from which on the cold model joins."""
    occam: float = 0.25
    """The cold model's log evidence is lowered by this times (d + 1) log n, half of a BIC term,
    since its hyperparameters were fitted to the data; twice as much was slightly worse."""
    max_log_gap: float = 4.0
    """Components this far below the best in log evidence are dropped (time)."""
    evidence_rows: int = 150
    """Observations by which components are weighted (time)."""
    min_size_squared: float = 1e-3
    """Lower bound of s0^2 (stability)."""
    max_block: int = 2_000_000
    """Numbers of the largest array, components x candidates x observations (memory)."""
    min_improvement: float = 1e-12
    """Lower bound of the improvement that past means predict, before it is divided by."""


NUMBERS = MixtureNumbers()


# --- the prior ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskComponent:
    """One component of the mixture: a sum of the four covariances of `TaskBasis.blocks`, multiplied
    by ``parts``, and ``gain`` times the past average as its mean."""

    gain: float
    parts: tuple[float, float, float, float]
    noise: float

    def covariance(self, blocks: Array) -> Array:
        """The covariance (n, n) of c y, noise included, from blocks (4, n, n)."""
        return np.asarray(
            np.tensordot(np.array(self.parts), blocks, 1) + self.noise * np.eye(blocks.shape[1])
        )


def components(kappa: float) -> tuple[TaskComponent, ...]:
    """The 24 components: the past average in the covariance or as the mean, four shares of past
    differences, three noises."""
    found = []
    for share in NUMBERS.shares:
        for noise in NUMBERS.noises:
            found.append(TaskComponent(0.0, (share, share, 1.0 - share, 0.0), noise))
            found.append(
                TaskComponent(1.0, (share, 0.0, (1.0 - share) * kappa, 0.0), noise * kappa)
            )
    return tuple(found)


Blocks = tuple[Array, Array]
"""Covariances (4, n, m) between two sets of inputs, and variances (4, n) of the first."""


@dataclass(frozen=True, eq=False)
class TaskBasis:
    """The parts of a task: average and differences of past means, and two kernels of unit
    variance, of the ``residual`` and of the ``cold`` model."""

    sources: SourceModels
    residual: Kernel
    cold: Kernel
    kappa: float

    def directions(self, x: Array) -> tuple[Array, Array]:
        """The past average m (n,) and the differences A (n, M)."""
        return _directions(self.sources.means(x))

    def blocks(self, x1: Array, x2: Array) -> Blocks:
        """sum_i A_i(x1) A_i(x2), m(x1) m(x2), residual(x1, x2) and cold(x1, x2)."""
        kernels = self.residual(x1, x2), self.cold(x1, x2)
        return _blocks(self.directions(x1), self.directions(x2), *kernels)

    def blocks_and_pullback(
        self, x1: Array, x2: Array
    ) -> tuple[Array, Blocks, Callable[[Array, Array, Array], Array]]:
        """m(x1), the blocks, and pull(dm, d_cross (4, n, m), d_variance (4, n)) -> d_x1 (n, d)."""
        means, back = self.sources.means_and_pullback(x1)
        (m1, a1), (m2, a2) = _directions(means), self.directions(x2)
        residual, pull_residual = self.residual.cross_and_pullback(x1, x2)
        cold, pull_cold = self.cold.cross_and_pullback(x1, x2)
        count = len(self.sources)

        def pull(dm: Array, d_cross: Array, d_variance: Array) -> Array:
            d_means = (d_cross[0] @ a2 + 2.0 * d_variance[0][:, None] * a1) / np.sqrt(count)
            d_average = dm + d_cross[1] @ m2 + 2.0 * d_variance[1] * m1
            d_means += ((d_average - d_means.sum(axis=1)) / count)[:, None]
            return back(d_means) + pull_residual(d_cross[2]) + pull_cold(d_cross[3])

        return m1, _blocks((m1, a1), (m2, a2), residual, cold), pull


def _directions(means: Array) -> tuple[Array, Array]:
    average = means.mean(axis=1)
    return average, (means - average[:, None]) / np.sqrt(means.shape[1])


def _blocks(
    first: tuple[Array, Array], second: tuple[Array, Array], residual: Array, cold: Array
) -> Blocks:
    (m1, a1), (m2, a2), ones = first, second, np.ones(len(residual))
    cross = np.stack([a1 @ a2.T, np.outer(m1, m2), residual, cold])
    return cross, np.stack([np.einsum("ij,ij->i", a1, a1), m1**2, ones, ones])


def log_evidences(
    covariances: Array, gains: Sequence[float], y: Array, average: Array, size: float
) -> tuple[Array, Array]:
    """Log evidence (K,) and scale c (K,) of K components with covariances (K, n, n), noise
    included, and ``gains`` g (K,).

    ``y`` (n,): standardised targets. ``average``: m (n,) at the same inputs. ``size``: s0.
    """
    count, gain = len(y), np.asarray(gains, dtype=float)
    factors = np.linalg.cholesky(covariances)
    ones = np.ones(count)
    right = np.broadcast_to(np.stack([ones, y, average], axis=1), (len(gain), count, 3))
    whitened = np.linalg.solve(factors, right)
    products = np.einsum("kni,knj->kij", whitened, whitened)  # v' Sigma^-1 w for v, w in 1, y, m
    flat = products[:, 0, 0]
    centred = products - products[:, :, :1] * products[:, :1, :] / flat[:, None, None]
    yy, ym, mm = centred[:, 1, 1], gain * centred[:, 1, 2], gain * centred[:, 2, 2]
    q, freedom = yy + 1.0 / size**2, count  # n - 1 + k0, k0 = 1
    scale = (ym + np.sqrt(ym**2 + 4.0 * freedom * q)) / (2.0 * q)
    determinants = 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    log_evidence = (
        freedom * np.log(scale)
        - 0.5 * scale**2 * q
        + scale * ym
        - 0.5 * mm
        - 0.5 * determinants
        - 0.5 * np.log(flat)
    )
    return np.asarray(log_evidence), np.asarray(scale)


# --- the posterior ---------------------------------------------------------------------------------


EachPullback = Callable[[Array, Array], Array]
"""pull(d_mean (K, m, F), d_variance (K, m)) -> d_x (m, d)."""


@dataclass(frozen=True, eq=False)
class _Solved:
    """Solutions for all components: L^-1 (K, n, n), alpha = Sigma^-1 (r - a) (K, n, F), L^-1 1
    (K, n), s (K,) and the offset a (K, F)."""

    inverse: Array
    alpha: Array
    ones: Array
    size: Array
    offset: Array


@dataclass(frozen=True, eq=False)
class TaskPosterior(RecordedSurrogate):
    """Components with their scales c (K,) and probabilities ``weights`` (K,), in units of the
    targets y."""

    basis: TaskBasis
    components: Sequence[TaskComponent]
    scales: Array
    weights: Array
    observed: Data

    @property
    def state(self) -> JsonObject:
        return {"weights": self.weights.tolist(), "scales": self.scales.tolist()}

    @property
    def cold_weight(self) -> float:
        """The probability of the cold model."""
        return float(self.weights[[one.parts[3] > 0.0 for one in self.components]].sum())

    @cached_property
    def _parts(self) -> Array:
        """The parts of all components (K, 4), in units of y squared."""
        return np.array([one.parts for one in self.components]) / self.scales[:, None] ** 2

    @cached_property
    def _gains(self) -> Array:
        return np.array([one.gain for one in self.components]) / self.scales

    @cached_property
    def _solved(self) -> "_Solved":
        x, count = self.observed.x, len(self.observed)
        blocks, _ = self.basis.blocks(x, x)
        covariance = np.tensordot(self._parts, blocks, 1)
        noise = np.array([one.noise for one in self.components]) / self.scales**2
        known = self.observed.known_noise
        covariance[:, np.arange(count), np.arange(count)] += noise[:, None] + known
        try:
            inverse = np.linalg.inv(np.linalg.cholesky(covariance))
        except np.linalg.LinAlgError as error:
            raise NumericalError(
                f"the covariance of {count} evaluations has no factor ({error})"
            ) from None
        average, _ = self.basis.directions(x)
        residual = as_columns(self.observed.y)[None] - (self._gains[:, None] * average)[:, :, None]
        whitened = inverse @ residual
        ones = inverse.sum(axis=2)
        size = np.einsum("kn,kn->k", ones, ones)
        offset = np.einsum("kn,knf->kf", ones, whitened) / size[:, None]
        alpha = np.swapaxes(inverse, 1, 2) @ (whitened - ones[:, :, None] * offset[:, None, :])
        return _Solved(inverse, alpha, ones, size, offset)

    def past_coefficients(self) -> Array:
        """Coefficients (M,) of the past means mu_i(x) in the mean of the mixture."""
        average, differences = self.basis.directions(self.observed.x)
        count, alpha = differences.shape[1], self._solved.alpha.mean(axis=2)
        of_average = self._gains + self._parts[:, 1] * (alpha @ average)
        of_differences = self._parts[:, :1] * (alpha @ differences)
        of_differences -= of_differences.mean(axis=1, keepdims=True)
        each = of_average[:, None] / count + of_differences / math.sqrt(count)
        return np.asarray(self.weights @ each)

    def each(self, x: Array) -> tuple[Array, Array]:
        """Means (K, m, F) and variances (K, m) of every component."""
        step = max(1, NUMBERS.max_block // (len(self.components) * max(len(self.observed), 1)))
        parts = [self._at(x[start : start + step]) for start in range(0, max(len(x), 1), step)]
        means, variances, _, _ = zip(*parts, strict=True)
        return np.concatenate(means, axis=1), np.concatenate(variances, axis=1)

    def _at(self, x: Array) -> tuple[Array, Array, Array, Array]:
        average, _ = self.basis.directions(x)
        return self._from_blocks(average, self.basis.blocks(x, self.observed.x))

    def _from_blocks(self, average: Array, blocks: Blocks) -> tuple[Array, Array, Array, Array]:
        """Means, variances, L^-1 k (K, n, m) and 1 - 1' Sigma^-1 k (K, m), by which the offset adds
        to the variance."""
        solved, (cross, variance) = self._solved, blocks
        crosses = np.tensordot(self._parts, cross, 1)
        mean = (self._gains[:, None] * average)[:, :, None] + solved.offset[:, None, :]
        mean = mean + crosses @ solved.alpha
        reduced = solved.inverse @ np.swapaxes(crosses, 1, 2)
        gap = 1.0 - np.einsum("kn,knm->km", solved.ones, reduced)
        left = self._parts @ variance - np.einsum("knm,knm->km", reduced, reduced)
        left += gap**2 / solved.size[:, None]
        return mean, np.maximum(left, MIN_VARIANCE), reduced, gap

    def each_and_pullback(self, x: Array) -> tuple[Array, Array, EachPullback]:
        """Like `each`, with the chain rule from all of them back to x."""
        average, blocks, back = self.basis.blocks_and_pullback(x, self.observed.x)
        mean, variance, reduced, gap = self._from_blocks(average, blocks)
        solved, parts = self._solved, self._parts.T

        def pull(d_mean: Array, d_variance: Array) -> Array:
            d_reduced = reduced + solved.ones[:, :, None] * (gap / solved.size[:, None])[:, None, :]
            through = np.swapaxes(np.swapaxes(solved.inverse, 1, 2) @ d_reduced, 1, 2)
            d_crosses = d_mean @ np.swapaxes(solved.alpha, 1, 2)
            d_crosses -= 2.0 * d_variance[:, :, None] * through
            d_average = self._gains @ d_mean.sum(axis=2)
            return back(d_average, np.tensordot(parts, d_crosses, 1), parts @ d_variance)

        return mean, variance, pull

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        means, variances = self.each(x)
        mean, variance, spread = self._moments(means, variances)
        if not joint:
            return Posterior(mean, variance)
        _, _, reduced, gap = self._at(x)
        within, _ = self.basis.blocks(x, x)
        each = np.tensordot(self._parts, within, 1) - np.swapaxes(reduced, 1, 2) @ reduced
        each += gap[:, :, None] * gap[:, None, :] / self._solved.size[:, None, None]
        between = np.einsum("k,kmf,knf->mn", self.weights, spread, spread) / spread.shape[2]
        return Posterior(mean, variance, np.tensordot(self.weights, each, 1) + between)

    def _moments(self, means: Array, variances: Array) -> tuple[Array, Array, Array]:
        mean = np.tensordot(self.weights, means, 1)
        spread = means - mean
        between = np.einsum("k,kmf->m", self.weights, spread**2) / mean.shape[1]
        return mean, self.weights @ variances + between, spread

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        means, variances, back = self.each_and_pullback(x)
        mean, variance, spread = self._moments(means, variances)
        weights = self.weights[:, None]

        def pull(d_mean: Array, d_variance: Array) -> Array:
            through = d_mean[None] + 2.0 * d_variance[None, :, None] * spread / mean.shape[1]
            return back(weights[:, :, None] * through, weights * d_variance)

        return Posterior(mean, variance), pull

    def condition(self, data: Data) -> "TaskPosterior":
        return replace(self, observed=joined(self.observed, data))

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        """Draws of the mixture, each from a component drawn by its weight."""
        chosen = rng.multinomial(count, self.weights / self.weights.sum())
        draws = []
        for place in np.flatnonzero(chosen).tolist():
            only, scales = [self.components[place]], self.scales[[place]]
            alone = replace(self, components=only, scales=scales, weights=np.ones(1))
            posterior = alone.posterior(x, joint=True)
            scale = float(posterior.variance.mean())
            draws.append(joint_draws(posterior, scale, chosen[place], rng))
        return rng.permutation(np.concatenate(draws))


def task_posterior(basis: TaskBasis, cold: FittedGP, *, alone: bool = False) -> TaskPosterior:
    """Average all components by their evidence, given the data of the ``cold`` model. With ``alone``
    it is the only component."""
    data, grid = cold.data, list(() if alone else components(basis.kappa))
    log_prior = [math.log((1.0 - NUMBERS.cold_prior) / max(len(grid), 1))] * len(grid)
    prior = cold.prior
    assert isinstance(prior, MeanAndKernel) and isinstance(prior.kernel, Scaled)
    basis = replace(basis, cold=prior.kernel.inner)
    own = TaskComponent(0.0, (0.0, 0.0, 0.0, 1.0), cold.noise / prior.kernel.scale)
    if len(data) >= NUMBERS.cold_from:
        grid.append(own)
        fitted = (data.x.shape[1] + 1) * math.log(len(data))
        log_prior.append(math.log(NUMBERS.cold_prior) - NUMBERS.occam * fitted)
    rows = np.linspace(0, len(data) - 1, min(len(data), NUMBERS.evidence_rows)).astype(int)
    x, y = data.x[rows], np.asarray(data.y)[rows]
    blocks, _ = basis.blocks(x, x)
    average, _ = basis.directions(x)
    spread = float(basis.sources.means(x).var(axis=0).mean())
    size = math.sqrt(max(spread, NUMBERS.min_size_squared))
    covariances = np.stack([one.covariance(blocks) for one in grid])
    log_evidence, scales = log_evidences(covariances, [one.gain for one in grid], y, average, size)
    total = log_evidence + np.array(log_prior)
    kept = np.flatnonzero(total > total.max() - NUMBERS.max_log_gap)
    weights = np.exp(total[kept] - total.max())
    weights /= weights.sum()
    chosen = [grid[place] for place in kept]
    return TaskPosterior(basis, chosen, scales[kept], weights, data)


def mixture_of(model: FittedSurrogate) -> TaskPosterior:
    """Return the mixture behind a model, without the transform of its targets."""
    mixture = model.inner if isinstance(model, FittedTransformed) else model
    if not isinstance(mixture, TaskPosterior):
        raise MethodError(f"MixtureImprovement needs a TaskPosterior as model, not {model!r}")
    return mixture


# --- the acquisition ------------------------------------------------------------------------------


@dataclass(frozen=True)
class MixtureImprovement(Acquisition):
    """Log expected improvement under a `TaskPosterior`: the weighted sum over its components."""

    def bind(
        self, models: Mapping[str, FittedSurrogate], context: Context
    ) -> "BoundMixtureImprovement":
        posterior = mixture_of(model_named(models, "loss"))
        return BoundMixtureImprovement(posterior, incumbents(posterior, context))


@dataclass(frozen=True, eq=False)
class BoundMixtureImprovement(FantasyAverage):
    """The improvement over ``incumbent`` (F,), the same for every component."""

    model: TaskPosterior
    incumbent: Array
    logarithmic: ClassVar[bool] = True

    def terms(self, x: Array) -> Array:
        means, variances = self.model.each(x)
        value, _, _ = log_expected_improvement_and_derivatives(
            means, np.sqrt(variances)[:, :, None], self.incumbent
        )
        return log_summed(value + self._log_weights)[0]

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        means, variances, back = self.model.each_and_pullback(x)
        std = np.sqrt(variances)[:, :, None]
        value, by_mean, by_std = log_expected_improvement_and_derivatives(
            means, std, self.incumbent
        )
        terms, shares = log_summed(value + self._log_weights)

        def pull(d_terms: Array) -> Array:
            d = d_terms[None] * shares
            resolved = variances > MIN_VARIANCE
            return back(d * by_mean, (d * by_std * 0.5 / std).sum(axis=2) * resolved)

        return terms, pull

    @property
    def _log_weights(self) -> Array:
        return np.log(self.model.weights)[:, None, None]


@dataclass(frozen=True, eq=False)
class TaskAcquisition(Acquisition):
    """Expected improvement of the mixture, plus the improvement that past means predict.

    With eta_i the lowest mean mu_i at evaluated configurations, and ``agreement`` w_i (M,) of past
    studies with the results so far, which sums to 1,

        a(x) = (1 - steady - early) EI(x) + sum_i (steady / M + early w_i E / P) max(0, eta_i - mu_i(x))

    E and P are the maxima of EI and of sum_i w_i max(0, eta_i - mu_i) over ``rows`` (r, d), so that
    with ``early`` = 1/2 both count equally, whatever their units. ``steady`` counts in the units of
    the models.
    """

    sources: SourceModels
    agreement: Array
    early: float
    steady: float
    rows: Array

    def bind(
        self, models: Mapping[str, FittedSurrogate], context: Context
    ) -> BoundMixedImprovement:
        count = len(self.sources)
        weights = np.append(np.full(count, self.steady / count), 1.0 - self.steady - self.early)
        mixture = MixedImprovement(self.sources, weights, own=MixtureImprovement())
        bound = mixture.bind(models, context)
        if not self.early:
            return bound
        past = np.maximum(bound.eta - self.sources.means(self.rows), 0.0) @ self.agreement
        own = float(np.exp(bound.own(self.rows).max()))
        weights[:-1] += self.early * self.agreement * own / max(past.max(), NUMBERS.min_improvement)
        return replace(bound, mixture=replace(bound.mixture, weights=weights))
