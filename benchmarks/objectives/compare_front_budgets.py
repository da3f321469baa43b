"""Compare scrimp with Syne Tune's MO-ASHA on several objectives with training budgets.

    python benchmarks/run.py environments syne-tune          # once
    python benchmarks/run.py compare_front_budgets lcbench_yahpo.npz --tasks 4 --seeds 5 --out fronts.jsonl
    python benchmarks/run.py compare_front_budgets gpt_python.npz --methods auto --seeds 5 --out fronts.jsonl
    python benchmarks/run.py compare_front_budgets forest:alexnet_imagenet.npz --out fronts.jsonl

Four workers train on a virtual clock until ``--fulls`` full trainings are spent. One objective is
the value after each level; the other is constant along a run: the logarithm of the seconds of a
level, or of the number of weights where a table has no run times. On a pool, MO-ASHA draws rows at
random.

The regret is the missing share of the hypervolume of the true front, as in `scrimp bench
objectives`. For a surrogate, the front of thousands of random configurations takes the place of the
true one, and results beyond it count as 0 in means. The summary also says at which share of its
budget each method reaches the final front of MO-ASHA. Runs in the results file are not repeated.
"""

import argparse
import json
import os
import subprocess
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import scrimp
from benchmarks.environments import python, script_command
from benchmarks.peers.front_budget_loop import Config, Run, Workers
from scrimp.bench.curve_model import CurveModel, is_curve_model
from scrimp.bench.curve_tasks import TRAINED_EPOCHS, is_modelled, open_curves
from scrimp.bench.results import append_result, paired_interval, read_runs, with_interval
from scrimp.bench.tables import read_table
from scrimp.bench.trade_off_suite import (
    FrontMeter,
    table_objectives,
    weights_of,
)
from scrimp.bench.yahpo import is_yahpo, read_yahpo
from scrimp.errors import StudyError
from scrimp.fronts.dominance import non_dominated
from scrimp.space.space import Space
from scrimp.study.workers import end_early

PEER = "mo-asha"
NAMES = ("value", "constant")
SAMPLED = 4096
SHARES = tuple(k / 20 for k in range(1, 21))
Array = Any


@dataclass(frozen=True)
class Training:
    """A task with training budgets.

    It has the space (and its description for peers), the losses (L, 2) of a configuration's run,
    and the true front.
    """

    space: Space
    description: list[dict[str, Any]]
    run_of: Callable[[Config], Run]
    from_peer: Callable[[Config], Config]
    front: Array
    levels: int


def network_training(path: Path, task: str) -> Training:
    """Return a task of YAHPO's LCBench: error, and log seconds of an epoch."""
    network = read_yahpo(path)

    def runs(configs: Sequence[Config], epochs: Sequence[int]) -> Array:
        found = network.outputs(task, configs, epochs)
        error = 100.0 - found["val_accuracy"].astype(float)
        seconds = np.maximum(found["time"][:, -1:].astype(float), 1e-3) / len(TRAINED_EPOCHS)
        return np.stack([error, np.log10(seconds) + 0 * error], axis=-1)

    def run_of(config: Config) -> Run:
        found: Run = runs([config], TRAINED_EPOCHS)[0].tolist()
        return found

    some = TRAINED_EPOCHS[9::10]  # the network is slow and its curves are smooth
    front = sampled_front(network.space, lambda configs: runs(configs, some))
    return Training(
        network.space, described(network.space), run_of, dict, front, len(TRAINED_EPOCHS)
    )


def surrogate_training(path: Path, task: str) -> Training:
    """Return a task of a surrogate of learning curves.

    Its objectives are the value and the logarithm of the number of weights or, where the space does
    not give it, of the cost of a level.
    """
    made = open_curves(path).task(task)
    assert isinstance(made.curves, CurveModel)
    curves = made.curves

    def runs(configs: Sequence[Config]) -> Array:
        value, cost = curves.arrays(list(configs))
        weights = weights_of(made.space, configs)
        second = np.log10(cost[:, 0] if weights is None else weights)
        return np.stack([value, np.broadcast_to(second[:, None], value.shape)], axis=-1)

    def run_of(config: Config) -> Run:
        found: Run = runs([config])[0, : len(curves.curve(config).values)].tolist()
        return found

    levels = len(curves.levels)
    return Training(
        made.space, described(made.space), run_of, dict, sampled_front(made.space, runs), levels
    )


def sampled_front(space: Space, runs: Callable[[Sequence[Config]], Array]) -> Array:
    """Return the front of the lowest values along runs (n, L, 2) of random configurations.

    A search would find a better front, but one so far away that no method has any of its volume at
    these budgets.
    """
    found = runs(space.sample(SAMPLED, np.random.default_rng(0)))
    lowest = np.where(np.isfinite(found[:, :, 0]), found[:, :, 0], np.inf).min(axis=1)
    every = np.column_stack([lowest, found[:, 0, 1]])
    return every[non_dominated(every)]


def described(space: Space) -> list[dict[str, Any]]:
    """Return the parameters of a space in the form that peers read."""
    found: list[dict[str, Any]] = []
    for name, parameter in space.items():
        if isinstance(parameter, scrimp.Float | scrimp.Int):
            kind = "int" if isinstance(parameter, scrimp.Int) else "float"
            ends = {"low": parameter.low, "high": parameter.high, "log": parameter.log}
            found.append({"name": name, "type": kind, **ends})
        elif isinstance(parameter, scrimp.Ordinal):
            found.append({"name": name, "type": "ordinal", "choices": list(parameter.values)})
        elif isinstance(parameter, scrimp.Categorical):
            found.append({"name": name, "type": "choice", "choices": list(parameter.choices)})
    return found


def table_training(path: Path, task: str) -> Training:
    """Return a task of a table with budgets: its value, and a second objective of its rows."""
    table = read_table(path)
    own = table.task(task)
    second = table_objectives(own)[:, 1] - (0 if own.elapsed is None else np.log10(own.end))
    value = own.value
    losses = np.stack([value, np.broadcast_to(second[:, None], value.shape)], axis=-1)
    inside = np.arange(value.shape[1]) < own.end[:, None]
    known = losses[inside & np.isfinite(losses).all(axis=2)]

    def run_of(config: Config) -> Run:
        row = own.pool.index(config)
        return losses[row, : own.end[row]].tolist()  # type: ignore[no-any-return]

    rows = [{"name": "row", "type": "choice", "choices": list(range(len(losses)))}]
    return Training(
        own.pool,
        rows,
        run_of,
        lambda config: own.pool.configs[config["row"]],
        known[non_dominated(known)],
        value.shape[1],
    )


class OwnStudy:
    """A study of scrimp, driven by ask and tell."""

    def __init__(self, training: Training, method: str, seed: int) -> None:
        self.study = scrimp.create_study(
            "fronts",
            training.space,
            metrics=dict.fromkeys(NAMES, "minimize"),
            budget=scrimp.Budget("level", 1, training.levels),
            method=method,
            storage="memory://",
            seed=seed,
        )
        self.done: dict[int, int] = {}
        self.levels = training.levels

    def start(self) -> tuple[int, Config, int] | None:
        try:
            trial = self.study.ask()
        except StudyError:  # nothing to start now
            return None
        return trial.id, trial.config, self.done.get(trial.id, 0)

    def report(self, handle: int, level: int, losses: Sequence[float]) -> bool:
        self.done[handle] = level
        told = dict(zip(NAMES, losses, strict=True))
        return self.study.report(handle, step=level, **told)

    def fail(self, handle: int) -> None:
        self.study.tell(handle, state="failed")

    def end(self, handle: int, goes_on: bool) -> None:
        del goes_on  # a slice may end where its run does
        if self.done[handle] < self.levels:
            end_early(self.study, handle, "the run is over")


def played(training: Training, method: str, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """Return reports with the budget spent, CPU seconds and trials of one study."""
    limit = given.fulls * training.levels
    if method != PEER:
        workers = Workers(OwnStudy(training, method, seed), training.run_of)
        workers.play(limit, given.workers)
        return {
            "reports": workers.reports, "seconds": workers.seconds, "trials": len(workers.runs)
        }  # fmt: skip
    command = script_command(python("syne-tune"), "syne_fronts", "--seed", str(seed))
    task = {"space": training.description, "names": NAMES, "levels": training.levels}
    pipe = subprocess.PIPE
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    with process:
        assert process.stdin is not None and process.stdout is not None
        message: dict[str, Any] = {**task, "limit": limit, "workers": given.workers}
        while True:
            print(json.dumps(message), file=process.stdin, flush=True)
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            if "config" not in answer:
                return answer
            message = {"run": training.run_of(training.from_peer(answer["config"]))}


def measured(
    training: Training, head: dict[str, Any], play: dict[str, Any], limit: int
) -> dict[str, Any]:
    """Return the regret at every twentieth of the budget."""
    meter, at, regret = FrontMeter(training.front), 0, []
    for share in SHARES:
        while at < len(play["reports"]) and play["reports"][at][0] <= share * limit + 1e-9:
            meter.add(np.array(play["reports"][at][1]))
            at += 1
        regret.append(meter.regret[-1] if meter.regret else 1.0)
    cost = {"decision_seconds": play["seconds"], "trials": play["trials"]}
    return {**head, **cost, "spent": list(SHARES), "regret": regret}


Runs = dict[str, dict[tuple[str, str, int], list[float]]]
"""Regrets of each method, by table, task and seed."""


def show(path: Path) -> None:
    """Print regrets by share of the budget.

    Each method at half of its budget is also compared with the final fronts of MO-ASHA and of
    scrimp's ``asha``.
    """
    runs: Runs = {}
    for record in read_runs(path):
        cell = (record["table"], record["task"], record["seed"])
        # results beyond the front of a surrogate count as on it
        regrets = [1.0 if value is None else max(value, 0.0) for value in record["regret"]]
        runs.setdefault(record["method"], {})[cell] = regrets
    for method, own in runs.items():
        shared = sorted(cell for cell in own if all(cell in other for other in runs.values()))
        mean = np.mean([own[cell] for cell in shared or own], axis=0)
        line = " ".join(f"{mean[round(20 * share) - 1]:.4f}" for share in (0.1, 0.25, 0.5, 1.0))
        print(f"{method:>16}, {len(shared or own)} runs: regret at .1 .25 .5 1: {line}")
        for peer in (PEER, "asha"):
            if peer in runs and peer != method:
                print(f"{'':>18}{beside(own, runs[peer], peer)}")


def beside(own: dict[Any, list[float]], other: dict[Any, list[float]], peer: str) -> str:
    """Compare a method at half of its budget with a peer's end on the same runs.

    The interval is over problems, each the mean of its seeds.
    """
    shared = sorted(set(own) & set(other))
    if not shared:
        return f"no run that {peer} has too"
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for cell in shared:
        pairs.setdefault(cell[:2], []).append((own[cell][9], other[cell][-1]))
    half, last = np.array([np.mean(seeds, axis=0) for seeds in pairs.values()]).T.tolist()
    # where neither has a part of the front, nothing was reached
    reached = sum(a <= b and a < 1.0 for seeds in pairs.values() for a, b in seeds)
    end = np.mean([other[cell][-1] for cell in shared])
    below = np.flatnonzero(np.mean([own[cell] for cell in shared], axis=0) <= end)
    by = f"with {SHARES[below[0]]:.2f} of the budget" if len(below) else "not"
    return (
        f"at half, minus {peer}'s end, {len(pairs)} problems:"
        f" {with_interval(*paired_interval(half, last), '.4f')}; reached in {reached} of"
        f" {len(shared)} runs; its mean is reached {by}"
    )


def main() -> None:
    """Run the missing parts, then print everything in the results file."""
    parser = argparse.ArgumentParser(description="Fronts with training budgets beside MO-ASHA.")
    parser.add_argument("table", type=Path, nargs="?", help="a table with budgets, or a surrogate")
    parser.add_argument("--out", type=Path, default=Path("results-front-budgets.jsonl"))
    parser.add_argument("--methods", default=f"auto,asha,{PEER}")
    parser.add_argument("--tasks", type=int, default=4, help="the first so many")
    parser.add_argument("--only", default="", help="tasks by name, separated by commas")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--fulls", type=int, default=20)
    parser.add_argument("--workers", type=int, default=4)
    given = parser.parse_args()
    if given.table is not None:
        run_missing(given)
    show(given.out)


def tasks_of(table: Path) -> tuple[Sequence[str], Callable[[Path, str], Training]]:
    """Return the tasks of a file, and the function that makes their runs."""
    if is_modelled(table) or is_curve_model(table):
        return open_curves(table).tasks, surrogate_training
    if is_yahpo(table):
        return read_yahpo(table).tasks, network_training
    return read_table(table).tasks, table_training


def run_missing(given: argparse.Namespace) -> None:
    """Run everything that is not in the results file, seeds outermost."""
    names, make = tasks_of(given.table)
    names = given.only.split(",") if given.only else names[: given.tasks]
    trainings = {name: make(given.table, name) for name in names}
    kind, colon, rest = str(given.table).rpartition(":")
    called = kind + colon + Path(rest).stem
    parts = ("table", "task", "method", "seed", "size")
    done = {tuple(dict(record).get(part) for part in parts) for record in read_runs(given.out)}
    for seed in range(given.seeds):
        for name, training in trainings.items():
            for method in given.methods.split(","):
                if method == PEER and not python("syne-tune").exists():
                    continue
                key = (called, name, method, seed, given.fulls)
                if key in done:
                    continue
                own_seed = zlib.crc32(f"{name}/{seed}".encode()) % 2**31
                head = {"suite": "front-budgets", **dict(zip(parts, key, strict=True))}
                play = played(training, method, own_seed, given)
                record = measured(training, head, play, given.fulls * training.levels)
                append_result(given.out, record)
                print(*key, f"{record['regret'][9]:.4f} {record['regret'][-1]:.4f}", flush=True)


if __name__ == "__main__":
    main()
