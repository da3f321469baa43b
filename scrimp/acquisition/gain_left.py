"""The gain that is left: how much the rest of a study is expected to improve its best loss.

Let b be the best loss, Y_c the loss that candidate c would end with, w_c what it costs to get there,
and W what is left to spend. From joint draws s of all Y_c, one half *picks* candidates and the other
half *judges* them:

- Picking draws take turns. Each picks its own best candidate (Thompson sampling), as long as all that
  is picked costs at most W; without a limit every draw picks.
- A judging draw gains G_s = max(0, b_s - min over picks of Y_sc), where b_s is the best of b and of the
  draw's own outcomes of trials that are running already: those end, whatever is decided now.

    gain left = E[G],      gain per cost = max over c of E[(b - Y_c)+] / w_c

Different draws pick and judge, so that no draw is rewarded for its own luck. The picks do not learn
from each other, as those of a study do, and candidates are finitely many: both understate the gain.
A model that is too uncertain overstates it.

    gain_left(outcomes, costs, best, budget)      # (s, k), (k,), a loss, a number

Thompson sampling: Thompson, On the likelihood that one unknown probability exceeds another, 1933. Rules
that end a search by its expected regret: Makarova et al., Automatic termination for hyperparameter
optimization, 2022; Wilson, Stopping Bayesian optimization with probabilistic regret bounds, 2024.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

OUTCOME_DRAWS = 256
"""Joint draws of the outcomes of all candidates; half of them pick. Convention."""

MAX_CANDIDATES = 300
"""Candidates whose outcomes are drawn jointly, the most promising of many. Convention."""

PROMISE_DEVIATIONS = 2.0
"""Candidates are promising by their mean less this many standard deviations. Convention."""


@dataclass(frozen=True)
class GainLeft:
    """The expected improvement that is left, in the units of the metric, and the largest expected
    improvement of one candidate per unit of what it costs."""

    expected: float
    per_cost: float


UNKNOWN_GAIN = GainLeft(math.inf, math.inf)
"""The gain before there is anything to learn from: nothing is known to be too little."""


def gain_left(
    outcomes: Array, costs: Array, best: float, budget: float, running: Array | None = None
) -> GainLeft:
    """Return the gain left from joint draws of ``outcomes`` (s, k), infinite where a draw is not
    feasible, with the ``costs`` (k,) of the candidates, the ``best`` loss and the ``budget`` that is
    left; ``running``: draws (s, r) of trials that are running.

    >>> outcomes = np.array([[0.5, 0.9], [0.7, 0.9], [0.6, 0.9], [0.8, 0.9]])
    >>> round(gain_left(outcomes, np.ones(2), 1.0, 1.0).expected, 3)
    0.3
    """
    if not outcomes.shape[1]:
        return GainLeft(0.0, 0.0)
    half = len(outcomes) // 2
    order = list(dict.fromkeys(outcomes[:half].argmin(axis=1).tolist()))
    affordable = np.cumsum(costs[order]) <= budget * (1.0 + 1e-9)
    improvement = np.maximum(best - outcomes, 0.0).mean(axis=0)
    per_cost = float((improvement / costs).max())
    picked = np.array(order, dtype=np.intp)[affordable]
    if not len(picked):
        return GainLeft(0.0, per_cost)
    bests = np.full(len(outcomes), best)
    if running is not None and running.shape[1]:
        bests = np.minimum(bests, running.min(axis=1))
    gains = np.maximum(bests[half:] - outcomes[half:, picked].min(axis=1), 0.0)
    return GainLeft(float(gains.mean()), per_cost)


def most_promising(mean: Array, deviation: Array) -> NDArray[np.intp]:
    """Return the places of the most promising candidates by mean and standard deviation, (k,) each."""
    return np.argsort(mean - PROMISE_DEVIATIONS * deviation, kind="stable")[:MAX_CANDIDATES]
