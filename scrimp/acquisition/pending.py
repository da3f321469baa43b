"""Evaluations under way: average over what they may turn out to be, so that parallel workers do not
repeat each other.

Snoek, Larochelle, Adams, "Practical Bayesian optimization of machine learning algorithms", 2012:
draw the outcomes of all pending inputs jointly from the posterior, condition on each draw, and
average the acquisition over the draws. The variance does not depend on outcomes, so all draws share
one factorisation; the incumbent is taken per draw (`Context.pending`).

    model = fantasise(fitted, pending_x, count=32, rng=rng)
    score = LogExpectedImprovement().bind({"loss": model}, Context(evaluated=data.x, pending=pending_x))
"""

import numpy as np

from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate

__all__ = ["fantasise"]


def fantasise(
    model: FittedSurrogate, pending: Array, count: int, rng: np.random.Generator
) -> FittedSurrogate:
    """``model`` with ``count`` joint draws of the noise-free function at ``pending`` (p, d) as
    further targets (p, count).

    The model itself when nothing is pending.
    """
    if len(pending) == 0:
        return model
    return model.condition(Data(pending, model.sample(pending, count, rng).T))
