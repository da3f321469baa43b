"""Learning curves as a function of the configuration plus a process of their own, at the cost of a
GP over configurations.

    y_i(r) = h(x_i) + g(r) + e_i(r) + noise,    h ~ GP(mu, k),    e_i independent over configurations

Given h(x_i), the m observations of curve i are y_i ~ N(1 h_i + g, G_i). Its likelihood as a
function of h_i is that of a single observation of h_i, the curve's *end*, with its own noise
variance:

    u = G^-1 1,    s = 1^T u,    end = u^T (y - g) / s,    noise variance 1 / s

so log p(y) = log N(end; mu, K + diag(1/s)) + sum_i of what a curve says about itself. Curves with
the same observed steps share one factor: O(N m + n^3) for n curves of N observations, instead of
O(N^3). The posterior at (x, r) is that of the GP over ends, with the cross-covariance k(x, X) + t
e_i, t = u^T q / s, where x is an observed configuration i and q = Cov(e_i(r), y_i); new
configurations have curves of their own, independent of all others.

    model = AdditiveCurves(MeanAndKernel(Scaled(Matern52(columns))), DecayResidual(), steps=(0.02, 0.04, ..., 1.0))
    model.fit(Data(np.column_stack([x, share]), y), rng)

Rows of one configuration are recognised by equal columns; shares by the nearest step. Swersky,
Snoek, Adams, Freeze-Thaw Bayesian Optimization, 2014, whose exponential decay is `DecayResidual`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from scrimp.gp.cholesky import (
    cholesky,
    inverse_lower,
    log_determinant,
    multiply_lower,
    solve,
    solve_lower,
)
from scrimp.gp.marginal_likelihood import LogPosterior, SearchSettings, maximum_a_posteriori
from scrimp.gp.priors import ParameterVector
from scrimp.gp.process import Prior
from scrimp.gp.residual import Residual, ResidualMoments
from scrimp.json_values import Json
from scrimp.surrogates.curve_reduction import LOG_TWO_PI, Indices, Observed, Reduction
from scrimp.surrogates.exact_gp import NOISE, FittedGP, check_finite, fitted_gp, joined
from scrimp.surrogates.independent_gps import nearest_level
from scrimp.surrogates.recorded_fit import record_of, recorded_values, search_from
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Posterior,
    PosteriorPullback,
    Surrogate,
)

__all__ = ["AdditiveCurves", "FittedAdditiveCurves"]


@dataclass(frozen=True, eq=False)
class AdditiveCurves(Surrogate):
    """``prior`` of h over the configuration's columns, ``residual`` of the curves over ``steps``
    (shares of the budget).

    ``unit``: what the residual counts a share of 1 as; 1 for shares, the number of steps for whole
    numbers.
    """

    prior: Prior
    residual: Residual
    steps: tuple[float, ...]
    unit: float = 1.0
    search: SearchSettings = field(default_factory=SearchSettings)

    @cached_property
    def vector(self) -> ParameterVector:
        """The prior's parameters, the residual's, then the noise variance."""
        return ParameterVector((*self.prior.parameters, *self.residual.parameters, NOISE))

    def fit(
        self, data: Data, rng: np.random.Generator, start: Mapping[str, Json] | None = None
    ) -> "FittedAdditiveCurves":
        starts, explored = search_from(self.vector, len(data), start, rng, self.search)
        return self._fitted(
            data, maximum_a_posteriori(self.log_posterior(data), starts, self.search), explored
        )

    def restore(self, data: Data, state: Mapping[str, Json]) -> "FittedAdditiveCurves":
        return self._fitted(data, *recorded_values(self.vector, state))

    def log_posterior(self, data: Data) -> "CurvesPosterior":
        """What a fit maximises."""
        check_finite(data)
        return CurvesPosterior(self, Observed.of(data, np.array(self.steps)))

    def parts(self, values: Array) -> tuple[Prior, ResidualMoments]:
        """The prior of h and the moments of the curves with these values (p,)."""
        cut = len(self.prior.values)
        residual = self.residual.with_values(values[cut:-1])
        moments = residual.moments(np.array(self.steps) * self.unit, float(values[-1]))
        return self.prior.with_values(values[:cut]), moments

    def _fitted(self, data: Data, values: Array, explored: int) -> "FittedAdditiveCurves":
        check_finite(data)
        observed = Observed.of(data, np.array(self.steps))
        prior, moments = self.parts(values)
        reductions = observed.reduced(moments)
        ends = observed.ends(reductions)
        state = record_of(self.vector, values, explored)
        return FittedAdditiveCurves(
            self, values, observed, moments, reductions, fitted_gp(prior, 0.0, ends, {}), state
        )


@dataclass(frozen=True, eq=False)
class CurvesPosterior(LogPosterior):
    """log p(y) + log p(parameters), with the gradient of all parameters."""

    model: AdditiveCurves
    observed: Observed

    @property
    def vector(self) -> ParameterVector:
        return self.model.vector

    @property
    def size(self) -> int:
        return len(self.observed.data)

    def part(self, size: int) -> "CurvesPosterior":
        """Whole curves, about as many observations as asked for."""
        count = len(self.observed.configs)
        kept = max(2, round(count * size / self.size))
        chosen = self.observed.configs[np.linspace(0, count - 1, kept).astype(np.intp)]
        keys = {row.tobytes() for row in chosen}
        data = self.observed.data
        rows = [
            k for k, row in enumerate(np.ascontiguousarray(data.x[:, :-1])) if row.tobytes() in keys
        ]
        part = Data(data.x[rows], data.y[rows], None if data.noise is None else data.noise[rows])
        return CurvesPosterior(self.model, Observed.of(part, np.array(self.model.steps)))

    def value_and_gradient(self, values: Array) -> tuple[float, Array]:
        prior, moments = self.model.parts(values)
        reductions = self.observed.reduced(moments)
        ends = self.observed.ends(reductions)
        mean, covariance, pull_prior = prior.value_and_pullback(ends.x)
        assert ends.noise is not None
        covariance.flat[:: len(ends) + 1] += ends.noise
        factor = cholesky(covariance)
        inverse = inverse_lower(factor)
        inverse += np.tril(inverse, -1).T
        residual = ends.y - mean[:, None]
        solved = solve(factor, residual)  # (n, F)
        fantasies = solved.shape[1]
        value = -0.5 * (
            float(np.vdot(residual, solved)) / fantasies
            + log_determinant(factor)
            + len(ends) * LOG_TWO_PI
        )
        d_covariance = 0.5 * (solved @ solved.T / fantasies - inverse)
        by_curve = self._pull_curves(moments, reductions, solved, inverse.diagonal())
        gradient = np.concatenate([pull_prior(solved.sum(1) / fantasies, d_covariance), by_curve])
        total = value + sum(reduction.own for reduction in reductions)
        return total + self.vector.log_density(values), gradient + self.vector.gradient(values)

    def _pull_curves(
        self, moments: ResidualMoments, reductions: list[Reduction], solved: Array, precision: Array
    ) -> Array:
        """Gradients of the residual's parameters and the noise from every group's.

        With a = G^-1 (y - g - h) at the posterior mean h = end - solved / s, and c = (s - P_ii) /
        s^2 the posterior variance of h: d/dg = a, d/dG = (a a^T - G^-1 + c u u^T) / 2.
        """
        d_mean, d_observed = np.zeros_like(moments.mean), np.zeros_like(moments.observed)
        for group, reduction in zip(self.observed.groups, reductions, strict=True):
            s, u = reduction.precision, reduction.weights
            alpha = reduction.rest + u[:, None, None] * (solved[group.curves] / s)  # (m, c, F)
            fantasies = alpha.shape[2]
            variance = float(((s - precision[group.curves]) / s**2).sum())
            flat = alpha.reshape(len(u), -1)
            inverse = inverse_lower(reduction.factor)
            inverse += np.tril(inverse, -1).T
            block = (
                flat @ flat.T / fantasies - len(group.curves) * inverse + variance * np.outer(u, u)
            )
            d_observed[np.ix_(group.steps, group.steps)] += 0.5 * block
            d_mean[group.steps] += flat.sum(1) / fantasies
        gradient, d_noise = moments.pull(d_mean, d_observed)
        return np.append(gradient, d_noise)


@dataclass(frozen=True, eq=False)
class FittedAdditiveCurves(FittedSurrogate):
    """The GP over ends, and what every observed curve adds to it."""

    model: AdditiveCurves
    values: Array
    observed: Observed
    moments: ResidualMoments
    reductions: list[Reduction]
    ends: FittedGP
    recorded: Mapping[str, Json]

    @property
    def data(self) -> Data:
        return self.observed.data

    @property
    def state(self) -> Mapping[str, Json]:
        return self.recorded

    @property
    def length_scales(self) -> Array:
        return np.append(self.ends.length_scales, np.nan)

    @property
    def noise_variance(self) -> float:
        return float(self.values[-1])

    @cached_property
    def _group_of(self) -> Mapping[int, tuple[int, int]]:
        """For each curve its group and its place there."""
        return {
            int(curve): (number, place)
            for number, group in enumerate(self.observed.groups)
            for place, curve in enumerate(group.curves)
        }

    def _rows(self, x: Array) -> "OwnCurves":
        """What own curves add at rows x (m, d + 1)."""
        step = nearest_level(np.array(self.model.steps), x)
        mean = np.repeat(self.moments.mean[step][:, None], self.ends.whitened.shape[1], axis=1)
        latent = self.moments.latent
        shift, variance = np.zeros(len(x)), latent[step, step]
        ids: dict[bytes, int] = dict(self.observed.index)
        curve = np.array(
            [ids.setdefault(row.tobytes(), len(ids)) for row in np.ascontiguousarray(x[:, :-1])]
        )
        roots: dict[int, Array] = {}
        for k in np.flatnonzero(curve < len(self.observed.configs)):
            number, place = self._group_of[int(curve[k])]
            group, reduction = self.observed.groups[number], self.reductions[number]
            q = self.moments.cross[step[k], group.steps]
            mean[k] += q @ reduction.rest[:, place]
            shift[k] = reduction.weights @ q / reduction.precision
            roots[int(k)] = solve_lower(reduction.factor, q[:, None])[:, 0]
            variance[k] += reduction.precision * shift[k] ** 2 - roots[int(k)] @ roots[int(k)]
        return OwnCurves(mean, variance, curve, step, shift, roots)

    def _cross(self, own: "OwnCurves", cross: Array) -> Array:
        """Covariances with the ends (m, n), where rows of observed curves have more with their
        own."""
        seen = np.flatnonzero(own.curve < len(self.observed.configs))
        cross[seen, own.curve[seen]] += own.shift[seen]
        return cross

    def _own_covariance(self, own: "OwnCurves") -> Array:
        """The covariance (m, m) of the rows' own curves given everything: zero between
        configurations."""
        covariance = np.where(
            own.curve[:, None] == own.curve, self.moments.latent[np.ix_(own.step, own.step)], 0.0
        )
        for curve in np.unique(own.curve[list(own.roots)]) if own.roots else ():
            rows = np.flatnonzero(own.curve == curve)
            roots = np.stack([own.roots[int(k)] for k in rows])
            precision = self.reductions[self._group_of[int(curve)][0]].precision
            explained = roots @ roots.T - precision * np.outer(own.shift[rows], own.shift[rows])
            covariance[np.ix_(rows, rows)] -= explained
        return covariance

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        prior, configs = self.ends.prior, x[:, :-1]
        own = self._rows(x)
        cross = self._cross(own, prior.covariance(configs, self.observed.configs))
        mean = prior.mean(configs)[:, None] + own.mean + cross @ self.ends.alpha
        reduced = multiply_lower(self.ends.inverse_factor, cross.T)
        variance = prior.variance(configs) + own.variance - np.einsum("ij,ij->j", reduced, reduced)
        covariance = None
        if joint:
            covariance = (
                prior.covariance(configs, configs) + self._own_covariance(own) - reduced.T @ reduced
            )
        return Posterior(mean, np.maximum(variance, 0.0), covariance)

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        """The chain rule to the configuration; a step along the budget jumps from step to step and
        has no slope."""
        own = self._rows(x)
        prior_mean, prior_variance, plain, pull_prior = self.ends.prior.cross_and_pullback(
            x[:, :-1], self.observed.configs
        )
        cross = self._cross(own, plain)
        mean = prior_mean[:, None] + own.mean + cross @ self.ends.alpha
        reduced = multiply_lower(self.ends.inverse_factor, cross.T)
        variance = prior_variance + own.variance - np.einsum("ij,ij->j", reduced, reduced)

        def pull(d_mean: Array, d_variance: Array) -> Array:
            solved = multiply_lower(self.ends.inverse_factor, reduced, transposed=True).T
            d_cross = d_mean @ self.ends.alpha.T - 2.0 * d_variance[:, None] * solved
            return np.column_stack(
                [pull_prior(d_mean.sum(1), d_variance, d_cross), np.zeros(len(x))]
            )

        return Posterior(mean, np.maximum(variance, 0.0)), pull

    def condition(self, data: Data) -> "FittedAdditiveCurves":
        return self.model.restore(joined(self.observed.data, data), self.recorded)

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        posterior = self.posterior(x, joint=True)
        assert posterior.covariance is not None
        if posterior.mean.shape[1] != 1:
            raise ValueError(
                f"joint draws need one set of targets, and this model has {posterior.mean.shape[1]}"
                " fantasies"
            )
        root = cholesky(
            posterior.covariance, scale=float(self.ends.prior.variance(x[:, :-1]).mean())
        )
        return posterior.mean[:, 0] + rng.standard_normal((count, len(x))) @ root.T

    @property
    def log_marginal_likelihood(self) -> float:
        """log p(y), averaged over fantasies."""
        return self.ends.log_marginal_likelihood + sum(
            reduction.own for reduction in self.reductions
        )


@dataclass(frozen=True, eq=False)
class OwnCurves:
    """Rows of a question: the mean (m, F) and variance (m,) that own curves add, which curve and
    step each row is of, the shift t (m,) of its covariance with its own end, and L^-1 q for rows of
    observed curves."""

    mean: Array
    variance: Array
    curve: Indices
    step: Indices
    shift: Array
    roots: Mapping[int, Array]
