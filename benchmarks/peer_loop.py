"""What every peer is put through, the same for all: run inside the peer's own environment, needing
NumPy alone.

    .venvs/optuna/bin/python benchmarks/peer_optuna.py quality --out peers.jsonl --method optuna-gp --seeds 20 --trials 50
    .venvs/optuna/bin/python benchmarks/peer_optuna.py speed --out peers.jsonl --method optuna-gp --sizes 50,100,200

*Quality*: each test function with each seed, one trial at a time; one JSON object per finished run,
of the shape that `scrimp bench functions` writes. *Speed*: a study that holds n observations of
Hartmann 6, the last one just told, is asked once: CPU seconds of that ask, so refit plus
acquisition; the proposals are kept, so that their acquisition values can be compared on one and the
same model. The first ask of a study is not timed. Runs that the file holds already are skipped.

A peer is a class with the methods of `Peer`; `main` drives it.
"""

import argparse
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

Config = dict[str, Any]
Space = Sequence[Mapping[str, Any]]


class Peer(Protocol):
    """One study of a peer's optimizer, minimising over ``space``."""

    def ask(self) -> Config:
        """The next configuration to try."""

    def tell(self, value: float | None) -> None:
        """The value of the configuration asked for last; None when it failed."""

    def add(self, config: Config, value: float) -> None:
        """One more observation that this study did not ask for."""


MakePeer = Callable[[str, Space, int], Peer]


def load_formulas() -> ModuleType:
    """scrimp/bench/formulas.py by its path: peers' environments do not have scrimp."""
    path = Path(__file__).resolve().parent.parent / "scrimp" / "bench" / "formulas.py"
    specification = importlib.util.spec_from_file_location("formulas", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["formulas"] = module
    specification.loader.exec_module(module)
    return module


def run_quality(make: MakePeer, method: str, name: str, seed: int, trials: int) -> dict[str, Any]:
    """One study of ``trials`` evaluations of one function."""
    formulas = load_formulas()
    formula = formulas.FORMULAS[name]
    recorder = formulas.Recorder(formula, seed)
    start = time.process_time()
    peer = make(method, formula.space, seed)
    seconds = time.process_time() - start
    for _ in range(trials):
        start = time.process_time()
        config = peer.ask()
        seconds += time.process_time() - start
        value = recorder.measure(config)
        start = time.process_time()
        peer.tell(value)
        seconds += time.process_time() - start
    at = list(range(1, trials + 1))
    head = {
        "suite": "functions",
        "table": "functions",
        "task": name,
        "method": method,
        "seed": seed,
        "size": trials,
    }
    return {
        **head,
        "decision_seconds": round(seconds, 4),
        "decisions": trials,
        "at": at,
        "regret": recorder.regret,
    }


def run_speed(make: MakePeer, method: str, size: int, repeats: int) -> dict[str, Any]:
    """Seconds of one ask after one newly told value, from ``size`` observations on, over
    ``repeats``.

    The study starts with ``size - 1`` points of the common design; each further observation is the
    value of its last proposal.
    """
    formulas = load_formulas()
    formula = formulas.FORMULAS["hartmann6"]
    peer = make(method, formula.space, 0)
    for point, value in zip(*formulas.speed_data(size - 1), strict=True):
        peer.add({f"x{k + 1}": float(x) for k, x in enumerate(point)}, float(value))
    proposals, seconds = [peer.ask()], []
    for _ in range(repeats):
        peer.tell(formula.evaluate(proposals[-1]))
        start = time.process_time()
        proposals.append(peer.ask())
        seconds.append(time.process_time() - start)
    head = {
        "suite": "speed",
        "table": "speed",
        "task": "hartmann6",
        "method": method,
        "seed": 0,
        "size": size,
        "n": size,
    }
    measured = {
        "ask_seconds": min(seconds),
        "ask_seconds_median": statistics.median(seconds),
        "repeats": repeats,
    }
    return {**head, **measured, "proposals": proposals}


def key(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes a run the same run."""
    return record["suite"], record["task"], record["method"], record["seed"], record["size"]


def finished(out: Path) -> set[tuple[Any, ...]]:
    """The runs that a results file holds; a torn last line of an interrupted run does not count."""
    if not out.exists():
        return set()
    done = set()
    for line in out.read_text().splitlines():
        try:
            done.add(key(json.loads(line)))
        except json.JSONDecodeError:
            continue
    return done


def write(out: Path, record: Mapping[str, Any]) -> None:
    """Append one finished run."""
    with out.open("a") as file:
        file.write(json.dumps(record) + "\n")


def numbers(text: str) -> list[int]:
    """'50,100' as [50, 100]."""
    return [int(part) for part in text.split(",")]


def cells(arguments: argparse.Namespace, names: Iterable[str]) -> list[tuple[Any, ...]]:
    """Every run asked for, seeds outermost, so that an interrupted comparison is still balanced."""
    if arguments.suite == "speed":
        return [
            ("speed", "hartmann6", arguments.method, 0, size) for size in numbers(arguments.sizes)
        ]
    chosen = list(names) if arguments.functions == "all" else arguments.functions.split(",")
    return [
        ("functions", name, arguments.method, seed, arguments.trials)
        for seed in range(arguments.seeds)
        for name in chosen
    ]


def main(make: MakePeer, methods: Sequence[str]) -> None:
    """The command line of one peer."""
    parser = argparse.ArgumentParser(description="One peer on scrimp's test functions.")
    parser.add_argument("suite", choices=["quality", "speed"])
    parser.add_argument("--method", choices=methods, default=methods[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--functions", default="all")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--sizes", default="50,100,200,500,1000")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    done = finished(arguments.out)
    for cell in cells(arguments, load_formulas().FORMULAS):
        if cell in done:
            continue
        suite, name, method, seed, length = cell
        if suite == "speed":
            write(arguments.out, run_speed(make, method, length, arguments.repeats))
        else:
            write(arguments.out, run_quality(make, method, name, seed, length))
