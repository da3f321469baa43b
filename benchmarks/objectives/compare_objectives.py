"""Compare scrimp with Optuna, BoTorch and SMAC on several objectives.

    python benchmarks/run.py environments optuna botorch smac     # once
    python benchmarks/run.py compare_objectives --seeds 10 --trials 100 --peers optuna-tpe,optuna-nsga2 \\
        --tables fcnet.npz nasbench201_final.npz lcbench_yahpo.npz --tasks 2 --out objectives.jsonl
    python benchmarks/run.py compare_objectives --seeds 1 --trials 60 --peers botorch-nehvi --out objectives.jsonl
    python benchmarks/run.py compare_objectives --only speed --out objectives.jsonl
    python benchmarks/run.py compare_objectives --only show --out objectives.jsonl

Speed: CPU seconds of one ask after one newly told trial, with 100 observations of ZDT1, two
objectives and six parameters, one thread each; scrimp is also timed with noisy losses and with
three running trials, where it decides by joint draws.

Quality: `scrimp bench objectives` for scrimp. Peers run in processes of their own environments, ask
this process for the result of a configuration, and are measured by the same fronts. No peer can
search a pool; there it gets the row nearest to the configuration it asked for that it has not had
yet.

Runs in the results file are not repeated, so a stopped comparison resumes. Two comparisons at the
same time need two files (`--with` shows them together). A peer that is not installed is left out.
"""

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import scrimp
from benchmarks.environments import python, script_command
from benchmarks.peers.objective_loop import UnitCube, append, finished
from scrimp.bench.results import Cell, append_result, read_runs, result_cell
from scrimp.bench.runner import run_cells
from scrimp.bench.tables import described_space
from scrimp.bench.trade_off_formulas import TRADE_OFFS, speed_losses
from scrimp.bench.trade_off_suite import (
    FrontMeter,
    FrontQuestion,
    question_of,
    trade_off_cells,
    trade_off_summary,
)
from scrimp.bench.yahpo import searched_parameters
from scrimp.space.space import Pool

PEERS = {
    "optuna-gp": ("optuna", "optuna_objectives"),
    "optuna-nsga2": ("optuna", "optuna_objectives"),
    "optuna-tpe": ("optuna", "optuna_objectives"),
    "botorch-nehvi": ("botorch", "botorch_objectives"),
    "smac-parego": ("smac", "smac_objectives"),
}
MODELS = ("optuna-gp", "botorch-nehvi")
SPEEDS = {"zdt1": (0.0, 0), "zdt1 noisy": (0.3, 0), "zdt1 parallel": (0.0, 3)}
"""Timed settings of scrimp: noise in standard deviations of the losses, and running trials."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

Losses = tuple[list[float], list[float]] | None


def peer_command(name: str, what: str) -> list[str]:
    """Return the command that runs a peer; print a note and return [] when it is missing."""
    environment, script = PEERS[name]
    if not python(environment).exists():
        print(f"{name} is not installed and is left out", flush=True)
        return []
    return script_command(python(environment), script, what, "--method", name)


def description(cell: Cell) -> list[dict[str, Any]]:
    """Return the space of a problem as its file describes it."""
    if not cell.source:
        return [dict(parameter) for parameter in TRADE_OFFS[cell.task].space]
    with np.load(cell.source, allow_pickle=False) as file:
        meta = json.loads(str(file["meta"]))
    return searched_parameters(meta) if "nodes" in meta else meta["space"]


def measure_for_peer(
    question: FrontQuestion, space: list[dict[str, Any]]
) -> Callable[[dict[str, Any]], Losses]:
    """Return the function that answers a peer's requests.

    On a pool, it answers with the nearest row that the peer has not had yet.
    """
    if not isinstance(question.space, Pool):
        return question.measure
    pool, cube = question.space, UnitCube(space)
    rows = np.array([cube.encode(filled(config, space)) for config in pool.configs])
    free = np.ones(len(rows), dtype=bool)

    def nearest(config: dict[str, Any]) -> Losses:
        away = np.sum((rows - np.array(cube.encode(filled(config, space)))) ** 2, axis=1)
        row = int(np.argmin(np.where(free, away, np.inf)))
        free[row] = not free.any()  # when all rows were used, they are free again
        return question.measure(pool.configs[row])

    return nearest


def filled(config: dict[str, Any], space: list[dict[str, Any]]) -> dict[str, Any]:
    """Give every parameter that does not exist in a configuration one fixed value."""
    complete = {}
    for parameter in space:
        name, needs = parameter["name"], parameter.get("when", {})
        exists = all(config.get(parent) in np.atleast_1d(v) for parent, v in needs.items())
        plain = parameter["choices"][0] if "choices" in parameter else parameter["low"]
        complete[name] = config.get(name, plain) if exists else plain
    return complete


def play_peer(process: "subprocess.Popen[str]", cell: Cell) -> dict[str, Any]:
    """Run one study of a peer and return the regret after each trial."""
    assert process.stdin is not None and process.stdout is not None
    question, space = question_of(cell.source, cell.task), description(cell)
    meter, measure = FrontMeter(question.front), measure_for_peer(question, space)

    def send(message: dict[str, Any]) -> None:
        print(json.dumps(message), file=process.stdin, flush=True)

    objectives = question.front.shape[1]
    send({"space": space, "objectives": objectives, "trials": cell.size, "seed": cell.seed})
    for _ in range(cell.size):
        found = measure(json.loads(process.stdout.readline())["config"])
        losses, violations = found or (None, [])
        send({"losses": losses, "violations": violations})
        held = losses is not None and all(violation <= 0 for violation in violations)
        meter.add(np.array(losses) if held else None)
    seconds = json.loads(process.stdout.readline())["seconds"]
    measured = {"decision_seconds": seconds, "decisions": cell.size, "regret": meter.regret}
    return {**cell.head(), **measured}


def run_peer(name: str, cells: list[Cell], out: Path) -> None:
    """Run the studies of one peer that the file does not have, in a process of its own."""
    done = {result_cell(record) for record in read_runs(out)}
    missing = [cell for cell in cells if cell not in done]
    command = peer_command(name, "quality") if missing else []
    if not command:
        return
    pipe = subprocess.PIPE
    environment = {**os.environ, **ONE_THREAD}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        for cell in missing:
            record = play_peer(process, cell)
            append_result(out, record)
            print(f"{name} {cell.task} seed {cell.seed}: {record['regret'][-1]:.3f}", flush=True)


def own_speed(method: str, case: str, size: int, repeats: int) -> dict[str, object]:
    """Return the seconds of one ask of scrimp in one of `SPEEDS`, in this process."""
    problem, (noise, running) = TRADE_OFFS["zdt1"], SPEEDS[case]
    study = scrimp.create_study(
        "speed",
        described_space(problem.space),
        metrics={"f1": "minimize", "f2": "minimize"},
        method=method,
        storage="memory://",
        seed=0,
        noisy=noise > 0,
    )
    points, losses = speed_losses(size)
    rng, spread = np.random.default_rng(0), noise * np.std(losses, axis=0)

    def tell(trial: scrimp.Trial, exact: list[float]) -> None:
        f1, f2 = exact + spread * rng.standard_normal(2)
        study.tell(trial, {"f1": f1, "f2": f2})

    for point in points:
        study.enqueue({f"x{k + 1}": float(x) for k, x in enumerate(point)})
    for own in losses:
        tell(study.ask(), own)
    for _ in range(running):
        study.ask()
    trial, seconds = study.ask(), []
    for _ in range(repeats):
        tell(trial, problem.evaluate(trial.config)[0])
        start = time.process_time()
        trial = study.ask()
        seconds.append(time.process_time() - start)
    head = {"suite": "objective-speed", "table": "speed", "task": case, "method": method}
    least, middle = min(seconds), statistics.median(seconds)
    return {**head, "seed": 0, "size": size, "ask_seconds": least, "ask_seconds_median": middle}


def show(paths: list[Path]) -> None:
    """Print regrets and ranks after 30, 60 and 100 trials, and seconds, of all runs in the files."""
    records = [record for path in paths for record in read_runs(path)]
    for record in records:
        if record["suite"] == "objective-speed":
            print(
                f"{record['method']:>16} {record['task']}: {1e3 * record['ask_seconds']:.0f} ms least,"
                f" {1e3 * record['ask_seconds_median']:.0f} ms median"
            )
    header, rows = trade_off_summary([r for r in records if r["suite"] == "objectives"])
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in [header, *rows]:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="scrimp beside its peers on several objectives.")
    parser.add_argument("--out", type=Path, default=Path("results-objectives.jsonl"))
    parser.add_argument("--with", dest="others", type=Path, nargs="*", default=[])
    parser.add_argument("--only", choices=["speed", "quality", "show"])
    parser.add_argument("--methods", default="gp,parego,nsga2,random")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--problems", default="all", help="names of formulas, all or none")
    parser.add_argument("--tables", type=Path, nargs="*", default=[])
    parser.add_argument("--tasks", type=int, default=2, help="of each table, the first so many")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args()


def cells_of(given: argparse.Namespace, methods: list[str]) -> list[Cell]:
    """Return every run of the comparison, seeds outermost."""
    every = {"all": list(TRADE_OFFS), "none": []}
    names = every[given.problems] if given.problems in every else given.problems.split(",")
    cells = trade_off_cells(methods, names, given.tables, given.seeds, given.trials)
    tasks: dict[str, list[str]] = {}
    for cell in cells:
        own = tasks.setdefault(cell.source, [])
        if cell.task not in own and (not cell.source or len(own) < given.tasks):
            own.append(cell.task)
    return [cell for cell in cells if cell.task in tasks[cell.source]]


def main() -> None:
    """Run the missing parts, then print everything in the results file."""
    given = parsed()
    peers = [name for name in given.peers.split(",") if name]
    if given.only in (None, "speed"):
        for case in SPEEDS:
            if ("objective-speed", case, "gp", 0, given.size) not in finished(given.out):
                append(given.out, own_speed("gp", case, given.size, 5))
        for name in (peer for peer in peers if peer in MODELS):
            if command := peer_command(name, "speed"):
                options = ["--out", str(given.out), "--size", str(given.size)]
                subprocess.run(command + options, env={**os.environ, **ONE_THREAD}, check=True)
    if given.only in (None, "quality"):
        methods = [name for name in given.methods.split(",") if name]
        run_cells(cells_of(given, methods), given.out, given.processes)
        for name in peers:
            run_peer(name, cells_of(given, [name]), given.out)
    show([given.out, *given.others])


if __name__ == "__main__":
    main()
