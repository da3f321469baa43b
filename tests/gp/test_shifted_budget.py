import numpy as np
import pytest

from scrimp.gp.budget import RESOURCE_KERNELS, budget_prior
from scrimp.gp.columns import Column
from scrimp.gp.shifted_budget import ShiftedBudget
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.testing.surrogates import SurrogateBattery


class TestShiftedBudget(SurrogateBattery):
    @pytest.fixture
    def columns(self):
        return (Column(), Column(), Column())

    @pytest.fixture
    def surrogate(self, columns):
        return ExactGP(ShiftedBudget(budget_prior("exp-decay-sum", columns[:-1]), 0.02))


@pytest.mark.parametrize("name", RESOURCE_KERNELS)
def test_is_the_inner_prior_elsewhere(name):
    rng = np.random.default_rng(0)
    inner = budget_prior(name, (Column(),), folds=9.0)
    shifted = ShiftedBudget(inner, 0.05)
    x = np.column_stack([rng.random(6), rng.choice([0.2, 0.5, 1.0], 6)])
    moved = x - [0.0, 0.05]
    np.testing.assert_array_equal(shifted.mean(x), inner.mean(moved))
    np.testing.assert_array_equal(shifted.covariance(x, x), inner.covariance(moved, moved))
    changed = shifted.with_values(shifted.values * 1.1)
    np.testing.assert_array_equal(changed.values, inner.values * 1.1)
