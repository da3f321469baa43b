"""How far each rung can be trusted to order configurations as the highest rung does.

Take the highest level r* with enough observations, the configurations X* observed there and their
targets y*. For a level r below, draw f(X*, r) jointly from the model: the loss of a draw is the
share of pairs that it orders differently from y*. At r* itself the draws come from models that have
not seen the configurations they predict (cross-validation in at most 5 folds, pairs within a fold).
The weight theta_r is the share of draws in which r has the least loss; ties count for all, then
normalised.

A joint model predicts lower levels from data below r* alone: had it seen y*, the lower levels would
look better than they are.

    theta = level_weights(ranking_losses(model, data, fitted.state, (levels, top), 50, rng))

Li et al., Hyper-Tune: Towards Efficient Hyper-parameter Tuning at Scale, 2022.
"""

import numpy as np
from numpy.typing import NDArray

from scrimp.json_values import JsonObject
from scrimp.surrogates.at_budget import with_share
from scrimp.surrogates.independent_gps import nearest_level
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Surrogate

__all__ = [
    "ENOUGH",
    "cubed_weights",
    "level_weights",
    "pairwise_loss",
    "ranking_losses",
    "supported_level",
]

ENOUGH = 6
"""Observations that a level needs to be compared with."""

FOLDS = 5


def supported_level(levels: Array, x: Array) -> int:
    """The index of the highest level with enough observations among rows (x, share); 0 when none
    has."""
    counts = np.bincount(nearest_level(levels, x), minlength=len(levels))
    enough = np.flatnonzero(counts >= ENOUGH)
    return int(enough[-1]) if len(enough) else 0


def pairwise_loss(draws: Array, targets: Array) -> Array:
    """The share of pairs that each draw (s, n) orders differently from the targets (n,), as (s,).

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
    """Losses (k + 1, s) of the levels up to the k-th (``levels`` = shares and k > 0), for data of
    rows (x, share). Without ``samples`` those of the means, (k + 1, 1)."""
    shares, top = levels
    level = nearest_level(shares, data.x)
    at_top = _rows(data, level == top)
    below = model.restore(_rows(data, level < top), state)
    losses = [
        pairwise_loss(_drawn(below, with_share(at_top.x[:, :-1], share), samples, rng), at_top.y)
        for share in shares[:top]
    ]
    return np.stack([*losses, _held_out_loss(model, at_top, state, samples, rng)])


def _held_out_loss(
    model: Surrogate, data: Data, state: JsonObject, samples: int, rng: np.random.Generator
) -> Array:
    """The mean loss over folds of at least two observations, each predicted from the others with
    the same hyperparameters."""
    total = np.zeros(max(samples, 1))
    folds = np.array_split(np.arange(len(data)), min(len(data) // 2, FOLDS))
    for fold in folds:
        inside = np.zeros(len(data), dtype=bool)
        inside[fold] = True
        others = model.restore(_rows(data, ~inside), state)
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
    authors' code; equal where no level orders any.

    >>> cubed_weights(np.array([0.5, 0.0])).round(3).tolist()
    [0.111, 0.889]
    """
    cubes = (1.0 - losses) ** 3
    return np.asarray(cubes / cubes.sum() if cubes.any() else np.full(len(cubes), 1 / len(cubes)))


def _drawn(model: FittedSurrogate, x: Array, samples: int, rng: np.random.Generator) -> Array:
    return model.sample(x, samples, rng) if samples else model.mean(x)[:, 0][None]


def _rows(data: Data, chosen: NDArray[np.bool_]) -> Data:
    return Data(data.x[chosen], data.y[chosen], None if data.noise is None else data.noise[chosen])
