"""Maximise a bound acquisition over a domain, in a few batched calls.

1. Candidates: a Sobol sequence, and perturbations of the ``anchors`` (the best evaluated inputs).
   One call scores all.
2. Starts: the best candidates that are not neighbours of each other.
3. Climb the continuous columns of all starts together (`ascend`), then try every single change of a
   discrete column, all starts in one call, and move where that is better; in turn until nothing
   changes. Discrete columns only ever hold legal values: a continuous optimum is never rounded.
4. The best rows, each once, without those in ``excluded`` (evaluated or pending already).

A finite domain is scored whole while it is small, a pool always; what is exhausted gives fewer
rows, at last none.

    found = maximize(score, domain, rng, Search(anchors=best_rows, excluded=evaluated, scales=length_scales))
    found.x[0], found.scores[0]                # the best; the others are its competitors
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.acquisition import BoundAcquisition
from scrimp.acquisition.ascent import AscentSettings, ascend
from scrimp.acquisition.domain import SAME, Domain, contains_rows
from scrimp.surrogates.surrogate import Array

__all__ = ["Found", "MaximizeSettings", "Search", "climb", "maximize_acquisition"]


@dataclass(frozen=True)
class MaximizeSettings:
    """How hard to look.

    ``candidates``: rows scored in the first pass, None for 512 to 2048 by dimension. ``starts``:
    rows to climb from. ``cycles``: rounds of climbing and discrete moves. ``whole``: a finite
    domain up to this size is scored whole. ``joint_candidates``: the same first pass for an
    acquisition that scores its candidates jointly. ``chunk``: rows per call.
    """

    candidates: int | None = None
    starts: int = 10
    cycles: int = 8
    whole: int = 2048
    joint_candidates: int = 512
    chunk: int = 4096
    ascent: AscentSettings = field(default_factory=AscentSettings)


@dataclass(frozen=True)
class Search:
    """What one maximisation knows: rows to look around (k, d), rows not to return (e, d), a length
    per column (d,)."""

    anchors: Array | None = None
    excluded: Array | None = None
    scales: Array | None = None
    settings: MaximizeSettings = field(default_factory=MaximizeSettings)


@dataclass(frozen=True)
class Found:
    """Distinct rows x (k, d), best first, and their scores (k,). No row: everything is excluded."""

    x: Array
    scores: Array


_ANYWHERE = Search()
_HOPELESS = -1e300


def maximize_acquisition(
    score: BoundAcquisition, domain: Domain, rng: np.random.Generator, search: Search = _ANYWHERE
) -> Found:
    """The best rows of the domain by ``score``; the same generator state gives the same rows."""
    settings = search.settings
    finite = domain.pool is not None or domain.size() <= settings.whole
    rows = domain.rows() if finite else _candidates(domain, rng, search, score.joint)
    if search.excluded is not None:
        rows = rows[~contains_rows(rows, search.excluded)]
    if score.joint:
        rows = rows[rng.permutation(len(rows))[: settings.joint_candidates]]
    if len(rows) == 0:
        return Found(rows, np.zeros(0))
    scores = np.concatenate(
        [score(rows[i : i + settings.chunk]) for i in range(0, len(rows), settings.chunk)]
    )
    scores = np.nan_to_num(
        scores, nan=_HOPELESS, neginf=_HOPELESS
    )  # a row that cannot be scored comes last, but exists
    if finite or score.joint:
        best = np.argsort(-scores, kind="stable")[: settings.starts]
        return Found(rows[best], scores[best])
    return climb(score, domain, Found(rows, scores), rng, search)


def climb(
    score: BoundAcquisition, domain: Domain, scored: Found, rng: np.random.Generator, search: Search
) -> Found:
    """The local maxima above the best of ``scored`` rows of a domain without a pool; none of the
    rows may be excluded."""
    rows, scores, settings = scored.x, scored.scores, search.settings
    scales = (
        np.full(domain.dimension, 0.5)
        if search.scales is None
        else np.clip(search.scales, 0.01, 2.0)
    )
    starts = _diverse(rows, scores, scales, settings.starts)
    # The gain that counts, whatever the units of the score: a millionth of what the best start has
    # over the last.
    gain = 1e-6 * float(scores[starts[0]] - scores[starts[-1]]) + 1e-12 * abs(
        float(scores[starts[0]])
    )
    x, values = _improve(
        score, domain, rows[starts], _Terms(scales, gain, search.excluded, settings), rng
    )
    return _distinct(x, values)


@dataclass(frozen=True)
class _Terms:
    """What holds for all of one maximisation's improvements."""

    scales: Array
    gain: float
    excluded: Array | None
    settings: MaximizeSettings


def _candidates(domain: Domain, rng: np.random.Generator, search: Search, joint: bool) -> Array:
    """Rows all over the domain, and a quarter as many around the anchors, from near to far."""
    settings = search.settings
    count = settings.candidates or int(np.clip(128 * domain.dimension, 512, 2048))
    count = settings.joint_candidates if joint else count
    everywhere = domain.sample(count - count // 4, rng)
    if search.anchors is None or len(search.anchors) == 0:
        return everywhere
    around = np.resize(np.arange(len(search.anchors)), count // 4)
    scales = (
        np.full(domain.dimension, 0.5)
        if search.scales is None
        else np.clip(search.scales, 0.01, 2.0)
    )
    shares = 10.0 ** rng.uniform(-2.5, -0.3, (len(around), 1))
    return np.concatenate(
        [everywhere, domain.perturb(search.anchors[around], shares * scales, rng)]
    )


def _diverse(rows: Array, scores: Array, scales: Array, count: int) -> NDArray[np.intp]:
    """The best rows by score that keep a distance of 0.3 scales from better ones."""
    order = np.argsort(-scores, kind="stable")[: 8 * count]
    near = np.zeros(len(order), dtype=bool)
    chosen: list[int] = []
    scaled = rows[order] / scales
    for place in range(len(order)):
        if len(chosen) == count:
            break
        if not near[place]:
            chosen.append(place)
            near |= ((scaled - scaled[place]) ** 2).sum(axis=1) < 0.09
    return order[chosen]


def _improve(
    score: BoundAcquisition, domain: Domain, x: Array, terms: _Terms, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Climb and move in turn from the starts x (r, d) until neither changes a row."""
    ascent = replace(terms.settings.ascent, gain=terms.gain)

    def climb(rows: Array) -> tuple[Array, Array]:
        reached, values = ascend(
            score.value_and_gradient, rows, domain.free(rows), terms.scales, ascent
        )
        if terms.excluded is not None and (known := contains_rows(reached, terms.excluded)).any():
            reached[known], values[known] = (
                rows[known],
                score(rows[known]),
            )  # a start is never excluded
        return reached, values

    x, values = climb(x)
    if domain.continuous.all():
        return x, values
    rows = np.arange(len(x))
    for _ in range(terms.settings.cycles):
        moved, owner = domain.moves(x[rows], rng)
        scores = score(moved)
        if terms.excluded is not None:
            scores = np.where(contains_rows(moved, terms.excluded), -np.inf, scores)
        better = _best_move(scores, owner, values[rows] + terms.gain)
        if not better:
            break
        rows = rows[list(better)]
        x[rows] = moved[list(better.values())]
        x[rows], values[rows] = climb(x[rows])
        rows = np.intersect1d(
            rows, np.argsort(-values)[: max(3, len(x) // 2)]
        )  # those that lag behind stay where they are
    return x, values


def _best_move(scores: Array, owner: NDArray[np.intp], to_beat: Array) -> dict[int, int]:
    """The best move of each row that has one better than what it holds: row -> index of the
    move."""
    best: dict[int, int] = {}
    for move in np.argsort(-scores, kind="stable"):
        row = int(owner[move])
        if scores[move] > to_beat[row]:
            best.setdefault(row, int(move))
    return best


def _distinct(x: Array, scores: Array) -> Found:
    """Each row once, best first."""
    order = np.argsort(-scores, kind="stable")
    x, scores = x[order], scores[order]
    repeats = np.triu((np.abs(x[:, None] - x) <= SAME).all(axis=2), 1).any(axis=0)
    return Found(x[~repeats], scores[~repeats])
