"""The order of reports among each other; everything that ranks reports uses it.

With one metric a report has a standing of its own (`Observation.standing`). With several metrics its
standing depends on the other reports: those that no other dominates come first, then those that only
these dominate, and so on. Within such a front, the report that adds most to the hypervolume comes
first; where there are too many reports for that, the most isolated one, as in NSGA-II. Reports with
a missing metric come behind, those that violate a constraint last, as with one metric.

    standings([trial.last for trial in trials])          # the lowest is the best

The front itself is kept as reports arrive (`with_report`), so that reading it costs nothing.
"""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from scrimp.study_log.problem import Losses, Problem, dominates
from scrimp.study_log.trial import INFEASIBLE_STANDING, Observation, Trial

Front = list[tuple[Losses, int, float]]
"""The reports that no other dominates: losses, trial, and step of the report."""

MAX_REPORTS_FOR_HYPERVOLUMES = {2: 1000, 3: 200, 4: 100, 5: 60}
"""Number of reports, by the number of metrics, up to which the contribution of each to the
hypervolume is computed; 25 for more metrics."""

TOP_SHARE = 0.2
"""Progress is measured in the distance from the best loss to this quantile: the median would hide
all progress near the best where losses span orders of magnitude."""

MIN_PROGRESS = 0.01
"""The smallest improvement that counts as progress, as a share of that distance."""


def standings(points: Sequence[Observation]) -> list[float]:
    """Return the standing of each report, lower is better: its own with one metric, its place among
    these with several; infinite without a loss."""
    width = max((len(point.counted) for point in points if point.counted is not None), default=1)
    if width == 1:
        return [point.standing for point in points]
    places = [_standing_behind(point) for point in points]
    whole = [
        number
        for number, point in enumerate(points)
        if point.feasible and len(point.counted or ()) == width
    ]
    rows = np.array([points[number].counted for number in whole], dtype=float)
    for place, row in enumerate(_order(rows.reshape(-1, width))):
        places[whole[row]] = float(place)
    return places


def _order(losses: NDArray[np.float64]) -> NDArray[np.intp]:
    """Sort rows of losses (n, m) from the best to the worst."""
    # Most studies have one metric and need neither module.
    from scrimp.fronts.dominance import crowding_distances, front_ranks
    from scrimp.fronts.hypervolume import order_of_standing

    if len(losses) <= MAX_REPORTS_FOR_HYPERVOLUMES.get(losses.shape[1], 25):
        return order_of_standing(losses)
    ranks, isolation = front_ranks(losses), np.zeros(len(losses))
    for rank in range(int(ranks.max()) + 1):
        isolation[ranks == rank] = crowding_distances(losses[ranks == rank])
    return np.lexsort((-isolation, ranks))


def _standing_behind(point: Observation) -> float:
    """Return the standing of a report that lacks a metric or violates a constraint."""
    if point.loss is None or not point.feasible:
        return point.standing
    return INFEASIBLE_STANDING * (2.0 + point.loss / (1.0 + abs(point.loss)))


def with_report(front: Front, point: Observation, trial: int) -> Front:
    """Return the front with one more feasible report; of equal reports the first stays."""
    losses = point.counted
    if losses is None:
        return front
    if len(losses) == 1:
        # The best report alone.
        return front if front and front[0][0] <= losses else [(losses, trial, point.step)]
    if any(known == losses or dominates(known, losses) for known, _, _ in front):
        return front
    kept = [member for member in front if not dominates(losses, member[0])]
    return [*kept, (losses, trial, point.step)]


def measured_again(trial: Trial, problem: Problem) -> Trial:
    """Return the trial measured by a changed problem: with more metrics, or other goals."""
    measured = ((point, problem.losses(point.metrics)) for point in trial.curve)
    curve = tuple(
        replace(point, losses=losses, counted=problem.counted(losses)) for point, losses in measured
    )
    return replace(trial, curve=curve)


def progress(losses: NDArray[np.float64], share: float = TOP_SHARE) -> NDArray[np.bool_]:
    """True for the trials (n,), in order, that brought progress, measured in the distance from the
    best loss to the quantile ``share``; ``losses`` are infinite for failed ones.

    >>> progress(np.array([5.0, 3.0, 4.0, 2.999, 1.0])).tolist()
    [True, True, False, False, True]
    """
    finite = losses[np.isfinite(losses)]
    least = 0.0
    if len(finite):
        near = np.quantile(finite, share)
        least = MIN_PROGRESS * float(near - finite.min())
    best, brought = np.inf, np.zeros(len(losses), dtype=bool)
    lowest_before = np.minimum.accumulate(np.append(np.inf, losses))[:-1]
    for place in np.flatnonzero(losses < lowest_before).tolist():
        if losses[place] < best - least:
            best, brought[place] = losses[place], True
    return brought
