import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.gp.indicator import Constant, SameRow
from scrimp.gp.kernel import OnColumns, Scaled
from scrimp.gp.stationary import RBF
from scrimp.testing.kernels import KernelContract


class TestConstant(KernelContract):
    @pytest.fixture
    def kernel(self):
        return Scaled(Constant())


class TestOwnProcess(KernelContract):
    """A process over the last column for each value of the category; equal rows of numbers are a matter of luck."""

    @pytest.fixture
    def columns(self):
        return (Column((0.0, 0.5, 1.0), ordered=False), Column())

    @pytest.fixture
    def kernel(self, columns):
        return OnColumns(SameRow(), (0,)) * OnColumns(Scaled(RBF(columns[1:])), (1,))


def test_rows_are_compared_whole():
    x = np.array([[0.1, 0.2, 0.3], [0.1, 0.2, 0.4], [0.1, 0.2, 0.3]])
    assert SameRow()(x, x).tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
    assert OnColumns(SameRow(), (0, 1))(x, x[:1]).tolist() == [[1], [1], [1]]
