"""Folds of scikit-learn with fewer rows to train on: what a small grant of ``n_samples`` means."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator

__all__ = ["SubsampledFolds"]


@dataclass(frozen=True)
class SubsampledFolds:
    """Folds whose training part is cut to a share of its rows, the same rows whoever asks."""

    folds: "BaseCrossValidator"
    share: float
    seed: int | None

    def get_n_splits(self, *args: object, **params: object) -> int:
        """How many folds there are."""
        return int(self.folds.get_n_splits(*args, **params))

    def split(
        self, X: ArrayLike, y: ArrayLike | None = None, **params: object
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """The rows to train on, cut, and the rows to judge by, of each fold."""
        for number, (train, test) in enumerate(self.folds.split(X, y, **params)):
            order = np.random.default_rng([self.seed or 0, number]).permutation(train)
            yield order[: max(1, math.ceil(self.share * len(train)))], test
