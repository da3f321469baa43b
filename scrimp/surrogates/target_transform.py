"""Models of transformed targets: y -> z by increasing steps, and any surrogate on z.

    model = Transformed(ExactGP.over(columns), (Winsorise(), Standardise()))
    # wholly in units of z: data, posterior, samples, condition
    fitted = model.fit(Data(x, y), rng)
    # observations from outside come in through model_units
    fitted.condition(fitted.model_units(new))
    # what is shown to people goes out through target_units
    fitted.target_units(fitted.posterior(x).mean)

**Which units acquisitions see.** The fitted model stays in transformed units. Steps are increasing,
so the best configuration is the same one; the incumbent, whether a posterior mean or the best of
``data.y``, is in the same units as the posterior; an exploration margin means standard deviations
of the targets; fantasies drawn from the posterior go back into `condition` as they are. A limit on
a constraint passes `model_units` like an observation, P(y <= limit) = P(z <= z(limit)). Mapping a
posterior back instead would cost its Gaussian shape for every step that is not linear.

Learned steps are part of the ``state``: restoring it and growing a fitted model give the same
numbers.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from scrimp.errors import StudyError
from scrimp.json_values import Json, JsonObject
from scrimp.surrogates.record_reading import list_at, number_at, numbers_at, object_at
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Posterior,
    PosteriorPullback,
    Surrogate,
)

__all__ = [
    "Capped",
    "FittedTransformed",
    "GaussianCopula",
    "LearnedStep",
    "Standardise",
    "TargetStep",
    "Transformed",
    "Winsorise",
]


class LearnedStep(ABC):
    """An increasing function of targets, elementwise."""

    @abstractmethod
    def forward(self, y: Array) -> Array:
        """Targets to transformed ones."""

    @abstractmethod
    def backward(self, z: Array) -> Array:
        """Transformed targets back; values outside the range of `forward` go to its ends."""

    @abstractmethod
    def slope(self, y: Array) -> Array:
        """dz / dy, by which standard deviations of noise are multiplied."""

    @property
    @abstractmethod
    def state(self) -> JsonObject:
        """What `TargetStep.recall` needs, as plain JSON values."""


class TargetStep(ABC):
    """Settings of one step; a frozen value without data."""

    @abstractmethod
    def learn(self, y: Array) -> LearnedStep:
        """The step for these targets (n,)."""

    @abstractmethod
    def recall(self, state: Mapping[str, Json]) -> LearnedStep:
        """The step as it was learned."""


@dataclass(frozen=True, eq=False)
class Transformed(Surrogate):
    """Any surrogate, fitted to targets that went through ``steps`` in order."""

    inner: Surrogate
    steps: Sequence[TargetStep]

    def fit(
        self, data: Data, rng: np.random.Generator, start: JsonObject | None = None
    ) -> "FittedTransformed":
        learned: list[LearnedStep] = []
        for step in self.steps:
            known = step.learn(data.y.reshape(-1))
            data = _applied(known, data)
            learned.append(known)
        fitted = self.inner.fit(
            data, rng, object_at(start, "inner") if start is not None and "inner" in start else None
        )
        return FittedTransformed(fitted, tuple(learned))

    def restore(self, data: Data, state: JsonObject) -> "FittedTransformed":
        recorded = [step for step in list_at(state, "steps") if isinstance(step, Mapping)]
        if len(recorded) != len(self.steps):
            raise StudyError(
                f"the recorded fit has {len(recorded)} target steps where this model has"
                f" {len(self.steps)}: fit anew"
            )
        learned = tuple(
            step.recall(known) for step, known in zip(self.steps, recorded, strict=True)
        )
        for known in learned:
            data = _applied(known, data)
        return FittedTransformed(self.inner.restore(data, object_at(state, "inner")), learned)


def _applied(step: LearnedStep, data: Data) -> Data:
    """Observations after one step; noise by the slope at the target."""
    noise = data.noise
    if noise is not None:
        slope = step.slope(data.y)
        noise = noise * (slope if slope.ndim == 1 else slope.mean(1)) ** 2
    return Data(data.x, step.forward(data.y), noise)


@dataclass(frozen=True, eq=False)
class FittedTransformed(FittedSurrogate):
    """A fitted model of transformed targets, in transformed units throughout; it adds the way in
    and out."""

    inner: FittedSurrogate
    steps: tuple[LearnedStep, ...]

    def model_units(self, data: Data) -> Data:
        for step in self.steps:
            data = _applied(step, data)
        return self.inner.model_units(data)

    def target_units(self, values: Array) -> Array:
        values = self.inner.target_units(values)
        for step in reversed(self.steps):
            values = step.backward(values)
        return values

    def target_slope(self, values: Array) -> Array:
        slope = self.inner.target_slope(values)
        values = self.inner.target_units(values)
        for step in reversed(self.steps):
            values = step.backward(values)
            slope = slope / step.slope(values)
        return slope

    @property
    def data(self) -> Data:
        return self.inner.data

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        return self.inner.posterior(x, joint=joint)

    def mean(self, x: Array) -> Array:
        return self.inner.mean(x)

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        return self.inner.posterior_and_pullback(x)

    def condition(self, data: Data) -> "FittedTransformed":
        return FittedTransformed(self.inner.condition(data), self.steps)

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        return self.inner.sample(x, count, rng)

    @property
    def members(self) -> tuple[FittedSurrogate, ...]:
        return tuple(FittedTransformed(member, self.steps) for member in self.inner.members)

    @property
    def length_scales(self) -> Array:
        return self.inner.length_scales

    @property
    def noise_variance(self) -> float:
        return self.inner.noise_variance

    @property
    def state(self) -> Mapping[str, Json]:
        return {"steps": [dict(step.state) for step in self.steps], "inner": self.inner.state}


@dataclass(frozen=True)
class Standardise(TargetStep):
    """z = (y - mean) / sd, with sd at least ``floor`` times the size of the values, so that
    constant targets survive.

    ``centred`` False keeps zero where it is, z = y / sd: for targets whose sign matters, such as
    violations of a constraint.
    """

    centred: bool = True
    floor: float = 1e-9

    def learn(self, y: Array) -> LearnedStep:
        centre = float(y.mean()) if self.centred else 0.0
        least = self.floor * max(1.0, abs(centre))
        size = max(float(np.abs(y).max()), 1e-300)
        spread = size * float((y / size).std())  # squares of huge values would overflow
        return _Linear(centre, spread if spread > least else 1.0)

    def recall(self, state: JsonObject) -> LearnedStep:
        return _Linear(number_at(state, "centre"), number_at(state, "spread"))


@dataclass(frozen=True)
class _Linear(LearnedStep):
    centre: float
    spread: float

    def forward(self, y: Array) -> Array:
        return (y - self.centre) / self.spread

    def backward(self, z: Array) -> Array:
        return z * self.spread + self.centre

    def slope(self, y: Array) -> Array:
        return np.full(y.shape, 1.0 / self.spread)

    @property
    def state(self) -> Mapping[str, Json]:
        return {"centre": self.centre, "spread": self.spread}


@dataclass(frozen=True)
class Winsorise(TargetStep):
    """z = min(y, cap): losses that diverged count as bad, not as informative; what is not finite
    counts as the cap.

    cap = upper quartile + ``fence`` x interquartile range (Tukey, Exploratory Data Analysis, 1977:
    "far out" at 3). When half of the targets are equal, the distance from the best target to the
    upper quartile takes the range's place.
    """

    fence: float = 3.0

    def learn(self, y: Array) -> LearnedStep:
        finite = y[np.isfinite(y)]
        if not len(finite):
            return Capped(0.0)
        low, high = np.quantile(finite, [0.25, 0.75])
        spread = high - low if high > low else high - finite.min()
        cap = high + self.fence * spread if spread > 0.0 else finite.max()
        return Capped(float(min(cap, finite.max())))

    def recall(self, state: JsonObject) -> LearnedStep:
        return Capped.recall(state)


@dataclass(frozen=True)
class Capped(LearnedStep):
    """z = y, held between ``low`` and ``cap``; what is not finite counts as the cap."""

    cap: float
    low: float = -np.inf

    @staticmethod
    def recall(state: JsonObject) -> "Capped":
        """The step as its `state` recorded it."""
        return Capped(number_at(state, "cap"), number_at(state, "low", -np.inf))

    def forward(self, y: Array) -> Array:
        return np.clip(np.where(np.isfinite(y), y, self.cap), self.low, self.cap)

    def backward(self, z: Array) -> Array:
        return z

    def slope(self, y: Array) -> Array:
        return np.ones(y.shape)

    @property
    def state(self) -> Mapping[str, Json]:
        return {"cap": self.cap} if np.isneginf(self.low) else {"cap": self.cap, "low": self.low}


@dataclass(frozen=True)
class GaussianCopula(TargetStep):
    """z = Phi^-1((rank - 1/2) / n): the targets' order alone, as normal scores (ties share their
    mean rank).

    Between observed targets z is linear; beyond them it goes on with the slope from the end to the
    middle. At most ``knots`` pairs are kept, spaced evenly in z, so the tails keep every
    observation. Salinas, Shen, Perrone, A Quantile-based Approach for Hyperparameter Transfer
    Learning, 2020.
    """

    knots: int = 100

    def learn(self, y: Array) -> LearnedStep:
        values, counts = np.unique(y, return_counts=True)
        scores = ndtri((np.cumsum(counts) - 0.5 * counts) / len(y))
        if len(values) == 1:
            return _Interpolated((float(values[0]) - 1.0, float(values[0]) + 1.0), (-1.0, 1.0))
        if len(values) > self.knots:
            wanted = np.linspace(scores[0], scores[-1], self.knots)
            kept = np.unique(np.abs(scores[:, None] - wanted).argmin(0))
            values, scores = values[kept], scores[kept]
        return _Interpolated(tuple(values.tolist()), tuple(scores.tolist()))

    def recall(self, state: JsonObject) -> LearnedStep:
        return _Interpolated(numbers_at(state, "values"), numbers_at(state, "scores"))


@dataclass(frozen=True)
class _Interpolated(LearnedStep):
    values: tuple[float, ...]
    scores: tuple[float, ...]

    _REACH: ClassVar[float] = 1e6  # in units of the range; beyond it nothing is told apart

    def _knots(self) -> tuple[Array, Array]:
        """The kept pairs, with one far point on either side."""
        y, z = np.array(self.values), np.array(self.scores)
        middle = len(y) // 2 if len(y) > 2 else 1
        far = self._REACH * (y[-1] - y[0])
        low = (z[middle] - z[0]) / (y[middle] - y[0])
        middle = min(middle, len(y) - 2)
        high = (z[-1] - z[middle]) / (y[-1] - y[middle])
        return (
            np.concatenate([[y[0] - far], y, [y[-1] + far]]),
            np.concatenate([[z[0] - far * low], z, [z[-1] + far * high]]),
        )

    def forward(self, y: Array) -> Array:
        return np.interp(y, *self._knots())

    def backward(self, z: Array) -> Array:
        values, scores = self._knots()
        return np.interp(z, scores, values)

    def slope(self, y: Array) -> Array:
        values, scores = self._knots()
        segment = np.clip(np.searchsorted(values, y, side="right") - 1, 0, len(values) - 2)
        return np.diff(scores)[segment] / np.diff(values)[segment]

    @property
    def state(self) -> Mapping[str, Json]:
        return {"values": list(self.values), "scores": list(self.scores)}
