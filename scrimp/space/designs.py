"""Designs: a Sobol sequence and a full grid.

sobol_design(space, 16, rng)                       # 16 evenly spread configurations
for config in grid_design(space, {"lr": 5}): ...   # every combination, floats at 5 places
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from scrimp.checks import is_whole
from scrimp.errors import SpaceError
from scrimp.json_values import Config, Scalar
from scrimp.sobol import sobol_points
from scrimp.space.conditions import nearest
from scrimp.space.parameter_contract import Parameter, identity
from scrimp.space.space import Pool, Space


def sobol_design(
    space: Space, count: int, rng: np.random.Generator, *, start: int = 0
) -> list[Config]:
    """Return configurations ``start`` to ``start + count - 1`` of a scrambled Sobol sequence.

    Equal states of ``rng`` give the same sequence, so a design can be continued. A small discrete
    space may repeat configurations, and so may a pool, of which the nearest members are taken.
    """
    return space.from_units(sobol_points(len(space.searched), count, rng, start=start))


def grid_design(
    space: Space, resolution: int | Mapping[str, int] | None = None
) -> Iterator[Config]:
    """Yield every combination of parameter values, each configuration once; the last parameter varies
    fastest.

    ``resolution``: the number of values of a parameter, evenly spaced in its scale with both ends;
    one number for all, or by name. Discrete parameters with fewer values take all of them; a Float
    needs it. A pool yields its members.

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
    counts = resolution if isinstance(resolution, Mapping) else dict.fromkeys(space, resolution)
    places = {name: _places(name, space[name], counts.get(name)) for name in space}
    return _combinations(space, places, list(space.conditions.order), {})


def _places(name: str, parameter: Parameter, count: int | None) -> Sequence[Scalar]:
    """Return the values of a parameter in the grid, in order and without repetition."""
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
