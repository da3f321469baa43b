"""The search space: named parameters, some of them conditional.

    space = Space(
        lr=Float(1e-5, 1e-1, log=True),
        optimizer=Categorical(["adamw", "sgd"]),
        momentum=Float(0.0, 0.99, when={"optimizer": "sgd"}),
        batch=32,                                                # a constant, never searched
    )
    space.validate({"lr": 0.01, "optimizer": "adamw"})           # with batch=32, without momentum

A configuration is a plain dict with exactly the parameters that exist in it. A space is a mapping
of names to parameters, in the order of declaration. `to_units` maps configurations to a unit cube
with one axis per searched parameter, and `from_units` maps any place of the cube to a valid
configuration.

A `Pool` is a finite list of configurations of a space, such as the rows of a table: draws are
without replacement, and `from_units` gives the nearest members.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import ConfigError, SpaceError
from scrimp.json_values import Config, Json, JsonObject, Scalar
from scrimp.space.conditions import Conditions, Identities, draw_allowed, nearest
from scrimp.space.config_class import parameters_of
from scrimp.space.html_table import html_table, space_rows
from scrimp.space.parameter import (
    Categorical,
    Constant,
    Float,
    Steps,
    as_parameter,
    bounded,
    parameter_from_json,
)
from scrimp.space.parameter_contract import Parameter, identity


class Space(Mapping[str, Parameter]):
    """Named parameters.

    Args:
        parameters: Parameters by name, for names that are not identifiers: ``Space({"weight-decay":
            Float(0, 1)})``.
        named: Parameters as keywords: ``Space(lr=Float(0, 1), batch=32)``; a plain value is a constant.
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter | Scalar] | None = None,
        /,
        **named: Parameter | Scalar,
    ) -> None:
        both = {**(parameters or {}), **named}
        if not both:
            raise SpaceError(
                "the space has no parameters; give at least one, such as lr=scrimp.Float(1e-5,"
                " 1e-1, log=True)"
            )
        self.parameters: Mapping[str, Parameter] = {
            name: as_parameter(name, value) for name, value in both.items()
        }
        """Names to parameters, in the order of declaration. Do not change it."""
        self.conditions = Conditions.of(self.parameters)
        """The conditions under which parameters exist."""

    @staticmethod
    def of(settings: type) -> "Space":
        """Return the space of the annotated fields of a dataclass or a pydantic model."""
        return Space(parameters_of(settings))

    @cached_property
    def searched(self) -> tuple[str, ...]:
        """The parameters except constants: the axes of the unit cube, in order."""
        return tuple(name for name, item in self.items() if not isinstance(item, Constant))

    @property
    def defaults(self) -> Config:
        """The default of each parameter that has one."""
        return {name: item.default for name, item in self.items() if item.default is not None}

    def __getitem__(self, name: str) -> Parameter:
        return self.parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parameters)

    def __len__(self) -> int:
        return len(self.parameters)

    def __repr__(self) -> str:
        if all(name.isidentifier() for name in self):
            return f"Space({', '.join(f'{name}={item!r}' for name, item in self.items())})"
        return f"Space({self.parameters!r})"

    def _repr_html_(self) -> str:
        """The parameters as a table, for notebooks."""
        return html_table(["parameter", "kind", "range", ""], space_rows(self.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and (self is other or self._identity == other._identity)

    def __hash__(self) -> int:
        return hash(self._identity)

    @cached_property
    def _identity(self) -> str:
        return json.dumps(self.to_json())

    def validate(self, config: Mapping[str, Json]) -> Config:
        """Return ``config`` in its normal form: builtin types, order of declaration, defaults and
        constants filled in.

        `ConfigError` has the parameter, the value and the rule: an unknown name, an illegal value,
        a missing parameter without a default, or one that does not exist given the others.
        """
        if not isinstance(config, Mapping):
            raise ConfigError(
                f"the configuration is {config!r}; it must map parameter names to values"
            )
        for name in config:
            if name not in self.parameters:
                raise ConfigError(
                    f"parameter {name!r} with value {config[name]!r} is not in the"
                    f" space{nearest(name, self.parameters)}"
                )
        known: Config = {}
        for name in self.conditions.order:
            if not self.conditions.exists(name, known):
                if name in config:
                    raise ConfigError(self.conditions.surplus(name, config[name], known))
                continue
            parameter = self.parameters[name]
            if name in config:
                known[name] = parameter.validate(name, config[name])
            elif isinstance(parameter, Constant):
                known[name] = parameter.value
            elif parameter.default is not None:
                known[name] = parameter.default
            else:
                raise ConfigError(
                    f"parameter {name!r} is missing and has no default; it must be given:"
                    f" {parameter!r}"
                )
        return {name: known[name] for name in self.parameters if name in known}

    def contains(self, config: Mapping[str, Json]) -> bool:
        """True if `validate` accepts ``config``."""
        try:
            self.validate(config)
        except (ConfigError, TypeError, OverflowError):
            # A TypeError comes from values that are not hashable, such as lists.
            return False
        return True

    def active(self, config: Mapping[str, Json]) -> tuple[str, ...]:
        """Return the parameters that exist given ``config``, in the order of declaration."""
        known: Config = {}
        for name in self.conditions.order:
            if self.conditions.exists(name, known):
                parameter = self.parameters[name]
                fallback = parameter.value if isinstance(parameter, Constant) else parameter.default
                known[name] = config.get(name, fallback)
        return tuple(name for name in self.parameters if name in known)

    def key(self, config: Mapping[str, object]) -> tuple[object, ...]:
        """Return a hashable key of a valid configuration; equal configurations have equal keys."""
        if not self._ambiguous:
            return tuple(map(config.get, self.parameters))
        return tuple(identity(config[name]) if name in config else None for name in self)

    @cached_property
    def _ambiguous(self) -> bool:
        """True if different values may be equal in Python, such as 1 and True, or a value may be
        None, which is also the key of an absent parameter."""
        grids = [parameter.grid or () for parameter in self.values()]
        lists = [values for values in grids if not isinstance(values, range | Steps)]
        return any(None in values or len(set(values)) < len(values) for values in lists)

    def sample(self, count: int, rng: np.random.Generator) -> list[Config]:
        """Draw ``count`` configurations, uniform in the unit cube."""
        return self.from_units(rng.random((count, len(self.searched))))

    def complete(self, config: Mapping[str, Json], rng: np.random.Generator) -> Config:
        """Complete a partial configuration: defaults first, the rest drawn at random. A missing
        parent is drawn among the values for which the given parameters exist."""
        given = {
            name: self[name].validate(name, value) if name in self else value
            for name, value in config.items()
        }
        needs: dict[str, Identities] = {}
        for name in config:
            for ancestor, values in self.conditions.implied.get(name, {}).items():
                needs[ancestor] = needs.get(ancestor, values) & values
        for name in self.conditions.order:
            if name not in given and self.conditions.exists(name, given):
                given[name] = draw_allowed(self[name], needs.get(name), rng)
        return self.validate(given)

    @cached_property
    def size(self) -> float:
        """The number of configurations; infinite if a parameter is continuous."""
        return self.conditions.count(self.parameters)

    def to_units(self, configs: Sequence[Mapping[str, Scalar]]) -> NDArray[np.float64]:
        """Return the places (n, d) of valid configurations; 0.5 for parameters that do not exist."""
        units = np.full((len(configs), len(self.searched)), 0.5)
        for column, name in enumerate(self.searched):
            if name in self.conditions.allowed:
                rows = [row for row, config in enumerate(configs) if name in config]
                values = [configs[row][name] for row in rows]
                units[rows, column] = self.parameters[name].to_units(values)
            else:
                values = [config[name] for config in configs]
                units[:, column] = self.parameters[name].to_units(values)
        return units

    def from_units(self, units: NDArray[np.float64]) -> list[Config]:
        """Return the configurations at places (n, d) of the unit cube; places outside are clipped."""
        names, (even, axes, low, high) = self.parameters, self._even
        places = units[:, axes]
        together = bounded(low + places * (high - low), places, low, high)
        found = dict(zip(even, together.T.tolist(), strict=True))
        columns = [
            found[name]
            if name in found
            else parameter.from_units(units[:, self._axis[name]] if name in self._axis else units)
            for name, parameter in names.items()
        ]
        full = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        for config in full if self.conditions.allowed else ():
            for name in self.conditions.order:
                if name in self.conditions.allowed and not self.conditions.exists(name, config):
                    del config[name]
        return full

    @cached_property
    def _even(self) -> tuple[list[str], list[int], NDArray[np.float64], NDArray[np.float64]]:
        """The continuous parameters on an even scale: names, columns, bounds; computed together."""
        even = {
            name: own
            for name, own in self.items()
            if isinstance(own, Float) and own.grid is None and not own.log
        }
        low, high = (
            np.array([getattr(own, end) for own in even.values()]) for end in ("low", "high")
        )
        return list(even), [self._axis[name] for name in even], low, high

    @cached_property
    def _axis(self) -> dict[str, int]:
        return {name: column for column, name in enumerate(self.searched)}

    def to_json(self) -> dict[str, Json]:
        """Return a plain JSON form; `from_json` restores it."""
        return {"parameters": [{"name": name, **item.to_json()} for name, item in self.items()]}

    @staticmethod
    def from_json(record: JsonObject) -> "Space":
        """Return the space that `to_json` wrote."""
        listed = record.get("parameters") if isinstance(record, Mapping) else None
        parameters: dict[str, Parameter] = {}
        for item in listed if isinstance(listed, list | tuple) else [None]:
            name = item.get("name") if isinstance(item, Mapping) else None
            if not isinstance(item, Mapping) or not isinstance(name, str):
                raise SpaceError(
                    f"the record {record!r} is not a space; it must list parameters, each with a name"
                )
            settings = {key: value for key, value in item.items() if key != "name"}
            parameters[name] = parameter_from_json(name, settings)
        space = Space(parameters)
        if "pool" not in record:
            return space
        # The pool checks each configuration.
        return Pool(space, cast("Sequence[JsonObject]", record["pool"]))


class Pool(Space):
    """The space of a finite list: ``configs`` are valid in ``space`` and different."""

    def __init__(self, space: Space, configs: Iterable[Mapping[str, Json]], /) -> None:
        super().__init__(space.parameters)
        members: list[Config] = []
        rows: dict[object, int] = {}
        for row, config in enumerate(configs):
            try:
                members.append(super().validate(config))
            except ConfigError as error:
                raise SpaceError(
                    f"configuration {row} of the pool is not in its space: {error}"
                ) from None
            first = rows.setdefault(self.key(members[-1]), row)
            if first != row:
                raise SpaceError(
                    f"configurations {first} and {row} of the pool are both {members[-1]!r}; each"
                    " may be listed once"
                )
        if not members:
            raise SpaceError("the pool has no configurations; it must have at least one")
        self._rows = rows
        self.configs = tuple(members)
        """The members, in the order given."""

    def index(self, config: Mapping[str, Json]) -> int:
        """Return the row of ``config`` in `configs`; raise `ConfigError` if it is not a member."""
        normal = super().validate(config)
        row = self._rows.get(self.key(normal))
        if row is None:
            raise ConfigError(
                f"the configuration {normal!r} is not in the pool of {len(self.configs)}; only its"
                " members may be tried"
            )
        return row

    def validate(self, config: Mapping[str, Json]) -> Config:
        """Return ``config`` as a member; raise `ConfigError` if it is not one."""
        return dict(self.configs[self.index(config)])

    def sample(self, count: int, rng: np.random.Generator) -> list[Config]:
        """Draw ``count`` different members."""
        if count > len(self.configs):
            raise ConfigError(
                f"{count} configurations requested of a pool of {len(self.configs)}; draws are"
                " without replacement"
            )
        rows = rng.choice(len(self.configs), count, replace=False)
        return [dict(self.configs[row]) for row in rows]

    def complete(self, config: Mapping[str, Json], rng: np.random.Generator) -> Config:
        """Draw a member that agrees with a partial configuration; raise `ConfigError` if none does."""
        given = {
            (name, identity(self[name].validate(name, value)))
            for name, value in config.items()
            if name in self
        }
        fitting = [m for m in self.configs if given <= {(n, identity(v)) for n, v in m.items()}]
        if not fitting or len(given) < len(config):
            # Raises the right error.
            return self.validate(config)
        return dict(fitting[rng.integers(len(fitting))])

    @property
    def size(self) -> float:
        """The number of members."""
        return len(self.configs)

    @cached_property
    def units(self) -> NDArray[np.float64]:
        """The members in the unit cube (n, d)."""
        return self.to_units(self.configs)

    def nearest(
        self, units: NDArray[np.float64], rows: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """Return the row of the member nearest to each place (m, d), among ``rows`` if given."""
        apart = np.array([isinstance(self[name], Categorical) for name in self.searched], bool)
        places = self.to_units(super().from_units(units))
        members = self.units if rows is None else self.units[rows]
        found = nearest_rows(places, members, apart)
        return found if rows is None else rows[found]

    def from_units(self, units: NDArray[np.float64]) -> list[Config]:
        """Return the members nearest to places (m, d) of the unit cube."""
        return [dict(self.configs[row]) for row in self.nearest(units)]

    def to_json(self) -> dict[str, Json]:
        """Return a plain JSON form; `Space.from_json` restores it."""
        return {**super().to_json(), "pool": [dict(config) for config in self.configs]}

    def __repr__(self) -> str:
        return f"Pool({super().__repr__()}, {len(self.configs)} configurations)"


def nearest_rows(
    places: NDArray[np.float64], rows: NDArray[np.float64], apart: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the index of the row nearest to each of ``places`` (m, d) among ``rows`` (n, d); the
    first of equals.

    The distance is Euclidean, with 1 between unequal values on the ``apart`` axes (d,), the
    categorical ones.
    """
    found = np.empty(len(places), dtype=np.int64)
    for number, place in enumerate(places):
        gap = np.abs(rows - place)
        gap[:, apart] = gap[:, apart] > 0
        found[number] = np.argmin(np.einsum("nd,nd->n", gap, gap))
    return found
