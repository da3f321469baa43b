"""The domain of an acquisition: the legal rows of the unit cube.

A row is legal if every discrete and categorical column has one of its values, every continuous
column lies in [0, 1], and every inactive column is `INACTIVE_VALUE`. All methods return legal rows, given
legal rows or unit numbers.

    domain = Domain((Column(), Column((0.0, 1.0), ordered=False), Column()), (Condition(2, parent=1, values=(1.0,)),))
    domain.sample(256, rng)                    # column 2 is 0.5 wherever column 1 is 0
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import SpaceError
from scrimp.gp.columns import Column
from scrimp.sobol import sobol_points
from scrimp.surrogates.surrogate import Array

INACTIVE_VALUE = 0.5
"""The value of a column while its conditions switch it off."""

ROW_TOLERANCE = 1e-6
"""Rows that differ by no more than this in every column are the same configuration."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Condition:
    """``column`` is active only where its ``parent`` column is active and has one of ``values``."""

    column: int
    parent: int
    values: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Domain:
    """The legal rows. A column with several conditions needs all of them; conditions on a column come
    before those on its children. With a ``pool`` (m, d) only its rows are legal."""

    columns: tuple[Column, ...]
    conditions: tuple[Condition, ...] = ()
    pool: Array | None = None

    @property
    def dimension(self) -> int:
        """The number of columns d."""
        return len(self.columns)

    @cached_property
    def continuous(self) -> Mask:
        """True for continuous columns (d,)."""
        return np.array([column.values is None for column in self.columns])

    @cached_property
    def parents(self) -> frozenset[int]:
        """The columns that switch others on and off."""
        return frozenset(c.parent for c in self.conditions)

    def active(self, x: Array) -> Mask:
        """True for the active columns of x (m, d), (m, d)."""
        on = np.ones(x.shape, dtype=bool)
        for c in self.conditions:
            on[:, c.column] &= on[:, c.parent] & np.isclose(
                x[:, c.parent, None], c.values, rtol=0.0, atol=ROW_TOLERANCE
            ).any(1)
        return on

    def free(self, x: Array) -> Mask:
        """True for the active continuous columns of x (m, d), which a gradient may move."""
        if not self.conditions:
            return np.broadcast_to(self.continuous, x.shape)
        return self.active(x) & self.continuous

    def from_unit(self, u: Array) -> Array:
        """Map uniform u (m, d) in [0, 1) to legal rows; discrete values are equally likely."""
        x = u.copy()
        for j, column in enumerate(self.columns):
            if column.values is not None:
                values = np.asarray(column.values)
                x[:, j] = values[np.minimum((u[:, j] * len(values)).astype(int), len(values) - 1)]
        return self._switch_off(x)

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """Return ``count`` legal rows: a shifted Sobol sequence, or rows of the pool, each once."""
        if self.pool is not None:
            return self.pool[rng.permutation(len(self.pool))[:count]]
        width = len(self.columns)
        return self.from_unit((_sobol(width, count) + rng.random(width)) % 1.0)

    def snap(self, x: Array) -> Array:
        """Return the legal rows nearest to x (m, d), column by column, or the nearest rows of the pool."""
        if self.pool is not None:
            return self.pool[nearest_in_pool(x, self.pool)]
        x = np.clip(x, 0.0, 1.0)
        for j, column in enumerate(self.columns):
            if column.values is not None:
                values = np.asarray(column.values)
                x[:, j] = values[np.abs(x[:, j, None] - values).argmin(axis=1)]
        return self._switch_off(x)

    def perturb(self, x: Array, widths: Array, rng: np.random.Generator) -> Array:
        """Return rows near x (m, d): normal steps of ``widths`` (m, d) or (d,) in ordered columns, a
        few categories redrawn."""
        moved = x + widths * rng.standard_normal(x.shape)
        # Reflected at the bounds, so that rows do not pile up there.
        moved = np.where(moved < 0.0, -moved, np.where(moved > 1.0, 2.0 - moved, moved))
        for j, column in enumerate(self.columns):
            if not column.ordered:
                redraw = rng.random(len(x)) < 1.0 / self.dimension
                drawn = rng.choice(np.asarray(column.values), len(x))
                moved[:, j] = np.where(redraw, drawn, x[:, j])
        return self.snap(self._switch_on(moved, self.active(x), rng))

    def moves(
        self, x: Array, rng: np.random.Generator, exhaustive: int = 16
    ) -> tuple[Array, NDArray[np.intp]]:
        """Return rows that differ from a row of x (m, d) in one discrete column, and the index of
        that row.

        A categorical column, or one with at most ``exhaustive`` values, takes every other value;
        others take those 1, 2, 4, ... places up and down. Columns that a move switches on are
        sampled, four times each.
        """
        on = self.active(x)
        rows, owners = [x[:0]], [np.zeros(0, dtype=np.intp)]
        for j, column in enumerate(self.columns):
            if column.values is None or not on[:, j].any():
                continue
            owner = np.flatnonzero(on[:, j])
            values, count = np.asarray(column.values), len(column.values)
            place = np.abs(x[owner, j, None] - values).argmin(axis=1)[:, None]
            if count <= exhaustive or not column.ordered:
                targets = np.broadcast_to(np.arange(count), (len(owner), count))
            else:
                steps = 2 ** np.arange(int(np.log2(count)) + 1)
                ends = np.broadcast_to([0, count - 1], (len(owner), 2))
                targets = np.concatenate([place - steps, place + steps, ends], axis=1)
            here, which = np.nonzero((targets != place) & (targets >= 0) & (targets < count))
            repeats = 4 if j in self.parents else 1
            owner = np.repeat(owner[here], repeats)
            there = np.repeat(values[targets[here, which]], repeats)
            moved = x[owner]
            moved[:, j] = there
            rows.append(moved)
            owners.append(owner)
        moved, owner = np.concatenate(rows), np.concatenate(owners)
        return self._switch_off(self._switch_on(moved, on[owner], rng)), owner

    def size(self) -> float:
        """Return an upper bound of the number of legal rows; infinite with a continuous column."""
        if self.pool is not None:
            return float(len(self.pool))
        if self.continuous.any():
            return np.inf
        return float(math.prod(len(column.values or ()) for column in self.columns))

    def rows(self) -> Array:
        """Return all legal rows of a finite domain, each once."""
        if self.pool is not None:
            return self.pool
        if self.continuous.any():
            raise SpaceError(
                "a domain with a continuous column has no list of rows: sample it instead"
            )
        grid = list(product(*(column.values or () for column in self.columns)))
        return np.unique(self._switch_off(np.array(grid)), axis=0)

    def _switch_off(self, x: Array) -> Array:
        return np.where(self.active(x), x, INACTIVE_VALUE) if self.conditions else x

    def _switch_on(self, x: Array, were_on: Mask, rng: np.random.Generator) -> Array:
        if not self.conditions:
            return x
        fresh = Domain(self.columns).from_unit(rng.random(x.shape))
        off = ~were_on
        # A column that becomes active may activate its own children.
        for _ in range(len(self.conditions)):
            x = np.where(off & self.active(x), fresh, x)
        return x


def nearest_in_pool(x: Array, pool: Array) -> NDArray[np.intp]:
    """Index of the first of the rows of ``pool`` (C, d) nearest to each row of x (m, d).

    A matrix product finds those that are nearest up to rounding; their exact distances are then
    compared, so that ties are broken by order and not by rounding.
    """
    sizes = (pool * pool).sum(axis=1)
    found = np.empty(len(x), dtype=np.intp)
    step = max(1, 4_000_000 // max(len(pool), 1))
    for start in range(0, len(x), step):
        rows = x[start : start + step]
        # Without the squares of the rows, which do not matter.
        roughly = sizes - 2.0 * rows @ pool.T
        near = roughly <= roughly.min(axis=1, keepdims=True) + 1e-9 * (1.0 + sizes.max())
        for place, row in enumerate(rows):
            close = np.flatnonzero(near[place])
            squares = ((row - pool[close]) ** 2).sum(axis=1)
            found[start + place] = close[squares.argmin()]
    return found


def contains_rows(x: Array, known: Array) -> Mask:
    """True for rows of x (m, d) that are among the rows ``known`` (n, d), up to `ROW_TOLERANCE` per column.

    Equal rows are equal in any projection: sorting one projection leaves few pairs to compare.
    """
    found = np.zeros(len(x), dtype=bool)
    if len(known) == 0 or len(x) == 0:
        return found
    direction = np.sqrt(2.0 + np.arange(x.shape[1]))
    slack = ROW_TOLERANCE * direction.sum()
    known_keys, keys = known @ direction, x @ direction
    order = np.argsort(known_keys)
    sorted_keys = known_keys[order]
    first, last = np.searchsorted(sorted_keys, [keys - slack, keys + slack])
    left = np.flatnonzero(last > first)
    while len(left):
        near = known[order[first[left]]]
        found[left] = (np.abs(near - x[left]) <= ROW_TOLERANCE).all(axis=1)
        first[left] += 1
        left = left[~found[left] & (first[left] < last[left])]
    return found


@lru_cache(maxsize=16)
def _sobol(dimension: int, count: int) -> Array:
    """The first ``count`` points of the Sobol sequence, not shifted."""
    points = sobol_points(dimension, count)
    points.setflags(write=False)
    return points
