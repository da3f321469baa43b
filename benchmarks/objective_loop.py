"""What every peer with several objectives is put through: run inside the peer's own environment,
needing NumPy alone.

    .venvs/optuna/bin/python benchmarks/peer_optuna_objectives.py quality --method optuna-gp --out peers.jsonl
    .venvs/optuna/bin/python benchmarks/peer_optuna_objectives.py speed --method optuna-gp --out peers.jsonl

*Quality* writes the losses and violations of every trial (``tried``); `compare_objectives.py` makes
regrets of them. *Speed*: CPU seconds of one ask after one newly told trial, with ``--size``
observations of ZDT1 in six parameters. Runs that the file holds are skipped.
"""

import argparse
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Protocol

Config = dict[str, float]
Space = Sequence[Mapping[str, float]]


class ObjectivePeer(Protocol):
    """One study of a peer's optimizer, minimising several objectives over ``space``."""

    def ask(self) -> Config:
        """The next configuration to try."""

    def tell(self, losses: list[float], violations: list[float]) -> None:
        """What the configuration asked for last gave."""

    def add(self, config: Config, losses: list[float]) -> None:
        """One more observation that this study did not ask for."""


MakePeer = Callable[[str, Space, int, int], ObjectivePeer]
"""Method, space, number of objectives, seed."""


def load_problems() -> ModuleType:
    """scrimp/bench/trade_off_formulas.py by its path: peers' environments do not have scrimp."""
    path = Path(__file__).resolve().parent.parent / "scrimp" / "bench" / "trade_off_formulas.py"
    specification = importlib.util.spec_from_file_location("trade_off_formulas", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["trade_off_formulas"] = module
    specification.loader.exec_module(module)
    return module


def run_quality(
    make: MakePeer, method: str, name: str, seed: int, trials: int
) -> dict[str, object]:
    """One study of ``trials`` evaluations of one problem."""
    problem = load_problems().TRADE_OFFS[name]
    peer = make(method, problem.space, problem.front.shape[1], seed)
    seconds, tried = 0.0, []
    for _ in range(trials):
        start = time.process_time()
        config = peer.ask()
        seconds += time.process_time() - start
        losses, violations = problem.evaluate(config)
        tried.append([losses, violations])
        start = time.process_time()
        peer.tell(losses, violations)
        seconds += time.process_time() - start
    head = {"suite": "objectives", "table": "formulas", "task": name, "method": method}
    measured = {"decision_seconds": round(seconds, 4), "decisions": trials, "tried": tried}
    return {**head, "seed": seed, "size": trials, **measured}


def run_speed(make: MakePeer, method: str, size: int, repeats: int) -> dict[str, object]:
    """Seconds of one ask after one newly told trial, from ``size`` observations on."""
    problems = load_problems()
    problem = problems.TRADE_OFFS["zdt1"]
    peer = make(method, problem.space, 2, 0)
    for point, losses in zip(*problems.speed_losses(size), strict=True):
        peer.add({f"x{k + 1}": float(x) for k, x in enumerate(point)}, losses)
    config, seconds = peer.ask(), []
    for _ in range(repeats):
        peer.tell(problem.evaluate(config)[0], [])
        start = time.process_time()
        config = peer.ask()
        seconds.append(time.process_time() - start)
    head = {"suite": "objective-speed", "table": "speed", "task": "zdt1", "method": method}
    least, middle = min(seconds), statistics.median(seconds)
    return {**head, "seed": 0, "size": size, "ask_seconds": least, "ask_seconds_median": middle}


def finished(out: Path) -> set[tuple[object, ...]]:
    """The runs that a results file holds; a torn last line does not count."""
    done = set()
    for line in out.read_text().splitlines() if out.exists() else []:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        done.add(tuple(record[part] for part in ("suite", "task", "method", "seed", "size")))
    return done


def main(make: MakePeer, methods: list[str]) -> None:
    """Run what is missing, one line of the file each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["quality", "speed"])
    parser.add_argument("--method", choices=methods, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--problems", default="all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    done = finished(given.out)
    if given.what == "speed":
        if ("objective-speed", "zdt1", given.method, 0, given.size) not in done:
            append(given.out, run_speed(make, given.method, given.size, given.repeats))
        return
    known = list(load_problems().TRADE_OFFS)
    names = known if given.problems == "all" else given.problems.split(",")
    for seed in range(given.seeds):
        for name in names:
            if ("objectives", name, given.method, seed, given.trials) not in done:
                append(given.out, run_quality(make, given.method, name, seed, given.trials))


def append(out: Path, record: dict[str, object]) -> None:
    """One more line."""
    with out.open("a") as file:
        file.write(json.dumps(record) + "\n")
