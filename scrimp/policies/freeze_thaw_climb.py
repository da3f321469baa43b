"""The best new configuration of a continuous space: where the expected improvement on a question's goal is largest.

The best of a few hundred drawn configurations is never the best there is. From the best of them the expected improvement is
climbed along its gradient through the curve model, and discrete parameters are changed one by one
(`scrimp.acquisition.maximize.climb`). Mere probability will not do: where the goal is expected to be met, it is highest for the
closest copy of what is known.

What a run has of its own (the term a3 of the model) is left out of the standard deviation here. It is the same wherever a new
configuration lies, so it is no reason to choose one; counted in, the surroundings of the best configuration would look
promising however often they were tried. The chosen one then competes with paused trials with all its uncertainty.

    x = nominee(belief, question, places, rng)             # (1, d)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.acquisition import BoundAcquisition
from scrimp.acquisition.ascent import AscentSettings
from scrimp.acquisition.improvement import log_expected_improvement_and_derivatives
from scrimp.acquisition.maximize import Found, MaximizeSettings, Search, climb
from scrimp.policies.freeze_thaw_model import Belief
from scrimp.policies.freeze_thaw_questions import Question

__all__ = ["NewcomerScore", "nominee"]

Array = NDArray[np.float64]

EFFORT = MaximizeSettings(starts=4, cycles=2, ascent=AscentSettings(rounds=20))
LEAST_VARIANCE = 1e-10
DIGITS = 6
"""Of the unit cube; the rest is rounding error, in which a factor that grew differs from one that was built again."""


@dataclass(frozen=True)
class NewcomerScore(BoundAcquisition):
    """Log expected improvement on a question's goal by configurations x (m, d) that nobody tried, as their surroundings tell."""

    belief: Belief
    question: Question

    def __call__(self, x: Array) -> Array:
        return self.value_and_gradient(x)[0]

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        belief, factor = self.belief, self.belief.factor
        scaled = factor.scaled(belief.curves.map(x))
        times = belief.curves.clock(belief.newcomer_steps(x, self.question.step))
        mean, deviation, pull = factor.marginals_and_pullback(scaled, times, belief.whitened)
        shared = shared_deviation(belief, deviation, times)
        goals = np.full(len(x), self.question.goal)
        score, by_mean, by_deviation = log_expected_improvement_and_derivatives(mean, shared, goals)
        d_scaled = pull(by_mean, by_deviation * deviation / shared)
        return score, belief.curves.map.pull(factor.scaled(d_scaled))


def shared_deviation(belief: Belief, deviation: Array, times: Array) -> Array:
    """The standard deviation (m,) of newcomers at times (m,) without the part that is their own."""
    own = belief.factor.parameters.own_variances(times)
    return np.asarray(np.sqrt(np.maximum(deviation**2 - own, LEAST_VARIANCE)))


def nominee(belief: Belief, question: Question, places: NDArray[np.intp], rng: np.random.Generator) -> Array:
    """The best configuration (1, d) that is found from the newcomers at these ``places`` (k,) on; nobody tried it."""
    drawn = belief.newcomers.x[places]
    steps = belief.newcomer_steps(drawn, question.step)
    mean, deviation = belief.of_newcomers(places, steps)
    shared, goals = shared_deviation(belief, deviation, belief.curves.clock(steps)), np.full(len(places), question.goal)
    scores = log_expected_improvement_and_derivatives(mean, shared, goals)[0]
    search = Search(excluded=belief.curves.x, scales=belief.factor.parameters.lengths, settings=EFFORT)
    domain = belief.newcomers.encoding.domain
    found = climb(NewcomerScore(belief, question), domain, Found(drawn, scores), rng, search).x[:1]
    return domain.snap(np.round(found, DIGITS))
