"""The bridge between configurations and arrays: a `Space` as a unit cube with one column per
searched parameter.

    Float        a continuous column
    Int, Ordinal, Float with a step
                 a discrete column that lists its encoded values; with more than 1,000 values it is continuous, and
                 decoding snaps it
    Categorical  a categorical column with the values i/(k-1)
    Constant     no column

A parameter that does not exist in a configuration holds 0.5 in its row. Decoding gives valid
configurations whatever the row, and for a pool its nearest member.

    encoding = Encoding(space)
    x = encoding.encode(configs)          # (n, d) in the unit cube
    encoding.decode(x) == configs         # floats up to rounding
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.domain import Condition, Domain
from scrimp.errors import ConfigError
from scrimp.gp.columns import Column
from scrimp.json_values import Scalar
from scrimp.space.conditions import Identities
from scrimp.space.parameter import MANY_VALUES, Categorical, Constant
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Config, Pool, Space

__all__ = ["Encoding", "encoding_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Encoding:
    """``space`` as the unit cube of dimension `dimension`."""

    space: Space

    @property
    def dimension(self) -> int:
        """The number of columns d."""
        return len(self.space.searched)

    def encode(self, configs: Sequence[Mapping[str, Scalar]]) -> Array:
        """Rows (n, d) of the unit cube; `ConfigError` for a configuration that is not valid."""
        try:
            x = self.space.to_units(configs)
        except (KeyError, TypeError, ValueError):  # not in normal form, or wrong: validation tells
            x = np.full((len(configs), self.dimension), np.nan)
        if not ((x >= 0.0) & (x <= 1.0)).all():
            x = self.space.to_units([self.space.validate(config) for config in configs])
        return np.clip(x, 0.0, 1.0)

    def decode(self, x: Array) -> list[Config]:
        """Valid configurations for rows (n, d); what lies outside the cube is clipped, NaN is
        refused."""
        x = np.asarray(x, dtype=float)
        if x.ndim != 2 or x.shape[1] != self.dimension:
            raise ConfigError(
                f"rows of shape {x.shape} cannot be decoded; they must be (n, {self.dimension})"
            )
        if np.isnan(x).any():
            raise ConfigError(
                f"row {int(np.argmax(np.isnan(x).any(axis=1)))} has NaN; rows must lie in the unit"
                " cube"
            )
        return self.space.from_units(np.clip(x, 0.0, 1.0))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """What each column may hold."""
        return tuple(_column(self.space[name]) for name in self.space.searched)

    @cached_property
    def domain(self) -> Domain:
        """Where acquisitions are maximised: columns, conditions, and the rows of the pool where the
        space is one."""
        pool = self.space.units if isinstance(self.space, Pool) else None
        return Domain(self.columns, tuple(self._conditions()), pool)

    def _conditions(self) -> Iterator[Condition]:
        """The conditions between columns; a constant between two of them is skipped, for it exists
        with its parents."""
        column = {name: place for place, name in enumerate(self.space.searched)}
        for child, needs in self.space.conditions.implied.items():
            for ancestor, identities in needs.items() if child in column else ():
                parameter = self.space[ancestor]
                if not isinstance(parameter, Constant):
                    yield Condition(
                        column[child], column[ancestor], _encoded(parameter, identities)
                    )


def _column(parameter: Parameter) -> Column:
    if parameter.size > MANY_VALUES:
        return Column()
    values = parameter.to_units(parameter.grid or ())
    return Column(tuple(values.tolist()), ordered=not isinstance(parameter, Categorical))


def _encoded(parameter: Parameter, identities: Identities) -> tuple[float, ...]:
    return tuple(sorted(parameter.to_units([value for _, value in identities]).tolist()))


@lru_cache(maxsize=64)
def encoding_of(space: Space) -> Encoding:
    """The encoding of a space, made once."""
    return Encoding(space)
