"""``scrimp bench make``: tables of curves, transfer tasks and checkpoints, from models trained here."""

import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from scrimp.bench.made_data import (
    CLASSIFICATION,
    FAMILIES,
    REGRESSION,
    Array,
    Family,
    Split,
    need_sklearn,
    split,
)
from scrimp.bench.results import Cell, Run
from scrimp.bench.runner import run_cells
from scrimp.bench.tables import Table, config_rows, write_table
from scrimp.checkpoint_selection.score_files import write_scores
from scrimp.checkpoint_selection.score_table import ScoreTable
from scrimp.checks import check_known
from scrimp.errors import TableError
from scrimp.json_values import Config, Json
from scrimp.space.designs import sobol_design
from scrimp.space.parameter import Categorical, Float, Int, Ordinal
from scrimp.space.space import Space

if TYPE_CHECKING:
    from sklearn.neural_network import MLPClassifier


@dataclass(frozen=True)
class MakingSettings:
    """The seed, the number of configurations, and a flag for small tables."""

    seed: int = 0
    configs: int = 96
    small: bool = False

    @property
    def size(self) -> str:
        """The size as recorded with the work: small or full."""
        return "small" if self.small else "full"

    def notes(self, maker: str) -> dict[str, str]:
        """Return the notes of a table: how it was made."""
        return {"source": f"scrimp bench make {maker}, seed {self.seed}, {self.size}"}


def drawn(space: Space, seed: int, count: int) -> list[Config]:
    """Return the first ``count`` configurations of the Sobol sequence of a space and a seed; a larger
    count starts with the same ones."""
    return sobol_design(space, count, np.random.default_rng(seed))


CONFIGS = {"curves": 256, "transfer": 96, "checkpoints": 0}
"""The makers, and their default numbers of configurations."""


def make_tables(
    name: str,
    folder: Path,
    settings: MakingSettings,
    workers: int = 2,
    families: Sequence[str] = ("all",),
    times: bool = False,
) -> list[Path]:
    """Make the tables of that name in ``folder``; return their paths."""
    check_known("maker of", [name], CONFIGS, TableError)
    chosen = chosen_families(families)
    tables = {"curves": ["curves"], "transfer": chosen, "checkpoints": list(RUNS)}[name]
    need_sklearn()
    folder.mkdir(parents=True, exist_ok=True)
    cells = [cell for table in tables for cell in table_work(name, table, settings)]
    records = run_cells(cells, folder / "work.jsonl", workers)
    paths = []
    for table in tables:
        own = [record for record in records if record["table"] == table]
        path = folder / (f"{table}.csv" if name == "checkpoints" else f"{table}.npz")
        if name == "curves":
            write_curves(path, settings, own, times)
        elif name == "transfer":
            write_transfer(path, settings, own)
        else:
            write_checkpoints(path, own[0])
        paths.append(path)
    return paths


SPACE = Space(
    learning_rate_init=Float(1e-4, 1.0, log=True),
    solver=Categorical(["adam", "sgd"]),
    momentum=Float(0.0, 0.99, when={"solver": "sgd"}),
    alpha=Float(1e-6, 1.0, log=True),
    batch_size=Ordinal([16, 32, 64, 128, 256]),
    width=Ordinal([8, 16, 32, 64, 128]),
    depth=Int(1, 3),
    activation=Categorical(["relu", "tanh"]),
)
"""Eight parameters, one of them conditional."""

TASKS = ("digits", "digits-noisy-labels", "breast-cancer", "hastie", "classification-wide")
CURVE_EPOCHS = 27
TRAINING_ROWS = 600
MIN_PROBABILITY = 1e-7


def table_work(maker: str, table: str, settings: MakingSettings) -> list[Cell]:
    """Return the cells of a table: one per configuration, or one for a whole run of checkpoints."""
    numbers = [""] if maker == "checkpoints" else map(str, range(settings.configs))
    fixed = f"make-{maker}", table, settings.size
    return [Cell(*fixed, number, settings.seed, 1) for number in numbers]


def run_curve_work(cell: Cell) -> dict[str, Json]:
    """Train one configuration on every data set: losses and seconds by epoch."""
    config = drawn(SPACE, cell.seed, int(cell.method) + 1)[-1]
    tasks, epochs = _curve_splits(cell.task, cell.seed)
    runs = [_trained(config, task, epochs) for task in tasks]
    return {
        **cell.head(),
        "value": [values for values, _ in runs],
        "elapsed": [seconds for _, seconds in runs],
    }


def write_curves(
    path: Path, settings: MakingSettings, records: Sequence[Run], times: bool = False
) -> None:
    """Write the table of configurations in order; with ``times``, with measured seconds."""
    tasks, epochs = _curve_splits(settings.size, settings.seed)
    table = Table(
        path.stem,
        "validation cross-entropy",
        SPACE,
        tuple(task.name for task in tasks),
        config_rows(SPACE, drawn(SPACE, settings.seed, len(records))),
        _by_task(records, "value"),
        "epoch",
        tuple(range(1, epochs + 1)),
        _by_task(records, "elapsed") if times else None,
        notes=settings.notes("curves"),
    )
    write_table(path, table)


def _by_task(records: Sequence[Run], name: str) -> Array:
    """Return a list of each record, one entry per task, by task and record; None becomes NaN."""
    return np.array([record[name] for record in records], dtype=float).swapaxes(0, 1)


@lru_cache(maxsize=1)
def _curve_splits(size: str, seed: int) -> tuple[tuple[Split, ...], int]:
    names, rows, epochs = (
        (TASKS, TRAINING_ROWS, CURVE_EPOCHS) if size == "full" else (("iris", "moons"), 60, 5)
    )
    return tuple(split(name, rows, seed) for name in names), epochs


def _trained(config: Config, task: Split, epochs: int) -> tuple[list[float | None], list[float]]:
    """Return the cross-entropy after each epoch, None once it diverged, and elapsed seconds."""
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
        # Weights that are no longer finite.
        if not any(word in str(error) for word in ("finite", "NaN", "infinity")):
            raise
        return None
    chosen = found[np.arange(len(found)), np.searchsorted(classes, task.y_valid)]
    loss = float(-np.log(np.maximum(chosen, MIN_PROBABILITY)).mean())
    return loss if np.isfinite(loss) else None


MAX_RELATIVE_ERROR = 10.0
"""A larger relative error is a failure."""


def chosen_families(names: Sequence[str]) -> list[str]:
    """Return the given names, or all; raises `TableError` for an unknown name."""
    chosen = list(FAMILIES) if list(names) == ["all"] else list(names)
    check_known("family", chosen, FAMILIES, TableError)
    return chosen


def run_transfer_work(cell: Cell) -> dict[str, Json]:
    """Train one configuration on every task: its losses, None where it failed."""
    family = FAMILIES[cell.table]
    config = drawn(family.space, cell.seed, int(cell.method) + 1)[-1]
    tasks = _transfer_splits(cell.task, cell.seed)
    return {**cell.head(), "value": [_measured(family, config, task) for task in tasks]}


def write_transfer(path: Path, settings: MakingSettings, records: Sequence[Run]) -> None:
    """Write the table of the family that the file is named after."""
    space, tasks = FAMILIES[path.stem].space, _transfer_splits(settings.size, settings.seed)
    table = Table(
        path.stem,
        "validation error (rate, or relative root mean square)",
        space,
        tuple(task.name for task in tasks),
        config_rows(space, drawn(space, settings.seed, len(records))),
        _by_task(records, "value")[:, :, None],
        meta_features=np.array([task.features for task in tasks]),
        notes=settings.notes("transfer"),
    )
    write_table(path, table)


@lru_cache(maxsize=1)
def _transfer_splits(size: str, seed: int) -> tuple[Split, ...]:
    names, rows = [*CLASSIFICATION, *REGRESSION], 300
    if size == "small":
        names, rows = ["iris", "wine", "moons", "diabetes"], 40
    return tuple(split(name, rows, seed) for name in names)


def _measured(family: Family, config: Config, task: Split) -> float | None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        warnings.filterwarnings(
            "error", message=".*(max_iter|converge).*terminated early.*|.*Solver terminated early.*"
        )
        try:
            model = family.build(config, task.classification).fit(task.x, task.y)
            found = np.asarray(model.predict(task.x_valid), dtype=float)
        except (ValueError, FloatingPointError, np.linalg.LinAlgError, UserWarning):
            return None
    if task.classification:
        return float((found != task.y_valid).mean())
    error = float(np.sqrt(np.mean((found - task.y_valid) ** 2)) / task.y_valid.std())
    return error if error < MAX_RELATIVE_ERROR else None


RUNS = ("good-labels", "wrong-labels", "narrowed")
CHECKPOINT_COUNT = 48
TRAINING_STEPS = 3_000
BATCH_ROWS = 32
WRONG_LABELS = 0.35
"""Share of wrong labels in the second run."""

NARROWED_FROM = 0.05
"""Share of the steps after which the third run trains on five digits only."""


def run_checkpoint_work(cell: Cell) -> dict[str, Json]:
    """Train one run: its checkpoints, its tasks with their numbers of questions, all scores."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.utils import check_random_state

    steps, count, rows = (
        (40, 4, 100) if cell.task == "small" else (TRAINING_STEPS, CHECKPOINT_COUNT, 900)
    )
    digits = split("digits", rows, cell.seed)
    rng = np.random.default_rng([cell.seed, RUNS.index(cell.table)])
    tasks = _spoilt_tasks(digits.x_valid, digits.y_valid, np.random.default_rng(cell.seed))
    kept = np.unique(np.rint(np.geomspace(4, steps, count))).astype(int)
    labels = np.array(digits.y)
    if cell.table == "wrong-labels":
        wrong = rng.random(len(labels)) < WRONG_LABELS
        labels[wrong] = rng.integers(10, size=int(wrong.sum()))
    narrow = np.flatnonzero(labels < 5)
    draws = check_random_state(cell.seed)
    model = MLPClassifier(
        hidden_layer_sizes=(48,), learning_rate_init=0.003, alpha=1e-5, random_state=draws
    )
    scores = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in range(1, steps + 1):
            narrowed = cell.table == "narrowed" and step > NARROWED_FROM * steps
            batch = (
                rng.choice(narrow, BATCH_ROWS)
                if narrowed
                else rng.integers(len(labels), size=BATCH_ROWS)
            )
            model.partial_fit(digits.x[batch] / 16.0, labels[batch], classes=np.arange(10))
            if step in kept:
                scores.append(
                    [float((model.predict(x / 16.0) == y).mean()) for x, y in tasks.values()]
                )
    sizes = {name: len(y) for name, (_, y) in tasks.items()}
    return {**cell.head(), "checkpoints": kept.tolist(), "tasks": sizes, "scores": scores}


def write_checkpoints(path: Path, record: Run) -> None:
    """Write the scores of a run, with their standard errors."""
    scores, count = np.array(record["scores"]), np.array(list(record["tasks"].values()))
    errors = np.sqrt(scores * (1 - scores) / count)
    table = ScoreTable.empty(record["checkpoints"], list(record["tasks"]))
    draft = path.with_suffix(f".{os.getpid()}")
    write_scores(replace(table, scores=scores.round(6), errors=errors.round(6)), draft)
    draft.replace(path)


def _spoilt_tasks(x: Array, y: Array, rng: np.random.Generator) -> dict[str, tuple[Array, Array]]:
    """Return 24 tasks of images x (n, 64) of 8 by 8 pixels with labels y (n,): ten of single digits,
    fourteen of all of them degraded in some way."""
    tasks = {f"digit-{digit}": (x[y == digit], y[y == digit]) for digit in range(10)}
    pictures = x.reshape(-1, 8, 8)
    spoilt = {
        **{
            f"noise-{size}": pictures + size * rng.standard_normal(pictures.shape)
            for size in (2, 4, 6, 8)
        },
        **{f"faint-{share}": pictures * share / 100 for share in (30, 50, 70)},
        "left": np.roll(pictures, -1, axis=2),
        "right": np.roll(pictures, 1, axis=2),
        "up": np.roll(pictures, -1, axis=1),
        "down": np.roll(pictures, 1, axis=1),
        "blurred": (pictures + np.roll(pictures, 1, axis=1) + np.roll(pictures, 1, axis=2)) / 3,
        "holes": pictures * (rng.random(pictures.shape) > 0.25),
        "black-white": 16.0 * (pictures > 7.0),
    }
    return tasks | {name: (picture.reshape(len(x), 64), y) for name, picture in spoilt.items()}
