"""Values worked out once per row."""

import numpy as np

from scrimp.transfer import row_cache
from scrimp.transfer.row_cache import LAST, LastAnswers, RowCache


def test_known_rows_are_looked_up_and_the_rest_computed() -> None:
    asked: list[int] = []

    def function(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        return np.stack([x.sum(axis=1), x[:, 0]], axis=1)

    memory = RowCache(function)
    x = np.random.default_rng(0).random((9, 3))
    for rows in ([0, 1, 2], [2, 3, 2, 0], [8, 7, 1, 4, 5, 6]):
        assert np.array_equal(
            memory(x[rows]), np.stack([x[rows].sum(axis=1), x[rows][:, 0]], axis=1)
        )
    assert asked == [3, 1, 5]
    assert memory(x[:0]).shape == (0, 2)


def test_what_is_too_much_is_forgotten_without_changing_anything(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(row_cache, "MOST", 10)
    memory = RowCache(lambda x: 2.0 * x[:, :1])
    x = np.random.default_rng(0).random((40, 2))
    for start in (0, 5, 12, 3, 20):
        assert np.array_equal(memory(x[start : start + 8]), 2.0 * x[start : start + 8, :1])


def test_the_last_answers_are_kept_and_are_nobody_elses() -> None:
    asked: list[int] = []

    def function(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        return x.sum(axis=1, keepdims=True)

    last = LastAnswers(function)
    first = np.arange(6.0).reshape(3, 2)
    found = last(first)
    found += 1.0  # what the caller does with an answer stays with the caller
    assert last(first.copy())[:, 0].tolist() == [1.0, 5.0, 9.0] and asked == [3]
    first[0] = 7.0  # and what becomes of the question
    assert last(first)[0, 0] == 14.0 and asked == [3, 3]
    for size in range(4, 4 + LAST):
        last(np.zeros((size, 2)))
    last(first)
    assert asked == [3, 3, *range(4, 4 + LAST), 3]
