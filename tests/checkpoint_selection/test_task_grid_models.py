"""Gradients of the grid models, and what each of them says about tasks and rows."""

import numpy as np
import pytest

from scrimp.checkpoint_selection.task_grid import GridData, TaskGrid
from scrimp.checkpoint_selection.task_grid_algebra import group_cells
from scrimp.checkpoint_selection.task_grid_models import (
    Coregional,
    GridModel,
    RowEffects,
    SharedCurve,
    TaskCurves,
    squared_exponential,
)
from scrimp.gp.stationary import matern52_by_length

SIZE, TASKS = 10, 4
POSITIONS = np.sort(np.random.default_rng(0).random(SIZE))


def negative_log_likelihood(model: GridModel, values, cells):
    return model.prior(values, POSITIONS, TASKS, 9.0)[0].solve(cells).negative_log_likelihood


@pytest.mark.parametrize(
    "model", [SharedCurve(), RowEffects(), TaskCurves()], ids=lambda model: type(model).__name__
)
def test_gradient_equals_central_differences(model):
    rng = np.random.default_rng(1)
    picked = rng.choice(SIZE * TASKS, 20, replace=False)
    cells = group_cells(picked // TASKS, picked % TASKS, rng.normal(size=20), np.zeros(20), TASKS)
    values = model.start(TASKS) + 0.2 * rng.normal(size=model.parameters(TASKS).size)
    prior, pull = model.prior(values, POSITIONS, TASKS, 9.0)
    gradient = pull(prior.solve(cells).gradient())
    steps = 1e-6 * np.eye(len(values))
    numeric = [
        (
            negative_log_likelihood(model, values + step, cells)
            - negative_log_likelihood(model, values - step, cells)
        )
        / 2e-6
        for step in steps
    ]
    np.testing.assert_allclose(gradient, numeric, atol=2e-6)


def test_matern_equals_scikit_learn_and_its_slope_a_difference():
    kernels = pytest.importorskip("sklearn.gaussian_process.kernels")
    value, slope = matern52_by_length(POSITIONS, 0.3)
    np.testing.assert_allclose(value, kernels.Matern(0.3, nu=2.5)(POSITIONS[:, None]), atol=1e-12)
    step = 1e-6
    ends = [matern52_by_length(POSITIONS, 0.3 * np.exp(sign * step))[0] for sign in (1.0, -1.0)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), atol=1e-9)


def test_shared_curve_has_a_trend_and_a_jitter_that_is_not_smooth():
    model = SharedCurve()
    values = model.start(TASKS)
    prior, _ = model.prior(values, POSITIONS, TASKS, 9.0)
    smooth = model.smooth(values, POSITIONS)
    jitter = np.exp(2.0 * (values[4] + values[5]))
    np.testing.assert_allclose(prior.shared, smooth + jitter * np.eye(SIZE), atol=1e-12)
    centred = POSITIONS - 0.5
    np.testing.assert_allclose(
        smooth, matern52_by_length(POSITIONS, 0.4)[0] + 4.0 * np.outer(centred, centred), atol=1e-12
    )


def test_tasks_differ_most_where_training_begins():
    model = SharedCurve()
    prior, _ = model.prior(model.start(TASKS), POSITIONS, TASKS, 9.0)
    amplitude = 0.5 * (1.0 + np.exp(-POSITIONS / 0.15))
    expected = 9.0 + matern52_by_length(POSITIONS, 0.4)[0] * np.outer(amplitude, amplitude)
    np.testing.assert_allclose(prior.own, expected, atol=1e-12)


def test_independent_tasks_share_nothing():
    model = TaskCurves()
    prior, _ = model.prior(model.start(TASKS), POSITIONS, TASKS, 9.0)
    rows = np.arange(SIZE)
    cells = group_cells(
        rows, np.zeros(SIZE, dtype=int), np.linspace(-2, 2, SIZE), np.zeros(SIZE), TASKS
    )
    mean = prior.solve(cells).mean()
    assert mean[-1, 0] > 1.0
    np.testing.assert_allclose(mean[:, 1:], 0.0, atol=1e-12)


def test_row_effects_do_not_know_neighbours():
    model = RowEffects()
    prior, _ = model.prior(model.start(TASKS), POSITIONS, TASKS, 9.0)
    tasks = np.arange(TASKS)
    cells = group_cells(np.full(TASKS, 3), tasks, np.full(TASKS, 2.0), np.zeros(TASKS), TASKS)
    mean = prior.solve(cells).mean()
    assert np.all(mean[3] > mean[4] + 0.05)
    np.testing.assert_allclose(mean[4], mean[9], atol=1e-12)


# --- coregional -----------------------------------------------------------------------------------


ICM_SIZE, ICM_TASKS, ICM_LEVEL = 8, 5, 4.0
ICM_POSITIONS = np.linspace(0.0, 1.0, ICM_SIZE)


@pytest.fixture
def cells_of():
    rng = np.random.default_rng(2)
    picked = rng.choice(ICM_SIZE * ICM_TASKS, 18, replace=False)
    return picked // ICM_TASKS, picked % ICM_TASKS, rng.normal(size=18)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_equals_the_dense_kronecker_product(rank, cells_of):
    rows, tasks, values = cells_of
    model = Coregional(rank)
    parameters = model.start(ICM_TASKS) + 0.3 * np.random.default_rng(3).normal(
        size=2 + rank * ICM_TASKS
    )
    prior, _ = model.prior(parameters, ICM_POSITIONS, ICM_TASKS, ICM_LEVEL)
    solution = prior.solve(group_cells(rows, tasks, values, np.zeros(18), ICM_TASKS))
    loadings = parameters[2:].reshape(rank, ICM_TASKS).T
    correlation = np.exp(
        -0.5 * ((ICM_POSITIONS[:, None] - ICM_POSITIONS) / np.exp(parameters[0])) ** 2
    )
    whole = np.kron(loadings @ loadings.T, correlation) + np.kron(
        np.eye(ICM_TASKS), np.full((ICM_SIZE, ICM_SIZE), ICM_LEVEL)
    )
    places = tasks * ICM_SIZE + rows
    gram = whole[np.ix_(places, places)] + np.exp(2.0 * parameters[1]) * np.eye(18)
    gain = np.linalg.solve(gram, whole[places]).T
    np.testing.assert_allclose(
        solution.mean(), (gain @ values).reshape(ICM_TASKS, ICM_SIZE).T, atol=1e-8
    )
    variance = np.diag(whole - gain @ whole[places]).reshape(ICM_TASKS, ICM_SIZE).T
    np.testing.assert_allclose(solution.variance, variance, atol=1e-8)
    expected = 0.5 * (
        values @ np.linalg.solve(gram, values) + np.linalg.slogdet(gram)[1] + 18 * np.log(2 * np.pi)
    )
    assert solution.negative_log_likelihood == pytest.approx(expected, abs=1e-8)


def test_coregional_gradient_equals_central_differences(cells_of):
    rows, tasks, values = cells_of
    model = Coregional(2)
    cells = group_cells(rows, tasks, values, np.zeros(18), ICM_TASKS)
    parameters = model.start(ICM_TASKS)
    prior, pull = model.prior(parameters, ICM_POSITIONS, ICM_TASKS, ICM_LEVEL)
    gradient = pull(prior.solve(cells).gradient())
    for place, step in enumerate(1e-6 * np.eye(len(parameters))):
        ends = [
            model.prior(parameters + sign * step, ICM_POSITIONS, ICM_TASKS, ICM_LEVEL)[0]
            .solve(cells)
            .negative_log_likelihood
            for sign in (1.0, -1.0)
        ]
        assert gradient[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=2e-6)


def test_squared_exponential_slope():
    value, slope = squared_exponential(ICM_POSITIONS, 0.4)
    ends = [
        squared_exponential(ICM_POSITIONS, 0.4 * np.exp(sign * 1e-6))[0] for sign in (1.0, -1.0)
    ]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-6, atol=1e-9)
    assert value[0, 0] == 1.0


def test_a_fit_learns_which_tasks_go_the_other_way():
    rng = np.random.default_rng(4)
    curve = np.sin(5.0 * ICM_POSITIONS)
    signs = np.array([1.0, 1.0, -1.0, 1.0, -1.0])
    scores = curve[:, None] * signs + 0.02 * rng.normal(size=(ICM_SIZE, ICM_TASKS))
    picked = rng.choice(ICM_SIZE * ICM_TASKS, 30, replace=False)
    rows, tasks = picked // ICM_TASKS, picked % ICM_TASKS
    fitted = TaskGrid(Coregional(1)).fit(
        GridData(ICM_POSITIONS, rows, tasks, scores[rows, tasks], np.ones(ICM_TASKS))
    )
    loadings = np.asarray(fitted.state["parameters"]["loading_0"])
    assert len(set(np.sign(loadings * signs))) == 1
    assert np.abs(fitted.mean() - scores).max() < 0.3
