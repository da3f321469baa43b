"""Steps of target transforms: increasing functions of targets, learned from the targets.

A power transform has the exponent lambda under which the targets look most like a normal sample. It
maximises the log likelihood of a normal sample in transformed units, brought back to the units of y
by the Jacobian, summed over all observations, plus a normal prior of lambda:

    -n/2 log var(z) + sum_i log dz_i/dy_i + log N(lambda; centre, spread)

Without the sum the scale of z would reward any exponent that shrinks it. Beyond the targets it was
learned from, a step continues along its tangent. A power alone may end: with lambda above 2 no
target, however low, comes below z = -1 / (lambda - 2), and a Gaussian belief that reaches further
would be displayed as -1e10.

Targets that are compared with a limit are distances from it: a violation (feasible at 0 and below),
or a deviation from a wanted value (feasible within a tolerance of 0). Extreme ones are capped, so
that a run that diverged does not set the scale of the model, but never closer to zero than most
distances are: forty trials that use 2 GB each, give or take 50 MB, would otherwise cap the two that
use 30 GB at 2.2 GB, and the model would never learn that there is a limit of 16 GB.

    Transformed(ExactGP.over(columns), (Winsorise(), Standardise(), YeoJohnson(), Standardise()))
    Transformed(gp, (CapViolation(), Standardise(centred=False)))              # zero stays zero
    Transformed(gp, (CapDeviation(tolerance=0.01), Standardise(centred=False)))

Box and Cox, An Analysis of Transformations, 1964; Yeo and Johnson, A New Family of Power
Transformations, 2000.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtri

from scrimp.json_values import Json, JsonObject
from scrimp.surrogates.surrogate import Array, value_at


class LearnedStep(ABC):
    """An increasing function of targets, elementwise."""

    @abstractmethod
    def forward(self, y: Array) -> Array:
        """Transform targets."""

    @abstractmethod
    def backward(self, z: Array) -> Array:
        """Invert `forward`; values outside its range go to its ends."""

    @abstractmethod
    def slope(self, y: Array) -> Array:
        """Return dz / dy; standard deviations of noise are multiplied by it."""

    @property
    def state(self) -> JsonObject:
        """The fields as plain JSON values, from which `TargetStep.recall` makes the step again."""
        return dict(vars(self))


class TargetStep(ABC):
    """Settings of one step; a frozen value without data. ``learned``: the dataclass of what it learns."""

    learned: ClassVar[type[LearnedStep]]

    @abstractmethod
    def learn(self, y: Array) -> LearnedStep:
        """Learn the step from targets (n,)."""

    def recall(self, state: JsonObject) -> LearnedStep:
        """Return the step of a recorded ``state``."""
        return value_at({"step": state}, "step", self.learned)


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


@dataclass(frozen=True)
class Standardise(TargetStep):
    """z = (y - mean) / sd, or z = y - mean for targets that are constant up to ``floor`` times their
    size.

    ``centred`` False keeps zero, z = y / sd: for targets whose sign matters, such as violations of
    a constraint.
    """

    learned = _Linear
    centred: bool = True
    floor: float = 1e-9

    def learn(self, y: Array) -> LearnedStep:
        centre = float(y.mean()) if self.centred else 0.0
        smallest = self.floor * max(1.0, abs(centre))
        # Divided by their size, because squares of huge values would overflow.
        size = max(float(np.abs(y).max()), 1e-300)
        spread = size * float((y / size).std())
        return _Linear(centre, spread if spread > smallest else 1.0)


@dataclass(frozen=True)
class Capped(LearnedStep):
    """z = y, held between ``low`` and ``cap``; values that are not finite count as the cap."""

    cap: float
    low: float = -np.inf

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
class Winsorise(TargetStep):
    """z = min(y, cap): diverged losses count as bad, not as informative. Values that are not finite
    count as the cap.

    cap = upper quartile + ``fence`` x interquartile range (Tukey, Exploratory Data Analysis, 1977:
    "far out" at 3). If half of the targets are equal, the distance from the best target to the
    upper quartile replaces the range.
    """

    learned = Capped
    fence: float = 3.0

    def learn(self, y: Array) -> Capped:
        finite = y[np.isfinite(y)]
        if not len(finite):
            return Capped(0.0)
        low, high = np.quantile(finite, [0.25, 0.75])
        spread = high - low if high > low else high - finite.min()
        cap = high + self.fence * spread if spread > 0.0 else finite.max()
        return Capped(float(min(cap, finite.max())))


@dataclass(frozen=True)
class _Interpolated(LearnedStep):
    values: tuple[float, ...]
    scores: tuple[float, ...]

    _EXTRAPOLATION: ClassVar[float] = 1e6
    """Distance of the outermost knots, in units of the range; beyond it z is constant."""

    def _knots(self) -> tuple[Array, Array]:
        """The knots, with one far point on either side."""
        y, z = np.array(self.values), np.array(self.scores)
        middle = len(y) // 2 if len(y) > 2 else 1
        far = self._EXTRAPOLATION * (y[-1] - y[0])
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


@dataclass(frozen=True)
class GaussianCopula(TargetStep):
    """z = Phi^-1((rank - 1/2) / n): only the order of the targets, as normal scores (ties share their
    mean rank).

    Between observed targets z is linear; beyond them it continues with the slope from the end to
    the middle. At most ``knots`` pairs are kept, evenly spaced in z, so the tails keep every
    observation. Salinas, Shen, Perrone, A Quantile-based Approach for Hyperparameter Transfer
    Learning, 2020.
    """

    learned = _Interpolated
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


_MIN_TARGETS_FOR_POWER = 5
"""With fewer targets lambda stays at its centre (convention)."""

_MIN_POSITIVE = 1e-10
"""Lower bound of the number that the inverse of a power takes the logarithm of."""

_LOGARITHM_BELOW = 1e-7
"""Powers this close to 0 are expanded to second order around the logarithm, because the quotient
would lose its digits."""


def yeo_johnson(y: Array, exponent: float) -> Array:
    """z = ((1 + y)^lambda - 1) / lambda for y >= 0, and -((1 - y)^p - 1) / p with p = 2 - lambda below;
    log(1 + y) and -log(1 - y) at a power of 0.

    >>> yeo_johnson(np.array([3.0, -3.0]), 0.5).round(6).tolist()
    [2.0, -4.666667]
    """
    log, power = np.log(np.abs(y) + 1.0), np.where(y >= 0.0, exponent, 2.0 - exponent)
    flat = np.abs(power) < _LOGARITHM_BELOW
    safe = np.where(flat, 1.0, power)
    z = np.where(flat, log + 0.5 * power * log * log, np.expm1(safe * log) / safe)
    return np.where(y >= 0.0, z, -z)


def yeo_johnson_inverse(z: Array, exponent: float) -> Array:
    """The inverse of `yeo_johnson`, which keeps signs; beyond the range, its ends."""
    size, power = np.abs(z), np.where(z >= 0.0, exponent, 2.0 - exponent)
    flat = np.abs(power) < _LOGARITHM_BELOW
    safe = np.where(flat, 1.0, power)
    inside = np.log(np.maximum(safe * size + 1.0, _MIN_POSITIVE)) / safe
    y = np.exp(np.where(flat, size - 0.5 * power * size * size, inside)) - 1.0
    return np.where(z >= 0.0, y, -y)


def yeo_johnson_slope(y: Array, exponent: float) -> Array:
    """The derivative of `yeo_johnson` by y."""
    power = np.where(y >= 0.0, exponent - 1.0, 1.0 - exponent)
    return np.asarray((np.abs(y) + 1.0) ** power, dtype=np.float64)


@dataclass(frozen=True)
class _LearnedYeoJohnson(LearnedStep):
    """A power between ``low`` and ``high``, its tangents beyond."""

    exponent: float
    low: float
    high: float

    def forward(self, y: Array) -> Array:
        near = np.clip(y, self.low, self.high)
        slope = yeo_johnson_slope(near, self.exponent)
        return yeo_johnson(near, self.exponent) + slope * (y - near)

    def backward(self, z: Array) -> Array:
        near = np.clip(z, *yeo_johnson(np.array([self.low, self.high]), self.exponent))
        y = yeo_johnson_inverse(near, self.exponent)
        return y + (z - near) / yeo_johnson_slope(y, self.exponent)

    def slope(self, y: Array) -> Array:
        return yeo_johnson_slope(np.clip(y, self.low, self.high), self.exponent)


@dataclass(frozen=True)
class YeoJohnson(TargetStep):
    """The power transform of targets of either sign. Standardise first: 0 and 1 are special to it."""

    learned = _LearnedYeoJohnson
    centre: float = 1.0
    spread: float = 0.75
    bounds: tuple[float, float] = (-1.0, 3.0)

    def learn(self, y: Array) -> LearnedStep:
        low, high = float(y.min()), float(y.max())
        if len(y) < _MIN_TARGETS_FOR_POWER or low == high:
            return _LearnedYeoJohnson(self.centre, low, high)
        found = minimize_scalar(
            self.negative_log_likelihood, bounds=self.bounds, args=(y,), method="bounded"
        )
        return _LearnedYeoJohnson(float(found.x), low, high)

    def negative_log_likelihood(self, exponent: float, y: Array) -> float:
        """Return minus the log likelihood of lambda, up to a constant."""
        variance = max(float(yeo_johnson(y, exponent).var()), np.finfo(float).tiny)
        jacobian = np.log(yeo_johnson_slope(y, exponent)).sum()
        prior = -0.5 * ((exponent - self.centre) / self.spread) ** 2
        return -float(-0.5 * len(y) * np.log(variance) + jacobian + prior)


@dataclass(frozen=True)
class CapViolation(TargetStep):
    """z = min(y, cap), the larger of the caps that `Winsorise` finds for y and |y|, at least 0."""

    learned = Capped

    def learn(self, y: Array) -> LearnedStep:
        cap = max(_fence(y), _fence(np.abs(y)))
        finite = y[np.isfinite(y)]
        highest = float(finite.max()) if len(finite) else 0.0
        return Capped(max(min(cap, highest), 0.0))


@dataclass(frozen=True)
class CapDeviation(TargetStep):
    """z = y, held between -cap and cap, the cap of |y| and at least twice the ``tolerance``."""

    learned = Capped
    tolerance: float

    def learn(self, y: Array) -> LearnedStep:
        cap = max(_fence(np.abs(y)), 2.0 * self.tolerance)
        return Capped(cap, -cap)


def _fence(y: Array) -> float:
    """The cap of `Winsorise` for these targets."""
    return Winsorise().learn(y).cap
