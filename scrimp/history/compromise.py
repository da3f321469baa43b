"""How much a front is worth, and which report of it to take.

    hypervolume_of(history, {"val_error": 1.0, "latency_ms": 50.0})
    best_of_front(history, {"val_error": 3.0, "latency_ms": 1.0})       # (trial, report)
    knee_of(history)

Losses are first brought to the front's own extent, 0 for its best and 1 for its worst, so that units
do not matter. A metric in which all of the front is equal counts nothing.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import StudyError
from scrimp.history.history import History
from scrimp.history.trade_off import TradeOff, check_weights
from scrimp.history.trial import Observation, Trial

__all__ = ["best_of_front", "hypervolume_of", "knee_of", "reference_of", "trade_off_of"]

Array = NDArray[np.float64]

SMALL = 0.05
"""The weight of the sum beside the largest loss: of two reports alike in the largest, the one that
is better in the others wins."""


def trade_off_of(history: History, what: str) -> TradeOff:
    """The study's metrics; `StudyError` where it has one only, which ``what`` makes no sense for."""
    trade_off = history.problem.trade_off
    if trade_off is None:
        raise StudyError(
            f"{what} is about several metrics, and study {history.created.name!r} has one,"
            f" {history.problem.metric!r}; use study.best_params and study.best_value"
        )
    return trade_off


def feasible_losses(history: History) -> Array:
    """The losses of all feasible reports that have every metric (n, m), in the order of trials."""
    known = [
        point.losses
        for trial in history.trials
        for point in trial.curve
        if point.losses is not None and point.feasible
    ]
    width = len(history.problem.metrics)
    return np.array(known, dtype=float).reshape(-1, width)


def reference_of(history: History, given: Mapping[str, float] | None = None) -> Array:
    """What hypervolumes are measured from, as losses (m,): as ``given``, else the study's own, else
    a little beyond the worst of the front."""
    trade_off = trade_off_of(history, "hypervolume")
    if given is not None:
        trade_off.check_table("reference", given, whole=True)
        if not given:
            raise StudyError("reference is empty; give a value for every metric, or leave it out")
        return np.array(trade_off.as_losses(given))
    if trade_off.reference_losses is not None:
        return np.array(trade_off.reference_losses)
    from scrimp.fronts.hypervolume import default_reference

    return default_reference(feasible_losses(history))


def hypervolume_of(history: History, reference: Mapping[str, float] | None = None) -> float:
    """The volume that the front dominates, up to the reference; 0 where nothing beats that."""
    from scrimp.fronts.hypervolume import hypervolume

    corner = reference_of(history, reference)
    front = [point.losses for _, point in history.front]
    return hypervolume(np.array(front, dtype=float).reshape(-1, len(corner)), corner)


def best_of_front(
    history: History, weights: Mapping[str, float] | None = None
) -> tuple[Trial, Observation] | None:
    """The report whose largest weighted loss is smallest, by ``weights`` or the study's own; None
    while there is none.

    Metrics that ``weights`` leaves out have the weight 0. Any report of the front is the best by
    some weights, which is not so for the smallest weighted sum.
    """
    trade_off = trade_off_of(history, "best(weights=...)")
    chosen = trade_off.weights if weights is None else weights
    trade_off.check_table("weights", chosen)
    if not chosen:
        several = ", ".join(trade_off.names)
        raise StudyError(
            f"study {history.created.name!r} has several metrics ({several}), so no trial is best in"
            " all; give best(weights={...}), or use study.front or study.knee"
        )
    check_weights(chosen)
    share = np.array([float(chosen.get(name, 0.0)) for name in trade_off.names])
    scaled = share * _scaled_front(history)
    return _first(history, scaled.max(axis=1, initial=0.0) + SMALL * scaled.sum(axis=1))


def knee_of(history: History) -> tuple[Trial, Observation] | None:
    """The report of the front that lies farthest from the plane through its ends, towards the best:
    where giving up a little of one metric no longer buys much of another; None while there is
    none."""
    trade_off_of(history, "knee")
    return _first(history, _scaled_front(history).sum(axis=1))


def _scaled_front(history: History) -> Array:
    """The losses of the front (n, m), from 0 for the best of each metric to 1 for the worst."""
    width = len(history.problem.metrics)
    losses = np.array([point.losses for _, point in history.front], dtype=float).reshape(-1, width)
    if not len(losses):
        return losses
    lowest = losses.min(axis=0)
    extent = losses.max(axis=0) - lowest
    scaled: Array = (losses - lowest) / np.where(extent > 0, extent, 1.0)
    return scaled


def _first(history: History, scores: Array) -> tuple[Trial, Observation] | None:
    return history.front[int(np.argmin(scores))] if len(scores) else None
