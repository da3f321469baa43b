import numpy as np
import pytest
from scipy.stats import beta

from scrimp.gp.columns import Column
from scrimp.gp.kernel import Scaled
from scrimp.gp.stationary import RBF, Matern52
from scrimp.gp.warping import Warped, kumaraswamy
from scrimp.testing.models import KernelBattery, close, numerical_gradient


class TestWarped(KernelBattery):
    @pytest.fixture
    def kernel(self, columns):
        return Warped(Scaled(Matern52(columns)), columns)


class TestWarpedProduct(KernelBattery):
    @pytest.fixture
    def kernel(self, columns):
        return Warped(Matern52(columns) * Scaled(RBF(columns)), columns)


def test_kumaraswamy_is_a_beta_distribution_function_where_they_coincide():
    x = np.linspace(0.01, 0.99, 20)[:, None]
    np.testing.assert_allclose(
        kumaraswamy(x, np.array([2.5]), np.array([1.0]))[0], beta.cdf(x, 2.5, 1.0), rtol=1e-6
    )
    np.testing.assert_allclose(
        kumaraswamy(x, np.array([1.0]), np.array([0.4]))[0], beta.cdf(x, 1.0, 0.4), rtol=1e-6
    )


def test_gradients_of_kumaraswamy():
    rng = np.random.default_rng(0)
    x, a, b, weights = (
        rng.uniform(0.02, 0.98, (5, 3)),
        rng.uniform(0.3, 3, 3),
        rng.uniform(0.3, 3, 3),
        rng.normal(size=(5, 3)),
    )
    d_x, d_a, d_b = kumaraswamy(x, a, b)[1](weights)
    close(d_x, numerical_gradient(lambda v: (weights * kumaraswamy(v, a, b)[0]).sum(), x))
    close(d_a, numerical_gradient(lambda v: (weights * kumaraswamy(x, v, b)[0]).sum(), a))
    close(d_b, numerical_gradient(lambda v: (weights * kumaraswamy(x, a, v)[0]).sum(), b))


def test_ends_of_the_cube_stay_finite():
    x = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    for power in (0.25, 4.0):
        warped, pull = kumaraswamy(x, np.full(2, power), np.full(2, power))
        assert np.isfinite(warped).all() and (warped >= 0).all() and (warped <= 1).all()
        assert all(np.isfinite(gradient).all() for gradient in pull(np.ones((3, 2))))


def test_categories_are_never_warped():
    columns = (Column(), Column((0.0, 0.5, 1.0), ordered=False), Column((0.0, 0.3, 1.0)))
    kernel = Warped(RBF(columns), columns)
    assert [parameter.size for parameter in kernel.parameters] == [2, 2, 3]
    x = np.array([[0.2, 0.5, 0.3]])
    warped = kernel.with_values(np.array([2.0, 2.0, 0.5, 0.5, 1.0, 1.0, 1.0])).embed(x)[0]
    assert warped[0, 1] == 0.5 and warped[0, 0] != 0.2 and warped[0, 2] != 0.3


def test_power_one_is_the_plain_kernel():
    columns = (Column(), Column())
    x = np.random.default_rng(0).random((6, 2))
    np.testing.assert_allclose(Warped(RBF(columns), columns)(x, x), RBF(columns)(x, x), rtol=1e-7)
