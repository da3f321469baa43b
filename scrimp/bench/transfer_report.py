"""The summary of transfer comparisons: one row per method and measure, one column per number of
evaluations.

ADTM is the mean regret over tasks and seeds; grid rank the mean place of the best found
configuration inside its table; rank the mean place among the methods, ties averaged; unsolved the
share of runs that have not reached their task's optimal value.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from scrimp.bench.metrics import ranks
from scrimp.bench.report import Summary
from scrimp.bench.results import RunRecord

__all__ = ["average_ranks_at", "transfer_summary"]


def transfer_summary(records: Sequence[RunRecord]) -> Summary:
    """Header and rows."""
    at = list(records[0]["at"]) if records else []
    methods = list(dict.fromkeys(record["method"] for record in records))
    rows = []
    for label, numbers, digits in (
        ("ADTM", {method: _mean(records, method, "regret") for method in methods}, 4),
        ("grid rank", {method: _mean(records, method, "grid_rank") for method in methods}, 1),
        ("rank", average_ranks_at(records), 2),
        ("unsolved", {method: 1.0 - _mean(records, method, "solved") for method in methods}, 2),
    ):
        rows += [
            [f"{label} {method}", *(f"{value:.{digits}f}" for value in numbers[method])]
            for method in methods
        ]
    costs = {method: _milliseconds(records, method) for method in methods}
    rows += [
        [f"ms per decision {method}", f"{cost:.1f}", *[""] * (len(at) - 1)]
        for method, cost in costs.items()
    ]
    return ["evaluations", *map(str, at)], rows


def _mean(
    records: Sequence[RunRecord], method: str, key: Literal["regret", "grid_rank", "solved"]
) -> NDArray[np.float64]:
    own = [record[key] for record in records if record["method"] == method]
    return np.asarray(np.array(own, dtype=float).mean(axis=0))


def average_ranks_at(records: Sequence[RunRecord]) -> dict[str, NDArray[np.float64]]:
    """Each method's rank among all, by regret, ties averaged: the mean over the runs that all
    methods have."""
    methods = list(dict.fromkeys(record["method"] for record in records))
    runs: dict[tuple[str, str, int, str | None], dict[str, Sequence[float | None]]] = {}
    for record in records:
        key = record["table"], record["task"], record["seed"], record.get("sources")
        runs.setdefault(key, {})[record["method"]] = record["regret"]
    whole = [run for run in runs.values() if len(run) == len(methods)]
    if not whole:
        nothing = np.full(len(records[0]["at"]) if records else 0, np.nan)
        return dict.fromkeys(methods, nothing)
    points = range(len(records[0]["at"]))
    table = np.array(
        [[ranks([run[method][point] for method in methods]) for point in points] for run in whole]
    )
    return {method: table[:, :, place].mean(axis=0) for place, method in enumerate(methods)}


def _milliseconds(records: Sequence[RunRecord], method: str) -> float:
    own = [record for record in records if record["method"] == method]
    return float(
        1e3 * sum(r["decision_seconds"] for r in own) / max(sum(r["decisions"] for r in own), 1)
    )
