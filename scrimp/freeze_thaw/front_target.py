"""Losses of one of several metrics as targets of its curve model.

With one metric, what is far from the best says "bad" and nothing else. Of several metrics the front
reaches from one end to the other: the smallest network has a high error and belongs to it. So the
range that counts goes from the lowest loss to a tenth beyond the worst of the front, at least, and
is stretched near the best only a little (shift 0.5 of `CurveTarget`).

Targets have no end there: a reference point may lie beyond the range, a prediction below it.
`to_target` and `to_loss` go on along the logarithm, z = (log(y - low + shift range) - mean) / scale.

    target = front_target(losses, front_losses)
    to_loss(target, to_target(target, losses))
"""

import numpy as np
from numpy.typing import NDArray

from scrimp.freeze_thaw.curve_target import CurveTarget

__all__ = ["floor_of", "front_target", "to_loss", "to_target"]

Array = NDArray[np.float64]

QUANTILE = 0.7
MARGIN = 0.1
STRETCH = 0.5
LEAST = 1e-6  # of the range, below which no loss is told from the lowest that there can be


def front_target(losses: Array, front: Array) -> CurveTarget:
    """The transform for losses (n,), infinite ones among them, where those of the front are
    ``front`` (k,), k > 0.

    >>> target = front_target(np.array([1.0, 2.0, 9.0, np.inf]), np.array([1.0, 6.0]))
    >>> target.low, target.cap
    (1.0, 6.5)
    """
    finite = losses[np.isfinite(losses)]
    if not len(finite):
        finite = front
    low = float(min(finite.min(), front.min()))
    middle, worst = float(np.quantile(finite, QUANTILE)), float(front.max())
    cap = max(min(2.0 * middle - low, float(finite.max())), worst + MARGIN * (worst - low))
    if not cap > low:
        cap = max(float(finite.max()), low + max(abs(low), 1.0) * 1e-9)
    plain = CurveTarget(low, cap, 0.0, 1.0, STRETCH)
    raw = plain.forward(finite)
    scale = float(raw.std())
    return CurveTarget(low, cap, float(raw.mean()), scale if scale > 1e-9 else 1.0, STRETCH)


def floor_of(target: CurveTarget) -> tuple[float, float]:
    """The loss that no prediction comes below, and how close to it losses are told apart."""
    span = target.cap - target.low
    return target.low - target.shift * span, LEAST * span


def to_target(target: CurveTarget, losses: Array) -> Array:
    """Targets of losses of any shape, beyond the cap too."""
    floor, least = floor_of(target)
    return np.asarray((np.log(np.maximum(losses - floor, least)) - target.mean) / target.scale)


def to_loss(target: CurveTarget, targets: Array) -> Array:
    """The inverse."""
    return np.exp(targets * target.scale + target.mean) + floor_of(target)[0]
