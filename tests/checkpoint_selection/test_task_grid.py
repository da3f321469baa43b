"""Fitting the grid model: units, priors, warm starts, and recovery of a grid it was drawn from."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize

from scrimp.checkpoint_selection.task_grid import GridData, TaskGrid, group_units, measure_units
from scrimp.checkpoint_selection.task_grid_algebra import group_cells
from scrimp.checkpoint_selection.task_grid_models import RowEffects, SharedCurve

SIZE, TASKS = 30, 8
STEPS = np.arange(1.0, SIZE + 1.0) * 100.0


def grid(seed: int = 0, noise: float = 0.01):
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 1.0, SIZE)[:, None]
    truth = (
        0.4
        + 0.3 * rng.random(TASKS)
        + 0.2 * x * (1.6 - x)
        + 0.02 * np.sin(4.0 * x + 6.0 * rng.random(TASKS))
    )
    return truth, truth + noise * rng.normal(size=truth.shape)


def cells(scores, count: int, seed: int = 1, **kwargs) -> GridData:
    picked = np.random.default_rng(seed).choice(scores.size, count, replace=False)
    rows, tasks = picked // TASKS, picked % TASKS
    return GridData(
        np.sqrt(STEPS),
        rows,
        tasks,
        scores[rows, tasks],
        kwargs.pop("scales", np.ones(TASKS)),
        **kwargs,
    )


def test_units_by_hand():
    units = measure_units(np.array([0.4, 0.6, 0.8]), np.array([0, 0, 2]), 3)
    assert units.offset == pytest.approx(0.65)
    between = 0.15
    assert units.unit == pytest.approx(np.sqrt((0.02 + 2.0 * (0.15 * between) ** 2) / 3.0))
    assert units.level == pytest.approx(36.0)
    assert measure_units(np.zeros(0), np.zeros(0, dtype=int), 3).unit == 1.0
    assert measure_units(np.array([0.5, 0.5]), np.array([0, 1]), 2).unit == pytest.approx(
        0.15 * 0.5
    )
    assert measure_units(np.zeros(1), np.zeros(1, dtype=int), 2).unit == pytest.approx(0.15)


def test_the_fit_is_a_maximum_of_the_posterior():
    _, scores = grid()
    data = cells(scores, 60)
    fitted = TaskGrid().fit(data)
    model = SharedCurve()
    units, vector = fitted.units, model.parameters(TASKS)
    positions = (data.positions - data.positions[0]) / np.ptp(data.positions)
    standard = (data.values - units.offset) / units.unit
    grouped = group_cells(data.rows, data.tasks, standard, np.zeros(60), TASKS)

    def objective(values):
        prior, _ = model.prior(values, positions, TASKS, units.level)
        return (
            prior.solve(grouped).negative_log_likelihood
            - vector.log_density_and_gradient(values)[0]
        )

    better = minimize(objective, fitted.values, method="Powell", options={"maxfev": 1500}).fun
    assert objective(fitted.values) < better + 0.05


def test_predictions_approach_the_truth_and_know_their_error():
    truth, scores = grid()
    fitted = TaskGrid().fit(cells(scores, 80))
    error = fitted.mean() - truth
    assert np.sqrt(np.mean(error**2)) < 0.01
    assert 0.3 < np.mean(error**2 / fitted.variance) < 3.0
    assert 0.006 < np.sqrt(np.median(fitted.noise)) < 0.015


def test_units_of_the_scores_do_not_matter():
    _, scores = grid()
    plain = TaskGrid().fit(cells(scores, 60))
    percent = TaskGrid().fit(cells(100.0 * scores + 7.0, 60))
    np.testing.assert_allclose(percent.mean(), 100.0 * plain.mean() + 7.0, atol=0.02)
    scales = np.where(np.arange(TASKS) % 2 == 0, 1.0, 50.0)
    mixed = TaskGrid().fit(cells(scores * scales, 60, scales=scales))
    np.testing.assert_allclose(mixed.mean() / scales, plain.mean(), atol=2e-4)


def test_a_warm_start_ends_where_a_cold_one_does():
    _, scores = grid()
    cold = TaskGrid().fit(cells(scores, 60))
    warm = TaskGrid().fit(cells(scores, 60), start=cold.state)
    np.testing.assert_allclose(warm.mean(), cold.mean(), atol=1e-3)


def test_restoring_recorded_hyperparameters_gives_the_same_posterior():
    _, scores = grid()
    data = cells(scores, 60)
    fitted = TaskGrid().fit(data)
    again = TaskGrid().restore(data, json.loads(json.dumps(fitted.state)))
    np.testing.assert_allclose(again.mean(), fitted.mean(), atol=1e-12)
    np.testing.assert_allclose(again.variance, fitted.variance, atol=1e-14)
    assert again.state == fitted.state


def test_a_state_of_fewer_tasks_still_starts_a_fit():
    _, scores = grid()
    data = cells(scores, 60)
    state = TaskGrid().fit(data).state
    more = GridData(data.positions, data.rows, data.tasks, data.values, np.ones(TASKS + 2))
    assert TaskGrid().fit(more, start=state).mean().shape == (SIZE, TASKS + 2)
    assert TaskGrid().restore(more, state).mean().shape == (SIZE, TASKS + 2)


def test_known_noise_widens_the_posterior():
    _, scores = grid()
    plain = TaskGrid().fit(cells(scores, 60))
    noisy = TaskGrid().restore(cells(scores, 60, noise=np.full(60, 0.05**2)), plain.state)
    assert np.all(noisy.variance > plain.variance)


@pytest.mark.parametrize("model", [SharedCurve(), RowEffects()])
def test_one_row_one_task_no_cell_and_no_variation(model):
    nothing = np.zeros(0, dtype=int)
    none = TaskGrid(model).fit(GridData(np.array([5.0]), nothing, nothing, np.zeros(0), np.ones(1)))
    assert none.mean().shape == (1, 1)
    one = TaskGrid(model).fit(
        GridData(np.array([5.0]), np.array([0]), np.array([0]), np.array([0.7]), np.ones(1))
    )
    assert one.mean()[0, 0] == pytest.approx(0.7, abs=1e-6)
    rows = np.arange(6)
    flat = TaskGrid(model).fit(
        GridData(np.arange(6.0), rows, 0 * rows, np.full(6, 0.5), np.ones(2))
    )
    np.testing.assert_allclose(flat.mean()[:, 0], 0.5, atol=1e-6)
    assert np.all(np.isfinite(flat.variance))


def test_tasks_of_a_group_share_offset_and_spread() -> None:
    values, tasks = np.array([0.4, 0.6, 0.1, 0.3]), np.array([0, 1, 2, 2])
    units = group_units(values, tasks, np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(units.offset, [0.5, 0.5, 0.2, 0.2])
    by_group = measure_units(values, np.array([0, 0, 1, 1]), 2)
    assert units.unit == by_group.unit and units.level == 1.0
    # A group without a cell is as free as a task.
    open_group = group_units(values[:2], tasks[:2], np.array([0, 0, 1, 1]))
    assert open_group.level > 1.0


def test_a_fit_with_groups_is_restored() -> None:
    rng = np.random.default_rng(0)
    rows, tasks = np.arange(12), np.arange(12) % 6
    values = 0.5 + 0.02 * rows + 0.01 * rng.standard_normal(12)
    data = GridData(
        np.arange(12.0), rows, tasks, values, np.ones(6), groups=np.array([0, 0, 0, 1, 1, 1])
    )
    fitted = TaskGrid().fit(data)
    again = TaskGrid().restore(data, fitted.state)
    np.testing.assert_allclose(again.mean(), fitted.mean())
    # Tasks of a group have nearly the same level.
    levels = fitted.mean().mean(0)
    assert np.ptp(levels[:3]) < 0.1
