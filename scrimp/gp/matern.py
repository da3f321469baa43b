"""The Matern-5/2 covariance, k = (1 + s + s^2 / 3) exp(-s) with s = sqrt(5 r^2), for all who need
it.

Matern, Spatial Variation, 1960; Stein, Interpolation of Spatial Data, 1999.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["matern52", "matern52_and_slope", "matern52_by_length"]

Array = NDArray[np.float64]


def matern52(squared: Array) -> Array:
    """k at squared distances r^2."""
    root = np.sqrt(5.0 * squared)
    value: Array = root / 3.0
    value += 1.0
    value *= root
    value += 1.0
    value *= np.exp(np.negative(root, out=root), out=root)
    return value


def matern52_and_slope(squared: Array) -> tuple[Array, Array]:
    """k and dk/dr^2 = -5/6 (1 + s) exp(-s)."""
    s = np.sqrt(5.0 * squared)
    decay = np.exp(-s)
    s += 1.0
    s *= decay
    decay *= squared
    decay *= 5.0 / 3.0
    decay += s
    s *= -5.0 / 6.0
    return decay, s


def matern52_by_length(positions: Array, length: float) -> tuple[Array, Array]:
    """k between positions (n,) on a line, (n, n), and its derivative by the logarithm of ``length``.

    >>> matern52_by_length(np.array([0.0, 1.0]), 1.0)[0].round(4)
    array([[1.    , 0.524 ],
           [0.524 , 1.    ]])
    """
    squared = ((positions[:, None] - positions) / length) ** 2
    value, slope = matern52_and_slope(squared)
    return value, -2.0 * squared * slope
