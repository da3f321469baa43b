"""From columns to features: one vector space in which plain Euclidean distance means the right
thing for every column.

A continuous or discrete column is one feature, its value. A categorical column with k values
becomes k features, its one-hot vector divided by sqrt(2), so that two rows that differ in it are at
squared distance 1 and equal ones at 0. All features of one column share that column's length-scale,
hence categories live inside the same scaled distance as numbers:

    r^2 = sum over numbers (x_k - x'_k)^2 / l_k^2  +  sum over categories [x_k != x'_k] / l_k^2
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scrimp.gp.columns import Column

__all__ = ["Features"]

Array = NDArray[np.float64]


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
        """Whether no column is categorical: then the features are the columns."""
        return all(column.ordered for column in self.columns)

    @cached_property
    def owner(self) -> NDArray[np.intp]:
        """Which column each feature belongs to, (f,)."""
        widths = [1 if column.ordered else len(column.values or ()) for column in self.columns]
        return np.repeat(np.arange(len(self.columns)), widths)

    @cached_property
    def _numeric(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Features that are a column's own value, and those columns."""
        ordered = np.array([column.ordered for column in self.columns], dtype=bool)
        features = (
            np.flatnonzero(ordered[self.owner]) if len(self.owner) else np.empty(0, dtype=np.intp)
        )
        return features, np.flatnonzero(ordered)

    @cached_property
    def _levels(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
        """Features that mark a category, their columns, and the value each marks."""
        numeric = set(self._numeric[0].tolist())
        marks = np.array([i for i in range(len(self.owner)) if i not in numeric], dtype=np.intp)
        values = [
            value for column in self.columns if not column.ordered for value in column.values or ()
        ]
        return marks, self.owner[marks], np.array(values, dtype=np.float64)

    def __call__(self, x: Array) -> Array:
        """Features (n, f) of rows x (n, d). A category's value is recognised by the nearest
        level."""
        if self.plain:
            return x
        z = np.empty((len(x), len(self.owner)))
        features, columns = self._numeric
        z[:, features] = x[:, columns]
        marks, owners, values = self._levels
        # levels are i / (k - 1), so half of that spacing tells neighbours apart whatever rounding
        # did to them
        half = 0.5 / np.maximum(np.bincount(self.owner)[owners] - 1, 1)
        z[:, marks] = np.where(np.abs(x[:, owners] - values) < half, np.sqrt(0.5), 0.0)
        return z

    def pull(self, d_features: Array) -> Array:
        """The gradient of the columns (n, d) from that of the features (n, f); categories have
        none."""
        if self.plain:
            return d_features
        features, columns = self._numeric
        d_x = np.zeros((len(d_features), len(self.columns)))
        d_x[:, columns] = d_features[:, features]
        return d_x

    def spread(self, per_column: Array) -> Array:
        """One value per column (d,) to one per feature (f,)."""
        return per_column if self.plain else per_column[self.owner]

    def gather(self, per_feature: Array) -> Array:
        """Sums over the features of each column: (f,) to (d,)."""
        if self.plain:
            return per_feature
        return np.bincount(self.owner, weights=per_feature, minlength=len(self.columns)).astype(
            np.float64, copy=False
        )
