"""Random search: uniform draws that nobody has tried yet.

Random search tries d important values per parameter where a grid tries few (Bergstra and Bengio,
"Random search for hyper-parameter optimization", 2012): the baseline of every comparison, and the
partner of successive halving.

    RandomSuggester().suggest(history, request, count=1, rng=history.rng("suggest"))
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.space.designs import grid_design
from scrimp.space.space import Pool
from scrimp.suggesters.known_configs import KNOWN, Known
from scrimp.suggesters.suggester import Request, Suggester, Suggestion

__all__ = ["RandomSuggester", "draw_fresh"]

BATCHES = (1, 4, 16, 64)  # draws per configuration asked for, until enough are new
RARE = 4096  # as many again where all known ones are likely draws and the new ones are rare
LISTED = 10_000  # how many untried configurations of a finite space are listed, to draw among them


@dataclass(frozen=True)
class RandomSuggester(Suggester):
    """Uniform in the unit cube, or over what is left of a pool; fewer than asked for when nothing
    else is left."""

    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """``count`` configurations at random."""
        del request
        return Suggestion(tuple(draw_fresh(history.derive(KNOWN), count, rng)))


def draw_fresh(
    known: Known, count: int, rng: np.random.Generator, taken: Sequence[Config] = ()
) -> list[Config]:
    """``count`` random configurations that are neither known nor ``taken``; fewer when there are no
    more.

    Draws that are known are thrown away, which costs nothing until a finite space is almost
    exhausted; then what is left of it is listed, and drawn from.
    """
    space = known.space
    if isinstance(space, Pool):
        rows = rng.choice(known.left, min(count + len(taken), len(known.left)), replace=False)
        return known.fresh((dict(space.configs[row]) for row in rows), count, taken)
    finite = bool(np.isfinite(space.size))
    found: list[Config] = []
    for size in BATCHES if finite else (*BATCHES, RARE):
        found += known.fresh(
            space.sample(size * (count - len(found)), rng), count - len(found), [*taken, *found]
        )
        if len(found) == count:
            return found
    if finite:
        left = known.fresh(grid_design(space), LISTED, [*taken, *found])
        found += [left[place] for place in rng.permutation(len(left))[: count - len(found)]]
    return found
