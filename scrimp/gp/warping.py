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
from numpy.typing import NDArray

from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import Hyperparameter, LogNormal
from scrimp.gp.kernel import Array, Kernel, Mapped, PullbackPair

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
        d_x = common * a / inside * (1.0 - 2.0 * _INPUT_MARGIN)
        return d_x, (common * log_x).sum(0), -(d * rest * log_u).sum(0)

    return warped, pull


@dataclass(frozen=True, eq=False)
class Warped(Mapped):
    """k(x, x') = inner(w(x), w(x')). First parameters: the powers a, then b, of warped columns."""

    inner: Kernel
    columns: Sequence[Column]
    power: Hyperparameter = WARPING_POWER
    own: Array = field(init=False, repr=False)
    _chosen: NDArray[np.intp] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ordered = [k for k, column in enumerate(self.columns) if column.ordered]
        object.__setattr__(self, "_chosen", np.array(ordered, dtype=np.intp))
        object.__setattr__(self, "own", np.full(2 * len(ordered), self.power.start))

    @property
    def own_parameters(self) -> tuple[Hyperparameter, ...]:
        name, size = self.power.name, len(self._chosen)
        return tuple(replace(self.power, name=f"{name}_{letter}", size=size) for letter in "ab")

    def embed(self, x: Array) -> tuple[Array, PullbackPair]:
        half = len(self._chosen)
        bent, pull_bent = kumaraswamy(x[:, self._chosen], self.own[:half], self.own[half:])
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
