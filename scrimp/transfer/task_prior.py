"""A prior over the study at hand, made of past studies: their average, their differences, and a rest.

With mu_i the means of M past models, m(x) their average and A_i(x) = (mu_i(x) - m(x)) / sqrt(M), a new task is believed to be

    c y(x) = a + g m(x) + h(x) + noise,      h ~ GP(0, rho sum_i A_i A_i' + (1 - rho) kappa k)

The offset a is flat, the scale c > 0 is found in closed form, kappa is the mean variance of the first part, and k is a Matern
kernel with the length-scales that past studies share. Which g (0 or 1), rho and noise: nobody knows, so `components` lists a
grid of them, and `evidences` says how probable each is after n evaluations. With g = 0 the average joins the covariance, where
its sign does not matter: even a past that is upside down tells which configurations belong together.

The closed form: with Sigma = covariance + noise, P = Sigma^-1 - Sigma^-1 1 1' Sigma^-1 / (1' Sigma^-1 1), yy = y'Py, ym = g y'Pm,
mm = g m'Pm, a density of c with k0 = 1 observation of size s0, and q = yy + k0 / s0^2,

    c = (ym + sqrt(ym^2 + 4 (n - 1 + k0) q)) / (2 q)
    log evidence = (n - 1 + k0) log c - c^2 q / 2 + c ym - mm / 2 - log|Sigma| / 2 - log(1' Sigma^-1 1) / 2
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from scrimp.gp.kernel import Kernel
from scrimp.gp.priors import Parameter
from scrimp.gp.process import Prior
from scrimp.surrogates.surrogate import Array
from scrimp.transfer.source_models import MeansPullback, SourceModels

__all__ = ["Component", "TaskBasis", "TaskPrior", "components", "evidences"]

FLAT = 1e3
"""The variance of the offset: as good as flat where targets have size one."""

SHARES = (0.0, 0.5, 0.8, 0.95)
NOISES = (0.003, 0.03, 0.2)


@dataclass(frozen=True)
class Component:
    """One belief about the task at hand: whether the past average is its mean, the share of past differences, the noise."""

    gain: int
    share: float
    noise: float


def components() -> tuple[Component, ...]:
    """The grid of beliefs."""
    return tuple(Component(gain, share, noise) for gain in (0, 1) for share in SHARES for noise in NOISES)


@dataclass(frozen=True, eq=False)
class TaskBasis:
    """The functions a task is made of: averages and differences of past means, and a kernel ``rest`` of unit variance."""

    sources: SourceModels
    rest: Kernel
    kappa: float
    _last: list[tuple[Array, Array, Array, Array, Array]] = field(default_factory=list, repr=False)

    def directions(self, x: Array) -> tuple[Array, Array]:
        """m (n,) and A (n, M)."""
        return _directions(self.sources.means(x))

    def directions_and_pullback(self, x: Array) -> tuple[Array, Array, Callable[[Array, Array], Array]]:
        """m, A, and pull(dm (n,), dA (n, M)) -> d_x (n, d)."""
        means, back = self.sources.means_and_pullback(x)
        average, differences = _directions(means)
        return average, differences, _chained(back, len(self.sources))

    def blocks(self, x1: Array, x2: Array) -> tuple[Array, Array, Array]:
        """sum_i A_i(x1) A_i(x2), m(x1) m(x2) and k(x1, x2), each (n, m); the last are kept, since all components ask for them."""
        if not (self._last and self._last[0][0] is x1 and self._last[0][1] is x2):
            (m1, a1), (m2, a2) = self.directions(x1), self.directions(x2)
            self._last[:] = [(x1, x2, a1 @ a2.T, np.outer(m1, m2), self.rest(x1, x2))]
        return self._last[0][2:]


def _directions(means: Array) -> tuple[Array, Array]:
    average = means.mean(axis=1)
    return average, (means - average[:, None]) / np.sqrt(means.shape[1])


def _chained(back: MeansPullback, count: int) -> Callable[[Array, Array], Array]:
    def pull(d_average: Array, d_differences: Array) -> Array:
        d_means = d_differences / np.sqrt(count)
        return back(d_means + ((d_average - d_means.sum(axis=1)) / count)[:, None])

    return pull


@dataclass(frozen=True, eq=False)
class TaskPrior(Prior):
    """A component with its scale c, in units of y: mean g m / c, covariance as above with the offset, divided by c^2.

    A component with share 0 and gain 0 knows nothing of the past but, through ``kernel``, its length-scales.
    """

    basis: TaskBasis
    component: Component
    kernel: Kernel
    scale: float

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return ()

    @property
    def values(self) -> Array:
        return np.zeros(0)

    def with_values(self, values: Array) -> "TaskPrior":
        del values
        return self

    @property
    def _rest(self) -> float:
        return (1.0 - self.component.share) * (self.basis.kappa if self.component.gain else 1.0)

    def mean(self, x: Array) -> Array:
        if not self.component.gain:
            return np.zeros(len(x))
        return self.basis.directions(x)[0] / self.scale

    def covariance(self, x1: Array, x2: Array) -> Array:
        if self.kernel is not self.basis.rest:  # the model at hand alone
            return np.asarray((self._rest * self.kernel(x1, x2) + FLAT) / self.scale**2)
        differences, averages, rest = self.basis.blocks(x1, x2)
        total = self._rest * rest + FLAT
        if self.component.share:
            total += self.component.share * (differences if self.component.gain else differences + averages)
        return np.asarray(total / self.scale**2)

    def variance(self, x: Array) -> Array:
        total = self._rest * self.kernel.diagonal(x) + FLAT
        if self.component.share:
            average, differences = self.basis.directions(x)
            past = np.einsum("ij,ij->i", differences, differences)
            total = total + self.component.share * (past if self.component.gain else past + average**2)
        return np.asarray(total / self.scale**2)

    def value_and_pullback(self, x: Array) -> tuple[Array, Array, Callable[[Array, Array], Array]]:
        return self.mean(x), self.covariance(x, x), lambda dm, dk: np.zeros(0)

    def cross_and_pullback(
        self, x1: Array, x2: Array
    ) -> tuple[Array, Array, Array, Callable[[Array, Array, Array], Array]]:
        square, share, gain = self.scale**2, self.component.share, self.component.gain
        rest, pull_rest = self.kernel.cross_and_pullback(x1, x2)
        if not (share or gain):
            flat = np.full(len(x1), (self._rest + FLAT) / square)
            cross = (self._rest * rest + FLAT) / square
            return np.zeros(len(x1)), flat, cross, lambda dm, dv, dc: pull_rest(self._rest / square * dc)
        average, differences, back = self.basis.directions_and_pullback(x1)
        other_average, other = self.basis.directions(x2)
        own = 0.0 if gain else 1.0
        past = differences @ other.T + own * np.outer(average, other_average)
        variance = np.einsum("ij,ij->i", differences, differences) + own * average**2

        def pull(dm: Array, dv: Array, dc: Array) -> Array:
            weight = share / square
            d_differences = weight * (dc @ other + 2.0 * dv[:, None] * differences)
            d_average = own * weight * (dc @ other_average + 2.0 * dv * average) + gain / self.scale * dm
            return back(d_average, d_differences) + pull_rest(self._rest / square * dc)

        mean = gain / self.scale * average
        return (
            mean,
            (self._rest + FLAT + share * variance) / square,
            (self._rest * rest + FLAT + share * past) / square,
            pull,
        )


def evidences(covariances: Array, gains: Sequence[int], y: Array, average: Array, size: float) -> tuple[Array, Array]:
    """log evidence (K,) and scale c (K,) of K components with covariances (K, n, n), noise included.

    ``y`` (n,) standardised targets, ``average`` m (n,) of past means at the same inputs, ``size`` s0.
    """
    count, gain = len(y), np.asarray(gains, dtype=float)
    factors = np.linalg.cholesky(covariances)
    ones = np.ones(count)
    right = np.broadcast_to(np.stack([ones, y, average], axis=1), (len(gain), count, 3))
    whitened = np.linalg.solve(factors, right)
    products = np.einsum("kni,knj->kij", whitened, whitened)  # v' Sigma^-1 w for v, w in 1, y, m
    flat = products[:, 0, 0]
    centred = products - products[:, :, :1] * products[:, :1, :] / flat[:, None, None]
    yy, ym, mm = centred[:, 1, 1], gain * centred[:, 1, 2], gain * centred[:, 2, 2]
    q, freedom = yy + 1.0 / size**2, count  # n - 1 + k0, k0 = 1
    scale = (ym + np.sqrt(ym**2 + 4.0 * freedom * q)) / (2.0 * q)
    determinants = 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    log_evidence = (
        freedom * np.log(scale) - 0.5 * scale**2 * q + scale * ym - 0.5 * mm - 0.5 * determinants - 0.5 * np.log(flat)
    )
    return np.asarray(log_evidence), np.asarray(scale)
