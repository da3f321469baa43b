"""The new configuration of a continuous space that competes with paused trials: who is expected to
*end* best.

Beside the drawn newcomers there are steps from the trials that are expected to end lowest: half of
the parameters move, by a sixteenth to a half of their range. Nominated is who improves most, in
expectation and at the end of training, on the lowest end that is expected of any trial. The
questions decide from there on: the nominee competes for its first slice.

Why drawn steps and no climb: in ten dimensions every corner of a cube is far from all that was
tried, and a stationary kernel is most uncertain there. A climb from the first few configurations
ends at corners, one after the other, and a study spends its first slices on them. And why the end:
improvement on a first level is won by those that start fast.

Some nominees are *climbed* to all the same, along the gradient of the expected improvement on the
question's own goal and by changes of one discrete parameter at a time
(`scrimp.acquisition.maximize.climb`): some optima lie at bounds, which no drawn step reaches. The
more corners there are, 2^d, the less that is worth. Mere probability will not do: where the goal is
expected to be met, it is highest for the closest copy of what is known.

What a run has of its own (the term a3 of the model) is left out of the standard deviation here. It
is the same wherever a new configuration lies, so it is no reason to choose one; counted in, the
surroundings of the best configuration would look promising however often they were tried. The
chosen one then competes with paused trials with all its uncertainty.

    x = nominee(belief, question, places, rng)             # (1, d)
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.acquisition import BoundAcquisition
from scrimp.acquisition.ascent import AscentSettings
from scrimp.acquisition.domain import contains_rows
from scrimp.acquisition.improvement import log_expected_improvement_and_derivatives
from scrimp.acquisition.maximize import Found, MaximizeSettings, Search, climb
from scrimp.freeze_thaw.candidates import ANCHORS
from scrimp.freeze_thaw.model import CurveBelief
from scrimp.freeze_thaw.questions import Question

__all__ = ["NewcomerScore", "climbed", "ending_best", "nominee"]

Array = NDArray[np.float64]

EFFORT = MaximizeSettings(starts=4, cycles=2, ascent=AscentSettings(rounds=20))
CLIMBED = 0.2  # the share of nominees that are climbed to, at most
# in d dimensions at most 25 / 2^d: a climb is good where a study can afford to look at many corners
CORNERS = 25.0
NEAR = 400  # steps from the trials that are expected to end lowest
FINEST = 4.0  # their widths are 1/2 to 1/16
MOVING = 0.5  # the share of parameters that a step moves
LEAST_VARIANCE = 1e-10
DIGITS = 6
"""Of the unit cube; the rest is rounding error, in which a factor that grew differs from one that
was built again."""


@dataclass(frozen=True)
class NewcomerScore(BoundAcquisition):
    """Log expected improvement on a question's goal by configurations x (m, d) that nobody tried,
    as their surroundings tell."""

    belief: CurveBelief
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


def shared_deviation(belief: CurveBelief, deviation: Array, times: Array) -> Array:
    """The standard deviation (m,) of newcomers at times (m,) without the part that is their own."""
    own = belief.factor.parameters.own_variances(times)
    return np.asarray(np.sqrt(np.maximum(deviation**2 - own, LEAST_VARIANCE)))


def nominee(
    belief: CurveBelief, question: Question, places: NDArray[np.intp], rng: np.random.Generator
) -> Array:
    """A configuration (1, d) that nobody tried, from the newcomers at these ``places`` (k,) on."""
    share = min(CLIMBED, CORNERS / 2.0 ** belief.curves.x.shape[1])
    found = climbed if rng.random() < share else ending_best
    return belief.newcomers.encoding.domain.snap(
        np.round(found(belief, question, places, rng), DIGITS)
    )


def ending_best(
    belief: CurveBelief, question: Question, places: NDArray[np.intp], rng: np.random.Generator
) -> Array:
    """The most expected improvement at the end of training, among newcomers and steps from the
    trials that end lowest."""
    curves, domain = belief.curves, belief.newcomers.encoding.domain
    trials = np.unique(curves.trial[belief.order])
    ends, _ = belief.of_trials(trials, belief.ends(curves.x[trials]))
    lowest = curves.x[trials[np.argsort(ends, kind="stable")[:ANCHORS]]]
    anchors = np.repeat(lowest, -(-NEAR // len(lowest)), axis=0)
    widths = 0.5 ** rng.uniform(1.0, FINEST, size=(len(anchors), 1)) * (
        rng.random(anchors.shape) < MOVING
    )
    near = domain.perturb(anchors, widths, rng)
    x = np.vstack([belief.newcomers.x[places], near[~contains_rows(near, curves.x)]])
    last = replace(question, step=curves.clock.last, goal=float(ends.min()))
    return x[[int(np.argmax(NewcomerScore(belief, last)(x)))]]


def climbed(
    belief: CurveBelief, question: Question, places: NDArray[np.intp], rng: np.random.Generator
) -> Array:
    """The best by the question's own goal that a climb from the newcomers finds."""
    drawn = belief.newcomers.x[places]
    steps = belief.newcomer_steps(drawn, question.step)
    mean, deviation = belief.of_newcomers(places, steps)
    shared, goals = (
        shared_deviation(belief, deviation, belief.curves.clock(steps)),
        np.full(len(places), question.goal),
    )
    scores = log_expected_improvement_and_derivatives(mean, shared, goals)[0]
    search = Search(
        excluded=belief.curves.x, scales=belief.factor.parameters.lengths, settings=EFFORT
    )
    domain = belief.newcomers.encoding.domain
    return climb(NewcomerScore(belief, question), domain, Found(drawn, scores), rng, search).x[:1]
