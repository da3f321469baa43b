"""What an acquisition is told beside its models, and the incumbents that follow from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import MethodError
from scrimp.surrogates.surrogate import Array, FittedSurrogate

__all__ = ["MARGIN_UNITS", "Context", "believed_losses", "incumbents", "model_named"]


MARGIN_UNITS = ("deviation", "metric")


@dataclass(frozen=True)
class Context:
    """What a decision knows besides its models.

    ``evaluated``: inputs whose outcome is known, over which the incumbent is taken (n, d).
    ``pending``: inputs under evaluation (p, d); the models given to ``bind`` are fantasised over
    them already. In each fantasy they count for the incumbent as well: otherwise a fantasy that is
    better than everything evaluated would promise its improvement a second time, at the very same
    place. ``feasible``: which evaluated inputs satisfied all constraints (n,) of bool, or None
    without constraints. ``pending_feasible``: the same of the pending inputs, per fantasy (p, F) or
    (p, 1); supplied by `Constrained`. ``bands``: of the models of constraints, by name: between
    which two values of their targets a constraint holds; where there is none it holds at 0 and
    below. ``incumbent``: "mean" takes the best posterior mean; "observed" the best target.
    ``settings``: further numbers, such as the "seed" that Thompson sampling draws from.
    """

    evaluated: Array
    pending: Array | None = None
    feasible: NDArray[np.bool_] | None = None
    incumbent: str = "mean"
    settings: Mapping[str, float] = field(default_factory=dict)
    pending_feasible: NDArray[np.bool_] | None = None
    bands: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def incumbents(model: FittedSurrogate, context: Context) -> Array:
    """The best posterior mean, or target, over the evaluated (and feasible) and the pending inputs,
    per fantasy (F,)."""
    best: Array = believed_losses(model, context).min(axis=0)
    return best


def believed_losses(model: FittedSurrogate, context: Context) -> Array:
    """The posterior means, or targets, of the evaluated (and feasible) inputs and then of the
    pending ones, per fantasy (r, F); infinite where a pending one is believed to be infeasible."""
    rows = context.evaluated if context.feasible is None else context.evaluated[context.feasible]
    if len(rows) == 0:
        raise MethodError(
            f"no incumbent: none of the {len(context.evaluated)} evaluated inputs is known to be"
            " feasible; wrap the acquisition in Constrained, or evaluate something first"
        )
    pending = context.pending if context.pending is not None else rows[:0]
    both = np.concatenate([rows, pending])
    if context.incumbent == "observed":
        values = _best_targets(model, both)
    elif context.incumbent == "mean":
        values = model.mean(both)
    else:
        raise MethodError(f"incumbent={context.incumbent!r}: must be 'mean' or 'observed'")
    if context.pending_feasible is not None:
        infeasible = np.concatenate(
            [
                np.zeros((len(rows), context.pending_feasible.shape[1]), dtype=bool),
                ~context.pending_feasible,
            ]
        )
        values = np.where(infeasible, np.inf, values)
    return values


def model_named(models: Mapping[str, FittedSurrogate], name: str) -> FittedSurrogate:
    """The model of that name, or an error that lists the names there are."""
    if name not in models:
        raise MethodError(
            f"no model named {name!r} among {sorted(models)}: fit one and hand it to bind()"
        )
    return models[name]


def _best_targets(model: FittedSurrogate, rows: Array) -> Array:
    """The smallest target seen at each of the rows (m, F); infinite at rows that the model has no
    target for."""
    targets = _targets(model)
    smallest: dict[bytes, Array] = {}
    for x, y in zip(model.data.x, targets, strict=True):
        key = x.tobytes()
        smallest[key] = np.minimum(smallest[key], y) if key in smallest else y
    unknown = np.full(targets.shape[1], np.inf)
    found = np.stack([smallest.get(row.tobytes(), unknown) for row in rows])
    if not np.isfinite(found).any():
        raise MethodError(
            "incumbent='observed': the model has no target at any evaluated input; use"
            " incumbent='mean'"
        )
    return found


def _targets(model: FittedSurrogate) -> Array:
    """The targets as (n, F)."""
    y = model.data.y
    return y[:, None] if y.ndim == 1 else y
