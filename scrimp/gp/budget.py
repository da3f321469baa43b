"""Priors over f(x, rho): configurations and the share rho = r / r_max of a full training, which is
the last column.

    exp-decay-sum        k_x + g^2 (kappa(rho + rho') - kappa(rho) kappa(rho'))              mean m + g kappa(rho)
    exp-decay-combined   k_x [1 - d (kappa(rho) + kappa(rho') - d kappa(rho + rho'))] + (g - d m)^2
                         (kappa(rho + rho') - kappa(rho) kappa(rho'))          mean m + (g - d m)
                         kappa(rho)
    exp-decay-delta1     the same with d = 1
    freeze-thaw          k_x + [x = x'] g^2 (kappa(rho + rho') - kappa(rho) kappa(rho'))     mean m + g kappa(rho)
    matern52             one kernel over (x, rho)                                            mean m
    matern52-res-warp    the same with a warped rho
    cross-validation     k_x + k_res / max(r, r'), r the number of folds                     mean m

"Sum" shares one deviation of the learning curve among all configurations; freeze-thaw gives each
its own. All decays are the one class `DecayPrior`, in which mean and covariance share parameters.
Everything that depends on budgets alone is computed on the few distinct budgets and spread by
products with indicator matrices.

    ExactGP(budget_prior("exp-decay-sum", columns)).fit(Data(np.column_stack([x, rho]), y), rng)

Tiao, Klein, Archambeau, Seeger, Model-based Asynchronous Hyperparameter and Neural Architecture
Search, 2020. Swersky, Snoek, Adams, Freeze-Thaw Bayesian Optimization, 2014.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from scrimp.errors import MethodError
from scrimp.gp.catalog import kernel_by_name
from scrimp.gp.columns import Column
from scrimp.gp.decay import decay, decay_slope
from scrimp.gp.inverse_largest import InverseLargest
from scrimp.gp.kernel import Array, Kernel, OnColumns, Scaled, with_fields
from scrimp.gp.mean import CONSTANT_MEAN
from scrimp.gp.priors import LOGIT, Hyperparameter, LogNormal, Uniform
from scrimp.gp.process import MeanAndKernel, Prior
from scrimp.gp.stationary import Matern52
from scrimp.gp.warping import Warped

__all__ = ["RESOURCE_KERNELS", "DecayPrior", "budget_prior", "config_kernel", "same_rows"]

RESOURCE_KERNELS = (
    "exp-decay-sum",
    "exp-decay-combined",
    "exp-decay-delta1",
    "freeze-thaw",
    "matern52",
    "matern52-res-warp",
    "cross-validation",
)

SHAPE = Hyperparameter("decay_shape", LogNormal(0.0, 1.5), bounds=(1e-2, 250.0), initial=1.0)
RATE = Hyperparameter("decay_rate", LogNormal(1.5, 1.5), bounds=(1e-3, 500.0), initial=3.0)
SIZE = Hyperparameter("decay_size", LogNormal(0.0, 1.0), bounds=(1e-3, 20.0), initial=0.5)
"""How far above its end a curve begins, in standard deviations of the targets; early values are
often several above."""
SHARE = Hyperparameter(
    "decay_share", Uniform(0.0, 1.0), bounds=(0.0, 1.0), encoding=LOGIT, initial=0.5
)


def budget_prior(
    name: str,
    columns: Sequence[Column],
    kernel: str = "matern52-ard",
    folds: float = 1.0,
    warped: bool = False,
) -> Prior:
    """The prior of that name over configurations with these columns and a budget column after them.

    ``folds`` is the number of folds that rho = 1 stands for, which the cross-validation kernel
    needs. ``warped`` bends the configuration's columns by learned powers (`Warped`); the budget is
    bent by matern52-res-warp only.
    """
    width = len(columns)
    own = tuple(range(width))
    fixed = Column((0.0,), ordered=False)  # a column that is not bent
    match name:
        case "exp-decay-sum":
            return DecayPrior(config_kernel(kernel, columns, warped), share=0.0)
        case "exp-decay-combined":
            return DecayPrior(config_kernel(kernel, columns, warped))
        case "exp-decay-delta1":
            return DecayPrior(config_kernel(kernel, columns, warped), share=1.0)
        case "freeze-thaw":
            return DecayPrior(config_kernel(kernel, columns, warped), share=0.0, separate=True)
        case "matern52":
            both = kernel_by_name(kernel, (*columns, Column()))
            return MeanAndKernel(Warped(both, (*columns, fixed)) if warped else both)
        case "matern52-res-warp":
            bent = tuple(columns) if warped else (fixed,) * width
            return MeanAndKernel(
                Warped(kernel_by_name(kernel, (*columns, Column())), (*bent, Column()))
            )
        case "cross-validation":
            fold = OnColumns(Scaled(Matern52(columns, ard=False)), own) * OnColumns(
                InverseLargest(folds), (width,)
            )
            return MeanAndKernel(OnColumns(config_kernel(kernel, columns, warped), own) + fold)
    raise MethodError(
        f"no resource kernel is called {name!r}; choose one of {', '.join(RESOURCE_KERNELS)}"
    )


def config_kernel(name: str, columns: Sequence[Column], warped: bool = False) -> Kernel:
    """The kernel of that name over the columns of a configuration, which it sees bent by learned
    powers if ``warped``."""
    plain = kernel_by_name(name, columns)
    return Warped(plain, columns) if warped else plain


def same_rows(x1: Array, x2: Array) -> Array:
    """[x1_i = x2_j] as numbers (n, m); rows are compared bit by bit."""
    known: dict[bytes, int] = {}
    ids = [
        np.array([known.setdefault(row.tobytes(), len(known)) for row in x], dtype=np.intp)
        for x in (x1, x2)
    ]
    return np.asarray(ids[0][:, None] == ids[1], dtype=np.float64)


class _Levels:
    """The distinct budgets of rows: values (L,) and the indicator (n, L) of each row's level."""

    def __init__(self, rho: Array) -> None:
        self.values, index = np.unique(rho, return_inverse=True)
        self.indicator = np.zeros((len(rho), len(self.values)))
        self.indicator[np.arange(len(rho)), index] = 1.0


def _levels(rho: Array) -> _Levels:
    """The levels of these rows; a fit asks for the same ones again and again."""
    return _remembered(rho.tobytes())


@lru_cache(maxsize=16)
def _remembered(rho: bytes) -> _Levels:
    return _Levels(np.frombuffer(rho))


@dataclass(frozen=True, eq=False)
class DecayPrior(Prior):
    """Exponential decay towards a function of the configuration; see the module for the formulas.

    ``share``: d, or None to learn it. ``separate``: each configuration has a curve of its own.
    """

    base: Kernel
    share: float | None = None
    separate: bool = False
    scalars: Array = field(
        default_factory=lambda: np.array([0.0, SHAPE.start, RATE.start, SIZE.start, SHARE.start])
    )

    @cached_property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        learned = (CONSTANT_MEAN, SHAPE, RATE, SIZE, SHARE)
        return (*(learned if self.share is None else learned[:-1]), *self.base.parameters)

    @property
    def _own(self) -> int:
        return 5 if self.share is None else 4

    @property
    def values(self) -> Array:
        return np.concatenate([self.scalars[: self._own], self.base.values])

    def with_values(self, values: Array) -> "DecayPrior":
        scalars = np.append(values[: self._own], [SHARE.start] * (5 - self._own))
        changed = with_fields(
            self, scalars=scalars, base=self.base.with_values(values[self._own :])
        )
        assert isinstance(changed, DecayPrior)
        return changed

    @property
    def _numbers(self) -> tuple[float, float, float, float, float]:
        """m, alpha, rate, g - d m (the size that is left) and d."""
        mean, shape, rate, size, learned = (float(v) for v in self.scalars)
        share = learned if self.share is None else self.share
        return mean, shape, rate, size - share * mean, share

    def length_scales(self, dimension: int) -> Array:
        """Those of the configuration's kernel; a decay has no length-scale along the budget."""
        return np.append(self.base.length_scales(dimension - 1), np.nan)

    @property
    def additive(self) -> bool:
        """Whether the covariance is k_x plus that of one curve, which all configurations share."""
        return self.share == 0.0 and not self.separate

    def curve_and_pullback(
        self, rho: Array
    ) -> tuple[Array, Array, Callable[[Array, Array], Array]]:
        """Of an additive prior: the mean (L,) and the curve's covariance B (L, L) at budgets rho,
        and pull(dm, dB) -> scalars."""
        mean, shape, rate, left, _ = self._numbers
        along = mean + left * decay(rho, shape, rate)[0]
        return (
            along,
            self._tables(rho, rho)[1],
            lambda dm, db: self._pull_scalars(rho, dm, db, None),
        )

    def mean(self, x: Array) -> Array:
        mean, shape, rate, left, _ = self._numbers
        return mean + left * decay(x[:, -1], shape, rate)[0]

    def variance(self, x: Array) -> Array:
        _, shape, rate, left, share = self._numbers
        once, twice = decay(x[:, -1], shape, rate)[0], decay(2.0 * x[:, -1], shape, rate)[0]
        factor = 1.0 - share * (2.0 * once - share * twice)
        return self.base.diagonal(x[:, :-1]) * factor + left**2 * (twice - once**2)

    def covariance(self, x1: Array, x2: Array) -> Array:
        covariance = self.base(x1[:, :-1], x1[:, :-1] if x2 is x1 else x2[:, :-1])
        first = _levels(x1[:, -1])
        second = first if x2 is x1 else _levels(x2[:, -1])
        factor, added = self._tables(first.values, second.values)
        return self._combined(covariance, (x1, x2), (first, second), factor, added)

    def _tables(self, rho1: Array, rho2: Array) -> tuple[Array, Array]:
        """What multiplies k_x, and what is added to it, for pairs of budgets."""
        _, shape, rate, left, share = self._numbers
        once1, once2 = decay(rho1, shape, rate)[0], decay(rho2, shape, rate)[0]
        both = decay(rho1[:, None] + rho2, shape, rate)[0]
        return 1.0 - share * (once1[:, None] + once2 - share * both), left**2 * (
            both - np.outer(once1, once2)
        )

    def _combined(
        self,
        covariance: Array,
        x: tuple[Array, Array],
        levels: tuple[_Levels, _Levels],
        factor: Array,
        added: Array,
    ) -> Array:
        """k_x times the one table plus the other, in the memory of k_x."""
        first, second = levels
        if self.share != 0.0:
            covariance *= _spread(first, factor, second)
        deviation = _spread(first, added, second)
        if self.separate:
            deviation *= same_rows(x[0][:, :-1], x[1][:, :-1])
        covariance += deviation
        return covariance

    def value_and_pullback(self, x: Array) -> tuple[Array, Array, Callable[[Array, Array], Array]]:
        base, pull_base = self.base.value_and_pullback(x[:, :-1])
        levels = _levels(x[:, -1])
        factor, added = self._tables(levels.values, levels.values)
        same = same_rows(x[:, :-1], x[:, :-1]) if self.separate else None
        covariance = self._combined(base.copy(), (x, x), (levels, levels), factor, added)

        def pull(d_mean: Array, d_covariance: Array) -> Array:
            d_added = (
                levels.indicator.T
                @ (d_covariance if same is None else d_covariance * same)
                @ levels.indicator
            )
            d_per_level = levels.indicator.T @ d_mean
            if self.share == 0.0:
                return np.concatenate(
                    [
                        self._pull_scalars(levels.values, d_per_level, d_added, None),
                        pull_base(d_covariance),
                    ]
                )
            d_factor = levels.indicator.T @ (d_covariance * base) @ levels.indicator
            d_base = d_covariance * _spread(levels, factor, levels)
            return np.concatenate(
                [
                    self._pull_scalars(levels.values, d_per_level, d_added, d_factor),
                    pull_base(d_base),
                ]
            )

        return self.mean(x), covariance, pull

    def _pull_scalars(
        self, rho: Array, d_mean: Array, d_added: Array, d_factor: Array | None
    ) -> Array:
        """Gradients of m, alpha, rate, g (and d) from those of the mean (L,) and of the two tables
        (L, L)."""
        mean, shape, rate, left, share = self._numbers
        once, pull_once = decay(rho, shape, rate)
        both, pull_both = decay(rho[:, None] + rho, shape, rate)
        d_both = left**2 * d_added
        d_once = left * d_mean - left**2 * (d_added + d_added.T) @ once
        d_left = 2.0 * left * float((d_added * (both - np.outer(once, once))).sum()) + float(
            d_mean @ once
        )
        d_share = -mean * d_left
        if d_factor is not None:
            d_both = d_both + share**2 * d_factor
            d_once = d_once - share * (d_factor.sum(0) + d_factor.sum(1))
            d_share += float((d_factor * (2.0 * share * both - once[:, None] - once)).sum())
        by_once, by_both = pull_once(d_once), pull_both(d_both)
        gradient = [
            d_mean.sum() - share * d_left,
            by_once[0] + by_both[0],
            by_once[1] + by_both[1],
            d_left,
            d_share,
        ]
        return np.array(gradient[: self._own])

    def cross_and_pullback(
        self, x1: Array, x2: Array
    ) -> tuple[Array, Array, Array, Callable[[Array, Array, Array], Array]]:
        base, pull_base = self.base.cross_and_pullback(x1[:, :-1], x2[:, :-1])
        diagonal, pull_diagonal = self.base.diagonal_and_pullback(x1[:, :-1])
        first, second = _levels(x1[:, -1]), _levels(x2[:, -1])
        factor, added = self._tables(first.values, second.values)
        cross = self._combined(base.copy(), (x1, x2), (first, second), factor, added)

        def pull(d_mean: Array, d_variance: Array, d_cross: Array) -> Array:
            d_x = np.empty_like(x1)
            once = self._tables(x1[:, -1], x1[:, -1])[0].diagonal() if self.share != 0.0 else 1.0
            d_base = d_cross if self.share == 0.0 else d_cross * _spread(first, factor, second)
            d_x[:, :-1] = pull_base(d_base) + pull_diagonal(d_variance * once)
            d_x[:, -1] = self._pull_budget(
                (x1, x2), d_mean, d_variance * diagonal, d_variance, (base, d_cross, second)
            )
            return d_x

        return self.mean(x1), self.variance(x1), cross, pull

    def _pull_budget(
        self,
        x: tuple[Array, Array],
        d_mean: Array,
        d_scaled: Array,
        d_variance: Array,
        cross: tuple[Array, Array, _Levels],
    ) -> Array:
        """The gradient of rho1 (n,): through the mean, the variance (``d_scaled`` times k_x) and
        the cross-covariance."""
        _, shape, rate, left, share = self._numbers
        rho = x[0][:, -1]
        base, d_cross, second = cross
        once, slope = decay(rho, shape, rate)[0], decay_slope(rho, shape, rate)
        slope_twice = 2.0 * decay_slope(2.0 * rho, shape, rate)
        slope_both = decay_slope(rho[:, None] + second.values, shape, rate)  # (n, L)
        added = left**2 * (slope_both - slope[:, None] * decay(second.values, shape, rate)[0])
        factor = -share * (slope[:, None] - share * slope_both)
        own = d_cross * same_rows(x[0][:, :-1], x[1][:, :-1]) if self.separate else d_cross
        gradient: Array = left * slope * d_mean + left**2 * d_variance * (
            slope_twice - 2.0 * once * slope
        )
        gradient += d_scaled * -share * (2.0 * slope - share * slope_twice)
        gradient += ((own @ second.indicator) * added).sum(1) + (
            ((d_cross * base) @ second.indicator) * factor
        ).sum(1)
        return gradient


def _spread(first: _Levels, table: Array, second: _Levels) -> Array:
    """A table of pairs of levels (L1, L2) as a matrix of pairs of rows (n, m)."""
    return np.asarray(first.indicator @ (table @ second.indicator.T), dtype=np.float64)
