"""New configurations that compete with running ones: a pool that is redrawn every few decisions.

A pool is a function of what was known when it was drawn: the trials, the rows of the curve model,
the number of the decision. So a resumed study draws the same one. Most members are random (rows of
the user's own list, or a Sobol sequence); the others are those of a larger draw that the model
expects to begin lowest, and those it expects to end lowest. In a continuous space the larger draw
also holds perturbations of the best configurations.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.domain import contains_rows
from scrimp.encoding.encoding import Encoding
from scrimp.space.space import Config, Pool

__all__ = ["Newcomers", "draw_newcomers"]

Array = NDArray[np.float64]

SCANNED = 1000  # how many the model looks at
PROMISING = 60  # how many of them it may choose for their begin, and as many for their end
RANDOM = 300
ANCHORS = 5  # best configurations that are perturbed


@dataclass(frozen=True)
class Newcomers:
    """Encoded configurations ``x`` (m, d) that were unknown when they were drawn; of a user's list
    also its ``rows`` (m,)."""

    encoding: Encoding
    x: Array
    rows: NDArray[np.intp] | None

    def config(self, place: int) -> Config:
        """The configuration of one of them."""
        space = self.encoding.space
        if self.rows is not None and isinstance(space, Pool):
            return dict(space.configs[self.rows[place]])
        return self.encoding.decode(self.x[place : place + 1])[0]


def draw_newcomers(
    encoding: Encoding,
    known: Array,
    best: Array,
    predicted: Callable[[Array], Array],
    seed: tuple[int, int],
) -> Newcomers:
    """A pool: ``known`` (k, d) are not in it, ``best`` (b, d) are perturbed, ``predicted`` gives
    losses (2, m) of x (m, d).

    ``seed`` is that of the study and the number of the decision.
    """
    rng = np.random.default_rng([*seed, zlib.crc32(b"freeze-thaw pool")])
    rows = None
    domain = encoding.domain
    if domain.pool is not None:
        rows = np.flatnonzero(~contains_rows(domain.pool, known))
        rows = rng.permutation(rows)[: SCANNED + RANDOM]
        x = domain.pool[rows]
        scanned = np.arange(len(x)) >= RANDOM
    else:
        drawn = domain.sample(SCANNED // 2 + RANDOM, rng)
        anchors = np.repeat(best[:ANCHORS], SCANNED // 2 // ANCHORS, axis=0)
        widths = 0.5 ** rng.uniform(1.0, 7.0, size=(len(anchors), 1))
        moving = rng.random(anchors.shape) < 0.5
        near = domain.perturb(anchors, widths * moving, rng) if len(anchors) else anchors
        x = np.vstack([drawn, near])
        scanned = np.arange(len(x)) >= RANDOM
        fresh = ~contains_rows(x, known)
        x, scanned = x[fresh], scanned[fresh]
    others = np.flatnonzero(scanned)
    ranked = np.argsort(predicted(x[others]), axis=1, kind="stable")[:, :PROMISING]
    members = np.concatenate([np.flatnonzero(~scanned), np.unique(others[ranked])])
    return Newcomers(encoding, x[members], None if rows is None else rows[members])
