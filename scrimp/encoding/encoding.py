"""Configurations as rows of a unit cube, one column per searched parameter, and back.

    Float        a continuous column
    Int, Ordinal, Float with a step
                 a discrete column that lists its encoded values; with more than 1,000 values it is
                 continuous, and decoding rounds to the nearest
    Categorical  a categorical column with the values i / (k - 1)
    Constant     no column

A parameter that a configuration does not have holds 0.5 in its row. Decoding always gives valid
configurations, and in a pool the nearest member.

    encoding = Encoding(space)
    x = encoding.encode(configs)          # (n, d) in the unit cube
    encoding.decode(x) == configs         # floats up to rounding

*Guesses.* Users can guess a good value of a parameter, ``prior=(value, confidence)``. Together the
guesses are a density over encoded rows (`GuessDensity`), up to a constant:

    log density(x) = sum over guessed columns j that exist in x of
        -(x_j - guess_j)^2 / (2 width^2),  width = 0.1 / confidence        ordered columns: a normal bump
        log(0.95 c + (1 - 0.95 c) / k)  at the guess,
        log((1 - 0.95 c) / k)           elsewhere                          categorical columns of k choices

Medium confidence (0.5) is a width of a fifth of the range; even full confidence rules no choice out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.domain import ROW_TOLERANCE, Condition, Domain
from scrimp.errors import ConfigError
from scrimp.gp.columns import Column
from scrimp.json_values import Config, Scalar
from scrimp.space.parameter import MAX_VALUES_OF_PARENT, Categorical, Constant
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Pool, Space

Array = NDArray[np.float64]

WIDTH_AT_FULL_CONFIDENCE = 0.1
"""Standard deviation of the bump around a sure guess, as a share of the range (convention)."""

WEIGHT_AT_FULL_CONFIDENCE = 0.95
"""Probability of a guessed choice at full confidence; all choices share the rest (convention)."""


@dataclass(frozen=True)
class Encoding:
    """``space`` as a unit cube."""

    space: Space

    @cached_property
    def dimension(self) -> int:
        """The number of columns d."""
        return len(self.space.searched)

    def encode(self, configs: Sequence[Mapping[str, Scalar]]) -> Array:
        """Return rows (n, d) of the unit cube; `ConfigError` for an invalid configuration."""
        try:
            x = self.space.to_units(configs)
        except (KeyError, TypeError, ValueError):
            # Not in normal form, or invalid: validation below finds out.
            x = np.full((len(configs), self.dimension), np.nan)
        if not ((x >= 0.0) & (x <= 1.0)).all():
            x = self.space.to_units([self.space.validate(config) for config in configs])
        return np.clip(x, 0.0, 1.0)

    def decode(self, x: Array) -> list[Config]:
        """Return valid configurations for rows (n, d), clipped to the cube; NaN is an error."""
        x = np.asarray(x, dtype=float)
        if x.ndim != 2 or x.shape[1] != self.dimension:
            raise ConfigError(f"rows have the shape {x.shape}; they must be (n, {self.dimension})")
        if np.isnan(x).any():
            row = int(np.argmax(np.isnan(x).any(axis=1)))
            raise ConfigError(f"row {row} has NaN; rows must lie in the unit cube")
        return self.space.from_units(np.clip(x, 0.0, 1.0))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The values that each column may hold."""
        return tuple(_column(self.space[name]) for name in self.space.searched)

    @cached_property
    def domain(self) -> Domain:
        """The search space of acquisitions: columns, their conditions, and the rows of a pool."""
        column = {name: place for place, name in enumerate(self.space.searched)}
        conditions = []
        for child, needs in self.space.conditions.implied.items():
            for ancestor, identities in needs.items() if child in column else ():
                parameter = self.space[ancestor]
                # A constant has no column, and exists whenever its own parents allow it.
                if not isinstance(parameter, Constant):
                    values = sorted(parameter.to_units([v for _, v in identities]).tolist())
                    conditions.append(Condition(column[child], column[ancestor], tuple(values)))
        pool = self.space.units if isinstance(self.space, Pool) else None
        return Domain(self.columns, tuple(conditions), pool)

    @cached_property
    def guesses(self) -> "GuessDensity | None":
        """The density of the user's guesses; None if no parameter has one."""
        found = []
        for column, name in enumerate(self.space.searched):
            prior = self.space[name].prior
            if prior is not None:
                found.append((column, self.space[name].to_unit(prior[0]), float(prior[1])))
        return GuessDensity(self.domain, tuple(found)) if found else None


def _column(parameter: Parameter) -> Column:
    if parameter.size > MAX_VALUES_OF_PARENT:
        return Column()
    values = parameter.to_units(parameter.grid or ())
    return Column(tuple(values.tolist()), ordered=not isinstance(parameter, Categorical))


@lru_cache(maxsize=64)
def encoding_of(space: Space) -> Encoding:
    """Return the encoding of a space, built once."""
    return Encoding(space)


@dataclass(frozen=True)
class GuessDensity:
    """The user's guesses as a density over encoded rows: (column, encoded guess, confidence)."""

    domain: Domain
    guesses: tuple[tuple[int, float, float], ...]

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """Return the log density (m,) of rows (m, d), and its gradient (m, d)."""
        value, gradient = np.zeros(len(x)), np.zeros_like(x)
        active = self.domain.active(x)
        for column, guess, confidence in self.guesses:
            here = active[:, column]
            gap = x[:, column] - guess
            if self.domain.columns[column].ordered:
                precision = (confidence / WIDTH_AT_FULL_CONFIDENCE) ** 2
                value -= here * 0.5 * precision * gap**2
                gradient[:, column] = here * -precision * gap
            else:
                at_guess = WEIGHT_AT_FULL_CONFIDENCE * confidence
                even = (1.0 - at_guess) / len(self.domain.columns[column].values or ())
                chance = np.where(np.abs(gap) <= ROW_TOLERANCE, at_guess + even, even)
                value += here * np.log(chance)
        return value, gradient
