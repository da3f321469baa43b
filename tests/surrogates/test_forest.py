"""A random forest, against trees that can be written down."""

import numpy as np
import pytest

from scrimp.errors import StudyError
from scrimp.gp.columns import Column
from scrimp.surrogates.forest import LEVEL_TREES, Forest, ForestSettings, LevelForests, grow_forest
from scrimp.surrogates.surrogate import Data
from scrimp.testing.models import SurrogateBattery


def test_one_tree_by_hand() -> None:
    # the root splits column 1 at 0.5; its left child is a leaf, its right one splits column 0 at
    # 0.2
    places = np.array([0])
    columns, thresholds = np.array([1, 0, 0, 0, 0]), np.array([0.5, np.inf, 0.2, np.inf, np.inf])
    tree = Forest(
        places, columns, thresholds, np.array([1, 1, 3, 3, 4]), np.array([9.0, 1.0, 9.0, 2.0, 3.0])
    )
    assert tree(np.array([[0.9, 0.5], [0.2, 0.6], [0.3, 0.6]])).tolist() == [1.0, 2.0, 3.0]


def test_a_step_is_found_where_it_is() -> None:
    x = np.linspace(0.0, 1.0, 21)[:, None]
    y = np.where(x[:, 0] < 0.42, -1.0, 2.0)
    forest = grow_forest(x, y, np.random.default_rng(0), ForestSettings(trees=5))
    assert forest(np.array([[0.1], [0.9]])).tolist() == [-1.0, 2.0]
    inner = forest.threshold[np.isfinite(forest.threshold)]
    assert (
        len(inner) == 5 and ((inner > 0.3) & (inner < 0.55)).all()
    )  # one split per tree, equal targets are leaves


def test_learns_a_smooth_function_as_well_as_forests_do() -> None:
    rng = np.random.default_rng(1)
    x, new = rng.random((300, 4)), rng.random((200, 4))

    def truth(rows: np.ndarray) -> np.ndarray:
        return np.asarray(np.sin(5.0 * rows[:, 0]) + 2.0 * (rows[:, 1] - 0.5) ** 2)

    found = grow_forest(x, truth(x), rng)(new)
    left = float(((found - truth(new)) ** 2).mean() / truth(new).var())
    assert left < 0.03  # scikit-learn's, with the same settings, leaves 0.018 to 0.022


def test_same_seed_same_forest() -> None:
    x = np.random.default_rng(2).random((30, 2))
    one, two = (grow_forest(x, x[:, 0], np.random.default_rng(3)) for _ in range(2))
    assert (one(x) == two(x)).all()


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
        0.3 < variance.mean() < 2.0 and LEVEL_TREES.trees == 10
    )  # nothing to learn: about the variance of the targets, 1


def test_a_record_of_another_model_is_refused():
    with pytest.raises(StudyError, match="does not fit"):
        LevelForests((1.0,)).restore(observed(), {"parameters": {}})
