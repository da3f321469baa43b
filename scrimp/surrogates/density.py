"""Kernel densities on the encoded unit cube, and their ratio: the model behind TPE and BOHB.

Observations are split by rank into good ones and the rest. Each part gets a density, l(x) and g(x),
and the score of a candidate is l(x) / g(x), which orders candidates like expected improvement. A
density is a mixture of products: one kernel per observation and column, and one uniform component
that keeps every configuration possible:

    p(x) = w_0 + sum_i w_i prod_k K_k(x_k, c_ik)

All densities are relative to the uniform distribution over the domain, so 1 means "nothing known"
for columns of any kind:

    continuous    K = Gaussian of bandwidth h around c, truncated to [0, 1]
    discrete      K = the same Gaussian's mass in the cell of x over the cell's width; cells meet
                  half way between values
    categorical   K = e + (1 - e) k [x = c], with k choices: Aitchison and Aitken's kernel
    NaN           the column does not apply there (an inactive parameter): K = 1

Bergstra, Bardenet, Bengio and Kegl, "Algorithms for hyper-parameter optimization" (2011), gave the
ratio; Falkner, Klein and Hutter, "BOHB: robust and efficient hyperparameter optimization at scale"
(2018), the product kernels; Watanabe, "Tree-structured Parzen estimator: understanding its
algorithm components and their roles" (2023), compares their settings.

    ratio = DensityRatio(kernel_density(columns, good), kernel_density(columns, bad))
    candidates = ratio.good.sample(64, rng)
    best = candidates[np.argmax(ratio(candidates))]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from scipy.special import ndtr, ndtri

from scrimp.gp.columns import Column
from scrimp.surrogates.surrogate import Array

_MIN_DENSITY = 1e-300
"""Lower bound of densities, which may vanish without a uniform component."""

_MAX_STANDARD_DEVIATIONS = 8.3
"""Standard deviations beyond which the mass of a Gaussian is zero beside 1 in double precision."""


@dataclass(frozen=True)
class Bandwidth:
    """Kernel widths h_k = scale * n_k^(-1/(4 + d)) in d columns with n_k observations in column k; at
    least ``floor``.

    The scale is a share of the range and does not follow the spread of the observations: good ones
    soon lie close together, and a search whose bandwidth shrinks with them never leaves that place
    again. ``reference``: follow the spread, as in BOHB, by the normal reference rule, h_k = 1.06
    std_k n_k^(-1/(4 + d)). ``neighbours``: every observation has its own width, the distance to its
    farther neighbour, as in Bergstra et al.
    """

    scale: float = 0.1
    floor: float = 0.01
    reference: bool = False
    neighbours: bool = False

    def __call__(self, x: Array) -> Array:
        """Return bandwidths (d,) for observations x (n, d), or (n, d) if each has its own."""
        if self.neighbours and x.shape[1]:
            own = np.column_stack([_farther_neighbour(column) for column in x.T])
            return np.clip(own, self.floor, 1.0).reshape(x.shape)
        known = ~np.isnan(x)
        counts = np.maximum(np.count_nonzero(known, axis=0), 1)
        scale: float | Array = self.scale
        if self.reference:
            centred = np.where(known, x, 0.0) - np.where(known, x, 0.0).sum(axis=0) / counts
            scale = 1.06 * np.sqrt((centred**2 * known).sum(axis=0) / counts)
        widths: Array = np.maximum(scale * counts ** (-1.0 / (4 + x.shape[1])), self.floor)
        return widths


def _farther_neighbour(values: Array) -> Array:
    """Return the distance of each value in [0, 1] (n,) to its farther neighbour; the ends of the range
    are neighbours too. 1 for missing values.

    >>> _farther_neighbour(np.array([0.5, 0.125])).tolist()
    [0.5, 0.375]
    """
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    gaps = np.diff(values[order], prepend=0.0, append=1.0)
    farther = np.ones(len(values))
    farther[order] = np.maximum(gaps[:-1], gaps[1:])
    return farther


@dataclass(frozen=True)
class KernelDensity:
    """A mixture density on the cube, relative to the uniform distribution. ``weights`` (n,) sum to less
    than 1; the rest is uniform. ``separate``: a product of one mixture per column instead.

    ``centres`` are NaN where a column does not apply. ``widths`` are the bandwidth h, or the share e
    of a categorical column.

    >>> flat = KernelDensity((Column(),), np.empty((0, 1)), np.empty(0), np.ones(1))
    >>> flat(np.array([[0.3]]))
    array([1.])
    """

    columns: tuple[Column, ...]
    centres: Array  # (n, d)
    weights: Array  # (n,)
    widths: Array  # (d,) or (n, d)
    separate: bool = False

    def __call__(self, x: Array) -> Array:
        """Return the density (m,) at x (m, d)."""
        with np.errstate(divide="ignore"):
            logs = [self._log_kernels(x, group) for group in self._groups()]
        if self.separate:
            each: Array = np.prod([np.ones(len(x)), *map(self._mixed, logs)], axis=0)
            return each
        return self._mixed(reduce(np.add, logs or [np.zeros((len(x), len(self.centres)))]))

    def _groups(self) -> list[list[int]]:
        """The columns whose kernels are computed together: all continuous ones, if one density is
        over all columns, and every other one alone."""
        alone = [[k] for k, c in enumerate(self.columns) if self.separate or c.kind != "continuous"]
        together = [k for k in range(len(self.columns)) if [k] not in alone]
        return [*alone, together] if together else alone

    def _log_kernels(self, x: Array, group: list[int]) -> Array:
        centres, widths = self.centres, self.widths
        if len(group) < len(self.columns):
            x, centres, widths = x[:, group], centres[:, group], widths[..., group]
        column = self.columns[group[0]]
        if column.kind == "continuous":
            return _log_gaussians(x, centres, widths)
        return _log_kernel(column, x[:, 0], centres[:, 0], widths[..., 0])

    def _mixed(self, log_kernels: Array) -> Array:
        mixed: Array = 1.0 - self.weights.sum() + np.exp(log_kernels) @ self.weights
        return mixed

    def sample(self, count: int, rng: np.random.Generator, widening: float = 1.0) -> Array:
        """Draw ``count`` rows (count, d), with a value in every column, whether it applies or not.

        ``widening``: factor of the kernel widths; BOHB uses 3.
        """
        uniform = max(0.0, 1.0 - float(self.weights.sum()))
        law = np.append(self.weights, uniform)
        law /= law.sum()
        component = rng.choice(len(law), size=count, p=law)
        components = np.empty((count, len(self.columns)), dtype=np.intp)
        chances = np.empty((2, *components.shape))
        for k, column in enumerate(self.columns):
            if self.separate and k:
                component = rng.choice(len(law), size=count, p=law)
            components[:, k] = component
            for each in chances if column.kind == "categorical" else chances[:1]:
                each[:, k] = rng.random(count)
        places = components, np.arange(len(self.columns))
        # The last component is the uniform one.
        centres = np.vstack([self.centres, np.full(len(self.columns), np.nan)])[places]
        each_width = np.broadcast_to(self.widths, self.centres.shape)
        widths = np.vstack([each_width, np.ones(len(self.columns))])[places]
        draws = _truncated_gaussians(centres, widening * widths, chances[0])
        for k, column in enumerate(self.columns):
            if column.kind == "categorical":
                draws[:, k] = _choices(column, centres[:, k], widths[:, k], chances[:, :, k])
            elif column.values is not None:
                values = np.asarray(column.values)
                edges = (values[:-1] + values[1:]) / 2
                draws[:, k] = values[np.searchsorted(edges, draws[:, k], side="right")]
        return draws


def kernel_density(
    columns: Sequence[Column],
    x: Array,
    weights: Array | None = None,
    bandwidth: Bandwidth | None = None,
    uniform: float = 1.0,
    separate: bool = False,
) -> KernelDensity:
    """Return the density of observations x (n, d) with relative ``weights`` (n,).

    The uniform component weighs ``uniform`` times the average observation; without observations it
    is the only one. A categorical column with k choices gets e = k / (n + k): uniform without
    observations, sharp with many.
    """
    count = len(x)
    relative = np.ones(count) if weights is None else weights
    total = relative.sum() + (uniform * relative.mean() if count else 1.0)
    widths = (bandwidth or Bandwidth())(x)
    for k, column in enumerate(columns):
        if column.kind == "categorical" and column.values is not None:
            choices = len(column.values)
            widths[..., k] = choices / (choices + np.count_nonzero(~np.isnan(x[:, k])))
    return KernelDensity(tuple(columns), x, relative / total, widths, separate)


@dataclass(frozen=True)
class DensityRatio:
    """The ratio of the densities of ``good`` and ``bad`` configurations."""

    good: KernelDensity
    bad: KernelDensity

    def __call__(self, x: Array) -> Array:
        """Return log l(x) - log g(x), (m,) at x (m, d); larger is better."""
        good, bad = np.maximum(self.good(x), _MIN_DENSITY), np.maximum(self.bad(x), _MIN_DENSITY)
        return np.asarray(np.log(good) - np.log(bad))


def _log_within(centres: Array, width: Array) -> Array:
    """Return the logarithm of the mass in [0, 1] of a Gaussian around each centre."""
    ends = np.stack([centres, 1.0 - centres]) / width
    near = ends < _MAX_STANDARD_DEVIATIONS
    outside = np.zeros(ends.shape)
    outside[near] = ndtr(-ends[near])
    inside: Array = np.log1p(-outside.sum(axis=0))
    return inside


def _log_gaussians(x: Array, centres: Array, widths: Array) -> Array:
    """Return the sum over continuous columns of log K, (m, n) for x (m, d) and centres (n, d).

    The square is multiplied out, which leaves two products of matrices; a missing value takes its
    terms out of them.
    """
    missing, lost = np.isnan(x), np.isnan(centres)
    scaled = (centres - 0.5) / widths**2
    constant = (0.25 - 0.5 * centres) * scaled - np.log(widths * np.sqrt(2.0 * np.pi))
    constant -= _log_within(centres, widths)
    square = np.broadcast_to(-0.5 / widths**2, centres.shape)
    weights = np.concatenate([scaled, square, constant], axis=1)
    if lost.any():
        weights[np.tile(lost, 3)] = 0.0
    place = np.where(missing, 0.0, x - 0.5)
    features = np.concatenate([place, place**2, ~missing], axis=1)
    log_kernels: Array = features @ weights.T
    return log_kernels


def _log_kernel(column: Column, x: Array, centres: Array, width: Array) -> Array:
    """log K of one listed column, (m, n) for x (m,) and centres (n,)."""
    assert column.values is not None
    known = ~(np.isnan(x)[:, None] | np.isnan(centres)[None, :])
    if column.kind == "categorical":
        same = np.abs(x[:, None] - centres[None, :]) * max(len(column.values) - 1, 1) < 0.5
        kernel = np.where(same, width + (1.0 - width) * len(column.values), width)
        return np.where(known, np.log(kernel), 0.0)
    low, high = _cells(column, x)
    mass = ndtr((high[:, None] - centres) / width) - ndtr((low[:, None] - centres) / width)
    log_kernel = np.log(np.maximum(mass, 0.0) / (high - low)[:, None])
    return np.where(known, log_kernel - _log_within(centres, width), 0.0)


def _cells(column: Column, x: Array) -> tuple[Array, Array]:
    """Return the ends (m,), (m,) of the cells of a discrete column that contain x (m,)."""
    values = np.asarray(column.values)
    edges = np.concatenate([[0.0], (values[:-1] + values[1:]) / 2, [1.0]])
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(values) - 1)
    return edges[place], edges[place + 1]


def _truncated_gaussians(centres: Array, widths: Array, chances: Array) -> Array:
    """Return the quantiles at ``chances`` of the Gaussians truncated to [0, 1]; those of the uniform
    distribution where the centre is NaN."""
    low, high = ndtr(-centres / widths), ndtr((1.0 - centres) / widths)
    gaussian = np.clip(centres + widths * ndtri(low + chances * (high - low)), 0.0, 1.0)
    return np.where(np.isnan(centres), chances, gaussian)


def _choices(column: Column, centres: Array, share: Array, chances: Array) -> Array:
    """Return the centre (n,) of each draw or, with probability ``share`` and where it is NaN, one of
    all choices, by two ``chances`` (2, n)."""
    values = np.asarray(column.values)
    any_choice = values[np.minimum((chances[0] * len(values)).astype(int), len(values) - 1)]
    return np.where(np.isnan(centres) | (chances[1] < share), any_choice, centres)
