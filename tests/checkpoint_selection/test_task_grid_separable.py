"""The plain solution of a product covariance against dense formulas, and against the quick algebra
where both apply."""

import numpy as np
import pytest

from scrimp.checkpoint_selection.task_grid_algebra import group_cells
from scrimp.checkpoint_selection.task_grid_models import (
    Coregional,
    squared_exponential,
)
from scrimp.checkpoint_selection.task_grid_separable import SeparablePrior
from scrimp.errors import NumericalError

SIZE, TASKS, LEVEL = 8, 5, 4.0
POSITIONS = np.linspace(0.0, 1.0, SIZE)
EVERY = np.arange(SIZE)


@pytest.fixture(name="cells")
def cells_fixture():
    rng = np.random.default_rng(2)
    picked = rng.choice(SIZE * TASKS, 18, replace=False)
    return group_cells(
        picked // TASKS, picked % TASKS, rng.normal(size=18), 0.1 * rng.random(18), TASKS
    )


@pytest.fixture(name="prior")
def prior_fixture():
    factor = np.random.default_rng(5).normal(size=(TASKS, TASKS))
    return SeparablePrior(
        squared_exponential(POSITIONS, 0.3)[0],
        factor @ factor.T,
        LEVEL,
        np.linspace(0.1, 0.3, TASKS),
    )


def dense(prior, cells):
    """Mean and covariance of all f given the cells, cell (i, j) at place j * K + i, and -log
    p(y)."""
    whole = np.kron(prior.tasks, prior.curve) + np.kron(np.eye(TASKS), np.full((SIZE, SIZE), LEVEL))
    tasks, columns = np.nonzero(cells.mask)
    places, values = tasks * SIZE + cells.rows[tasks, columns], cells.values[tasks, columns]
    gram = whole[np.ix_(places, places)] + np.diag(prior.noise[tasks] + cells.noise[tasks, columns])
    gain = np.linalg.solve(gram, whole[places]).T
    fit = (
        values @ np.linalg.solve(gram, values)
        + np.linalg.slogdet(gram)[1]
        + len(values) * np.log(2.0 * np.pi)
    )
    return gain @ values, whole - gain @ whole[places], 0.5 * fit


def test_equals_dense_formulas(prior, cells):
    solution = prior.solve(cells)
    mean, covariance, value = dense(prior, cells)
    grid = covariance.reshape(TASKS, SIZE, TASKS, SIZE)
    np.testing.assert_allclose(solution.mean(), mean.reshape(TASKS, SIZE).T, atol=1e-9)
    np.testing.assert_allclose(
        solution.variance, np.diag(covariance).reshape(TASKS, SIZE).T, atol=1e-9
    )
    assert solution.negative_log_likelihood == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(solution.covariance_with_cell(3, 2), grid[2, 3].T, atol=1e-9)
    weights = np.random.default_rng(6).random((SIZE, TASKS))
    lift = np.concatenate([np.diag(weights[:, task]) for task in range(TASKS)], axis=1)  # (K, JK)
    joint, chosen = lift @ covariance @ lift.T, np.array([1, 4, 6])
    combined = solution.combination(weights)
    np.testing.assert_allclose(
        combined.covariance(chosen), joint[np.ix_(chosen, chosen)], atol=1e-9
    )
    apart = np.diag(joint) + joint[4, 4] - 2.0 * joint[4]
    np.testing.assert_allclose(combined.variance_of_difference(4), apart, atol=1e-9)
    toward = (covariance @ lift.T).reshape(TASKS, SIZE, SIZE)[:, :, chosen]
    np.testing.assert_allclose(combined.covariance_with_cells(chosen), toward, atol=1e-9)
    rows, tasks = np.array([0, 5]), np.array([1, 3])
    np.testing.assert_allclose(
        combined.covariance_with(chosen, rows, tasks), toward[tasks, rows], atol=1e-9
    )


def between(mean, covariance):
    """E sum_k (f_kj - mean_j)(f_kj' - mean_j') from dense moments."""
    centre = np.kron(np.eye(TASKS), np.eye(SIZE) - 1.0 / SIZE)
    second = centre @ (covariance + np.outer(mean, mean)) @ centre
    return np.einsum("jkik->ji", second.reshape(TASKS, SIZE, TASKS, SIZE))


def test_how_tasks_move_together_equals_dense_formulas(prior, cells):
    mean, covariance, _ = dense(prior, cells)
    np.testing.assert_allclose(
        prior.solve(cells).between_tasks(), between(mean, covariance), atol=1e-9
    )
    whole = np.kron(prior.tasks, prior.curve)
    np.testing.assert_allclose(
        prior.between_tasks(), between(np.zeros(len(whole)), whole), atol=1e-9
    )


def test_low_rank_without_a_diagonal_equals_the_quick_algebra(cells):
    values = np.concatenate([[-1.0, -0.7], np.random.default_rng(7).normal(size=2 * TASKS)])
    quick = Coregional(2).prior(values, POSITIONS, TASKS, LEVEL)[0].solve(cells)
    curve, _ = squared_exponential(POSITIONS, np.exp(values[0]))
    loadings = values[2:].reshape(-1, TASKS).T
    noise = np.full(TASKS, np.exp(2.0 * values[1]))
    plain = SeparablePrior(curve, loadings @ loadings.T, LEVEL, noise).solve(cells)
    np.testing.assert_allclose(plain.mean(), quick.mean(), atol=1e-8)
    np.testing.assert_allclose(plain.variance, quick.variance, atol=1e-8)
    np.testing.assert_allclose(plain.between_tasks(), quick.between_tasks(), atol=1e-8)
    np.testing.assert_allclose(plain.prior.between_tasks(), quick.prior.between_tasks(), atol=1e-8)
    weights = np.random.default_rng(8).random((SIZE, TASKS))
    pair = [solution.combination(weights).covariance(EVERY) for solution in (plain, quick)]
    np.testing.assert_allclose(*pair, atol=1e-8)


@pytest.mark.parametrize(
    ("rank", "diagonal"), [("full", True), ("full", False), (1, True), (9, True)]
)
def test_gradient_equals_central_differences(rank, diagonal, cells):
    model = Coregional(rank, diagonal)
    parameters = model.start(TASKS) + 0.2 * np.random.default_rng(3).normal(
        size=len(model.start(TASKS))
    )
    columns = {1: 1}.get(rank, TASKS)
    assert (
        len(parameters)
        == 2 + diagonal * TASKS + columns * TASKS
        == model.parameters(TASKS).lower.size
    )

    def value(values):
        return model.prior(values, POSITIONS, TASKS, LEVEL)[0].solve(cells).negative_log_likelihood

    prior, pull = model.prior(parameters, POSITIONS, TASKS, LEVEL)
    gradient = pull(prior.solve(cells).gradient())
    for place, step in enumerate(1e-6 * np.eye(len(parameters))):
        slope = (value(parameters + step) - value(parameters - step)) / 2e-6
        assert gradient[place] == pytest.approx(slope, abs=3e-6)


def test_scores_that_are_no_numbers_are_refused(prior, cells):
    bad = SeparablePrior(prior.curve, prior.tasks * np.nan, LEVEL, prior.noise)
    with pytest.raises(NumericalError, match="not positive definite"):
        bad.solve(cells)
