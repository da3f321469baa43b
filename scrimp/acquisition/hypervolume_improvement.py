"""How much a candidate is expected to add to the hypervolume of a front: log EHVI.

With independent posteriors of m losses, and the region that the front leaves open below the
reference point as disjoint boxes [l, u) (`fronts.boxes`):

    EHVI(x) = sum over boxes of  prod over objectives j of  W_j(l_j, u_j)         W as in `strips`

two objectives have one box per point of the front and one more: the closed form; more objectives
have exact boxes too, whose number grows with the front's size to the power of half the objectives.
Everything is in logarithms, so that there is a gradient however far the candidates are from the
front.

*Front*: of what the models believe at the evaluated and feasible inputs, so that noise does not
count as progress; in each fantasy the pending inputs belong to it. *Units*: a model may have bent
its targets; a box counts as much as it is worth in the units of the metrics. *Goals*: what lies
beyond ``best`` counts nothing.

    LogHypervolumeImprovement(("loss", "loss:latency_ms")).bind(models, context)

Emmerich, "Single- and multiobjective evolutionary optimization assisted by Gaussian random field
metamodels", 2005; Daulton, Balandat, Bakshy, "Parallel Bayesian optimization of multiple noisy
objectives with expected hypervolume improvement", 2021; Ament et al., "Unexpected improvements to
expected improvement for Bayesian optimization", 2023.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scrimp.acquisition.acquisition import Acquisition, FantasyAverage, TermsPullback, averaged
from scrimp.acquisition.context import Context, believed_losses, model_named
from scrimp.acquisition.strips import Strips, log_cleared, log_cleared_and_derivatives
from scrimp.errors import MethodError
from scrimp.fronts.boxes import Boxes, front_below, open_boxes
from scrimp.fronts.hypervolume import contributions, default_reference
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Posterior

__all__ = ["LogHypervolumeImprovement", "OpenRegion", "log_hypervolume_improvement"]

MOST_POINTS = {2: 200, 3: 80, 4: 40, 5: 20, 6: 12}
"""Of a front that boxes are made of, by the number of objectives, so that there are some hundreds
at most; of more points those that add most are taken."""

_TINY_VARIANCE = 1e-30
_ENTRIES = 200_000  # of candidates times boxes at a time: what stays in the cache


@dataclass(frozen=True, eq=False)
class OpenRegion:
    """What a front leaves open: the ``strips`` of its k boxes along each of m objectives, and the
    logarithm of what a unit of each box's volume is worth (k,). ``starts`` (f,): where the boxes of
    each fantasy begin."""

    strips: tuple[Strips, ...]
    log_worth: Array
    starts: tuple[int, ...] = (0,)

    @staticmethod
    def of(boxes: Boxes, best: Array | None = None, log_worth: Array | None = None) -> "OpenRegion":
        """Of boxes, without what lies beyond ``best`` (m,), the losses that are good enough."""
        lower = boxes.lower if best is None else np.maximum(boxes.lower, best)
        left = (lower < boxes.upper).all(axis=1)
        worth = np.zeros(len(boxes)) if log_worth is None else log_worth
        columns = zip(lower[left].T, boxes.upper[left].T, strict=True)
        return OpenRegion(tuple(Strips.between(low, high) for low, high in columns), worth[left])

    @staticmethod
    def joined(regions: "Sequence[OpenRegion]") -> "OpenRegion":
        """What is open in several fantasies, side by side: one pass over all of them costs little
        more than one."""
        sizes = [len(region.log_worth) for region in regions]
        return OpenRegion(
            tuple(map(Strips.joined, zip(*(region.strips for region in regions), strict=True))),
            np.concatenate([region.log_worth for region in regions]),
            tuple(np.cumsum([0, *sizes[:-1]]).tolist()),
        )

    def summed(self, values: Array) -> Array:
        """The sums (n, f) of values (n, k) over the boxes of each fantasy."""
        # slice by slice: `reduceat` rounds otherwise, and decisions of old logs must come out again
        ends = (*self.starts[1:], values.shape[1])
        sums = np.empty((len(values), len(self.starts)))
        for place, (start, end) in enumerate(zip(self.starts, ends, strict=True)):
            values[:, start:end].sum(axis=1, out=sums[:, place])
        return sums

    def log_summed(self, logs: Array) -> tuple[Array, Array]:
        """The logarithms (n, f) of the sums of exp(logs) over the boxes of each fantasy, logs
        (n, k), and the share that each box has of its sum (n, k)."""
        sizes = np.diff((*self.starts, logs.shape[1]))
        top = np.maximum.reduceat(logs, self.starts, axis=1)
        top = np.where(np.isfinite(top), top, 0.0)
        shares = np.empty_like(logs)  # in the same order in memory, on which rounding depends
        np.exp(np.subtract(logs, np.repeat(top, sizes, axis=1), out=shares), out=shares)
        total = self.summed(shares)
        with np.errstate(divide="ignore"):
            value = top + np.log(total / sizes) + np.log(sizes)
        shares /= np.repeat(np.maximum(total, np.finfo(float).tiny), sizes, axis=1)
        return value, shares


def log_hypervolume_improvement(
    means: Sequence[Array], stds: Sequence[Array], region: OpenRegion
) -> Array:
    """log EHVI (n, f) of candidates in each of f fantasies, with means, (n,) or (n, f), and standard
    deviations (n,) in each objective.

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
    """The same with its derivatives by each mean and each std, (n, f) each."""
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
    """log EHVI over the models of these ``names``. ``reference`` and ``best``, one number per
    model, are in the units of their targets: where hypervolumes are measured from, None for a
    little beyond the front, and what is good enough, None where more is always better. ``beyond``:
    whether a reference may lie beyond where the models cap their targets; otherwise it is cut."""

    names: tuple[str, ...]
    reference: tuple[float, ...] | None = None
    best: tuple[float, ...] | None = None
    beyond: bool = False

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> "BoundHypervolume":
        """Tie it to its models; posterior samples of hyperparameters meet one by one."""
        members = [model_named(models, name).members for name in self.names]
        longest = max(map(len, members))
        combined = [tuple(own[k % len(own)] for own in members) for k in range(longest)]
        return BoundHypervolume(tuple((each, self._open(each, context)) for each in combined))

    def _open(self, models: Sequence[FittedSurrogate], context: Context) -> OpenRegion:
        """What the front leaves open in each fantasy."""
        believed = [believed_losses(model, context) for model in models]
        fantasies = max(losses.shape[1] for losses in believed)
        rows = np.stack([np.broadcast_to(each, (len(each), fantasies)) for each in believed], -1)
        reference = self._reference(models, rows, context)
        best = None if self.best is None else _inward(models, self.best)
        if best is not None and (best < reference).all() and (rows > best).any(axis=2).all():
            rows = np.maximum(rows, best)
        else:
            best = None  # where all goals are reached, more is better again
        return OpenRegion.joined(
            [self._region(models, rows[:, place], reference, best) for place in range(fantasies)]
        )

    def _reference(self, models: Sequence[FittedSurrogate], rows: Array, context: Context) -> Array:
        """In units of the models (m,): as given, or beyond the front of what was evaluated."""
        if self.reference is not None:
            return _inward(models, self.reference, self.beyond)
        waiting = 0 if context.pending is None else len(context.pending)
        known = rows[: len(rows) - waiting].mean(axis=1)
        outward = [model.target_units(own) for model, own in zip(models, known.T, strict=True)]
        return _inward(models, default_reference(np.stack(outward, axis=1)))

    def _region(
        self, models: Sequence[FittedSurrogate], losses: Array, reference: Array, best: Array | None
    ) -> OpenRegion:
        front = thinned_front(front_below(losses, reference), reference)
        boxes = open_boxes(front, reference)
        return OpenRegion.of(boxes, best, _log_worth(models, boxes))


def thinned_front(front: Array, reference: Array) -> Array:
    """A front (n, m) with no more points than exact boxes are made for: those that add most."""
    most = MOST_POINTS.get(front.shape[1], 6)
    while len(front) > most:
        added = contributions(front, reference)
        # a tenth at a time: what one adds depends on who else is there
        leaving = max(1, min(len(front) - most, len(front) // 10))
        front = front[np.sort(np.argsort(-added, kind="stable")[: len(front) - leaving])]
    return front


def _inward(
    models: Sequence[FittedSurrogate], values: Sequence[float] | Array, beyond: bool = False
) -> Array:
    """One number per model in its units; infinite ones stay. Those that a model would cap, since no
    target is so high, go on ``beyond`` as its units do there."""
    found = [
        model.model_units(Data(np.zeros((1, model.data.x.shape[1])), np.array([value]))).y[0]
        if np.isfinite(value)
        else value
        for model, value in zip(models, values, strict=True)
    ]
    inward = np.array(found, dtype=float)
    for place, model in enumerate(models if beyond else ()):
        end = inward[[place]]
        lacking = values[place] - float(model.target_units(end)[0])
        if np.isfinite(lacking) and lacking > 1e-9 * (1.0 + abs(values[place])):
            inward[place] += lacking / float(model.target_slope(end)[0])
    return inward


def _log_worth(models: Sequence[FittedSurrogate], boxes: Boxes) -> Array:
    """The logarithm of the volume in units of the metrics by the volume in those of the models (k,),
    with the slope at the upper end where a box has no lower one."""
    total = np.zeros(len(boxes))
    for model, low, high in zip(models, boxes.lower.T, boxes.upper.T, strict=True):
        closed = np.isfinite(low)
        start = np.where(closed, low, high)
        rise = model.target_units(high) - model.target_units(start)
        slope = np.where(
            closed, rise / np.where(closed, high - start, 1.0), model.target_slope(high)
        )
        total += np.log(np.maximum(slope, 1e-300))
    return total


Member = tuple[tuple[FittedSurrogate, ...], OpenRegion]


@dataclass(frozen=True)
class BoundHypervolume(FantasyAverage):
    """Log EHVI under each combination of posterior samples, with what is open in each fantasy."""

    members: tuple[Member, ...]

    @property
    def logarithmic(self) -> bool:
        return True

    def terms(self, x: Array) -> Array:
        each = [_values(models, region, x) for models, region in self.members]
        return each[0] if len(each) == 1 else averaged(np.stack(each), True, axis=0)[0]

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        each = [_values_and_pullback(models, region, x) for models, region in self.members]
        if len(each) == 1:
            return each[0]
        terms, weights = averaged(np.stack([values for values, _ in each]), True, axis=0)

        def pull(d_terms: Array) -> Array:
            parts = [back(d_terms * w) for (_, back), w in zip(each, weights, strict=True)]
            return np.asarray(np.sum(parts, axis=0), dtype=np.float64)

        return terms, pull


def _values(models: Sequence[FittedSurrogate], region: OpenRegion, x: Array) -> Array:
    """log EHVI (n, f) at x (n, d) in each fantasy."""
    posteriors = [model.posterior(x) for model in models]
    means = [posterior.mean for posterior in posteriors]
    stds = [_deviations(posterior)[0] for posterior in posteriors]
    values = np.empty((len(x), len(region.starts)))
    step = max(1, _ENTRIES // max(len(region.log_worth), 1))
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        values[rows] = log_hypervolume_improvement(
            [_columns(mean[rows], region) for mean in means], [std[rows] for std in stds], region
        )
    return values


def _values_and_pullback(
    models: Sequence[FittedSurrogate], region: OpenRegion, x: Array
) -> tuple[Array, TermsPullback]:
    pairs = [model.posterior_and_pullback(x) for model in models]
    deviations = [_deviations(posterior) for posterior, _ in pairs]
    value, by_mean, by_std = _with_derivatives(
        [_columns(posterior.mean, region) for posterior, _ in pairs],
        [std for std, _ in deviations],
        region,
    )

    def pull(d_terms: Array) -> Array:
        total = np.zeros_like(x)
        for place, (posterior, back) in enumerate(pairs):
            d_mean = d_terms * by_mean[place]
            if posterior.mean.shape[1] == 1:  # without fantasies: it belongs to all of them
                d_mean = d_mean.sum(axis=1, keepdims=True)
            std, resolved = deviations[place]
            total += back(d_mean, (d_terms * by_std[place]).sum(axis=1) * 0.5 * resolved / std)
        return total

    return value, pull


def _columns(mean: Array, region: OpenRegion) -> Array:
    """The means (n, f) in each fantasy; a model without fantasies has one column for all."""
    return np.broadcast_to(mean, (len(mean), len(region.starts)))


def _deviations(posterior: Posterior) -> tuple[Array, Array]:
    """Positive standard deviations (n,), and 1 where the variance was above rounding error (n,)."""
    if posterior.variance is None:
        raise MethodError(
            "expected hypervolume improvement needs standard deviations; the model gives means only"
        )
    resolved = (posterior.variance > _TINY_VARIANCE).astype(np.float64)
    return np.sqrt(np.maximum(posterior.variance, _TINY_VARIANCE)), resolved
