"""The coregionalisation model against the Kronecker product it stands for."""

import numpy as np
import pytest

from scrimp.selection.task_grid import GridData, TaskGrid
from scrimp.selection.task_grid_algebra import solve_grid
from scrimp.selection.task_grid_cells import group_cells
from scrimp.selection.task_grid_icm import Coregional, squared_exponential

SIZE, TASKS, LEVEL = 8, 5, 4.0
POSITIONS = np.linspace(0.0, 1.0, SIZE)


@pytest.fixture
def cells_of():
    rng = np.random.default_rng(2)
    picked = rng.choice(SIZE * TASKS, 18, replace=False)
    return picked // TASKS, picked % TASKS, rng.normal(size=18)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_equals_the_dense_kronecker_product(rank, cells_of):
    rows, tasks, values = cells_of
    model = Coregional(rank)
    parameters = model.start(TASKS) + 0.3 * np.random.default_rng(3).normal(size=2 + rank * TASKS)
    prior, _ = model.prior(parameters, POSITIONS, TASKS, LEVEL)
    solution = solve_grid(prior, group_cells(rows, tasks, values, np.zeros(18), TASKS))
    loadings = parameters[2:].reshape(rank, TASKS).T
    correlation = np.exp(-0.5 * ((POSITIONS[:, None] - POSITIONS) / np.exp(parameters[0])) ** 2)
    whole = np.kron(loadings @ loadings.T, correlation) + np.kron(
        np.eye(TASKS), np.full((SIZE, SIZE), LEVEL)
    )
    places = tasks * SIZE + rows
    gram = whole[np.ix_(places, places)] + np.exp(2.0 * parameters[1]) * np.eye(18)
    gain = np.linalg.solve(gram, whole[places]).T
    np.testing.assert_allclose(solution.mean(), (gain @ values).reshape(TASKS, SIZE).T, atol=1e-8)
    variance = np.diag(whole - gain @ whole[places]).reshape(TASKS, SIZE).T
    np.testing.assert_allclose(solution.variance, variance, atol=1e-8)
    expected = 0.5 * (
        values @ np.linalg.solve(gram, values) + np.linalg.slogdet(gram)[1] + 18 * np.log(2 * np.pi)
    )
    assert solution.negative_log_likelihood == pytest.approx(expected, abs=1e-8)


def test_gradient_equals_central_differences(cells_of):
    rows, tasks, values = cells_of
    model = Coregional(2)
    cells = group_cells(rows, tasks, values, np.zeros(18), TASKS)
    parameters = model.start(TASKS)
    prior, pull = model.prior(parameters, POSITIONS, TASKS, LEVEL)
    gradient = pull(solve_grid(prior, cells).gradient())
    for place, step in enumerate(1e-6 * np.eye(len(parameters))):
        ends = [
            solve_grid(
                model.prior(parameters + sign * step, POSITIONS, TASKS, LEVEL)[0], cells
            ).negative_log_likelihood
            for sign in (1.0, -1.0)
        ]
        assert gradient[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=2e-6)


def test_squared_exponential_slope():
    value, slope = squared_exponential(POSITIONS, 0.4)
    ends = [squared_exponential(POSITIONS, 0.4 * np.exp(sign * 1e-6))[0] for sign in (1.0, -1.0)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-6, atol=1e-9)
    assert value[0, 0] == 1.0


def test_a_fit_learns_which_tasks_go_the_other_way():
    rng = np.random.default_rng(4)
    curve = np.sin(5.0 * POSITIONS)
    signs = np.array([1.0, 1.0, -1.0, 1.0, -1.0])
    scores = curve[:, None] * signs + 0.02 * rng.normal(size=(SIZE, TASKS))
    picked = rng.choice(SIZE * TASKS, 30, replace=False)
    rows, tasks = picked // TASKS, picked % TASKS
    fitted = TaskGrid(Coregional(1)).fit(
        GridData(POSITIONS, rows, tasks, scores[rows, tasks], np.ones(TASKS))
    )
    loadings = np.asarray(fitted.state["parameters"]["loading_0"])
    assert len(set(np.sign(loadings * signs))) == 1
    assert np.abs(fitted.mean() - scores).max() < 0.3
