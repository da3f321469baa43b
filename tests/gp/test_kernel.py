import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.gp.kernel import OnColumns, Scaled
from scrimp.gp.priors import ParameterVector
from scrimp.gp.stationary import RBF, Matern32, Matern52
from scrimp.testing.kernels import KernelContract


class TestSum(KernelContract):
    @pytest.fixture
    def kernel(self, columns):
        return Scaled(Matern52(columns)) + RBF(columns, ard=False)


class TestProduct(KernelContract):
    @pytest.fixture
    def kernel(self, columns):
        return Scaled(Matern52(columns)) * Matern32(columns)


class TestNested(KernelContract):
    @pytest.fixture
    def kernel(self, columns):
        return Scaled((Matern52(columns) + Scaled(RBF(columns))) * Matern32(columns, ard=False))


class TestOnColumns(KernelContract):
    @pytest.fixture
    def kernel(self, columns):
        return OnColumns(Scaled(Matern52((columns[3], columns[0]))), (3, 0))


class TestProductOverDifferentColumns(KernelContract):
    @pytest.fixture
    def kernel(self, columns):
        return OnColumns(Matern52(columns[:2]), (0, 1)) * OnColumns(Scaled(RBF(columns[2:])), (2, 3))


def test_names_are_told_apart_only_where_they_clash():
    two = (Column(), Column())
    assert [p.name for p in (Matern52(two) + RBF(two)).parameters] == ["left.length_scale", "right.length_scale"]
    nested = (Matern52(two) + RBF(two)) * Scaled(RBF(two))
    assert [p.name for p in nested.parameters] == [
        "left.length_scale",
        "right.length_scale",
        "output_scale",
        "length_scale",
    ]
    ParameterVector(nested.parameters)


def test_columns_a_kernel_does_not_see_do_not_matter():
    kernel = OnColumns(RBF((Column(),)), (1,))
    x = np.random.default_rng(0).random((4, 3))
    moved = x.copy()
    moved[:, [0, 2]] = 0.5
    np.testing.assert_array_equal(kernel(x, x.copy()), kernel(moved, moved.copy()))
