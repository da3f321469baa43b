"""Capping targets that are compared with a limit: what a cap hides must never be on which side of
the limit a target lies.

Targets are distances from a limit: a violation (feasible when at most 0), or a deviation from a
wanted value (feasible within a tolerance of 0). Far-out ones are capped, so that a run that
exploded does not set the scale of the model, but never nearer to zero than most distances are:
forty trials that use 2 GB each, give or take 50 MB, would otherwise cap the two that use 30 GB at
2.2 GB, and the model would never learn that the limit of 16 GB exists.

    # zero, the limit, stays zero
    Transformed(gp, (CapViolation(), Standardise(centred=False)))
    Transformed(gp, (CapDeviation(tolerance=0.01), Standardise(centred=False)))
"""

from dataclasses import dataclass

import numpy as np

from scrimp.json_values import JsonObject
from scrimp.surrogates.record_reading import number_at
from scrimp.surrogates.surrogate import Array
from scrimp.surrogates.target_transform import Capped, LearnedStep, TargetStep, Winsorise

__all__ = ["CapDeviation", "CapViolation"]


@dataclass(frozen=True)
class CapViolation(TargetStep):
    """z = min(y, cap): the cap of `Winsorise`, raised to that of the distances |y| from the limit,
    and never below it."""

    def learn(self, y: Array) -> LearnedStep:
        cap = max(_fence(y), _fence(np.abs(y)))
        finite = y[np.isfinite(y)]
        highest = float(finite.max()) if len(finite) else 0.0
        return Capped(max(min(cap, highest), 0.0))

    def recall(self, state: JsonObject) -> LearnedStep:
        return Capped.recall(state)


@dataclass(frozen=True)
class CapDeviation(TargetStep):
    """z = y, held between -cap and cap: that of the distances |y|, and at least twice the
    ``tolerance``."""

    tolerance: float

    def learn(self, y: Array) -> LearnedStep:
        cap = max(_fence(np.abs(y)), 2.0 * self.tolerance)
        return Capped(cap, -cap)

    def recall(self, state: JsonObject) -> LearnedStep:
        return Capped.recall(state)


def _fence(y: Array) -> float:
    """The cap that `Winsorise` finds for these targets."""
    return number_at(Winsorise().learn(y).state, "cap")
