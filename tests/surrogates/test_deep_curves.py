import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.gp.marginal_likelihood import SearchSettings
from scrimp.surrogates.deep_curves import DeepCurves
from scrimp.surrogates.surrogate import Data
from scrimp.testing.surrogates import SurrogateBattery


class TestDeepCurves(SurrogateBattery):
    @pytest.fixture
    def columns(self):
        return (Column(), Column((0.0, 0.5, 1.0), ordered=False), Column())

    @pytest.fixture
    def surrogate(self, columns):
        return DeepCurves(columns[:-1], SearchSettings(iterations=20))


def curves(count, rng):
    """Targets that fall with the budget towards an end that a configuration's beginning tells, and
    its column does not."""
    x, shares = rng.random(count), np.array([0.25, 0.5, 0.75, 1.0])
    ends = rng.standard_normal(count)
    y = ends[:, None] + (1.0 - shares)
    return Data(np.column_stack([np.repeat(x, 4), np.tile(shares, count)]), y.ravel()), ends


def test_learns_that_a_curve_goes_on_as_it_began():
    rng = np.random.default_rng(0)
    data, ends = curves(30, rng)
    known = np.ones(120, dtype=bool)
    known[np.arange(80, 120)[np.arange(40) % 4 == 3]] = (
        False  # the last ten have not been trained to the end
    )
    fitted = DeepCurves((Column(),)).fit(Data(data.x[known], data.y[known]), rng)
    missed = fitted.mean(data.x[~known])[:, 0] - ends[20:]
    assert np.sqrt((missed**2).mean()) < 0.5 * ends[20:].std()
