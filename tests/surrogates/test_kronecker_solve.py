import numpy as np
import pytest

from scrimp.errors import NumericalError
from scrimp.gp.columns import Column
from scrimp.gp.stationary import Matern52
from scrimp.surrogates.kronecker_solve import BlockSystem, pivoted_cholesky


def system(direct, **settings):
    rng = np.random.default_rng(0)
    x = rng.random((12, 3))
    covariance = Matern52((Column(),) * 3).with_values(np.full(3, 0.6))(x, x)
    kinds = rng.standard_normal((4, 3, 3)) * 3.0
    kinds[0, :, 1:] = 0.0  # a configuration that says something about one direction only
    return BlockSystem(covariance, kinds[rng.integers(4, size=12)], direct=direct, **settings)


@pytest.mark.parametrize("direct", [0, 4000])
def test_the_mean_is_that_of_the_dense_system(direct):
    blocks = system(direct, rank=5)
    seen = np.random.default_rng(1).standard_normal((12, 3, 4))
    p = blocks.roots @ seen
    precision = np.linalg.inv(np.kron(blocks.covariance, np.eye(3)))
    for i in range(12):
        precision[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] += blocks.roots[i] @ blocks.roots[i].T
    expected = np.linalg.solve(precision, p.reshape(36, 4)).reshape(12, 3, 4)
    np.testing.assert_allclose(blocks.product(blocks.weights(seen)), expected, rtol=1e-6, atol=1e-7)


def test_the_determinant():
    exact, error = system(4000).log_determinant(1, np.random.default_rng(0))
    blocks = system(4000)
    dense = np.kron(blocks.covariance, np.eye(3))
    root = np.zeros((36, 36))
    for i in range(12):
        root[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = blocks.roots[i]
    assert error == 0.0
    assert exact == pytest.approx(np.linalg.slogdet(np.eye(36) + root.T @ dense @ root)[1], rel=1e-9)
    estimate, error = system(0).log_determinant(64, np.random.default_rng(0))
    assert 0.0 < error < 0.1 * abs(exact) and abs(estimate - exact) < 4.0 * error


def test_no_convergence_is_said():
    with pytest.raises(NumericalError, match="conjugate gradients"):
        system(0, rank=1, iterations=1).weights(np.ones((12, 3, 1)))


def test_pivoted_cholesky_is_exact_at_full_rank():
    covariance = system(0).covariance
    factor = pivoted_cholesky(covariance, 12)
    np.testing.assert_allclose(factor @ factor.T, covariance, atol=1e-9)
    short = pivoted_cholesky(covariance, 4)
    assert short.shape == (12, 4) and (covariance - short @ short.T).trace() < 0.5 * covariance.trace()
