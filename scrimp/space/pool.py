"""A space of which only a finite list of configurations may be tried: the rows of a table, or a user's own list.

    pool = Pool(space, [{"lr": 0.1}, {"lr": 0.01}])
    pool.sample(2, rng)              # both, in random order: draws are without replacement
    pool.from_units(u)               # the nearest members

A Pool is a Space: whatever takes a space takes a pool. Only members are valid.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import ConfigError, SpaceError
from scrimp.space.parameter import Categorical
from scrimp.space.space import Config, Space

__all__ = ["Pool"]


class Pool(Space):
    """``configs``, each valid in ``space`` and none twice, are all there is to try."""

    def __init__(self, space: Space, configs: Iterable[Mapping[str, Any]], /) -> None:
        super().__init__(space.parameters)
        members: list[Config] = []
        rows: dict[Any, int] = {}
        for row, config in enumerate(configs):
            try:
                members.append(super().validate(config))
            except ConfigError as error:
                raise SpaceError(f"configuration {row} of the pool does not fit its space: {error}") from None
            first = rows.setdefault(self.key(members[-1]), row)
            if first != row:
                raise SpaceError(
                    f"configurations {first} and {row} of the pool are both {members[-1]!r}; each may be listed once"
                )
        if not members:
            raise SpaceError("the pool has no configurations; it must have at least one")
        self._rows = rows
        self._members = tuple(members)

    @property
    def configs(self) -> tuple[Config, ...]:
        """The members, in the order in which they were given."""
        return self._members

    def index(self, config: Mapping[str, Any]) -> int:
        """The row of ``config`` in `configs`; `ConfigError` when it is no member."""
        normal = super().validate(config)
        row = self._rows.get(self.key(normal))
        if row is None:
            raise ConfigError(
                f"the configuration {normal!r} is not in the pool of {len(self._members)}; only its members may be tried"
            )
        return row

    def validate(self, config: Mapping[str, Any]) -> Config:
        """The member that ``config`` is; `ConfigError` when it is none."""
        return dict(self._members[self.index(config)])

    def sample(self, count: int, rng: np.random.Generator) -> list[Config]:
        """``count`` different members at random."""
        if count > len(self._members):
            raise ConfigError(
                f"{count} configurations asked of a pool of {len(self._members)}; draws are without replacement"
            )
        return [dict(self._members[row]) for row in rng.choice(len(self._members), count, replace=False)]

    @property
    def size(self) -> float:
        """How many members there are."""
        return len(self._members)

    @cached_property
    def units(self) -> NDArray[np.float64]:
        """The members in the unit cube (n, d)."""
        return self.to_units(self._members)

    def nearest(self, units: NDArray[np.float64], rows: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """The row of the nearest member for each place (m, d), among ``rows`` only where given.

        Distance is Euclidean in the unit cube; choices of a categorical parameter are all at distance 1.
        """
        members = self.units if rows is None else self.units[rows]
        apart = np.array([isinstance(self[name], Categorical) for name in self.searched], dtype=bool)
        found = np.empty(len(units), dtype=np.int64)
        for place, unit in enumerate(self._snapped(units)):
            gap = np.abs(members - unit)
            gap[:, apart] = gap[:, apart] > 0
            found[place] = np.argmin(np.einsum("nd,nd->n", gap, gap))
        return found if rows is None else rows[found]

    def _snapped(self, units: NDArray[np.float64]) -> NDArray[np.float64]:
        """``units`` with legal values on categorical axes, so that equality there means the same choice."""
        snapped = np.array(units, dtype=float)
        for column, name in enumerate(self.searched):
            if isinstance(self[name], Categorical):
                snapped[:, column] = self[name].to_units(self[name].from_units(units[:, column]))
        return snapped

    def from_units(self, units: NDArray[np.float64]) -> list[Config]:
        """The members nearest to places (m, d) of the unit cube."""
        return [dict(self._members[row]) for row in self.nearest(units)]

    def to_json(self) -> dict[str, Any]:
        """A plain JSON form; `Space.from_json` restores it."""
        return {**super().to_json(), "pool": [dict(config) for config in self._members]}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> "Pool":
        """The pool that `to_json` wrote."""
        return Pool(Space.from_json({"parameters": record["parameters"]}), record["pool"])

    def __repr__(self) -> str:
        return f"Pool({super().__repr__()}, {len(self._members)} configurations)"
