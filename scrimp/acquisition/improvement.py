"""Improvement over the incumbent and confidence bounds: formulas of posterior mean and std.

With z = (incumbent - mean) / std, the density phi and the distribution Phi of the standard normal:

    probability  PI = Phi(z)                                 Kushner, "A new method of locating the maximum point", 1964
    expectation  EI = std h(z),  h(z) = phi(z) + z Phi(z)    Mockus et al., "The application of Bayesian methods", 1978
    logarithm    log EI = log std + log h(z)                 Ament et al., "Unexpected improvements to expected improvement", 2023
    confidence   kappa std - mean                            Cox and John, "SDO: a statistical method", 1997

*log EI.* EI underflows to zero, with its gradient, a few standard deviations below the incumbent,
which is most of a search space late in a study. Its logarithm does not. With the ratio r(z) =
Phi(z) / phi(z) = sqrt(pi/2) erfcx(-z / sqrt(2)),

    h(z) = phi(z) (1 + z r(z)),   d log EI / d mean = -r / (std (1 + z r)),   d log EI / d std = 1 / (std (1 + z r))

need no number that overflows or underflows on -50 < z < 10. Below, 1 + z r loses digits and has the
asymptotic series (1 - 3/z^2 + 15/z^4 - ...) / z^2; above, h(z) = z to the last digit.

*Confidence bounds.* kappa = sqrt(beta) is constant, or grows with the number t of observations in d
columns as in theorem 2 of Srinivas et al., "Gaussian process optimization in the bandit setting",
2010, with the constants a, b and r of the domain 1:

    beta_t  = 2 log(2 pi^2 t^2 / (3 delta)) + 2 d log(d t^2 sqrt(log(4 d / delta)))
    kappa_t = sqrt(beta_t / divisor)            their experiments divide by 5

For losses this is minus the lower confidence bound; for rewards it is the upper one, hence the name
"ucb".

All functions take broadcastable arrays; lower means are better.
"""

from dataclasses import dataclass, replace
from math import log, pi, sqrt
from typing import ClassVar

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from scrimp.acquisition.acquisition import BoundMeanStd, Context, MeanStdAcquisition
from scrimp.plugins.settings import above, below, check_settings, choices, other_than, setting
from scrimp.plugins.study_rules import OVER_INCUMBENT
from scrimp.surrogates.surrogate import Array, FittedSurrogate

WHILE_GROWING = ("schedule", ("growing",))
"""The schedule whose width ``delta`` and ``divisor`` set."""

WITH_MARGIN = ("margin", other_than(0))
"""The margins that have a unit."""

_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)
_RATIO_LOW, _RATIO_HIGH = -50.0, 10.0
"""Between these z the ratio formula is exact to rounding."""

_MIN_Z = -1e150
"""Below it z * z would overflow."""


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
    -457.724654
    """
    return log_expected_improvement_and_derivatives(mean, std, incumbent)[0]


def log_expected_improvement_and_derivatives(
    mean: Array, std: Array, incumbent: Array
) -> tuple[Array, Array, Array]:
    """log EI and its derivatives by mean and by std."""
    z = np.maximum((incumbent - mean) / std, _MIN_Z)
    inner = np.clip(z, _RATIO_LOW, _RATIO_HIGH)
    ratio = _ratio(inner)
    h_by_density = 1.0 + inner * ratio
    value: Array = np.log(h_by_density) - 0.5 * inner * inner - _LOG_SQRT_2PI
    by_mean, by_std = -ratio / h_by_density, 1.0 / h_by_density
    if np.any(inner != z):
        above, below = z > _RATIO_HIGH, z < _RATIO_LOW
        high, far = np.maximum(z, _RATIO_HIGH), np.minimum(z, _RATIO_LOW)
        series = _tail_series(far)
        square = far * far
        tail = np.log(series) - 2.0 * np.log(-far) - 0.5 * square - _LOG_SQRT_2PI
        value = np.where(above, np.log(high), np.where(below, tail, value))
        tail_slope = (1.0 - series / square) * far / series
        by_mean = np.where(above, -1.0 / high, np.where(below, tail_slope, by_mean))
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

    Without a margin it never leaves the incumbent, where a tiny improvement is almost certain.
    """

    margin: float = setting(0.01, only_with=OVER_INCUMBENT)
    margin_unit: str = setting("deviation", only_with=WITH_MARGIN)
    logarithmic: ClassVar[bool] = True

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return log_probability_of_improvement(mean, std, incumbent)

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[Array, Array]:
        z = np.maximum((incumbent - mean) / std, _MIN_Z)
        slope = 1.0 / _ratio(z)
        return -slope / std, -slope * z / std


@dataclass(frozen=True)
class ExpectedImprovement(MeanStdAcquisition):
    """EI over the incumbent less ``margin``, in the units of the model; `MeanStdAcquisition` has the
    units of the margin."""

    margin: float = setting(0.0, only_with=OVER_INCUMBENT)
    margin_unit: str = setting("deviation", only_with=WITH_MARGIN)

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

        score = LogExpectedImprovement().bind({"loss": fitted}, Context(evaluated=data.x))
        values, gradients = score.value_and_gradient(x)                # (m,), (m, d)
    """

    margin: float = setting(0.0, only_with=OVER_INCUMBENT)
    margin_unit: str = setting("deviation", only_with=WITH_MARGIN)
    logarithmic: ClassVar[bool] = True

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return log_expected_improvement_and_derivatives(mean, std, incumbent)[0]

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[Array, Array]:
        return log_expected_improvement_and_derivatives(mean, std, incumbent)[1:]

    def alpha_and_derivatives(
        self, mean: Array, std: Array, incumbent: Array
    ) -> tuple[Array, Array, Array]:
        return log_expected_improvement_and_derivatives(mean, std, incumbent)


def _ratio(z: Array) -> Array:
    """Phi(z) / phi(z), constant above z = 30, where its inverse is negligible."""
    value: Array = np.sqrt(0.5 * np.pi) * erfcx(np.minimum(z, 30.0) * -np.sqrt(0.5))
    return value


def _density(z: Array) -> Array:
    """phi(z); zero where z * z would overflow."""
    value: Array = np.exp(-0.5 * np.square(np.clip(z, -50.0, 50.0)) - _LOG_SQRT_2PI)
    return value


def _tail_series(z: Array) -> Array:
    """z^2 (1 + z r(z)) for z < -50: 1 - 3/z^2 + 15/z^4 - 105/z^6 + 945/z^8."""
    inverse = 1.0 / (z * z)
    return 1.0 - inverse * (3.0 - inverse * (15.0 - inverse * (105.0 - inverse * 945.0)))


def growing_kappa(count: int, dimension: int, delta: float = 0.1, divisor: float = 5.0) -> float:
    """kappa_t after ``count`` observations in ``dimension`` columns.

    >>> [round(growing_kappa(t, 2), 2) for t in (1, 10, 100)]
    [2.12, 2.93, 3.73]
    """
    t, d = count + 1, max(dimension, 1)
    beta = 2 * log(2 * pi**2 * t**2 / (3 * delta))
    beta += 2 * d * log(d * t**2 * sqrt(log(4 * d / delta)))
    return sqrt(max(beta, 0.0) / divisor)


@dataclass(frozen=True)
class _Confidence(MeanStdAcquisition):
    """``schedule``: kappa is "constant", or "growing" by ``delta`` and ``divisor``."""

    kappa: float = setting(2.0, only_with=("schedule", ("constant",)))
    schedule: str = setting("constant", choices("constant", "growing"), paper=True)
    delta: float = setting(0.1, above(0) & below(1), paper=True, only_with=WHILE_GROWING)
    divisor: float = setting(5.0, above(0), paper=True, only_with=WHILE_GROWING)

    def __post_init__(self) -> None:
        check_settings(self)

    def of_members(self, loss: FittedSurrogate, context: Context) -> list[BoundMeanStd]:
        if self.schedule == "constant":
            return super().of_members(loss, context)
        count, dimension = context.evaluated.shape
        kappa = growing_kappa(count, dimension, self.delta, self.divisor)
        return replace(self, kappa=kappa, schedule="constant").of_members(loss, context)


class LowerConfidenceBound(_Confidence):
    """Minus the lower confidence bound of the loss. A larger ``kappa`` explores more."""

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return self.kappa * std - mean

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[float, float]:
        return -1.0, self.kappa

    def logarithm(self) -> "OptimisticImprovement":
        return OptimisticImprovement(self.kappa, self.schedule, self.delta, self.divisor)


class OptimisticImprovement(_Confidence):
    """The logarithm of the improvement of the lower confidence bound over the incumbent, which
    feasibility and cost can weigh.

    With z = (incumbent - mean) / std it is log(std h(z + kappa)). Where the bound is below the
    incumbent h(w) is nearly w, so this is log(incumbent - (mean - kappa std)); elsewhere it falls
    off smoothly, as EI does.
    """

    logarithmic: ClassVar[bool] = True

    def alpha(self, mean: Array, std: Array, incumbent: Array) -> Array:
        return log_expected_improvement(mean - self.kappa * std, std, incumbent)

    def derivatives(self, mean: Array, std: Array, incumbent: Array) -> tuple[Array, Array]:
        bound = mean - self.kappa * std
        _, d_mean, d_std = log_expected_improvement_and_derivatives(bound, std, incumbent)
        return d_mean, d_std - self.kappa * d_mean
