import numpy as np

from scrimp.space.nearest import nearest_rows


def test_nearest_rows_against_a_loop():
    rng = np.random.default_rng(0)
    rows, places = rng.random((40, 3)), rng.random((25, 3))
    rows[:, 2], places[:, 2] = rng.integers(3, size=40) / 2, rng.integers(3, size=25) / 2
    apart = np.array([False, False, True])
    found = nearest_rows(places, rows, apart)
    for place, row in zip(places, found, strict=True):
        distances = [(p := place - other)[0] ** 2 + p[1] ** 2 + (p[2] != 0) for other in rows]
        assert row == int(np.argmin(distances))


def test_categories_are_all_equally_far():
    rows = np.array([[0.0, 0.5], [0.3, 1.0]])
    assert nearest_rows(np.array([[0.2, 0.0]]), rows, np.array([False, True])).tolist() == [1]
    assert nearest_rows(np.array([[0.2, 0.0]]), rows, np.array([False, False])).tolist() == [0]
