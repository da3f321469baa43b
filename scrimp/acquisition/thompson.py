"""Thompson sampling: draw one function from the posterior and go where it is lowest.

Thompson, "On the likelihood that one unknown probability exceeds another", 1933. The draw is joint over a finite set
of candidates, which is why the scores of one call belong together (`BoundAcquisition.joint`): the maximiser scores
all candidates once and takes the best. Randomness spreads parallel workers by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scrimp.acquisition.acquisition import Acquisition, BoundAcquisition, Context, model_named
from scrimp.errors import MethodError
from scrimp.gp.cholesky import cholesky
from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = ["BoundThompson", "ThompsonSampling", "draw"]


def draw(model: FittedSurrogate, x: Array, rng: np.random.Generator) -> Array:
    """One joint draw (m,) of the noise-free function at x (m, d), from a member and a fantasy chosen at random."""
    member = model.members[rng.integers(len(model.members))]
    posterior = member.posterior(x, joint=True)
    if posterior.covariance is None:
        raise MethodError("Thompson sampling needs a joint posterior; this model gives none: use another acquisition")
    mean = posterior.mean[:, rng.integers(posterior.mean.shape[1])]
    noise: Array = cholesky(posterior.covariance) @ rng.standard_normal(len(x))
    return mean + noise


@dataclass(frozen=True)
class ThompsonSampling(Acquisition):
    """Minus a draw of the loss. ``context.settings["seed"]`` and the number of evaluated inputs decide which draw.

    >>> score = ThompsonSampling().bind({"loss": fitted}, Context(x, settings={"seed": 7}))  # doctest: +SKIP
    >>> candidates[score(candidates).argmax()]                                               # doctest: +SKIP
    """

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> "BoundThompson":
        seed = int(context.settings.get("seed", 0))
        return BoundThompson(model_named(models, "loss"), (seed, len(context.evaluated)))


@dataclass(frozen=True)
class BoundThompson(BoundAcquisition):
    """The draw that belongs to a seed: the same rows give the same scores."""

    model: FittedSurrogate
    seed: tuple[int, ...]
    joint: ClassVar[bool] = True

    def __call__(self, x: Array) -> Array:
        return -draw(self.model, x, np.random.default_rng(self.seed))

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        raise MethodError("a joint draw has no gradient: score all candidates in one call and take the best")
