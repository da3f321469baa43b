import numpy as np

from scrimp.gp.columns import Column, Features
from scrimp.testing.models import rows


def test_kinds():
    assert Column().kind == "continuous"
    assert Column((0.0, 0.5, 1.0)).kind == "discrete"
    assert Column((0.0, 1.0), ordered=False).kind == "categorical"


def test_columns_are_values():
    assert Column((0.0, 1.0)) == Column((0.0, 1.0)) != Column((0.0, 1.0), ordered=False)
    assert len({Column(), Column(), Column((0.0,))}) == 2


MIXED = (
    Column(),
    Column((0.0, 0.5, 1.0), ordered=False),
    Column((0.0, 0.2, 1.0)),
    Column((0.0,), ordered=False),
)


def test_plain_columns_are_their_own_features():
    x = np.random.default_rng(0).random((4, 2))
    features = Features((Column(), Column((0.0, 0.5, 1.0))))
    assert features(x) is x and features.plain


def test_each_category_is_one_feature_and_mismatch_is_one():
    features = Features(MIXED)
    x = rows(MIXED, 30, np.random.default_rng(0))
    z = features(x)
    assert z.shape == (30, 6)
    np.testing.assert_array_equal(features.owner, [0, 1, 1, 1, 2, 3])
    squared = ((z[:, None] - z[None]) ** 2)[:, :, 1:4].sum(2)
    np.testing.assert_allclose(squared, x[:, None, 1] != x[None, :, 1], atol=1e-15)


def test_levels_are_recognised_in_spite_of_rounding():
    thirds = Features((Column((0.0, 1 / 3, 2 / 3, 1.0), ordered=False),))
    np.testing.assert_array_equal(
        thirds(np.array([[0.33333], [0.666667]])), thirds(np.array([[1 / 3], [2 / 3]]))
    )


def test_pull_and_the_owner_of_each_feature():
    features = Features(MIXED)
    d = np.arange(12.0).reshape(2, 6)
    np.testing.assert_array_equal(features.pull(d), [[0.0, 0.0, 4.0, 0.0], [6.0, 0.0, 10.0, 0.0]])
    np.testing.assert_array_equal(features.owner, [0, 1, 1, 1, 2, 3])
    assert Features(()).owner.shape == (0,)
