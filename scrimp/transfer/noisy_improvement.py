"""Expected improvement of a weighted sum of Gaussian processes, averaged over what its noisy
observations may hide.

The variance of an ensemble is not small at what was evaluated, so plain EI would promise
improvement there. Noisy EI draws the noise-free values of every model at the evaluated inputs,
conditions each model on its own, and takes EI over the best value of the ensemble in each draw:

    a(x)  = 1/S sum_s EI(x; best_s, models | f_s(X))
    best_s = min over X of  w_t f_t,s + sum_i w_i f_i,s

Running evaluations are among X. Scores are logarithms of the average.

Letham, Karrer, Ottoni, Bakshy, Constrained Bayesian optimization with noisy experiments, 2019; for
RGPE: Feurer et al., Practical transfer learning for Bayesian optimization, 2022.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from scrimp.acquisition.acquisition import Acquisition, BoundAcquisition
from scrimp.acquisition.context import Context, model_named
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.surrogates.linear_ensemble import LinearEnsemble
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate
from scrimp.transfer.source_models import SourceModels

__all__ = ["NoisyImprovement"]

DRAWS = 30
NO_NOISE = 1e-6  # of the variance of standardised targets: what keeps factors stable


@dataclass(frozen=True, eq=False)
class NoisyImprovement(Acquisition):
    """Of the model at hand, which is ``target`` without running evaluations, and past models, with
    weights (M + 1,)."""

    target: FittedSurrogate
    sources: SourceModels
    weights: Array
    seed: int = 0

    def bind(self, models: Mapping[str, FittedSurrogate], context: Context) -> BoundAcquisition:
        rows = (
            context.evaluated
            if context.pending is None
            else np.concatenate([context.evaluated, context.pending])
        )
        # other models come with as many fantasies as there are draws of running evaluations: terms
        # have to match
        fantasies = model_named(models, "loss").mean(rows[:1]).shape[1]
        rng = np.random.default_rng(self.seed)
        used = np.flatnonzero(self.weights[:-1] > 0.0).tolist()
        parts = [self.target, *(self.sources.view(one) for one in used)]
        known = [
            noise_free(part, rows, fantasies if fantasies > 1 else DRAWS, rng) for part in parts
        ]
        ensemble = LinearEnsemble(
            (float(self.weights[-1]), *self.weights[used].tolist()), tuple(known)
        )
        return LogExpectedImprovement().bind({"loss": ensemble}, context)


def noise_free(
    model: FittedSurrogate, rows: Array, draws: int, rng: np.random.Generator
) -> FittedSurrogate:
    """The model with ``draws`` joint draws of its noise-free function at ``rows`` as exact
    observations."""
    less = np.full(
        len(rows), NO_NOISE - model.noise_variance
    )  # a model adds its own noise to what it is told
    return model.condition(Data(rows, model.sample(rows, draws, rng).T, less))
