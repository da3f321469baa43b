"""What `scrimp bench objectives` prints: regrets at the end, and average ranks after 30, 60 and 100
trials with intervals over problems."""

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from scrimp.bench.metrics import Cell, final_regrets, paired_interval, ranks, with_interval
from scrimp.bench.report import Summary, regret_summary
from scrimp.bench.results import RunRecord

__all__ = ["cut_at", "ranks_by_problem", "trade_off_summary"]

MOMENTS = (30, 60, 100)
RANKS = ("average rank", "behind the best")  # rows of `regret_summary` that stand below in detail


def trade_off_summary(records: Sequence[RunRecord]) -> Summary:
    """Tasks by methods: the mean regret of the hypervolume after as many trials as every method
    has; then average ranks at each moment and how far each method is behind the best, with a 95%
    interval over problems. Ranks are taken of the runs that all methods have which came so far."""
    if not records:
        return ["regret of hypervolume"], []
    methods = list(dict.fromkeys(record["method"] for record in records))
    common = min(_most(records, method) for method in methods)
    header, rows = regret_summary(_as_after(records, common))
    rows = [row for row in rows if row[0] not in RANKS]
    for moment in MOMENTS:
        if places := ranks_by_problem(final_regrets(_as_after(records, moment))):
            rows += _rank_rows(places, moment, header[1:])
    return [f"regret of hypervolume after {common}", *header[1:]], rows


def ranks_by_problem(
    regrets: Mapping[str, Mapping[Cell, float | None]],
) -> dict[str, list[float]]:
    """Each method's rank among all on each problem, averaged over the seeds that all of them have;
    empty without any.

    >>> ranks_by_problem({"a": {("t", "zdt1", 0): 0.1}, "b": {("t", "zdt1", 0): 0.2}})
    {'a': [1.0], 'b': [2.0]}
    """
    shared = set.intersection(*(set(cells) for cells in regrets.values())) if regrets else set()
    problems = sorted({(table, task) for table, task, _ in shared})
    found: dict[str, list[float]] = {method: [] for method in regrets}
    for problem in problems:
        own = [cell for cell in shared if cell[:2] == problem]
        places = np.mean([ranks([regrets[m][cell] for m in regrets]) for cell in own], axis=0)
        for method, place in zip(regrets, places.tolist(), strict=True):
            found[method].append(place)
    return found if problems else {}


def _rank_rows(
    places: Mapping[str, list[float]], moment: int, methods: Sequence[str]
) -> list[list[str]]:
    averages = {method: float(np.mean(own)) for method, own in places.items()}
    best = min(averages, key=lambda method: averages[method])
    behind = {
        method: with_interval(*paired_interval(own, places[best]), ".2f")
        for method, own in places.items()
    }
    behind[best] = "-"
    count = len(places[best])
    return [
        [f"rank at {moment}, {count} problems", *(_rank(averages.get(m)) for m in methods)],
        [f"behind at {moment}", *(behind.get(m, "") for m in methods)],
    ]


def _rank(average: float | None) -> str:
    return "" if average is None else f"{average:.2f}"


def _most(records: Sequence[RunRecord], method: str) -> int:
    return max(record["size"] for record in records if record["method"] == method)


def _as_after(records: Sequence[RunRecord], moment: int) -> list[RunRecord]:
    """Each run that came so far, as it stood then; of two of one cell, the last. Tasks of tables
    are told apart by their table."""
    found = {
        (record["method"], _problem(record), record["seed"]): cast(
            RunRecord, {**cut_at(record, moment), "task": _problem(record)}
        )
        for record in records
        if record["size"] >= moment
    }
    return list(found.values())


def _problem(record: RunRecord) -> str:
    table, task = record["table"], record["task"]
    return task if table == "formulas" else f"{table} {task}"


def cut_at(record: RunRecord, moment: int) -> RunRecord:
    """The same run as it stood after so many trials."""
    return cast(RunRecord, {**record, "regret": record["regret"][:moment]})
