"""Weights of M past studies and, last, of the new study: (M + 1,), summing to 1.

*Distance* (TST, TAF). The Epanechnikov kernel of a distance u = distance / bandwidth between
studies; the new study has distance 0:

    kappa(u) = 3/4 (1 - u^2) where u < 1, else 0

The distance is Euclidean between meta-features, or the share of discordant pairs: pairs of
evaluated configurations that the model of a past study orders differently from the losses.

*Ranking loss* (RGPE). The number of ordered pairs that a model gets wrong, L(f) = sum_jk
[(f_j < f_k) xor (y_j < y_k)]. The model of the new study is judged by leave-one-out means,
f_-j(x_j) against y_k. The weight of a model is the share of S draws in which its loss is lowest;
draws resample the evaluated configurations, or come from the posteriors.

*Dilution* (RGPE). Many mediocre past studies with small weights can outvote the model of the new
study. Two rules drop some of them:

    percentile      drop i if the median of its losses is at least the 95th percentile of the new
                    study's (2018, the authors' code; "percentile-paper": only if above, the text)
    probabilistic   drop i with probability 1 - (1 - n / H) share_s(L_i < L_t) / (1 + alpha)
                    (2022): at the horizon H of n evaluations every past study is dropped

*Experts* (products of experts). 1/2 for the new study, the rest shared; the variances of the
models come in later (`combinations`).

    WeightRule("ranking", "probabilistic", 0.1, "bootstrap", 100, 0.0, 50).weights_of(...)

Wistuba, Schilling, Schmidt-Thieme, Two-stage transfer surrogate model, 2016; Feurer, Letham,
Hutter, Bakshy, Practical transfer learning for Bayesian optimization, 2018 and 2022.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.plugins.settings import above, at_least, check_settings, choices, setting
from scrimp.surrogates.budget_levels import pairwise_loss
from scrimp.surrogates.surrogate import Array, FittedSurrogate
from scrimp.surrogates.target_transform import process_of
from scrimp.transfer.past import SourceModels

MIN_OBSERVATIONS_TO_RANK = 3
"""With fewer observations ranking losses mean little, and weights are equal (Feurer et al., 2022)."""

WITH_RANKING = ("weights", ("ranking",))
"""Weights that come from ranking losses."""

WITH_DROPPING = (WITH_RANKING, ("dilution", ("probabilistic",)))
"""Weights whose past studies are dropped with a probability."""

MIN_WEIGHT_NOTED = 5e-5
"""Weights that round to 0 in four digits are left out of the record of a decision."""


@dataclass(frozen=True)
class WeightRule:
    """The settings of `TransferSuggester` that concern weights.

    ``weights``: by features, ranks, ranking losses, or as experts. ``bandwidth`` of features and
    ranks. ``draws``: bootstrap or posterior, and ``samples`` their number. ``alpha`` and
    ``horizon``: of the probabilistic dilution; the horizon is the expected number of trials of the
    new study, None for its n_trials, or 50. ``distance`` of features. ``ties``: models with the
    lowest loss share the draw, or the new study takes it; "by draws" shares with bootstrap and
    gives it to the new study with posterior draws, as the two versions of the paper do.
    """

    weights: str = setting(
        "ranking",
        choices("features", "ranks", "ranking", "experts"),
        only_with=("experts", ("single", "entropy")),
    )
    dilution: str = setting(
        "none",
        choices("none", "percentile", "percentile-paper", "probabilistic"),
        only_with=WITH_RANKING,
    )
    bandwidth: float = setting(0.1, above(0), only_with=("weights", ("features", "ranks")))
    draws: str = setting(
        "bootstrap", choices("bootstrap", "posterior"), paper=True, only_with=WITH_RANKING
    )
    samples: int = setting(100, at_least(1), only_with=WITH_RANKING)
    alpha: float = setting(0.0, at_least(0), only_with=WITH_DROPPING)
    horizon: int | None = setting(None, at_least(1), only_with=WITH_DROPPING)
    distance: str = setting(
        "scaled",
        choices("scaled", "euclidean"),
        paper=True,
        only_with=("weights", ("features",)),
    )
    ties: str = setting(
        "by draws", choices("by draws", "shared", "target"), paper=True, only_with=WITH_RANKING
    )

    def __post_init__(self) -> None:
        check_settings(self)

    def weights_of(
        self,
        target: FittedSurrogate,
        sources: SourceModels,
        features: Mapping[str, float],
        rng: np.random.Generator,
    ) -> Array:
        """Weights (M + 1,) given the model of the new study and those of the past studies."""
        count, past = len(target.data), len(sources)
        match self.weights:
            case "features":
                known = [model.study.features for model in sources.models]
                shared = [name for name in features if all(name in each for each in known)]
                values = np.array([[each[name] for name in shared] for each in (*known, features)])
                distances = feature_distances(values[:-1], values[-1], self.distance == "scaled")
                return distance_weights(distances, self.bandwidth)
            case "ranks":
                distances = rank_distances(sources.means(target.data.x), target.data.y)
                return distance_weights(distances, self.bandwidth)
            case "experts":
                return np.append(np.full(past, 0.5 / past), 0.5)
        if count < MIN_OBSERVATIONS_TO_RANK:
            return np.full(past + 1, 1.0 / (past + 1))
        losses = self._ranking_losses(target, sources, rng)
        ties = self.ties
        if ties == "by draws":
            ties = "target" if self.draws == "posterior" else "shared"
        return best_shares(losses, self._kept(losses, count, rng), ties)

    def _ranking_losses(
        self, target: FittedSurrogate, sources: SourceModels, rng: np.random.Generator
    ) -> Array:
        """Return the ranking losses (M + 1, samples) of all models, the new study's last."""
        x, y = target.data.x, target.data.y
        left_out = process_of(target).leave_one_out()
        if self.draws == "bootstrap":
            own = discordance(left_out.mean[:, 0], y, against=y)
            wrong = np.concatenate([discordance(sources.means(x).T, y), own[None]])
            return bootstrap_losses(wrong, self.samples, rng)
        drawn = [model.samples(x, self.samples, rng) for model in sources.models]
        noise = rng.standard_normal((self.samples, len(y)))
        own_draws = left_out.mean[:, 0] + noise * np.sqrt(left_out.variance)
        each = [discordance(draws, y) for draws in drawn]
        each.append(discordance(own_draws, y, against=y))
        return np.array([wrong.sum(axis=(1, 2)) for wrong in each], dtype=float)

    def _kept(
        self, losses: Array, count: int, rng: np.random.Generator
    ) -> NDArray[np.bool_] | None:
        """The past studies that dilution leaves (M,); None for all."""
        match self.dilution:
            case "percentile" | "percentile-paper":
                return keep_by_percentile(losses, equal=self.dilution == "percentile-paper")
            case "probabilistic":
                dropped = drop_probabilities(losses, count, self.horizon or 50, self.alpha)
                return np.asarray(rng.random(len(dropped)) >= dropped)
        return None


# --- distances ------------------------------------------------------------------------------------


def epanechnikov(ratio: Array) -> Array:
    """3/4 (1 - u^2) for u < 1, else 0.

    >>> epanechnikov(np.array([0.0, 0.5, 1.0])).tolist()
    [0.75, 0.5625, 0.0]
    """
    return np.where(ratio < 1.0, 0.75 * (1.0 - ratio * ratio), 0.0)


def distance_weights(distances: Array, bandwidth: float) -> Array:
    """Weights (M + 1,) of past studies at these distances (M,); the new study has distance 0."""
    kernel = np.append(epanechnikov(distances / bandwidth), epanechnikov(np.zeros(1)))
    return np.asarray(kernel / kernel.sum())


def feature_distances(past: Array, present: Array, scaled: bool = True) -> Array:
    """Euclidean distances (M,) between meta-features of past studies (M, f) and of the new one
    (f,); zeros without any.

    ``scaled``: every feature is scaled to [0, 1] over all studies first, and distances are divided
    by sqrt(f), so that a bandwidth means the same for any number of features.
    """
    units = np.vstack([past, present])
    if scaled:
        spread = np.ptp(units, axis=0)
        units = (units - units.min(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    squares = ((units[:-1] - units[-1]) ** 2).sum(axis=1)
    return np.asarray(np.sqrt(squares / max(len(present), 1) if scaled else squares))


def rank_distances(predictions: Array, losses: Array) -> Array:
    """The share of discordant pairs (M,), of n (n - 1) / 2; zeros while there are no pairs."""
    if len(losses) < 2:
        return np.zeros(predictions.shape[1])
    return pairwise_loss(predictions.T, losses)


# --- ranking losses -------------------------------------------------------------------------------


def discordance(
    predictions: Array, losses: Array, against: Array | None = None
) -> NDArray[np.bool_]:
    """True for each ordered pair (j, k) that predictions (..., n) get wrong, (..., n, n).

    ``against``: compares the prediction of j with this value of k instead. Leave-one-out means are
    compared with the losses (n,) themselves, because the prediction without j knows that of k.
    """
    others = predictions[..., None, :] if against is None else against
    return np.asarray((predictions[..., :, None] < others) ^ (losses[:, None] < losses))


def bootstrap_losses(wrong: Array, draws: int, rng: np.random.Generator) -> Array:
    """Ranking losses (K, S) of K models with discordances (K, n, n), on S resamples of the
    configurations that all models share.

    A resample that takes configuration j c_j times has the loss sum_jk c_j c_k wrong_jk.
    """
    count = wrong.shape[1]
    taken = rng.multinomial(count, np.full(count, 1.0 / count), size=draws).astype(float)  # (S, n)
    return np.asarray(np.einsum("ksn,sn->ks", taken @ wrong, taken))


def best_shares(
    losses: Array, kept: NDArray[np.bool_] | None = None, ties: str = "shared"
) -> Array:
    """Weights (M + 1,) by losses (M + 1, S): the share of draws in which each model is best, ties
    ``shared`` or given to the ``target``.

    ``kept`` (M,): a past study that is not kept gets the loss 2 max + 1, so it is never best.
    """
    if kept is not None:
        losses = losses.copy()
        losses[:-1][~kept] = 2.0 * losses.max() + 1.0
    best = losses == losses.min(axis=0)
    if ties == "target":
        best[:-1, best[-1]] = False
    return np.asarray((best / best.sum(axis=0)).mean(axis=1))


# --- dilution: losses (M + 1, S), the new study last; it is never dropped -------------------------


def keep_by_percentile(losses: Array, equal: bool = False) -> NDArray[np.bool_]:
    """True (M,) where the median loss of a past study lies below the 95th percentile of the new
    study's losses (Feurer et al., 2018), or is ``equal`` to it."""
    medians, limit = np.median(losses[:-1], axis=1), np.percentile(losses[-1], 95.0)
    return np.asarray(medians <= limit if equal else medians < limit)


def drop_probabilities(losses: Array, count: int, horizon: int, alpha: float = 0.0) -> Array:
    """p_drop (M,) after ``count`` evaluations of ``horizon``.

    >>> drop_probabilities(np.array([[1.0, 1.0], [3.0, 1.0], [2.0, 2.0]]), count=5, horizon=10).tolist()
    [0.5, 0.75]
    """
    wins = (losses[:-1] < losses[-1]).mean(axis=1)
    left = max(0.0, 1.0 - count / horizon)
    return np.asarray(1.0 - left * wins / (1.0 + alpha))


# --- weights in decisions and records -------------------------------------------------------------


def with_min_weight(weights: Array, least: float = 1e-6) -> Array:
    """Weights in which the new study counts at least ``least``, so that its model decides where
    all past models are flat.

    >>> with_min_weight(np.array([1.0, 0.0])).round(7).tolist()
    [0.999999, 1e-06]
    """
    floored = np.append(weights[:-1], max(float(weights[-1]), least))
    return np.asarray(floored / floored.sum())


THIS_STUDY = "this study"
"""The name of the new study among the recorded weights."""


def weight_notes(names: tuple[str, ...], weights: Array) -> dict[str, float]:
    """Weights by the name of the past study, and last of "this study", for the record of a
    decision; past studies whose weight rounds to 0 are left out."""
    listed = zip((*names, THIS_STUDY), weights, strict=True)
    return {
        name: round(float(weight), 4)
        for name, weight in listed
        if weight >= MIN_WEIGHT_NOTED or name == THIS_STUDY
    }
