"""A model of f(x, r) seen at one budget, as a model of configurations alone: what an acquisition
over configurations needs.

    # fitted takes rows (x, share of the full budget)
    view = AtBudget(fitted, share=1.0)
    LogExpectedImprovement().bind({"loss": view}, Context(evaluated=configs))

Its data are those of the whole model; conditioning on observations made at this budget is
conditioning the whole model.
"""

from dataclasses import dataclass

import numpy as np

from scrimp.json_values import JsonObject
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Posterior, PosteriorPullback

__all__ = ["AtBudget", "with_share"]


def with_share(x: Array, share: Array | float) -> Array:
    """Configurations (n, d) with a budget column after them (n, d + 1)."""
    return np.column_stack([x, np.broadcast_to(share, len(x))])


@dataclass(frozen=True, eq=False)
class AtBudget(FittedSurrogate):
    """``whole`` at the budget ``share``."""

    whole: FittedSurrogate
    share: float

    @property
    def data(self) -> Data:
        return self.whole.data

    @property
    def length_scales(self) -> Array:
        return self.whole.length_scales[:-1]

    @property
    def noise_variance(self) -> float:
        return self.whole.noise_variance

    @property
    def state(self) -> JsonObject:
        return self.whole.state

    @property
    def members(self) -> tuple[FittedSurrogate, ...]:
        return tuple(AtBudget(member, self.share) for member in self.whole.members)

    def posterior(self, x: Array, *, joint: bool = False) -> Posterior:
        return self.whole.posterior(with_share(x, self.share), joint=joint)

    def mean(self, x: Array) -> Array:
        return self.whole.mean(with_share(x, self.share))

    def posterior_and_pullback(self, x: Array) -> tuple[Posterior, PosteriorPullback]:
        posterior, pull = self.whole.posterior_and_pullback(with_share(x, self.share))
        return posterior, lambda d_mean, d_variance: pull(d_mean, d_variance)[:, :-1]

    def condition(self, data: Data) -> "AtBudget":
        return AtBudget(
            self.whole.condition(Data(with_share(data.x, self.share), data.y, data.noise)),
            self.share,
        )

    def sample(self, x: Array, count: int, rng: np.random.Generator) -> Array:
        return self.whole.sample(with_share(x, self.share), count, rng)

    def model_units(self, data: Data) -> Data:
        return self.whole.model_units(data)

    def target_units(self, values: Array) -> Array:
        return self.whole.target_units(values)

    def target_slope(self, values: Array) -> Array:
        return self.whole.target_slope(values)
