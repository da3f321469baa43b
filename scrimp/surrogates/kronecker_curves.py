"""Learning curves of many configurations as one exact Gaussian process with a product kernel, at a cost that thousands can bear.

    k((x, u), (x', u')) = kx(x, x') [a1 + a2 k1(u, u')] + [x = x'] a3 k2(u, u'),        mean m, noise s^2

u is the logarithm of the step, from 0 (the first) to 1 (the last). kx is Matern 5/2 with one length-scale per column; k1, what
similar configurations share, is smooth (squared exponential); k2, what a configuration has of its own, is rough (Matern 5/2).
The dense process is `curve_kernel` under `ExactGP`; hyperparameters are fitted with it, on a part of the data: many
configurations, each at a few steps.

The posterior on *all* data never forms the covariance of all observations. The shared time kernel has few directions: a1 + a2 k1
= U U^T with U (m, q). Given a configuration's z_i (q,), its curve is y_i ~ N(m + U_i z_i, R_i) with R_i = a3 k2 + s^2 I. What
curves say about z is solved for in `kronecker_solve`; configurations observed at the same steps share R_i. Joint draws of whole
curves are draws of the prior, corrected by the posterior mean of what they leave unexplained (Matheron's rule).

    model = KroneckerCurves(columns, steps=tuple(np.arange(1, 51) / 50))
    fitted = model.fit(Data(np.column_stack([x, share]), y), rng)
    fitted.sample(rows, 64, rng)

Lin, Ament, Balandat, Bakshy, Scaling Gaussian Processes for Learning Curve Prediction via Latent Kronecker Structure, 2024. Joint
draws: Wilson et al., Efficiently Sampling Functions from Gaussian Process Posteriors, 2020.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrimp.gp.cholesky import cholesky, log_determinant, solve, solve_lower
from scrimp.gp.columns import Column
from scrimp.gp.indicator import Constant, SameRow
from scrimp.gp.kernel import Kernel, OnColumns, Scaled
from scrimp.gp.marginal_likelihood import SearchSettings
from scrimp.gp.priors import LogNormal, Parameter
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.stationary import RBF, Matern52
from scrimp.surrogates.additive_curves import Group, Observed
from scrimp.surrogates.exact_gp import ExactGP, as_columns, check_finite, joined
from scrimp.surrogates.independent_gps import nearest_level
from scrimp.surrogates.kronecker_solve import DIRECT, BlockSystem
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Posterior, PosteriorPullback, Surrogate

__all__ = ["FittedKroneckerCurves", "KroneckerCurves", "curve_kernel"]

Indices = NDArray[np.intp]

NOISE = Parameter("noise", LogNormal(-5.0, 1.4), bounds=(1e-5, 1.0))
CHUNK = 64
"""Systems that are solved together."""

SAME_DIRECTION = 1e-11
"""Directions of time with less than this share of the largest one's variance are left out."""


def curve_kernel(columns: Sequence[Column]) -> Kernel:
    """The kernel over (x, u); its parameters are a scale and a length per time kernel and the length-scales of kx."""
    own, time = tuple(range(len(columns))), (len(columns),)
    lasting = Parameter("length_scale", LogNormal(-0.5, 0.7), bounds=(0.05, 8.0))
    # a configuration's own process that is smooth over the whole training extrapolates with far too much confidence
    passing = Parameter("length_scale", LogNormal(-1.0, 0.4), bounds=(0.05, 1.0))
    level = Scaled(Constant(), _amplitude("level", -0.8, 1.2))
    shape = Scaled(RBF((Column(),), length_scale=lasting), _amplitude("shape", 0.2, 1.2))
    rest = Scaled(Matern52((Column(),), length_scale=passing), _amplitude("own", -1.5, 0.5))
    shared = OnColumns(Matern52(columns), own) * OnColumns(level + shape, time)
    return shared + OnColumns(SameRow(), own) * OnColumns(rest, time)


def _amplitude(name: str, mean: float, deviation: float) -> Parameter:
    """A variance by the mean and the standard deviation of its logarithm.

    What a configuration has of its own is kept from vanishing: most curves follow their neighbours, and the few that leave them
    later are not yet seen to when a fit could learn from it.
    """
    return Parameter(name, LogNormal(mean, deviation), bounds=(1e-3, 30.0), initial=math.exp(mean))


@dataclass(frozen=True, eq=False)
class KroneckerCurves(Surrogate):
    """``columns`` of the configuration, ``steps`` as shares of the budget, increasing.

    ``fit_rows``: observations that hyperparameters are fitted to. ``direct``: see `BlockSystem`.
    """

    columns: Sequence[Column]
    steps: tuple[float, ...]
    fit_rows: int = 400
    direct: int = DIRECT
    search: SearchSettings = field(default_factory=lambda: SearchSettings(random_starts=0, tolerance=0.01))

    @cached_property
    def dense(self) -> ExactGP:
        """The same process with dense algebra, over rows (x, u)."""
        return ExactGP(MeanAndKernel(curve_kernel(self.columns)), NOISE, self.search)

    @cached_property
    def times(self) -> Array:
        """u of every step (m,)."""
        steps = np.array(self.steps)
        span = math.log(steps[-1] / steps[0]) if len(steps) > 1 else 1.0
        return np.asarray(np.log(steps / steps[0]) / span)

    def in_log_time(self, data: Data) -> Data:
        """Rows (x, share) as (x, u)."""
        step = nearest_level(np.array(self.steps), data.x)
        return Data(np.column_stack([data.x[:, :-1], self.times[step]]), data.y, data.noise)

    def fit(
        self, data: Data, rng: np.random.Generator, start: Mapping[str, Any] | None = None
    ) -> "FittedKroneckerCurves":
        check_finite(data)
        rows = self._thinned(data, rng)
        part = Data(data.x[rows], data.y[rows], None if data.noise is None else data.noise[rows])
        return self.restore(data, self.dense.fit(self.in_log_time(part), rng, start).state)

    def restore(self, data: Data, state: Mapping[str, Any]) -> "FittedKroneckerCurves":
        check_finite(data)
        empty = Data(np.empty((0, len(self.columns) + 1)), np.empty(0))
        values = self.dense.vector.from_json(state.get("parameters", {}))
        if values is None:
            self.dense.restore(empty, state)  # says what differs
        assert values is not None
        prior = self.dense.prior.with_values(values[:-1])
        assert isinstance(prior, MeanAndKernel)
        return FittedKroneckerCurves(self, prior, float(values[-1]), Observed.of(data, np.array(self.steps)), state)

    def _thinned(self, data: Data, rng: np.random.Generator) -> Indices:
        """Rows to fit hyperparameters to: as many configurations as possible, each at its ends and a few steps between.

        Length-scales need many configurations, and the noise neighbouring steps: at least 4 rows of each, the last two always.
        """
        if len(data) <= self.fit_rows:
            return np.arange(len(data))
        groups = Observed.of(data, np.array(self.steps)).groups
        curves = [rows for group in groups for rows in group.rows.T]
        quota = max(4, self.fit_rows // len(curves))
        chosen: list[Indices] = []
        for place in rng.permutation(len(curves)):
            rows = curves[place]
            ends = np.unique([0, max(len(rows) - 2, 0), len(rows) - 1])
            others = np.setdiff1d(np.arange(len(rows)), ends)
            between = rng.choice(others, min(quota - len(ends), len(others)), replace=False)
            chosen.append(rows[np.concatenate([ends, between]).astype(np.intp)])
            if sum(map(len, chosen)) >= self.fit_rows:
                break
        return np.sort(np.concatenate(chosen))


@dataclass(frozen=True, eq=False)
class FittedKroneckerCurves(FittedSurrogate):
    """Hyperparameters and curves; everything else is derived when it is first asked for."""

    model: KroneckerCurves
    prior: MeanAndKernel
    noise: float
    observed: Observed
    recorded: Mapping[str, Any]

    @property
    def data(self) -> Data:
        return self.observed.data

    @property
    def state(self) -> Mapping[str, Any]:
        return self.recorded

    @property
    def length_scales(self) -> Array:
        return self.prior.length_scales(self.observed.data.x.shape[1])

    @property
    def noise_variance(self) -> float:
        return self.noise

    @cached_property
    def _kernels(self) -> tuple[Kernel, Kernel, Kernel]:
        """kx over configurations, and the shared and the own kernel over time."""
        total: Any = self.prior.kernel
        return total.left.left.inner, total.left.right.inner, total.right.right.inner

    @cached_property
    def _constant(self) -> float:
        return float(self.prior.mean_function.values[0])

    @cached_property
    def _directions(self) -> Array:
        """U (m, q)."""
        times = self.model.times[:, None]
        variances, vectors = np.linalg.eigh(self._kernels[1](times, times.copy()))
        kept = variances > SAME_DIRECTION * variances[-1]
        return np.asarray(vectors[:, kept] * np.sqrt(variances[kept]))

    @cached_property
    def _own(self) -> Array:
        """a3 k2 between all steps (m, m)."""
        times = self.model.times[:, None]
        return self._kernels[2](times, times.copy())

    @cached_property
    def _factors(self) -> list[Array]:
        """The factor of R for each group of configurations."""
        factors = []
        for group in self.observed.groups:
            block = self._own[np.ix_(group.steps, group.steps)]
            block.flat[:: len(block) + 1] += self.noise if group.noise is None else self.noise + group.noise
            factors.append(cholesky(block))
        return factors

    @cached_property
    def _views(self) -> list[tuple[Array, Array]]:
        """For each group its R^-1/2 U as P times B^T: P (m, k) with orthonormal columns, and B (q, q), zero beyond k columns."""
        views, q = [], self._directions.shape[1]
        for group, factor in zip(self.observed.groups, self._factors, strict=True):
            left, scales, right = np.linalg.svd(solve_lower(factor, self._directions[group.steps]), full_matrices=False)
            root = np.zeros((q, q))
            root[:, : len(scales)] = right.T * scales
            views.append((left, root))
        return views

    @cached_property
    def _system(self) -> BlockSystem:
        configs, q = self.observed.configs, self._directions.shape[1]
        roots = np.empty((len(configs), q, q))
        for group, (_, root) in zip(self.observed.groups, self._views, strict=True):
            roots[group.curves] = root
        return BlockSystem(self._kernels[0](configs, configs), roots, self.model.direct)

    @staticmethod
    def _weighted(group: Group, factor: Array, curves: Array) -> Array:
        """R^-1 of curves (m, k, c) of a group."""
        flat = np.asfortranarray(curves.reshape(len(group.steps), -1))
        return solve(factor, flat).reshape(curves.shape)

    def _explain(self, targets: Array) -> tuple[Array, list[Array]]:
        """For residuals (N, c): weights w (n, q, c) of the shared part, and R^-1 (y_i - U_i e_i) of every group (m, k, c)."""
        seen = np.zeros((len(self.observed.configs), self._directions.shape[1], targets.shape[1]))
        for group, factor, (left, _) in zip(self.observed.groups, self._factors, self._views, strict=True):
            curves = targets[group.rows]
            flat = left.T @ solve_lower(factor, np.asfortranarray(curves.reshape(len(curves), -1)))
            seen[group.curves, : left.shape[1]] = flat.reshape(-1, *curves.shape[1:]).transpose(1, 0, 2)
        weights = self._system.weights(seen)
        ends = self._system.product(weights)
        rests = []
        for group, factor in zip(self.observed.groups, self._factors, strict=True):
            shared = np.einsum("mq,kqc->mkc", self._directions[group.steps], ends[group.curves])
            rests.append(self._weighted(group, factor, targets[group.rows] - shared))
        return weights, rests

    @cached_property
    def _solution(self) -> tuple[Array, list[Array]]:
        return self._explain(as_columns(self.observed.data.y) - self._constant)

    @cached_property
    def _place(self) -> Mapping[int, tuple[int, int]]:
        """For each configuration its group and its place there."""
        return {
            int(curve): (number, place)
            for number, group in enumerate(self.observed.groups)
            for place, curve in enumerate(group.curves)
        }

    def _asked(self, x: Array) -> tuple[Array, Indices, Indices]:
        """Of rows (x, share): kx with the observed configurations (t, n), the step and the configuration (-1 for a new one)."""
        configs = np.ascontiguousarray(x[:, :-1])
        curve = np.array([self.observed.index.get(row.tobytes(), -1) for row in configs], dtype=np.intp)
        step = nearest_level(np.array(self.model.steps), x)
        return self._kernels[0](configs, self.observed.configs), step, curve

    def _predicted(self, asked: tuple[Array, Indices, Indices], solution: tuple[Array, list[Array]]) -> Array:
        """The posterior mean less the constant (t, c), for what `_explain` gave."""
        cross, step, curve = asked
        weights, rests = solution
        n, q, count = weights.shape
        shared = (cross @ weights.reshape(n, q * count)).reshape(len(cross), q, count)
        mean = np.einsum("tq,tqc->tc", self._directions[step], shared)
        for t in np.flatnonzero(curve >= 0):
            number, place = self._place[int(curve[t])]
            mean[t] += self._own[step[t], self.observed.groups[number].steps] @ rests[number][:, place]
        return np.asarray(mean)

    def mean(self, x: Array) -> Array:
        return self._constant + self._predicted(self._asked(x), self._solution)

    def _covariances(self, asked: tuple[Array, Indices, Indices]) -> Array:
        """Prior covariances (N, t) of the observations with rows."""
        cross, step, curve = asked
        covariances = np.empty((len(self.observed.data), len(step)))
        shared = self._directions @ self._directions[step].T  # (m, t)
        for group in self.observed.groups:
            covariances[group.rows] = shared[group.steps][:, None] * cross[:, group.curves].T[None]
        for t in np.flatnonzero(curve >= 0):
            number, place = self._place[int(curve[t])]
            group = self.observed.groups[number]
            covariances[group.rows[:, place], t] += self._own[group.steps, step[t]]
        return covariances

    def _prior_variance(self, step: Indices) -> Array:
        return np.asarray((self._directions[step] ** 2).sum(1) + self._own[step, step])

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        """One solution per row for the variance, `CHUNK` rows together; thousands of rows are better asked for by `sample`."""
        mean, variance = self.mean(x), np.empty(len(x))
        width = len(x) if joint else CHUNK
        explained = np.empty((0, 0))
        for first in range(0, len(x), width):
            asked = self._asked(x[first : first + width])
            explained = self._predicted(asked, self._explain(self._covariances(asked)))
            variance[first : first + width] = self._prior_variance(asked[1]) - explained.diagonal()
        if not joint:
            return Posterior(mean, np.maximum(variance, 0.0))
        configs, step = np.ascontiguousarray(x[:, :-1]), nearest_level(np.array(self.model.steps), x)
        shared = self._directions[step] @ self._directions[step].T
        own = SameRow()(configs, configs) * self._own[np.ix_(step, step)]
        covariance = self._kernels[0](configs, configs.copy()) * shared + own - 0.5 * (explained + explained.T)
        return Posterior(mean, np.maximum(variance, 0.0), covariance)

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        """The chain rule to the configuration; a step along the budget jumps from step to step and has no slope."""
        _, pull_cross = self._kernels[0].cross_and_pullback(x[:, :-1], self.observed.configs)
        asked = self._asked(x)
        solution = self._explain(self._covariances(asked))
        at = self._directions[asked[1]]  # (t, q)
        variance = self._prior_variance(asked[1]) - self._predicted(asked, solution).diagonal()

        def pull(d_mean: Array, d_variance: Array) -> Array:
            by_mean = np.einsum("tf,tq,nqf->tn", d_mean, at, self._solution[0], optimize=True)
            by_variance = np.einsum("tq,nqt->tn", at, solution[0], optimize=True)
            d_configs = pull_cross(by_mean - 2.0 * d_variance[:, None] * by_variance)
            return np.column_stack([d_configs, np.zeros(len(x))])

        return Posterior(self.mean(x), np.maximum(variance, 0.0)), pull

    def condition(self, data: Data) -> "FittedKroneckerCurves":
        return self.model.restore(joined(self.observed.data, data), self.recorded)

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        """Joint draws by Matheron's rule, `CHUNK` together."""
        if as_columns(self.observed.data.y).shape[1] != 1:
            raise ValueError("joint draws need one set of targets, and this model has several fantasies")
        ids = dict(self.observed.index)
        asked_configs = np.ascontiguousarray(x[:, :-1])
        curve = np.array([ids.setdefault(row.tobytes(), len(ids)) for row in asked_configs], dtype=np.intp)
        configs = np.frombuffer(b"".join(ids), dtype=float).reshape(len(ids), -1)
        root = cholesky(self._kernels[0](configs, configs.copy()))
        own_root = cholesky(self._own)
        asked = self._asked(x)
        draws = [
            self._draw(asked, curve, (root, own_root), min(CHUNK, count - first), rng)
            for first in range(0, count, CHUNK)
        ]
        return self._constant + np.concatenate(draws)

    def _draw(
        self,
        asked: tuple[Array, Indices, Indices],
        curve: Indices,
        roots: tuple[Array, Array],
        count: int,
        rng: np.random.Generator,
    ) -> Array:
        """``count`` draws (count, t) at rows of the configurations ``curve``, less the constant."""
        root, own_root = roots
        n, q = len(root), self._directions.shape[1]
        z = (root @ rng.standard_normal((n, q * count))).reshape(n, q, count)
        own = (own_root @ rng.standard_normal((len(own_root), n * count))).reshape(-1, n, count)  # (m, n, c)
        noise = self.noise if self.observed.data.noise is None else self.noise + self.observed.data.noise
        residuals = self.observed.data.y.reshape(-1, 1) - self._constant - np.zeros(count)
        for group in self.observed.groups:
            shared = np.einsum("mq,kqc->mkc", self._directions[group.steps], z[group.curves])
            residuals[group.rows] -= shared + own[np.ix_(group.steps, group.curves)]
        residuals -= np.sqrt(np.reshape(noise, (-1, 1))) * rng.standard_normal(residuals.shape)
        before = np.einsum("tq,tqc->tc", self._directions[asked[1]], z[curve]) + own[asked[1], curve]
        return np.asarray((before + self._predicted(asked, self._explain(residuals))).T)

    def log_likelihood(self, rng: np.random.Generator, probes: int = 16) -> tuple[float, float]:
        """log p(y), averaged over fantasies, and its standard error: 0 where the system is factorised."""
        residuals = as_columns(self.observed.data.y) - self._constant
        count, fantasies = residuals.shape
        squares = sum(
            float((residuals[group.rows] * rest).sum())
            for group, rest in zip(self.observed.groups, self._solution[1], strict=True)
        )
        blocks = sum(
            len(group.curves) * log_determinant(factor)
            for group, factor in zip(self.observed.groups, self._factors, strict=True)
        )
        shared, error = self._system.log_determinant(probes, rng)
        return -0.5 * (squares / fantasies + blocks + shared + count * math.log(2.0 * math.pi)), 0.5 * error
