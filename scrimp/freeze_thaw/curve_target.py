"""Losses along learning curves as targets of a Gaussian process: clipped above, stretched near the
best, standardised.

With lo the lowest loss, q the 0.7 quantile and cap = q + (q - lo), at least the median of the
curves' first losses,

    z = log(min(y, cap) - lo + shift (cap - lo)),      then to mean 0 and standard deviation 1.

The upper part of the losses, where runs diverge by thirty orders of magnitude, says "bad" and
nothing else; near the best every digit counts. That is right in a list, whose best row is soon
close: ``shift`` is 0.05. In a continuous space (0.5) the best value so far may be that of a basin
which is not the deepest. Where its last digits weigh as much as all the rest, a study polishes it:
of 54 configurations 40 were steps around the floor of the first basin. A loss that is not finite (a failed run) counts as
cap, and one standard deviation more: worse than all that came to an end, so that the search keeps
away. The transform depends on all losses at once, and is learned anew for every decision: the
factor of a covariance does not depend on it.

    target = CurveTarget.learn(losses)
    z = target.forward(losses)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CurveTarget"]

Array = NDArray[np.float64]

QUANTILE = 0.7
SHIFT = 0.05  # in a list
WIDE_SHIFT = 0.5  # in a continuous space
FAILED = 1.0


@dataclass(frozen=True)
class CurveTarget:
    """The transform of one set of losses."""

    low: float
    cap: float
    mean: float
    scale: float
    shift: float = SHIFT

    @staticmethod
    def learn(losses: Array, first: Array | None = None, shift: float = SHIFT) -> "CurveTarget":
        """From losses (n,), of which at least one is finite, and the ``first`` loss of each curve.

        The first losses hold the range open where a search has gathered around one value.

        >>> target = CurveTarget.learn(np.array([1.0, 2.0, 3.0, np.inf]))
        >>> target.low, target.cap
        (1.0, 3.0)
        """
        finite = losses[np.isfinite(losses)]
        low = float(finite.min())
        middle = float(np.quantile(finite, QUANTILE))
        begun = finite[:0] if first is None else first[np.isfinite(first)]
        start = float(np.median(begun)) if len(begun) else low
        cap = min(float(finite.max()), max(middle + (middle - low), start))
        if not cap > low:  # all equal, or half of them equal to the best
            cap = max(float(finite.max()), low + max(abs(low), 1.0) * 1e-9)
        raw = _stretched(losses, low, cap, shift)
        scale = float(raw.std())
        return CurveTarget(low, cap, float(raw.mean()), scale if scale > 1e-9 else 1.0, shift)

    def forward(self, losses: Array) -> Array:
        """Targets; losses below the lowest learned one count as that."""
        return (
            _stretched(losses, self.low, self.cap, self.shift) - self.mean
        ) / self.scale + FAILED * ~np.isfinite(losses)

    def backward(self, targets: Array) -> Array:
        """Losses again; what lies outside the learned range goes to its ends."""
        range_ = self.cap - self.low
        raw = np.exp(
            np.clip(
                targets * self.scale + self.mean,
                np.log(self.shift * range_),
                np.log((1.0 + self.shift) * range_),
            )
        )
        return raw + self.low - self.shift * range_

    def behind(self, targets: Array) -> Array:
        """How far the losses of targets (n,) lie above the lowest of them, as a share of the
        learned range; beyond its ends too."""
        raw = np.exp(targets * self.scale + self.mean)
        return np.asarray((raw - raw.min()) / (self.cap - self.low))


def _stretched(losses: Array, low: float, cap: float, shift: float) -> Array:
    inside = np.clip(np.where(np.isfinite(losses), losses, cap), low, cap)
    stretched: Array = np.log(inside - low + shift * (cap - low))
    return stretched
