"""Report the results of live training: final losses, ranks and time to reach other methods.

For each problem it prints the median final loss, the average rank at 5, 10, 25, 50 and 100 % of the
budget (units, or seconds where these were limited), and the share of each other method's wall clock
that `auto` needs to reach the final value of that method (same seed, median over seeds); then ranks
and shares over all problems.
"""

import argparse
import json
import math
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scrimp.bench.results import ranks as rank_losses

MOMENTS = (0.05, 0.1, 0.25, 0.5, 1.0)
"""Shares of the budget at which methods are ranked."""


def read(path: Path) -> list[dict[str, Any]]:
    """Return the runs in a file; an incomplete last line is ignored."""
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def key(record: dict[str, Any]) -> tuple[Any, ...]:
    """Return the fields that identify a run."""
    return tuple(
        record.get(name) for name in ("problem", "method", "seed", "fulls", "limit", "workers")
    )


def setting_of(record: dict[str, Any]) -> tuple[str, str]:
    """Return the problem, and the limits that every method had."""
    limit = record.get("limit")
    given = f"{limit:g} seconds" if limit else f"{record['fulls']} fulls"
    return record["problem"], f"{given}, {record['workers']} workers"


def best_at(record: dict[str, Any], share: float) -> float:
    """Return the best loss after a share of the units, or of the seconds where these were limited."""
    by, total = (1, record["limit"]) if record.get("limit") else (0, record["units"])
    return min(
        (point[2] for point in record["trace"] if point[by] <= share * total),
        default=float("inf"),
    )


def reached(record: dict[str, Any], value: float) -> float:
    """Return the seconds until a run was at least as good as ``value``; infinite if it never was."""
    return next((seconds for _, seconds, loss in record["trace"] if loss <= value), float("inf"))


def ranks(values: dict[str, float]) -> dict[str, float]:
    """Return average ranks by name, with ties shared."""
    return dict(zip(values, rank_losses(list(values.values())).tolist(), strict=True))


def report(given: argparse.Namespace) -> None:
    """Print one table per problem, and the average ranks over all of them."""
    records = {key(record): record for record in read(given.file)}.values()
    everywhere: dict[str, list[list[float]]] = {}
    times: dict[str, list[float]] = {}
    for setting in sorted({setting_of(r) for r in records}):
        here = [r for r in records if setting_of(r) == setting]
        by_seed = {
            seed: {r["method"]: r for r in here if r["seed"] == seed}
            for seed in {r["seed"] for r in here}
        }
        methods = sorted({r["method"] for r in here})
        whole = {seed: runs for seed, runs in by_seed.items() if len(runs) == len(methods)}
        print(f"\n{setting[0]}: {setting[1]}, {len(whole)} seeds with all methods")
        placed = [
            [ranks({method: best_at(r, share) for method, r in runs.items()}) for share in MOMENTS]
            for runs in whole.values()
        ]
        for name in methods:
            rows = [[moment[name] for moment in run] for run in placed]
            shares = auto_shares(name, by_seed)
            everywhere.setdefault(name, []).extend(rows)
            times.setdefault(name, []).extend(shares)
            finals = [runs[name]["best"] for runs in by_seed.values() if name in runs]
            text = f"  {name:26} median {statistics.median(finals):.4f}  worst {max(finals):.4f}"
            print(f"{text}  rank {averages(rows)}{needed(shares)}")
    print("\naverage rank at 5, 10, 25, 50 and 100 % of the budget, all problems")
    for name, rows in sorted(everywhere.items(), key=lambda item: mean(r[-1] for r in item[1])):
        print(f"  {name:26} {averages(rows)}  ({len(rows)} runs){needed(times[name])}")


def averages(rows: list[list[float]]) -> str:
    """Return the average rank at each moment, with its standard error from three runs on."""
    parts = []
    for found in zip(*rows, strict=True):
        text = f"{mean(found):.2f}"
        if len(found) > 2:
            text += f" ± {statistics.stdev(found) / math.sqrt(len(found)):.2f}"
        parts.append(text)
    return " ".join(parts)


def auto_shares(name: str, by_seed: dict[int, dict[str, Any]]) -> list[float]:
    """Return the shares of another method's wall clock in which `auto` reaches its final value.

    There is one for each seed, infinite where `auto` never reaches it.
    """
    both = [runs for runs in by_seed.values() if {name, "auto"} <= runs.keys() and name != "auto"]
    return [reached(runs["auto"], runs[name]["best"]) / runs[name]["seconds"] for runs in both]


def needed(shares: list[float]) -> str:
    """Return the median of the shares in words; empty where there are none."""
    if not shares:
        return ""
    middle = statistics.median(shares)
    if math.isinf(middle):
        return f"  auto reaches its end in {sum(map(math.isfinite, shares))} of {len(shares)}"
    return f"  auto needs {middle:.0%} of its time"


def mean(values: Iterable[float]) -> float:
    """Return the mean; NaN for no values."""
    found = list(values)
    return sum(found) / len(found) if found else float("nan")
