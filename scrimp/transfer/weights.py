"""How much each past study counts: weights over M models of past studies and, last, the model of
the study at hand.

*Distance* (TST, TAF): the Epanechnikov kernel of a distance between studies,

    kappa(u) = 3/4 (1 - u^2) where u = distance / bandwidth < 1, else 0;      the study at hand has distance 0

The distance is Euclidean between meta-features, or the share of discordant pairs: pairs of
evaluated configurations that the past study's model orders otherwise than the losses do. Beyond the
bandwidth a study does not count at all.

*Ranking loss* (RGPE): how many ordered pairs a model gets wrong, L(f) = sum_jk [(f_j < f_k) xor
(y_j < y_k)], where the model at hand is judged by leave-one-out means, f_-j(x_j) against y_k. With
S draws of the losses, by resampling the evaluated configurations or from the posteriors, the weight
of a model is the share of draws in which it is the best.

*Experts*: weights w_i(x) = beta_i / sigma_i^2(x) of a product of Gaussians; see `ensembles` and
`acquisitions`.

Wistuba, Schilling, Schmidt-Thieme, Two-stage transfer surrogate model, 2016; Feurer, Letham,
Hutter, Bakshy, Practical transfer learning for Bayesian optimization, 2022.
"""

import numpy as np
from numpy.typing import NDArray

from scrimp.surrogates.surrogate import Array

__all__ = [
    "best_shares",
    "bootstrap_losses",
    "discordance",
    "distance_weights",
    "epanechnikov",
    "feature_distances",
    "leave_one_out_discordance",
    "ordering_errors",
    "rank_distances",
    "sampled_losses",
    "uniform_weights",
]

SELF = 0.75
"""The kernel at distance 0: what the study at hand counts before normalising."""


def epanechnikov(ratio: Array) -> Array:
    """3/4 (1 - u^2) for u < 1, else 0.

    >>> epanechnikov(np.array([0.0, 0.5, 1.0])).tolist()
    [0.75, 0.5625, 0.0]
    """
    return np.where(ratio < 1.0, 0.75 * (1.0 - ratio * ratio), 0.0)


def distance_weights(distances: Array, bandwidth: float) -> Array:
    """Weights (M + 1,) of past studies at these distances (M,) and of the study at hand; they sum
    to 1."""
    kernel = np.append(epanechnikov(distances / bandwidth), SELF)
    return np.asarray(kernel / kernel.sum())


def uniform_weights(count: int) -> Array:
    """(M + 1,) equal weights."""
    return np.full(count + 1, 1.0 / (count + 1))


def feature_distances(past: Array, present: Array, scaled: bool = True) -> Array:
    """Euclidean distances (M,) between the meta-features of past studies (M, f) and of the study at
    hand (f,).

    ``scaled``: every feature is scaled to [0, 1] over all studies first, and distances are divided
    by sqrt(f), so that the bandwidth means the same for any number of features.
    """
    if not scaled:
        return np.asarray(np.sqrt(((past - present) ** 2).sum(axis=1)))
    both = np.vstack([past, present])
    spread = np.ptp(both, axis=0)
    units = (both - both.min(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return np.asarray(np.sqrt(((units[:-1] - units[-1]) ** 2).mean(axis=1)))


def discordance(predictions: Array, losses: Array) -> Array:
    """Which ordered pairs (j, k) each model gets wrong: (M, n, n) of 0 and 1 for predictions (n,
    M)."""
    truth = losses[:, None] < losses[None, :]
    guesses = predictions.T
    return np.asarray((guesses[:, :, None] < guesses[:, None, :]) ^ truth, dtype=float)


def leave_one_out_discordance(left_out: Array, losses: Array) -> Array:
    """The same of the model at hand (n, n): row j compares its prediction without j (n,) with the
    losses themselves."""
    return np.asarray(
        (left_out[:, None] < losses[None, :]) ^ (losses[:, None] < losses[None, :]), dtype=float
    )


def ordering_errors(predictions: Array, losses: Array) -> Array:
    """The number of discordant pairs a < b of each model (M,)."""
    wrong = discordance(predictions, losses)
    upper = np.triu(np.ones(wrong.shape[1:]), 1)
    return np.asarray((wrong * upper).sum(axis=(1, 2)))


def rank_distances(predictions: Array, losses: Array) -> Array:
    """The share of discordant pairs (M,): 2 / (n (n - 1)) times their number; zeros while there are
    no pairs."""
    count = len(losses)
    if count < 2:
        return np.zeros(predictions.shape[1])
    return 2.0 / (count * (count - 1)) * ordering_errors(predictions, losses)


def bootstrap_losses(wrong: Array, draws: int, rng: np.random.Generator) -> Array:
    """Ranking losses (K, S) of K models with discordances (K, n, n) on S resamples of the
    configurations, shared by all.

    A resample that takes configuration j c_j times has the loss sum_jk c_j c_k wrong_jk.
    """
    count = wrong.shape[1]
    taken = rng.multinomial(count, np.full(count, 1.0 / count), size=draws).astype(float)  # (S, n)
    return np.asarray(np.einsum("ksn,sn->ks", taken @ wrong, taken))


def sampled_losses(samples: Array, losses: Array) -> Array:
    """Ranking losses (K, S) of joint draws (K, S, n) of each model at the evaluated
    configurations."""
    truth = losses[:, None] < losses[None, :]
    return np.stack(
        [((each[:, :, None] < each[:, None, :]) ^ truth).sum(axis=(1, 2)) for each in samples]
    ).astype(float)


def best_shares(
    losses: Array, kept: NDArray[np.bool_] | None = None, ties: str = "shared"
) -> Array:
    """Weights (M + 1,) by losses (M + 1, S): in how many draws each model is the best, ties
    ``shared`` or to the ``target``.

    ``kept`` (M,): past studies that are not kept get the loss 2 max + 1, with which nobody is the
    best.
    """
    if kept is not None:
        losses = losses.copy()
        losses[:-1][~kept] = 2.0 * losses.max() + 1.0
    best = losses == losses.min(axis=0)
    if ties == "target":
        best[:-1, best[-1]] = False
    return np.asarray((best / best.sum(axis=0)).mean(axis=1))
