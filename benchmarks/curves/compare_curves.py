"""Compare the CPU time of decisions with Syne Tune 0.13.0 on tables of learning curves.

    python benchmarks/run.py environments syne-tune          # once
    python benchmarks/run.py compare_curves lcbench.npz --tasks adult,fabert --out curves.jsonl

Both libraries get the same table, workers, refit schedule and data limit. They decide with one
thread and take turns method by method, so that other load on the machine affects both. Only the CPU
seconds of deciding count, not those of the simulation. Both refit at every decision (DyHPO beyond
150 observations at every third), on at most 500 observations. Runs in the results file are not
repeated.
"""

import argparse
import os
import subprocess
from pathlib import Path

import numpy as np

from benchmarks.environments import python, script_command
from scrimp.bench.curve_suite import CurveSuiteSettings, curve_cells
from scrimp.bench.results import read_runs
from scrimp.bench.runner import run_cells

METHODS = ("mobster-joint", "mobster-indep", "hypertune-indep", "dyhpo")
INCREMENT = 2
"""Distance between DyHPO's rungs in both libraries."""


def ours(method: str) -> str:
    """Return the scrimp method that corresponds to one of Syne Tune."""
    return f"dyhpo:increment={INCREMENT}" if method == "dyhpo" else method


def run_peer(table: Path, method: str, task: str, seed: int, given: argparse.Namespace) -> None:
    """Run Syne Tune once in its own environment, unless the results file has the run."""
    found = read_runs(given.out) if given.out.exists() else []
    key = (f"syne-tune:{method}", task, seed)
    if any((record["method"], record["task"], record["seed"]) == key for record in found):
        return
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    command = script_command(python("syne-tune"), "syne_tables", str(table), "--method", method)
    command += [
        "--task",
        task,
        "--seed",
        str(seed),
        "--out",
        str(given.out),
        "--increment",
        str(INCREMENT),
    ]
    command += ["--fulls", str(given.fulls), "--workers", str(given.workers)]
    subprocess.run(
        command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def summary(records: list[dict[str, object]]) -> None:
    """Print seconds, their ratio, and regret at half and full budget, by method."""
    print(
        f"{'method':18s} {'scrimp s':>9s} {'peer s':>9s} {'ratio':>7s}   regret at 0.5 and 1.0:"
        " scrimp, peer"
    )
    for method in METHODS:
        sides = []
        for name in (ours(method), f"syne-tune:{method}"):
            own = [record for record in records if record["method"] == name]
            sides.append((
                np.mean([record["decision_seconds"] for record in own]) if own else float("nan"),
                np.mean([record["regret"] for record in own], axis=0) if own else np.full(5, np.nan),
            ))  # fmt: skip
        (here, regret), (there, other) = sides
        pairs = f"{regret[2]:.3f} {regret[4]:.3f}, {other[2]:.3f} {other[4]:.3f}"
        print(f"{method:18s} {here:9.2f} {there:9.2f} {there / here:7.1f}   {pairs}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--tasks", default="adult")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--fulls", type=int, default=20)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    settings = CurveSuiteSettings(given.fulls, given.workers)
    for seed in range(given.seeds):
        for task in given.tasks.split(","):
            for method in given.methods.split(","):
                cells = [
                    cell
                    for cell in curve_cells(given.table, [ours(method)], [task], seed + 1, settings)
                    if cell.seed == seed
                ]
                run_cells(cells, given.out, processes=1)
                run_peer(given.table, method, task, seed, given)
    summary(read_runs(given.out))


if __name__ == "__main__":
    main()
