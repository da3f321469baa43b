"""The nearest of many rows in the unit cube."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["nearest_rows"]


def nearest_rows(
    places: NDArray[np.float64], rows: NDArray[np.float64], apart: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The index of the nearest of ``rows`` (n, d) for each of ``places`` (m, d); the first one
    among equals.

    Distance is Euclidean; on the axes that are ``apart`` (d,), the categorical ones, unequal values
    are at distance 1.
    """
    found = np.empty(len(places), dtype=np.int64)
    for number, place in enumerate(places):
        gap = np.abs(rows - place)
        gap[:, apart] = gap[:, apart] > 0
        found[number] = np.argmin(np.einsum("nd,nd->n", gap, gap))
    return found
