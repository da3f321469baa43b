"""``scrimp bench make curves``: a small network, trained epoch by epoch, in many configurations on
several data sets.

    cells = curve_work(MakingSettings(configs=200))
    # (tasks, epochs); None from where the training diverged
    run_curve_work(cells[0])["value"]

The network is scikit-learn's perceptron, one pass over the rows a level; the value is the
cross-entropy on rows that were not trained on. A level costs one unit, unless the seconds that were
measured are asked for: those differ from machine to machine.
"""

import time
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from scrimp.bench.made_data import Array, Split, split
from scrimp.bench.making import MakingSettings, drawn
from scrimp.bench.results import Cell, RunHead
from scrimp.bench.table_writing import TableDraft, config_rows, write_table
from scrimp.history.events import Config
from scrimp.json_values import Json

if TYPE_CHECKING:
    from sklearn.neural_network import MLPClassifier

__all__ = ["SPACE", "curve_work", "run_curve_work", "write_curves"]

SPACE: tuple[Mapping[str, Json], ...] = (
    {"name": "learning_rate_init", "type": "float", "low": 1e-4, "high": 1.0, "log": True},
    {"name": "solver", "type": "choice", "choices": ["adam", "sgd"]},
    {"name": "momentum", "type": "float", "low": 0.0, "high": 0.99, "when": {"solver": "sgd"}},
    {"name": "alpha", "type": "float", "low": 1e-6, "high": 1.0, "log": True},
    {"name": "batch_size", "type": "ordinal", "choices": [16, 32, 64, 128, 256]},
    {"name": "width", "type": "ordinal", "choices": [8, 16, 32, 64, 128]},
    {"name": "depth", "type": "int", "low": 1, "high": 3},
    {"name": "activation", "type": "choice", "choices": ["relu", "tanh"]},
)
"""Eight parameters, one of them conditional."""

TASKS = ("digits", "digits-noisy-labels", "breast-cancer", "hastie", "classification-wide")
EPOCHS = 27
ROWS = 600
LEAST = 1e-7  # a probability below this counts as this


def curve_work(settings: MakingSettings) -> list[Cell]:
    """The configurations, each a piece of work."""
    size = settings.size
    return [
        Cell("make-curves", "network", size, f"{number}", settings.seed, 1)
        for number in range(settings.configs)
    ]


class CurveWork(RunHead):
    """One configuration on every task: losses by epoch, None once it diverged, and seconds."""

    value: list[list[float | None]]
    elapsed: list[list[float]]


def run_curve_work(cell: Cell) -> dict[str, Json]:
    """One configuration, trained on every data set."""
    config = drawn(SPACE, cell.seed, int(cell.method) + 1)[-1]
    tasks, epochs = _tasks(cell.task, cell.seed)
    runs = [_trained(config, task, epochs) for task in tasks]
    return {
        **cell.head(),
        "value": [values for values, _ in runs],
        "elapsed": [seconds for _, seconds in runs],
    }


def write_curves(
    path: Path, settings: MakingSettings, records: Sequence[CurveWork], times: bool = False
) -> None:
    """The table, from the records of its configurations in their order; with ``times`` a level
    costs what it took."""
    tasks, epochs = _tasks(settings.size, settings.seed)
    value = np.array([record["value"] for record in records], dtype=float).swapaxes(0, 1)
    elapsed = np.array([record["elapsed"] for record in records], dtype=float).swapaxes(0, 1)
    draft = TableDraft(
        path.stem,
        "validation cross-entropy",
        SPACE,
        tuple(task.name for task in tasks),
        config_rows(SPACE, drawn(SPACE, settings.seed, len(records))),
        value,
        levels=range(1, epochs + 1),
        arrays={"elapsed": elapsed} if times else {},
        notes={"source": f"scrimp bench make curves, seed {settings.seed}, {settings.size}"},
    )
    write_table(path, draft)


@lru_cache(maxsize=1)
def _tasks(size: str, seed: int) -> tuple[tuple[Split, ...], int]:
    names, rows, epochs = (TASKS, ROWS, EPOCHS) if size == "full" else (("iris", "moons"), 60, 5)
    return tuple(split(name, rows, seed) for name in names), epochs


def _trained(config: Config, task: Split, epochs: int) -> tuple[list[float | None], list[float]]:
    """The cross-entropy after each epoch, None once it has diverged; and the seconds since the
    beginning."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.utils import check_random_state

    given = dict(config)
    sizes = (given.pop("width"),) * given.pop("depth")
    centre, spread = task.x.mean(axis=0), np.maximum(task.x.std(axis=0), 1e-12)
    given["batch_size"] = min(given["batch_size"], len(task.x))
    model = MLPClassifier(hidden_layer_sizes=sizes, random_state=check_random_state(0), **given)
    classes = np.unique(np.concatenate([task.y, task.y_valid]))
    values: list[float | None] = []
    elapsed, began = [], time.process_time()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _ in range(epochs):
            if not values or values[-1] is not None:
                values.append(_epoch(model, task, classes, (centre, spread)))
            else:
                values.append(None)
            elapsed.append(time.process_time() - began)
    return values, elapsed


def _epoch(
    model: "MLPClassifier", task: Split, classes: Array, scaling: tuple[Array, Array]
) -> float | None:
    centre, spread = scaling
    try:
        model.partial_fit((task.x - centre) / spread, task.y, classes=classes)
        found = model.predict_proba((task.x_valid - centre) / spread)
    except ValueError as error:
        if not any(word in str(error) for word in ("finite", "NaN", "infinity")):
            raise
        return None  # weights that are no longer finite
    chosen = found[np.arange(len(found)), np.searchsorted(classes, task.y_valid)]
    loss = float(-np.log(np.maximum(chosen, LEAST)).mean())
    return loss if np.isfinite(loss) else None
