"""Improvement that counts only where all constraints hold.

    CEI(x) = EI(x; best feasible) * prod over constraints of P(low_k <= g_k(x) <= high_k)

Schonlau, Welch, Jones, "Global versus local search in constrained optimization of computer models",
1998; Gardner et al., "Bayesian optimization with inequality constraints", 2014. Each constraint has
a model "constraint:<name>" of the distance g from its limit, feasible when at most 0, or within
``context.bands[name]`` for one that has two sides. The incumbent is the best feasible one. While
nothing evaluated is feasible there is nothing to improve on: then the score is the probability that
x is feasible, over the fantasies in which no pending input is.

    Constrained(LogExpectedImprovement()).bind({"loss": loss, "constraint:memory_gb": memory}, context)
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.acquisition import Acquisition, BoundMeanStd
from scrimp.acquisition.context import Context
from scrimp.acquisition.improvement import LogExpectedImprovement, ProbabilityOfImprovement
from scrimp.acquisition.products import BoundProduct, bind_logarithm
from scrimp.acquisition.within import ProbabilityWithin
from scrimp.errors import MethodError
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate

__all__ = ["CONSTRAINT", "Constrained", "Limit", "believed_feasible", "limits_of"]

CONSTRAINT = "constraint:"
"""What the names of models of constraints begin with."""

ONE_SIDED = (-math.inf, 0.0)


@dataclass(frozen=True)
class Constrained(Acquisition):
    """``inner`` times the probability of feasibility, in logarithms; ``context.feasible`` says what
    was feasible."""

    inner: Acquisition = field(default_factory=LogExpectedImprovement)

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundProduct:
        limits = limits_of(models, context)
        if not limits or context.feasible is None:
            raise MethodError(
                f"Constrained needs a model named '{CONSTRAINT}<name>' per constraint and"
                f" context.feasible; there are models {sorted(models)} and"
                f" feasible={context.feasible}"
            )
        pending_feasible = (
            None if context.pending is None else believed_feasible(limits, context.pending)
        )
        factors = tuple(probability_of_feasibility(limit) for limit in limits)
        if context.feasible.any():
            known = replace(context, pending_feasible=pending_feasible)
            return BoundProduct((bind_logarithm(self.inner, models, known), *factors))
        return BoundProduct(factors, _unsolved(pending_feasible))


@dataclass(frozen=True)
class Limit:
    """The model of one constraint, and between which two values, in units of the model, the
    constraint holds."""

    model: FittedSurrogate
    low: float
    high: float

    def violation(self, values: Array) -> Array:
        """How far values, in units of the model, lie outside; feasible when not positive."""
        return np.maximum(values - self.high, self.low - values)


def limits_of(models: Mapping[str, FittedSurrogate], context: Context) -> tuple[Limit, ...]:
    """The models of constraints with their bands, by name."""
    named = ((name, models[name]) for name in sorted(models) if name.startswith(CONSTRAINT))
    return tuple(
        Limit(model, *_in_model_units(model, context.bands.get(name, ONE_SIDED)))
        for name, model in named
    )


def _in_model_units(model: FittedSurrogate, band: tuple[float, float]) -> tuple[float, float]:
    """A band of targets as the model sees it; infinite ends stay so."""
    finite = np.nan_to_num(np.array(band), posinf=0.0, neginf=0.0)
    seen = model.model_units(Data(np.zeros((2, model.data.x.shape[1])), finite)).y
    low, high = (
        float(end if math.isinf(end) else inner) for end, inner in zip(band, seen, strict=True)
    )
    return low, high


def probability_of_feasibility(limit: Limit) -> BoundMeanStd:
    """log P(low <= g <= high); with one side it is the probability of improvement on the upper
    end."""
    members = tuple((one, np.array([limit.high])) for one in limit.model.members)
    if math.isinf(limit.low):
        return BoundMeanStd(ProbabilityOfImprovement(margin=0.0), members)
    return BoundMeanStd(ProbabilityWithin(limit.low, limit.high), members)


def believed_feasible(limits: tuple[Limit, ...], pending: Array) -> NDArray[np.bool_]:
    """In which fantasies the mean of each pending input keeps every limit: (p, F)."""
    holds = np.ones((len(pending), 1), dtype=bool)
    for limit in limits:
        mean = np.mean([member.mean(pending) for member in limit.model.members], axis=0)
        holds = holds & (limit.violation(mean) <= 0.0)
    return holds


def _unsolved(pending_feasible: NDArray[np.bool_] | None) -> Array | None:
    """Log weights (F,) that leave out the fantasies in which a pending input is feasible, unless
    that is all of them."""
    if pending_feasible is None or len(pending_feasible) == 0:
        return None
    solved = pending_feasible.any(axis=0)
    return None if solved.all() or not solved.any() else np.where(solved, -np.inf, 0.0)
