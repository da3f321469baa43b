"""A further input of the curve model, where there are past studies: what they expect of a
configuration.

With m(x) the average of what models of past studies predict, in their standard deviations, scaled
to [0, 1] over the space, the curve model sees (x, m(x)) in place of x. Configurations that past
studies think alike of then belong together, however far apart they lie: after a few runs the model
knows what a low m is worth here. Its length-scale is fitted like any other, so a past that tells
nothing is soon forgotten, and it makes no difference whether low m is good or bad.

    hint = Hint.over(encoding, past)            # None without past models
    hint(x)                                     # (n, 1)
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.encoding.encoding import Encoding
from scrimp.freeze_thaw.curve_gp import SHARED
from scrimp.gp.features import Features
from scrimp.suggesters.past_knowledge import PastKnowledge

__all__ = ["UNTAUGHT", "Hint", "Taught", "featured"]

Array = NDArray[np.float64]

SAMPLE = 512
CENTRE = 0.5  # the length-scale that is expected along it


@dataclass(frozen=True, eq=False)
class Hint:
    """(m(x) - ``low``) / ``width``."""

    past: PastKnowledge
    low: float
    width: float

    @staticmethod
    def over(encoding: Encoding, past: PastKnowledge) -> "Hint | None":
        """Scaled by a pool, or by a sample of the space; None where the past says the same of all
        of it."""
        domain = encoding.domain
        rows = domain.pool
        if rows is None:
            rows = domain.sample(SAMPLE, np.random.default_rng(0))
        found = past.expected(rows)
        if not len(found) or float(np.ptp(found)) <= 1e-9:
            return None
        return Hint(past, float(found.min()), float(np.ptp(found)))

    def __call__(self, x: Array) -> Array:
        """(n, 1)"""
        return np.asarray((self.past.expected(x) - self.low) / self.width)[:, None]

    def pull(self, x: Array, d_hint: Array) -> Array:
        """The gradient of x (n, d) from that of the hint (n,)."""
        return self.past.expected_pullback(x, d_hint / self.width)


def featured(features: Features, hint: Hint | None, x: Array) -> Array:
    """Features (n, f) of configurations x (n, d), with the hint as the last of them where there is
    one."""
    return features(x) if hint is None else np.hstack([features(x), hint(x)])


@dataclass(frozen=True)
class Taught:
    """What past studies teach a curve model: the centre of the prior of its hyperparameters, and a
    hint."""

    curves: tuple[float, ...] = ()
    hint: Hint | None = None

    @property
    def shapes(self) -> tuple[float, ...]:
        """The centre, with the hint's length-scale in its place; empty where all is as usual."""
        if self.hint is None or not self.curves:
            return self.curves
        return (*self.curves[:-SHARED], math.log(CENTRE), *self.curves[-SHARED:])


UNTAUGHT = Taught()
