"""Bayesian regression on 1, x and x^2: what is left of a Gaussian process when the loss is known to
be a bowl."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from scrimp.extend import (
    Column,
    Data,
    FittedSurrogate,
    Posterior,
    StudyError,
    Surrogate,
    as_columns,
    joined,
)

NOISES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SCALES = (1.0, 10.0, 100.0)


def features(x):
    """(n, 2 d + 1)."""
    return np.column_stack([np.ones(len(x)), x, x**2])


@dataclass(frozen=True)
class Parabola(Surrogate):
    """Weights ~ N(0, scale), observations with variance ``noise``; both are those of the most
    probable pair."""

    columns: Sequence[Column]

    def fit(self, data, rng, start=None):
        pairs = [(noise, scale) for noise in NOISES for scale in SCALES]
        noise, scale = max(pairs, key=lambda pair: FittedParabola(data, *pair).log_evidence)
        return FittedParabola(data, noise, scale)

    def restore(self, data, state):
        if "scale" not in state:
            raise StudyError("the recorded fit is of another model: fit again")
        return FittedParabola(data, state["noise"], state["scale"])


@dataclass(frozen=True)
class FittedParabola(FittedSurrogate):
    """The posterior of the weights, and through them of the function."""

    observed: Data
    noise: float
    scale: float

    @property
    def data(self) -> Data:
        return self.observed

    @property
    def state(self) -> Mapping[str, Any]:
        return {"noise": self.noise, "scale": self.scale}

    @property
    def _variances(self):
        """Of each observation (n,)."""
        known = 0.0 if self.observed.noise is None else self.observed.noise
        return np.full(len(self.observed), self.noise) + known

    @cached_property
    def _weights(self):
        """Their mean (p, F) and covariance (p, p)."""
        rows = features(self.observed.x)
        weighted = rows.T / self._variances
        covariance = np.linalg.inv(weighted @ rows + np.eye(rows.shape[1]) / self.scale)
        return covariance @ weighted @ as_columns(self.observed.y), covariance

    @property
    def log_evidence(self) -> float:
        """log p(y), up to a constant."""
        rows = features(self.observed.x)
        covariance = self.scale * rows @ rows.T + np.diag(self._variances)
        _, log_determinant = np.linalg.slogdet(covariance)
        return -0.5 * float(
            self.observed.y @ np.linalg.solve(covariance, self.observed.y) + log_determinant
        )

    def posterior(self, x, *, joint=False):
        mean, covariance = self._weights
        rows = features(x)
        spread = rows @ covariance
        return Posterior(
            rows @ mean, (spread * rows).sum(axis=1), spread @ rows.T if joint else None
        )

    def posterior_and_pullback(self, x):
        mean, covariance = self._weights
        rows, width = features(x), x.shape[1]

        def pull(d_mean, d_variance):
            d_rows = d_mean @ mean.T + 2.0 * d_variance[:, None] * (rows @ covariance)
            return d_rows[:, 1 : width + 1] + 2.0 * x * d_rows[:, width + 1 :]

        return self.posterior(x), pull

    def condition(self, data):
        return FittedParabola(joined(self.observed, data), self.noise, self.scale)

    def sample(self, x, count, rng):
        mean, covariance = self._weights
        return rng.multivariate_normal(mean[:, 0], covariance, count) @ features(x).T
