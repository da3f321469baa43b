"""scrimp beside its peers on several objectives, in one run on one machine.

    python benchmarks/environments.py optuna botorch     # once
    python benchmarks/compare_objectives.py --seeds 3 --trials 60 --out objectives.jsonl
    python benchmarks/compare_objectives.py --only speed --out objectives.jsonl

Speed: CPU seconds of one ask after one newly told trial, 100 observations of ZDT1, two objectives,
six parameters, one thread each. Quality: `scrimp bench objectives`, and the peers' trials measured
by the same fronts. What the results file holds is not run again; a peer that is not installed is
left out.
"""

import argparse
import os
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np
from environments import python
from objective_loop import append, finished

import scrimp
from scrimp.bench.described_space import described_space
from scrimp.bench.results import read_runs
from scrimp.bench.runner import run_cells
from scrimp.bench.trade_off_formulas import TRADE_OFFS, speed_losses
from scrimp.bench.trade_off_report import trade_off_summary
from scrimp.bench.trade_off_suite import FrontMeter, trade_off_cells

HERE = Path(__file__).resolve().parent
PEERS = {
    "optuna-gp": ("optuna", "peer_optuna_objectives.py"),
    "optuna-nsga2": ("optuna", "peer_optuna_objectives.py"),
    "optuna-tpe": ("optuna", "peer_optuna_objectives.py"),
    "botorch-nehvi": ("botorch", "peer_botorch_objectives.py"),
}
MODELS = ("optuna-gp", "botorch-nehvi")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def run_peer(name: str, what: str, out: Path, *options: str) -> None:
    """One peer in its own environment, one thread."""
    environment, script = PEERS[name]
    if not python(environment).exists():
        print(f"{name} is not installed and is left out", flush=True)
        return
    command = [str(python(environment)), str(HERE / script), what, "--method", name]
    subprocess.run(
        [*command, "--out", str(out), *options], env={**os.environ, **ONE_THREAD}, check=True
    )


def own_speed(method: str, size: int, repeats: int) -> dict[str, object]:
    """The same of scrimp, in this process."""
    problem = TRADE_OFFS["zdt1"]
    study = scrimp.create_study(
        "speed",
        described_space(problem.space),
        metrics={"f1": "minimize", "f2": "minimize"},
        method=method,
        storage="memory://",
        seed=0,
    )
    points, losses = speed_losses(size)
    for point in points:
        study.enqueue({f"x{k + 1}": float(x) for k, x in enumerate(point)})
    for own in losses:
        study.tell(study.ask(), {"f1": own[0], "f2": own[1]})
    trial, seconds = study.ask(), []
    for _ in range(repeats):
        own = problem.evaluate(trial.config)[0]
        study.tell(trial, {"f1": own[0], "f2": own[1]})
        start = time.process_time()
        trial = study.ask()
        seconds.append(time.process_time() - start)
    head = {"suite": "objective-speed", "table": "speed", "task": "zdt1", "method": method}
    least, middle = min(seconds), statistics.median(seconds)
    return {**head, "seed": 0, "size": size, "ask_seconds": least, "ask_seconds_median": middle}


def measured(out: Path) -> None:
    """Regrets after 30, 60 and 100 trials, and seconds, of everything the file holds."""
    records = read_runs(out)
    for record in records:
        if record["suite"] == "objective-speed":
            print(
                f"{record['method']:>16}: {1e3 * record['ask_seconds']:.0f} ms least,"
                f" {1e3 * record['ask_seconds_median']:.0f} ms median"
            )
    runs = [record for record in records if record["suite"] == "objectives"]
    for record in runs:
        if "regret" not in record:
            meter = FrontMeter(TRADE_OFFS[record["task"]].front)
            for losses, violations in record["tried"]:
                holds = all(violation <= 0 for violation in violations)
                meter.add(np.array(losses) if holds else None)
            record["regret"] = meter.regret
    if runs:
        header, rows = trade_off_summary(runs)
        for row in [header, *rows]:
            print("  ".join(cell.rjust(22) for cell in row))


def main() -> None:
    """Run what is missing, then print everything the results file holds."""
    parser = argparse.ArgumentParser(description="scrimp beside its peers on several objectives.")
    parser.add_argument("--out", type=Path, default=Path("results-objectives.jsonl"))
    parser.add_argument("--only", choices=["speed", "quality", "show"])
    parser.add_argument("--methods", default="gp,parego,nsga2,random")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--problems", default="all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--size", type=int, default=100)
    given = parser.parse_args()
    peers = [name for name in given.peers.split(",") if name]
    if given.only in (None, "speed"):
        if ("objective-speed", "zdt1", "gp", 0, given.size) not in finished(given.out):
            append(given.out, own_speed("gp", given.size, 5))
        for name in peers:
            if name in MODELS:
                run_peer(name, "speed", given.out, "--size", str(given.size))
    if given.only in (None, "quality"):
        names = list(TRADE_OFFS) if given.problems == "all" else given.problems.split(",")
        run_cells(
            trade_off_cells(given.methods.split(","), names, [], given.seeds, given.trials),
            given.out,
        )
        options = ["--seeds", str(given.seeds), "--trials", str(given.trials)]
        for name in peers:
            run_peer(name, "quality", given.out, "--problems", ",".join(names), *options)
    measured(given.out)


if __name__ == "__main__":
    main()
