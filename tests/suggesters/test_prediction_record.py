"""The track record of a model: surprises of decisions, and draws scaled by them."""

import math

import numpy as np
import pytest

from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.study_log.decision_record import DecisionRecord, Expected, FirstDesign, Modelled
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Ended,
    Event,
    Reported,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from scrimp.suggesters.prediction_record import calibrated, lower_scale

SPACE = Space(x=Float(0.0, 1.0))


def history_of(
    losses: list[float | None], expected: Expected | None, budget: Budget | None = None
) -> History:
    """One trial for each loss, of which the same was expected; None is still running."""
    problem = Problem(SPACE, metrics={"loss": "minimize"}, budget=budget)
    events: list[Event] = [StudyCreated(name="record", problem=problem.to_json(), method={})]
    reason = FirstDesign() if expected is None else Modelled(0.0, expected)
    for trial, loss in enumerate(losses):
        events += [
            Decided(decision=trial, seen=len(events), record=DecisionRecord(reason=reason)),
            TrialAdded(trial=trial, config={"x": trial / 10}),
            BudgetGranted(trial=trial, budget=problem.full_budget),
        ]
        if loss is not None:
            events += [
                Reported(trial=trial, step=problem.full_budget, metrics={"loss": loss}),
                Ended(trial=trial, status="completed"),
            ]
    return History.of(events)


EXPECTED = Expected(1.0, 0.8, 1.2)
"""A standard deviation of 0.1."""


@pytest.mark.parametrize(
    ("losses", "c2"),
    [
        ([], 1.0),
        ([1.0, 1.5, 9.0], 10 / 13),  # outcomes above the expectation are no gain
        ([0.8, 1.0], (10 + 2 * 4) / 12),
        ([-5.0], (10 + 2 * 9) / 11),  # cut off at three standard deviations
        ([0.8, None], (10 + 2 * 4) / 11),
    ],
)
def test_the_scale_is_the_root_mean_square_of_what_fell_below(
    losses: list[float | None], c2: float
) -> None:
    assert lower_scale(history_of(losses, EXPECTED)) == pytest.approx(math.sqrt(c2))


def test_decisions_without_a_model_do_not_count() -> None:
    assert lower_scale(history_of([0.1, 0.2], None)) == 1.0


def test_only_the_latest_thirty_count() -> None:
    old = [0.7] * 40
    assert lower_scale(history_of([*old, *[1.1] * 30], EXPECTED)) == pytest.approx(
        math.sqrt(10 / 40)
    )


def test_a_curve_counts_where_it_has_reached_the_step() -> None:
    epochs = Budget("epoch", 1, 9)
    seen, far = (Expected(1.0, 0.8, 1.2, step) for step in (9.0, 27.0))
    assert lower_scale(history_of([0.8], seen, epochs)) == pytest.approx(math.sqrt(18 / 11))
    running = history_of([None], far, epochs)
    assert lower_scale(running) == 1.0


def test_draws_below_the_mean_move() -> None:
    draws, means = np.array([[0.0, 3.0], [2.0, 1.0]]), np.array([1.0, 2.0])
    np.testing.assert_allclose(calibrated(draws, means, 0.5), [[0.5, 3.0], [2.0, 1.5]])
