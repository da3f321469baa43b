"""Measure how well models continue learning curves: log density of held-out values.

    python benchmarks/run.py curve_likelihood lcbench.npz --configs 60 --seeds 1

Some configurations of each task are drawn, and each curve is cut at a random epoch; the models
predict everything after the cut. All models see the same transformed values (logarithms, capped at
far outliers and standardised by the values before the cut), so their densities are comparable. The
figure is the mean log density of a held-out value in those units, averaged over tasks. Two
baselines stand beside the Gaussian processes:

    last value    a random walk in the logarithm of the epoch from the last value; its variance is
                  fitted to all curves
    power law     a + b t^-c fitted to each curve by least squares, with the pooled error of all
                  fits
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from scrimp.bench.tables import read_table
from scrimp.encoding.encoding import Encoding
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.residual import DecayResidual, InnovationResidual
from scrimp.gp.stationary import kernel_by_name
from scrimp.surrogates.additive_curves import AdditiveCurves
from scrimp.surrogates.surrogate import Data
from scrimp.surrogates.target_steps import Winsorise

Array = Any


def log_density(values: Array, mean: Array, variance: Array) -> Array:
    """Return the log densities of independent normals."""
    return -0.5 * ((values - mean) ** 2 / variance + np.log(2.0 * np.pi * variance))


def prepared(value: Array, cut: Array) -> Array:
    """Return log values, capped and standardised by the values before the cut."""
    seen = np.arange(value.shape[1]) < cut[:, None]
    logs = np.log(np.where(np.isfinite(value), value, np.nan))
    step = Winsorise().learn(logs[seen])
    capped = step.forward(logs)
    return (capped - capped[seen].mean()) / capped[seen].std()


def by_gp(model: Any, x: Array, z: Array, cut: Array, rng: np.random.Generator) -> Array:
    """Return log densities of all values after the cut under a surrogate of (x, share)."""
    levels = z.shape[1]
    seen = [(i, j) for i in range(len(z)) for j in range(cut[i])]
    later = [(i, j) for i in range(len(z)) for j in range(cut[i], levels)]
    rows, asked = (
        np.array([[*x[i], (j + 1) / levels] for i, j in pairs]) for pairs in (seen, later)
    )
    fitted = model.fit(Data(rows, np.array([z[i, j] for i, j in seen])), rng)
    posterior = fitted.posterior(asked)
    noise = fitted.state["parameters"]["noise"][0]
    return log_density(
        np.array([z[i, j] for i, j in later]), posterior.mean[:, 0], posterior.variance + noise
    )


def by_last_value(z: Array, cut: Array) -> Array:
    """Predict by a random walk in log time from the last value."""
    levels = np.arange(1, z.shape[1] + 1)
    spans = np.diff(np.log(levels))
    scaled = [np.diff(z[i, : cut[i]]) ** 2 / spans[: cut[i] - 1] for i in range(len(z))]
    rate = float(np.concatenate(scaled).mean()) + 1e-8
    found = []
    for i in range(len(z)):
        variance = rate * np.log(levels[cut[i] :] / cut[i])
        found.append(log_density(z[i, cut[i] :], z[i, cut[i] - 1], variance))
    return np.concatenate(found)


def by_power_law(z: Array, cut: Array) -> Array:
    """Predict by a + b t^-c for each curve, with c on a grid.

    The error grows in log time and is pooled over curves.
    """
    levels = np.arange(1.0, z.shape[1] + 1)
    predictions, errors = [], []
    for i in range(len(z)):
        seen = z[i, : cut[i]]
        best = (np.inf, np.full(len(levels), seen[-1]))
        for power in (0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0) if cut[i] >= 4 else ():
            design = np.column_stack([np.ones_like(levels), levels**-power])
            solution, *_ = np.linalg.lstsq(design[: cut[i]], seen, rcond=None)
            curve = design @ solution
            error = float(((curve[: cut[i]] - seen) ** 2).mean())
            if error < best[0]:
                best = (error, curve)
                errors.append(error)
        predictions.append(best[1])
    floor = float(np.median(errors)) + 1e-8
    spans = np.diff(np.log(levels))
    rate = float(
        np.concatenate(
            [np.diff(z[i, : cut[i]]) ** 2 / spans[: cut[i] - 1] for i in range(len(z))]
        ).mean()
    )
    found = []
    for i in range(len(z)):
        variance = floor + rate * np.log(levels[cut[i] :] / cut[i])
        found.append(log_density(z[i, cut[i] :], predictions[i][cut[i] :], variance))
    return np.concatenate(found)


def compared(table: Any, name: str, configs: int, seed: int) -> dict[str, tuple[float, float]]:
    """Return mean log density and CPU seconds by model, on one task."""
    task = table.task(name)
    rng = np.random.default_rng(seed)
    whole = np.isfinite(task.value).all(axis=1) & (task.value > 0).all(axis=1)
    rows = np.sort(rng.choice(np.flatnonzero(whole), min(configs, int(whole.sum())), replace=False))
    encoding = Encoding(task.pool)
    x, value = (
        encoding.encode([task.pool.configs[row] for row in rows]),
        np.asarray(task.value)[rows],
    )
    levels = value.shape[1]
    cut = rng.integers(1, levels, size=len(rows))
    z = prepared(value, cut)
    shares = tuple((np.arange(1, levels + 1) / levels).tolist())
    prior = MeanAndKernel(kernel_by_name("matern52-ard", encoding.columns))
    models = {
        "gp_expdecay": AdditiveCurves(prior, DecayResidual(), shares),
        "gp_issm": AdditiveCurves(prior, InnovationResidual(), shares, unit=levels),
    }
    found = {}
    for key, model in models.items():
        began = time.process_time()
        density = by_gp(model, x, z, cut, np.random.default_rng(seed))
        found[key] = (float(density.mean()), time.process_time() - began)
    found["last value"] = (float(by_last_value(z, cut).mean()), 0.0)
    found["power law"] = (float(by_power_law(z, cut).mean()), 0.0)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--configs", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--tasks", default="all")
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    table = read_table(given.table)
    tasks = table.tasks if given.tasks == "all" else given.tasks.split(",")
    totals: dict[str, list[float]] = {}
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for name in tasks:
            found = compared(table, name, given.configs, seed)
            for key, (density, _) in found.items():
                totals.setdefault(key, []).append(density)
            print(
                f"{name:40s}",
                "  ".join(f"{key} {d:7.3f} ({s:.1f} s)" for key, (d, s) in found.items()),
                flush=True,
            )
            if given.out is not None:
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"task": name, "seed": seed, **found}) + "\n")
    for key, values in totals.items():
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
        print(f"{key:12s} {np.mean(values):8.4f} +- {error:.4f}")


if __name__ == "__main__":
    main()
