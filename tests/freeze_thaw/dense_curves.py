"""The covariance of curves, written out for all pairs of rows."""

import numpy as np
from numpy.typing import NDArray

from scrimp.freeze_thaw.curve_process import CurveParameters, CurveRows, squared_distances
from scrimp.gp.stationary import matern52

Array = NDArray[np.float64]


def curve_covariance(rows: CurveRows, theta: Array) -> Array:
    """Return K (n, n) of the observations without noise: the formula written out."""
    p = CurveParameters.of(theta)
    scaled = rows.features / p.lengths[rows.owner]
    across = matern52(squared_distances(scaled, scaled))[np.ix_(rows.config, rows.config)]
    apart = (rows.time[:, None] - rows.time) ** 2
    shared = p.level + p.shape * matern52(apart / p.shape_time**2)
    same = rows.config[:, None] == rows.config
    scales = p.scales(rows.time)
    return np.asarray(
        np.outer(scales, scales)
        * (across * shared + same * p.own * matern52(apart / p.own_time**2))
    )
