"""Which of very many past studies a study learns from: the nearest, so that a decision costs what a
hundred of them cost.

With up to `MOST` all are taken. Of more, those come first whose tasks have features closest to this
one's, where features are known; then those that share most parameters; then those with at least
some twenty trials. The rest is settled by a digest, that is by chance, the same one every time.

    chosen = nearest_studies([(attached, past_problem), ...], problem)
"""

import math
from collections.abc import Sequence

from scrimp.history.events import SourceAttached
from scrimp.history.problem import Problem

__all__ = ["MOST", "nearest_studies"]

MOST = 128
"""Past studies of one study. A past of this size says about as much as a longer one."""

ENOUGH_EVENTS = 60  # about twenty trials: more do not make a study a better teacher


def nearest_studies(
    found: Sequence[tuple[SourceAttached, Problem]], problem: Problem, most: int = MOST
) -> list[SourceAttached]:
    """At most so many of the past studies, with the problems they were about, in the order they
    came in."""
    from scrimp.transfer.source_studies import shared_share

    widths = _widths([past for _, past in found], problem)

    def order(place: int) -> tuple[float, float, int, str]:
        source, past = found[place]
        share = shared_share(past, problem)
        return (
            _apart(past, problem, widths),
            -share,
            -min(source.length, ENOUGH_EVENTS),
            source.digest,
        )

    places = range(len(found))
    kept = places if len(found) <= most else sorted(sorted(places, key=order)[:most])
    return [found[place][0] for place in kept]


def _widths(past: Sequence[Problem], problem: Problem) -> dict[str, float]:
    """How far each feature of this task is spread over all studies."""
    widths = {}
    for name, own in problem.features.items():
        values = [own, *(one.features[name] for one in past if name in one.features)]
        widths[name] = max(values) - min(values)
    return widths


def _apart(past: Problem, problem: Problem, widths: dict[str, float]) -> float:
    """The root mean square of scaled differences over shared features; without any, behind all
    others."""
    shared = [name for name in widths if name in past.features]
    if not shared:
        return math.inf
    gaps = [
        (past.features[name] - problem.features[name]) / (widths[name] or 1.0) for name in shared
    ]
    return math.sqrt(sum(gap * gap for gap in gaps) / len(gaps))
