"""An acquisition guided by what the user believes to be good, less and less as evidence gathers.

    score(x) = log acquisition(x) + strength / n * log belief(x)          n evaluations so far

The belief rules while little is known; since its weight falls with 1 / n, no belief, however wrong, keeps a study from the
optimum for ever. Hvarfner, Stoll, Souza, Lindauer, Hutter, Nardi, "piBO: Augmenting acquisition functions with user beliefs for
Bayesian optimization", 2022.

    Guided(LogExpectedImprovement(), belief, strength=3.0).bind({"loss": loss}, context)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scrimp.acquisition.acquisition import Acquisition, Context, FantasyAverage, TermsPullback
from scrimp.acquisition.products import BoundProduct, bind_logarithm
from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = ["Guided", "LogBelief"]

LogBelief = Callable[[Array], tuple[Array, Array]]
"""x (m, d) -> log density of good configurations (m,), up to a constant, and its gradient (m, d)."""


@dataclass(frozen=True)
class Guided(Acquisition):
    """``inner`` times belief^(strength / n).

    Strength 3 was measured on Hartmann 6, Ackley 5 and Rosenbrock 4: good guesses help nearly as much as with 10, bad ones cost
    a third of it.
    """

    inner: Acquisition
    belief: LogBelief
    strength: float = 3.0

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundProduct:
        power = self.strength / max(len(context.evaluated), 1)
        return BoundProduct((bind_logarithm(self.inner, models, context), _Belief(self.belief, power)))


@dataclass(frozen=True)
class _Belief(FantasyAverage):
    """log belief^power, the same in every fantasy."""

    belief: LogBelief
    power: float

    @property
    def logarithmic(self) -> bool:
        return True

    def terms(self, x: Array) -> Array:
        return self.power * self.belief(x)[0][:, None]

    def terms_and_pullback(self, x: Array) -> tuple[Array, TermsPullback]:
        value, gradient = self.belief(x)
        return self.power * value[:, None], lambda d_terms: self.power * d_terms * gradient
