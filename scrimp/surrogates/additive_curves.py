"""Learning curves as a function of the configuration plus a process of their own, at the cost of a
GP over configurations only.

    y_i(r) = h(x_i) + g(r) + e_i(r) + noise,    h ~ GP(mu, k),    e_i independent over configurations

Given h(x_i), the m observations of curve i are y_i ~ N(1 h_i + g, G_i). Its likelihood as a
function of h_i is that of a single observation of h_i, the curve's *end*, with its own noise
variance:

    u = G^-1 1,    s = 1^T u,    end = u^T (y - g) / s,    noise variance 1 / s

so log p(y) = log N(end; mu, K + diag(1/s)) + sum_i of the likelihood of curve i given its end. Curves
with the same observed steps share one factor: O(N m + n^3) for n curves of N observations, instead of
O(N^3). The posterior at (x, r) is that of the GP over ends, with the cross-covariance k(x, X) + t
e_i, t = u^T q / s, where x is an observed configuration i and q = Cov(e_i(r), y_i); new
configurations have curves of their own, independent of all others.

    prior = MeanAndKernel(Scaled(Matern52(columns)))
    model = AdditiveCurves(prior, DecayResidual(), steps=tuple(k / 50 for k in range(1, 51)))
    model.fit(Data(np.column_stack([x, share]), y), rng)

Rows of one configuration are recognised by equal columns; shares by the nearest step. Swersky,
Snoek, Adams, Freeze-Thaw Bayesian Optimization, 2014, whose exponential decay is `DecayResidual`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from scrimp.gp.cholesky import (
    cholesky,
    inverse_lower,
    log_determinant,
    solve,
    solve_lower,
)
from scrimp.gp.hyperparameters import ParameterVector
from scrimp.gp.marginal_likelihood import (
    LogPosterior,
    SearchSettings,
    gaussian_log_density,
    spread_rows,
)
from scrimp.gp.process import Prior
from scrimp.gp.residual import Residual, ResidualMoments
from scrimp.json_values import JsonObject
from scrimp.surrogates.budget_levels import nearest_level, with_share
from scrimp.surrogates.exact_gp import (
    NOISE,
    FittedGP,
    MaximumAPosteriori,
    check_finite,
    fitted_gp,
    joined,
    joint_draws,
    record_of,
)
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    Posterior,
    PosteriorPullback,
    RecordedSurrogate,
    as_columns,
)

Indices = NDArray[np.intp]

LOG_TWO_PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, eq=False)
class Group:
    """Curves observed at the same steps with the same known noise: rows of the data (m, c) and
    their curves (c,)."""

    steps: Indices
    rows: Indices
    curves: Indices
    noise: Array | None  # (m,)


@dataclass(frozen=True, eq=False)
class Reduction:
    """A group reduced to its ends: the factor of G, u (m,), s, ends (c, F), and G^-1 (y - g - end) as
    (m, c, F). ``own``: the log likelihood of the curves given their ends, averaged over fantasies."""

    factor: Array
    weights: Array
    precision: float
    ends: Array
    rest: Array
    own: float


@dataclass(frozen=True, eq=False)
class Observed:
    """Observations sorted into curves: configurations (n, d) in order of appearance, and groups of
    curves with the same steps."""

    data: Data
    configs: Array
    index: Mapping[bytes, int]
    groups: tuple[Group, ...]

    @staticmethod
    def of(data: Data, steps: Array) -> "Observed":
        """Sort rows (x, share) by configuration and step."""
        index: dict[bytes, int] = {}
        configs = np.ascontiguousarray(data.x[:, :-1])
        curve = np.array([index.setdefault(row.tobytes(), len(index)) for row in configs])
        step = nearest_level(steps, data.x)
        order = np.lexsort((step, curve))
        bounds = np.flatnonzero(np.diff(curve[order], prepend=-1, append=len(index)))
        alike: dict[bytes, list[Indices]] = {}
        for first, last in pairwise(bounds):
            rows = order[first:last]
            noise = b"" if data.noise is None else data.noise[rows].tobytes()
            alike.setdefault(step[rows].tobytes() + noise, []).append(rows)
        groups = []
        for members in alike.values():
            rows = np.stack(members, axis=1)
            known = None if data.noise is None else data.noise[rows[:, 0]]
            groups.append(Group(step[rows[:, 0]], rows, curve[rows[0]], known))
        firsts = order[bounds[:-1]]
        return Observed(data, data.x[firsts, :-1], index, tuple(groups))

    def reduced(self, moments: ResidualMoments) -> list[Reduction]:
        """Reduce the curves of every group to ends."""
        targets = as_columns(self.data.y)
        reductions = []
        for group in self.groups:
            covariance = moments.observed[np.ix_(group.steps, group.steps)]
            if group.noise is not None:
                covariance = covariance + np.diag(group.noise)
            factor = cholesky(covariance)
            weights = solve(factor, np.ones((len(group.steps), 1)))[:, 0]
            precision = float(weights.sum())
            curves = targets[group.rows] - moments.mean[group.steps][:, None, None]
            ends = np.einsum("m,mcf->cf", weights, curves) / precision
            rest = solve(factor, (curves - ends).reshape(len(weights), -1)).reshape(curves.shape)
            size, count, fantasies = curves.shape
            squares = float((rest * (curves - ends)).sum()) / fantasies
            constant = log_determinant(factor) + math.log(precision) + (size - 1) * LOG_TWO_PI
            own = -0.5 * (squares + count * constant)
            reductions.append(Reduction(factor, weights, precision, ends, rest, own))
        return reductions

    def ends(self, reductions: list[Reduction]) -> Data:
        """Return one observation of h per configuration, with its noise variance."""
        ends = np.empty((len(self.configs), reductions[0].ends.shape[1]))
        noise = np.empty(len(self.configs))
        for group, reduction in zip(self.groups, reductions, strict=True):
            ends[group.curves] = reduction.ends
            noise[group.curves] = 1.0 / reduction.precision
        return Data(self.configs, ends, noise)


@dataclass(frozen=True, eq=False)
class AdditiveCurves(MaximumAPosteriori["FittedAdditiveCurves"]):
    """``prior`` of h over the configuration's columns, ``residual`` of the curves over ``steps``
    (shares of the budget).

    ``unit``: the value of a share of 1 in the residual; 1 for shares, the number of steps for whole
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

    def log_posterior(self, data: Data) -> "CurvesPosterior":
        check_finite(data)
        return CurvesPosterior(self, Observed.of(data, np.array(self.steps)))

    def parts(self, values: Array) -> tuple[Prior, ResidualMoments]:
        """Return the prior of h and the moments of the curves with these values (p,)."""
        cut = len(self.prior.values)
        residual = self.residual.with_values(values[cut:-1])
        moments = residual.moments(np.array(self.steps) * self.unit, float(values[-1]))
        return self.prior.with_values(values[:cut]), moments

    def given(self, data: Data, values: Array, explored: int) -> "FittedAdditiveCurves":
        check_finite(data)
        observed = Observed.of(data, np.array(self.steps))
        prior, moments = self.parts(values)
        reductions = observed.reduced(moments)
        ends = observed.ends(reductions)
        gp, state = fitted_gp(prior, 0.0, ends, {}), record_of(self.vector, values, explored)
        return FittedAdditiveCurves(self, values, data, observed, moments, reductions, gp, state)


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
        count = len(self.observed.configs)
        kept = max(2, round(count * size / self.size))
        chosen = self.observed.configs[spread_rows(count, kept)]
        keys = {row.tobytes() for row in chosen}
        data = self.observed.data
        configs = np.ascontiguousarray(data.x[:, :-1])
        part = data.select(np.array([row.tobytes() in keys for row in configs]))
        return CurvesPosterior(self.model, Observed.of(part, np.array(self.model.steps)))

    def likelihood_and_gradient(self, values: Array) -> tuple[float, Array]:
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
        solved = solve(factor, residual)
        fantasies = solved.shape[1]
        value = gaussian_log_density(factor, residual, solved)
        d_covariance = 0.5 * (solved @ solved.T / fantasies - inverse)
        by_curve = self._pull_curves(moments, reductions, solved, inverse.diagonal())
        gradient = np.concatenate([pull_prior(solved.sum(1) / fantasies, d_covariance), by_curve])
        return value + sum(each.own for each in reductions), gradient

    def _pull_curves(
        self, moments: ResidualMoments, reductions: list[Reduction], solved: Array, precision: Array
    ) -> Array:
        """Return gradients of the residual's parameters and of the noise, summed over groups.

        With a = G^-1 (y - g - h) at the posterior mean h = end - solved / s, and c = (s - P_ii) /
        s^2 the posterior variance of h: d/dg = a, d/dG = (a a^T - G^-1 + c u u^T) / 2.
        """
        d_mean, d_observed = np.zeros_like(moments.mean), np.zeros_like(moments.observed)
        for group, reduction in zip(self.observed.groups, reductions, strict=True):
            s, u = reduction.precision, reduction.weights
            alpha = reduction.rest + u[:, None, None] * (solved[group.curves] / s)
            fantasies = alpha.shape[2]
            variance = float(((s - precision[group.curves]) / s**2).sum())
            flat = alpha.reshape(len(u), -1)
            inverse = inverse_lower(reduction.factor)
            inverse += np.tril(inverse, -1).T
            block = flat @ flat.T / fantasies - len(group.curves) * inverse
            block += variance * np.outer(u, u)
            d_observed[np.ix_(group.steps, group.steps)] += 0.5 * block
            d_mean[group.steps] += flat.sum(1) / fantasies
        gradient, d_noise = moments.pull(d_mean, d_observed)
        return np.append(gradient, d_noise)


@dataclass(frozen=True, eq=False)
class FittedAdditiveCurves(RecordedSurrogate):
    """The GP over ends, and the reduced curves."""

    model: AdditiveCurves
    values: Array
    observed: Data
    curves: Observed
    moments: ResidualMoments
    reductions: list[Reduction]
    ends: FittedGP
    recorded: JsonObject

    @property
    def length_scales(self) -> Array:
        return np.append(self.ends.length_scales, np.nan)

    @property
    def noise_variance(self) -> float:
        return float(self.values[-1])

    @cached_property
    def _group_of(self) -> Mapping[int, tuple[int, int]]:
        """The group of each curve, and its place there."""
        return {
            int(curve): (number, place)
            for number, group in enumerate(self.curves.groups)
            for place, curve in enumerate(group.curves)
        }

    def _rows(self, x: Array) -> "OwnCurves":
        """Return the moments of the rows' own curves at x (m, d + 1)."""
        step = nearest_level(np.array(self.model.steps), x)
        mean = np.repeat(self.moments.mean[step][:, None], self.ends.whitened.shape[1], axis=1)
        latent = self.moments.latent
        shift, variance = np.zeros(len(x)), latent[step, step]
        ids: dict[bytes, int] = dict(self.curves.index)
        configs = np.ascontiguousarray(x[:, :-1])
        places = [ids.setdefault(row.tobytes(), len(ids)) for row in configs]
        # Places also where there is none: a search may ask about no rows at all.
        curve = np.array(places, dtype=np.intp)
        roots: dict[int, Array] = {}
        for k in np.flatnonzero(curve < len(self.curves.configs)):
            number, place = self._group_of[int(curve[k])]
            group, reduction = self.curves.groups[number], self.reductions[number]
            q = self.moments.cross[step[k], group.steps]
            mean[k] += q @ reduction.rest[:, place]
            shift[k] = reduction.weights @ q / reduction.precision
            roots[int(k)] = solve_lower(reduction.factor, q[:, None])[:, 0]
            variance[k] += reduction.precision * shift[k] ** 2 - roots[int(k)] @ roots[int(k)]
        return OwnCurves(mean, variance, curve, step, shift, roots)

    def _cross(self, own: "OwnCurves", cross: Array) -> Array:
        """Return covariances with the ends (m, n); observed curves have more with their own end."""
        seen = np.flatnonzero(own.curve < len(self.curves.configs))
        cross[seen, own.curve[seen]] += own.shift[seen]
        return cross

    def _own_covariance(self, own: "OwnCurves") -> Array:
        """Return the posterior covariance (m, m) of the rows' own curves: zero between curves."""
        latent = self.moments.latent[np.ix_(own.step, own.step)]
        covariance = np.where(own.curve[:, None] == own.curve, latent, 0.0)
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
        covariance = None
        if joint:
            covariance = prior.covariance(configs, configs) + self._own_covariance(own)
        mean, variance = prior.mean(configs)[:, None] + own.mean, prior.variance(configs)
        before = Posterior(mean, variance + own.variance, covariance)
        cross = prior.covariance(configs, self.curves.configs)
        return self.ends.updated(before, self._cross(own, cross))[0]

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        """Return marginals and the chain rule to the configuration; steps of the budget are discrete
        and have no slope."""
        own = self._rows(x)
        mean, variance, cross, pull_prior = self.ends.prior.cross_and_pullback(
            x[:, :-1], self.curves.configs
        )
        before = Posterior(mean[:, None] + own.mean, variance + own.variance)
        cross = self._cross(own, cross)
        posterior, pull = self.ends.updated_and_pullback(before, cross, pull_prior)
        return posterior, lambda d_mean, d_variance: with_share(pull(d_mean, d_variance), 0.0)

    def condition(self, data: Data) -> "FittedAdditiveCurves":
        return self.model.restore(joined(self.observed, data), self.recorded)

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        scale = float(self.ends.prior.variance(x[:, :-1]).mean())
        return joint_draws(self.posterior(x, joint=True), scale, count, rng)

    @property
    def log_marginal_likelihood(self) -> float:
        """log p(y), averaged over fantasies."""
        return self.ends.log_marginal_likelihood + sum(each.own for each in self.reductions)


@dataclass(frozen=True, eq=False)
class OwnCurves:
    """Moments of the own curves of m rows: the mean (m, F) and variance (m,) that they add, the curve
    and step of each row, the shift t (m,) of its covariance with its own end, and L^-1 q for rows of
    observed curves."""

    mean: Array
    variance: Array
    curve: Indices
    step: Indices
    shift: Array
    roots: Mapping[int, Array]
