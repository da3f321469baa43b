"""Portfolios by hand."""

import numpy as np
import pytest

from scrimp.acquisition.domain import Domain
from scrimp.gp.columns import Column
from scrimp.gp.stationary import Matern52
from scrimp.transfer.portfolio import (
    AdaptivePortfolio,
    agreement_weights,
    candidate_rows,
    greedy_portfolio,
    scaled_predictions,
    with_observed,
)
from scrimp.transfer.source_study import SourceStudy

SCALED = np.array([[0.0, 0.9, 1.0], [0.3, 0.3, 0.4], [1.0, 0.0, 0.9], [0.9, 1.0, 0.0]])


def test_the_first_is_the_best_on_average_and_the_next_helps_those_left_behind() -> None:
    """Means 0.63, 0.33, 0.63, 0.63: first 1. Gains over (0.3, 0.3, 0.4): 0.3, 0.3, 0.4 by 0, 2, 3:
    so 3, then 0 and 2."""
    assert greedy_portfolio(SCALED, 4) == [1, 3, 0, 2]


def test_what_was_tried_counts_as_seen() -> None:
    assert greedy_portfolio(SCALED, 1, np.array([False, True, False, False])) == [3]


def test_when_every_past_study_has_its_best_the_portfolio_continues_with_the_rest() -> None:
    scaled = np.array([[0.0, 0.0], [0.5, 0.2], [0.1, 0.9], [1.0, 1.0]])
    assert greedy_portfolio(scaled, 9) == [0, 1, 2, 3]


def test_greedy_minimises_the_mean_of_the_least() -> None:
    """Against exhaustive search of each step's definition: argmin_x mean_i min(c_i, N_i(x))."""
    rng = np.random.default_rng(0)
    scaled = scaled_predictions(rng.random((30, 7)))
    best = np.ones(7)
    for chosen in greedy_portfolio(scaled, 5):
        values = np.minimum(best, scaled).mean(axis=1)
        assert values[chosen] == pytest.approx(values.min())
        best = np.minimum(best, scaled[chosen])


def test_predictions_are_scaled_over_candidates_and_constant_ones_survive() -> None:
    scaled = scaled_predictions(np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]))
    assert scaled.tolist() == [[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]


def test_agreement_by_hand() -> None:
    """Three evaluations; discordant pairs 0, 3 and 1: weights 1, exp(-3), exp(-1) before
    normalising."""
    scaled = np.array([[0.1, 0.9, 0.5], [0.2, 0.8, 0.4], [0.3, 0.7, 0.6]])
    raw = np.exp([0.0, -3.0, -1.0])
    assert agreement_weights(scaled, np.array([1.0, 2.0, 3.0])) == pytest.approx(raw / raw.sum())
    assert agreement_weights(scaled[:1], np.array([1.0])).tolist() == [1 / 3] * 3


def test_weights_change_the_choice_and_only_free_candidates_are_chosen() -> None:
    portfolio = AdaptivePortfolio(np.zeros((4, 1)), SCALED, Matern52((Column(),)))
    taken, last = np.zeros(4, dtype=bool), np.array([0.0, 0.0, 1.0])
    assert np.argmax(portfolio._gains(taken, last)) == 3
    assert np.argmax(portfolio._gains(taken, np.array([1.0, 0.0, 0.0]))) != 3
    taken[3] = True
    assert 3 not in greedy_portfolio(SCALED, 4, taken)


def test_candidates_are_the_pool_or_what_past_studies_tried() -> None:
    columns = (Column(), Column((0.0, 1.0), ordered=False))
    pool = np.array([[0.1, 0.0], [0.2, 1.0]])
    past = SourceStudy(
        "p", np.array([[1.7, 1.0], [0.5, 0.0], [0.5, 0.0]]), np.array([[1.0], [2.0], [3.0]]), (0, 1)
    )
    assert candidate_rows(Domain(columns, pool=pool), (past,)) is pool
    assert candidate_rows(Domain(columns), (past,)).tolist() == [[0.5, 0.0], [1.0, 1.0]]


def test_what_was_observed_takes_the_place_of_predictions(past, sources):
    """At what a study tried stands its own loss; elsewhere what its model predicts."""
    first = past.studies[0]
    rows = np.vstack([first.x[:5], [[0.111, 0.222, 0.5]]])
    found = with_observed(rows, sources)
    np.testing.assert_array_equal(found[:5, 0], first.y[:5])
    predicted = sources.models[0].losses(sources.means(rows)[:, 0])
    assert found[5, 0] == pytest.approx(predicted[5])
    other = sources.models[1].losses(sources.means(rows)[:, 1])
    np.testing.assert_allclose(found[:, 1], other)
