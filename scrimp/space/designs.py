"""Configurations chosen before anything is known: a Sobol design and a full grid.

sobol_design(space, 16, rng)                       # 16 configurations that spread evenly
for config in grid_design(space, {"lr": 5}): ...   # every combination, floats at 5 places
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from scrimp.checks import is_whole
from scrimp.errors import SpaceError
from scrimp.json_values import Scalar
from scrimp.sobol import sobol_points
from scrimp.space.conditions import nearest
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Config, Pool, Space
from scrimp.space.values import identity

__all__ = ["grid_design", "sobol_design"]


def sobol_design(
    space: Space, count: int, rng: np.random.Generator, *, start: int = 0
) -> list[Config]:
    """Configurations number ``start`` to ``start + count - 1`` of a scrambled Sobol sequence.

    Equal states of ``rng`` give the same sequence, so a design can go on where it ended. A small
    discrete space, and a pool, of which it gives the nearest members, may repeat configurations.
    """
    return space.from_units(sobol_points(len(space.searched), count, rng, start=start))


def grid_design(
    space: Space, resolution: int | Mapping[str, int] | None = None
) -> Iterator[Config]:
    """Every combination of parameter values, each configuration once, lazily; the last parameter
    varies fastest.

    ``resolution``: at how many places a parameter is tried, evenly spaced in its own scale with
    both ends; one number for all, or by name. Discrete parameters that are not limited by it take
    all their values; a Float needs it. A pool gives its members.

        grid_design(Space(x=Float(0, 1)), 3)           # x = 0.0, then 0.5, then 1.0
    """
    if isinstance(space, Pool):
        return (dict(config) for config in space.configs)
    for name in resolution if isinstance(resolution, Mapping) else ():
        if name not in space:
            raise SpaceError(
                f"the resolution names parameter {name!r}, which is not in the"
                f" space{nearest(name, space)}"
            )
    places = {name: _places(name, space[name], _resolution(resolution, name)) for name in space}
    return _combinations(space, places, list(space.conditions.order), {})


def _resolution(resolution: int | Mapping[str, int] | None, name: str) -> int | None:
    return resolution.get(name) if isinstance(resolution, Mapping) else resolution


def _places(name: str, parameter: Parameter, count: int | None) -> Sequence[Scalar]:
    """The values at which a parameter is tried, in order and without repetition."""
    if count is not None and (not is_whole(count, 1)):
        raise SpaceError(
            f"parameter {name!r} has resolution {count!r} in the grid; it must be a whole number of"
            " at least 1"
        )
    values = parameter.grid
    if values is not None and (count is None or count >= len(values)):
        return values
    if count is None:
        raise SpaceError(
            f"parameter {name!r} is continuous; a grid needs its resolution, such as"
            f" {{{name!r}: 5}}"
        )
    units = np.linspace(0.0, 1.0, count) if count > 1 else np.array([0.5])
    return list({identity(value): value for value in parameter.from_units(units)}.values())


def _combinations(
    space: Space, places: Mapping[str, Sequence[Scalar]], names: Sequence[str], known: Config
) -> Iterator[Config]:
    if not names:
        yield {name: known[name] for name in space if name in known}
    elif not space.conditions.exists(names[0], known):
        yield from _combinations(space, places, names[1:], known)
    else:
        for value in places[names[0]]:
            yield from _combinations(space, places, names[1:], {**known, names[0]: value})
