"""The best new configuration of a continuous space: a local maximum of the very score that candidates compete by.

The best of a few hundred drawn configurations is never the best there is. From the best of them the score is climbed along its
gradient through the curve model, and discrete parameters are changed one by one (`scrimp.acquisition.maximize.climb`).

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
    """A question to configurations x (m, d) that nobody tried, by what the model knows of their surroundings."""

    belief: Belief
    question: Question

    def __call__(self, x: Array) -> Array:
        return self.value_and_gradient(x)[0]

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        belief, factor = self.belief, self.belief.factor
        scaled = factor.scaled(belief.curves.map(x))
        times = belief.curves.clock(belief.newcomer_steps(x, self.question.step))
        mean, deviation, pull = factor.marginals_and_pullback(scaled, times, belief.whitened)
        shared = shared_deviation(belief, deviation)
        goals = np.full(len(x), self.question.goal)
        score, by_mean, by_deviation = self.question.formula(mean, shared, goals)
        d_scaled = pull(by_mean, by_deviation * deviation / shared)
        return score, belief.curves.map.pull(factor.scaled(d_scaled))


def shared_deviation(belief: Belief, deviation: Array) -> Array:
    """The standard deviation of a newcomer without the part that is its own."""
    return np.asarray(np.sqrt(np.maximum(deviation**2 - belief.factor.parameters.own, LEAST_VARIANCE)))


def nominee(belief: Belief, question: Question, places: NDArray[np.intp], rng: np.random.Generator) -> Array:
    """The best configuration (1, d) that is found from the newcomers at these ``places`` (k,) on; nobody tried it."""
    drawn = belief.newcomers.x[places]
    mean, deviation = belief.of_newcomers(places, belief.newcomer_steps(drawn, question.step))
    goals = np.full(len(places), question.goal)
    scores = question.formula(mean, shared_deviation(belief, deviation), goals)[0]
    search = Search(excluded=belief.curves.x, scales=belief.factor.parameters.lengths, settings=EFFORT)
    domain = belief.newcomers.encoding.domain
    found = climb(NewcomerScore(belief, question), domain, Found(drawn, scores), rng, search).x[:1]
    return domain.snap(np.round(found, DIGITS))
