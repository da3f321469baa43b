"""Where reports stand among each other: the one place that everything asks that ranks reports.

With one metric a report stands by itself (`Observation.standing`). With several, where it stands
depends on the others: reports that nothing dominates come first, then those that only they
dominate, and so on; within such a front those come first that add most to its hypervolume (where
there are many in many metrics: the loneliest, as in NSGA-II). Reports
with a metric missing come behind, those that violate a constraint behind them, as with one metric.

    standings([point.last for point in trials])          # the lowest is the best

The front itself is kept as reports arrive (`with_report`), so that asking for it costs nothing.
"""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from scrimp.history.problem import Problem
from scrimp.history.trade_off import Losses, dominates
from scrimp.history.trial import BEHIND, Observation, Trial

__all__ = ["Front", "measured_again", "standings", "with_report"]

Front = list[tuple[Losses, int, float]]
"""What nothing dominates: losses, the trial, and the step of the report."""


def standings(points: Sequence[Observation]) -> list[float]:
    """Where each report stands, lower is better: its own standing with one metric, its place among
    these with several; infinite where there is no loss."""
    most = max((len(point.losses) for point in points if point.losses is not None), default=0)
    if not most:
        return [point.standing for point in points]
    places = [_behind(point) for point in points]
    whole = [
        number
        for number, point in enumerate(points)
        if point.feasible and point.loss is not None and len(point.losses or ()) == most
    ]
    rows = np.array([points[number].losses for number in whole], dtype=float)
    order = _order(rows.reshape(-1, most))
    for place, row in enumerate(order):
        places[whole[row]] = float(place)
    return places


EXACT = {2: 1000, 3: 200, 4: 100, 5: 60}
"""Reports up to which what each adds to the hypervolume is computed, by the number of metrics; 25
for more metrics."""


def _order(losses: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows of losses (n, m) from the best to the worst. Hypervolumes of many reports in many metrics
    take long: those are told apart by how lonely they are on their front instead."""
    from scrimp.fronts.dominance import crowding_distances, front_ranks  # most studies have none
    from scrimp.fronts.hypervolume import order_of_standing

    if len(losses) <= EXACT.get(losses.shape[1], 25):
        return order_of_standing(losses)
    ranks, lonely = front_ranks(losses), np.zeros(len(losses))
    for rank in range(int(ranks.max()) + 1):
        lonely[ranks == rank] = crowding_distances(losses[ranks == rank])
    return np.lexsort((-lonely, ranks))


def _behind(point: Observation) -> float:
    """Where a report stands of which not all is known, or that violates a constraint."""
    if point.loss is None or not point.feasible:
        return point.standing
    return BEHIND * (2.0 + point.loss / (1.0 + abs(point.loss)))


def with_report(front: Front, point: Observation, trial: int) -> Front:
    """The front with one more feasible report, as a new list; of equal reports the first stays."""
    losses = point.losses
    if losses is None:
        return front
    if any(known == losses or dominates(known, losses) for known, _, _ in front):
        return front
    kept = [member for member in front if not dominates(losses, member[0])]
    return [*kept, (losses, trial, point.step)]


def measured_again(trial: Trial, problem: Problem) -> Trial:
    """The trial with its reports measured by another question: with a metric more, or other
    goals."""
    curve = tuple(
        replace(point, loss=problem.loss(point.metrics), losses=problem.losses(point.metrics))
        for point in trial.curve
    )
    return replace(trial, curve=curve)
