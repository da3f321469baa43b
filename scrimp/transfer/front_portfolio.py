"""Which configurations a study of several metrics begins with: those that widen the fronts which
past studies predict.

Of past study i, the predictions of the metrics that it has are brought to the extent of the front
that it predicts over the candidates, 0 for its best and 1 for its worst, and hypervolumes are
measured from 1.1:

    x* = argmax over x of  sum_i w_i (hypervolume of the chosen ones and x - hypervolume of the chosen ones) / hypervolume of all

which is the greedy portfolio of `portfolio`, with a front in place of a best value. The weights
w_i = exp(-2 (discordant pairs - fewest) / (n - 1)) follow how well a study orders what was seen, in
the mean over its metrics.

    FrontPortfolio.of((error, latency)).next(taken, weights)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.fronts.boxes import open_boxes
from scrimp.fronts.dominance import non_dominated
from scrimp.fronts.hypervolume import hypervolume
from scrimp.surrogates.surrogate import Array
from scrimp.transfer.weights import ordering_errors

__all__ = ["FrontPortfolio"]

BEYOND = 1.1
LEAST_GAIN = 1e-9
MOST_OF_FRONT = 64  # points of a predicted front that its hypervolume is taken of

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FrontPortfolio:
    """What each past study predicts of C candidates, scaled to its own front: ``scaled[i]`` (C, m_i)
    for the ``metrics[i]`` that it has, and ``whole`` (M,), the hypervolume of that front."""

    names: tuple[str, ...]
    metrics: tuple[tuple[int, ...], ...]
    scaled: tuple[Array, ...]
    whole: Array

    @staticmethod
    def of(predicted: Sequence[Mapping[str, Array]]) -> "FrontPortfolio":
        """From the losses (C,) that past studies predict of the candidates, by study, for each
        metric."""
        names = tuple(dict.fromkeys(name for each in predicted for name in each))
        metrics, scaled, whole = [], [], []
        for name in names:
            own = tuple(place for place, each in enumerate(predicted) if name in each)
            losses = _to_front(np.column_stack([predicted[place][name] for place in own]))
            front = losses[non_dominated(losses)]
            front = front[:: max(1, len(front) // MOST_OF_FRONT)]
            metrics.append(own)
            scaled.append(losses)
            whole.append(hypervolume(front, np.full(len(own), BEYOND)))
        return FrontPortfolio(names, tuple(metrics), tuple(scaled), np.array(whole))

    def next(self, taken: Mask, weights: Array) -> int | None:
        """The candidate that adds most, in the mean by ``weights`` (M,), to what those that are
        ``taken`` (C,) reach; None where nothing is gained."""
        gains = np.zeros(len(taken))
        for losses, whole, weight in zip(self.scaled, self.whole, weights, strict=True):
            gains += weight * _added(losses, losses[taken]) / max(whole, 1e-12)
        gains[taken] = -1.0
        chosen = int(np.argmax(gains))
        return chosen if gains[chosen] > LEAST_GAIN else None

    def agreement(self, seen: NDArray[np.intp], losses: Array) -> Array:
        """Weights (M,) of the past studies by their predictions at the candidates ``seen`` (n,),
        which turned out to have these losses (n, m)."""
        count = len(seen)
        if count < 2:
            return np.full(len(self.names), 1.0 / len(self.names))
        wrong = np.zeros(len(self.names))
        for place, (metrics, scaled) in enumerate(zip(self.metrics, self.scaled, strict=True)):
            each = [
                ordering_errors(scaled[seen, column][:, None], losses[:, metric])[0]
                for column, metric in enumerate(metrics)
            ]
            wrong[place] = np.mean(each)
        weights = np.exp(-2.0 * (wrong - wrong.min()) / (count - 1))
        return np.asarray(weights / weights.sum())


def _to_front(losses: Array) -> Array:
    """Losses (C, m) with the extent of their front brought to [0, 1]; where it has none in a
    metric, the extent of all."""
    front = losses[non_dominated(losses)]
    low, wide = front.min(axis=0), np.ptp(front, axis=0)
    wide = np.where(wide > 0, wide, np.ptp(losses, axis=0))
    return np.asarray((losses - low) / np.where(wide > 0, wide, 1.0))


def _added(losses: Array, chosen: Array) -> Array:
    """What each of the losses (C, m) adds to the hypervolume of the chosen ones (k, m), (C,)."""
    reference = np.full(losses.shape[1], BEYOND)
    if losses.shape[1] == 1:
        best = float(np.min(chosen, initial=BEYOND))
        return np.asarray(np.maximum(best - losses[:, 0], 0.0))
    boxes = open_boxes(chosen, reference)
    total = np.zeros(len(losses))
    for low, high in zip(boxes.lower, boxes.upper, strict=True):
        total += np.maximum(high - np.maximum(low, losses), 0.0).prod(axis=1)
    return total
