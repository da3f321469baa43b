"""Problems of several objectives: their fronts are reached where the papers say, and never beaten."""

import numpy as np
import pytest

from scrimp.bench.trade_off_formulas import TRADE_OFFS, speed_losses


@pytest.mark.parametrize("name", TRADE_OFFS)
def test_no_configuration_beats_the_front(name):
    problem = TRADE_OFFS[name]
    rng = np.random.default_rng(0)
    for point in rng.uniform(problem.low, problem.high, (300, len(problem.low))):
        losses, violations = problem.evaluate({f"x{k + 1}": x for k, x in enumerate(point)})
        if all(violation <= 0 for violation in violations):
            assert not (np.array(losses) < problem.front - 1e-9).all(axis=1).any()


@pytest.mark.parametrize(
    ("name", "point", "losses"),
    [
        ("zdt1", [0.25, 0, 0, 0, 0, 0], [0.25, 0.5]),
        ("zdt2", [0.5, 0, 0, 0, 0, 0], [0.5, 0.75]),
        ("zdt4", [0.25, 0, 0, 0, 0, 0], [0.25, 0.5]),
        ("dtlz1", [0.3, 0.5, 0.5, 0.5, 0.5, 0.5], [0.15, 0.35]),
        ("dtlz2", [0.0, 1.0, 0.5, 0.5, 0.5, 0.5], [0.0, 1.0, 0.0]),
        ("dtlz7", [0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 6.0]),
        ("bnh", [0.0, 0.0], [0.0, 50.0]),
        ("srn", [-2.5, 2.5], [24.5, -24.75]),
    ],
)
def test_values_that_the_papers_give(name, point, losses):
    config = {f"x{k + 1}": float(x) for k, x in enumerate(point)}
    np.testing.assert_allclose(TRADE_OFFS[name].evaluate(config)[0], losses, atol=1e-12)


def test_fronts_have_their_known_ends():
    best = {name: problem.front.min(axis=0) for name, problem in TRADE_OFFS.items()}
    worst = {name: problem.front.max(axis=0) for name, problem in TRADE_OFFS.items()}
    assert best["zdt1"].tolist() == [0.0, 0.0] and best["zdt6"][0] < 0.2808
    np.testing.assert_allclose(worst["dtlz1"], [0.5, 0.5])
    np.testing.assert_allclose(worst["dtlz2"], 1.0)
    np.testing.assert_allclose(worst["bnh"], [136.0, 50.0])
    assert TRADE_OFFS["bnh"].constraints == 2 and TRADE_OFFS["zdt1"].constraints == 0
    np.testing.assert_allclose((TRADE_OFFS["dtlz2"].front ** 2).sum(axis=1), 1.0)


def test_the_feasible_front_is_in_three_pieces():
    front = TRADE_OFFS["c2-dtlz2"].front
    assert (np.diff(np.sort(front[:, 0])) > 0.1).sum() == 2


def test_speed_losses_begin_alike():
    assert speed_losses(9)[1][:5] == speed_losses(5)[1]
