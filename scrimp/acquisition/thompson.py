"""Thompson sampling: draw one function from the posterior and choose its minimum.

Thompson, "On the likelihood that one unknown probability exceeds another", 1933. The draw is joint
over a finite set of candidates, which is why the scores of one call belong together
(`BoundAcquisition.joint`): the maximiser scores all candidates once and takes the best. Parallel
workers are spread by the randomness.

Constraints are drawn too: the choice is the lowest loss among the candidates whose draws keep all
limits, or without any such candidate the smallest sum of violations (Eriksson and Poloczek,
"Scalable constrained Bayesian optimization", 2021). With a cost, the draw's improvement on the
incumbent counts per cost^exponent; candidates without improvement follow, ordered by their draw.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scrimp.acquisition.acquisition import (
    Acquisition,
    BoundAcquisition,
    Context,
    incumbents,
    model_named,
)
from scrimp.acquisition.weighted import Limit, limits_of, median_log_cost
from scrimp.errors import MethodError
from scrimp.gp.cholesky import cholesky
from scrimp.surrogates.surrogate import Array, FittedSurrogate


def draw(model: FittedSurrogate, x: Array, rng: np.random.Generator) -> Array:
    """Draw the noise-free function jointly at x (m, d), as (m,), from a random member and fantasy."""
    member = model.members[rng.integers(len(model.members))]
    posterior = member.posterior(x, joint=True)
    if posterior.covariance is None:
        raise MethodError(
            "Thompson sampling needs a joint posterior, which this model does not give; use another"
            " acquisition"
        )
    mean = posterior.mean[:, rng.integers(posterior.mean.shape[1])]
    noise: Array = cholesky(posterior.covariance) @ rng.standard_normal(len(x))
    return mean + noise


@dataclass(frozen=True)
class ThompsonSampling(Acquisition):
    """Minus a draw of the loss, seeded by ``context.settings["seed"]`` and the number of evaluated
    inputs; ``context.settings["cost_exponent"]`` is the exponent of the cost.

        score = ThompsonSampling().bind({"loss": fitted}, Context(x, settings={"seed": 7}))
        candidates[score(candidates).argmax()]
    """

    weighs: ClassVar[bool] = True

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> "BoundThompson":
        seed = int(context.settings.get("seed", 0))
        loss, limits = model_named(models, "loss"), limits_of(models, context)
        cost, exponent = models.get("cost"), context.settings.get("cost_exponent", 1.0)
        hopeless = context.feasible is not None and not context.feasible.any()
        best = np.inf if cost is None or hopeless else float(incumbents(loss, context).min())
        return BoundThompson(loss, (seed, len(context.evaluated)), limits, cost, (best, exponent))


@dataclass(frozen=True)
class BoundThompson(BoundAcquisition):
    """The draw of a seed: the same rows give the same scores. ``aim``: the incumbent, and the exponent
    of the cost."""

    model: FittedSurrogate
    seed: tuple[int, ...]
    limits: tuple[Limit, ...] = ()
    cost: FittedSurrogate | None = None
    aim: tuple[float, float] = (np.inf, 1.0)
    joint: ClassVar[bool] = True

    def __call__(self, x: Array) -> Array:
        rng = np.random.default_rng(self.seed)
        score = self._per_cost(draw(self.model, x, rng), x)
        if not self.limits:
            return score
        violations = [
            np.maximum(limit.violation(draw(limit.model, x, rng)), 0.0) for limit in self.limits
        ]
        outside: Array = np.sum(violations, axis=0)
        holds = outside <= 0.0
        floor = score[holds].min() - 1.0 if holds.any() else 0.0
        return np.where(holds, score, floor - outside)

    def _per_cost(self, drawn: Array, x: Array) -> Array:
        """Minus the draw, or its improvement per cost^exponent."""
        best, exponent = self.aim
        if self.cost is None or not np.isfinite(best):
            return -drawn
        gain = best - drawn
        members = [median_log_cost(member, x)[:, 0] for member in self.cost.members]
        logarithm = exponent * np.asarray(np.mean(members, axis=0))
        return np.where(gain > 0.0, gain * np.exp(logarithm.min() - logarithm), gain)

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        raise MethodError(
            "a joint draw has no gradient: score all candidates in one call and take the best"
        )
