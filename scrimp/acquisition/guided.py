"""An acquisition guided by what the user believes to be good, less and less as evidence gathers.

    score(x) = log acquisition(x) + strength / n * log belief(x)          n evaluations so far

The belief rules while little is known; since its weight falls with 1 / n, no belief, however wrong,
keeps a study from the optimum for ever. Hvarfner, Stoll, Souza, Lindauer, Hutter, Nardi, "piBO:
Augmenting acquisition functions with user beliefs for Bayesian optimization", 2022.

    Guided(LogExpectedImprovement(), belief, strength=3.0).bind({"loss": loss}, context)
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scrimp.acquisition.acquisition import Acquisition
from scrimp.acquisition.context import Context
from scrimp.acquisition.products import BoundProduct, KnownFactor, LogFunction, bind_logarithm
from scrimp.surrogates.surrogate import FittedSurrogate

__all__ = ["Guided"]


@dataclass(frozen=True)
class Guided(Acquisition):
    """``inner`` times belief^(strength / n), where ``belief`` is the log density of good
    configurations.

    Strength 3 was chosen on Hartmann 6, Ackley 5 and Rosenbrock 4 (8 seeds): good guesses help
    nearly as much as with 10, bad ones cost as much or less, on Ackley a third.
    """

    inner: Acquisition
    belief: LogFunction
    strength: float = 3.0

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundProduct:
        power = self.strength / max(len(context.evaluated), 1)
        return BoundProduct(
            (bind_logarithm(self.inner, models, context), KnownFactor(self.belief, power))
        )
