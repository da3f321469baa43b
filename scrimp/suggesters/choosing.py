"""The last step of every model-based decision: maximise, one configuration after the other, and say
why.

    configs, reason = Choice(acquisition, models, training, encoding).best(count, rng)

A method with a search of its own hands `best_in_turn` what finds the next point.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.acquisition import Acquisition, BoundAcquisition
from scrimp.acquisition.context import Context
from scrimp.acquisition.maximize import Found, MaximizeSettings, Search, maximize_acquisition
from scrimp.acquisition.noisy_front import drawn_exactly, uncertain_rows
from scrimp.acquisition.pending import fantasise
from scrimp.encoding.encoding import Encoding
from scrimp.encoding.training_data import Training
from scrimp.fronts.dominance import crowding_distances, non_dominated
from scrimp.history.events import Config
from scrimp.history.notes import Expected, Modelled, Rival
from scrimp.suggesters.model_fitting import Models, is_objective, length_scales
from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = ["Choice", "best_in_turn", "front_rows", "lonely_rows", "reason_of"]

USUAL = MaximizeSettings()

ANCHORS_OF_FRONT = 12
"""Points of a front that a search looks around, where there are several metrics."""

NOISY_FRONT = 0.05
"""The noise variance of a metric, as a share of the variance of its losses, from which the front is
drawn at random rather than taken from the means."""

FRONT_DRAWS = 8
"""Fronts that are drawn where losses are noisy: each has boxes of its own, and costs as much as all
of a decision without noise."""

SHOWN = 5
"""The best points of a search that are decoded: the winner and what competed with it."""


def best_in_turn(
    encoding: Encoding,
    pending: Array,
    count: int,
    find: Callable[[Array], Found],
    model: FittedSurrogate,
    as_row: Callable[[Array], Array] = np.asarray,
) -> tuple[list[Config], Modelled | None]:
    """``count`` configurations, fewer where nothing is left, and the reason for the first.

    ``find`` maximises with these rows under evaluation; each configuration joins them as ``as_row``
    of its encoding (1, d). ``model``: whose expectation is noted.
    """
    configs: list[Config] = []
    reason: Modelled | None = None
    for _ in range(count):
        found = find(pending)
        if not len(found.x):
            break
        decoded = encoding.decode(found.x[:SHOWN])
        if not configs:
            reason = reason_of(model, found, decoded)
        configs.append(decoded[0])
        pending = np.vstack([pending, as_row(encoding.encode(decoded[:1]))])
    return configs, reason


@dataclass(frozen=True)
class Choice:
    """An acquisition, the models it is bound to, and where to look for its best.

    ``loss``: the model that decides in place of that of the loss. ``seed``: what candidates follow
    from, so that models of past studies meet the same ones at every decision; None draws them anew.
    """

    acquisition: Acquisition
    models: Models
    training: Training
    encoding: Encoding
    loss: FittedSurrogate | None = None
    fantasies: int = 16
    incumbent: str = "mean"
    cost_exponent: float = 1.0
    settings: MaximizeSettings = USUAL
    seed: int | None = None

    def best(self, count: int, rng: np.random.Generator) -> tuple[list[Config], Modelled | None]:
        """``count`` configurations, each with those before it under evaluation, and the reason for
        the first."""

        def find(pending: Array) -> Found:
            score = self.score(pending, rng)
            drawn = rng if self.seed is None else np.random.default_rng(self.seed)
            return maximize_acquisition(score, self.encoding.domain, drawn, self._search(pending))

        pending, loss = self.training.pending, self._fitted()["loss"]
        return best_in_turn(self.encoding, pending, count, find, loss)

    def score(self, pending: Array, rng: np.random.Generator) -> BoundAcquisition:
        """The acquisition tied to the models, averaged over what the running evaluations may turn
        out to be."""
        fitted = self._fitted()
        uncertain = self._uncertain(rng)
        count = min(self.fantasies, FRONT_DRAWS) if len(uncertain) else self.fantasies
        for name, model in fitted.items():
            if len(uncertain) and is_objective(name):
                rows = np.unique(np.concatenate([uncertain, pending]), axis=0)
                fitted[name] = drawn_exactly(model, rows, count, rng)
            elif len(pending) and name != "cost":
                fitted[name] = fantasise(model, pending, count, rng)
        context = Context(
            evaluated=self.models.evaluated,
            pending=pending if len(pending) else None,
            feasible=self.models.feasible,
            incumbent=self.incumbent,
            settings={"seed": float(rng.integers(2**31)), "cost_exponent": self.cost_exponent},
            bands=self.models.bands,
        )
        return self.acquisition.bind(fitted, context)

    def _uncertain(self, rng: np.random.Generator) -> Array:
        """The evaluated inputs (k, d) whose place on a front of several metrics is uncertain: none
        where the losses are told without noise."""
        objectives = self.models.objectives
        nothing: Array = self.models.evaluated[:0]
        if not self.models.further or self.loss is not None:
            return nothing
        if any(len(model.members) > 1 for model in objectives):
            return nothing  # samples of hyperparameters have fronts of their own
        if all(noise_share(model) < NOISY_FRONT for model in objectives):
            return nothing
        feasible = self.models.feasible
        rows = self.models.evaluated if feasible is None else self.models.evaluated[feasible]
        return uncertain_rows(objectives, rows, rng) if len(rows) else nothing

    def _fitted(self) -> dict[str, FittedSurrogate]:
        fitted = dict(self.models.fitted)
        return fitted if self.loss is None else {**fitted, "loss": self.loss}

    def _search(self, pending: Array) -> Search:
        """Around the best evaluations, away from what is known."""
        models, training = self.models, self.training
        if models.further:
            anchors, scales = front_rows(models, ANCHORS_OF_FRONT), self._shared_scales()
        else:
            anchors = models.evaluated[np.argsort(models.losses, kind="stable")[:5]]
            scales = length_scales(models.fitted["loss"], self.encoding.dimension)
        return Search(
            anchors=anchors,
            excluded=None if training.repeatable else np.vstack([training.known, pending]),
            scales=scales,
            settings=self.settings,
        )

    def _shared_scales(self) -> Array:
        """How far the models of all metrics see, in the geometric mean."""
        each = [length_scales(model, self.encoding.dimension) for model in self.models.objectives]
        scales: Array = np.exp(np.mean(np.log(each), axis=0))
        return scales


def noise_share(model: FittedSurrogate) -> float:
    """The noise variance of an observation, learned and told, as a share of the variance of the
    losses."""
    told = model.data.noise
    known = 0.0 if told is None or not len(told) else float(told.mean())
    return (model.noise_variance + known) / max(float(np.var(model.data.y)), 1e-12)


def front_rows(models: Models, most: int) -> Array:
    """The evaluated inputs (at most ``most``, d) whose losses nothing dominates, the loneliest
    first; of feasible ones where there are any."""
    rows = np.arange(len(models.evaluated))
    if models.feasible is not None and models.feasible.any():
        rows = rows[models.feasible]
    losses = models.every_loss[rows]
    losses = np.where(np.isfinite(losses), losses, np.inf)
    best: Array = models.evaluated[rows[lonely_rows(losses, most)]]
    return best


def lonely_rows(losses: Array, most: int) -> NDArray[np.intp]:
    """Rows of losses (n, m) that nothing dominates, at most ``most``, the loneliest first."""
    front = np.flatnonzero(non_dominated(losses))
    return front[np.argsort(-crowding_distances(losses[front]), kind="stable")[:most]]


def reason_of(loss: FittedSurrogate, found: Found, decoded: list[Config]) -> Modelled:
    """What the model of the loss expected of the chosen point, and what competed with it."""
    posterior = loss.posterior(found.x[:1])
    deviation = 0.0 if posterior.variance is None else float(np.sqrt(posterior.variance[0]))
    mean = posterior.mean[:1, 0]
    middle, low, high = (float(loss.target_units(mean + k * deviation)[0]) for k in (0, -2, 2))
    return Modelled(
        score=float(found.scores[0]),
        expected=Expected(middle, low, high) if np.isfinite(middle) else None,
        rivals=tuple(
            Rival(float(score), config)
            for config, score in zip(decoded[1:], found.scores[1:], strict=False)
        ),
    )
