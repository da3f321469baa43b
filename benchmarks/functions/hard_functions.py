"""Ranks of methods on hard functions: steep sides, valleys, steps, many basins, mixed spaces.

The functions are scrimp's own. The numbers of `scrimp/suggesters/experts.py` were chosen on them, so
they say how the alternatives of `gp` were chosen, not how well `gp` does elsewhere. 60 trials; mean
ranks after 10, 25, 50 and 100 % of them, and geometric means of the regret at the end.

    python benchmarks/run.py hard_functions --methods gp,gp:patience=0,tpe,random --seeds 3 --out hard.jsonl
"""

import argparse
import json
import math
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import scrimp
from scrimp.bench.results import ranks
from scrimp.cli.bench import method_list

TRIALS = 60
MOMENTS = (6, 15, 30, 60)
Loss = Callable[[np.ndarray], float]
Problem = tuple[scrimp.Space, Callable[[dict[str, Any]], float]]


def rotation(dimension: int, seed: int) -> np.ndarray:
    """A random rotation (d, d)."""
    return rotation_by(np.random.default_rng(seed), dimension)


def rotation_by(rng: np.random.Generator, dimension: int) -> np.ndarray:
    """The next random rotation (d, d) of a generator."""
    return np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]


def continuous(dimension: int, low: float, high: float, loss: Loss) -> Problem:
    """A problem over a cube."""
    names = [f"x{place}" for place in range(dimension)]
    space = scrimp.Space(**{name: scrimp.Float(low, high) for name in names})
    return space, lambda params: loss(np.array([params[name] for name in names]))


ARITIES = (2, 4, 8, 16, None)


def mixed(dimension: int, loss: Loss) -> Problem:
    """A problem over [-4, 4]^d: a fifth of the parameters has 2 values, the next 4, 8, 16, the last
    are continuous."""
    arities = [ARITIES[place * 5 // dimension] for place in range(dimension)]
    parameters: dict[str, Any] = {}
    for place, arity in enumerate(arities):
        parameters[f"x{place}"] = scrimp.Float(-4, 4) if arity is None else scrimp.Int(0, arity - 1)

    def evaluate(params: dict[str, Any]) -> float:
        point = [
            params[f"x{place}"]
            if arity is None
            else -4 + 8 * (params[f"x{place}"] + 1) / (arity + 1)
            for place, arity in enumerate(arities)
        ]
        return loss(np.array(point))

    return scrimp.Space(**parameters), evaluate


def optimum_on_grid(dimension: int, seed: int) -> np.ndarray:
    """A point that a mixed problem can reach."""
    rng, point = np.random.default_rng(seed), []
    for place in range(dimension):
        arity = ARITIES[place * 5 // dimension]
        low = (
            rng.uniform(-3, 3)
            if arity is None
            else -4 + 8 * (rng.integers(arity) + 1) / (arity + 1)
        )
        point.append(float(low))
    return np.array(point)


def formulas(best: np.ndarray, seed: int) -> dict[str, Loss]:
    """Losses with their minimum 0 at ``best`` (d,)."""
    dimension = len(best)
    turn, even = rotation(dimension, seed), np.linspace(0, 1, dimension)
    rng = np.random.default_rng(seed)
    peaks, heights = rng.uniform(-4, 4, (60, dimension)), rng.uniform(1, 9, 60)
    peaks[0], heights[0] = best, 10.0

    def sector(x: np.ndarray) -> float:
        z = turn @ (10 ** (0.5 * even) * (x - best))
        return float(np.sum((np.where(z * best > 0, 100.0, 1.0) * z) ** 2) ** 0.9)

    def wall(x: np.ndarray) -> float:
        z = turn @ (x - best)
        return float(abs(z[0]) * (1e3 if z[0] < 0 else 1) + 100 * np.sqrt(np.sum(z[1:] ** 2)))

    def schaffer(x: np.ndarray) -> float:
        z = 10 ** (0.5 * even) * (turn @ (x - best))
        t = np.sqrt(z[:-1] ** 2 + z[1:] ** 2)
        return float(np.mean(np.sqrt(t) * (1 + np.sin(50 * t**0.2) ** 2)) ** 2)

    def many_peaks(x: np.ndarray) -> float:
        hills = heights * np.exp(-0.5 / dimension * np.sum((x - peaks) ** 2, axis=1))
        return float((10 - hills.max()) ** 1.5)

    def rastrigin(z: np.ndarray) -> float:
        return float(10 * dimension + np.sum(z**2 - 10 * np.cos(2 * np.pi * z)))

    def valley(x: np.ndarray) -> float:
        z = x - best + 1
        return float(np.sum(100 * (z[1:] - z[:-1] ** 2) ** 2 + (1 - z[:-1]) ** 2))

    return {
        "sector": sector,
        "wall": wall,
        "schaffer": schaffer,
        "peaks": many_peaks,
        "rastrigin": lambda x: rastrigin(x - best),
        "turned-rastrigin": lambda x: rastrigin(turn @ (x - best)),
        "ellipsoid": lambda x: float(np.sum(10 ** (4 * even) * (turn @ (x - best)) ** 2)),
        "orders": lambda x: 10 ** float(np.sqrt(np.mean((x - best) ** 2))) - 1,
        "exponential": lambda x: float(
            np.sum(np.expm1(1.4 * np.maximum(x - best, 0)) + (x - best) ** 2)
        ),
        "valley": valley,
        "steps": lambda x: float(np.sum(np.floor(np.abs(x - best) + 0.5) ** 2)),
        "sphere": lambda x: float(np.sum((x - best) ** 2)),
    }


def problems() -> dict[str, Problem]:
    """All problems by name."""
    found: dict[str, Problem] = {}
    for dimension, seed in ((3, 61), (6, 62), (10, 63)):
        best = np.random.default_rng(seed).uniform(-3.5, 3.5, dimension)
        for name, loss in formulas(best, seed).items():
            found[f"{name}-{dimension}"] = continuous(dimension, -5, 5, loss)
    for dimension, seed in ((5, 71), (10, 72)):
        for name, loss in formulas(optimum_on_grid(dimension, seed), seed).items():
            found[f"mixed-{name}-{dimension}"] = mixed(dimension, loss)
    return found


def run(work: tuple[str, str, int]) -> dict[str, Any]:
    """Play one method on one problem, and keep its regret at each moment."""
    name, method, seed = work
    space, loss = problems()[name]
    values: list[float] = []

    def objective(params: dict[str, Any]) -> float:
        values.append(loss(params))
        return values[-1]

    scrimp.minimize(objective, space, n_trials=TRIALS, seed=seed, method=method)
    best = np.minimum.accumulate(values)
    regret = [float(best[moment - 1]) for moment in MOMENTS]
    return {"problem": name, "method": method, "seed": seed, "regret": regret}


def report(records: list[dict[str, Any]], methods: list[str]) -> None:
    """Print mean ranks at each moment with standard errors, and the regrets at the end."""
    known = {(r["problem"], r["seed"], r["method"]): r["regret"] for r in records}
    cells = sorted({(p, s) for p, s, _ in known if all((p, s, m) in known for m in methods)})
    table = np.array(
        [
            [ranks([known[(*cell, method)][place] for method in methods]) for place in range(4)]
            for cell in cells
        ]
    )
    print(f"{len(cells)} runs".ljust(26), *(method.rjust(16) for method in methods))
    for place, moment in enumerate(MOMENTS):
        error = table[:, place].std(axis=0, ddof=1) / math.sqrt(len(cells))
        means = zip(table[:, place].mean(axis=0), error, strict=True)
        print(
            f"rank after {moment}".ljust(26), *(f"{m:9.2f} ± {e:.2f}".rjust(16) for m, e in means)
        )
    for problem in dict.fromkeys(cell[0] for cell in cells):
        ends = []
        for method in methods:
            own = [known[(*cell, method)][-1] for cell in cells if cell[0] == problem]
            ends.append(math.exp(np.mean(np.log(np.maximum(own, 1e-9)))))
        print(problem.ljust(26), *(f"{end:.3g}".rjust(16) for end in ends))


def main() -> None:
    """Run what the file does not have yet, and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--methods", default="gp,gp:patience=0,tpe,random")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    methods = method_list(given.methods)
    lines = given.out.read_text().splitlines() if given.out.exists() else []
    records = [json.loads(line) for line in lines]
    done = {(r["problem"], r["method"], r["seed"]) for r in records}
    work = [
        (name, method, seed)
        for seed in range(given.seeds)
        for name in problems()
        for method in methods
        if (name, method, seed) not in done
    ]
    with multiprocessing.Pool(given.processes) as pool, given.out.open("a") as file:
        for record in pool.imap_unordered(run, work):
            records.append(record)
            print(json.dumps(record), file=file, flush=True)
    report(records, methods)


if __name__ == "__main__":
    main()
