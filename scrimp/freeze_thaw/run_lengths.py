"""How long a run will be, where its configuration decides it: epochs as a parameter, a fixed number
of samples per batch size.

A run that ended by itself before the full budget tells its length; the others are predicted by
ridge regression of

    log(length / full) = w . (1, x, (x - 1/2)^2),        |w| small,

so that where all runs go on to the full budget, all predictions are the full budget.

    expected_ends(x_ended, lengths, x, full)               # (m,)
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["expected_ends"]

Array = NDArray[np.float64]

RIDGE = 0.01


def expected_ends(ended: Array, lengths: Array, x: Array, full: float) -> Array:
    """The lengths of runs of encoded configurations x (m, d), from runs ``ended`` (k, d) of known
    ``lengths`` (k,).

    >>> expected_ends(np.array([[0.0], [1.0]]), np.array([100.0, 100.0]), np.array([[0.3]]), 100.0)
    array([100.])
    """
    if not (lengths < full).any():
        return np.full(len(x), full)
    known = _terms(ended)
    weights = np.linalg.solve(
        known.T @ known + RIDGE * np.eye(known.shape[1]), known.T @ np.log(lengths / full)
    )
    return np.asarray(full * np.exp(np.minimum(_terms(x) @ weights, 0.0)))


def _terms(x: Array) -> Array:
    return np.hstack([np.ones((len(x), 1)), x, (x - 0.5) ** 2])
