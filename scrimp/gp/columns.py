"""Columns of an encoded input, and the features in which kernels measure distances.

An encoded configuration is a row of the unit cube. A *continuous* column may take any value in
[0, 1]. A *discrete* column may take the listed ``values`` only, and their distance matters
(integers, ordinals). A *categorical* column takes the values i / (k - 1), i < k, and only equality
matters.

`Features` maps rows to a space in which Euclidean distance is right for every column. A continuous
or discrete column is one feature, its value. A categorical column with k values becomes k features,
its one-hot vector divided by sqrt(2), so that rows that differ in it are at squared distance 1. All
features of a column share its length-scale:

    r^2 = sum over numbers (x_k - x'_k)^2 / l_k^2  +  sum over categories [x_k != x'_k] / l_k^2
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """One column of the encoded input.

    ``values``: the sorted values it may take, or None for a continuous column. ``ordered``: False
    for a categorical column, whose values are 0, 1/(k-1), ..., 1 (0 alone when k = 1). ``scale``:
    the length-scale that past studies predict along it; None for the usual prior.

    >>> Column().kind, Column((0.0, 0.5, 1.0)).kind, Column((0.0, 1.0), ordered=False).kind
    ('continuous', 'discrete', 'categorical')
    """

    values: tuple[float, ...] | None = None
    ordered: bool = True
    scale: float | None = None

    @property
    def kind(self) -> str:
        """'continuous', 'discrete' or 'categorical'."""
        if self.values is None:
            return "continuous"
        return "discrete" if self.ordered else "categorical"


@dataclass(frozen=True)
class Features:
    """The feature map of d columns.

    >>> two = Features((Column(), Column((0.0, 0.5, 1.0), ordered=False)))
    >>> z = two(np.array([[0.2, 0.0], [0.2, 1.0]]))
    >>> z.shape, float(((z[0] - z[1]) ** 2).sum().round(12))
    ((2, 4), 1.0)
    """

    columns: tuple[Column, ...]

    @cached_property
    def plain(self) -> bool:
        """True if the features are the columns: no categorical one has several values. (One with a
        single value is constant, so its only feature does not matter.)"""
        return len(self.owner) == len(self.columns)

    @cached_property
    def owner(self) -> NDArray[np.intp]:
        """The column of each feature, (f,)."""
        owner: list[int] = []
        for number, column in enumerate(self.columns):
            owner += [number] * (1 if column.ordered else len(column.values or ()))
        return np.array(owner, dtype=np.intp)

    @cached_property
    def _numeric(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Indices of the features that are values of a column, and of those columns."""
        ordered = np.array([column.ordered for column in self.columns], dtype=bool)
        return np.flatnonzero(ordered[self.owner]), np.flatnonzero(ordered)

    @cached_property
    def _levels(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
        """Indices of the one-hot features, their columns, and the category of each."""
        marks = np.setdiff1d(np.arange(len(self.owner)), self._numeric[0])
        categorical = [column for column in self.columns if not column.ordered]
        values = [value for column in categorical for value in column.values or ()]
        return marks, self.owner[marks], np.array(values, dtype=np.float64)

    def __call__(self, x: Array) -> Array:
        """Return the features (n, f) of rows x (n, d); a category is that of the nearest level."""
        if self.plain:
            return x
        z = np.empty((len(x), len(self.owner)))
        features, columns = self._numeric
        z[:, features] = x[:, columns]
        marks, owners, values = self._levels
        # Levels are i / (k - 1): half of that spacing tells neighbours apart despite rounding.
        half = 0.5 / np.maximum(np.bincount(self.owner)[owners] - 1, 1)
        z[:, marks] = np.where(np.abs(x[:, owners] - values) < half, np.sqrt(0.5), 0.0)
        return z

    def pull(self, d_features: Array) -> Array:
        """Map a gradient of the features (n, f) to the columns (n, d); zero for categories."""
        if self.plain:
            return d_features
        features, columns = self._numeric
        d_x = np.zeros((len(d_features), len(self.columns)))
        d_x[:, columns] = d_features[:, features]
        return d_x
