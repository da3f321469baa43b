"""Several beliefs about one task after n evaluations: a surrogate, and the expected improvement
under all of them.

Every belief is a Gaussian process whose covariance is a sum of the same four blocks, so K of them
cost little more than one: one set of blocks, K small factors, and one pullback for all. The flat
offset a is integrated out exactly: with Sigma the covariance without it, r = y - mean, s = 1'
Sigma^-1 1 and a = 1' Sigma^-1 r / s,

    mean(x) = m(x) + a + k(x) Sigma^-1 (r - a),    variance(x) = k(x, x) - k Sigma^-1 k + (1 - 1' Sigma^-1 k(x))^2 / s

    posterior = TaskPosterior(basis, beliefs, scales, weights, data)
    score = TaskImprovement().bind({"loss": posterior}, context)        # log sum_k w_k EI_k(x)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from scrimp.acquisition.acquisition import Acquisition, FantasyAverage, TermsPullback
from scrimp.acquisition.context import Context, incumbents, model_named
from scrimp.acquisition.improvement import log_expected_improvement_and_derivatives
from scrimp.errors import MethodError, NumericalError
from scrimp.gp.cholesky import cholesky
from scrimp.json_values import JsonObject
from scrimp.surrogates.exact_gp import as_columns, joined
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Posterior, PosteriorPullback
from scrimp.surrogates.target_transform import LearnedStep
from scrimp.transfer.task_prior import Blocks, TaskBasis, TaskBelief

__all__ = ["TaskImprovement", "TaskPosterior"]

LEAST_VARIANCE = 1e-12
MOST_NUMBERS = 2_000_000  # of the largest array, beliefs x candidates x observations

EachPullback = Callable[[Array, Array], Array]
"""pull(d_mean (K, m, F), d_variance (K, m)) -> d_x (m, d)."""


@dataclass(frozen=True, eq=False)
class _Solved:
    """L^-1 (K, n, n), alpha = Sigma^-1 (r - a) (K, n, F), L^-1 1 (K, n), s (K,) and the offset a
    (K, F)."""

    inverse: Array
    alpha: Array
    ones: Array
    size: Array
    offset: Array


@dataclass(frozen=True, eq=False)
class TaskPosterior(FittedSurrogate):
    """Beliefs with their scales c (K,) and probabilities ``weights`` (K,), in units of the targets
    y; ``steps`` lead there."""

    basis: TaskBasis
    beliefs: Sequence[TaskBelief]
    scales: Array
    weights: Array
    observed: Data
    steps: tuple[LearnedStep, ...] = ()

    @property
    def data(self) -> Data:
        return self.observed

    @property
    def state(self) -> JsonObject:
        return {"weights": self.weights.tolist(), "scales": self.scales.tolist()}

    @cached_property
    def _parts(self) -> Array:
        """(K, 4) in units of y squared."""
        return np.array([belief.parts for belief in self.beliefs]) / self.scales[:, None] ** 2

    @cached_property
    def _gains(self) -> Array:
        return np.array([belief.gain for belief in self.beliefs]) / self.scales

    @cached_property
    def _solved(self) -> "_Solved":
        x, count = self.observed.x, len(self.observed)
        blocks, _ = self.basis.blocks(x, x)
        covariance = np.tensordot(self._parts, blocks, 1)
        noise = np.array([belief.noise for belief in self.beliefs]) / self.scales**2
        known = 0.0 if self.observed.noise is None else self.observed.noise
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
        ones = inverse.sum(axis=2)  # L^-1 1
        size = np.einsum("kn,kn->k", ones, ones)
        offset = np.einsum("kn,knf->kf", ones, whitened) / size[:, None]
        alpha = np.swapaxes(inverse, 1, 2) @ (whitened - ones[:, :, None] * offset[:, None, :])
        return _Solved(inverse, alpha, ones, size, offset)

    def each(self, x: Array) -> tuple[Array, Array]:
        """Means (K, m, F) and variances (K, m) of every belief."""
        step = max(1, MOST_NUMBERS // (len(self.beliefs) * max(len(self.observed), 1)))
        parts = [self._each(x[start : start + step]) for start in range(0, max(len(x), 1), step)]
        return np.concatenate([mean for mean, _ in parts], axis=1), np.concatenate(
            [var for _, var in parts], axis=1
        )

    def _each(self, x: Array) -> tuple[Array, Array]:
        average, _ = self.basis.directions(x)
        return self._from_blocks(average, self.basis.blocks(x, self.observed.x))[:2]

    def _from_blocks(self, average: Array, blocks: Blocks) -> tuple[Array, Array, Array, Array]:
        """Means, variances, L^-1 k (K, n, m) and what the offset adds, 1 - 1' Sigma^-1 k (K, m)."""
        solved, (cross, variance) = self._solved, blocks
        crosses = np.tensordot(self._parts, cross, 1)
        mean = (
            (self._gains[:, None] * average)[:, :, None]
            + solved.offset[:, None, :]
            + crosses @ solved.alpha
        )
        reduced = solved.inverse @ np.swapaxes(crosses, 1, 2)
        gap = 1.0 - np.einsum("kn,knm->km", solved.ones, reduced)
        left = (
            self._parts @ variance
            - np.einsum("knm,knm->km", reduced, reduced)
            + gap**2 / solved.size[:, None]
        )
        return mean, np.maximum(left, LEAST_VARIANCE), reduced, gap

    def each_and_pullback(self, x: Array) -> tuple[Array, Array, EachPullback]:
        """The same, and the chain rule from all of them back to x."""
        average, blocks, back = self.basis.blocks_and_pullback(x, self.observed.x)
        mean, variance, reduced, gap = self._from_blocks(average, blocks)
        solved = self._solved

        def pull(d_mean: Array, d_variance: Array) -> Array:
            d_reduced = reduced + solved.ones[:, :, None] * (gap / solved.size[:, None])[:, None, :]
            through = np.swapaxes(np.swapaxes(solved.inverse, 1, 2) @ d_reduced, 1, 2)
            d_crosses = (
                d_mean @ np.swapaxes(solved.alpha, 1, 2) - 2.0 * d_variance[:, :, None] * through
            )
            d_average = self._gains @ d_mean.sum(axis=2)
            return back(
                d_average, np.tensordot(self._parts.T, d_crosses, 1), self._parts.T @ d_variance
            )

        return mean, variance, pull

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        means, variances = self.each(x)
        mean, variance, spread = self._moments(means, variances)
        covariance = self._covariance(x, spread) if joint else None
        return Posterior(mean, variance, covariance)

    def _moments(self, means: Array, variances: Array) -> tuple[Array, Array, Array]:
        mean = np.tensordot(self.weights, means, 1)
        spread = means - mean
        between = np.einsum("k,kmf->m", self.weights, spread**2) / mean.shape[1]
        return mean, self.weights @ variances + between, spread

    def _covariance(self, x: Array, spread: Array) -> Array:
        average, _ = self.basis.directions(x)
        _, _, reduced, gap = self._from_blocks(average, self.basis.blocks(x, self.observed.x))
        within, _ = self.basis.blocks(x, x)
        each = np.tensordot(self._parts, within, 1) - np.swapaxes(reduced, 1, 2) @ reduced
        each += gap[:, :, None] * gap[:, None, :] / self._solved.size[:, None, None]
        between = np.einsum("k,kmf,knf->mn", self.weights, spread, spread) / spread.shape[2]
        return np.asarray(np.tensordot(self.weights, each, 1) + between)

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
        """Draws of the mixture, each from a belief chosen by its weight."""
        chosen = rng.multinomial(count, self.weights / self.weights.sum())
        draws = []
        for belief, number in enumerate(chosen):
            if number:
                alone = replace(
                    self,
                    beliefs=[self.beliefs[belief]],
                    scales=self.scales[[belief]],
                    weights=np.ones(1),
                )
                posterior = alone.posterior(x, joint=True)
                assert posterior.covariance is not None and posterior.variance is not None
                root = cholesky(posterior.covariance, scale=float(posterior.variance.mean()))
                draws.append(posterior.mean[:, 0] + rng.standard_normal((number, len(x))) @ root.T)
        return rng.permutation(np.concatenate(draws))

    def model_units(self, data: Data) -> Data:
        y, noise = data.y, data.noise
        for step in self.steps:
            noise = None if noise is None else noise * as_columns(step.slope(y)).mean(1) ** 2
            y = step.forward(y)
        return Data(data.x, y, noise)

    def target_units(self, values: Array) -> Array:
        for step in reversed(self.steps):
            values = step.backward(values)
        return values


@dataclass(frozen=True)
class TaskImprovement(Acquisition):
    """log of the expected improvement under a `TaskPosterior`: the weighted sum over beliefs."""

    def bind(
        self, models: Mapping[str, FittedSurrogate], context: Context
    ) -> "BoundTaskImprovement":
        posterior = model_named(models, "loss")
        if not isinstance(posterior, TaskPosterior):
            raise MethodError(
                f"TaskImprovement needs a TaskPosterior as model of the loss, not {posterior!r}"
            )
        return BoundTaskImprovement(posterior, incumbents(posterior, context))


@dataclass(frozen=True, eq=False)
class BoundTaskImprovement(FantasyAverage):
    """With the incumbents (F,), the same for every belief."""

    model: TaskPosterior
    incumbent: Array

    @property
    def logarithmic(self) -> bool:
        return True

    def terms(self, x: Array) -> Array:
        means, variances = self.model.each(x)
        value, _, _ = log_expected_improvement_and_derivatives(
            means, np.sqrt(variances)[:, :, None], self.incumbent
        )
        return self._mixed(value)[0]

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        means, variances, back = self.model.each_and_pullback(x)
        std = np.sqrt(variances)[:, :, None]
        value, by_mean, by_std = log_expected_improvement_and_derivatives(
            means, std, self.incumbent
        )
        terms, shares = self._mixed(value)

        def pull(d_terms: Array) -> Array:
            d = d_terms[None] * shares
            resolved = variances > LEAST_VARIANCE
            return back(d * by_mean, (d * by_std * 0.5 / std).sum(axis=2) * resolved)

        return terms, pull

    def _mixed(self, value: Array) -> tuple[Array, Array]:
        """log sum_k w_k exp(value_k), and each belief's share of it."""
        weighted = value + np.log(self.model.weights)[:, None, None]
        top = weighted.max(axis=0)
        shares = np.exp(weighted - top)
        total = shares.sum(axis=0)
        return top + np.log(total), shares / total
