"""``scrimp bench llm``: a day of tuning a language model, replayed from recorded trainings.

A file of trials has one training per row: 14 hyperparameters of a 50M-parameter GPT, its loss
(`val_bpb`), `ok` (0 if it ran out of memory) and the `seconds` it took. Random forests fitted to it
answer for any configuration: does it fit into memory, the loss if it does, and the seconds until it
failed if it does not. A failed training costs its seconds and reports nothing, as in life. Every
method starts with the defaults of the model, as the recorded runs did.

    cells = llm_cells(Path("gpt50m_trials.csv"), ["gp", "tpe"], seeds=4, hours=24.0)
    run_llm(cells[0])["best"]                               # after 5, 10, 25, 50 and 100 % of the time

A forest cannot predict a loss below the lowest of its leaves: compare methods with each other, and
with the published figures only roughly.

Ferreira et al., a comparison of agents and optimizers on a GPT, 2026, arXiv 2603.24647.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from scrimp.bench.made_data import need_sklearn
from scrimp.bench.results import (
    Cell,
    Run,
    Summary,
    by_method,
    comparison,
    milliseconds_per_decision,
)
from scrimp.bench.runner import check_methods, play_study, study_of
from scrimp.errors import TableError
from scrimp.json_values import Config, Json
from scrimp.space.parameter import Categorical, Float, Int, Ordinal
from scrimp.space.space import Space
from scrimp.study_log.problem import Problem
from scrimp.surrogates.surrogate import Array

if TYPE_CHECKING:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

SPACE = Space(
    depth=Int(4, 24),
    aspect_ratio=Int(32, 128),
    head_dim=Ordinal([64, 128, 256]),
    device_batch_size=Ordinal([32, 64, 128, 256]),
    total_batch_size=Ordinal([2**power for power in range(16, 22)]),
    embedding_lr=Float(0.01, 2.0, log=True),
    unembedding_lr=Float(0.0005, 0.05, log=True),
    matrix_lr=Float(0.005, 0.2, log=True),
    scalar_lr=Float(0.05, 2.0, log=True),
    weight_decay=Float(0.0, 0.5),
    warmup_ratio=Float(0.0, 0.3),
    warmdown_ratio=Float(0.1, 0.8),
    final_lr_frac=Float(0.0, 0.2),
    window_pattern=Categorical(["LLLL", "LSSL", "SLSL", "SSLL", "SSSL", "SSSS"]),
)

DEFAULTS: Config = {
    "depth": 8,
    "aspect_ratio": 64,
    "head_dim": 128,
    "device_batch_size": 128,
    "total_batch_size": 524288,
    "embedding_lr": 0.6,
    "unembedding_lr": 0.004,
    "matrix_lr": 0.04,
    "scalar_lr": 0.5,
    "weight_decay": 0.2,
    "warmup_ratio": 0.0,
    "warmdown_ratio": 0.5,
    "final_lr_frac": 0.0,
    "window_pattern": "SSSL",
}
"""The first trial of every recorded run."""

SHARES_OF_TIME = (0.05, 0.1, 0.25, 0.5, 1.0)
TREES_PER_FOREST = 200


@dataclass(frozen=True, eq=False)
class RecordedTrainings:
    """Forests over the recorded trainings."""

    fits: "RandomForestClassifier"
    loss: "RandomForestRegressor"
    failed_after: "RandomForestRegressor"
    seconds: float

    def train(self, config: Config) -> tuple[float | None, float]:
        """Return the loss of a configuration, None if it runs out of memory, and its seconds."""
        row = features([config])
        if not self.fits.predict(row)[0]:
            return None, float(self.failed_after.predict(row)[0])
        return float(self.loss.predict(row)[0]), self.seconds


def features(configs: Sequence[Config]) -> Array:
    """Places in the unit cube (n, 14), and the two products that decide about memory: the width of
    the model and the size of a batch of activations, as logarithms."""
    names = ("depth", "aspect_ratio", "device_batch_size")
    depth, ratio, batch = np.log([[config[name] for config in configs] for name in names])
    width = depth + ratio
    return np.column_stack([SPACE.to_units(configs), width, width + depth + batch])


@lru_cache(maxsize=2)
def recorded_trainings(path: str) -> RecordedTrainings:
    """Read a file of trials and fit the forests; `TableError` for a file of another form."""
    need_sklearn("replaying trainings fits forests")
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    rows = read_trials(Path(path))
    x = features([row.config for row in rows])
    ok = np.array([row.loss is not None for row in rows])
    seconds = np.array([row.seconds for row in rows])
    loss = np.array([row.loss for row in rows if row.loss is not None])
    forest = {"n_estimators": TREES_PER_FOREST, "random_state": 0, "n_jobs": 1}
    return RecordedTrainings(
        RandomForestClassifier(**forest).fit(x, ok),
        RandomForestRegressor(**forest, min_samples_leaf=2).fit(x[ok], loss),
        RandomForestRegressor(**forest, min_samples_leaf=5).fit(x[~ok], seconds[~ok]),
        float(np.median(seconds[ok])),
    )


@dataclass(frozen=True)
class RecordedTrial:
    """One row of the file; ``loss`` is None if it ran out of memory. ``method`` and ``run``: the
    optimizer that proposed it."""

    config: Config
    loss: float | None
    seconds: float
    method: str
    run: str


def read_trials(path: Path) -> list[RecordedTrial]:
    """Read a file of trials; `TableError` names what is missing or wrong."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
    except OSError as error:
        raise TableError(f"cannot read {str(path)!r}: {error.strerror}") from None
    needed = ["val_bpb", "ok", "seconds", *SPACE]
    missing = [name for name in needed if not lines or name not in lines[0]]
    if missing:
        raise TableError(
            f"{str(path)!r} has no column {missing[0]!r}; a file of trials has one training per row"
            f" and the columns {', '.join(needed)}"
        )
    trials = []
    for number, line in enumerate(lines, 2):
        try:
            trials.append(_trial(line))
        except (TypeError, ValueError) as error:
            raise TableError(f"line {number} of {str(path)!r}: {error}") from None
    if not 0 < sum(trial.loss is None for trial in trials) < len(trials):
        raise TableError(
            f"{str(path)!r} needs trainings with a loss and trainings that ran out of memory"
        )
    return trials


def _trial(line: Mapping[str, str]) -> RecordedTrial:
    config: Config = {}
    for name, parameter in SPACE.items():
        text = line[name]
        value = text if isinstance(parameter, Categorical) else float(text)
        config[name] = int(value) if isinstance(parameter, Int | Ordinal) else value
    loss = float(line["val_bpb"]) if line["ok"] == "1" else None
    return RecordedTrial(
        config, loss, float(line["seconds"]), line.get("method", ""), line.get("run", "")
    )


def llm_cells(path: Path, methods: list[str], seeds: int, hours: float) -> list[Cell]:
    """Return every run of a comparison; the file is read first."""
    if not hours > 0:
        raise TableError(f"hours is {hours:g}; it must be above 0")
    read_trials(path)
    check_methods(methods, Problem(SPACE))
    task = Cell("llm", path.stem, f"{hours:g} h", size=math.ceil(3600 * hours), source=str(path))
    return comparison([task], methods, seeds)


def run_llm(cell: Cell) -> dict[str, Json]:
    """Play one method until its time is over; the last training may end after it and does not count.

    ``best`` is the lowest loss after each of ``hours``, None before the first success;
    ``out_of_memory`` the share of the ``trials`` that ran out of memory."""
    trainings = recorded_trainings(cell.source)
    study = study_of(cell, SPACE)
    study.enqueue(DEFAULTS)
    clock, losses = [0.0], list[tuple[float, float | None]]()

    def measure(config: Config) -> float | None:
        loss, seconds = trainings.train(config)
        clock[0] += seconds
        losses.append((clock[0], loss))
        return loss

    spent, decisions = 0.0, 0
    while clock[0] < cell.size:
        seconds, asks = play_study(study, measure, 1)
        spent, decisions = spent + seconds, decisions + asks
    in_time = [(at, loss) for at, loss in losses if at <= cell.size]
    best: list[Json] = []
    for share in SHARES_OF_TIME:
        seen = [loss for at, loss in in_time if loss is not None and at <= share * cell.size]
        best.append(min(seen) if seen else None)
    failed = sum(loss is None for _, loss in in_time)
    return cell.result(
        spent,
        decisions,
        hours=[share * cell.size / 3600 for share in SHARES_OF_TIME],
        best=best,
        trials=len(in_time),
        out_of_memory=failed / max(len(in_time), 1),
    )


def llm_summary(records: Sequence[Run]) -> Summary:
    """Summarize methods: mean best loss at each share of the time, with its standard error at the
    end, trials, failures and milliseconds per decision."""
    runs = by_method(records)
    rows: list[list[str]] = []
    for place, share in enumerate(SHARES_OF_TIME):
        row = [f"best after {share:.0%}"]
        for own in runs.values():
            known = [run["best"][place] for run in own]
            found = np.array([math.nan if loss is None else loss for loss in known])
            row.append(f"{found.mean():.4f}" + _error(found) * (share == 1))
        rows.append(row)
    rows.append(["trials", *(f"{np.mean([r['trials'] for r in o]):.0f}" for o in runs.values())])
    failures = (np.mean([run["out_of_memory"] for run in own]) for own in runs.values())
    rows.append(["out of memory", *(f"{share:.0%}" for share in failures)])
    costs = (milliseconds_per_decision(own) for own in runs.values())
    rows.append(["ms per decision", *(f"{cost:.1f}" for cost in costs)])
    return ["val_bpb", *runs], rows


def _error(found: Array) -> str:
    """The standard error of a mean as text; empty for one run."""
    return f" ± {found.std(ddof=1) / math.sqrt(len(found)):.4f}" if len(found) > 1 else ""
