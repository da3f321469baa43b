"""ASHA, MOBSTER, Hyper-Tune and DyHPO on recorded training runs, on a virtual clock: hours of four
workers in seconds.

    python examples/curve_methods.py [full trainings]

A table of learning curves is written first (yours may come from real runs: docs/tables.md says
what is in it); then each method plays a whole study on it. Each is a finished study in
curve-methods.db, for `scrimp show`, `explain` and `dashboard`; the pictures of the last one are
written as HTML.
"""

import json
import sys

import numpy as np

import scrimp

METHODS = [
    "ASHA",
    "BOHB",
    "MOBSTER-JOINT",
    "MOBSTER-INDEP",
    "HYPERTUNE4-INDEP",
    "DyHPO:probability_sh=0.25",
]
EPOCHS = np.arange(1, 28)


def write_table(path: str) -> None:
    """200 networks of a learning rate and a width, 27 epochs each, with the seconds they took."""
    rng = np.random.default_rng(0)
    lr, width = 10 ** rng.uniform(-4, 0, 200), np.round(2 ** rng.uniform(3, 8, 200))
    floor = 0.08 + 0.05 * (np.log10(lr) + 1.5) ** 2 + 0.3 / np.sqrt(width)
    speed = 0.05 + 0.4 * lr**0.3
    error = floor[:, None] + (0.9 - floor[:, None]) * np.exp(-speed[:, None] * EPOCHS)
    error += 0.005 * rng.standard_normal(error.shape)
    seconds = (1.0 + width[:, None] / 64.0) * EPOCHS
    space = [
        {"name": "lr", "type": "float", "low": 1e-4, "high": 1.0, "log": True},
        {"name": "width", "type": "int", "low": 8, "high": 256, "log": True},
    ]
    meta = {"format": 1, "name": "networks", "metric": "error", "goal": "min", "space": space}
    meta["budget"] = {"name": "epoch", "levels": EPOCHS.tolist()}
    np.savez(
        path,
        meta=json.dumps(meta),
        tasks=np.array(["digits"]),
        configs=np.column_stack([lr, width]),
        value=error[None],
        elapsed=seconds[None],
    )


def main() -> None:
    fulls = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    storage = "sqlite:///curve-methods.db"
    for name in scrimp.studies(storage):
        scrimp.delete_study(name, storage=storage)
    write_table("networks.npz")
    for method in METHODS:
        study = scrimp.simulate(
            "networks.npz", method, workers=4, fulls=fulls, seed=0, storage=storage
        )
        history = study.history
        print(
            f"{study.method:18} error {study.best_value:.4f} after {history.time:5.0f} virtual"
            f" seconds: {len(history.trials)} configurations, {history.spent:g} epochs"
        )
    for picture in ("curves", "rungs", "timeline", "importance"):
        getattr(scrimp.plots, picture)(study).write_html(
            f"{picture}.html", include_plotlyjs="directory"
        )


if __name__ == "__main__":
    main()
