"""Summaries of results: plain rows of text, which the command line prints as a table.

Regret: one row per task with the mean final regret of each method, then the average rank over all
runs (ties averaged), how many ranks each is behind the best, and what a decision cost. Speed: one
row per method and number of observations.
"""

from collections.abc import Mapping, Sequence

from scrimp.bench.metrics import (
    Cell,
    average_ranks,
    final_regrets,
    mean_regret,
    paired_interval,
    ranks,
    with_interval,
)
from scrimp.bench.results import RunRecord

__all__ = ["Summary", "regret_summary", "speed_summary"]

Summary = tuple[list[str], list[list[str]]]
"""Header and rows."""


def regret_summary(records: Sequence[RunRecord]) -> Summary:
    """Tasks by methods: mean final regret; below them the average rank, its distance to the best,
    and milliseconds per ask."""
    regrets = final_regrets(records)
    methods = list(regrets)
    tasks = list(dict.fromkeys(record["task"] for record in records))
    rows = [[task, *(_mean_text(regrets[method], task) for method in methods)] for task in tasks]
    averages = average_ranks(regrets)
    if averages:
        rows.append(["average rank", *(f"{averages[method]:.2f}" for method in methods)])
        rows.append(["behind the best", *_behind(regrets, averages)])
    rows.append(
        ["ms per decision", *(f"{_milliseconds(records, method):.1f}" for method in methods)]
    )
    return ["mean final regret", *methods], rows


def _mean_text(regrets: Mapping[Cell, float | None], task: str) -> str:
    own = [regret for cell, regret in regrets.items() if cell[1] == task]
    return f"{mean_regret(own):.4g}" if own else "-"


def _behind(
    regrets: Mapping[str, Mapping[Cell, float | None]], averages: Mapping[str, float]
) -> list[str]:
    """How many ranks each method is behind the best one, with its 95% interval over runs."""
    best = min(averages, key=lambda method: averages[method])
    shared = sorted(set.intersection(*(set(cells) for cells in regrets.values())))
    places = [
        dict(zip(regrets, ranks([regrets[method][cell] for method in regrets]), strict=True))
        for cell in shared
    ]
    texts = []
    for method in regrets:
        mean, low, high = paired_interval(
            [place[method] for place in places], [place[best] for place in places]
        )
        texts.append("-" if method == best else with_interval(mean, low, high, ".2f"))
    return texts


def _milliseconds(records: Sequence[RunRecord], method: str) -> float:
    own = [record for record in records if record["method"] == method]
    seconds, count = (
        sum(record["decision_seconds"] for record in own),
        sum(record["decisions"] for record in own),
    )
    return float(1e3 * seconds / max(count, 1))


def speed_summary(records: Sequence[RunRecord]) -> Summary:
    """Milliseconds of an ask: least and median with a refit, least between refits, and the
    acquisition value reached."""
    header = ["method", "n", "ask ms", "median ms", "between refits ms", "acquisition"]
    rows = [
        [
            str(record["method"]),
            str(record["n"]),
            f"{1e3 * record['ask_seconds']:.2f}",
            f"{1e3 * record['ask_seconds_median']:.2f}",
            _or_dash(record["between_refits_seconds"], 1e3),
            _or_dash(record["acquisition"], 1.0),
        ]
        for record in records
    ]
    return header, rows


def _or_dash(value: float | None, scale: float) -> str:
    return "-" if value is None else f"{scale * value:.3f}"
