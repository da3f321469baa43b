"""Expected improvement, and beside it what past studies promise, as loud as is asked for.

With EI of the study at hand, M past studies of which eta_i is the least mean mu_i of what was
evaluated, and w_i how well each agrees with the study at hand, sum_i w_i = 1,

    a(x) = (1 - least - early) EI(x) + sum_i (least / M + early w_i E / P) max(0, eta_i - mu_i(x))

E and P are the most that EI and sum_i w_i max(0, eta_i - mu_i) come to over some rows. So an
``early`` share of one half lets both speak equally loud, whatever their units: that is what counts
while a handful of values tell little. ``least`` counts in the units of the models.

    EarlyPromise(sources, agreement, early=0.4, least=0.03, rows=rows).bind(models, context)
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from scrimp.acquisition.acquisition import Acquisition
from scrimp.acquisition.context import Context
from scrimp.surrogates.surrogate import Array, FittedSurrogate
from scrimp.transfer.acquisitions import BoundMixedImprovement, MixedImprovement
from scrimp.transfer.source_models import SourceModels
from scrimp.transfer.task_posterior import TaskImprovement

__all__ = ["EarlyPromise"]

LEAST_PROMISE = 1e-12


@dataclass(frozen=True, eq=False)
class EarlyPromise(Acquisition):
    """``agreement`` (M,) of past studies sums to 1; ``rows`` (r, d): where the most of either is
    looked for."""

    sources: SourceModels
    agreement: Array
    early: float
    least: float
    rows: Array

    def bind(
        self, models: Mapping[str, FittedSurrogate], context: Context
    ) -> BoundMixedImprovement:
        count = len(self.sources)
        weights = np.append(np.full(count, self.least / count), 1.0 - self.least - self.early)
        bound = MixedImprovement(self.sources, weights, at_hand=TaskImprovement()).bind(
            models, context
        )
        if not self.early:
            return bound
        promised = np.maximum(bound.eta - self.sources.means(self.rows), 0.0) @ self.agreement
        most = float(np.exp(bound.own(self.rows).max()))
        weights[:-1] += self.early * self.agreement * most / max(promised.max(), LEAST_PROMISE)
        return replace(bound, mixture=replace(bound.mixture, weights=weights))
