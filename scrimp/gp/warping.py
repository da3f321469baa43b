"""Input warping: a kernel of w(x), where w bends each ordered column by a learned monotone function.

    w(x) = 1 - (1 - x^a)^b

the distribution function of Kumaraswamy with positive a and b; a = b = 1 is the identity. Warping
corrects wrong scales of a search space, such as a learning rate searched linearly. Categorical
columns are never warped. Inputs are squeezed to [1e-9, 1 - 1e-9] first, where the slopes of w are
finite. Snoek, Swersky, Zemel, Adams, Input Warping for Bayesian Optimization of Non-Stationary
Functions, 2014.

    Warped(Scaled(Matern52(columns)), columns)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import Hyperparameter, LogNormal, joined_parameters
from scrimp.gp.kernel import Array, Kernel, Pullback, PullbackPair, with_fields

_INPUT_MARGIN = 1e-9
"""Distance of squeezed inputs from 0 and 1."""

WARPING_POWER = Hyperparameter("warping", LogNormal(0.0, 0.75), bounds=(0.25, 4.0), initial=1.0)
"""The prior of either power, log-normal around 1, with the spread that Snoek et al. use for
hyperparameter tuning."""


def kumaraswamy(
    x: Array, a: Array, b: Array
) -> tuple[Array, Callable[[Array], tuple[Array, Array, Array]]]:
    """w(x) (n, d), and pull(dw) -> gradients of x (n, d), a (d,) and b (d,).

    With t = x^a and u = 1 - t: dw/dx = b u^(b-1) a x^(a-1), dw/da = b u^(b-1) t log x, dw/db = -u^b
    log u.
    """
    inside = _INPUT_MARGIN + (1.0 - 2.0 * _INPUT_MARGIN) * np.clip(x, 0.0, 1.0)
    log_x = np.log(inside)
    t = np.exp(a * log_x)
    u = -np.expm1(a * log_x)
    log_u = np.log(u)
    warped = -np.expm1(b * log_u)
    rest = 1.0 - warped

    def pull(d: Array) -> tuple[Array, Array, Array]:
        common = d * b * rest / u * t
        return (
            common * a / inside * (1.0 - 2.0 * _INPUT_MARGIN),
            (common * log_x).sum(0),
            -(d * rest * log_u).sum(0),
        )

    return warped, pull


@dataclass(frozen=True, eq=False)
class Warped(Kernel):
    """k(x, x') = inner(w(x), w(x')). First parameters: the powers a, then b, of warped columns."""

    inner: Kernel
    columns: Sequence[Column]
    power: Hyperparameter = WARPING_POWER
    _chosen: Array = field(init=False, repr=False)
    _parameters: tuple[Hyperparameter, ...] = field(init=False, repr=False)
    _powers: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        chosen = np.array(
            [k for k, column in enumerate(self.columns) if column.ordered], dtype=np.intp
        )
        own = tuple(
            replace(self.power, name=f"{self.power.name}_{letter}", size=len(chosen))
            for letter in "ab"
        )
        object.__setattr__(self, "_chosen", chosen)
        both = joined_parameters(own, self.inner.parameters, ("outer", "inner"))
        object.__setattr__(self, "_parameters", both)
        object.__setattr__(self, "_powers", np.full(2 * len(chosen), self.power.start))

    @property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        return self._parameters

    @property
    def values(self) -> Array:
        return np.concatenate([self._powers, self.inner.values])

    def with_values(self, values: Array) -> "Warped":
        cut = len(self._powers)
        inner = self.inner.with_values(values[cut:])
        return with_fields(self, _powers=values[:cut], inner=inner)

    def warp(self, x: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
        """w(x) (n, d), and pull(dw) -> gradients of the powers (2 c,) and of x (n, d)."""
        half = len(self._chosen)
        bent, pull_bent = kumaraswamy(x[:, self._chosen], self._powers[:half], self._powers[half:])
        warped = x.copy()
        warped[:, self._chosen] = bent

        def pull(d: Array) -> tuple[Array, Array]:
            d_bent, d_a, d_b = pull_bent(d[:, self._chosen])
            d_x = d.copy()
            d_x[:, self._chosen] = d_bent
            return np.concatenate([d_a, d_b]), d_x

        return warped, pull

    def length_scales(self, dimension: int) -> Array:
        """Length-scales of the inner kernel, in warped columns, which cover the same cube."""
        return self.inner.length_scales(dimension)

    def __call__(self, x1: Array, x2: Array) -> Array:
        warped = self.warp(x1)[0]
        return self.inner(warped, warped if x2 is x1 else self.warp(x2)[0])

    def diagonal(self, x: Array) -> Array:
        return self.inner.diagonal(self.warp(x)[0])

    def value_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        covariance, pull = self.value_and_pullbacks(x)
        return covariance, lambda d: pull(d)[0]

    def value_and_pullbacks(self, x: Array) -> tuple[Array, PullbackPair]:
        warped, pull_warp = self.warp(x)
        covariance, pull_inner = self.inner.value_and_pullbacks(warped)

        def pull(d: Array) -> tuple[Array, Array]:
            d_inner, d_warped = pull_inner(d)
            d_powers, d_x = pull_warp(d_warped)
            return np.concatenate([d_powers, d_inner]), d_x

        return covariance, pull

    def cross_and_pullback(self, x1: Array, x2: Array) -> tuple[Array, Pullback]:
        warped, pull_warp = self.warp(x1)
        covariance, pull = self.inner.cross_and_pullback(warped, self.warp(x2)[0])
        return covariance, lambda d: pull_warp(pull(d))[1]

    def diagonal_and_pullback(self, x: Array) -> tuple[Array, Pullback]:
        warped, pull_warp = self.warp(x)
        diagonal, pull = self.inner.diagonal_and_pullback(warped)
        return diagonal, lambda d: pull_warp(pull(d))[1]
