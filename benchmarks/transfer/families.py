"""Compare transfer methods on model families that had no part in choosing the settings.

    scrimp bench make transfer --out tables                                       # once
    python benchmarks/run.py families run tables/*.npz --out families.jsonl       # resumes
    python benchmarks/run.py families report families.jsonl --choices task-prior,task-prior:start=5

A family is a table of tasks (one model, many data sets). ``run`` runs every method on every task
(or on some, ``--tasks 12``), with the other tasks of its family as past studies: three tasks of
each family first, then three more, then six, so that a run that is stopped early has results for
all families.

``report`` takes, for each family, the one of the ``choices`` with the least mean regret on the
*other* families, and compares its results on this family with each method: the paired difference of
regret after 2, 3, 5, 10, 20 and 50 evaluations (95 % interval over tasks), family by family and
pooled, and the average rank.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scrimp.bench.transfer_suite import read_tasks

Array = NDArray[np.float64]
Runs = dict[str, dict[str, dict[str, Array]]]
"""Regrets by family, then by task, then by method, averaged over seeds."""

METHODS = "auto,gp:initial=3,portfolio,tst-r,taf-r,rgpe,rmogp"
POINTS = (2, 3, 5, 10, 20, 50)
CHOSEN_AT = (2, 3, 5, 10, 20)
GOLDEN = (5.0**0.5 - 1.0) / 2.0
"""The golden ratio: the fractional parts of its multiples are spread evenly."""


def run(given: argparse.Namespace) -> None:
    """Run `scrimp bench transfer`, table after table, in rounds of 3, 6, 12, ... tasks."""
    for number, table, names in rounds(given.tables, given.tasks):
        print(f"round {number}: {table}, {len(names)} tasks", flush=True)
        command = [sys.executable, "-m", "scrimp", "bench", "transfer", str(table)]
        command += ["--methods", given.methods, "--seeds", str(given.seeds)]
        command += ["--trials", str(given.trials), "--sources", given.sources]
        command += ["--tasks", ",".join(names), "--processes", str(given.processes)]
        subprocess.run(
            [*command, "--out", str(given.out)], check=True, stdout=subprocess.DEVNULL
        )  # the report prints it in a better form


def rounds(tables: list[Path], most: int) -> Iterator[tuple[int, Path, list[str]]]:
    """Yield the number of a round, a table and its tasks up to that round.

    Tables that have no further tasks are left out.
    """
    number, count, left = 1, 3, list(tables)
    while left:
        for table in left:
            yield number, table, spread(table, min(count, most))
        left = [t for t in left if min(most, len(read_tasks(t).tasks)) > count]
        number, count = number + 1, 2 * count


def spread(table: Path, most: int) -> list[str]:
    """Return so many tasks, spread over the table; more tasks include those of fewer."""
    names = read_tasks(table).tasks
    order = np.argsort(np.arange(len(names)) * GOLDEN % 1.0, kind="stable")
    return [names[place] for place in order[:most]]


def read(paths: list[Path], sources: str) -> Runs:
    """Return the runs of some files; tasks are the sample, so seeds are averaged first."""
    found: dict[tuple[str, str, str], list[Array]] = {}
    for path in paths:
        for text in path.read_text().splitlines():
            record = json.loads(text)
            if record.get("sources", "full") != sources or record.get("suite") != "transfer":
                continue
            at = dict(zip(record["at"], record["regret"], strict=True))
            values = np.array([at.get(point, np.nan) for point in POINTS])
            key = record["table"], record["task"], record["method"]
            found.setdefault(key, []).append(values)
    runs: Runs = {}
    for (table, task, method), seeds in found.items():
        runs.setdefault(table, {}).setdefault(task, {})[method] = np.mean(seeds, axis=0)
    return runs


def chosen_without(runs: Runs, held_out: str, choices: list[str]) -> str:
    """Return the choice with the least regret on the other families, equally weighted."""
    places = [POINTS.index(point) for point in CHOSEN_AT]

    def score(choice: str) -> float:
        means = [
            np.mean([run[choice][places] for run in tasks.values() if choice in run])
            for family, tasks in runs.items()
            if family != held_out and any(choice in run for run in tasks.values())
        ]
        return float(np.mean(means)) if means else np.inf

    return min(choices, key=score)


def interval(differences: Array) -> tuple[Array, Array]:
    """Return the mean (P,) of paired differences (n, P), and half of its 95 % interval."""
    count = len(differences)
    return differences.mean(axis=0), 1.96 * differences.std(axis=0, ddof=1) / np.sqrt(count)


def report(given: argparse.Namespace) -> None:
    """Print tables of differences and ranks."""
    runs = read(given.files, given.sources)
    choices, methods = given.choices.split(","), given.methods.split(",")
    pooled: dict[str, list[Array]] = {method: [] for method in methods}
    everything: list[dict[str, Array]] = []
    print(
        "family".ljust(24), "chosen on the others".ljust(34), *(f"{point:>7}" for point in POINTS)
    )
    for family, tasks in sorted(runs.items()):
        choice = chosen_without(runs, family, choices)
        whole = [run for run in tasks.values() if choice in run and all(m in run for m in methods)]
        if len(whole) < 2:
            continue
        everything += [{"ours": run[choice], **{m: run[m] for m in methods}} for run in whole]
        print(
            family[:24].ljust(24),
            choice[:34].ljust(34),
            row(np.mean([r[choice] for r in whole], 0)),
        )
        for method in methods:
            apart = np.array([run[choice] - run[method] for run in whole])
            pooled[method].append(apart)
            mean, half = interval(apart)
            print(" " * 24, f"less {method}".ljust(34), row(mean), " +-", row(half))
    print(f"\npooled over {len(everything)} tasks".ljust(60), row(means(everything, "ours")))
    for method in methods:
        mean, half = interval(np.concatenate(pooled[method]))
        print(" " * 24, f"less {method}".ljust(34), row(mean), " +-", row(half))
    compare(everything, [method for method in methods if not method.startswith("gp")])


def means(everything: list[dict[str, Array]], name: str) -> Array:
    return np.asarray(np.mean([run[name] for run in everything], axis=0))


def compare(everything: list[dict[str, Array]], published: list[str]) -> None:
    """Print the comparison with the best published method at each point, and average ranks."""
    best = np.argmin([means(everything, method) for method in published], axis=0)
    apart = np.array(
        [
            [run["ours"][place] - run[published[one]][place] for place, one in enumerate(best)]
            for run in everything
        ]
    )
    mean, half = interval(apart)
    print("less the best published at each point".ljust(59), row(mean), " +-", row(half))
    print("   upper end".ljust(59), row(mean + half), *(published[one] for one in best))
    print("\naverage rank".ljust(60), "last: over the points on which choices are made")
    names = list(everything[0])
    places = np.array([ranked(np.array([run[name] for name in names])) for run in everything])
    chosen = [POINTS.index(point) for point in CHOSEN_AT]
    for place, name in enumerate(names):
        rank = places[:, place].mean(axis=0)
        print(" " * 24, name.ljust(34), row(rank, 2), f"{rank[chosen].mean():7.2f}")


def ranked(values: Array) -> Array:
    """Return ranks (m, P) of methods at each point, with ties shared."""
    below = (values[None] < values[:, None]).sum(axis=1)
    same = (values[None] == values[:, None]).sum(axis=1)
    return np.asarray(below + (same + 1) / 2)


def row(values: Array, digits: int = 4) -> str:
    return " ".join(f"{value:7.{digits}f}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("tables", nargs="+", type=Path)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--methods", default=METHODS)
    one.add_argument("--seeds", type=int, default=1)
    one.add_argument("--trials", type=int, default=50)
    one.add_argument("--sources", default="full")
    one.add_argument("--processes", type=int, default=1, help="runs at the same time")
    one.add_argument("--tasks", type=int, default=1000, help="new ones per family; all are past")
    one.set_defaults(do=run)
    two = commands.add_parser("report")
    two.add_argument("files", nargs="+", type=Path)
    two.add_argument("--choices", default="auto")
    two.add_argument("--methods", default=METHODS.removeprefix("auto,"))
    two.add_argument("--sources", default="full")
    two.set_defaults(do=report)
    given = parser.parse_args()
    given.do(given)


if __name__ == "__main__":
    main()
