"""Priors over f(x, rho) by name: x the configuration, rho = r / r_max the share of a full training,
the last column.

    exp-decay-sum        k_x + the deviation of one learning curve that all configurations share
    exp-decay-combined   the same, and a learned share of k_x decays along the curve
    exp-decay-delta1     the same, and all of k_x decays
    freeze-thaw          k_x + a deviation of each configuration's own
    matern52             one kernel over (x, rho)
    matern52-res-warp    one kernel over (x, warped rho)
    cross-validation     k_x + k_res / max(r, r'), r the number of folds

The first four are `DecayPrior`, whose module has the formulas; the others have a constant mean.

    ExactGP(budget_prior("exp-decay-sum", columns)).fit(Data(np.column_stack([x, rho]), y), rng)

Tiao, Klein, Archambeau, Seeger, Model-based Asynchronous Hyperparameter and Neural Architecture
Search, 2020. Swersky, Snoek, Adams, Freeze-Thaw Bayesian Optimization, 2014.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from scrimp.errors import MethodError
from scrimp.gp.columns import Column
from scrimp.gp.decay import DecayPrior
from scrimp.gp.hyperparameters import Hyperparameter
from scrimp.gp.kernel import Array, Kernel, OnColumns, Pullback, Scaled
from scrimp.gp.process import CrossPullback, MeanAndKernel, Prior, PriorPullback
from scrimp.gp.stationary import Matern52, kernel_by_name
from scrimp.gp.warping import Warped

DECAYS: Mapping[str, tuple[float | None, bool]] = {
    "exp-decay-sum": (0.0, False),
    "exp-decay-combined": (None, False),
    "exp-decay-delta1": (1.0, False),
    "freeze-thaw": (0.0, True),
}
"""The share d of each `DecayPrior`, None for a learned one, and whether each curve is separate."""

RESOURCE_KERNELS = (*DECAYS, "matern52", "matern52-res-warp", "cross-validation")


def budget_prior(
    name: str,
    columns: Sequence[Column],
    kernel: str = "matern52-ard",
    folds: float = 1.0,
    warped: bool = False,
) -> Prior:
    """Return the prior of that name over configurations with these columns and a budget column
    after them.

    ``folds``: the number of folds at rho = 1, for the cross-validation kernel. ``warped``: warp the
    columns of the configuration (`Warped`); the budget is warped by matern52-res-warp only.
    """
    width = len(columns)
    own = tuple(range(width))
    # Warping leaves categorical columns as they are.
    fixed = Column((0.0,), ordered=False)
    if name in DECAYS:
        return DecayPrior(config_kernel(kernel, columns, warped), *DECAYS[name])
    match name:
        case "matern52":
            both = kernel_by_name(kernel, (*columns, Column()))
            return MeanAndKernel(Warped(both, (*columns, fixed)) if warped else both)
        case "matern52-res-warp":
            bent = tuple(columns) if warped else (fixed,) * width
            both = kernel_by_name(kernel, (*columns, Column()))
            return MeanAndKernel(Warped(both, (*bent, Column())))
        case "cross-validation":
            alike = OnColumns(Scaled(Matern52(columns, ard=False)), own)
            fold = alike * OnColumns(InverseLargest(folds), (width,))
            return MeanAndKernel(OnColumns(config_kernel(kernel, columns, warped), own) + fold)
    raise MethodError(
        f"unknown resource kernel {name!r}; choose one of {', '.join(RESOURCE_KERNELS)}"
    )


def config_kernel(name: str, columns: Sequence[Column], warped: bool = False) -> Kernel:
    """Return the kernel of that name over a configuration, on `Warped` inputs if ``warped``."""
    plain = kernel_by_name(name, columns)
    return Warped(plain, columns) if warped else plain


@dataclass(frozen=True, eq=False)
class InverseLargest(Kernel):
    """k(rho, rho') = 1 / (folds max(rho, rho')) over one positive column, without parameters.

    The covariance of averages over the first r and the first r' of the same folds, each of
    variance 1.
    """

    folds: float = 1.0
    parameters: ClassVar[tuple[Hyperparameter, ...]] = ()

    @property
    def values(self) -> Array:
        return np.empty(0)

    def with_values(self, values: Array) -> "InverseLargest":
        return self

    def __call__(self, x1: Array, x2: Array) -> Array:
        return 1.0 / (self.folds * np.maximum(x1, x2.T))

    def diagonal(self, x: Array) -> Array:
        return 1.0 / (self.folds * x[:, 0])

    def value_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        return self(x, x), lambda d: np.empty(0)

    def cross_and_pullback(self, x1: Array, x2: Array) -> tuple[Array, Pullback]:
        def pull(d: Array) -> Array:
            # At a tie both sides count half.
            share = 0.5 * (np.sign(x1 - x2.T) + 1.0)
            slope = -share / (self.folds * x1**2)
            return np.asarray((d * slope).sum(1, keepdims=True), dtype=np.float64)

        return self(x1, x2), pull

    def diagonal_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        return self.diagonal(x), lambda d: (-d / (self.folds * x[:, 0] ** 2))[:, None]


@dataclass(frozen=True, eq=False)
class ShiftedBudget(Prior):
    """``inner`` at (x, rho - shift), with the parameters of ``inner``.

    Systems that encode whole-numbered budgets like any integer parameter put r of 1 to r_max in the
    middle of the r-th of r_max cells, (r - 1/2) / r_max, instead of at its end, r / r_max. They are
    reproduced by ``shift`` = 0.5 / r_max.
    """

    inner: Prior
    shift: float

    def _moved(self, x: Array) -> Array:
        return np.column_stack([x[:, :-1], x[:, -1] - self.shift])

    @property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        return self.inner.parameters

    @property
    def values(self) -> Array:
        return self.inner.values

    def with_values(self, values: Array) -> "ShiftedBudget":
        return replace(self, inner=self.inner.with_values(values))

    def mean(self, x: Array) -> Array:
        return self.inner.mean(self._moved(x))

    def covariance(self, x1: Array, x2: Array) -> Array:
        first = self._moved(x1)
        return self.inner.covariance(first, first if x2 is x1 else self._moved(x2))

    def variance(self, x: Array) -> Array:
        return self.inner.variance(self._moved(x))

    def value_and_pullback(self, x: Array) -> tuple[Array, Array, PriorPullback]:
        return self.inner.value_and_pullback(self._moved(x))

    def cross_and_pullback(self, x1: Array, x2: Array) -> tuple[Array, Array, Array, CrossPullback]:
        return self.inner.cross_and_pullback(self._moved(x1), self._moved(x2))

    def length_scales(self, dimension: int) -> Array:
        return self.inner.length_scales(dimension)
