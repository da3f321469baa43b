"""Improvement over the incumbent: its probability, its expectation and the logarithm of its
expectation.

With z = (incumbent - mean) / std, the density phi and the distribution Phi of the standard normal:

    probability  PI = Phi(z)                                 Kushner, "A new method of locating the maximum point", 1964
    expectation  EI = std h(z),  h(z) = phi(z) + z Phi(z)    Mockus et al., "The application of Bayesian methods", 1978
    logarithm    log EI = log std + log h(z)                 Ament et al., "Unexpected improvements to expected improvement", 2023

EI underflows to zero, with its gradient, a few standard deviations below the incumbent, which is
most of a search space late in a study. Its logarithm does not. It rests on the ratio r(z) = Phi(z)
/ phi(z) = sqrt(pi/2) erfcx(-z / sqrt(2)), because

    h(z) = phi(z) (1 + z r(z)),   d log EI / d mean = -r / (std (1 + z r)),   d log EI / d std = 1 / (std (1 + z r))

need no number that overflows or underflows on -50 < z < 10. Below, 1 + z r loses digits and has the
asymptotic series (1 - 3/z^2 + 15/z^4 - ...) / z^2; above, h(z) = z to the last digit.

All functions take broadcastable arrays; losses, so smaller means are better.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from scrimp.acquisition.acquisition import MeanStdAcquisition
from scrimp.surrogates.surrogate import Array

__all__ = [
    "ExpectedImprovement",
    "LogExpectedImprovement",
    "ProbabilityOfImprovement",
    "expected_improvement",
    "log_expected_improvement",
    "log_expected_improvement_and_derivatives",
    "log_probability_of_improvement",
]

_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)
_LOWEST, _HIGHEST = -50.0, 10.0  # where the ratio formula is exact to rounding
_FARTHEST = -1e150  # beyond it z * z would overflow


def expected_improvement(mean: Array, std: Array, incumbent: Array) -> Array:
    """EI = std (phi(z) + z Phi(z)), with z = (incumbent - mean) / std.

    >>> float(expected_improvement(np.array(0.0), np.array(1.0), np.array(0.0)).round(4))
    0.3989
    """
    z = (incumbent - mean) / std
    value: Array = std * (_density(z) + z * ndtr(z))
    return np.maximum(value, 0.0)


def log_expected_improvement(mean: Array, std: Array, incumbent: Array) -> Array:
    """log EI, exact to rounding for every z.

    >>> float(log_expected_improvement(np.array(0.0), np.array(1.0), np.array(-30.0)).round(6))
    -457.724653
    """
    return log_expected_improvement_and_derivatives(mean, std, incumbent)[0]


def log_expected_improvement_and_derivatives(
    mean: Array, std: Array, incumbent: Array
) -> tuple[Array, Array, Array]:
    """log EI and its derivatives by mean and by std."""
    z = np.maximum((incumbent - mean) / std, _FARTHEST)
    inner = np.clip(z, _LOWEST, _HIGHEST)
    ratio = _ratio(inner)
    h_by_density = 1.0 + inner * ratio
    value: Array = np.log(h_by_density) - 0.5 * inner * inner - _LOG_SQRT_2PI
    by_mean, by_std = -ratio / h_by_density, 1.0 / h_by_density
    if np.any(inner != z):
        above, below = z > _HIGHEST, z < _LOWEST
        high, far = np.maximum(z, _HIGHEST), np.minimum(z, _LOWEST)
        series = _tail_series(far)
        square = far * far
        tail = np.log(series) - 2.0 * np.log(-far) - 0.5 * square - _LOG_SQRT_2PI
        value = np.where(above, np.log(high), np.where(below, tail, value))
        by_mean = np.where(
            above, -1.0 / high, np.where(below, (1.0 - series / square) * far / series, by_mean)
        )
        by_std = np.where(above, _density(high) / high, np.where(below, square / series, by_std))
    return value + np.log(std), by_mean / std, by_std / std


def log_probability_of_improvement(mean: Array, std: Array, incumbent: Array) -> Array:
    """log PI = log Phi(z), with z = (incumbent - mean) / std."""
    value: Array = log_ndtr((incumbent - mean) / std)
    return value


@dataclass(frozen=True)
class ProbabilityOfImprovement(MeanStdAcquisition):
    """The logarithm of the probability to beat the incumbent by ``margin``, in standard deviations
    of the targets by default.

    Without a margin it stays at the incumbent, where a tiny improvement is almost certain.
    """

    margin: float = 0.01
    margin_unit: str = "deviation"
    logarithmic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.check_margin()

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return log_probability_of_improvement(mean, std, incumbent)

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[Array, Array]:
        z = np.maximum((incumbent - mean) / std, _FARTHEST)
        slope = 1.0 / _ratio(z)  # phi / Phi
        return -slope / std, -slope * z / std


@dataclass(frozen=True)
class ExpectedImprovement(MeanStdAcquisition):
    """EI over the incumbent less ``margin``, in the units of the model; see `MeanStdAcquisition`
    for the margin's units."""

    margin: float = 0.0
    margin_unit: str = "deviation"

    def __post_init__(self) -> None:
        self.check_margin()

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return expected_improvement(mean, std, incumbent)

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[Array, Array]:
        z = (incumbent - mean) / std
        return -ndtr(z), _density(z)

    def logarithm(self) -> "LogExpectedImprovement":
        return LogExpectedImprovement(self.margin, self.margin_unit)


@dataclass(frozen=True)
class LogExpectedImprovement(MeanStdAcquisition):
    """The logarithm of EI: the same maximiser, with a gradient everywhere. Averages are those of
    EI.

    # doctest: +SKIP
    >>> score = LogExpectedImprovement().bind({"loss": fitted}, Context(evaluated=data.x))
    # (m,), (m, d)                     # doctest: +SKIP
    >>> values, gradients = score.value_and_gradient(x)
    """

    margin: float = 0.0
    margin_unit: str = "deviation"
    logarithmic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.check_margin()

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return log_expected_improvement(mean, std, incumbent)

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[Array, Array]:
        return log_expected_improvement_and_derivatives(mean, std, incumbent)[1:]

    def alpha_and_derivatives(
        self, mean: Array, std: Array, incumbent: Array
    ) -> tuple[Array, Array, Array]:
        return log_expected_improvement_and_derivatives(mean, std, incumbent)


def _ratio(z: Array) -> Array:
    """Phi(z) / phi(z); it stands still above 30, where one over it is nothing, before it
    overflows."""
    value: Array = np.sqrt(0.5 * np.pi) * erfcx(np.minimum(z, 30.0) * -np.sqrt(0.5))
    return value


def _density(z: Array) -> Array:
    """phi(z); zero where z * z would overflow."""
    value: Array = np.exp(-0.5 * np.square(np.clip(z, -50.0, 50.0)) - _LOG_SQRT_2PI)
    return value


def _tail_series(z: Array) -> Array:
    """z^2 (1 + z r(z)) for z < -50: 1 - 3/z^2 + 15/z^4 - 105/z^6 + 945/z^8."""
    inverse = 1.0 / (z * z)
    value: Array = 1.0 - inverse * (3.0 - inverse * (15.0 - inverse * (105.0 - inverse * 945.0)))
    return value
