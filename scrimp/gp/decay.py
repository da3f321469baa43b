"""How much of a learning curve's first error is left after a share of the budget: an average of
exponential decays.

    kappa(rho) = E[exp(-lambda rho)] = (beta / (beta + rho))^alpha,    lambda ~ Gamma(shape alpha, mean rate), beta = alpha / rate

A sum of exponentials with unknown rates has this mean, and Cov(exp(-lambda rho), exp(-lambda
rho')) = kappa(rho + rho')
- kappa(rho) kappa(rho'): the curves' own covariance. Swersky, Snoek, Adams, Freeze-Thaw Bayesian
  Optimization, 2014.

    value, pull = decay(rho, shape, rate)
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["decay", "decay_slope"]

Array = NDArray[np.float64]


def decay(
    rho: Array, shape: float, rate: float
) -> tuple[Array, Callable[[Array], tuple[float, float]]]:
    """kappa(rho) of any shape, and pull(d) -> gradients of shape and rate.

    >>> value, _ = decay(np.array([0.0, 1.0]), 1.0, 1.0)
    >>> value.tolist()
    [1.0, 0.5]
    """
    grown = rho * (rate / shape)
    value: Array = np.exp(-shape * np.log1p(grown))

    def pull(d: Array) -> tuple[float, float]:
        weighted = d * value
        by_shape = grown / (1.0 + grown) - np.log1p(grown)
        return float((weighted * by_shape).sum()), float(-(weighted * rho / (1.0 + grown)).sum())

    return value, pull


def decay_slope(rho: Array, shape: float, rate: float) -> Array:
    """d kappa / d rho."""
    grown = rho * (rate / shape)
    slope: Array = -rate * np.exp(-(shape + 1.0) * np.log1p(grown))
    return slope
