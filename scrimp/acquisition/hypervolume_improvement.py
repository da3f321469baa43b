"""Expected hypervolume improvement: the hypervolume that a candidate is expected to add to a front.

With independent posteriors of m losses, and the region below the reference point that the front
leaves open as disjoint boxes [l, u) (`fronts`):

    EHVI(x) = sum over boxes of  prod over objectives j of  W_j(l_j, u_j)

W is the expected part of the strip [l, u) above a loss Y ~ N(mean, std^2):

    W(l, u) = E[(u - Y)+ - (l - Y)+] = EI(u) - EI(l) = integral from l to u of Phi((y - mean) / std) dy

and EI(u) if l is minus infinity. Far from a front both terms underflow, and in a narrow strip their
difference loses its digits. So everything is in logarithms, with d = log EI(u) - log EI(l):

    log W = log EI(u) + log(1 - exp(-d))              where d > 0.02
    log W = log(u - l) + log sum_k w_k Phi(z_k)       elsewhere, by three Gauss-Legendre nodes, exact to rounding

Two objectives have one box per point of the front and one more: the closed form. With more
objectives the number of boxes grows with the front's size to the power of half the objectives.

*Front*: of the models' beliefs at the evaluated and feasible inputs, so that noise does not count
as progress; in each fantasy the pending inputs belong to it. *Units*: a model may have transformed
its targets; a box counts with its volume in the units of the metrics. *Goals*: improvement beyond
``best`` does not count.

    LogHypervolumeImprovement(("loss", "loss:latency_ms")).bind(models, context)

*Noise.* The best of the observed losses is in part luck, and a front of posterior means ignores its
uncertainty. Noisy EHVI averages over it: the noise-free losses at the uncertain inputs, and at those
under evaluation, are drawn jointly from each posterior, and the models conditioned on each draw
exactly; every draw has its own front and boxes. The draws are normal quantiles of a scrambled Sobol
sequence, through a factor of the joint covariance.

    rows = uncertain_rows(models, evaluated, rng)
    model = drawn_exactly(model, np.concatenate([rows, pending]), count=8, rng=rng)

Emmerich, "Single- and multiobjective evolutionary optimization assisted by Gaussian random field
metamodels", 2005; Yang, Emmerich, Deutz, Bäck, "Efficient computation of expected hypervolume
improvement using box decomposition algorithms", 2019; Daulton, Balandat, Bakshy, "Parallel Bayesian
optimization of multiple noisy objectives with expected hypervolume improvement", 2021; Ament et
al., "Unexpected improvements to expected improvement for Bayesian optimization", 2023.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtri

from scrimp.acquisition.acquisition import (
    Acquisition,
    Context,
    FantasyAverage,
    TermsPullback,
    average_of,
    believed_losses,
    check_variances,
    model_named,
    standard_deviations,
)
from scrimp.acquisition.improvement import log_expected_improvement_and_derivatives
from scrimp.fronts.dominance import non_dominated
from scrimp.fronts.hypervolume import (
    Boxes,
    contributions,
    default_reference,
    front_below,
    open_boxes,
)
from scrimp.gp.cholesky import cholesky
from scrimp.sobol import sobol_points
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, as_columns

MAX_FRONT_POINTS = {2: 200, 3: 80, 4: 40, 5: 20, 6: 12}
"""Points of a front from which boxes are made, by the number of objectives, which gives some hundred
boxes (measured). Of a larger front the points that add most are taken."""

MAX_UNCERTAIN_ROWS = 24
"""Inputs whose losses are drawn: those that are on most fronts of marginal draws."""

MARGINAL_DRAWS = 48
"""Draws of all losses by which the uncertain inputs are found."""

DRAW_NOISE = 1e-6
"""Noise variance of a draw that a model is conditioned on, in units of the variance of all losses:
none except for rounding."""

_MAX_ENTRIES_PER_PASS = 200_000
"""Candidates times boxes per pass, which stay in the processor's cache (measured)."""

_NARROW_STRIP = 0.02
"""The difference of log EI below which W is integrated by nodes."""

_NODES = 0.5 + 0.5 * np.array([-np.sqrt(0.6), 0.0, np.sqrt(0.6)])
_WEIGHTS = np.array([5.0, 8.0, 5.0]) / 18.0
"""Gauss-Legendre nodes and weights on [0, 1]."""

_MIN_Z, _MAX_Z = -1e150, 30.0
"""Below, z * z would overflow; above, phi / Phi is negligible."""


@dataclass(frozen=True, eq=False)
class Strips:
    """k strips along one objective between shared ``edges`` (e,). ``low`` and ``high`` (k,) are
    indices of edges; a low of -1 is minus infinity. ``fantasy`` (e,): the fantasy of each edge, if
    strips of several are joined."""

    edges: Array
    low: NDArray[np.intp]
    high: NDArray[np.intp]
    fantasy: NDArray[np.intp] | None = None

    @staticmethod
    def between(lower: Array, upper: Array) -> "Strips":
        """Return the strips from lower (k,), which may be minus infinity, to upper (k,)."""
        edges = np.unique(np.concatenate([upper, lower[np.isfinite(lower)]]))
        low = np.where(np.isfinite(lower), np.searchsorted(edges, lower), -1)
        return Strips(edges, low.astype(np.intp), np.searchsorted(edges, upper))

    @staticmethod
    def joined(parts: "Sequence[Strips]") -> "Strips":
        """Concatenate the strips of several fantasies."""
        if len(parts) == 1:
            return parts[0]
        sizes = [len(part.edges) for part in parts]
        before = np.cumsum([0, *sizes[:-1]])
        shifted = [
            (np.where(part.low >= 0, part.low + start, -1), part.high + start)
            for part, start in zip(parts, before, strict=True)
        ]
        return Strips(
            np.concatenate([part.edges for part in parts]),
            np.concatenate([low for low, _ in shifted]),
            np.concatenate([high for _, high in shifted]),
            np.repeat(np.arange(len(parts)), sizes),
        )


def log_cleared(mean: Array, std: Array, strips: Strips) -> Array:
    """log W (m, k) of each strip for losses of these means, (m,) or (m, f) with f fantasies, and
    standard deviations (m,).

    >>> one = Strips.between(np.array([-1.0]), np.array([1.0]))
    >>> bool(abs(log_cleared(np.zeros(1), np.ones(1), one)[0, 0]) < 1e-9)
    True
    """
    return log_cleared_and_derivatives(mean, std, strips)[0]


def log_cleared_and_derivatives(
    mean: Array, std: Array, strips: Strips
) -> tuple[Array, Array, Array]:
    """log W (m, k) and its derivatives by mean and by std, (m, k) each."""
    # The mean at each edge (m, e), or (m, 1) if it is the same at all.
    means = as_columns(mean)
    if mean.ndim == 2 and strips.fantasy is not None:
        means = mean[:, strips.fantasy]
    edge = log_expected_improvement_and_derivatives(means, std[:, None], strips.edges)
    value, by_mean, by_std = (part[:, strips.high] for part in edge)
    closed = np.flatnonzero(strips.low >= 0)
    if not len(closed):
        return value, by_mean, by_std
    low = strips.low[closed]
    rise = value[:, closed] - edge[0][:, low]
    # The share of EI(u) below the strip.
    kept = np.exp(-rise)
    rest = -np.expm1(-rise)
    narrow = rise < _NARROW_STRIP
    safe = np.where(narrow, 1.0, rest)
    value[:, closed] += np.log(safe)
    by_mean[:, closed] = (by_mean[:, closed] - kept * edge[1][:, low]) / safe
    by_std[:, closed] = (by_std[:, closed] - kept * edge[2][:, low]) / safe
    if narrow.any():
        row, place = np.nonzero(narrow)
        where = closed[place]
        ends = strips.edges[strips.low[where]], strips.edges[strips.high[where]]
        met = np.broadcast_to(means, edge[0].shape)[row, strips.high[where]]
        exact = _narrow(met, std[row], *ends)
        value[row, where], by_mean[row, where], by_std[row, where] = exact
    return value, by_mean, by_std


def _narrow(mean: Array, std: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Return log W and its derivatives (p,) for pairs of a loss and a strip, by three nodes."""
    nodes = low[:, None] + (high - low)[:, None] * _NODES
    z = np.maximum((nodes - mean[:, None]) / std[:, None], _MIN_Z)
    logs = log_ndtr(z)
    top = logs.max(axis=1, keepdims=True)
    shares = _WEIGHTS * np.exp(logs - top)
    total = shares.sum(axis=1, keepdims=True)
    value: Array = np.log(high - low) + (top + np.log(total))[:, 0]
    # phi / Phi at the nodes, weighted by their shares in the integral.
    ratio = np.sqrt(0.5 * np.pi) * erfcx(np.minimum(z, _MAX_Z) * -np.sqrt(0.5))
    slope = shares / total / (ratio * std[:, None])
    return value, -slope.sum(axis=1), -(slope * z).sum(axis=1)


@dataclass(frozen=True, eq=False)
class OpenRegion:
    """The region that a front leaves open: the ``strips`` of its k boxes along each of m objectives,
    and the logarithm of the worth of a unit of each box's volume (k,). ``starts`` (f,): index of the
    first box of each fantasy."""

    strips: tuple[Strips, ...]
    log_worth: Array
    starts: tuple[int, ...] = (0,)

    @staticmethod
    def of(boxes: Boxes, best: Array | None = None, log_worth: Array | None = None) -> "OpenRegion":
        """Return the region of boxes, cut off at ``best`` (m,), the losses that are good enough."""
        lower = boxes.lower if best is None else np.maximum(boxes.lower, best)
        left = (lower < boxes.upper).all(axis=1)
        worth = np.zeros(len(boxes)) if log_worth is None else log_worth
        columns = zip(lower[left].T, boxes.upper[left].T, strict=True)
        return OpenRegion(tuple(Strips.between(low, high) for low, high in columns), worth[left])

    @staticmethod
    def joined(regions: "Sequence[OpenRegion]") -> "OpenRegion":
        """Join the regions of several fantasies: one pass over all costs little more than over one."""
        sizes = [len(region.log_worth) for region in regions]
        return OpenRegion(
            tuple(map(Strips.joined, zip(*(region.strips for region in regions), strict=True))),
            np.concatenate([region.log_worth for region in regions]),
            tuple(np.cumsum([0, *sizes[:-1]]).tolist()),
        )

    def summed(self, values: Array) -> Array:
        """Return the sums (n, f) of values (n, k) over the boxes of each fantasy."""
        # Slice by slice, because `reduceat` rounds differently and replay must give the same decisions.
        ends = (*self.starts[1:], values.shape[1])
        sums = np.empty((len(values), len(self.starts)))
        for place, (start, end) in enumerate(zip(self.starts, ends, strict=True)):
            values[:, start:end].sum(axis=1, out=sums[:, place])
        return sums

    def log_summed(self, logs: Array) -> tuple[Array, Array]:
        """Return the logarithms (n, f) of the sums of exp(logs) over the boxes of each fantasy, for
        logs (n, k), and the share of each box in its sum (n, k)."""
        sizes = np.diff((*self.starts, logs.shape[1]))
        top = np.maximum.reduceat(logs, self.starts, axis=1)
        top = np.where(np.isfinite(top), top, 0.0)
        # The same order in memory, on which rounding depends.
        shares = np.empty_like(logs)
        np.exp(np.subtract(logs, np.repeat(top, sizes, axis=1), out=shares), out=shares)
        total = self.summed(shares)
        with np.errstate(divide="ignore"):
            value = top + np.log(total / sizes) + np.log(sizes)
        shares /= np.repeat(np.maximum(total, np.finfo(float).tiny), sizes, axis=1)
        return value, shares


def log_hypervolume_improvement(
    means: Sequence[Array], stds: Sequence[Array], region: OpenRegion
) -> Array:
    """Return log EHVI (n, f) of candidates in each of f fantasies, given means, (n,) or (n, f), and
    standard deviations (n,) in each objective.

    >>> region = OpenRegion.of(open_boxes(np.array([[0.0, 0.0]]), np.ones(2)))
    >>> round(float(log_hypervolume_improvement([-np.ones(1)] * 2, [np.full(1, 1e-6)] * 2, region)[0, 0]), 6)
    1.098612
    """
    total = region.log_worth
    for mean, std, strips in zip(means, stds, region.strips, strict=True):
        total = total + log_cleared(mean, std, strips)
    return region.log_summed(total)[0]


def _with_derivatives(
    means: Sequence[Array], stds: Sequence[Array], region: OpenRegion
) -> tuple[Array, list[Array], list[Array]]:
    """Return log EHVI with its derivatives by each mean and each std, (n, f) each."""
    parts = [
        log_cleared_and_derivatives(mean, std, strips)
        for mean, std, strips in zip(means, stds, region.strips, strict=True)
    ]
    total = region.log_worth + sum(part[0] for part in parts)
    value, shares = region.log_summed(total)
    by_mean, by_std = ([region.summed(shares * part[place]) for part in parts] for place in (1, 2))
    return value, by_mean, by_std


@dataclass(frozen=True)
class LogHypervolumeImprovement(Acquisition):
    """log EHVI over the models of these ``names``.

    ``reference`` and ``best`` have one number per model, in the units of its targets.
    ``reference``: the point that hypervolumes are measured from, None for one slightly beyond the
    front. ``best``: losses that are good enough, None if lower is always better. A reference
    may lie beyond the cap that models put on their targets.
    """

    names: tuple[str, ...]
    reference: tuple[float, ...] | None = None
    best: tuple[float, ...] | None = None

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> FantasyAverage:
        """Bind to the models; sample k of one model is combined with sample k of the others."""
        members = [model_named(models, name).members for name in self.names]
        for own in members:
            check_variances(own[0])
        longest = max(map(len, members))
        combined = [tuple(own[k % len(own)] for own in members) for k in range(longest)]
        return average_of([BoundHypervolume(each, self._open(each, context)) for each in combined])

    def _open(self, models: Sequence[FittedSurrogate], context: Context) -> OpenRegion:
        """Return the region that the front leaves open in each fantasy."""
        believed = [believed_losses(model, context) for model in models]
        fantasies = max(losses.shape[1] for losses in believed)
        rows = np.stack([np.broadcast_to(each, (len(each), fantasies)) for each in believed], -1)
        reference = self._reference(models, rows, context)
        best = None if self.best is None else _inward(models, self.best)
        if best is not None and (best < reference).all() and (rows > best).any(axis=2).all():
            rows = np.maximum(rows, best)
        else:
            # Once all goals are reached, lower is better again.
            best = None
        regions = []
        for place in range(fantasies):
            front = thinned_front(front_below(rows[:, place], reference), reference)
            boxes = open_boxes(front, reference)
            regions.append(OpenRegion.of(boxes, best, _log_worth(models, boxes)))
        return OpenRegion.joined(regions)

    def _reference(self, models: Sequence[FittedSurrogate], rows: Array, context: Context) -> Array:
        """Return the reference in units of the models (m,): as given, or beyond the evaluated front."""
        if self.reference is not None:
            return _inward(models, self.reference, beyond=True)
        waiting = 0 if context.pending is None else len(context.pending)
        known = rows[: len(rows) - waiting].mean(axis=1)
        outward = [model.target_units(own) for model, own in zip(models, known.T, strict=True)]
        return _inward(models, default_reference(np.stack(outward, axis=1)))


def thinned_front(front: Array, reference: Array) -> Array:
    """Return the points of a front (n, m) that add most, at most `MAX_FRONT_POINTS`."""
    most = MAX_FRONT_POINTS.get(front.shape[1], 6)
    while len(front) > most:
        added = contributions(front, reference)
        # A tenth at a time, because the contribution of a point depends on the others.
        leaving = max(1, min(len(front) - most, len(front) // 10))
        front = front[np.sort(np.argsort(-added, kind="stable")[: len(front) - leaving])]
    return front


def _inward(
    models: Sequence[FittedSurrogate], values: Sequence[float] | Array, beyond: bool = False
) -> Array:
    """Convert one number per model to its units; infinite ones stay. With ``beyond``, numbers above
    the cap of a model are extrapolated linearly."""
    inward = np.array(values, dtype=float)
    for place in np.flatnonzero(np.isfinite(inward)).tolist():
        nowhere = np.zeros((1, models[place].data.x.shape[1]))
        inward[place] = models[place].model_units(Data(nowhere, inward[[place]])).y[0]
    for place, model in enumerate(models if beyond else ()):
        end = inward[[place]]
        lacking = values[place] - float(model.target_units(end)[0])
        if np.isfinite(lacking) and lacking > 1e-9 * (1.0 + abs(values[place])):
            inward[place] += lacking / float(model.target_slope(end)[0])
    return inward


def _log_worth(models: Sequence[FittedSurrogate], boxes: Boxes) -> Array:
    """The logarithm of each box's volume in units of the metrics divided by that in units of the
    models (k,); boxes without a lower end use the slope at the upper one."""
    total = np.zeros(len(boxes))
    for model, low, high in zip(models, boxes.lower.T, boxes.upper.T, strict=True):
        closed = np.isfinite(low)
        start = np.where(closed, low, high)
        rise = model.target_units(high) - model.target_units(start)
        inside = rise / np.where(closed, high - start, 1.0)
        slope = np.where(closed, inside, model.target_slope(high))
        total += np.log(np.maximum(slope, 1e-300))
    return total


@dataclass(frozen=True)
class BoundHypervolume(FantasyAverage):
    """Log EHVI under one model of each loss, with the region that their front leaves open."""

    models: tuple[FittedSurrogate, ...]
    region: OpenRegion
    logarithmic: ClassVar[bool] = True

    def terms(self, x: Array) -> Array:
        posteriors = [model.posterior(x) for model in self.models]
        means = [posterior.mean for posterior in posteriors]
        stds = [standard_deviations(posterior)[0][:, 0] for posterior in posteriors]
        values = np.empty((len(x), len(self.region.starts)))
        step = max(1, _MAX_ENTRIES_PER_PASS // max(len(self.region.log_worth), 1))
        for start in range(0, len(x), step):
            rows = slice(start, start + step)
            here = [_columns(mean[rows], self.region) for mean in means]
            there = [std[rows] for std in stds]
            values[rows] = log_hypervolume_improvement(here, there, self.region)
        return values

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        pairs = [model.posterior_and_pullback(x) for model in self.models]
        deviations = [standard_deviations(posterior) for posterior, _ in pairs]
        value, by_mean, by_std = _with_derivatives(
            [_columns(posterior.mean, self.region) for posterior, _ in pairs],
            [std[:, 0] for std, _ in deviations],
            self.region,
        )

        def pull(d_terms: Array) -> Array:
            total = np.zeros_like(x)
            for place, (posterior, back) in enumerate(pairs):
                d_mean = d_terms * by_mean[place]
                # A model without fantasies belongs to all of them.
                if posterior.mean.shape[1] == 1:
                    d_mean = d_mean.sum(axis=1, keepdims=True)
                by_variance = deviations[place][1][:, 0]
                total += back(d_mean, (d_terms * by_std[place]).sum(axis=1) * by_variance)
            return total

        return value, pull


def _columns(mean: Array, region: OpenRegion) -> Array:
    """Broadcast means to (n, f); a model without fantasies has one column for all."""
    return np.broadcast_to(mean, (len(mean), len(region.starts)))


def uncertain_rows(
    models: Sequence[FittedSurrogate], evaluated: Array, rng: np.random.Generator
) -> Array:
    """Return the evaluated inputs (n, d) that may be on the front, `MAX_UNCERTAIN_ROWS` at most."""
    rows = np.unique(evaluated, axis=0)
    losses = []
    for model in models:
        posterior = model.posterior(rows)
        noise = rng.standard_normal((MARGINAL_DRAWS, len(rows)))
        losses.append(posterior.mean[:, 0] + np.sqrt(posterior.variance) * noise)
    drawn = np.stack(losses, axis=-1)
    often = np.sum([non_dominated(each) for each in drawn], axis=0)
    order = np.argsort(-often, kind="stable")[:MAX_UNCERTAIN_ROWS]
    found: Array = rows[np.sort(order[often[order] > 0])]
    return found


def drawn_exactly(
    model: FittedSurrogate, rows: Array, count: int, rng: np.random.Generator
) -> FittedSurrogate:
    """Condition ``model`` on ``count`` joint quasi-random draws of the noise-free function at distinct
    rows (k, d), as exact targets (k, count)."""
    posterior = model.posterior(rows, joint=True)
    assert posterior.covariance is not None
    scale = float(posterior.variance.mean()) or 1.0
    root = cholesky(posterior.covariance, scale=scale)
    places = sobol_points(len(rows), count, rng)
    draws = posterior.mean[:, 0] + ndtri(np.clip(places, 1e-9, 1.0 - 1e-9)) @ root.T
    # A model adds its own noise to that of the data.
    noise = np.full(len(rows), DRAW_NOISE - model.noise_variance)
    return model.condition(Data(rows, draws.T, noise))
