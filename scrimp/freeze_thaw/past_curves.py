"""What past learning curves teach a freeze-thaw study: the hyperparameters of its curve model.

The curve model is fitted once to the curves of each past study: how much similar configurations
share, how smooth curves are in logarithmic time, how noisy, and how long the length-scales of
parameters are that both studies have. The prior of a new study is centred half-way between the
usual centre and the mean of these vectors. Its widths stay as they are: a new study that differs is
believed.

    fitted = fitted_curves(History.of(events))              # plain data, to be kept
    theta = curve_parameters(fitted, past_space, space)     # () where there are no curves
    FreezeThaw(shapes=prior_centre([theta]))
"""

from collections.abc import Sequence

import numpy as np

from scrimp.encoding.encoding import Encoding
from scrimp.errors import NumericalError
from scrimp.freeze_thaw.curve_gp import SHARED, prior_mode
from scrimp.freeze_thaw.curve_rows import CurveTable
from scrimp.freeze_thaw.model import StudyCurves, fitted_parameters
from scrimp.history.history import History
from scrimp.json_values import JsonObject
from scrimp.space.space import Space
from scrimp.surrogates.record_reading import number_at, numbers_at, object_at

__all__ = ["curve_parameters", "fitted_curves", "prior_centre"]

LEAST_ROWS = 20
STEPS = 30


def fitted_curves(past: History) -> JsonObject:
    """Logarithms of the length-scales by parameter, and of what all share; empty without curves to
    learn from."""
    rows = past.derive(CurveTable())
    if (
        past.problem.budget is None
        or len(rows.standing) < LEAST_ROWS
        or not np.isfinite(rows.standing).any()
    ):
        return {}
    curves = StudyCurves.of(past, rows, Encoding(past.problem.space))
    try:
        theta = fitted_parameters(
            curves, len(curves.trial), np.random.default_rng(past.problem.seed), STEPS
        )
    except NumericalError:
        return {}
    lengths = dict(zip(past.problem.space.searched, theta[:-SHARED].tolist(), strict=True))
    return {"lengths": lengths, "shared": theta[-SHARED:].tolist()}


def curve_parameters(fitted: JsonObject, past: Space, space: Space) -> tuple[float, ...]:
    """The vector (d + 9,) for the d searched parameters of ``space``; empty where nothing was
    fitted.

    A parameter that the past study lacks, or has with other bounds, gets the usual length-scale.
    """
    if not fitted:
        return ()
    usual, known = prior_mode(len(space.searched)), object_at(fitted, "lengths")
    lengths = [
        number_at(known, name) if past.get(name) == space[name] else usual[place]
        for place, name in enumerate(space.searched)
    ]
    return (*lengths, *numbers_at(fitted, "shared"))


def prior_centre(found: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """Half-way between the usual centre and the mean of the vectors of past studies; empty without
    any."""
    vectors = [vector for vector in found if vector]
    if not vectors:
        return ()
    usual = prior_mode(len(vectors[0]) - SHARED)
    return tuple(np.mean([usual, np.mean(vectors, axis=0)], axis=0).tolist())
