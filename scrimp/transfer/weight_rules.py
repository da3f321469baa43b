"""From a fitted model at hand and models of past studies to weights, by the rule of one method."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import MethodError
from scrimp.surrogates.exact_gp import FittedGP
from scrimp.surrogates.surrogate import Array, FittedSurrogate
from scrimp.surrogates.target_transform import FittedTransformed
from scrimp.transfer.dilution import drop_probabilities, keep_by_chance, keep_by_percentile
from scrimp.transfer.source_models import SourceModels
from scrimp.transfer.weights import (
    best_shares,
    bootstrap_losses,
    discordance,
    distance_weights,
    feature_distances,
    leave_one_out_discordance,
    rank_distances,
    sampled_losses,
    uniform_weights,
)

__all__ = ["WeightRule"]

RULES = ("features", "ranks", "ranking", "experts")
DILUTIONS = ("none", "percentile", "percentile-paper", "probabilistic")
DRAWS = ("bootstrap", "posterior")
DISTANCES = ("scaled", "euclidean")
TIES = ("by draws", "shared", "target")
FEWEST = 3  # observations before ranking losses say anything


@dataclass(frozen=True)
class WeightRule:
    """The settings of `TransferSuggester` that concern weights; ``horizon`` is the length of the
    study.

    ``ties``: models that rank best together share the draw, or the study at hand takes it; by
    draws: the former with bootstrap, the latter with posterior draws, as in the two versions of the
    paper.
    """

    rule: str
    dilution: str
    bandwidth: float
    draws: str
    samples: int
    alpha: float
    horizon: int
    distance: str = "scaled"
    ties: str = "by draws"

    def check(self) -> None:
        """Refuse what does not exist."""
        named: tuple[tuple[str, str, tuple[str, ...]], ...] = (
            ("weights", self.rule, RULES),
            ("dilution", self.dilution, DILUTIONS),
            ("draws", self.draws, DRAWS),
            ("distance", self.distance, DISTANCES),
            ("ties", self.ties, TIES),
        )
        for name, value, valid in named:
            if value not in valid:
                raise MethodError(f"{name} is {value!r}; choose one of {', '.join(valid)}")
        if not self.bandwidth > 0.0:
            raise MethodError(f"bandwidth is {self.bandwidth}; it must be above 0")

    def weights_of(
        self,
        target: FittedSurrogate,
        sources: SourceModels,
        features: Mapping[str, float],
        rng: np.random.Generator,
    ) -> Array:
        """Weights (M + 1,) of the past studies and, last, of the study at hand."""
        count, past = len(target.data), len(sources)
        match self.rule:
            case "features":
                return distance_weights(
                    _distances(sources, features, self.distance == "scaled"), self.bandwidth
                )
            case "ranks":
                losses = np.asarray(target.data.y)
                return distance_weights(
                    rank_distances(sources.means(target.data.x), losses), self.bandwidth
                )
            case "experts":
                return np.append(np.full(past, 0.5 / past), 0.5)
        if count < FEWEST:
            return uniform_weights(past)
        losses = self._ranking_losses(target, sources, rng)
        by_draws = "target" if self.draws == "posterior" else "shared"
        return best_shares(
            losses,
            self._kept(losses, count, rng),
            by_draws if self.ties == "by draws" else self.ties,
        )

    def _ranking_losses(
        self, target: FittedSurrogate, sources: SourceModels, rng: np.random.Generator
    ) -> Array:
        """(M + 1, samples)"""
        x, y = target.data.x, np.asarray(target.data.y)
        gp = target.inner if isinstance(target, FittedTransformed) else target
        assert isinstance(gp, FittedGP)
        left_out = gp.leave_one_out()
        if self.draws == "bootstrap":
            own = leave_one_out_discordance(left_out.mean[:, 0], y)
            return bootstrap_losses(
                np.concatenate([discordance(sources.means(x), y), own[None]]), self.samples, rng
            )
        assert left_out.variance is not None
        drawn = np.stack([model.samples(x, self.samples, rng) for model in sources.models])
        noise = rng.standard_normal((self.samples, len(y)))
        own_draws = left_out.mean[:, 0] + noise * np.sqrt(left_out.variance)
        truth = y[:, None] < y[None, :]
        own_losses = ((own_draws[:, :, None] < y) ^ truth).sum(axis=(1, 2)).astype(float)
        return np.vstack([sampled_losses(drawn, y), own_losses])

    def _kept(
        self, losses: Array, count: int, rng: np.random.Generator
    ) -> NDArray[np.bool_] | None:
        match self.dilution:
            case "percentile" | "percentile-paper":
                return keep_by_percentile(losses, equal=self.dilution == "percentile-paper")
            case "probabilistic":
                return keep_by_chance(
                    drop_probabilities(losses, count, self.horizon, self.alpha), rng
                )
        return None


def _distances(sources: SourceModels, features: Mapping[str, float], scaled: bool) -> Array:
    """Distances of meta-features that all studies have; all studies are alike where there are
    none."""
    shared = [
        name for name in features if all(name in model.study.features for model in sources.models)
    ]
    if not shared:
        return np.zeros(len(sources))
    past = np.array([[model.study.features[name] for name in shared] for model in sources.models])
    return feature_distances(past, np.array([features[name] for name in shared]), scaled)
