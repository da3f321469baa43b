"""Which past studies to leave out, so that many mediocre ones do not drown the study at hand.

Many models with small weights each outvote the one that was made for the task, and the more so the
more past studies there are. Three remedies, each a mask of the studies to keep:

    percentile      drop i when the median of its losses is at least the 95th percentile of the
                    target's (RGPE, 2018, as the authors' code has it; "percentile-paper" only when
                    it is above, as they print it)
    probabilistic   drop i with probability 1 - (1 - n/H) share_s(l_i < l_t) / (1 + alpha) (RGPE,
                    2022): near the horizon H everything is dropped, for then the study at hand
                    knows best
    bandwidth       the kernel of `weights.distance_weights` is zero from there on (TST, TAF)

Losses are (M + 1, S): S draws for M past studies and, last, the study at hand, which is never
dropped.
"""

import numpy as np
from numpy.typing import NDArray

from scrimp.surrogates.surrogate import Array

__all__ = ["drop_probabilities", "keep_by_chance", "keep_by_percentile"]


def keep_by_percentile(
    losses: Array, percentile: float = 95.0, equal: bool = False
) -> NDArray[np.bool_]:
    """Whether the median loss of each past study (M,) lies below that percentile of the target's
    losses, or is ``equal``."""
    medians, limit = np.median(losses[:-1], axis=1), np.percentile(losses[-1], percentile)
    return np.asarray(medians <= limit if equal else medians < limit)


def drop_probabilities(losses: Array, count: int, horizon: int, alpha: float = 0.0) -> Array:
    """p_drop (M,) after ``count`` evaluations of ``horizon``.

    >>> drop_probabilities(np.array([[1.0, 1.0], [3.0, 1.0], [2.0, 2.0]]), count=5, horizon=10).tolist()
    [0.5, 0.75]
    """
    wins = (losses[:-1] < losses[-1]).mean(axis=1)
    left = max(0.0, 1.0 - count / horizon)
    return np.asarray(1.0 - left * wins / (1.0 + alpha))


def keep_by_chance(probabilities: Array, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Each past study is kept or dropped on its own."""
    return np.asarray(rng.random(len(probabilities)) >= probabilities)
