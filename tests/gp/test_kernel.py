from dataclasses import dataclass

import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import Hyperparameter, LogNormal, ParameterVector
from scrimp.gp.kernel import Kernel, OnColumns, Product, Scaled, Sum
from scrimp.gp.stationary import RBF, Matern32, Matern52
from scrimp.gp.warping import Warped
from scrimp.testing.models import KernelBattery


class TestSum(KernelBattery):
    @pytest.fixture
    def kernel(self, columns):
        return Sum(Scaled(Matern52(columns)), RBF(columns, ard=False))


class TestProduct(KernelBattery):
    @pytest.fixture
    def kernel(self, columns):
        return Product(Scaled(Matern52(columns)), Matern32(columns))


class TestNested(KernelBattery):
    @pytest.fixture
    def kernel(self, columns):
        return Scaled((Matern52(columns) + Scaled(RBF(columns))) * Matern32(columns, ard=False))


class TestOnColumns(KernelBattery):
    @pytest.fixture
    def kernel(self, columns):
        return OnColumns(Scaled(Matern52((columns[3], columns[0]))), (3, 0))


class TestProductOverDifferentColumns(KernelBattery):
    @pytest.fixture
    def kernel(self, columns):
        return OnColumns(Matern52(columns[:2]), (0, 1)) * OnColumns(
            Scaled(RBF(columns[2:])), (2, 3)
        )


@dataclass(frozen=True, eq=False)
class Linear(Kernel):
    """k(x, x') = v x . x', written to the contract alone: the defaults have to supply the rest."""

    variance: float = 1.0

    @property
    def parameters(self):
        return (Hyperparameter("variance", LogNormal(0.0, 1.0), bounds=(0.01, 100.0), initial=1.0),)

    @property
    def values(self):
        return np.array([self.variance])

    def with_values(self, values):
        return Linear(float(values[0]))

    def __call__(self, x1, x2):
        return self.variance * x1 @ x2.T

    def diagonal(self, x):
        return self.variance * (x * x).sum(1)

    def value_and_pullback(self, x):
        return self(x, x), lambda d: np.array([(d * (x @ x.T)).sum()])

    def cross_and_pullback(self, x1, x2):
        return self(x1, x2), lambda d: self.variance * d @ x2


class TestWrittenToTheContractAlone(KernelBattery):
    @pytest.fixture
    def columns(self):
        return (Column(),) * 3

    @pytest.fixture
    def kernel(self):
        return Linear()


class TestNotStationaryParts(KernelBattery):
    @pytest.fixture
    def columns(self):
        return (Column(),) * 4

    @pytest.fixture
    def kernel(self, columns):
        return Warped(Scaled(OnColumns(Linear(), (1, 3)) * Matern52(columns) + Linear()), columns)


def test_names_are_told_apart_only_where_they_clash():
    two = (Column(), Column())
    assert [p.name for p in (Matern52(two) + RBF(two)).parameters] == [
        "left.length_scale",
        "right.length_scale",
    ]
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
