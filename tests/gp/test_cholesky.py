import numpy as np
import pytest

from scrimp.errors import NumericalError
from scrimp.gp import cholesky as module
from scrimp.gp.cholesky import (
    cholesky,
    cholesky_in_place,
    grow,
    grow_inverse,
    inverse_factor,
    inverse_lower,
    log_determinant,
    multiply_lower,
    solve,
    solve_lower,
)


def covariance(size, seed=0):
    root = np.random.default_rng(seed).normal(size=(size, size + 5))
    return root @ root.T + 0.1 * np.eye(size)


@pytest.mark.parametrize("size", [1, 2, 50, 63, 64, 65, 130, 200])
def test_factor_and_what_rests_on_it(size):
    matrix = covariance(size)
    kept = matrix.copy()
    factor = cholesky(matrix)
    np.testing.assert_array_equal(matrix, kept)
    np.testing.assert_array_equal(factor, np.tril(factor))
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix), rtol=1e-9, atol=1e-12)
    right = np.random.default_rng(1).normal(size=(size, 3))
    np.testing.assert_allclose(
        solve(factor, right), np.linalg.solve(matrix, right), rtol=1e-7, atol=1e-9
    )
    np.testing.assert_allclose(factor @ solve_lower(factor, right), right, atol=1e-9)
    np.testing.assert_allclose(
        factor.T @ solve_lower(factor, right, transposed=True), right, atol=1e-9
    )
    np.testing.assert_allclose(multiply_lower(factor, right), factor @ right, atol=1e-9)
    np.testing.assert_allclose(
        multiply_lower(factor, right, transposed=True), factor.T @ right, atol=1e-9
    )
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(inverse_lower(factor), np.tril(inverse), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(inverse_factor(factor) @ factor, np.eye(size), atol=1e-9)
    assert log_determinant(factor) == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-10)


@pytest.mark.parametrize(("size", "added"), [(1, 1), (20, 1), (20, 7), (130, 30)])
def test_growth_equals_a_full_factorisation(size, added):
    whole = covariance(size + added)
    grown = grow(cholesky(whole[:size, :size]), whole[:size, size:], whole[size:, size:])
    np.testing.assert_allclose(grown, np.linalg.cholesky(whole), rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(grown, np.tril(grown))
    inverse = grow_inverse(inverse_factor(cholesky(whole[:size, :size])), grown)
    np.testing.assert_allclose(inverse, np.linalg.inv(grown), rtol=1e-7, atol=1e-9)


def test_growth_one_at_a_time_equals_a_full_factorisation():
    whole = covariance(60)
    factor = cholesky(whole[:20, :20])
    for size in range(20, 60):
        factor = grow(
            factor, whole[:size, size : size + 1], whole[size : size + 1, size : size + 1]
        )
    np.testing.assert_allclose(factor, np.linalg.cholesky(whole), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("size", [3, 100])
def test_jitter_ladder_on_singular_matrices(size):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(size, 2))
    matrix = 1e4 * root @ root.T  # rank 2, and far from unit scale
    factor = cholesky(matrix)
    added = (factor @ factor.T - matrix).diagonal() / matrix.diagonal().mean()
    assert 0.0 < added.max() < 1e-9
    off_diagonal = factor @ factor.T - matrix
    np.fill_diagonal(off_diagonal, 0.0)
    assert np.abs(off_diagonal).max() < 1e-9 * matrix.max()


def test_jitter_climbs_as_far_as_it_must_and_no_further():
    matrix = np.eye(4)
    matrix[0, 0] = -5e-6
    factor = cholesky(matrix)
    added = (factor @ factor.T - matrix).diagonal()
    np.testing.assert_allclose(added, 1e-5 * matrix.diagonal().mean(), rtol=1e-6)


def test_repeated_point_grows():
    row = np.ones((1, 1))
    grown = grow(cholesky(row), row, row)
    np.testing.assert_allclose(grown @ grown.T, np.ones((2, 2)), atol=1e-9)


def test_hopeless_matrices_are_refused():
    with pytest.raises(NumericalError, match="NaN or infinite"):
        cholesky(np.array([[1.0, np.nan], [np.nan, 1.0]]))
    with pytest.raises(NumericalError, match="NaN or infinite"):
        cholesky(np.array([[np.nan, 0.0], [0.0, 1.0]]))
    with pytest.raises(NumericalError, match="NaN or infinite"):
        cholesky(np.array([[1.0, 0.0], [0.0, np.inf]]))
    with pytest.raises(NumericalError, match="not positive definite even with"):
        cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_in_place_reuses_memory():
    matrix = np.asfortranarray(covariance(200))
    expected = np.linalg.cholesky(matrix)
    factor = cholesky_in_place(matrix)
    assert np.shares_memory(factor, matrix)
    np.testing.assert_allclose(factor, expected, rtol=1e-9, atol=1e-12)


def test_ladder_is_increasing():
    assert list(module.RELATIVE_JITTERS) == sorted(module.RELATIVE_JITTERS)
