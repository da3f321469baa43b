"""Several metrics in one decision: expected hypervolume improvement, or one random trade-off at a
time.

*Hypervolume*: a model of each metric, and log EHVI over all of them
(`acquisition/hypervolume_improvement.py`), up to `MOST_METRICS` metrics.

*Chebyshev* ("parego"): each decision draws weights w, uniform over those that sum to 1, and one
model learns

    max over j of w_j f_j + 0.05 sum over j of w_j f_j            f_j: losses, from 0 (best seen) to 1 (worst of the front)

which every point of the front minimises for some w. One fit per decision, whatever the number of
metrics, and any acquisition serves.

Knowles, "ParEGO: a hybrid algorithm with on-line landscape approximation for expensive
multiobjective optimization problems", 2006.
"""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.domain import Domain
from scrimp.acquisition.hypervolume_improvement import LogHypervolumeImprovement
from scrimp.encoding.training_data import Training
from scrimp.fronts.dominance import non_dominated
from scrimp.fronts.hypervolume import default_reference
from scrimp.history.notes import Expected, Modelled, Notes
from scrimp.history.problem import Problem
from scrimp.history.trade_off import TradeOff
from scrimp.suggesters.choosing import front_rows
from scrimp.suggesters.model_fitting import FURTHER, Models
from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = [
    "MOST_METRICS",
    "TRADE_OFFS",
    "believed_reference",
    "chebyshev",
    "drawn_weights",
    "expected_of_each",
    "hypervolume_acquisition",
    "scalarised",
    "with_weights",
]

TRADE_OFFS = ("hypervolume", "chebyshev")

MOST_METRICS = 6
"""Beyond it a front leaves thousands of boxes open, and nearly every trial is on it: weights are
drawn instead."""

PLACES = 128
"""At which the models are asked for the front they believe in, all over the space and around the
front so far, each."""

HOPE = 2.0
"""By how many standard deviations the places of a believed front may be better than their means:
where little is known yet, much may belong to the front."""

SMALL = 0.05
"""The weight of the sum beside the maximum: of two losses with the same maximum the lower one in
the others wins."""


def hypervolume_acquisition(
    trade_off: TradeOff, models: Models, domain: Domain
) -> LogHypervolumeImprovement:
    """Log EHVI over the models of all metrics, with the study's own reference and goals."""
    names = ("loss", *(FURTHER + name for name in trade_off.names[1:]))
    goals = trade_off.best_losses if trade_off.goals else None
    reference = trade_off.reference_losses or believed_reference(models, domain)
    return LogHypervolumeImprovement(names, reference, goals, trade_off.beyond)


def believed_reference(models: Models, domain: Domain) -> tuple[float, ...]:
    """Where hypervolumes are measured from, one loss per metric: a little beyond the front that the
    models hope for, over what was evaluated, its surroundings and the whole space.

    The front so far may be one corner of the true one, such as a trial that costs nothing; measured
    from there, the rest of the front would count nothing and never be looked for.
    """
    rng = np.random.default_rng(len(models.evaluated))  # candidates only: no decision is drawn
    around = np.resize(front_rows(models, PLACES), (PLACES, domain.dimension))
    # along one or two columns, so that those which are right already stay so
    widths = np.where(rng.random(around.shape) < 1.5 / domain.dimension, 0.5, 0.0)
    near = domain.perturb(around, widths, rng)
    rows = np.concatenate([models.evaluated, domain.sample(PLACES, rng), near])
    hoped = [_hoped(model, rows) for model in models.objectives]
    return tuple(default_reference(np.column_stack(hoped)).tolist())


def _hoped(model: FittedSurrogate, rows: Array) -> Array:
    """The losses (r,) at rows (r, d) that lie `HOPE` standard deviations below the mean."""
    posterior = model.posterior(rows)
    variance = 0.0 if posterior.variance is None else posterior.variance
    return model.target_units(posterior.mean[:, 0] - HOPE * np.sqrt(variance))


def drawn_weights(count: int, rng: np.random.Generator) -> Array:
    """Weights (count,) that sum to 1, all such being equally likely."""
    weights: Array = rng.dirichlet(np.ones(count))
    return weights


def scalarised(training: Training, trade_off: TradeOff, weights: Array) -> Training:
    """The same with one loss per row: the augmented Chebyshev sum of all metrics by ``weights``
    (m,); rows that lack a metric go."""
    losses = np.column_stack([training.y, *training.further.values()])
    known: NDArray[np.bool_] = np.all(np.isfinite(losses), axis=1)
    if not known.all():
        training, losses = training.of_rows(known), losses[known]
    losses = np.maximum(losses, trade_off.best_losses)
    return replace(training, y=chebyshev(losses, weights), further={}, further_noise={}, noise=None)


def chebyshev(losses: Array, weights: Array) -> Array:
    """The augmented Chebyshev sum (n,) of losses (n, m), each brought to the extent of the front.

    >>> chebyshev(np.array([[0.0, 4.0], [2.0, 0.0]]), np.array([0.5, 0.5])).round(3).tolist()
    [0.525, 0.525]
    """
    low, high = losses.min(axis=0), losses[non_dominated(losses)].max(axis=0)
    wide = np.where(high > low, high - low, losses.max(axis=0) - low)
    weighted = weights * (losses - low) / np.where(wide > 0, wide, 1.0)
    total: Array = weighted.max(axis=1) + SMALL * weighted.sum(axis=1)
    return total


def expected_of_each(
    problem: Problem, models: Sequence[FittedSurrogate], row: Array
) -> dict[str, Expected]:
    """What the models expect of each metric at one input (1, d), in its own direction, with two
    standard deviations to both sides."""
    assert problem.trade_off is not None
    found = {}
    for name, sign, model in zip(
        problem.trade_off.names, problem.trade_off.signs, models, strict=True
    ):
        posterior = model.posterior(row)
        deviation = 0.0 if posterior.variance is None else float(np.sqrt(posterior.variance[0]))
        around = posterior.mean[0, 0] + deviation * np.array([0.0, -2.0, 2.0])
        middle, *ends = (float(sign * value) for value in model.target_units(around))
        if np.isfinite(middle):
            found[name] = Expected(middle, min(ends), max(ends))
    return found


def with_weights(notes: Notes, trade_off: TradeOff, weights: Array) -> Notes:
    """The notes of a decision by one trade-off: its weights instead of an expected sum, which is
    in the units of no metric."""
    reason = notes.reason
    if not isinstance(reason, Modelled):
        return notes
    drawn = {name: float(w) for name, w in zip(trade_off.names, weights, strict=True)}
    return msgspec.structs.replace(
        notes, reason=msgspec.structs.replace(reason, expected=None, weights=drawn)
    )
