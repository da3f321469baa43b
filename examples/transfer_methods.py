"""Transfer methods side by side on one new task: TST-R, TAF, RGPE, RMoGP, POGPE, beside a plain
Gaussian process.

    python examples/transfer_methods.py [evaluations]

Eight past tasks and three new ones, grids of an error over C and gamma as a support vector machine
has it. Printed is the average distance to the minimum (ADTM) over the new tasks; weights.html shows
what each past task counted in the last run of RGPE.
"""

import logging
import sys
from math import log10

import numpy as np

import scrimp

GRID = [{"C": 10.0**c, "gamma": 10.0**g} for c in range(-3, 4) for g in range(-5, 2)]
SPACE = scrimp.Pool(
    scrimp.Space(C=scrimp.Float(1e-3, 1e3, log=True), gamma=scrimp.Float(1e-5, 10.0, log=True)),
    GRID,
)
METHODS = ["gp:initial=3", "TST-R", "TAF", "RGPE", "RMoGP", "POGPE", "auto"]


def error(params, task):
    """One of a family of tasks: a valley in log C + log gamma whose bottom moves from task to
    task."""
    rng = np.random.default_rng(task)
    c, gamma = log10(params["C"]), log10(params["gamma"])
    ridge = c + gamma + rng.normal(1.0, 0.6)
    return 0.3 - 0.25 * np.exp(-0.25 * ridge**2 - 0.06 * (c - rng.normal(1.0, 0.8)) ** 2)


def main() -> None:
    evaluations = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    logging.getLogger("scrimp").setLevel(logging.ERROR)
    storage = "sqlite:///transfer-methods.db"
    for name in scrimp.studies(storage):
        scrimp.delete_study(name, storage=storage)
    for task in range(8):
        past = scrimp.create_study(
            f"past-{task}", SPACE, method="random", storage=storage, seed=task
        )
        past.optimize(lambda trial, task=task: error(trial.params, task), n_trials=20)
    for method in METHODS:
        distances = []
        for task in range(100, 103):
            values = [error(params, task) for params in GRID]
            learn_from = [] if method.startswith("gp") else [f"past-{k}" for k in range(8)]
            study = scrimp.create_study(
                f"{method} on {task}",
                SPACE,
                method=method,
                learn_from=learn_from,
                storage=storage,
                seed=task,
            )
            study.optimize(lambda trial, task=task: error(trial.params, task), n_trials=evaluations)
            distances.append((study.best_value - min(values)) / (max(values) - min(values)))
        print(f"{method:14} ADTM {np.mean(distances):.4f} after {evaluations} evaluations")
    last = scrimp.load_study("RGPE on 102", storage=storage)
    scrimp.plots.source_weights(last).write_html("weights.html", include_plotlyjs="directory")


if __name__ == "__main__":
    main()
