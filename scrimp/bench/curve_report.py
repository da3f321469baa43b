"""The summary of ``scrimp bench curves``: one row per method.

Mean regret at each share of the budget; the average rank by final regret over runs that all methods
have; the share of the budget at which the mean regret first reaches ASHA's final one, with the
speed-up that means; CPU seconds of deciding per run; and the difference of the final regret to
ASHA's, paired by task, with its 95% interval.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scrimp.bench.metrics import average_ranks, final_regrets, paired_interval, with_interval
from scrimp.bench.report import Summary
from scrimp.bench.results import RunRecord

__all__ = ["curve_summary", "mean_trace", "share_to_reach"]


BASELINE = "asha"
GRID = np.linspace(0.0, 1.0, 1_001)[1:]


def mean_trace(records: Sequence[RunRecord]) -> NDArray[np.float64]:
    """The mean regret of these runs after each thousandth of the budget (1000,); 1 before a run's
    first report."""
    total = np.zeros_like(GRID)
    for record in records:
        spent, regret = np.array([(0.0, 1.0), *record["trace"]]).T
        total += regret[np.searchsorted(spent, GRID + 1e-9, side="right") - 1]
    return total / len(records)


def share_to_reach(records: Sequence[RunRecord], goal: float) -> float | None:
    """The share of the budget after which the mean regret of these runs is at most ``goal``; None
    if never."""
    reached = np.flatnonzero(mean_trace(records) <= goal + 1e-12)
    return float(GRID[reached[0]]) if len(reached) else None


def curve_summary(records: Sequence[RunRecord]) -> Summary:
    """Methods by regret at each share, rank, share to reach ASHA's final regret, speed-up, and
    seconds of deciding."""
    methods = list(dict.fromkeys(record["method"] for record in records))
    own = {
        method: [record for record in records if record["method"] == method] for method in methods
    }
    ranks = average_ranks(final_regrets(records))
    baseline = next(
        (method for method in methods if method.lower() == BASELINE), ""
    )  # as the papers write it, too
    goal = float(np.mean([record["regret"][-1] for record in own[baseline]])) if baseline else None
    shares = records[0]["spent"]
    header = [
        "method",
        *(f"at {share:g}" for share in shares),
        "rank",
        "reaches asha at",
        "speed-up",
        "s deciding",
        "- asha",
    ]
    rows = []
    for method in methods:
        mean = np.array([record["regret"] for record in own[method]], dtype=float).mean(axis=0)
        reached = None if goal is None else share_to_reach(own[method], goal)
        rows.append(
            [
                method,
                *(f"{regret:.4f}" for regret in mean),
                f"{ranks[method]:.2f}" if ranks else "-",
                "-" if reached is None else f"{reached:.3f}",
                "-" if reached is None else f"{1 / reached:.2f}x",
                f"{np.mean([record['decision_seconds'] for record in own[method]]):.3f}",
                "-"
                if goal is None or method == baseline
                else _difference(own[method], own[baseline]),
            ]
        )
    return header, rows


def _difference(first: Sequence[RunRecord], second: Sequence[RunRecord]) -> str:
    """Final regret minus ASHA's, means of each task paired; '-' without a common task."""
    by_task = [_task_means(records) for records in (first, second)]
    tasks = [task for task in by_task[0] if task in by_task[1]]
    if not tasks:
        return "-"
    mean, low, high = paired_interval(
        [by_task[0][task] for task in tasks], [by_task[1][task] for task in tasks]
    )
    return with_interval(mean, low, high, "+.3f")


def _last(record: RunRecord) -> float:
    """The final regret; curves have one from the beginning."""
    last = record["regret"][-1]
    return math.nan if last is None else last


def _task_means(records: Sequence[RunRecord]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], list[float]] = {}
    for record in records:
        found.setdefault((record["table"], record["task"]), []).append(_last(record))
    return {task: float(np.mean(regrets)) for task, regrets in found.items()}
