"""Measure methods with training budgets where the first levels say little about the ends, or mislead.

    python benchmarks/run.py misleading_levels --methods auto,gp,asha --seeds 8 --out results.jsonl
    python benchmarks/run.py misleading_levels --problems agree,noise,crossing --seeds 4 --out results.jsonl

Multi-fidelity Hartmann functions (``hartmann3-terrible`` to ``hartmann6-good``): with the weights a of
the function, f(x, z) = -sum_i (a_i - bias (1 - z)) exp(...) + noise (1 - z) e, at z = log t / log 27 after
t of 27 units. Bias and noise are those of the four published degrees (mf-prior-bench, ``mfh3_terrible``
and so on), and so are e = |standard normal| and the logarithm. With ``-symmetric`` at the end of a name,
z = (t - 1) / 26 and e is standard normal, as in an earlier version of the same functions.

Random formulas in four dimensions, another one for each seed: an end e(x), and with u = log t / log 27

    agree      e + (1 - u)                    every level ranks as the end does
    speed      e + (1 - u) s(x)               runs fall at their own speed
    noise      e + 2 (1 - u) n                n: standard normal, for each report
    above      e + 2 (1 - u) |n|
    partly     e u + (e + b(x)) (1 - u) / 2   b: another random function
    bias       e u + b(x) (1 - u)
    crossing   e u + (6 - e) (1 - u)          the best begin worst, and all runs fall
    rising     e u + (3 - e) (1 - u)          the best begin worst, and bad runs rise
    late       e + 1 before a third of the training, where nothing but noise differs

Two regrets are noted, both of the *true* end: that of the configuration with the lowest report at full
budget (``full``), and that of the configuration with the lowest report at any level (``any``), which
``study.best_params`` hands out. Random formulas: 0 is the best of 4,096 configurations, 1 the median.
Hartmann functions: the difference from the optimum. Before the first full training counts a random
configuration.
"""

import argparse
import json
import math
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import scrimp
from scrimp.bench.curve_suite import METRIC, Timed, play_curves
from scrimp.bench.curve_tasks import CurveTask, Scale
from scrimp.bench.formulas import (
    HARTMANN3_A,
    HARTMANN3_P,
    HARTMANN6_A,
    HARTMANN6_P,
    HARTMANN_WEIGHTS,
)
from scrimp.bench.results import Cell
from scrimp.executors.simulated import Curve, SimulatedCurves
from scrimp.study_log.events import Reported
from scrimp.study_log.history import History

Array = np.ndarray
LEVELS = np.arange(1.0, 28.0)
SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)
DEGREES = {"terrible": (4.0, 5.0), "bad": (3.5, 4.0), "moderate": (3.0, 3.0), "good": (2.5, 2.0)}
"""Bias and noise of the published degrees."""
OPTIMA = {3: -3.86278, 6: -3.32237}
FORMULAS = ("agree", "speed", "noise", "above", "partly", "bias", "crossing", "rising", "late")
HARTMANN = tuple(f"hartmann{d}-{degree}" for d in OPTIMA for degree in DEGREES)


@dataclass(frozen=True)
class Problem(SimulatedCurves):
    """Runs over 27 levels: ``ends`` of configurations (n, d), and ``values`` (27,) of one."""

    dimension: int
    ends: Callable[[Array], Array]
    values: Callable[[Array, np.random.Generator], Array]
    best: float
    seed: int

    @property
    def levels(self) -> tuple[float, ...]:
        """1 to 27."""
        return tuple(LEVELS.tolist())

    @property
    def space(self) -> scrimp.Space:
        """The unit cube."""
        return scrimp.Space({f"x{j}": scrimp.Float(0.0, 1.0) for j in range(self.dimension)})

    def curve(self, config: dict) -> Curve:
        """The run of a configuration; its noise depends on the seed and the configuration."""
        x = point(config)
        rng = np.random.default_rng([self.seed, zlib.crc32(x.tobytes())])
        return Curve(tuple(self.values(x, rng).tolist()), (1.0,) * len(LEVELS))


def point(config: dict) -> Array:
    """Return a configuration as an array (d,)."""
    return np.array([float(value) for value in config.values()])


def problem(name: str, seed: int) -> Problem:
    """Return the problem of this name."""
    return hartmann(name, seed) if name.startswith("hartmann") else random_formula(name, seed)


def hartmann(name: str, seed: int) -> Problem:
    """Return a multi-fidelity Hartmann function."""
    kind, degree, *form = name.split("-")
    dimension = int(kind[-1])
    a, p = (HARTMANN3_A, HARTMANN3_P) if dimension == 3 else (HARTMANN6_A, HARTMANN6_P)
    bias, noise = DEGREES[degree]
    symmetric = form == ["symmetric"]
    z = (LEVELS - 1.0) / 26.0 if symmetric else np.log(LEVELS) / math.log(27.0)

    def bumps(x: Array) -> Array:
        return np.exp(-(a * (x[..., None, :] - p) ** 2).sum(axis=-1))

    def values(x: Array, rng: np.random.Generator) -> Array:
        errors = rng.standard_normal(len(LEVELS))
        weights = HARTMANN_WEIGHTS - bias * (1.0 - z)[:, None]
        return -weights @ bumps(x) + noise * (1.0 - z) * (errors if symmetric else np.abs(errors))

    return Problem(
        dimension, lambda x: -bumps(x) @ HARTMANN_WEIGHTS, values, OPTIMA[dimension], seed
    )


def random_function(rng: np.random.Generator) -> Callable[[Array], Array]:
    """Return a smooth random function of four parameters: a bowl, and forty waves."""
    centre, waves = rng.uniform(0.2, 0.8, 4), rng.normal(0.0, 4.0, (40, 4))
    phases, heights = rng.uniform(0.0, 2.0 * math.pi, 40), rng.normal(0.0, 1.0, 40) / math.sqrt(40)
    scales = rng.uniform(0.3, 1.5, 4)

    def function(x: Array) -> Array:
        bowl = 4.0 * ((scales * (x - centre)) ** 2).sum(axis=-1)
        return bowl + np.cos(x @ waves.T + phases) @ heights

    some = function(np.random.default_rng(0).random((4096, 4)))
    low, middle = float(some.min()), float(np.median(some))
    return lambda x: (function(x) - low) / (middle - low)


def random_formula(name: str, seed: int) -> Problem:
    """Return a random formula: its end is 0 at the best of 4,096 configurations, 1 at the median."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    end, other = random_function(rng), random_function(rng)
    u = np.log(LEVELS) / math.log(27.0)

    def values(x: Array, noise: np.random.Generator) -> Array:
        e, b, n = float(end(x)), float(other(x)), noise.standard_normal(len(LEVELS))
        kinds = {
            "agree": e + (1.0 - u),
            "speed": e + (1.0 - u) * (0.5 + b),
            "noise": e + 2.0 * (1.0 - u) * n,
            "above": e + 2.0 * (1.0 - u) * np.abs(n),
            "partly": e * u + 0.5 * (e + b) * (1.0 - u) + (1.0 - u),
            "bias": e * u + b * (1.0 - u) + (1.0 - u),
            "crossing": e * u + (6.0 - e) * (1.0 - u),
            "rising": e * u + (3.0 - e) * (1.0 - u),
            "late": np.where(LEVELS < 9.0, 2.0 + 0.05 * n, e),
        }
        return kinds[name]

    return Problem(4, end, values, 0.0, seed)


def run(name: str, method: str, seed: int, fulls: int, workers: int) -> dict:
    """Play one study; return both regrets at each share of the budget."""
    chosen = problem(name, seed)
    full = len(LEVELS)
    budget = scrimp.Budget("unit", 1, full)
    task = CurveTask(chosen.space, budget, chosen, Scale(0.0, 1.0, float(full)), timed=False)
    policy = Timed(method, task, zlib.crc32(f"{name}/{seed}".encode()))
    cell = Cell("curves", "misleading", name, method, seed=seed, size=fulls, workers=workers)
    history = play_curves(task, policy, cell)
    limit = fulls * full / workers
    anyhow, whole = regrets(chosen, history, limit)
    used = [trial.budget for trial in history.trials]
    return {
        "problem": name,
        "method": method,
        "seed": seed,
        "full": whole,
        "any": anyhow,
        "trials": len(used),
        "fulls": sum(budget >= full for budget in used),
        "seconds": policy.seconds,
    }


def regrets(chosen: Problem, history: History, limit: float) -> tuple[list[float], list[float]]:
    """Return the regrets of the lowest report at any level and of the lowest at full budget."""
    some = np.random.default_rng(0).random((4096, chosen.dimension))
    random = float(chosen.ends(some).mean() - chosen.best)
    found = []
    for least in (0.0, LEVELS[-1]):
        lowest, regret, trace = math.inf, random, [(0.0, random)]
        for event in history.events:
            if not isinstance(event, Reported) or event.step < least:
                continue
            value = event.metrics[METRIC]
            if value is not None and value < lowest:
                lowest = value
                x = point(dict(history.trials[event.trial].config))
                regret = float(chosen.ends(x)) - chosen.best
                trace.append((event.time / limit, regret))
        found.append(
            [next(r for spent, r in reversed(trace) if spent <= share + 1e-9) for share in SHARES]
        )
    return found[0], found[1]


def report(records: Iterable[dict]) -> None:
    """Print the mean regrets of every problem and method."""
    groups: dict[tuple[str, str], list[dict]] = {}
    for record in records:
        groups.setdefault((record["problem"], record["method"]), []).append(record)
    print(f"{'problem':26s} {'method':14s} runs  trials fulls   full at {SHARES}, then any level")
    for (name, method), own in groups.items():
        means = [
            " ".join(f"{number:6.3f}" for number in np.mean([one[kind] for one in own], axis=0))
            for kind in ("full", "any")
        ]
        size = [np.mean([one[kind] for one in own]) for kind in ("trials", "fulls")]
        error = np.std([one["full"][-1] for one in own]) / math.sqrt(max(len(own) - 1, 1))
        print(
            f"{name:26s} {method:14s} {len(own):4d} {size[0]:7.1f} {size[1]:5.1f}   {means[0]}"
            f" ± {error:.3f} | {means[1]}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--problems", default=",".join(HARTMANN), help="names, or 'formulas'")
    parser.add_argument("--methods", default="auto,gp,asha")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--fulls", type=int, default=20, help="the budget, in full trainings")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="finished runs are kept here")
    given = parser.parse_args()
    names = FORMULAS if given.problems == "formulas" else given.problems.split(",")
    known = [json.loads(line) for line in given.out.open()] if given.out.exists() else []
    records = {(one["problem"], one["method"], one["seed"]): one for one in known}
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for name in names:
            for method in given.methods.split(","):
                if (name, method, seed) in records:
                    continue
                record = run(name, method, seed, given.fulls, given.workers)
                records[name, method, seed] = record
                with given.out.open("a") as file:
                    file.write(json.dumps(record) + "\n")
    report(records.values())


if __name__ == "__main__":
    main()
