"""The gain left: picks and judgements by different draws, limits and running trials."""

import math

import numpy as np
import pytest

from scrimp.acquisition.gain_left import MAX_CANDIDATES, gain_left, most_promising

OUTCOMES = np.array(
    [
        [0.5, 0.9, 2.0],  # these two pick: the first candidate, then the second
        [0.9, 0.4, 2.0],
        [0.8, 0.7, 0.1],  # these two judge
        [1.5, 0.6, 0.1],
    ]
)


def test_one_half_of_the_draws_picks_and_the_other_judges() -> None:
    """Nobody picks the third candidate, however good it looks to those who judge."""
    found = gain_left(OUTCOMES, np.ones(3), 1.0, math.inf)
    assert found.expected == pytest.approx(np.mean([0.3, 0.4]))
    assert found.per_cost == pytest.approx(np.mean([0, 0, 0.9, 0.9]))


def test_only_what_can_be_paid_for_is_picked() -> None:
    costs = np.array([2.0, 3.0, 1.0])
    assert gain_left(OUTCOMES, costs, 1.0, 2.0).expected == pytest.approx(np.mean([0.2, 0.0]))
    assert gain_left(OUTCOMES, costs, 1.0, 1.9).expected == 0.0
    assert gain_left(OUTCOMES, costs, 1.0, 5.0).expected == pytest.approx(np.mean([0.3, 0.4]))


def test_gains_per_cost_are_those_of_one_candidate() -> None:
    each = np.maximum(1.0 - OUTCOMES, 0.0).mean(axis=0)
    costs = np.array([2.0, 3.0, 10.0])
    assert gain_left(OUTCOMES, costs, 1.0, math.inf).per_cost == pytest.approx((each / costs).max())


def test_running_trials_take_their_part_of_the_gain() -> None:
    running = np.array([[9.0], [9.0], [0.75], [9.0]])
    found = gain_left(OUTCOMES, np.ones(3), 1.0, math.inf, running)
    assert found.expected == pytest.approx(np.mean([0.05, 0.4]))


def test_nothing_is_left_without_candidates_and_where_none_is_feasible() -> None:
    assert gain_left(np.zeros((4, 0)), np.zeros(0), 1.0, math.inf).expected == 0.0
    assert gain_left(np.full((4, 2), math.inf), np.ones(2), 1.0, math.inf).expected == 0.0


def test_the_most_promising_are_uncertain_or_good() -> None:
    mean = np.linspace(0.0, 1.0, 2 * MAX_CANDIDATES)
    deviation = np.zeros(len(mean))
    deviation[-1] = 1.0
    chosen = most_promising(mean, deviation)
    assert len(chosen) == MAX_CANDIDATES and len(mean) - 1 in chosen and 0 in chosen
