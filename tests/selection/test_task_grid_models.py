"""Gradients of the grid models, and what each of them says about tasks and rows."""

import numpy as np
import pytest

from scrimp.gp.matern import matern52_by_length
from scrimp.selection.task_grid_algebra import solve_grid
from scrimp.selection.task_grid_cells import group_cells
from scrimp.selection.task_grid_models import GridModel, RowEffects, SharedCurve, TaskCurves

SIZE, TASKS = 10, 4
POSITIONS = np.sort(np.random.default_rng(0).random(SIZE))


def negative_log_likelihood(model: GridModel, values, cells):
    return solve_grid(model.prior(values, POSITIONS, TASKS, 9.0)[0], cells).negative_log_likelihood


@pytest.mark.parametrize(
    "model", [SharedCurve(), RowEffects(), TaskCurves()], ids=lambda model: type(model).__name__
)
def test_gradient_equals_central_differences(model):
    rng = np.random.default_rng(1)
    picked = rng.choice(SIZE * TASKS, 20, replace=False)
    cells = group_cells(picked // TASKS, picked % TASKS, rng.normal(size=20), np.zeros(20), TASKS)
    values = model.start(TASKS) + 0.2 * rng.normal(size=model.parameters(TASKS).size)
    prior, pull = model.prior(values, POSITIONS, TASKS, 9.0)
    gradient = pull(solve_grid(prior, cells).gradient())
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
    mean = solve_grid(prior, cells).mean()
    assert mean[-1, 0] > 1.0
    np.testing.assert_allclose(mean[:, 1:], 0.0, atol=1e-12)


def test_row_effects_do_not_know_neighbours():
    model = RowEffects()
    prior, _ = model.prior(model.start(TASKS), POSITIONS, TASKS, 9.0)
    tasks = np.arange(TASKS)
    cells = group_cells(np.full(TASKS, 3), tasks, np.full(TASKS, 2.0), np.zeros(TASKS), TASKS)
    mean = solve_grid(prior, cells).mean()
    assert np.all(mean[3] > mean[4] + 0.05)
    np.testing.assert_allclose(mean[4], mean[9], atol=1e-12)
