"""What a unit of training costs, by configuration: measured where it ran, foretold elsewhere.

Where time is what a study is short of, or something else that is reported as its cost, a small gain
of a cheap run may be worth more than a larger one of a dear run. Costs of training are mostly
products (of width, depth, batches in an epoch), so their logarithms are learned by a ridge
regression on the features f(x) of the configurations:

    log cost(x) = mean + (f(x) - centre) . w,      w = (A'A + r I)^-1 A'y

with the centred features A and log costs y of the trials so far. A trial's own cost is the lower
median of its reports: the first one often pays for what is loaded. Whether costs matter at all says
`scrimp.freeze_thaw.outlook`.

    costs = UnitCosts.of(rows, curves)                   # None while too few are known, or all the same
    costs.of_trials(trials), costs.of_configs(x)         # logarithms
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.freeze_thaw.curve_rows import RowList
from scrimp.freeze_thaw.model import StudyCurves

__all__ = ["UnitCosts"]

Array = NDArray[np.float64]

LEAST = 4  # trials with a cost before anything is foretold
RIDGE = 0.3  # r; features lie between 0 and 1
SAME = 1e-6  # log costs that differ by less are rounding errors


@dataclass(frozen=True)
class UnitCosts:
    """``own`` (trials,): log costs of a unit; ``mean``, ``centre`` (f,) and ``weights`` (f,)
    foretell those of other configurations."""

    own: Array
    mean: float
    centre: Array
    weights: Array
    curves: StudyCurves

    @staticmethod
    def of(rows: RowList, curves: StudyCurves) -> "UnitCosts | None":
        """By the reports so far; None while they are too few, or all the same."""
        known = [trial for trial in rows.unit_costs if curves.usable[trial]]
        logs = np.log([rows.unit_costs[trial] for trial in known])
        if len(known) < LEAST or np.ptp(logs) <= SAME:
            return None
        mean, centre = float(logs.mean()), curves.features[known].mean(axis=0)
        a = curves.features[known] - centre
        weights = np.linalg.solve(a.T @ a + RIDGE * np.eye(a.shape[1]), a.T @ (logs - mean))
        own = mean + (curves.features - centre) @ weights
        own[known] = logs
        return UnitCosts(own, mean, centre, weights, curves)

    def of_trials(self, trials: NDArray[np.intp]) -> Array:
        """Log costs (m,) of a unit of these trials."""
        return self.own[trials]

    def of_configs(self, x: Array) -> Array:
        """Log costs (m,) of a unit of configurations x (m, d) that nobody tried."""
        return np.asarray(self.mean + (self.curves.featured(x) - self.centre) @ self.weights)
