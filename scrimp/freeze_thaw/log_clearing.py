"""How far below an edge a loss is expected to come where its logarithm is normal, in logarithms.

A curve model's targets are logarithms of losses (`scrimp.freeze_thaw.curve_target`): above the floor
c of its transform a loss is Y = c + exp(m + s e), e standard normal. With a = u - c and
d = (log a - m) / s,

    E[(u - Y)+] = a Phi(d) - exp(m + s^2 / 2) Phi(d - s) = a phi(d) [M(-d) - M(s - d)]

M(x) = (1 - Phi(x)) / phi(x) being Mills' ratio. The second form has a logarithm however far the
edge lies below (d < 0); where M is flat, M(x) - M(x + s) = s / (x (x + s)). Where s is small, this
is a s h(d), the expected improvement of a normal loss (`scrimp.acquisition.improvement`). So
hypervolumes are expected in the units of the metrics, whatever the transform.

    log_clearing(mean, deviation, above)                # (k, e)
    log_clearing_below(mean, deviation, np.log(above))  # the same
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr

from scrimp.acquisition.improvement import log_expected_improvement

__all__ = ["log_clearing", "log_clearing_below"]

Array = NDArray[np.float64]

NARROW = 1e-4
"""The deviation below which the difference of Mills' ratios is its slope."""

SURE = 5.0
"""The d from which on Phi(d) is one, all but."""

FLAT = 1e4
"""Where Mills' ratio is 1 / x to eight digits."""

_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)


def log_clearing(mean: Array, deviation: Array, above: Array) -> Array:
    """log E[(u - Y)+] (k, e) for k losses, by mean and standard deviation of log(Y - c) (k,), and e
    edges ``above`` c (e,), all positive.

    >>> half = log_clearing(np.zeros(1), np.array([1e-9]), np.array([1.5]))
    >>> float(np.exp(half[0, 0]).round(6))
    0.5
    """
    return log_clearing_below(mean, deviation, np.log(above))


def log_clearing_below(mean: Array, deviation: Array, logs: Array) -> Array:
    """The same by the logarithms of the edges, (e,) or (k, e)."""
    m, s = mean[:, None], deviation[:, None]
    d = np.maximum((logs - m) / s, -1e150)
    wide = np.maximum(s, NARROW)
    below, over = np.minimum(d, 0.0), np.maximum(d, 0.0)
    left = _log_mills_fall(-below, wide) - 0.5 * below * below - _LOG_SQRT_2PI
    value = np.where(d < 0.0, left, _log_share(over, np.where(d < SURE, wide, s)))
    narrow = (s < NARROW) & (d < SURE)
    if narrow.any():
        # by the slope of M in the middle between both: exact to the second order of s
        near, zero = np.minimum(d, SURE), np.zeros(1)
        middle = log_expected_improvement(zero, zero + 1.0, near - 0.5 * s)
        bend = np.where(narrow, s * (0.125 * s - 0.5 * near), 0.0)
        value = np.where(narrow, middle + bend + np.log(s), value)
    return np.asarray(logs + value)


def _log_mills_fall(x: Array, s: Array) -> Array:
    """log(M(x) - M(x + s)) for x >= 0."""
    near = np.minimum(x, FLAT)
    fall = np.sqrt(0.5 * np.pi) * (erfcx(near / np.sqrt(2.0)) - erfcx((near + s) / np.sqrt(2.0)))
    flat = np.log(s) - np.log(np.maximum(x, 1.0)) - np.log(np.maximum(x + s, 1.0))
    return np.asarray(np.where(x < FLAT, np.log(np.maximum(fall, 1e-300)), flat))


def _log_share(d: Array, s: Array) -> Array:
    """log(Phi(d) - exp(s^2 / 2 - s d) Phi(d - s)) for d >= 0."""
    rest = log_ndtr(d)
    return np.asarray(rest + np.log(-np.expm1(s * (0.5 * s - d) + log_ndtr(d - s) - rest)))
