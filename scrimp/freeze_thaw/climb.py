"""The new configuration of a continuous space that competes with paused trials: who is expected to
*end* best.

The nominee is the configuration whose loss at the end of training is expected to come furthest
below the lowest end expected of any trial (`scrimp.freeze_thaw.loss_improvement`). A short
*evolution* finds it. It begins with the drawn newcomers and the trials that are expected to end
lowest. In each of eight generations the best eight have ten children each, in which a third of the
parameters moved by a sixty-fourth to a half of their range; the best of both generations live on.
The questions decide from there on: the nominee competes for its first slice.

Why no climb from anywhere: in ten dimensions every corner of a cube is far from all that was tried,
and a stationary kernel is most uncertain there. A climb from the first few configurations ends at
corners, one after the other, and a study spends its first slices on them. And why the end:
improvement on a first level is won by those that start fast. And why losses, not the targets of the
model: targets have no lower end, so an uncertain candidate could promise more than any loss allows.

Some nominees are *climbed* to all the same, along the gradient of the expected improvement on the
question's own goal and by changes of one discrete parameter at a time
(`scrimp.acquisition.maximize.climb`): some optima lie at bounds, which no drawn step reaches. The
more corners there are, 2^d, the less that is worth. Mere probability will not do: where the goal is
expected to be met, it is highest for the closest copy of what is known.

And some are *drawn*, as all of ASHA's are: where neighbours differ by more than the model can know
(runs that end early, levels that say little), what it hopes for is worth no more than a draw. How
many, the model's own record says: what it foretells of each configuration from all others
(`scrimp.freeze_thaw.foresight`) leaves a share of their variance unexplained, and that share of the
nominees is drawn.

What a run has of its own (the term a3 of the model) is left out of the standard deviation here. It
is the same wherever a new configuration lies, so it is no reason to choose one; counted in, the
surroundings of the best configuration would look promising however often they were tried. The
chosen one then competes with paused trials with all its uncertainty.

    x = nominee(belief, question, places, rng)             # (1, d)
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.acquisition import BoundAcquisition
from scrimp.acquisition.ascent import AscentSettings
from scrimp.acquisition.domain import contains_rows
from scrimp.acquisition.maximize import Found, MaximizeSettings, Search, climb
from scrimp.freeze_thaw.foresight import foresight
from scrimp.freeze_thaw.loss_improvement import (
    log_loss_improvement,
    log_loss_improvement_and_derivatives,
)
from scrimp.freeze_thaw.model import CurveBelief
from scrimp.freeze_thaw.questions import Question

__all__ = ["NewcomerScore", "climbed", "ending_best", "evolved", "nominee"]

Array = NDArray[np.float64]

EFFORT = MaximizeSettings(starts=4, cycles=2, ascent=AscentSettings(rounds=20))
CLIMBED = 0.2  # the share of nominees that are climbed to, at most
# in d dimensions at most 25 / 2^d: a climb is good where a study can afford to look at many corners
CORNERS = 25.0
PARENTS = 8  # who lives on from one generation to the next
CHILDREN = 10  # steps from each of them
GENERATIONS = 8
FINEST = 6.0  # the widths of steps are 1/2 to 1/64
MOVING = 0.3  # the share of parameters that a step moves
LEAST_VARIANCE = 1e-10
DIGITS = 6
"""Of the unit cube; the rest is rounding error, in which a factor that grew differs from one that
was built again."""


@dataclass(frozen=True)
class NewcomerScore(BoundAcquisition):
    """Log expected improvement in loss on a question's goal by configurations x (m, d) that nobody
    tried, as their surroundings tell; for what a unit costs, where that counts."""

    belief: CurveBelief
    question: Question

    def __call__(self, x: Array) -> Array:
        belief = self.belief
        steps = belief.newcomer_steps(x, self.question.step)
        mean, deviation = belief.of_configs(x, steps)
        shared = shared_deviation(belief, deviation, belief.curves.clock(steps))
        goals = np.full(len(x), self.question.goal)
        score = log_loss_improvement(belief.target, mean, shared, goals)
        return self.question.by_cost(score, x)

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        belief, factor = self.belief, self.belief.factor
        scaled = factor.scaled(belief.curves.featured(x))
        times = belief.curves.clock(belief.newcomer_steps(x, self.question.step))
        mean, deviation, pull = factor.marginals_and_pullback(scaled, times, belief.whitened)
        shared = shared_deviation(belief, deviation, times)
        goals = np.full(len(x), self.question.goal)
        score, by_mean, by_deviation = log_loss_improvement_and_derivatives(
            belief.target, mean, shared, goals
        )
        d_features = factor.scaled(pull(by_mean, by_deviation * deviation / shared))
        if self.question.costs is not None:
            d_features = d_features - self.question.costs.weights
        return self.question.by_cost(score, x), belief.curves.pull(x, d_features)


def shared_deviation(belief: CurveBelief, deviation: Array, times: Array) -> Array:
    """The standard deviation (m,) of newcomers at times (m,) without the part that is their own."""
    own = belief.factor.parameters.own_variances(times)
    return np.asarray(np.sqrt(np.maximum(deviation**2 - own, LEAST_VARIANCE)))


def nominee(
    belief: CurveBelief, question: Question, places: NDArray[np.intp], rng: np.random.Generator
) -> Array:
    """A configuration (1, d) that nobody tried, from the newcomers at these ``places`` (k,) on."""
    if rng.random() >= foresight(belief):
        return belief.newcomers.x[[int(rng.choice(places))]]
    share = min(CLIMBED, CORNERS / 2.0 ** belief.curves.x.shape[1])
    found = climbed if rng.random() < share else ending_best
    return belief.newcomers.encoding.domain.snap(
        np.round(found(belief, question, places, rng), DIGITS)
    )


def ending_best(
    belief: CurveBelief, question: Question, places: NDArray[np.intp], rng: np.random.Generator
) -> Array:
    """The most expected improvement at the end of training that an evolution from the newcomers
    and the trials that end lowest finds."""
    curves = belief.curves
    trials, ends = belief.ending_targets
    lowest = curves.x[trials[np.argsort(ends, kind="stable")[:PARENTS]]]
    score = NewcomerScore(belief, replace(question, step=curves.clock.last, goal=float(ends.min())))
    return evolved(score, belief, belief.newcomers.x[places], lowest, rng)


def evolved(
    score: Callable[[Array], Array],
    belief: CurveBelief,
    drawn: Array,
    parents: Array,
    rng: np.random.Generator,
) -> Array:
    """The highest score that an evolution from the ``drawn`` newcomers (k, d) and these ``parents``
    (p, d) finds in configurations that nobody tried, (1, d)."""
    tried, domain = belief.curves.x, belief.newcomers.encoding.domain
    x = np.vstack([drawn, parents])
    scores = score(x)
    for _ in range(GENERATIONS):
        best = np.argsort(-scores, kind="stable")[:PARENTS]
        parents = np.repeat(x[best], CHILDREN, axis=0)
        widths = 0.5 ** rng.uniform(1.0, FINEST, size=(len(parents), 1))
        children = domain.perturb(parents, widths * (rng.random(parents.shape) < MOVING), rng)
        x = np.vstack([x[best], children])
        scores = np.concatenate([scores[best], score(children)])
    fresh = ~contains_rows(x, tried)
    x, scores = (x[fresh], scores[fresh]) if fresh.any() else (drawn, score(drawn))
    return x[[int(np.argmax(scores))]]


def climbed(
    belief: CurveBelief, question: Question, places: NDArray[np.intp], rng: np.random.Generator
) -> Array:
    """The best by the question's own goal, whatever the training until then, that a climb from the
    newcomers finds."""
    drawn = belief.newcomers.x[places]
    steps = belief.newcomer_steps(drawn, question.step)
    mean, deviation = belief.of_newcomers(places, steps)
    shared = shared_deviation(belief, deviation, belief.curves.clock(steps))
    goals = np.full(len(places), question.goal)
    scores = log_loss_improvement(belief.target, mean, shared, goals)
    scores = question.by_cost(scores, drawn)
    search = Search(
        excluded=belief.curves.x,
        scales=belief.factor.parameters.lengths[: drawn.shape[1]],
        settings=EFFORT,
    )
    domain = belief.newcomers.encoding.domain
    return climb(NewcomerScore(belief, question), domain, Found(drawn, scores), rng, search).x[:1]
