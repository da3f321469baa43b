"""Units in which losses of different studies compare.

A model is always fitted to targets of size one; what differs is the units in which models of
several studies are combined:

    none         raw losses, for studies of the same quantity
    z-score      each study less its mean, by its standard deviation; the target's are those of what
                 it has seen so far
    min-max      past studies scaled to [0, 1], the target left raw (Wistuba, Schilling,
                 Schmidt-Thieme, 2016)
    copula       normal scores of the ranks (Salinas, Shen, Perrone, 2020)
    log-regret   log((y - min) / (max - min) + 0.2), then the z-score: differences near the best
                 count most

The first three are linear, so one fit serves them: ``shift + scale * z`` takes the model's z-scores
there.

    scale = NORMALISERS["min-max"].of_source(y)
    scale.shift + scale.scale * model.mean(x)
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from scrimp.errors import MethodError
from scrimp.json_values import JsonObject
from scrimp.surrogates.record_reading import number_at
from scrimp.surrogates.surrogate import Array
from scrimp.surrogates.target_transform import GaussianCopula, LearnedStep, Standardise, TargetStep

__all__ = ["NORMALISERS", "LogRegret", "Normaliser", "Units", "normaliser_named"]

OFFSET = 0.2
"""What is added to a regret in [0, 1] before its logarithm. Below 0.1 the neighbourhood of the best
would be all that counts."""


@dataclass(frozen=True)
class Units:
    """From a model's own units to those of a comparison: ``shift + scale * z``."""

    shift: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True)
class Normaliser:
    """``steps`` are applied to the targets before a model is fitted; ``kind`` says which units
    models are compared in."""

    steps: tuple[TargetStep, ...]
    kind: str = "own"

    def of_source(self, y: Array) -> Units:
        """Units of a past study with losses y (n,)."""
        if self.kind == "own":
            return Units()
        centre, spread = _moments(y)
        if self.kind == "none":
            return Units(centre, spread)
        low, width = float(y.min()), float(np.ptp(y)) or 1.0
        return Units((centre - low) / width, spread / width)

    def of_target(self, y: Array) -> Units:
        """Units of the study at hand, given its losses so far (n,)."""
        return Units() if self.kind == "own" else Units(*_moments(y))


def _moments(y: Array) -> tuple[float, float]:
    """Mean and standard deviation as the fitted models use them."""
    learned = Standardise().learn(y)
    centre = float(learned.backward(np.zeros(1))[0])
    return centre, float(learned.backward(np.ones(1))[0]) - centre


@dataclass(frozen=True)
class LogRegret(TargetStep):
    """z = log((y - min) / (max - min) + offset); constant targets become zeros less a constant.

    >>> LogRegret(0.2).learn(np.array([0.0, 5.0, 10.0])).forward(np.array([0.0, 10.0])).round(3).tolist()
    [-1.609, 0.182]
    """

    offset: float = OFFSET

    def learn(self, y: Array) -> LearnedStep:
        return _LogRegret(float(y.min()), float(np.ptp(y)) or 1.0, self.offset)

    def recall(self, state: JsonObject) -> LearnedStep:
        return _LogRegret(*(number_at(state, name) for name in ("low", "width", "offset")))


@dataclass(frozen=True)
class _LogRegret(LearnedStep):
    low: float
    width: float
    offset: float

    def _inner(self, y: Array) -> Array:
        """The regret plus the offset; better than the best seen stays above a tenth of the
        offset."""
        return np.maximum((y - self.low) / self.width + self.offset, 0.1 * self.offset)

    def forward(self, y: Array) -> Array:
        return np.log(self._inner(y))

    def backward(self, z: Array) -> Array:
        return (np.exp(z) - self.offset) * self.width + self.low

    def slope(self, y: Array) -> Array:
        return 1.0 / (self.width * self._inner(y))

    @property
    def state(self) -> JsonObject:
        return {"low": self.low, "width": self.width, "offset": self.offset}


_Z = (Standardise(),)

NORMALISERS: Mapping[str, Normaliser] = {
    "none": Normaliser(_Z, "none"),
    "z-score": Normaliser(_Z),
    "min-max": Normaliser(_Z, "min-max"),
    "copula": Normaliser((GaussianCopula(),)),
    "log-regret": Normaliser((LogRegret(), Standardise())),
}


def normaliser_named(name: str) -> Normaliser:
    """The normaliser of that name, or an error that lists them."""
    if name not in NORMALISERS:
        raise MethodError(f"normalise is {name!r}; choose one of {', '.join(NORMALISERS)}")
    return NORMALISERS[name]
