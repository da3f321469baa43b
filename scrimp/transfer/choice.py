"""The last step of every method: maximise an acquisition, one configuration after the other, and
say what competed."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from scrimp.acquisition.acquisition import Acquisition
from scrimp.acquisition.context import Context
from scrimp.acquisition.maximize import Found, MaximizeSettings, Search, maximize
from scrimp.acquisition.pending import fantasise
from scrimp.acquisition.weighted import weighted
from scrimp.encoding.encoding import Encoding
from scrimp.encoding.training_data import Training
from scrimp.history.events import Config
from scrimp.history.notes import Modelled
from scrimp.suggesters.bayesian import reason_of
from scrimp.suggesters.model_fitting import Models, length_scales
from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = ["Choice"]


@dataclass(frozen=True)
class Choice:
    """An acquisition and the models it is bound to: ``fitted`` is ``models.fitted`` with another
    "loss"."""

    acquisition: Acquisition
    fitted: Mapping[str, FittedSurrogate]
    models: Models
    training: Training
    encoding: Encoding
    fantasies: int = 16
    incumbent: str = "mean"
    cost_exponent: float = 1.0

    def best(
        self, count: int, seed: int, rng: np.random.Generator
    ) -> tuple[list[Config], Modelled | None]:
        """``count`` configurations, fewer where nothing is left, and the reason for the first.

        Candidates follow from the study's ``seed`` alone, so that past models meet the same ones at
        every decision.
        """
        configs: list[Config] = []
        reason: Modelled | None = None
        pending = self.training.pending
        for _ in range(count):
            found = self._found(pending, seed, rng)
            if not len(found.x):
                break
            decoded = self.encoding.decode(found.x[:5])
            if not configs:
                reason = reason_of(self.fitted["loss"], found, decoded)
            configs.append(decoded[0])
            pending = np.vstack([pending, self.encoding.encode(decoded[:1])])
        return configs, reason

    def _found(self, pending: Array, seed: int, rng: np.random.Generator) -> Found:
        acquisition = weighted(self.acquisition, self.fitted, self.cost_exponent)
        fitted = dict(self.fitted)
        for name in fitted:
            if len(pending) and name != "cost":
                fitted[name] = fantasise(fitted[name], pending, self.fantasies, rng)
        models, training = self.models, self.training
        under_way = pending if len(pending) else None
        context = Context(
            models.evaluated, under_way, models.feasible, self.incumbent, bands=models.bands
        )
        search = Search(
            anchors=models.evaluated[np.argsort(models.losses, kind="stable")[:5]],
            excluded=None if training.repeatable else np.vstack([training.known, pending]),
            scales=length_scales(models.fitted["loss"], self.encoding.dimension),
            settings=MaximizeSettings(candidates=768, starts=6),
        )
        score = acquisition.bind(fitted, context)
        return maximize(score, self.encoding.domain, np.random.default_rng(seed), search)
