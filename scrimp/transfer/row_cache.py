"""A function of rows that is worked out once per row: candidates of a pool are asked about at every
decision. And one that remembers its last few answers: in a continuous space the parts of a decision
ask about the same candidates, and every step of a search about the same evaluations.

means = RowCache(lambda x: models.mean(x))
means(x)                                        # (m, k); rows seen before are looked up
"""

from collections.abc import Callable

import numpy as np

from scrimp.surrogates.surrogate import Array

__all__ = ["LastAnswers", "RowCache"]

MOST = 20_000
LAST = 4


class RowCache:
    """``function`` maps rows (m, d) to values (m, k), each row on its own. Forgetting changes the
    time it takes, nothing else."""

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self._function = function
        self._place: dict[bytes, int] = {}
        self._values: Array = np.zeros((0, 0))

    def __call__(self, x: Array) -> Array:
        keys = [row.tobytes() for row in np.ascontiguousarray(x)]
        fresh = {key: row for row, key in enumerate(keys) if key not in self._place}
        if len(self._place) + len(fresh) > MOST:
            self._place.clear()
            fresh = {key: row for row, key in enumerate(keys)}
        if fresh:
            self._add(list(fresh), self._function(x[list(fresh.values())]))
        return self._values[[self._place[key] for key in keys]]

    def _add(self, keys: list[bytes], values: Array) -> None:
        count = len(self._place)
        if count + len(keys) > len(self._values):
            grown = np.empty((2 * (count + len(keys)), values.shape[1]))
            if count:
                grown[:count] = self._values[:count]
            self._values = grown
        self._values[count : count + len(keys)] = values
        self._place.update(zip(keys, range(count, count + len(keys)), strict=True))


class LastAnswers:
    """``function`` of rows (m, d), with its last answers to the very same rows: to the last bit
    what it would answer again."""

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self._function = function
        self._last: list[tuple[Array, Array]] = []

    def __call__(self, x: Array) -> Array:
        for place, (rows, values) in enumerate(self._last):
            if np.array_equal(rows, x):
                self._last.insert(0, self._last.pop(place))
                return values.copy()
        values = self._function(x)
        self._last = [(x.copy(), values), *self._last[: LAST - 1]]
        return values.copy()
