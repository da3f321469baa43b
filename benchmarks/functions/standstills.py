"""Regret of methods where `gp` once came to a standstill: steep on one side, or rugged and mixed.

The attractive sector of BBOB in five dimensions (three instances), and of "bbob-mixint" Gallagher's 101
peaks and Rastrigin's function over parameters with 2, 4, 8 and 16 values and a float (three instances
each), with rotations, oscillations and asymmetry as in BBOB. Nothing may be chosen on them. 60 trials.

    python benchmarks/run.py standstills --methods gp,tpe,random --seeds 10
"""

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import scrimp
from benchmarks.functions.hard_functions import ARITIES, Loss, Problem, rotation_by
from scrimp.cli.bench import method_list

TRIALS, DIMENSION = 60, 5
MOMENTS = (6, 15, 30, 60)


def oscillated(x: np.ndarray) -> np.ndarray:
    """T_osz of BBOB: small waves on a logarithmic scale."""
    size = np.log(np.where(x == 0, 1.0, np.abs(x)))
    first, second = np.where(x > 0, 10.0, 5.5), np.where(x > 0, 7.9, 3.1)
    waves = size + 0.049 * (np.sin(first * size) + np.sin(second * size))
    return np.where(x == 0, 0.0, np.sign(x) * np.exp(waves))


def asymmetric(x: np.ndarray, strength: float) -> np.ndarray:
    """T_asy of BBOB: positive coordinates are stretched, the later the more."""
    above = np.maximum(x, 0.0)
    power = 1 + strength * np.linspace(0, 1, len(x)) * np.sqrt(above)
    return np.where(x > 0, above**power, x)


def scales(condition: float, dimension: int) -> np.ndarray:
    return condition ** (0.5 * np.linspace(0, 1, dimension))


def sector(best: np.ndarray, rng: np.random.Generator) -> Loss:
    """A hundred times steeper on one side of every coordinate."""
    dimension = len(best)
    first, second = rotation_by(rng, dimension), rotation_by(rng, dimension)
    width = scales(10, dimension)

    def loss(x: np.ndarray) -> float:
        z = second @ (width * (first @ (x - best)))
        steep = np.where(z * best > 0, 100.0, 1.0) * z
        return float(oscillated(np.sum(steep**2)) ** 0.9)

    return loss


def rastrigin(best: np.ndarray, rng: np.random.Generator) -> Loss:
    """Regular waves on a slope."""
    dimension = len(best)
    first, second = rotation_by(rng, dimension), rotation_by(rng, dimension)
    width = scales(10, dimension)

    def loss(x: np.ndarray) -> float:
        bent = asymmetric(oscillated(first @ (x - best)), 0.2)
        z = first @ (width * (second @ bent))
        return float(10 * (dimension - np.sum(np.cos(2 * np.pi * z))) + z @ z)

    return loss


def gallagher(best: np.ndarray, rng: np.random.Generator) -> Loss:
    """101 peaks of different heights and shapes."""
    dimension, peaks = len(best), 101
    turn = rotation_by(rng, dimension)
    places = rng.uniform(-5, 5, (peaks, dimension))
    places[0] = best
    heights = np.append(10.0, 1.1 + 8 * np.arange(peaks - 1) / (peaks - 2))
    drawn = 1000 ** (2 * rng.permutation(peaks - 1) / (peaks - 2))
    shapes = np.array(
        [
            rng.permutation(scales(condition, dimension) ** 2) / condition**0.25
            for condition in np.append(1000.0, drawn)
        ]
    )

    def loss(x: np.ndarray) -> float:
        z = (x - places) @ turn.T
        hills = heights * np.exp(-0.5 / dimension * np.sum(shapes * z * z, axis=1))
        outside = float(np.sum(np.maximum(np.abs(x) - 5, 0) ** 2))
        return float(oscillated(10 - hills.max())) ** 2 + outside

    return loss


Maker = Callable[[np.ndarray, np.random.Generator], Loss]


def problem(make: Maker, instance: int, mixed: bool) -> Problem:
    """One instance over [-5, 5]^5; ``mixed``: all but the last parameter are integers that stand for
    equal steps in [-4, 4]."""
    arities = [ARITIES[place] if mixed else None for place in range(DIMENSION)]
    rng = np.random.default_rng(instance + 1000)
    best = np.array(
        [rng.uniform(-4, 4) if a is None else place_of(float(rng.integers(a)), a) for a in arities]
    )
    loss = make(best, np.random.default_rng(instance))
    names = [f"x{place}" for place in range(DIMENSION)]
    kinds = [scrimp.Float(-5, 5) if a is None else scrimp.Int(0, a - 1) for a in arities]

    def evaluate(params: dict[str, Any]) -> float:
        pairs = zip(names, arities, strict=True)
        return loss(
            np.array([params[n] if a is None else place_of(params[n], a) for n, a in pairs])
        )

    return scrimp.Space(**dict(zip(names, kinds, strict=True))), evaluate


def place_of(value: float, arity: int) -> float:
    """The coordinate of an integer."""
    return -4 + 8 * (value + 1) / (arity + 1)


FAMILIES: dict[str, tuple[Maker, tuple[int, ...], bool]] = {
    "sector": (sector, (301, 302, 303), False),
    "mixed-gallagher": (gallagher, (321, 322, 323), True),
    "mixed-rastrigin": (rastrigin, (315, 316, 317), True),
}


def play(name: str, instance: int, method: str, seed: int) -> list[float]:
    """The regret of one run at each moment."""
    make, _, is_mixed = FAMILIES[name]
    space, loss = problem(make, instance, is_mixed)
    values: list[float] = []

    def objective(params: dict[str, Any]) -> float:
        values.append(loss(params))
        return values[-1]

    scrimp.minimize(objective, space, n_trials=TRIALS, seed=seed, method=method)
    best = np.minimum.accumulate(values)
    return [float(best[moment - 1]) for moment in MOMENTS]


def main() -> None:
    """Print the mean regret of each method on each family at each moment, with standard errors."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--methods", default="gp,tpe,random")
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    for name, (_, instances, _) in FAMILIES.items():
        for method in method_list(given.methods):
            runs = [
                play(name, instance, method, seed)
                for instance in instances
                for seed in range(given.seeds)
            ]
            regret = np.array(runs)
            error = regret.std(axis=0, ddof=1) / math.sqrt(len(regret))
            cells = zip(MOMENTS, regret.mean(axis=0), error, strict=True)
            print(
                name.ljust(16),
                method.ljust(8),
                *(f"{moment}: {mean:.3g} ± {e:.2g}".rjust(20) for moment, mean, e in cells),
                flush=True,
            )


if __name__ == "__main__":
    main()
