"""``scrimp bench make checkpoints``: runs of one small network, whose checkpoints are scored on two
dozen tasks.

    cells = checkpoint_work(MakingSettings())
    # (checkpoints, tasks), shares of right answers
    run_checkpoint_work(cells[0])["scores"]

The network reads digits. Its tasks are each digit by itself, and all digits spoilt in fourteen
ways. There are three runs: one on good labels (later is better, by and large), one with a third of
the labels wrong (it peaks and then learns them by heart), and one that goes on with the digits 0 to
4 alone (it forgets the others). Checkpoints lie evenly in the logarithm of the step.
"""

import csv
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scrimp.bench.made_data import split
from scrimp.bench.making import MakingSettings
from scrimp.bench.results import Cell, RunHead
from scrimp.json_values import Json

__all__ = ["RUNS", "checkpoint_work", "run_checkpoint_work", "write_checkpoints"]

Array = NDArray[np.float64]

RUNS = ("good-labels", "wrong-labels", "narrowed")
CHECKPOINTS = 48
STEPS = 3_000
BATCH = 32
WRONG = 0.35  # share of the labels that the second run learns wrong
NARROWED_FROM = 0.05  # share of the steps after which the third run sees five digits only


def checkpoint_work(settings: MakingSettings) -> list[Cell]:
    """The runs, each a piece of work."""
    return [Cell("make-checkpoints", name, settings.size, "", settings.seed, 1) for name in RUNS]


class CheckpointWork(RunHead):
    """A training run: its steps, the number of questions of each task, and scores by step."""

    checkpoints: list[int]
    tasks: dict[str, int]
    scores: list[list[float]]


def run_checkpoint_work(cell: Cell) -> dict[str, Json]:
    """One training run: its checkpoints by step, its tasks with the number of questions each, and
    all scores."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.utils import check_random_state

    steps, count, rows = (40, 4, 100) if cell.task == "small" else (STEPS, CHECKPOINTS, 900)
    digits = split("digits", rows, cell.seed)
    rng = np.random.default_rng([cell.seed, RUNS.index(cell.table)])
    tasks = _tasks(digits.x_valid, digits.y_valid, np.random.default_rng(cell.seed))
    kept = np.unique(np.rint(np.geomspace(4, steps, count))).astype(int)
    labels = np.array(digits.y)
    if cell.table == "wrong-labels":
        wrong = rng.random(len(labels)) < WRONG
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
            batch = rng.choice(narrow, BATCH) if narrowed else rng.integers(len(labels), size=BATCH)
            model.partial_fit(digits.x[batch] / 16.0, labels[batch], classes=np.arange(10))
            if step in kept:
                scores.append(
                    [float((model.predict(x / 16.0) == y).mean()) for x, y in tasks.values()]
                )
    sizes = {name: len(y) for name, (_, y) in tasks.items()}
    return {**cell.head(), "checkpoints": kept.tolist(), "tasks": sizes, "scores": scores}


def write_checkpoints(folder: Path, records: Sequence[CheckpointWork]) -> list[Path]:
    """One score table per run: checkpoint,task,score,stderr."""
    written = []
    for record in records:
        path = folder / f"{record['table']}.csv"
        draft = path.with_suffix(f".{os.getpid()}")
        with draft.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["checkpoint", "task", "score", "stderr"])
            for step, row in zip(record["checkpoints"], record["scores"], strict=True):
                for (task, count), score in zip(record["tasks"].items(), row, strict=True):
                    writer.writerow(
                        [step, task, f"{score:.6f}", f"{np.sqrt(score * (1 - score) / count):.6f}"]
                    )
        draft.replace(path)
        written.append(path)
    return written


def _tasks(x: Array, y: Array, rng: np.random.Generator) -> dict[str, tuple[Array, Array]]:
    """24 tasks out of pictures x (n, 64) of 8 by 8 with labels y (n,): ten single digits, fourteen
    ways to spoil all of them."""
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
