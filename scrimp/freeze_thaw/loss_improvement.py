"""How much loss a curve is expected to take off the best, in logarithms.

Targets z of a curve model are stretched logarithms of losses (`scrimp.freeze_thaw.curve_target`):

    y = c + exp(scale z + mean),      c = low - shift (cap - low)

and z is normal, so the expected improvement on a loss g, E[(g - y)+], has a closed form
(`scrimp.freeze_thaw.log_clearing`). Improvement of z itself would be a poor measure: below the best
loss z falls faster and faster, to minus infinity at c. So an uncertain candidate could promise more
improvement than any loss allows, and good runs would stay unfinished.

    log_loss_improvement(target, mean, deviation, goals)               # (m,)
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from scrimp.freeze_thaw.curve_target import CurveTarget
from scrimp.freeze_thaw.log_clearing import log_clearing_below

__all__ = ["log_loss_improvement", "log_loss_improvement_and_derivatives"]

Array = NDArray[np.float64]

_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)


def log_loss_improvement(target: CurveTarget, mean: Array, deviation: Array, goals: Array) -> Array:
    """log E[(g - y)+] (m,) of targets with these means and standard deviations (m,); ``goals`` (m,)
    are targets too.

    >>> target = CurveTarget(low=1.0, cap=3.0, mean=0.0, scale=1.0, shift=0.5)
    >>> best = target.forward(np.array([1.0, 1.0]))
    >>> sure, bold = log_loss_improvement(target, best - [0.7, 0.0], np.array([1e-3, 90.0]), best)
    >>> float(np.exp(sure).round(2)), float(np.exp(bold).round(2))
    (0.5, 0.5)
    """
    m, log_a = (z * target.scale + target.mean for z in (mean, goals))
    return log_clearing_below(m, deviation * target.scale, log_a[:, None])[:, 0]


def log_loss_improvement_and_derivatives(
    target: CurveTarget, mean: Array, deviation: Array, goals: Array
) -> tuple[Array, Array, Array]:
    """The same, and its derivatives by mean and by deviation, (m,) each.

    With a = g - c, d = (log a - m) / s and F = exp(m + s^2 / 2), E = E[(g - y)+] has

        dE/dm = -F Phi(d - s),      dE/ds = a phi(d) - s F Phi(d - s)
    """
    value = log_loss_improvement(target, mean, deviation, goals)
    m, log_a = (z * target.scale + target.mean for z in (mean, goals))
    s = deviation * target.scale
    d = (log_a - m) / s
    by_mean = -np.exp(m + 0.5 * s * s + log_ndtr(d - s) - value)
    by_spread = np.exp(log_a - 0.5 * d * d - _LOG_SQRT_2PI - value) + s * by_mean
    return value, target.scale * by_mean, target.scale * by_spread
