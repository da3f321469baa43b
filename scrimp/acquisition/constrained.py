"""Improvement that counts only where all constraints hold.

    CEI(x) = EI(x; best feasible) * prod over constraints of P(violation_k(x) <= 0)

Schonlau, Welch, Jones, "Global versus local search in constrained optimization of computer models", 1998; Gardner et
al., "Bayesian optimization with inequality constraints", 2014. Each constraint has a model "constraint:<name>" of its
violation, feasible when at most 0. The incumbent is the best feasible one. While nothing evaluated is feasible there
is nothing to improve on: then the score is the probability that x is feasible, over the fantasies in which no pending
input is.

    Constrained(LogExpectedImprovement()).bind({"loss": loss, "constraint:memory_gb": memory}, context)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.acquisition import Acquisition, BoundMeanStd, Context
from scrimp.acquisition.improvement import LogExpectedImprovement, ProbabilityOfImprovement
from scrimp.acquisition.products import BoundProduct, bind_logarithm
from scrimp.errors import MethodError
from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = ["CONSTRAINT", "Constrained"]

CONSTRAINT = "constraint:"
"""What the names of models of violations begin with."""


@dataclass(frozen=True)
class Constrained(Acquisition):
    """``inner`` times the probability of feasibility, in logarithms; ``context.feasible`` says what was feasible."""

    inner: Acquisition = field(default_factory=LogExpectedImprovement)

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundProduct:
        violations = [models[name] for name in sorted(models) if name.startswith(CONSTRAINT)]
        if not violations or context.feasible is None:
            raise MethodError(
                f"Constrained needs a model named '{CONSTRAINT}<name>' per constraint and context.feasible; "
                f"there are models {sorted(models)} and feasible={context.feasible}"
            )
        pending_feasible = None if context.pending is None else _believed_feasible(violations, context.pending)
        factors = tuple(probability_of_feasibility(model) for model in violations)
        if context.feasible.any():
            known = replace(context, pending_feasible=pending_feasible)
            return BoundProduct((bind_logarithm(self.inner, models, known), *factors))
        return BoundProduct(factors, _unsolved(pending_feasible))


def probability_of_feasibility(violation: FittedSurrogate) -> BoundMeanStd:
    """log P(violation <= 0), which is the probability of improvement on 0."""
    return BoundMeanStd(ProbabilityOfImprovement(margin=0.0), tuple((one, np.zeros(1)) for one in violation.members))


def _believed_feasible(violations: list[FittedSurrogate], pending: Array) -> NDArray[np.bool_]:
    """In which fantasies the mean violation of each pending input is at most 0, for all constraints: (p, F)."""
    holds = np.ones((len(pending), 1), dtype=bool)
    for model in violations:
        holds = holds & (np.mean([member.mean(pending) for member in model.members], axis=0) <= 0.0)
    return holds


def _unsolved(pending_feasible: NDArray[np.bool_] | None) -> Array | None:
    """Log weights (F,) that leave out the fantasies in which a pending input is feasible, unless that is all of them."""
    if pending_feasible is None or len(pending_feasible) == 0:
        return None
    solved = pending_feasible.any(axis=0)
    return None if solved.all() or not solved.any() else np.where(solved, -np.inf, 0.0)
