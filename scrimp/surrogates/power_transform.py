"""Power transforms of targets: the exponent under which they look most like a normal sample.

The exponent lambda maximises the log likelihood of a normal sample in transformed units, brought
back to the units of y by the Jacobian *summed* over all observations, plus its own normal prior:

    -n/2 log var(z) + sum_i log dz_i/dy_i + log N(lambda; centre, spread)

Without the sum the scale of z would reward whatever shrinks it. Below five targets lambda stays at
its centre.

Beyond the targets it was learned from, a step goes on straight, along its tangent there. A power
alone may end: with lambda above 2 no target, however low, comes below z = -1 / (lambda - 2), and a
Gaussian belief that reaches further would be shown as -1e10.

    Transformed(ExactGP.over(columns), (Winsorise(), Standardise(), YeoJohnson(), Standardise()))

Box and Cox, An Analysis of Transformations, 1964; Yeo and Johnson, A New Family of Power
Transformations, 2000.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from scrimp.json_values import JsonObject
from scrimp.surrogates.record_reading import number_at
from scrimp.surrogates.surrogate import Array
from scrimp.surrogates.target_transform import LearnedStep, TargetStep

__all__ = ["YeoJohnson", "box_cox", "box_cox_inverse", "yeo_johnson", "yeo_johnson_inverse"]

_FEW = 5
_LEAST = 1e-10  # Box-Cox is for positive numbers: smaller ones count as this


def box_cox(y: Array, exponent: float) -> Array:
    """z = (y^lambda - 1) / lambda, log y at 0; to second order in lambda where the quotient would
    lose its digits.

    >>> box_cox(np.array([4.0]), 0.5)
    array([2.])
    """
    log_y = np.log(np.maximum(y, _LEAST))
    if abs(exponent) < 1e-7:
        return log_y + 0.5 * exponent * log_y * log_y
    return np.asarray(np.expm1(exponent * log_y) / exponent, dtype=np.float64)


def box_cox_inverse(z: Array, exponent: float) -> Array:
    """y = (lambda z + 1)^(1/lambda), exp z at 0; the ends of the range beyond it."""
    if abs(exponent) < 1e-7:
        return np.asarray(np.exp(z - 0.5 * exponent * z * z), dtype=np.float64)
    return np.asarray(
        np.exp(np.log(np.maximum(exponent * z + 1.0, _LEAST)) / exponent), dtype=np.float64
    )


def yeo_johnson(y: Array, exponent: float) -> Array:
    """Box-Cox of 1 + y with lambda for y >= 0, and minus Box-Cox of 1 - y with 2 - lambda below."""
    size = np.abs(y) + 1.0
    return np.where(y >= 0.0, box_cox(size, exponent), -box_cox(size, 2.0 - exponent))


def yeo_johnson_inverse(z: Array, exponent: float) -> Array:
    """The inverse of `yeo_johnson`, which keeps signs."""
    size = np.abs(z)
    return np.where(
        z >= 0.0, box_cox_inverse(size, exponent) - 1.0, 1.0 - box_cox_inverse(size, 2.0 - exponent)
    )


@dataclass(frozen=True)
class YeoJohnson(TargetStep):
    """For targets of either sign; standardise first, because 0 and 1 are special values to it."""

    centre: float = 1.0
    spread: float = 0.75
    bounds: tuple[float, float] = (-1.0, 3.0)

    def learn(self, y: Array) -> LearnedStep:
        low, high = float(y.min()), float(y.max())
        if len(y) < _FEW or low == high:
            return _LearnedYeoJohnson(self.centre, low, high)
        found = minimize_scalar(
            lambda exponent: -self.log_likelihood(y, exponent), bounds=self.bounds, method="bounded"
        )
        return _LearnedYeoJohnson(float(found.x), low, high)

    def recall(self, state: JsonObject) -> LearnedStep:
        return _LearnedYeoJohnson(
            number_at(state, "exponent"),
            number_at(state, "low", -np.inf),
            number_at(state, "high", np.inf),
        )

    def log_likelihood(self, y: Array, exponent: float) -> float:
        """What the choice of lambda maximises, up to a constant."""
        step = _LearnedYeoJohnson(exponent, -np.inf, np.inf)
        variance = max(float(step.forward(y).var()), np.finfo(float).tiny)
        prior = -0.5 * ((exponent - self.centre) / self.spread) ** 2
        return float(-0.5 * len(y) * np.log(variance) + np.log(step.slope(y)).sum() + prior)


@dataclass(frozen=True)
class _LearnedYeoJohnson(LearnedStep):
    """A power between ``low`` and ``high``, its tangents beyond; records without ends are powers
    everywhere."""

    exponent: float
    low: float
    high: float

    def forward(self, y: Array) -> Array:
        near = np.clip(y, self.low, self.high)
        return yeo_johnson(near, self.exponent) + self._derivative(near) * (y - near)

    def backward(self, z: Array) -> Array:
        if not np.isfinite([self.low, self.high]).all():
            return yeo_johnson_inverse(z, self.exponent)
        near = np.clip(z, *yeo_johnson(np.array([self.low, self.high]), self.exponent))
        y = yeo_johnson_inverse(near, self.exponent)
        return y + (z - near) / self._derivative(y)

    def slope(self, y: Array) -> Array:
        return self._derivative(np.clip(y, self.low, self.high))

    def _derivative(self, y: Array) -> Array:
        power = np.where(y >= 0.0, self.exponent - 1.0, 1.0 - self.exponent)
        return np.asarray((np.abs(y) + 1.0) ** power, dtype=np.float64)

    @property
    def state(self) -> JsonObject:
        return {"exponent": self.exponent, "low": self.low, "high": self.high}
