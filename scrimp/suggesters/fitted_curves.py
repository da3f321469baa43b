"""Models of f(x, r) as one decision fitted them, with the rows that they rest on.

curves = fit_curves(history, encoding, levels, settings, rng)
curves.models["loss"], curves.configs, curves.pending
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scrimp.encoding.training_data import Training
from scrimp.history.notes import Fit
from scrimp.suggesters.curve_data import is_hopeless
from scrimp.suggesters.model_fitting import FURTHER
from scrimp.surrogates.at_budget import with_share
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Surrogate

__all__ = ["Curves"]


@dataclass(frozen=True)
class Curves:
    """A fitted model of (x, share), the rows it rests on (as given to it), and what to note about
    it. ``further``: with several metrics, the models of those after the first, by name."""

    surrogate: Surrogate
    fitted: FittedSurrogate
    data: Data
    training: Training
    kept: NDArray[np.intp]
    full: float
    fits: Mapping[str, Fit]
    further: Mapping[str, FittedSurrogate] = field(default_factory=dict)

    @property
    def models(self) -> dict[str, FittedSurrogate]:
        """The models of all metrics: "loss", and with several "loss:<name>"."""
        return {"loss": self.fitted} | {
            FURTHER + name: model for name, model in self.further.items()
        }

    @property
    def share(self) -> Array:
        """The shares of the full budget of the kept rows (n,)."""
        return self.training.budget[self.kept] / self.full

    @property
    def of_losses(self) -> bool:
        """Whether losses were learned: while all violate a constraint, violations are."""
        return not is_hopeless(self.training)

    @property
    def x(self) -> Array:
        """Their configurations (n, d)."""
        return self.training.x[self.kept]

    @property
    def configs(self) -> Array:
        """Each configuration among them once (k, d); the rows of a trial follow each other."""
        trial = self.training.trial[self.kept]
        return self.x[np.flatnonzero(np.diff(trial, prepend=-1))]

    @property
    def pending(self) -> Array:
        """Evaluations under way, as (x, share) (p, d + 1)."""
        return with_share(self.training.pending, self.training.pending_budget / self.full)
