"""The structured algebra against dense algebra on the same cells."""

import numpy as np
import pytest

from scrimp.checkpoint_selection.task_grid_algebra import (
    GridCells,
    GridPrior,
    GridSolution,
    group_cells,
)
from scrimp.errors import NumericalError

SIZE, TASKS = 9, 5


class Dense:
    """The same model by one big covariance over all K x J cells, cell (i, j) at place j * K + i."""

    def __init__(self, prior: GridPrior, rows, tasks, values, noise):
        size, count = len(prior.own), prior.loadings.shape[1]
        task_count = len(prior.loadings)
        lift = np.kron(prior.loadings, np.eye(size)).reshape(task_count * size, count * size)
        whole = lift @ prior.shared @ lift.T + np.kron(np.eye(task_count), prior.own)
        places = tasks * size + rows
        gram = whole[np.ix_(places, places)] + np.diag(prior.noise[tasks] + noise)
        gain = np.linalg.solve(gram, whole[places]).T
        self.mean = (gain @ values).reshape(task_count, size).T
        self.covariance = whole - gain @ whole[places]
        self.variance = np.diag(self.covariance).reshape(task_count, size).T
        determinant = np.linalg.slogdet(gram)[1]
        quadratic = values @ np.linalg.solve(gram, values)
        self.negative = 0.5 * (quadratic + determinant + len(values) * np.log(2 * np.pi))


def problem(rank: int, seed: int = 0, fill: float = 0.4):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(rank * SIZE, rank * SIZE))
    own = rng.normal(size=(SIZE, SIZE + 2))
    prior = GridPrior(
        root @ root.T / SIZE,
        own @ own.T / SIZE + 30.0,
        rng.normal(size=(TASKS, rank)),
        rng.uniform(0.1, 0.5, TASKS),
    )
    seen = rng.random((SIZE, TASKS)) < fill
    seen[:, 1] = False  # a task without a cell, one with all and one with a single one
    seen[:, 2] = True
    seen[:, 3] = np.arange(SIZE) == 4
    rows, tasks = np.nonzero(seen)
    order = rng.permutation(len(rows))
    rows, tasks = rows[order], tasks[order]
    values = rng.normal(size=len(rows))
    noise = rng.uniform(0.0, 0.2, size=len(rows))
    return prior, rows, tasks, values, noise


def solved(rank: int, **kwargs) -> tuple[GridSolution, Dense]:
    prior, rows, tasks, values, noise = problem(rank, **kwargs)
    cells = group_cells(rows, tasks, values, noise, TASKS)
    return prior.solve(cells), Dense(prior, rows, tasks, values, noise)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_mean_variance_and_likelihood_equal_dense_algebra(rank):
    solution, dense = solved(rank)
    np.testing.assert_allclose(solution.mean(), dense.mean, atol=1e-9)
    np.testing.assert_allclose(solution.variance, dense.variance, atol=1e-9)
    assert solution.negative_log_likelihood == pytest.approx(dense.negative, abs=1e-9)


@pytest.mark.parametrize("rank", [1, 2])
def test_combinations_equal_dense_algebra(rank):
    solution, dense = solved(rank, seed=1)
    weights = np.random.default_rng(2).uniform(0.0, 1.0, size=(SIZE, TASKS))
    weights[weights < 0.3] = 0.0
    lift = np.concatenate([np.diag(weights[:, task]) for task in range(TASKS)], axis=1)
    combination = solution.combination(weights)
    chosen = np.array([0, 3, 4, 8])
    whole = lift @ dense.covariance @ lift.T
    np.testing.assert_allclose(
        combination.covariance(chosen), whole[np.ix_(chosen, chosen)], atol=1e-9
    )
    with_cells = (
        (lift @ dense.covariance)[chosen].reshape(len(chosen), TASKS, SIZE).transpose(1, 2, 0)
    )
    np.testing.assert_allclose(combination.covariance_with_cells(chosen), with_cells, atol=1e-9)
    rows, tasks = np.array([0, 3, 3, 8]), np.array([1, 0, 4, 2])
    np.testing.assert_allclose(
        combination.covariance_with(chosen, rows, tasks), with_cells[tasks, rows], atol=1e-9
    )
    expected = np.diag(whole) + whole[3, 3] - 2 * whole[:, 3]
    np.testing.assert_allclose(combination.variance_of_difference(3), expected, atol=1e-9)


@pytest.mark.parametrize("rank", [1, 2])
def test_covariance_with_one_cell_equals_dense_algebra(rank):
    solution, dense = solved(rank, seed=7)
    for row, task in ((2, 0), (5, 1), (8, 4)):
        expected = dense.covariance[:, task * SIZE + row].reshape(TASKS, SIZE).T
        np.testing.assert_allclose(solution.covariance_with_cell(row, task), expected, atol=1e-9)


@pytest.mark.parametrize("rank", [1, 2])
def test_gradient_equals_central_differences(rank):
    prior, rows, tasks, values, noise = problem(rank, seed=3)
    cells = group_cells(rows, tasks, values, noise, TASKS)
    gradient = prior.solve(cells).gradient()
    rng = np.random.default_rng(4)
    for name in ("shared", "own", "loadings", "noise"):
        part = getattr(prior, name)
        direction = rng.normal(size=part.shape)
        if name in ("shared", "own"):
            direction = direction @ direction.T
        step = 1e-6
        ends = []
        for sign in (1.0, -1.0):
            moved = {
                field: getattr(prior, field) for field in ("shared", "own", "loadings", "noise")
            }
            moved[name] = part + sign * step * direction
            ends.append(GridPrior(**moved).solve(cells).negative_log_likelihood)
        numeric = (ends[0] - ends[1]) / (2 * step)
        assert (getattr(gradient, name) * direction).sum() == pytest.approx(
            numeric, rel=2e-6, abs=1e-6
        ), name


def test_conditioning_on_the_predicted_mean_changes_no_mean_but_the_variance():
    prior, rows, tasks, values, noise = problem(1, seed=5)
    before = prior.solve(group_cells(rows, tasks, values, noise, TASKS))
    row, task = 7, 1
    after = prior.solve(group_cells(
            np.append(rows, row), np.append(tasks, task), np.append(values, before.mean()[row, task]),
            np.append(noise, 0.0), TASKS,
        ))  # fmt: skip
    np.testing.assert_allclose(after.mean(), before.mean(), atol=1e-9)
    assert np.all(after.variance <= before.variance + 1e-9)
    assert after.variance[row, task] < 0.1 * before.variance[row, task]


def test_mean_without_the_jitter_of_the_shared_curve():
    prior, rows, tasks, values, noise = problem(1, seed=6)
    jitter = 0.4 * np.eye(SIZE)
    smooth = prior.shared
    with_jitter = GridPrior(smooth + jitter, prior.own, prior.loadings, prior.noise)
    solution = with_jitter.solve(group_cells(rows, tasks, values, noise, TASKS))
    lift = np.kron(prior.loadings, np.eye(SIZE))
    whole = lift @ with_jitter.shared @ lift.T + np.kron(np.eye(TASKS), prior.own)
    places = tasks * SIZE + rows
    gram = whole[np.ix_(places, places)] + np.diag(prior.noise[tasks] + noise)
    smooth_whole = lift @ smooth @ lift.T + np.kron(np.eye(TASKS), prior.own)
    expected = (smooth_whole[:, places] @ np.linalg.solve(gram, values)).reshape(TASKS, SIZE).T
    np.testing.assert_allclose(solution.mean(smooth), expected, atol=1e-9)


def test_no_cells_give_the_prior():
    prior = problem(1)[0]
    nothing = np.zeros(0, dtype=int)
    solution = prior.solve(group_cells(nothing, nothing, np.zeros(0), np.zeros(0), TASKS))
    assert solution.negative_log_likelihood == 0.0
    np.testing.assert_array_equal(solution.mean(), 0.0)
    expected = (
        np.diag(prior.shared)[:, None] * prior.loadings[:, 0] ** 2 + np.diag(prior.own)[:, None]
    )
    np.testing.assert_allclose(solution.variance, expected)


def test_not_a_number_is_refused():
    prior, rows, tasks, values, noise = problem(1)
    cells = group_cells(rows, tasks, values, noise + np.nan, TASKS)
    with pytest.raises(NumericalError):
        prior.solve(cells)


# --- cells ----------------------------------------------------------------------------------------


def test_groups_hold_tasks_of_similar_length():
    counts = np.array([0, 1, 2, 3, 4, 5, 9, 9, 1])
    tasks = np.repeat(np.arange(9), counts)
    rows = np.concatenate([np.arange(count) for count in counts])
    cells = group_cells(rows, tasks, np.zeros(len(rows)), np.zeros(len(rows)), 9)
    assert [(group.tolist(), width) for group, width in cells.groups] == [
        ([1, 8], 1),
        ([2], 2),
        ([3, 4], 4),
        ([5], 8),
        ([6, 7], 9),
    ]
    nothing = group_cells(
        np.zeros(0, dtype=int), np.zeros(0, dtype=int), np.zeros(0), np.zeros(0), 3
    )
    assert nothing.groups == []


def test_grouping_keeps_every_cell():
    cells: GridCells = group_cells(
        np.array([4, 1, 2]),
        np.array([2, 0, 2]),
        np.array([1.0, 2.0, 3.0]),
        np.array([0.1, 0.2, 0.3]),
        3,
    )
    assert cells.counts.tolist() == [1, 0, 2]
    assert cells.rows.tolist() == [[1, 0], [0, 0], [2, 4]]
    assert cells.values.tolist() == [[2.0, 0.0], [0.0, 0.0], [3.0, 1.0]]
    assert cells.mask.sum() == 3
