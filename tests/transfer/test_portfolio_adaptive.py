"""The start with doubt: its gain against draws of the errors, and neighbours that share them."""

import numpy as np

from scrimp.encoding.encoding import Encoding
from scrimp.encoding.training_data import Training, training_data
from scrimp.gp.kernel import Kernel, Scaled
from scrimp.gp.stationary import kernel_by_name
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.study_log.problem import Problem
from scrimp.testing.policies import begin, tell
from scrimp.transfer.portfolio import (
    AdaptivePortfolio,
    agreement_weights,
    greedy_portfolio,
    scaled_predictions,
)

SPACE = Space(x=Float(0.0, 1.0))
ENCODING = Encoding(SPACE)


def kernel(length: float) -> Kernel:
    scaled = kernel_by_name("matern52-ard", ENCODING.columns)
    assert isinstance(scaled, Scaled)
    return scaled.inner.with_values(np.array([length]))


def trained(*told: tuple[float, float | None]) -> Training:
    history = begin(Problem(SPACE))
    for x, value in told:
        history = tell(history, {"x": x}, value)
    return training_data(history, ENCODING)


ROWS = np.linspace(0.0, 1.0, 11)[:, None]
SCALED = scaled_predictions(np.random.default_rng(3).random((11, 5)))


def test_without_doubt_it_is_the_greedy_portfolio() -> None:
    start = AdaptivePortfolio(ROWS, SCALED, kernel(0.1))
    assert start.next_rows(trained(), 3) == greedy_portfolio(SCALED, 3)


def test_the_gain_is_that_of_drawn_errors() -> None:
    """Far apart by the kernel, every candidate has an error of its own."""
    seen = [2, 5, 9]
    told = trained(*zip(ROWS[seen, 0].tolist(), SCALED[seen].mean(axis=1).tolist(), strict=True))
    weights = agreement_weights(SCALED[seen], told.y[:, 0], 4.0)
    best = SCALED[seen].min(axis=0)
    errors = 0.3 * np.random.default_rng(0).standard_normal((100_000, 1))
    gains = [(np.maximum(best - row - errors, 0.0) @ weights).mean() for row in SCALED]
    gains = [-1.0 if place in seen else gain for place, gain in enumerate(gains)]
    start = AdaptivePortfolio(ROWS, SCALED, kernel(1e-3), doubt=0.3)
    assert start.next_rows(told, 1) == [int(np.argmax(gains))]


def test_neighbours_of_a_tried_configuration_gain_nothing_new() -> None:
    rows = np.array([[0.5], [0.5001], [0.9], [0.1]])
    scaled = np.array([[0.0, 0.0], [0.001, 0.001], [0.2, 0.2], [1.0, 1.0]])
    told = trained((0.5, 0.3))
    assert AdaptivePortfolio(rows, scaled, kernel(0.2), doubt=0.1).next_rows(told, 2) == [2, 1]
    assert AdaptivePortfolio(rows, scaled, kernel(1e-6), doubt=0.1).next_rows(told, 2) == [1, 2]


def test_results_elsewhere_weigh_past_studies_too() -> None:
    """Two configurations of the user, neither among the candidates: the second past study, which
    orders them rightly, decides."""
    rows, scaled = np.array([[0.0], [0.3], [0.7]]), np.array([[0.0, 1.0], [0.5, 0.6], [1.0, 0.0]])
    told = trained((0.01, 2.0), (0.71, 1.0))
    assert AdaptivePortfolio(rows, scaled, kernel(0.1)).next_rows(told, 1) == [2]


def test_a_past_that_is_no_better_than_chance_is_left() -> None:
    """Three results: the studies have none, all and all of three pairs wrong. The first two are
    chance together, and with the third it is worse."""
    rows = np.linspace(0.0, 1.0, 4)[:, None]
    told = trained((0.0, 1.0), (1 / 3, 2.0), (2 / 3, 3.0))
    one = np.array([0.1, 0.2, 0.3, 0.0])
    two, three = np.array([0.3, 0.2, 0.1, 0.0]), np.array([0.2, 0.1, 0.05, 0.0])
    chance = AdaptivePortfolio(rows, np.stack([one, two], axis=1), kernel(0.1), doubt=0.1)
    assert chance.next_rows(told, 1) == [3]
    worse = np.stack([one, two, three], axis=1)
    assert AdaptivePortfolio(rows, worse, kernel(0.1), doubt=0.1).next_rows(told, 1) == []
    assert AdaptivePortfolio(rows, worse, kernel(0.1)).next_rows(told, 1) == [3]
    early = trained((0.0, 2.0), (1 / 3, 1.0))
    assert AdaptivePortfolio(rows, one[:, None], kernel(0.1), doubt=0.1).next_rows(early, 1) == [3]


def test_failures_and_equal_results_say_nothing_against_the_past() -> None:
    """Predicted in the order in which they were tried, as a portfolio is: ties are no mistakes."""
    rows = np.linspace(0.0, 1.0, 5)[:, None]
    scaled = np.array([[0.1], [0.2], [0.3], [0.0], [0.4]])
    start = AdaptivePortfolio(rows, scaled, kernel(0.1), doubt=0.1)
    equal = trained((0.0, 1.0), (0.25, 1.0), (0.5, 1.0))
    failed = trained((0.0, 1.0), (0.25, None), (0.5, None))
    backwards = trained((0.0, 3.0), (0.25, 2.0), (0.5, 1.0))
    assert failed.failed.sum() == 2
    assert start.next_rows(equal, 1) == start.next_rows(failed, 1) == [3]
    assert start.next_rows(backwards, 1) == []


def test_nothing_is_worked_out_when_nothing_is_lacking() -> None:
    start = AdaptivePortfolio(ROWS, SCALED, kernel(0.1), doubt=0.1)
    assert start.next_rows(trained((0.2, 1.0)), 0) == start.next_rows(trained(), -2) == []
