"""Residual processes: the difference between a learning curve and its end, over the steps of a
training. All configurations share one residual process.

A curve is f(r) = h + g(r) + e(r), y(r) = f(r) + noise, with h a function of the configuration. A
residual gives the moments of f - h on all steps, and their pullback:

    g  (m,)     the mean of f - h
    K  (m, m)   the covariance of f - h
    C  (m, m)   the covariance of f - h (rows) with the observed y - h (columns)
    G  (m, m)   the covariance of y - h, noise included

*Exponential decay*: g = size kappa, K = size^2 (kappa(r + r') - kappa(r) kappa(r')), independent
noise. Swersky, Snoek, Adams, Freeze-Thaw Bayesian Optimization, 2014.

*Innovations*: h is the value at the last step, and the curve is followed backwards, f(r-1) = f(r) -
a_r (1 + gamma eps_r), where y(r) = f(r) + eps_r, eps_r ~ N(0, noise), a_r = -alpha exp(beta)
r^(-alpha-1): a power law, bent by the observed deviations. Seeger, Salinas, Flunkert, Bayesian
Intermittent Demand Forecasting for Large Inventories, 2016, describe such models.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from scrimp.gp.decay import RATE, SHAPE, SIZE, decay_curve
from scrimp.gp.hyperparameters import Gamma, Hyperparameter, Normal, Parametrised
from scrimp.gp.kernel import Array

ResidualPullback = Callable[[Array, Array], tuple[Array, float]]
"""pull(dg (m,), dG (m, m)) -> gradients of the parameters (p,) and of the noise variance."""

POWER = Hyperparameter("power", Gamma(0.1, 0.2), bounds=(1e-3, 5.0), initial=0.5)
LOG_AMPLITUDE = Hyperparameter(
    "log_amplitude", Normal(0.0, 1.0), bounds=(-5.0, 5.0), encoding="identity"
)
BEND = Hyperparameter("bend", Gamma(0.1, 0.1), bounds=(1e-3, 10.0), initial=1.0)


@dataclass(frozen=True)
class ResidualMoments:
    """The moments g, K, C and G of the module's docstring; ``pull`` is the chain rule from g and G."""

    mean: Array
    latent: Array
    cross: Array
    observed: Array
    pull: ResidualPullback


@dataclass(frozen=True, eq=False)
class Residual(Parametrised):
    """A process over the steps of a training, with p parameters. ``natural``: their values (p,); by
    default the starting values."""

    natural: Array | None = None

    @property
    def values(self) -> Array:
        starts = [parameter.start for parameter in self.parameters]
        return np.array(starts) if self.natural is None else self.natural

    def with_values(self, values: Array) -> Self:
        return type(self)(values)

    @abstractmethod
    def moments(self, steps: Array, noise: float) -> ResidualMoments:
        """Return the moments on all steps (m,), increasing, with this noise variance."""


class DecayResidual(Residual):
    """Exponential decay with a Gamma mixture of rates."""

    parameters: ClassVar[tuple[Hyperparameter, ...]] = (SHAPE, RATE, SIZE)

    def moments(self, steps: Array, noise: float) -> ResidualMoments:
        shape, rate, size = (float(v) for v in self.values)
        mean, latent, pull_curve = decay_curve(steps, (0.0, shape, rate, size, 0.0))

        def pull(d_mean: Array, d_observed: Array) -> tuple[Array, float]:
            return pull_curve(d_mean, d_observed, None)[1:4], float(d_observed.trace())

        observed = latent + noise * np.eye(len(steps))
        return ResidualMoments(mean, latent, latent, observed, pull)


class InnovationResidual(Residual):
    """A power law followed backwards from the last step; parameters alpha, beta and gamma."""

    parameters: ClassVar[tuple[Hyperparameter, ...]] = (POWER, LOG_AMPLITUDE, BEND)

    def moments(self, steps: Array, noise: float) -> ResidualMoments:
        power, log_amplitude, bend = (float(v) for v in self.values)
        # fall is a_r, negative; later is [r' > r]; f - h = g + drift eps and y - h = g + seen eps.
        fall = -power * np.exp(log_amplitude - (power + 1.0) * np.log(steps))
        later = np.triu(np.ones((len(steps), len(steps))), 1)
        drift = -bend * later * fall
        seen = drift + np.eye(len(steps))

        def pull(d_mean: Array, d_observed: Array) -> tuple[Array, float]:
            d_drift = (noise * (d_observed + d_observed.T) @ seen * later).sum(axis=0)
            d_fall = -later.T @ d_mean - bend * d_drift
            by_power = float((d_fall * fall * (1.0 / power - np.log(steps))).sum())
            gradient = np.array([by_power, float(d_fall @ fall), -float(d_drift @ fall)])
            return gradient, float((d_observed * (seen @ seen.T)).sum())

        moments = (noise * drift @ drift.T, noise * drift @ seen.T, noise * seen @ seen.T)
        return ResidualMoments(-later @ fall, *moments, pull)
