"""First configurations from past studies: a greedy portfolio, with weights, doubt, and fronts.

N_i(x) is the prediction of past study i for candidate x, scaled to [0, 1] over the candidates; c_i
is its best value among the configurations chosen so far, 1 before the first.

*Greedy.* Each configuration adds the most improvement over all past studies: the first is the best
on average, the next helps the studies that the first served badly.

    x* = argmax_x  sum_i w_i max(0, c_i - N_i(x)),      w_i = 1 / M

*Adaptive.* Past studies count by how well they order the results so far; ``rate`` is 2, or 4 with
doubt:

    w_i ~ exp(-rate (discordant pairs_i - fewest) / (n - 1))

*Doubt.* The new study is one of the past ones up to an error that only close neighbours share:

    x* = argmax_x  sum_i w_i E max(0, c_i - N_i(x) - e(x)),      e(x) ~ N(0, s(x)^2)
    s(x)^2 = doubt^2 (1 - k(x)^32),      k(x): kernel between x and the nearest configuration tried

So a configuration that is good in many studies comes before one that is very good in a single study.
With doubt the portfolio also ends as soon as past studies order at least three results no better
than chance.

*Fronts.* With several metrics, the predictions of each past study are scaled so that its predicted
front extends from 0 to 1, and hypervolumes are measured from 1.1:

    x* = argmax_x  sum_i w_i (hypervolume(chosen and x) - hypervolume(chosen)) / hypervolume(all)

Wistuba, Schilling, Schmidt-Thieme, Sequential model-free hyperparameter tuning, 2015; Feurer et
al., Practical transfer learning for Bayesian optimization, 2022. Doubt and fronts are our own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.domain import Domain, contains_rows, nearest_in_pool
from scrimp.acquisition.improvement import log_expected_improvement
from scrimp.encoding.encoding import Encoding
from scrimp.encoding.training_data import Training
from scrimp.fronts.dominance import non_dominated
from scrimp.fronts.hypervolume import hypervolume, open_boxes
from scrimp.gp.kernel import Kernel
from scrimp.json_values import Config
from scrimp.surrogates.budget_levels import discordant_pairs
from scrimp.surrogates.surrogate import Array
from scrimp.transfer.past import Past, SourceModels
from scrimp.transfer.source_study import SourceStudy

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class PortfolioNumbers:
    """Numbers of the portfolios. "Families": measured on twelve model families (notebook, Families
    never seen)."""

    max_candidates: int = 1024
    """Candidates from past studies in a continuous space: bounds the time of a decision."""
    min_candidates_per_study: int = 4
    """Candidates that even one of very many past studies contributes (convention)."""
    min_gain: float = 1e-9
    """Gain below which every past study has its best (rounding)."""
    rate: float = 2.0
    """Decay of a study's weight with its discordant pairs (measured on the SVM table)."""
    rate_with_doubt: float = 4.0
    """``rate`` with doubt (Families)."""
    neighbour_power: int = 32
    """Power of the kernel by which neighbours share an error (Families: chosen by nine in ten)."""
    min_own_error: float = 1e-4
    """Share of the error variance that even the closest neighbour has of its own (stability)."""
    min_results_to_judge: int = 3
    """Results from which on the past may be found no better than chance (Families)."""
    chance: float = 0.5
    """Share of discordant pairs of random predictions."""
    front_reference: float = 1.1
    """Reference point of hypervolumes, where a predicted front extends to 1 (convention)."""
    max_front_points: int = 64
    """Points of a predicted front whose hypervolume is computed: bounds its time."""


NUMBERS = PortfolioNumbers()


# --- candidates and predictions -------------------------------------------------------------------


def best_first(study: SourceStudy) -> Array:
    """Configurations (n, d) of a past study, the best by its first metric first."""
    return study.x[np.argsort(study.y, kind="stable")]


def candidate_rows(
    domain: Domain,
    past: tuple[SourceStudy, ...],
    order: Callable[[SourceStudy], Array] = best_first,
) -> Array:
    """Candidates (C, d): all rows of a pool; otherwise the first configurations of each past study
    in this ``order``, moved to legal values."""
    if domain.pool is not None:
        return domain.pool
    share = max(NUMBERS.min_candidates_per_study, NUMBERS.max_candidates // max(len(past), 1))
    return np.unique(domain.snap(np.concatenate([order(study)[:share] for study in past])), axis=0)


def with_observed(rows: Array, models: SourceModels) -> Array:
    """Losses (C, M) of each past study at rows (C, d): observed where it tried them, predicted by
    its model elsewhere."""
    losses = models.losses(rows)
    for place, model in enumerate(models.models):
        observed = dict(zip(map(_key, model.study.x), model.study.y.tolist(), strict=True))
        for row, x in enumerate(rows):
            losses[row, place] = observed.get(_key(x), losses[row, place])
    return losses


def _key(row: Array) -> bytes:
    return np.round(row, 9).tobytes()


def scaled_predictions(means: Array) -> Array:
    """Predictions (C, M), each past study's scaled to [0, 1] over the candidates."""
    low = means.min(axis=0)
    width = np.ptp(means, axis=0)
    return np.asarray((means - low) / np.where(width > 0.0, width, 1.0))


def agreement_weights(predicted: Array, losses: Array, rate: float = NUMBERS.rate) -> Array:
    """Weights (M,) of past studies by their predictions (n, M) for results with losses (n,)."""
    if len(losses) < 2:
        return np.full(predicted.shape[1], 1.0 / predicted.shape[1])
    return _error_weights(discordant_pairs(predicted.T, losses), len(losses), rate)


def _error_weights(wrong: Array, count: int, rate: float) -> Array:
    """Weights (M,) by discordant pairs (M,) of ``count``: exp(-rate (wrong - fewest) / (n - 1))."""
    weights = np.exp(-rate * (wrong - wrong.min()) / (count - 1))
    return np.asarray(weights / weights.sum())


# --- greedy ---------------------------------------------------------------------------------------


def greedy_portfolio(scaled: Array, count: int, taken: Mask | None = None) -> list[int]:
    """The first ``count`` candidates of the greedy portfolio; ``taken`` (C,) are left out, and
    count as chosen.

    Once every past study has its best, the portfolio starts again with the remaining candidates.
    """
    free = np.ones(len(scaled), dtype=bool) if taken is None else ~taken
    weights = np.full(scaled.shape[1], 1.0 / scaled.shape[1])
    best = np.ones(scaled.shape[1]) if free.all() else scaled[~free].min(axis=0)
    found: list[int] = []
    while len(found) < count and free.any():
        gains = np.maximum(best - scaled, 0.0) @ weights
        if gains[free].max() <= NUMBERS.min_gain:
            best = np.full(scaled.shape[1], scaled[free].max() + 1.0)
            gains = np.maximum(best - scaled, 0.0) @ weights
        found.append(int(np.argmax(np.where(free, gains, -1.0))))
        free[found[-1]] = False
        best = np.minimum(best, scaled[found[-1]])
    return found


def portfolio_configs(
    past: Past,
    models: SourceModels,
    encoding: Encoding,
    known: Array,
    count: int,
    observed: bool = False,
) -> list[Config]:
    """The next ``count`` configurations of the greedy portfolio that are not among the ``known``
    rows (k, d); by predictions alone, or by ``observed`` losses where past studies have them."""
    if count <= 0 or not len(past):
        return []
    rows = candidate_rows(encoding.domain, past.studies)
    scaled = scaled_predictions(with_observed(rows, models) if observed else models.means(rows))
    return encoding.decode(rows[greedy_portfolio(scaled, count, contains_rows(rows, known))])


# --- adaptive, with doubt -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AdaptivePortfolio:
    """The adaptive portfolio over candidates ``rows`` (C, d) with scaled predictions (C, M); a
    ``kernel`` of unit variance measures how close configurations are.

    AdaptivePortfolio(rows, scaled, kernel, doubt=0.1).next_rows(training, 1)
    """

    rows: Array
    scaled: Array
    kernel: Kernel
    doubt: float = 0.0

    def next_rows(self, training: Training, count: int) -> list[int]:
        """The next ``count`` candidates; fewer once no past study gains anything, none if past
        studies order the results no better than chance."""
        if count <= 0:
            return []
        predicted = self.scaled[nearest_in_pool(training.x, self.rows)]
        told = ~training.failed
        judged = bool(self.doubt) and int(told.sum()) >= NUMBERS.min_results_to_judge
        if judged and _discordant_share(predicted[told], training.y[told, 0]) > NUMBERS.chance:
            return []
        rate = NUMBERS.rate_with_doubt if self.doubt else NUMBERS.rate
        weights = agreement_weights(predicted, training.y[:, 0], rate)
        taken = contains_rows(self.rows, training.known)
        return _one_by_one(lambda taken: self._gains(taken, weights), taken, count)

    def _gains(self, taken: Mask, weights: Array) -> Array:
        """The expected gain (C,) of every candidate over those that are ``taken`` (C,)."""
        best = self.scaled[taken].min(axis=0) if taken.any() else np.ones(len(weights))
        if not self.doubt:
            return np.maximum(best - self.scaled, 0.0) @ weights
        share = np.ones(len(self.rows))
        if taken.any():
            nearest = self.kernel(self.rows, self.rows[taken]).max(axis=1)
            share = np.maximum(1.0 - nearest**NUMBERS.neighbour_power, NUMBERS.min_own_error)
        doubt = self.doubt * np.sqrt(share)[:, None]
        return np.exp(log_expected_improvement(self.scaled, doubt, best)) @ weights


def _one_by_one(gains: Callable[[Mask], Array], taken: Mask, count: int) -> list[int]:
    """Choose ``count`` candidates, each with the highest gain (C,) given those ``taken`` (C,) before
    it; fewer once nothing is gained."""
    found: list[int] = []
    while len(found) < count:
        each = np.where(taken, -1.0, gains(taken))
        chosen = int(np.argmax(each))
        if each[chosen] <= NUMBERS.min_gain:
            break
        found.append(chosen)
        taken[chosen] = True
    return found


def _discordant_share(predicted: Array, losses: Array) -> float:
    """The share of discordant pairs, on average over past studies. Pairs with equal losses do not
    count, and equal predictions are half wrong."""
    first, second = np.triu_indices(len(losses), 1)
    truth = np.sign(losses[first] - losses[second])
    guesses = np.sign(predicted[first] - predicted[second])[truth != 0.0]
    if not len(guesses):
        return 0.0
    return float((1.0 - guesses * truth[truth != 0.0, None]).mean() / 2.0)


# --- fronts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FrontPortfolio:
    """The portfolio of a study of several metrics over candidates ``rows`` (C, d).

    The predictions of each past study are scaled to its own predicted front: ``scaled[i]`` (C, m_i)
    for the ``metrics[i]`` that it has. ``whole`` (M,): the hypervolume of that front.

    FrontPortfolio.of(rows, (error, latency)).next_rows(training, 1)
    """

    rows: Array
    names: tuple[str, ...]
    metrics: tuple[tuple[int, ...], ...]
    scaled: tuple[Array, ...]
    whole: Array

    @staticmethod
    def of(rows: Array, predicted: Sequence[Mapping[str, Array]]) -> "FrontPortfolio":
        """Build the portfolio from predicted losses (C,): for each metric by past study."""
        names = tuple(dict.fromkeys(name for each in predicted for name in each))
        metrics, scaled, whole = [], [], []
        for name in names:
            own = tuple(place for place, each in enumerate(predicted) if name in each)
            losses = _to_front(np.column_stack([predicted[place][name] for place in own]))
            front = losses[non_dominated(losses)]
            front = front[:: max(1, len(front) // NUMBERS.max_front_points)]
            metrics.append(own)
            scaled.append(losses)
            whole.append(hypervolume(front, np.full(len(own), NUMBERS.front_reference)))
        return FrontPortfolio(rows, names, tuple(metrics), tuple(scaled), np.array(whole))

    def next_rows(self, training: Training, count: int) -> list[int]:
        """The next ``count`` candidates; fewer once no past study gains anything. Past studies are
        weighted by the trials that reported all metrics."""
        if count <= 0:
            return []
        whole = np.isfinite(training.y).all(axis=1) & ~training.failed
        seen = nearest_in_pool(training.x[whole], self.rows)
        weights = self.agreement(seen, training.y[whole])
        taken = contains_rows(self.rows, training.known)
        return self.next(taken, weights, count)

    def next(self, taken: Mask, weights: Array, count: int = 1) -> list[int]:
        """The candidates that add most to the hypervolume of those that are ``taken`` (C,), on
        average, weighted by ``weights`` (M,)."""

        def gains(taken: Mask) -> Array:
            total = np.zeros(len(taken))
            for losses, whole, weight in zip(self.scaled, self.whole, weights, strict=True):
                total += weight * _added(losses, losses[taken]) / max(whole, 1e-12)
            return total

        return _one_by_one(gains, taken, count)

    def agreement(self, seen: NDArray[np.intp], losses: Array) -> Array:
        """Weights (M,) of past studies by their predictions at the candidates ``seen`` (n,), whose
        losses are (n, m); discordant pairs are averaged over the metrics of a study."""
        count = len(seen)
        if count < 2:
            return np.full(len(self.names), 1.0 / len(self.names))
        wrong = np.zeros(len(self.names))
        for place, (metrics, scaled) in enumerate(zip(self.metrics, self.scaled, strict=True)):
            each = [
                discordant_pairs(scaled[seen, column][None], losses[:, metric])[0]
                for column, metric in enumerate(metrics)
            ]
            wrong[place] = np.mean(each)
        return _error_weights(wrong, count, NUMBERS.rate)


def _to_front(losses: Array) -> Array:
    """Losses (C, m), scaled so that their front extends from 0 to 1; in a metric in which it has no
    extent, all losses do."""
    front = losses[non_dominated(losses)]
    low, wide = front.min(axis=0), np.ptp(front, axis=0)
    wide = np.where(wide > 0, wide, np.ptp(losses, axis=0))
    return np.asarray((losses - low) / np.where(wide > 0, wide, 1.0))


def _added(losses: Array, chosen: Array) -> Array:
    """The hypervolume (C,) that each of the losses (C, m) adds to that of the chosen ones (k, m)."""
    reference = np.full(losses.shape[1], NUMBERS.front_reference)
    if losses.shape[1] == 1:
        best = float(np.min(chosen, initial=NUMBERS.front_reference))
        return np.asarray(np.maximum(best - losses[:, 0], 0.0))
    boxes = open_boxes(chosen, reference)
    total = np.zeros(len(losses))
    for low, high in zip(boxes.lower, boxes.upper, strict=True):
        total += np.maximum(high - np.maximum(low, losses), 0.0).prod(axis=1)
    return total


Portfolio = AdaptivePortfolio | FrontPortfolio
"""Both have candidates ``rows`` (C, d) and `next_rows`."""
