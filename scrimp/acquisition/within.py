"""The probability that a value lies within a band: what two-sided constraints need.

    P = Phi(b) - Phi(a),   a = (low - mean) / std,   b = (high - mean) / std

in logarithms, so that it has a gradient far outside the band, where a search has to find its way
in. The upper tail is mirrored to the lower one, where log Phi is exact; in a band so narrow that
the difference would lose digits the density is flat, P = (b - a) phi((a + b) / 2).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr

from scrimp.acquisition.acquisition import MeanStdAcquisition
from scrimp.surrogates.surrogate import Array

__all__ = ["ProbabilityWithin"]

# in standard deviations: the flat density errs by the square of it, the difference by rounding over
# it
_NARROW = 1e-5
_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True)
class ProbabilityWithin(MeanStdAcquisition):
    """log P(low <= y <= high), in the units of the model; one end may be infinite.

    >>> score = ProbabilityWithin(-1.0, 1.0).alpha(np.array(0.0), np.array(1.0), np.zeros(1))
    >>> np.exp(score).round(4).tolist()
    0.6827
    """

    low: float
    high: float
    logarithmic: ClassVar[bool] = True

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return self.alpha_and_derivatives(mean, std, incumbent)[0]

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[Array, Array]:
        _, by_mean, by_std = self.alpha_and_derivatives(mean, std, incumbent)
        return by_mean, by_std

    def alpha_and_derivatives(
        self, mean: Array, std: Array, incumbent: Array
    ) -> tuple[Array, Array, Array]:
        """log P, -(phi(b) - phi(a)) / (std P) and -(b phi(b) - a phi(a)) / (std P)."""
        a, b = (self.low - mean) / std, (self.high - mean) / std
        value = _log_difference(a, b)
        middle, narrow = 0.5 * (a + b), b - a < _NARROW
        at_low, at_high = _share(a, value), _share(b, value)
        by_mean = np.where(narrow, middle, at_low - at_high) / std
        with np.errstate(invalid="ignore"):  # an infinite end times a density of zero
            ends = np.where(np.isinf(b), 0.0, b * at_high) - np.where(np.isinf(a), 0.0, a * at_low)
        by_std = np.where(narrow, middle * middle - 1.0, -ends) / std
        return value, by_mean, by_std


def _share(z: Array, log_probability: Array) -> Array:
    """phi(z) / P."""
    value: Array = np.exp(-0.5 * np.square(z) - _LOG_SQRT_2PI - log_probability)
    return value


def _log_difference(a: Array, b: Array) -> Array:
    """log(Phi(b) - Phi(a)) for a < b."""
    mirrored = a > 0.0
    low, high = np.where(mirrored, -b, a), np.where(mirrored, -a, b)
    top = log_ndtr(high)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(np.isneginf(low), -np.inf, log_ndtr(low) - top)
        wide: Array = top + np.log(-np.expm1(np.minimum(gap, -1e-300)))
        middle = 0.5 * (low + high)
        flat = np.log(high - low) - 0.5 * np.square(middle) - _LOG_SQRT_2PI
    return np.where(high - low < _NARROW, flat, wide)
