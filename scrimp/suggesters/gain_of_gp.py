"""The gain that is left by the models of a Gaussian-process method (`scrimp.acquisition.gain_left`).

Candidates are the most promising of many: rows of a list, or a Sobol sequence and perturbations of
the best configurations. A draw that violates a constraint, or fails, counts as infinitely bad.
"""

import math

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.domain import contains_rows
from scrimp.acquisition.gain_left import DRAWS, GainLeft, gain_left, most_promising
from scrimp.encoding.encoding import Encoding
from scrimp.encoding.training_data import Training
from scrimp.suggesters.fit_and_choose import Models
from scrimp.suggesters.prediction_record import calibrated
from scrimp.surrogates.surrogate import FittedSurrogate

Array = NDArray[np.float64]

SCANNED = 2000
"""Random candidates, and as many perturbations, that the most promising are chosen from.
Convention."""

ANCHORS = 5
"""Best configurations that are perturbed. Convention."""


def gain_of_models(
    models: Models,
    training: Training,
    encoding: Encoding,
    limits: tuple[float, float],
    rng: np.random.Generator,
) -> GainLeft:
    """Return the gain that is left by models of one metric. ``limits``: the trials that are left,
    and the lower scale of the model (`scrimp.suggesters.prediction_record`). Costs are those of the
    study where it has any, else one for each trial."""
    trials, scale = limits
    loss = models.fitted["loss"]
    feasible = models.evaluated if models.feasible is None else models.evaluated[models.feasible]
    if not len(feasible):
        return GainLeft(math.inf, math.inf)
    x = _candidates(models, training, encoding, rng)
    posterior = loss.posterior(x)
    mean = posterior.mean.mean(axis=1)
    deviation = np.zeros(len(x)) if posterior.variance is None else np.sqrt(posterior.variance)
    x = x[most_promising(mean, deviation)]
    rows = np.vstack([x, training.pending])
    means = loss.target_units(loss.mean(rows)).mean(axis=1)
    outcomes = calibrated(_draws(loss, rows, rng), means, scale)
    for name, model in models.fitted.items():
        if name.startswith("constraint:"):
            low, high = models.bands.get(name, (-math.inf, 0.0))
            drawn = _draws(model, rows, rng)
            outcomes = np.where((low <= drawn) & (drawn <= high), outcomes, math.inf)
    best = float(loss.target_units(loss.mean(feasible)).mean(axis=1).min())
    costs = np.ones(len(x))
    if "cost" in models.fitted:
        costs = np.exp(models.fitted["cost"].target_units(models.fitted["cost"].mean(x))[:, 0])
    # every trial counts once against the number that is left, whatever it costs
    stated = gain_left(outcomes[:, : len(x)], np.ones(len(x)), best, trials, outcomes[:, len(x) :])
    per_cost = gain_left(outcomes[:, : len(x)], costs, best, math.inf).per_cost
    return GainLeft(stated.expected, per_cost)


def _draws(model: FittedSurrogate, rows: Array, rng: np.random.Generator) -> Array:
    """Return joint draws (s, k) of a model at rows (k, d), in the units of its targets."""
    return model.target_units(model.sample(rows, DRAWS, rng))


def _candidates(
    models: Models, training: Training, encoding: Encoding, rng: np.random.Generator
) -> Array:
    """Return configurations (k, d) that may be tried next."""
    domain = encoding.domain
    x = domain.sample(SCANNED, rng)
    if domain.pool is None:
        best = models.evaluated[np.argsort(models.losses[:, 0], kind="stable")[:ANCHORS]]
        anchors = np.repeat(best, SCANNED // max(len(best), 1), axis=0)
        widths = 0.5 ** rng.uniform(1.0, 7.0, size=(len(anchors), 1))
        x = np.vstack([x, domain.perturb(anchors, widths * (rng.random(anchors.shape) < 0.5), rng)])
    return x if training.repeatable else x[~contains_rows(x, training.known)]
