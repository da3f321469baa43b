"""With which configurations to begin: the adaptive portfolio, and how far it doubts past studies.

With N_i(x) the prediction of past study i, scaled to [0, 1] over the candidates, c_i the best of it
among what was tried, and w_i how well it orders the results so far,

    x* = argmax over x of  sum_i w_i E max(0, c_i - N_i(x) - e(x)),      e(x) ~ N(0, s(x)^2)
    s(x)^2 = doubt^2 (1 - k(x)^32),      k(x) the kernel between x and the nearest that was tried

The new task is like one of the past ones, but for an error e that only close neighbours share.
Without doubt every past study is taken at its word, and the next configuration is what serves the
one or two that the first served badly. With doubt it is rather one that is good for many. And with
doubt the portfolio is left as soon as past studies order the results, three at least, no better
than chance: when they have more than half of the pairs wrong on average.

    AdaptiveStart(rows, scaled, kernel, doubt=0.1).next_rows(training, 1)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.domain import contains_rows
from scrimp.acquisition.improvement import log_expected_improvement
from scrimp.encoding.training_data import Training
from scrimp.gp.kernel import Kernel
from scrimp.surrogates.surrogate import Array
from scrimp.transfer.portfolio import LEAST_GAIN, RATE, agreement_weights, next_of_portfolio

__all__ = ["AdaptiveStart"]

DOUBTING_RATE = 4.0
"""How fast the weight of a past study falls with the pairs that it orders wrongly; `RATE` without
doubt."""

FEWEST = 3  # results by which past studies are judged
CHANCE = 0.5
SHARED = 32
LEAST_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class AdaptiveStart:
    """Candidates ``rows`` (C, d), scaled predictions (C, M) there and a ``kernel`` of variance one,
    which says how close configurations are."""

    rows: Array
    scaled: Array
    kernel: Kernel
    doubt: float = 0.0

    def next_rows(self, training: Training, count: int) -> list[int]:
        """The next ``count`` candidates, fewer if nothing is left that helps any past study; none
        when doubt has been confirmed."""
        found: list[int] = []
        if count <= 0:
            return found
        seen = [int(np.argmin(((self.rows - row) ** 2).sum(axis=1))) for row in training.x]
        predicted = self.scaled[seen]
        told = ~training.failed
        judged = bool(self.doubt) and int(told.sum()) >= FEWEST
        if judged and _wrong(predicted[told], training.y[told]) > CHANCE:
            return found
        rate = DOUBTING_RATE if self.doubt else RATE
        weights = agreement_weights(predicted, training.y, rate)
        taken = contains_rows(self.rows, training.known)
        while len(found) < count:
            best = self.scaled[taken].min(axis=0) if taken.any() else np.ones(len(weights))
            chosen, gain = self._next(best, weights, taken)
            if gain <= LEAST_GAIN:
                break
            found.append(chosen)
            taken[chosen] = True
        return found

    def _next(self, best: Array, weights: Array, taken: NDArray[np.bool_]) -> tuple[int, float]:
        if not self.doubt:
            return next_of_portfolio(self.scaled, best, weights, ~taken)
        share = np.ones(len(self.rows))
        if taken.any():
            nearest = self.kernel(self.rows, self.rows[taken]).max(axis=1)
            share = np.maximum(1.0 - nearest**SHARED, LEAST_SHARE)
        doubt = self.doubt * np.sqrt(share)[:, None]
        gains = np.exp(log_expected_improvement(self.scaled, doubt, best)) @ weights
        gains[taken] = -1.0
        chosen = int(np.argmax(gains))
        return chosen, float(gains[chosen])


def _wrong(predicted: Array, losses: Array) -> float:
    """The share of pairs that past studies order wrongly, on average over studies; equal results
    say nothing, and equal predictions are half wrong."""
    first, second = np.triu_indices(len(losses), 1)
    truth = np.sign(losses[first] - losses[second])
    guesses = np.sign(predicted[first] - predicted[second])[truth != 0.0]
    if not len(guesses):
        return 0.0
    return float((1.0 - guesses * truth[truth != 0.0, None]).mean() / 2.0)
