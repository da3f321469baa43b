"""Compare methods on real training with workers on a virtual clock, and rank them at every moment.

    python benchmarks/run.py virtual_training --seeds 6 --out virtual.jsonl                  # NumPy alone
    python benchmarks/run.py virtual_training --problems recurrent,noisy-labels --out virtual.jsonl
    python benchmarks/run.py virtual_training --methods auto,dyhpo --workers 1 --out virtual.jsonl

Each unit of training is computed when a run reaches it and takes one unit of the clock, so that several
workers need one core, and a run is repeatable. Problems are those of `numpy_problems`,
`training_problems` and `unseen_problems`. The budget is ``--fulls`` full trainings of all workers.

Prints for each method the mean rank, over problems and seeds, of the lowest loss so far at 5, 10, 25, 50
and 100 % of the budget, and the mean of these losses by problem.
"""

import argparse
import json
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np
from scipy.stats import rankdata

import scrimp
from benchmarks.training.numpy_problems import NUMPY_PROBLEMS
from benchmarks.training.training_problems import Problem, State
from benchmarks.training.unseen_problems import ALL_PROBLEMS
from scrimp.bench.curve_suite import METRIC, Timed, play_curves
from scrimp.bench.curve_tasks import CurveTask, Scale
from scrimp.bench.results import Cell
from scrimp.bench.tables import described_space
from scrimp.executors.simulated import Curve, SimulatedCurves
from scrimp.study_log.events import Reported

METHODS = "auto,asha,dyhpo,hypertune-indep,mobster-joint"
SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)
PROBLEMS = {**NUMPY_PROBLEMS, **ALL_PROBLEMS}


@dataclass
class Training(Sequence[float]):
    """The losses of one run after each unit, computed when they are first asked for."""

    problem: Problem
    state: State
    losses: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return self.problem.units

    @overload
    def __getitem__(self, place: int) -> float: ...
    @overload
    def __getitem__(self, place: slice) -> list[float]: ...
    def __getitem__(self, place: int | slice) -> float | list[float]:
        last = place.stop - 1 if isinstance(place, slice) else place
        while len(self.losses) <= last:
            self.state, loss = self.problem.train(self.state)
            self.losses.append(loss)
        return self.losses[place]


@dataclass(frozen=True)
class Trainings(SimulatedCurves):
    """The runs of a problem with a ``seed``."""

    problem: Problem
    seed: int

    @property
    def levels(self) -> tuple[float, ...]:
        """1, 2, ... up to a full training."""
        return tuple(float(unit) for unit in range(1, self.problem.units + 1))

    def curve(self, config: dict[str, Any]) -> Curve:
        """Return the run of a configuration, not trained yet."""
        run: Any = Training(self.problem, self.problem.start(dict(config), self.seed))
        return Curve(run, (1.0,) * self.problem.units)


def run(name: str, method: str, seed: int, fulls: int, workers: int) -> dict[str, Any]:
    """Play one study; return the lowest loss at each share of the budget."""
    problem = PROBLEMS[name]
    budget, full = scrimp.Budget("unit", 1, problem.units), float(problem.units)
    curves, space = Trainings(problem, seed), described_space(problem.space)
    task = CurveTask(space, budget, curves, Scale(0.0, 1.0, full), timed=False)
    policy = Timed(method, task, zlib.crc32(f"{name}/{seed}".encode()))
    cell = Cell("curves", "virtual", name, method, seed=seed, size=fulls, workers=workers)
    history, limit = play_curves(task, policy, cell), fulls * full / workers
    reports = [event for event in history.events if isinstance(event, Reported)]
    lowest = [
        min(
            [
                event.metrics[METRIC] or math.inf
                for event in reports
                if event.time <= share * limit + 1e-9
            ]
        )
        for share in SHARES
    ]
    return {
        "problem": name,
        "method": method,
        "seed": seed,
        "fulls": fulls,
        "workers": workers,
        "lowest": lowest,
        "trials": len(history.trials),
        "ended": sum(trial.budget >= full for trial in history.trials),
        "seconds": policy.seconds,
    }


def ranked(records: Sequence[dict[str, Any]]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each method with its ranks (runs, shares) among the methods that played the same run."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["problem"], record["seed"]), []).append(record)
    methods = list(dict.fromkeys(record["method"] for record in records))
    whole = [group for group in groups.values() if len(group) == len(methods)]
    found: dict[str, list[np.ndarray]] = {method: [] for method in methods}
    for group in whole:
        ranks = rankdata([record["lowest"] for record in group], axis=0)
        for record, own in zip(group, ranks, strict=True):
            found[record["method"]].append(own)
    for method, own in found.items():
        yield method, np.array(own)


def report(records: Sequence[dict[str, Any]]) -> None:
    """Print ranks over all problems, then mean losses by problem."""
    print(f"{'rank at':24s}", *(f"{share:13.0%}" for share in SHARES), "  10 to 100 %")
    for method, ranks in sorted(ranked(records), key=lambda item: float(item[1][:, 1:].mean())):
        means, errors = ranks.mean(axis=0), ranks.std(axis=0) / math.sqrt(max(len(ranks) - 1, 1))
        cells = [f"{mean:6.2f} ± {error:.2f}" for mean, error in zip(means, errors, strict=True)]
        print(f"{method:24s}", *cells, f"{ranks[:, 1:].mean():8.2f}   {len(ranks)} runs")
    for name in dict.fromkeys(record["problem"] for record in records):
        print(name)
        for method in dict.fromkeys(record["method"] for record in records):
            own = [one for one in records if (one["problem"], one["method"]) == (name, method)]
            if own:
                lowest = np.exp(np.log([one["lowest"] for one in own]).mean(axis=0))
                size = [
                    np.mean([one[key] for one in own]) for key in ("trials", "ended", "seconds")
                ]
                print(
                    f"  {method:22s}",
                    *(f"{loss:13.4g}" for loss in lowest),
                    f"  {size[0]:.0f} trials, {size[1]:.1f} to the end, {size[2]:.1f} s",
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--problems", default=",".join(NUMPY_PROBLEMS))
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--fulls", type=int, default=12, help="the budget, in full trainings")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--out", type=Path, required=True, help="finished runs are kept here")
    given = parser.parse_args()
    names, size = given.problems.split(","), (given.fulls, given.workers)
    known = [json.loads(line) for line in given.out.open()] if given.out.exists() else []
    records = {(one["problem"], one["method"], one["seed"]): one for one in known}
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for name in names:
            for method in given.methods.split("|" if "|" in given.methods else ","):
                if (name, method, seed) not in records:
                    records[name, method, seed] = run(name, method, seed, *size)
                    with given.out.open("a") as file:
                        file.write(json.dumps(records[name, method, seed]) + "\n")
    report(list(records.values()))


if __name__ == "__main__":
    main()
