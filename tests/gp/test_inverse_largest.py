"""The kernel of the largest budget keeps the contract of kernels."""

import pytest

from scrimp.gp.columns import Column
from scrimp.gp.inverse_largest import InverseLargest
from scrimp.gp.kernel import Scaled
from scrimp.testing.kernels import KernelBattery, rows


class TestInverseLargest(KernelBattery):
    @pytest.fixture
    def columns(self):
        return (Column(),)

    @pytest.fixture
    def kernel(self):
        return Scaled(InverseLargest(5.0))

    @pytest.fixture
    def x(self, columns, rng):
        return rows(columns, 12, rng)  # none twice: at equal budgets there is a kink
