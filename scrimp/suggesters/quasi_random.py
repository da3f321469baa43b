"""Quasi-random search: the next point of a scrambled Sobol sequence, which fills the space more
evenly than chance.

The sequence follows from the study's seed, and its index is the number of trials so far: no state
is needed, and a resumed study goes on where it was. A pool gives the nearest row that nobody has
tried. Where a small discrete space makes the sequence repeat configurations, it is followed on to
new ones, and in the end random draws take over.

    QuasiRandomSuggester().suggest(history, request, count=8, rng=history.rng("suggest"))
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.sobol import sobol_points
from scrimp.space.space import Pool
from scrimp.suggesters.known_configs import KNOWN, Known
from scrimp.suggesters.random import draw_fresh
from scrimp.suggesters.suggester import Request, Suggester, Suggestion

__all__ = ["QuasiRandomSuggester", "nearest_fresh", "sobol_fresh"]

LOOK_AHEAD = 32  # points per configuration asked for, before random draws take over


@dataclass(frozen=True)
class QuasiRandomSuggester(Suggester):
    """The Sobol sequence of the study's seed, from the number of its trials on."""

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """The next ``count`` configurations of the sequence."""
        del request
        return Suggestion(tuple(sobol_fresh(history, count, rng)))


def sobol_fresh(history: History, count: int, rng: np.random.Generator) -> list[Config]:
    """The next ``count`` new configurations of the study's Sobol sequence; ``rng`` serves where it
    has none."""
    known = history.derive(KNOWN)
    space = known.space
    scramble = np.random.default_rng([history.problem.seed, zlib.crc32(b"sobol")])
    ahead = 1 if isinstance(space, Pool) or not np.isfinite(space.size) else LOOK_AHEAD
    points = sobol_points(len(space.searched), count * ahead, scramble, start=len(history.trials))
    if isinstance(space, Pool):
        return nearest_fresh(known, points)
    found = known.fresh(space.from_units(points), count)
    return found + draw_fresh(known, count - len(found), rng, found)


def nearest_fresh(
    known: Known, points: NDArray[np.float64], taken: Sequence[Config] = ()
) -> list[Config]:
    """The row of the pool nearest to each of ``points`` (m, d): not known, not ``taken``, none
    twice; fewer at its end."""
    pool = known.space
    assert isinstance(pool, Pool)
    gone = {pool.index(config) for config in taken}
    found: list[Config] = []
    for point in points:
        left = np.array([row for row in known.left if row not in gone]) if gone else known.left
        if len(left) == 0:
            break
        row = int(
            pool.nearest(point[None], np.sort(left))[0]
        )  # sorted: the first of equally near rows
        gone.add(row)
        found.append(dict(pool.configs[row]))
    return found
