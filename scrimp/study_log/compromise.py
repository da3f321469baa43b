"""The value of a front, and the choice of one report of it.

    hypervolume_of(history, {"val_error": 1.0, "latency_ms": 50.0})
    best_of_front(history, {"val_error": 3.0, "latency_ms": 1.0})       # (trial, report)
    knee_of(history)

For a choice, losses are scaled to the extent of the front, 0 for its best and 1 for its worst, so
that units do not matter. A metric in which all reports of the front are equal does not count.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import StudyError
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem, check_table, check_weights
from scrimp.study_log.trial import Observation, Trial

Array = NDArray[np.float64]

WEIGHT_OF_SUM = 0.05
"""Weight of the sum of losses beside the largest loss: of two reports with the same largest loss,
the one that is better in the others wins."""


def several_metrics(history: History, what: str) -> Problem:
    """Return the problem of a study of several metrics; `StudyError` if it has only one."""
    problem = history.problem
    if not problem.several:
        raise StudyError(
            f"{what} needs several metrics, and study {history.created.name!r} has one,"
            f" {problem.metric!r}; its best is `study.best_params`, or `scrimp best`"
        )
    return problem


def feasible_losses(history: History) -> Array:
    """Return the losses of all feasible reports that have every metric (n, m), by trial."""
    known = [
        point.counted
        for trial in history.trials
        for point in trial.curve
        if point.counted is not None and point.feasible
    ]
    width = len(history.problem.metrics)
    return np.array(known, dtype=float).reshape(-1, width)


def reference_of(history: History, given: Mapping[str, float] | None = None) -> Array:
    """Return the reference of hypervolumes as losses (m,): the one ``given``, else the study's own,
    else a point slightly beyond the worst of the front."""
    problem = several_metrics(history, "hypervolume")
    if given is not None:
        check_table(problem.metrics, "reference", given, whole=True)
        if not given:
            raise StudyError("reference is empty; give a value for every metric, or leave it out")
        return np.array(problem.as_losses(given))
    if problem.reference_losses is not None:
        return np.array(problem.reference_losses)
    from scrimp.fronts.hypervolume import default_reference

    return default_reference(feasible_losses(history))


def hypervolume_of(history: History, reference: Mapping[str, float] | None = None) -> float:
    """Return the volume that the front dominates, up to the reference; 0 if no report is better."""
    from scrimp.fronts.hypervolume import hypervolume

    corner = reference_of(history, reference)
    front = [point.counted for _, point in history.front]
    return hypervolume(np.array(front, dtype=float).reshape(-1, len(corner)), corner)


def best_of_front(
    history: History, weights: Mapping[str, float] | None = None
) -> tuple[Trial, Observation] | None:
    """Return the report with the smallest largest weighted loss, by ``weights`` or the study's own;
    None without a front.

    Metrics that ``weights`` leaves out have the weight 0. With a weighted sum instead, some reports
    of a front would not be the best for any weights.
    """
    problem = several_metrics(history, "best(weights=...)")
    chosen = problem.weights if weights is None else weights
    check_table(problem.metrics, "weights", chosen)
    if not chosen:
        several = ", ".join(problem.names)
        raise StudyError(
            f"study {history.created.name!r} has several metrics ({several}), so no trial is best in"
            " all; give best(weights={...}), or use study.front or study.knee"
        )
    check_weights(chosen)
    share = np.array([float(chosen.get(name, 0.0)) for name in problem.names])
    scaled = share * _scaled_front(history)
    return _first(history, scaled.max(axis=1, initial=0.0) + WEIGHT_OF_SUM * scaled.sum(axis=1))


def knee_of(history: History) -> tuple[Trial, Observation] | None:
    """Return the knee: the report of the front that lies farthest from the plane through its ends,
    towards the best. Beyond it, a gain in one metric costs much in another. None without a front."""
    several_metrics(history, "knee")
    return _first(history, _scaled_front(history).sum(axis=1))


def _scaled_front(history: History) -> Array:
    """Return the losses of the front (n, m), from 0 for the best of each metric to 1 for the worst."""
    width = len(history.problem.metrics)
    losses = np.array([point.counted for _, point in history.front], dtype=float).reshape(-1, width)
    if not len(losses):
        return losses
    lowest = losses.min(axis=0)
    extent = losses.max(axis=0) - lowest
    scaled: Array = (losses - lowest) / np.where(extent > 0, extent, 1.0)
    return scaled


def _first(history: History, scores: Array) -> tuple[Trial, Observation] | None:
    return history.front[int(np.argmin(scores))] if len(scores) else None
