"""Compare scrimp with its peers on test functions: CPU time of a decision, and final regret.

    python benchmarks/run.py environments                    # once: install the peers
    python benchmarks/run.py compare_functions               # everything; takes hours, resumes
    python benchmarks/run.py compare_functions --only speed --sizes 50,100
    python benchmarks/run.py compare_functions --only quality --seeds 5 --peers random,optuna-gp

Speed: CPU seconds of one ask after one newly told value, d = 6, one thread for each library. Every
number of observations is measured for all libraries before the next one, so that other load on the
machine affects all of them. Quality: regret after 50 trials of each function and seed, and the
average rank over all of them. Every run is one line of the results file and is not repeated.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.environments import python, script_command
from benchmarks.functions.acquisition_values import compared
from scrimp.bench.formulas import FORMULAS
from scrimp.bench.regret_suite import function_cells, speed_cells
from scrimp.bench.results import final_regrets, mean_regret, ranks, read_runs, regret_summary
from scrimp.bench.runner import run_cells

PEERS = {
    "random": ("random_functions", Path(sys.executable)),
    "optuna-tpe": ("optuna_functions", python("optuna")),
    "optuna-gp": ("optuna_functions", python("optuna")),
    "botorch": ("botorch_functions", python("botorch")),
    "syne-tune": ("syne_functions", python("syne-tune")),
}
MODELS = ("optuna-gp", "botorch", "syne-tune")
"""Peers with a Gaussian process, whose speed is compared."""


def run_peer(name: str, suite: str, out: Path, *options: str) -> None:
    """Run one peer in its environment with one thread; skip it when it is not installed."""
    script, interpreter = PEERS[name]
    if not interpreter.exists():
        print(
            f"{name} is not installed and is left out; install it with"
            " `python benchmarks/run.py environments`",
            flush=True,
        )
        return
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    arguments = [suite, "--method", name, "--out", str(out), *options]
    command = script_command(interpreter, script, *arguments)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def run_speed(sizes: list[int], methods: list[str], peers: list[str], out: Path) -> None:
    """Measure all methods at one number of observations before the next."""
    for size in sizes:
        print(f"speed: {size} observations", flush=True)
        run_cells(speed_cells(methods, [size]), out, processes=1)
        for name in peers:
            if name in MODELS:
                run_peer(name, "speed", out, "--sizes", str(size))


def run_quality(
    arguments: argparse.Namespace, methods: list[str], peers: list[str], out: Path
) -> None:
    """Run scrimp in two processes, then each peer."""
    names = list(FORMULAS) if arguments.functions == "all" else arguments.functions.split(",")
    print(f"quality: {', '.join(methods)}", flush=True)
    run_cells(function_cells(methods, names, arguments.seeds, arguments.trials), out)
    options = [
        "--functions",
        ",".join(names),
        "--seeds",
        str(arguments.seeds),
        "--trials",
        str(arguments.trials),
    ]
    for name in peers:
        print(f"quality: {name}", flush=True)
        run_peer(name, "quality", out, *options)


def print_table(header: list[str], rows: list[list[str]]) -> None:
    """Print aligned columns."""
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    for row in [header, *rows]:
        print(
            "  ".join(
                text.ljust(width) if k == 0 else text.rjust(width)
                for k, (text, width) in enumerate(zip(row, widths, strict=True))
            )
        )
    print()


def show_speed(records: list[dict[str, Any]], ours: str) -> None:
    """Print milliseconds, ratios to scrimp, and log EI under scrimp's model."""
    found = {
        (record["method"], record["n"]): record for record in records if record["suite"] == "speed"
    }
    if not found:
        return
    sizes = sorted({size for _, size in found})
    methods = list(dict.fromkeys(method for method, _ in found))
    for label, field in (("least", "ask_seconds"), ("median", "ask_seconds_median")):
        rows = []
        for method in methods:
            cells = []
            for size in sizes:
                record, own = found.get((method, size)), found.get((ours, size))
                if record is None:
                    cells.append("-")
                    continue
                ratio = f" ({record[field] / own[field]:.1f}x)" if own and method != ours else ""
                cells.append(f"{1e3 * record[field]:.1f}{ratio}")
            rows.append([method, *cells])
        print_table([f"CPU ms per ask, {label}", *(f"n={size}" for size in sizes)], rows)
    show_acquisition({key: record for key, record in found.items() if key[0] in MODELS}, sizes)


def show_acquisition(found: dict[tuple[str, int], dict[str, Any]], sizes: list[int]) -> None:
    """Print how scrimp's search compares with each peer's proposals under scrimp's model."""
    rows = []
    for method in dict.fromkeys(method for method, _ in found):
        cells = []
        for size in sizes:
            pairs = compared(found[method, size]) if (method, size) in found else []
            if pairs:
                won = sum(ours >= theirs - 1e-6 for ours, theirs in pairs)
                gap = sorted(ours - theirs for ours, theirs in pairs)[len(pairs) // 2]
                cells.append(f"{won}/{len(pairs)} +{gap:.2f}")
            else:
                cells.append("-")
        rows.append([method, *cells])
    if rows:
        print_table(
            ["log EI on our model: ours >= theirs, median gap", *(f"n={size}" for size in sizes)],
            rows,
        )


def show_quality(records: list[dict[str, Any]], ours: str) -> None:
    """Print mean final regrets and ranks.

    Only runs that all methods have are used, so that every comparison is paired.
    """
    runs = [record for record in records if record["suite"] == "functions"]
    regrets = final_regrets(runs)
    if not regrets:
        return
    print(
        "seeds:",
        ", ".join(
            f"{method} {len({cell[2] for cell in cells})}" for method, cells in regrets.items()
        ),
    )
    shared = set.intersection(*(set(cells) for cells in regrets.values()))
    if any(len(cells) > len(shared) for cells in regrets.values()):
        print("\nevery run, more seeds for some methods than for others:")
        print_table(*regret_summary(runs))
        print(f"the {len(shared)} runs that all methods have:")
        runs = [
            record for record in runs if (record["table"], record["task"], record["seed"]) in shared
        ]
    if runs:
        print_table(*regret_summary(runs))
        show_mean_ranks(runs, ours)


def show_mean_ranks(runs: list[dict[str, Any]], ours: str) -> None:
    """Print ranks of the mean final regret, and the functions on which random search wins."""
    regrets = final_regrets(runs)
    tasks = list(dict.fromkeys(record["task"] for record in runs))
    means = {
        method: {
            task: mean_regret([value for cell, value in cells.items() if cell[1] == task])
            for task in tasks
        }
        for method, cells in regrets.items()
    }
    places = [ranks([mean[task] for mean in means.values()]) for task in tasks]
    rows = [
        [task, *(f"{place:g}" for place in row)] for task, row in zip(tasks, places, strict=True)
    ]
    rows.append(
        [
            "average",
            *(f"{sum(row[k] for row in places) / len(places):.2f}" for k in range(len(means))),
        ]
    )
    print_table(["rank of the mean", *means], rows)
    if ours in means and "random" in means:
        worse = [task for task in tasks if means[ours][task] > means["random"][task]]
        print(f"functions where {ours} is worse than random: {', '.join(worse) or 'none'}")


def main() -> None:
    """Run the missing parts, then print everything in the results file."""
    parser = argparse.ArgumentParser(description="Compare scrimp with its peers.")
    parser.add_argument("--out", type=Path, default=Path("results-peers.jsonl"))
    parser.add_argument("--only", choices=["speed", "quality", "show"])
    parser.add_argument(
        "--methods",
        default="gp",
        help="of scrimp, separated by commas; the first is compared with the peers",
    )
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--sizes", default="50,100,200,500,1000")
    parser.add_argument("--functions", default="all")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=50)
    arguments = parser.parse_args()
    methods, peers = arguments.methods.split(","), arguments.peers.split(",")
    if arguments.only in (None, "speed"):
        run_speed([int(size) for size in arguments.sizes.split(",")], methods, peers, arguments.out)
    if arguments.only in (None, "quality"):
        run_quality(arguments, methods, peers, arguments.out)
    records = read_runs(arguments.out)
    show_speed(records, methods[0])
    show_quality(records, methods[0])


if __name__ == "__main__":
    main()
