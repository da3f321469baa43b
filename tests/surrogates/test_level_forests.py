import numpy as np
import pytest

from scrimp.errors import StudyError
from scrimp.gp.columns import Column
from scrimp.surrogates.level_forests import TREES, LevelForests
from scrimp.surrogates.surrogate import Data
from scrimp.testing.surrogates import SurrogateBattery


class TestRungForests(SurrogateBattery):
    @pytest.fixture
    def columns(self):
        return (Column(), Column((0.0, 0.5, 1.0), ordered=False), Column((1 / 3, 1.0)))

    @pytest.fixture
    def surrogate(self):
        return LevelForests((1 / 3, 1.0))


def observed(count=60):
    rng = np.random.default_rng(0)
    x = rng.random((count, 2))
    share = np.where(np.arange(count) % 2, 1 / 3, 1.0)
    return Data(np.column_stack([x, share]), np.where(share < 0.5, 2.0, -2.0) + (x[:, 0] > 0.5))


def test_levels_know_nothing_of_each_other():
    fitted = LevelForests((1 / 9, 1 / 3, 1.0)).fit(observed(), np.random.default_rng(1))
    asked = np.array(
        [[0.2, 0.5, 1 / 9], [0.2, 0.5, 1 / 3], [0.8, 0.5, 1 / 3], [0.2, 0.5, 1.0], [0.8, 0.5, 1.0]]
    )
    posterior = fitted.posterior(asked)
    np.testing.assert_allclose(posterior.mean[:, 0], [0.0, 2.0, 3.0, -2.0, -1.0], atol=0.2)
    assert posterior.variance[0] == 1.0 and (posterior.variance[1:] < 0.3).all()


def test_variance_is_that_of_trees_and_of_their_leaves():
    x = np.linspace(0, 1, 12)
    data = Data(np.column_stack([x, np.ones(12)]), np.where(np.arange(12) % 2, 1.0, -1.0))
    variance = LevelForests((1.0,)).fit(data, np.random.default_rng(0)).posterior(data.x).variance
    assert (
        0.3 < variance.mean() < 2.0 and TREES.trees == 10
    )  # nothing to learn: about the variance of the targets, 1


def test_a_record_of_another_model_is_refused():
    with pytest.raises(StudyError, match="another model"):
        LevelForests((1.0,)).restore(observed(), {"parameters": {}})
