"""Which configurations to begin with: those that past studies together would have been glad to try.

Greedy portfolio: with N_i(x) the prediction of past study i, scaled to [0, 1] over the candidates,
and c_i the best of it so far,

    x* = argmax over x of  sum_i w_i max(0, c_i - N_i(x)),        c_i = 1 before the first

The first is the best on average, the next helps those studies most that the first left behind. The
*adaptive* portfolio weighs studies by how well they order what was seen: w_i = exp(-2 (discordant
pairs - fewest) / (n - 1)).

Wistuba, Schilling, Schmidt-Thieme, Sequential model-free hyperparameter tuning, 2015; Feurer et
al., 2022.
"""

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.domain import Domain
from scrimp.surrogates.surrogate import Array
from scrimp.transfer.source_models import SourceModels
from scrimp.transfer.source_studies import SourceStudy
from scrimp.transfer.weights import ordering_errors

__all__ = [
    "agreement_weights",
    "candidate_rows",
    "greedy_portfolio",
    "next_of_portfolio",
    "scaled_predictions",
    "with_observed",
]

LEAST_GAIN = 1e-9
RATE = 2.0  # how fast the weight of a study falls with the pairs that it orders wrongly
MOST_CANDIDATES = 1024


def candidate_rows(domain: Domain, past: tuple[SourceStudy, ...]) -> Array:
    """Where to look: all rows of a pool; otherwise the best of what each past study tried, moved to
    where it is legal here."""
    if domain.pool is not None:
        return domain.pool
    share = max(4, MOST_CANDIDATES // max(len(past), 1))
    found = [study.x[np.argsort(study.y, kind="stable")[:share]] for study in past]
    return np.unique(domain.snap(np.concatenate(found)), axis=0)


def with_observed(rows: Array, models: SourceModels) -> Array:
    """What each past study says of rows (C, d), as losses (C, M): what it observed there, and what
    its model predicts where it did not look."""
    losses = models.means(rows)
    for place, model in enumerate(models.models):
        losses[:, place] = model.losses(losses[:, place])
        observed = dict(zip(map(_key, model.study.x), model.study.y.tolist(), strict=True))
        for row, x in enumerate(rows):
            losses[row, place] = observed.get(_key(x), losses[row, place])
    return losses


def _key(row: Array) -> bytes:
    return np.round(row, 9).tobytes()


def scaled_predictions(means: Array) -> Array:
    """Predictions (C, M) of past studies, each scaled to [0, 1] over the candidates."""
    low = means.min(axis=0)
    width = np.ptp(means, axis=0)
    return np.asarray((means - low) / np.where(width > 0.0, width, 1.0))


def agreement_weights(scaled: Array, losses: Array, rate: float = RATE) -> Array:
    """Weights (M,) of past studies by their predictions (n, M) for what was evaluated, with losses
    (n,): exp(-rate (discordant pairs - fewest) / (n - 1))."""
    count = len(losses)
    if count < 2:
        return np.full(scaled.shape[1], 1.0 / scaled.shape[1])
    wrong = ordering_errors(scaled, losses)
    weights = np.exp(-rate * (wrong - wrong.min()) / (count - 1))
    return np.asarray(weights / weights.sum())


def next_of_portfolio(
    scaled: Array, best: Array, weights: Array, free: NDArray[np.bool_]
) -> tuple[int, float]:
    """The candidate with the highest gain over ``best`` (M,) among those that are ``free`` (C,),
    and its gain."""
    gains = np.maximum(best - scaled, 0.0) @ weights
    gains[~free] = -1.0
    chosen = int(np.argmax(gains))
    return chosen, float(gains[chosen])


def greedy_portfolio(
    scaled: Array, count: int, taken: NDArray[np.bool_] | None = None
) -> list[int]:
    """The first ``count`` candidates of the greedy portfolio; ``taken`` (C,) are left out, and
    count as seen.

    When every past study has its best, the portfolio begins anew with the candidates that are left.
    """
    free = np.ones(len(scaled), dtype=bool) if taken is None else ~taken
    weights = np.full(scaled.shape[1], 1.0 / scaled.shape[1])
    best = np.ones(scaled.shape[1]) if free.all() else scaled[~free].min(axis=0)
    found: list[int] = []
    while len(found) < count and free.any():
        chosen, gain = next_of_portfolio(scaled, best, weights, free)
        if gain <= LEAST_GAIN and best.max() < np.inf:
            best = np.full(scaled.shape[1], scaled[free].max() + 1.0)  # a new round
            chosen, _ = next_of_portfolio(scaled, best, weights, free)
        found.append(chosen)
        free[chosen] = False
        best = np.minimum(best, scaled[chosen])
    return found
