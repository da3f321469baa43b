"""Forecasts: what a model believes about a metric at some configurations, in the metric's own units.

A model works in units of its own (standardised, logarithms, powers), in which its belief is normal.
A `ForecastColumn` has the belief there, and the function that leads back to the metric. That
function may bend, so moments are integrals over the normal density, by Gauss-Hermite quadrature:

    mean = sum_j w_j natural(m + s t_j),      std^2 = sum_j w_j natural(m + s t_j)^2 - mean^2

Draws are joint over all configurations, converted one by one.

    column = column_of("val_error", fitted, rows, natural=lambda losses: -losses)
    column.moments(), column.draws(100, rng)
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scrimp.gp.cholesky import cholesky
from scrimp.surrogates.surrogate import Array, FittedSurrogate

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True, eq=False)
class ForecastColumn:
    """The belief about one metric, constraint or cost at k configurations: normal in model units.

    ``natural``: model units to units of the metric, elementwise and monotone. ``covariance``: of the
    noise-free values (k, k), in model units. ``noise``: variance of one report around its noise-free
    value, in model units.
    """

    name: str
    mean: Array  # (k,)
    variance: Array  # (k,)
    natural: Callable[[Array], Array]
    covariance: Callable[[], Array]
    noise: float = 0.0

    def moments(self, *, of_reports: bool = False) -> tuple[Array, Array]:
        """Return mean and standard deviation (k,) of the noise-free values, or of single reports, in
        units of the metric.

        >>> column = ForecastColumn("x", np.zeros(1), np.ones(1), np.exp, lambda: np.ones((1, 1)))
        >>> mean, std = column.moments()
        >>> float(mean[0].round(4)), float(std[0].round(4))
        (1.6487, 2.1612)
        """
        spread = np.sqrt(self.variance + self.noise if of_reports else self.variance)
        values = self.natural(self.mean[:, None] + spread[:, None] * _NODES)
        mean = values @ _WEIGHTS
        return mean, np.sqrt(np.square(values - mean[:, None]) @ _WEIGHTS)

    def band(self, width: float, *, of_reports: bool = False) -> tuple[Array, Array]:
        """Return the lower and upper ends (k,) of ``width`` standard deviations to either side of the
        median, of the noise-free values or of single reports, in units of the metric."""
        spread = width * np.sqrt(self.variance + self.noise if of_reports else self.variance)
        ends = self.natural(self.mean - spread), self.natural(self.mean + spread)
        return np.minimum(*ends), np.maximum(*ends)

    def draws(self, count: int, rng: np.random.Generator) -> Array:
        """Draw the noise-free values jointly, (count, k), in units of the metric."""
        scale = float(self.variance.mean()) or 1.0
        root = cholesky(self.covariance(), scale=scale)
        return self.natural(self.mean + rng.standard_normal((count, len(root))) @ root.T)


def column_of(
    name: str, model: FittedSurrogate, rows: Array, natural: Callable[[Array], Array]
) -> ForecastColumn:
    """Return the belief of a model at rows (k, d); ``natural`` converts the targets it was fitted to."""
    posterior = model.posterior(rows)
    variance = posterior.variance

    def covariance() -> Array:
        found = model.posterior(rows, joint=True).covariance
        return np.diag(variance) if found is None else found

    def converted(values: Array) -> Array:
        return natural(model.target_units(values))

    noise = model.noise_variance
    return ForecastColumn(name, posterior.mean[:, 0], variance, converted, covariance, noise)
