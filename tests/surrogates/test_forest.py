"""A random forest, against trees that can be written down."""

import numpy as np

from scrimp.surrogates.forest import Forest, ForestSettings, grow_forest


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
