"""How well the model of a study foretells a configuration from all others: the share of variance
that it explains, leaving one configuration out at a time.

With A = K^-1, the residuals r = z - m(u), and b the rows of one configuration, what the others say
of them is exact and needs no second model:

    z_b - A_bb^-1 (A r)_b

(Rasmussen, Williams, Gaussian Processes for Machine Learning, 2006, 5.4.2, for one row each.)
Compared are the first rows that the model has of each: of a newcomer nothing else is seen before the
next decision. (Beyond 300 rows, of the worst trials only the last one is left.)

    foresight(belief)      # 1: every first row is foretold; 0: no better than their mean
"""

import numpy as np
from numpy.typing import NDArray

from scrimp.freeze_thaw.model import CurveBelief
from scrimp.gp.cholesky import inverse_factor

__all__ = ["foresight"]

Array = NDArray[np.float64]


def foresight(belief: CurveBelief) -> float:
    """1 - sum (z - foretold)^2 / sum (z - mean)^2 over the first row of each configuration, between
    0 and 1; 0 where there is nothing to tell apart."""
    first, foretold = first_rows_from_others(belief)
    spread = float(((first - first.mean()) ** 2).sum())
    if not spread > 0.0:
        return 0.0
    return float(np.clip(1.0 - ((first - foretold) ** 2).sum() / spread, 0.0, 1.0))


def first_rows_from_others(belief: CurveBelief) -> tuple[Array, Array]:
    """The target of the first row of each configuration, and what all others say of it, (C,)
    each."""
    count = len(belief.order)
    trial = belief.curves.trial[belief.order]
    inverse = inverse_factor(belief.factor.lower[:count, :count])  # A = inverse^T inverse
    pulled = inverse.T @ belief.whitened[:count]
    _, firsts, sizes = np.unique(trial, return_index=True, return_counts=True)
    off = pulled[firsts] / (inverse[:, firsts] ** 2).sum(axis=0)
    for place in np.flatnonzero(sizes > 1):
        own = np.flatnonzero(trial == trial[firsts[place]])
        off[place] = np.linalg.solve(inverse[:, own].T @ inverse[:, own], pulled[own])[0]
    return belief.z[firsts], belief.z[firsts] - off
