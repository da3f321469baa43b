"""Compare scrimp with its peers in live training, by equal units and by equal wall clock.

    python benchmarks/run.py environments training optuna syne-tune                      # once
    .venvs/training/bin/python benchmarks/run.py real_training run --out real.jsonl      # resumes
    .venvs/training/bin/python benchmarks/run.py real_training run --out real.jsonl --seconds 60
    .venvs/training/bin/python benchmarks/run.py real_training run --out real.jsonl --problems gpt --workers 4 --gpu
    .venvs/training/bin/python benchmarks/run.py real_training report real.jsonl

Each run gives an optimizer a total of ``fulls`` full trainings in units (epochs, rounds, steps), or
``--seconds``, which scrimp gets as its `timeout`. The clock starts before the worker processes.
scrimp runs as a user runs it: `study.optimize` with worker processes, a SQLite file and
checkpoints. Peers are driven by a loop that gives every free worker process the next request of the
optimizer; a worker trains one unit from the checkpoint of the run, and its loss goes back at once.
The optimizer decides about pauses, resumes and stops. Each run is one line with the best loss by
units and by seconds.

``report`` prints the results (`training_report`).
"""

import argparse
import json
import math
import multiprocessing
import os
import pickle
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import scrimp
from benchmarks.environments import peer_command
from benchmarks.training.training_problems import Config, Problem
from benchmarks.training.training_report import key, read, report
from benchmarks.training.unseen_problems import ALL_PROBLEMS
from scrimp.bench.tables import described_space
from scrimp.executors.clock import wall_clock as scrimp_clock
from scrimp.study_log.events import Reported

METHODS = "auto,asha,mobster-joint,hypertune-indep,dyhpo,random,optuna-tpe-hyperband,optuna-gp-hyperband,syne-tune-mobster-joint"
PEERS = {
    "optuna-": ("optuna", "optuna_curves"),
    "syne-tune-": ("syne-tune", "syne_curves"),
}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Slice = tuple[Any, Config, int]


def run_scrimp(name: str, method: str, seed: int, given: argparse.Namespace, folder: str) -> Any:
    """Run a study with worker processes, a SQLite file and checkpoints, and return its trace."""
    problem = ALL_PROBLEMS[name]
    study = scrimp.create_study(
        "live",
        described_space(problem.space),
        metric="loss",
        budget=scrimp.Budget("unit", 1, problem.units),
        method=method,
        storage=f"sqlite:///{folder}/live.db",
        seed=seed,
    )

    def objective(trial: Any) -> None:
        from benchmarks.training.unseen_problems import ALL_PROBLEMS

        path = trial.checkpoint_dir / "state"
        state = (
            pickle.loads(path.read_bytes())
            if trial.resumed
            else ALL_PROBLEMS[name].start(trial.params, seed)
        )
        for _ in trial.steps():
            state, loss = ALL_PROBLEMS[name].train(state)
            path.write_bytes(pickle.dumps(state))
            trial.report(loss=loss)

    began = scrimp_clock()
    study.optimize(
        objective,
        total_budget=None if given.seconds else given.fulls * problem.units,
        timeout=given.seconds,
        workers=given.workers,
        durable="log",
        progress=False,
    )
    trace: list[list[float]] = []
    reports = [event for event in study.history.events if isinstance(event, Reported)]
    for spent, event in enumerate(reports, start=1):
        loss, passed = event.metrics["loss"], event.time - began
        if given.seconds and passed > given.seconds:
            continue
        if loss is not None and (not trace or loss < trace[-1][2]):
            trace.append([spent, passed, loss])
    return trace


class Peer:
    """An optimizer in a process and environment of its own, driven by `curve_loop --live`."""

    def __init__(self, method: str, problem: Problem, seed: int) -> None:
        command = [*peer_command(PEERS, method, seed), "--live"]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        plain = [
            {key: value for key, value in item.items() if key != "when"} for item in problem.space
        ]
        self.asked({"space": plain, "levels": problem.units})

    def asked(self, message: Any) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(message), file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise SystemExit(f"the peer ended; run it by hand to see why: {self.process.args}")

    def start(self) -> Slice | None:
        answer = self.asked({"start": True})
        return (
            None
            if answer["handle"] is None
            else (answer["handle"], answer["config"], answer["done"])
        )

    def report(self, handle: int, level: int, value: float) -> bool:
        return bool(self.asked({"report": [handle, level, value]})["goes_on"])

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def train(name: str, config: Config, seed: int, checkpoint: str, begin: int) -> float:
    """Train one unit of a run in a worker process, from its checkpoint to the next one."""
    problem, path = ALL_PROBLEMS[name], Path(checkpoint)
    state = pickle.loads(path.read_bytes()) if begin else problem.start(config, seed)
    state, loss = problem.train(state)
    path.write_bytes(pickle.dumps(state))
    return loss


@contextmanager
def worker_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Provide processes that train with one thread each, so that they do not compete."""
    for name in THREADS:
        os.environ[name] = "1"
    with ProcessPoolExecutor(
        count, multiprocessing.get_context("spawn"), initializer=one_thread
    ) as pool:
        yield pool


def one_thread() -> None:
    """Limit a worker process to one thread; torch has a setting of its own."""
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)


def live(
    optimizer: Any,
    job: Callable[[Slice], Future[float]],
    limits: tuple[float, float],
    workers: int,
    began: float,
) -> Any:
    """Return the best loss so far as [units, seconds, loss] at every improvement.

    The loop ends when the units or seconds of ``limits`` are spent.
    """
    (total, seconds), spent, asked, trace = limits, 0, 0, []
    busy: dict[Future[float], Slice] = {}
    while True:
        while len(busy) < workers and asked < total:
            part = optimizer.start()
            if part is None:
                break
            busy[job(part)] = part
            asked += 1
        if not busy:
            return trace
        for future in wait(busy, return_when=FIRST_COMPLETED).done:
            handle, config, done = busy.pop(future)
            spent, loss, passed = spent + 1, future.result(), time.monotonic() - began
            if passed > seconds:
                return trace
            if not trace or loss < trace[-1][2]:
                trace.append([spent, passed, loss])
            if optimizer.report(handle, done + 1, loss) and asked < total:
                part = handle, config, done + 1
                busy[job(part)] = part
                asked += 1


def run_peer(name: str, method: str, seed: int, given: argparse.Namespace, folder: str) -> Any:
    """Run a study of a peer and return its trace."""
    problem = ALL_PROBLEMS[name]
    limits = (math.inf, given.seconds) if given.seconds else (given.fulls * problem.units, math.inf)
    with closing(Peer(method, problem, seed)) as optimizer, worker_processes(given.workers) as pool:
        began = time.monotonic()  # workers start when they are first needed

        def job(part: Slice) -> Future[float]:
            handle, config, done = part
            return pool.submit(train, name, config, seed, f"{folder}/{handle}", done)

        return live(optimizer, job, limits, given.workers, began)


def run_one(name: str, method: str, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """Run one study from its start to its last unit."""
    peer = any(method.startswith(prefix) for prefix in PEERS)
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        trace = (run_peer if peer else run_scrimp)(name, method, seed, given, folder)
        seconds = given.seconds or time.monotonic() - began
    fulls = None if given.seconds else given.fulls
    return {
        "problem": name, "method": method, "seed": seed, "fulls": fulls, "limit": given.seconds, "workers": given.workers,
        "units": None if fulls is None else fulls * ALL_PROBLEMS[name].units, "seconds": seconds,
        "best": trace[-1][2] if trace else math.inf, "trace": trace,
    }  # fmt: skip


def run(given: argparse.Namespace) -> None:
    """Run everything that is not in the results file, seed by seed.

    An interrupted comparison has therefore the same seeds for all methods.
    """
    held = {key(record) for record in read(given.out)} if given.out.exists() else set()
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for name in given.problems.split(","):
            for method in given.methods.split(","):
                fulls = None if given.seconds else given.fulls
                if (name, method, seed, fulls, given.seconds, given.workers) in held:
                    continue
                record = run_one(name, method, seed, given)
                with given.out.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                print(
                    f"{name} {method} seed {seed}: {record['best']:.4f} in"
                    f" {record['seconds']:.0f} s",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run", help="run what the file does not hold yet")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--problems", default="mlp,boosting,convnet,transformer")
    running.add_argument("--methods", default=METHODS)
    running.add_argument("--seeds", type=int, default=10)
    running.add_argument("--first-seed", type=int, default=0)
    running.add_argument("--fulls", type=int, default=12)
    running.add_argument(
        "--seconds", type=float, help="limit each study by the clock instead of by fulls"
    )
    running.add_argument("--workers", type=int, default=2)
    running.add_argument(
        "--gpu", action="store_true", help="the larger transformer (gpt) on a GPU instead"
    )
    running.set_defaults(call=run)
    reporting = commands.add_parser("report", help="tables of what a file holds")
    reporting.add_argument("file", type=Path)
    reporting.set_defaults(call=report)
    given = parser.parse_args()
    if getattr(given, "gpu", False):
        given.problems = "gpt"
    given.call(given)


if __name__ == "__main__":
    main()
