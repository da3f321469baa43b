"""Slice sampling along random directions: draws from a density known up to a factor, without
tuning.

From a point of log density f, a level f - Exponential(1) is drawn; an interval of ``width`` is laid
at random around the point along a random unit direction and stepped out while its ends lie above
the level; points drawn in it are shrunk towards until one lies above the level. Neal, Slice
Sampling, 2003; Murray and Adams, Slice Sampling Covariance Hyperparameters, 2010.

    draws = slice_sample(lambda v: -0.5 * float(v @ v), np.zeros(3), rng, SliceSettings(draws=300, burn_in=250, thin=5))
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import NumericalError

__all__ = ["SliceSettings", "slice_sample"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SliceSettings:
    """``draws`` in all, of which the first ``burn_in`` are dropped and then every ``thin``-th kept:
    300, 250, 5 give 10."""

    draws: int = 300
    burn_in: int = 250
    thin: int = 5
    width: float = 1.0
    steps_out: int = 200


def slice_sample(
    log_density: Callable[[Array], float],
    start: Array,
    rng: np.random.Generator,
    settings: SliceSettings | None = None,
) -> Array:
    """Draws (k, p) by the settings, from a chain that begins at ``start`` (p,); minus infinity is
    outside the support."""
    settings = settings or SliceSettings()
    point, height = start, log_density(start)
    if not np.isfinite(height):
        raise NumericalError(
            f"slice sampling cannot start at {start}: its log density is {height}; start inside the"
            " support"
        )
    kept = []
    for draw in range(settings.draws):
        point, height = _next_point(log_density, point, height, rng, settings)
        if draw >= settings.burn_in and (draw - settings.burn_in + 1) % settings.thin == 0:
            kept.append(point)
    return np.array(kept)


def _next_point(
    log_density: Callable[[Array], float],
    point: Array,
    height: float,
    rng: np.random.Generator,
    settings: SliceSettings,
) -> tuple[Array, float]:
    """One transition of the chain: the next point and its log density."""
    direction = rng.standard_normal(len(point))
    direction /= np.linalg.norm(direction)
    level = height - rng.exponential()
    low = -settings.width * rng.random()
    high = low + settings.width
    low = _stepped_out(
        log_density, (point, direction), (low, -settings.width), level, settings.steps_out
    )
    high = _stepped_out(
        log_density, (point, direction), (high, settings.width), level, settings.steps_out
    )
    while True:
        offset = rng.uniform(low, high)
        candidate = point + offset * direction
        value = log_density(candidate)
        if value > level:
            return candidate, value
        if offset < 0.0:
            low = offset
        else:
            high = offset
        if high - low < 1e-12:
            return point, height


def _stepped_out(
    log_density: Callable[[Array], float],
    line: tuple[Array, Array],
    move: tuple[float, float],
    level: float,
    most: int,
) -> float:
    """One end of the interval on ``line`` (point, direction), moved out by (start, step) until it
    lies below the level."""
    (point, direction), (end, step) = line, move
    for _ in range(most):
        if log_density(point + end * direction) <= level:
            break
        end += step
    return end
