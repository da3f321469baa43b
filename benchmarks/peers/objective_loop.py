"""Drive a peer on several objectives, in the peer's own environment; needs NumPy only.

    .venvs/optuna/bin/python benchmarks/run.py optuna_objectives speed --method optuna-gp --out peers.jsonl
    .venvs/optuna/bin/python benchmarks/run.py optuna_objectives quality --method optuna-gp

*Quality*: the process of the peer has the optimizer only. The problems are in the process that
started it (`compare_objectives`), which asks for one configuration after the other:

    in     {"space": [...], "objectives": 2, "trials": 60, "seed": 0}     a new study
    out    {"config": {...}}
    in     {"losses": [...], "violations": [...]}                         {"losses": null}: failed
    ...
    out    {"seconds": 1.5}                                               CPU seconds of its own calls

*Speed*: CPU seconds of one ask after one newly told trial, with ``--size`` observations of ZDT1 in
six parameters. Runs in the results file are not repeated.
"""

import argparse
import importlib.util
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

Config = dict[str, Any]
Space = Sequence[dict[str, Any]]
"""A space as benchmark tables describe it."""


class ObjectivePeer(Protocol):
    """A study of a peer's optimizer, which minimises several objectives over ``space``."""

    def ask(self) -> Config:
        """Return the next configuration to try."""

    def tell(self, losses: list[float] | None, violations: list[float]) -> None:
        """Take in the losses of the last configuration; None means that it failed."""

    def add(self, config: Config, losses: list[float]) -> None:
        """Take in an observation that this study did not ask for."""


MakePeer = Callable[[str, Space, int, int], ObjectivePeer]
"""A function from method, space, number of objectives and seed to a peer."""


class UnitCube:
    """A described space as a cube.

    Numbers are their place in the range (logarithmic where the space says so), ordinals are their
    index, and every choice has a column.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.widths = [len(p["choices"]) if p["type"] == "choice" else 1 for p in space]
        self.discrete = all("choices" in p for p in space)

    def encode(self, config: Config) -> list[float]:
        """Return the row of a configuration."""
        row: list[float] = []
        for parameter in self.space:
            value = config[parameter["name"]]
            if parameter["type"] == "choice":
                row += [float(value == choice) for choice in parameter["choices"]]
            elif parameter["type"] == "ordinal":
                last = len(parameter["choices"]) - 1
                row.append(parameter["choices"].index(value) / max(last, 1))
            else:
                low, high = _bent(parameter, parameter["low"]), _bent(parameter, parameter["high"])
                row.append((_bent(parameter, value) - low) / (high - low))
        return row

    def decode(self, row: Sequence[float]) -> Config:
        """Return the configuration nearest to a row."""
        config, start = {}, 0
        for parameter, width in zip(self.space, self.widths, strict=True):
            own = list(row[start : start + width])
            start += width
            if parameter["type"] == "choice":
                config[parameter["name"]] = parameter["choices"][own.index(max(own))]
            elif parameter["type"] == "ordinal":
                last = len(parameter["choices"]) - 1
                config[parameter["name"]] = parameter["choices"][round(own[0] * last)]
            else:
                config[parameter["name"]] = _unbent(parameter, own[0])
        return config


def _bent(parameter: dict[str, Any], value: float) -> float:
    return math.log(value) if parameter.get("log") else value


def _unbent(parameter: dict[str, Any], unit: float) -> float:
    low, high = _bent(parameter, parameter["low"]), _bent(parameter, parameter["high"])
    value = low + min(max(unit, 0.0), 1.0) * (high - low)
    value = min(
        max(math.exp(value) if parameter.get("log") else value, parameter["low"]), parameter["high"]
    )
    return round(value) if parameter["type"] == "int" else value


def load_problems() -> ModuleType:
    """Load scrimp/bench/trade_off_formulas.py by its path: peers have no scrimp."""
    path = Path(__file__).resolve().parents[2] / "scrimp" / "bench" / "trade_off_formulas.py"
    specification = importlib.util.spec_from_file_location("trade_off_formulas", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["trade_off_formulas"] = module
    specification.loader.exec_module(module)
    return module


def serve(make: MakePeer, method: str) -> None:
    """Run the studies that are requested, one after the other, until the input ends."""
    for line in sys.stdin:
        task = json.loads(line)
        start = time.process_time()
        peer = make(method, task["space"], task["objectives"], task["seed"])
        seconds = time.process_time() - start
        for _ in range(task["trials"]):
            start = time.process_time()
            config = peer.ask()
            seconds += time.process_time() - start
            print(json.dumps({"config": config}), flush=True)
            answer = json.loads(sys.stdin.readline())
            start = time.process_time()
            peer.tell(answer["losses"], answer.get("violations", []))
            seconds += time.process_time() - start
        print(json.dumps({"seconds": seconds}), flush=True)


def run_speed(make: MakePeer, method: str, size: int, repeats: int) -> dict[str, object]:
    """Return the seconds of one ask after one newly told trial, with ``size`` observations."""
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
    """Return the runs in a results file; an incomplete last line is ignored."""
    done = set()
    for line in out.read_text().splitlines() if out.exists() else []:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        done.add(tuple(record[part] for part in ("suite", "task", "method", "seed", "size")))
    return done


def main(make: MakePeer, methods: list[str]) -> None:
    """Run the command line of one peer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["quality", "speed"])
    parser.add_argument("--method", choices=methods, required=True)
    parser.add_argument("--out", type=Path, help="where speed is written")
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    if given.what == "quality":
        serve(make, given.method)
    elif ("objective-speed", "zdt1", given.method, 0, given.size) not in finished(given.out):
        append(given.out, run_speed(make, given.method, given.size, given.repeats))


def append(out: Path, record: dict[str, object]) -> None:
    """Append one line to the results file."""
    with out.open("a") as file:
        file.write(json.dumps(record) + "\n")
