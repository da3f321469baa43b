"""A model of f(x, r) with a deep kernel: what DyHPO was published with.

A Gaussian process over rows (x, share of the full budget) whose kernel sees features of the
configuration, the budget and the curve so far; see `scrimp.gp.deep_kernel`. The curves are those of
the data at hand, so the prior is made anew for them.

    DeepCurves(columns).fit(Data(np.column_stack([x, share]), y), rng)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from scrimp.gp.columns import Column
from scrimp.gp.deep_kernel import DeepKernel, ObservedRows
from scrimp.gp.kernel import Scaled
from scrimp.gp.marginal_likelihood import SearchSettings
from scrimp.gp.process import MeanAndKernel
from scrimp.json_values import JsonObject
from scrimp.surrogates.exact_gp import ExactGP, FittedGP, as_columns
from scrimp.surrogates.surrogate import Data, Surrogate

__all__ = ["DeepCurves"]


@dataclass(frozen=True, eq=False)
class DeepCurves(Surrogate):
    """``columns`` of the configuration; the budget is the column after them. Targets come
    standardised."""

    columns: Sequence[Column]
    search: SearchSettings = field(default_factory=SearchSettings)

    def fit(
        self, data: Data, rng: np.random.Generator, start: JsonObject | None = None
    ) -> FittedGP:
        return self._over(data).fit(data, rng, start)

    def restore(self, data: Data, state: JsonObject) -> FittedGP:
        return self._over(data).restore(data, state)

    def _over(self, data: Data) -> ExactGP:
        curves = ObservedRows(data.x, as_columns(data.y)[:, 0])
        kernel = DeepKernel((*self.columns, Column()), curves)
        return ExactGP(MeanAndKernel(Scaled(kernel)), search=self.search)
