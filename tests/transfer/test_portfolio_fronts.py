"""The portfolio of a study of several metrics, against hypervolumes worked out one by one."""

import numpy as np

from scrimp.fronts.dominance import non_dominated
from scrimp.fronts.hypervolume import hypervolume
from scrimp.transfer.portfolio import NUMBERS, FrontPortfolio

RNG = np.random.default_rng(0)
ERROR = {"a": RNG.random(40), "b": RNG.random(40)}
ROWS = np.linspace(0.0, 1.0, 40)[:, None]
SPEED = {"a": RNG.random(40), "b": RNG.random(40)}


def scaled(losses):
    front = losses[non_dominated(losses)]
    return (losses - front.min(axis=0)) / np.ptp(front, axis=0)


def test_each_pick_adds_most_to_the_predicted_fronts():
    portfolio = FrontPortfolio.of(ROWS, [ERROR, SPEED])
    weights = np.array([0.7, 0.3])
    corner = np.full(2, NUMBERS.front_reference)
    each = [scaled(np.column_stack([ERROR[name], SPEED[name]])) for name in ("a", "b")]
    taken = np.zeros(40, dtype=bool)
    for _ in range(4):

        def gain(row, taken=taken):
            with_it = taken.copy()
            with_it[row] = True
            return sum(
                weight
                * (hypervolume(own[with_it], corner) - hypervolume(own[taken], corner))
                / hypervolume(own, corner)
                for weight, own in zip(weights, each, strict=True)
            )

        expected = max((row for row in range(40) if not taken[row]), key=gain)
        assert portfolio.next(taken.copy(), weights) == [expected]
        taken[expected] = True


def test_a_study_counts_by_the_metrics_it_has():
    portfolio = FrontPortfolio.of(ROWS, [{"a": ERROR["a"]}, SPEED])
    assert portfolio.names == ("a", "b")
    assert portfolio.metrics == ((0, 1), (1,))
    (only_b,) = portfolio.next(np.zeros(40, dtype=bool), np.array([0.0, 1.0]))
    assert only_b == int(np.argmin(SPEED["b"]))
    everything = np.zeros(40, dtype=bool)
    everything[only_b] = True
    assert portfolio.next(everything, np.array([0.0, 1.0])) == []  # it has its best


def test_a_study_that_orders_what_was_seen_counts_more():
    portfolio = FrontPortfolio.of(ROWS, [ERROR, SPEED])
    seen = np.arange(8)
    losses = np.column_stack([ERROR["a"], SPEED["a"]])[seen]
    like_a, like_b = portfolio.agreement(seen, losses)
    assert like_a > 0.9 and abs(like_a + like_b - 1.0) < 1e-12
    assert portfolio.agreement(seen[:1], losses[:1]).tolist() == [0.5, 0.5]
