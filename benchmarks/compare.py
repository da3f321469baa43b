"""scrimp beside its peers, in one run on one machine: what a decision costs, and what it finds.

    python benchmarks/environments.py            # once: the peers' environments
    python benchmarks/compare.py                 # everything, resumable; takes hours
    python benchmarks/compare.py --only speed --sizes 50,100
    python benchmarks/compare.py --only quality --seeds 5 --peers random,optuna-gp

Speed: CPU seconds of one ask after one newly told value, d = 6, one thread on both sides, each
number of observations measured for all before the next, so that a busy machine is busy for all.
Quality: regret after 50 trials of each function and seed, average rank over all of them. Every run
is one line of the results file, and what stands there is not run again.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from acquisition_values import compared
from environments import python

from scrimp.bench.formulas import FORMULAS
from scrimp.bench.function_suite import function_cells
from scrimp.bench.metrics import final_regrets, mean_regret, ranks
from scrimp.bench.report import regret_summary
from scrimp.bench.results import read_runs
from scrimp.bench.runner import run_cells
from scrimp.bench.speed_suite import speed_cells

HERE = Path(__file__).resolve().parent

PEERS = {
    "random": ("peer_random.py", Path(sys.executable)),
    "optuna-tpe": ("peer_optuna.py", python("optuna")),
    "optuna-gp": ("peer_optuna.py", python("optuna")),
    "botorch": ("peer_botorch.py", python("botorch")),
    "syne-tune": ("peer_syne_tune.py", python("syne-tune")),
}
MODELS = ("optuna-gp", "botorch", "syne-tune")
"""The peers with a Gaussian process, whose speed is compared."""


def run_peer(name: str, suite: str, out: Path, *options: str) -> None:
    """One peer in its own environment, one thread; a peer that is not installed is left out."""
    script, interpreter = PEERS[name]
    if not interpreter.exists():
        print(
            f"{name} is not installed and is left out; python benchmarks/environments.py"
            " installs it",
            flush=True,
        )
        return
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    command = [
        str(interpreter),
        str(HERE / script),
        suite,
        "--method",
        name,
        "--out",
        str(out),
        *options,
    ]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def run_speed(sizes: list[int], methods: list[str], peers: list[str], out: Path) -> None:
    """All methods at one number of observations before the next."""
    for size in sizes:
        print(f"speed: {size} observations", flush=True)
        run_cells(speed_cells(methods, [size]), out, processes=1)
        for name in peers:
            if name in MODELS:
                run_peer(name, "speed", out, "--sizes", str(size))


def run_quality(
    arguments: argparse.Namespace, methods: list[str], peers: list[str], out: Path
) -> None:
    """Ours in two processes, then each peer."""
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
    """Aligned columns."""
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
    """Milliseconds, ratios to ours, and log EI on our model."""
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
    """How our search fares on our model against each peer's proposals."""
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
    """Mean final regrets and ranks over the runs that all methods have, so that every comparison is
    paired."""
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
    """Ranks of the mean final regret per function, and where ours loses to random search."""
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
    """Run what is missing, then print everything the results file holds."""
    parser = argparse.ArgumentParser(description="scrimp beside its peers.")
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
