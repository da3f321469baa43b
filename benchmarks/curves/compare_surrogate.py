"""Compare scrimp with Syne Tune 0.13, Optuna and NePS on a surrogate of training runs.

    python benchmarks/run.py environments optuna neps syne-tune                # once
    python benchmarks/run.py compare_surrogate lcbench_yahpo.npz --out surrogate.jsonl --seeds 2
    python benchmarks/run.py compare_surrogate FILE --out surrogate.jsonl --methods freeze-thaw,optuna-tpe-hyperband

The space is continuous, a level of training costs one unit, and there are four workers. Peers run
in environments of their own and ask this process for training runs (`benchmarks.peers.curve_loop`),
so all methods see the same network, clock and regret. Runs in the results file are not repeated.
"""

import argparse
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environments import peer_command
from scrimp.bench.curve_suite import (
    BUDGET_SHARES,
    CurveSuiteSettings,
    curve_cells,
    own_seed,
    regret_at,
)
from scrimp.bench.curve_tasks import CurveTask, network_curves
from scrimp.bench.results import read_runs
from scrimp.bench.runner import run_cells
from scrimp.bench.yahpo import Network, read_yahpo

PEERS = {
    "optuna-": ("optuna", "optuna_curves"),
    "syne-tune-": ("syne-tune", "syne_curves"),
    "neps-": ("neps", "neps_curves"),
}
METHODS = (
    "freeze-thaw,mobster-joint,hypertune-indep,asha,optuna-tpe-hyperband,optuna-gp-hyperband,neps-hyperband,"
    "neps-async-hyperband,syne-tune-asha,syne-tune-mobster-joint,syne-tune-hypertune-indep,syne-tune-dyhpo"
)


def described(network: Network) -> list[dict[str, Any]]:
    """Return the space in the form that peers read."""
    parts = []
    for item in network.meta["hyperparameters"]:
        if item["name"] in (network.meta["task_name"], *network.meta["fidelity"]):
            continue
        if item["type"] == "categorical":
            parts.append({"name": item["name"], "type": "choice", "choices": item["choices"]})
        else:
            kind = "int" if item["type"] == "uniform_int" else "float"
            parts.append(
                {
                    "name": item["name"],
                    "type": kind,
                    "low": item["lower"],
                    "high": item["upper"],
                    "log": item["log"],
                }
            )
    return parts


def run_peer(
    network: Network, task: CurveTask, method: str, seed: int, settings: CurveSuiteSettings
) -> dict[str, Any]:
    """Run a peer once; this process answers its requests for training runs."""
    command = peer_command(PEERS, method, seed % 2**31)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    limit = settings.fulls * task.scale.full / settings.workers
    first = {
        "space": described(network), "levels": len(task.curves.levels), "limit": limit, "workers": settings.workers
    }  # fmt: skip
    with subprocess.Popen(
        command, env={**os.environ, **threads}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    ) as peer:  # fmt: skip
        assert peer.stdin is not None and peer.stdout is not None
        print(json.dumps(first), file=peer.stdin, flush=True)
        for line in peer.stdout:
            message = json.loads(line) if line.startswith("{") else {}
            if "config" in message:
                values = task.curves.curve(message["config"]).values
                print(json.dumps({"values": values}), file=peer.stdin, flush=True)
            elif "trace" in message:
                trace = [
                    (clock / limit, task.scale.regret(value)) for clock, value in message["trace"]
                ]
                measured = {
                    "decision_seconds": message["seconds"],
                    "decisions": message["decisions"],
                }
                return {
                    **measured,
                    "regret": [regret_at(trace, share) for share in BUDGET_SHARES],
                    "trace": trace,
                }
    raise SystemExit(
        f"{method} ended without a result; run its script by hand to see why: {' '.join(command)}"
    )


def summary(records: list[dict[str, Any]]) -> None:
    """Print mean regret at each share, its standard error at the end, and the cost of deciding."""
    by_method: dict[str, dict[tuple[str, int], dict[str, Any]]] = {}
    for record in records:
        by_method.setdefault(record["method"], {})[record["task"], record["seed"]] = record
    print(
        f"{'method':28s} runs  regret at {', '.join(map(str, BUDGET_SHARES))}   CPU seconds of deciding"
    )
    for method, own in sorted(
        by_method.items(), key=lambda item: np.mean([r["regret"][-1] for r in item[1].values()])
    ):
        regret = np.array([record["regret"] for record in own.values()])
        error = (
            regret[:, -1].std(ddof=1) / np.sqrt(len(regret)) if len(regret) > 1 else float("nan")
        )
        means = " ".join(f"{value:.3f}" for value in regret.mean(axis=0))
        print(
            f"{method:28s} {len(own):4d}  {means} +- {error:.3f} "
            f" {np.mean([r['decision_seconds'] for r in own.values()]):.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("surrogate", type=Path)
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--tasks", default="all")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--fulls", type=int, default=20)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    settings = CurveSuiteSettings(
        given.fulls, given.workers, unit_cost=True, folder=given.out.parent
    )
    network = read_yahpo(given.surrogate)
    tasks = list(network.tasks) if given.tasks == "all" else given.tasks.split(",")
    for seed in range(given.seeds):
        for method in given.methods.split(","):
            cells = [
                c
                for c in curve_cells(given.surrogate, [method], tasks, seed + 1, settings)
                if c.seed == seed
            ]
            if not method.startswith(tuple(PEERS)):
                run_cells(cells, given.out, processes=1)
                continue
            done = (
                {(r["method"], r["task"], r["seed"]) for r in read_runs(given.out)}
                if given.out.exists()
                else set()
            )
            for cell in cells:
                if (method, cell.task, seed) not in done:
                    task = network_curves(network, cell.task, True, settings.folder)
                    record = {
                        **cell.head(),
                        **run_peer(network, task, method, own_seed(cell), settings),
                        "spent": list(BUDGET_SHARES),
                    }
                    with given.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(record) + "\n")
    summary(read_runs(given.out))


if __name__ == "__main__":
    main()
