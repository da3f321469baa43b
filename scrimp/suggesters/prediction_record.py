"""The track record of a study's model: how far outcomes fell below what decisions expected of them.

Each decision by a model records the loss that it expects of its choice, with a band of two standard
deviations (`Expected`). Once the loss is known, it lies z standard deviations from the expectation.
Only outcomes below it can improve on the best, so the *lower scale* c is their root mean square, with
ten made-up decisions of scale 1 beside the latest n of the study:

    c^2 = (10 + 2 sum min(z, 0)^2) / (10 + n),      z cut off at -3

A model whose choices never turn out better than it said has a small c, an overconfident one a large c.

    calibrated(draws, means, lower_scale(history))
"""

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scrimp.study_log.decision_record import Expected, Modelled
from scrimp.study_log.events import BudgetGranted, Decided, Event
from scrimp.study_log.fold import Fold
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Trial

Array = NDArray[np.float64]

COUNTED_DECISIONS = 30
"""Decisions that count: a model changes as it learns. Convention."""

PRIOR_DECISIONS = 10.0
"""Made-up decisions of scale 1. Convention."""

MAX_DEVIATIONS = 3.0
"""Standard deviations at which a surprise is cut off. Convention."""


@dataclass
class _Predictions:
    """Expectations of decisions and the trials they belong to, the latest last."""

    pending: Expected | None = None
    made: deque[tuple[int, Expected]] = field(
        default_factory=lambda: deque(maxlen=4 * COUNTED_DECISIONS)
    )


@dataclass(frozen=True)
class _PredictionRecord(Fold[_Predictions]):
    """Collects the expectation of each decision by a model."""

    def begin(self, problem: Problem) -> _Predictions:
        return _Predictions()

    def step(
        self, state: _Predictions, event: Event, before: Trial | None, trial: Trial | None
    ) -> None:
        if isinstance(event, Decided):
            reason = event.record.reason
            state.pending = reason.expected if isinstance(reason, Modelled) else None
        elif isinstance(event, BudgetGranted) and state.pending is not None:
            state.made.append((event.trial, state.pending))
            state.pending = None


_RECORD = _PredictionRecord()


def lower_scale(history: History) -> float:
    """Return c for the latest decisions whose outcomes are known."""
    surprises: list[float] = []
    for number, expected in reversed(history.derive(_RECORD).made):
        found = _outcome(history.trials[number], expected.step)
        if found is not None and expected.low is not None and expected.low < expected.loss:
            surprises.append(2.0 * (found - expected.loss) / (expected.loss - expected.low))
        if len(surprises) == COUNTED_DECISIONS:
            break
    below = np.clip(surprises, -MAX_DEVIATIONS, 0.0)
    known = PRIOR_DECISIONS + len(surprises)
    return math.sqrt((PRIOR_DECISIONS + 2.0 * float((below**2).sum())) / known)


def _outcome(trial: Trial, step: float | None) -> float | None:
    """Return the lowest loss of a trial up to ``step``, or its last one without; None where it has
    not come so far, or nothing finite was reported."""
    if step is None:
        return trial.last.loss if trial.finished and trial.last is not None else None
    losses = [point.loss for point in trial.curve if point.step <= step * (1.0 + 1e-9)]
    known = [loss for loss in losses if loss is not None]
    return min(known) if known and (trial.finished or trial.budget >= step) else None


def calibrated(draws: Array, means: Array, scale: float) -> Array:
    """Return draws (s, k) whose distance below the means (k,) is ``scale`` times as large."""
    return np.where(draws < means, means + scale * (draws - means), draws)
