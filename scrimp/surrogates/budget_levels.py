"""Models of f(x, r) at one budget, and the weights of budget levels in Hyper-Tune.

`AtBudget` turns a model of rows (x, share of the full budget) into a model of configurations, which
an acquisition over configurations needs. Its data are those of the whole model; conditioning on
observations made at this budget conditions the whole model.

    view = AtBudget(fitted, share=1.0)
    LogExpectedImprovement().bind({"loss": view}, Context(evaluated=configs))

*Weights* measure how far each level can be trusted to order configurations as the highest level
does. Take the highest level r* with enough observations, the configurations X* observed there and
their targets y*. For a level r below, draw f(X*, r) jointly from the model: the loss of a draw is
the share of pairs that it orders differently from y*. At r* the draws come from models that have not
seen the configurations they predict (cross-validation in at most 5 folds, pairs within a fold). The
weight theta_r is the share of draws in which r has the smallest loss; ties count for all, then
normalised. A joint model predicts lower levels from data below r* only: had it seen y*, the lower
levels would look better than they are.

    theta = level_weights(ranking_losses(model, data, fitted.state, (levels, top), 50, rng))

Li et al., Hyper-Tune: Towards Efficient Hyper-parameter Tuning at Scale, 2022.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.json_values import JsonObject
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Posterior,
    PosteriorPullback,
    Surrogate,
)


def with_share(x: Array, share: Array | float) -> Array:
    """Append a budget column to configurations (n, d), as (n, d + 1)."""
    return np.column_stack([x, np.broadcast_to(share, len(x))])


def nearest_level(levels: Array, x: Array) -> NDArray[np.intp]:
    """Return the index of the level nearest to the last column of each row."""
    return np.asarray(np.abs(x[:, -1:] - levels).argmin(axis=1), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class AtBudget(FittedSurrogate):
    """``whole`` at the budget ``share``."""

    whole: FittedSurrogate
    share: float

    @property
    def data(self) -> Data:
        return self.whole.data

    @property
    def length_scales(self) -> Array:
        return self.whole.length_scales[:-1]

    @property
    def noise_variance(self) -> float:
        return self.whole.noise_variance

    @property
    def state(self) -> JsonObject:
        return self.whole.state

    @property
    def members(self) -> tuple[FittedSurrogate, ...]:
        return tuple(AtBudget(member, self.share) for member in self.whole.members)

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        return self.whole.posterior(with_share(x, self.share), joint=joint)

    def mean(self, x: Array) -> Array:
        return self.whole.mean(with_share(x, self.share))

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        posterior, pull = self.whole.posterior_and_pullback(with_share(x, self.share))
        return posterior, lambda d_mean, d_variance: pull(d_mean, d_variance)[:, :-1]

    def condition(self, data: Data) -> "AtBudget":
        return AtBudget(
            self.whole.condition(Data(with_share(data.x, self.share), data.y, data.noise)),
            self.share,
        )

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        return self.whole.sample(with_share(x, self.share), count, rng)

    def model_units(self, data: Data) -> Data:
        return self.whole.model_units(data)

    def target_units(self, values: Array) -> Array:
        return self.whole.target_units(values)

    def target_slope(self, values: Array) -> Array:
        return self.whole.target_slope(values)


MIN_OBSERVATIONS_TO_COMPARE = 6
"""Observations that a level needs so that others are compared with it (convention)."""

MAX_FOLDS = 5
"""Folds of the cross-validation, as in the paper."""


def supported_level(levels: Array, x: Array) -> int:
    """Return the index of the highest level with enough observations among rows (x, share), or 0."""
    counts = np.bincount(nearest_level(levels, x), minlength=len(levels))
    enough = np.flatnonzero(counts >= MIN_OBSERVATIONS_TO_COMPARE)
    return int(enough[-1]) if len(enough) else 0


def pairwise_loss(draws: Array, targets: Array) -> Array:
    """Return the share of pairs that each draw (s, n) orders differently from the targets (n,), (s,).

    >>> pairwise_loss(np.array([[0.1, 0.3, 0.2]]), np.array([1.0, 2.0, 3.0])).round(3).tolist()
    [0.333]
    """
    low, high = np.triu_indices(len(targets), 1)
    differs = (draws[:, low] < draws[:, high]) != (targets[low] < targets[high])
    return np.asarray(differs.mean(axis=1), dtype=np.float64)


def ranking_losses(
    model: Surrogate,
    data: Data,
    state: JsonObject,
    levels: tuple[Array, int],
    samples: int,
    rng: np.random.Generator,
) -> Array:
    """Return losses (k + 1, s) of the levels up to the k-th (``levels`` = shares and k > 0), for data
    of rows (x, share). Without ``samples``, losses of the means, (k + 1, 1)."""
    shares, top = levels
    level = nearest_level(shares, data.x)
    at_top = data.select(level == top)
    below = model.restore(data.select(level < top), state)
    losses = [
        pairwise_loss(_drawn(below, with_share(at_top.x[:, :-1], share), samples, rng), at_top.y)
        for share in shares[:top]
    ]
    return np.stack([*losses, _held_out_loss(model, at_top, state, samples, rng)])


def _held_out_loss(
    model: Surrogate, data: Data, state: JsonObject, samples: int, rng: np.random.Generator
) -> Array:
    """Return the mean loss over folds of at least two observations, each predicted from the others
    with the same hyperparameters."""
    total = np.zeros(max(samples, 1))
    folds = np.array_split(np.arange(len(data)), min(len(data) // 2, MAX_FOLDS))
    for fold in folds:
        inside = np.zeros(len(data), dtype=bool)
        inside[fold] = True
        others = model.restore(data.select(~inside), state)
        total += pairwise_loss(_drawn(others, data.x[fold], samples, rng), data.y[fold])
    return total / len(folds)


def level_weights(losses: Array) -> Array:
    """theta (k,) from losses (k, s).

    >>> level_weights(np.array([[0.1, 0.5], [0.2, 0.5]])).round(3).tolist()
    [0.667, 0.333]
    """
    least = losses == losses.min(axis=0)
    return np.asarray(least.sum(axis=1) / least.sum(), dtype=np.float64)


def cubed_weights(losses: Array) -> Array:
    """theta (k,) in proportion to the cube of the share of pairs in order, 1 - loss (k,), as in the
    authors' code; equal if no level orders any pair.

    >>> cubed_weights(np.array([0.5, 0.0])).round(3).tolist()
    [0.111, 0.889]
    """
    cubes = (1.0 - losses) ** 3
    return np.asarray(cubes / cubes.sum() if cubes.any() else np.full(len(cubes), 1 / len(cubes)))


def _drawn(model: FittedSurrogate, x: Array, samples: int, rng: np.random.Generator) -> Array:
    return model.sample(x, samples, rng) if samples else model.mean(x)[:, 0][None]
