"""The batched climb: against SciPy's L-BFGS-B start by start, on quadratics, Rosenbrock's valley
and real acquisitions."""

import numpy as np
import pytest
from scipy.optimize import minimize

from scrimp.acquisition.ascent import AscentSettings, _solved, ascend
from scrimp.acquisition.context import Context
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.testing.dense_posterior import random_posterior

TIGHT = AscentSettings(rounds=400, gain=1e-12)


def counted(function):
    def call(x):
        call.sizes.append(len(x))
        return function(x)

    call.sizes = []
    return call


def lbfgs(function, x):
    """Minus the score by SciPy from one start."""

    def loss(row):
        value, gradient = function(row[None])
        return -value[0], -gradient[0]

    result = minimize(
        loss,
        x,
        jac=True,
        bounds=[(0.0, 1.0)] * len(x),
        method="L-BFGS-B",
        options={"maxiter": 500, "ftol": 1e-15},
    )
    return result.x, -result.fun


@pytest.mark.parametrize("seed", range(5))
def test_finds_the_maximum_of_a_concave_quadratic_in_the_box(seed):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((5, 5))
    curvature, centre = (
        root @ root.T + 0.1 * np.eye(5),
        rng.uniform(-0.5, 1.5, 5),
    )  # the free maximum may lie outside

    def score(x):
        gap = x - centre
        return -0.5 * ((gap @ curvature) * gap).sum(axis=1), -gap @ curvature

    x, value = ascend(score, rng.random((4, 5)), np.ones((4, 5), dtype=bool), np.ones(5), TIGHT)
    best_x, best = lbfgs(score, np.full(5, 0.5))
    np.testing.assert_allclose(value, best, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(x, np.tile(best_x, (4, 1)), atol=1e-4)


def test_follows_a_curved_valley():
    def score(x):
        a, b = 4 * x[:, 0] - 2, 4 * x[:, 1] - 2
        value = -((1 - a) ** 2 + 100 * (b - a * a) ** 2)
        by_a, by_b = 2 * (1 - a) + 400 * a * (b - a * a), -200 * (b - a * a)
        return value, 4 * np.stack([by_a, by_b], axis=1)

    starts = np.random.default_rng(0).random((8, 2))
    x, value = ascend(score, starts, np.ones((8, 2), dtype=bool), np.full(2, 0.5), TIGHT)
    np.testing.assert_allclose(x, 0.75, atol=1e-4)
    assert (value > -1e-8).all()


@pytest.mark.parametrize("seed", range(6))
def test_climbs_log_improvement_as_high_as_scipy_does_from_the_same_start(seed):
    model, rng = random_posterior(seed, n=30, d=4), np.random.default_rng(seed)
    score = LogExpectedImprovement().bind({"loss": model}, Context(model.data.x))
    starts = rng.random((10, 4))
    function = counted(score.value_and_gradient)
    x, value = ascend(
        function, starts, np.ones((10, 4), dtype=bool), model.length_scales, AscentSettings()
    )
    np.testing.assert_allclose(score(x), value, rtol=1e-9)
    ours, theirs = (
        np.sort(value),
        np.sort([lbfgs(score.value_and_gradient, start)[1] for start in starts]),
    )
    assert ours[-1] > theirs[-1] - 0.01
    assert np.median(ours) > np.median(theirs) - 0.5
    assert len(function.sizes) <= 61  # one call per round serves all starts
    assert function.sizes[-1] < 10  # those that are done have left the batch


def test_held_columns_do_not_move_and_rows_without_free_columns_stay():
    def score(x):
        return x.sum(axis=1), np.ones_like(x)

    free = np.array([[True, False], [False, False], [True, True]])
    x, value = ascend(score, np.full((3, 2), 0.3), free, np.ones(2), TIGHT)
    np.testing.assert_allclose(x, [[1.0, 0.3], [0.3, 0.3], [1.0, 1.0]])
    np.testing.assert_allclose(value, [1.3, 0.6, 2.0])


def test_never_goes_down_nor_leaves_the_cube_and_bears_infinite_scores():
    rng = np.random.default_rng(0)

    def score(x):
        rough = np.sin(40 * x).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = np.where(x[:, 0] > 0.6, -np.inf, rough)
        return value, np.where(x[:, :1] > 0.6, np.nan, 40 * np.cos(40 * x))

    starts = rng.random((20, 3))
    before = score(starts)[0]
    x, value = ascend(
        score, starts, np.ones((20, 3), dtype=bool), np.full(3, 0.1), AscentSettings()
    )
    assert (value >= before).all()
    assert ((x >= 0.0) & (x <= 1.0)).all()
    np.testing.assert_array_equal(score(x)[0], value)


@pytest.mark.parametrize(
    ("angle", "steep", "growth"), [(0.78, 100.0, 1.0), (0.6, 100.0, 5.0), (0.78, 1e10, 0.1)]
)
def test_climbs_a_ridge_that_is_nowhere_concave_along_its_length(angle, steep, growth):
    along, across = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])

    def score(x):
        a, b = (x - 0.1) @ along, (x - 0.1) @ across
        rise = np.exp(growth * a)
        by_x = (growth * rise)[:, None] * along - (2.0 * steep * b)[:, None] * across
        return rise - steep * b**2, by_x

    starts, free = np.array([[0.1, 0.1], [0.11, 0.1]]), np.ones((2, 2), dtype=bool)
    longer = AscentSettings(rounds=200)  # the curvature falls at each step, until it is singular
    x, value = ascend(score, starts, free, np.full(2, 0.01), longer)
    np.testing.assert_allclose(score(x)[0], value, rtol=1e-9)
    assert (value > score(starts)[0]).all()
    assert ((x >= 0.0) & (x <= 1.0)).all()


def test_a_singular_curvature_gives_the_shortest_step_and_others_theirs():
    matrices, right = np.array([np.ones((2, 2)), 2.0 * np.eye(2)]), np.array([[1.0, 1.0]] * 2)
    np.testing.assert_allclose(_solved(matrices, right), np.full((2, 2), 0.5))


def test_gives_the_same_answer_whatever_else_is_in_the_batch():
    model = random_posterior(0, n=30, d=4)
    score = LogExpectedImprovement().bind({"loss": model}, Context(model.data.x))
    starts, free = np.random.default_rng(1).random((6, 4)), np.ones((6, 4), dtype=bool)
    together, _ = ascend(
        score.value_and_gradient, starts, free, model.length_scales, AscentSettings()
    )
    alone = [
        ascend(
            score.value_and_gradient, starts[[i]], free[[i]], model.length_scales, AscentSettings()
        )[0][0]
        for i in range(6)
    ]
    np.testing.assert_allclose(together, alone, atol=1e-5)
