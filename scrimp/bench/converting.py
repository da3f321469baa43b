"""``scrimp bench convert``: published results as tables of format 1 or as scores of checkpoints.

    convert("lcbench", Path("data_2k_lw.json"), Path("lcbench.npz"))

| format | source |
|---|---|
| `lcbench` | the JSON file of LCBench: data set -> configuration -> ``config`` and ``log`` |
| `nasbench201` | JSON lines with arch, dataset, seed, ``eval_acc1es``, ``train_times`` of NAS-Bench-201 (docs/tables.md) |
| `fcnet` | an ``.hdf5`` file of FCNet (HPOBench), or a folder of them (needs h5py) |
| `taskset` | a folder of TaskSet: ``TASK/*_replica5.npz``, with the JSON file of the optimizers' settings beside |
| `hpob` | an HPO-B file; ``file.json#4796`` names a search space |
| `yahpo` | a YAHPO surrogate (`yahpo`): 1,000 configurations of each task |
| `lm-eval` | a folder of lm-evaluation-harness, ``CHECKPOINT/results_*.json``; the target is a ``.csv`` of scores |
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from scrimp.bench.curve_tasks import TRAINED_EPOCHS, NetworkCurves
from scrimp.bench.tables import Table, config_rows, space_of_table, write_table
from scrimp.bench.yahpo import read_yahpo
from scrimp.checkpoint_selection.score_files import read_results_folder, write_scores
from scrimp.checks import check_known
from scrimp.errors import TableError
from scrimp.json_values import Config, Json
from scrimp.space.designs import sobol_design
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.surrogates.surrogate import Array

Runs = dict[str, list[tuple[Config, Array, Array | None]]]
"""By task: configuration, values (L,), and elapsed seconds (L,) where they are known."""

CUT = "cut"
"""Key of the note of a table whose curves are shorter than some runs of its source."""

SURROGATE_CONFIGS = 1_000


def convert(kind: str, source: Path, target: Path) -> str:
    """Write ``target``, and return a description; `TableError` for a source in another format."""
    check_known("format", [kind], (*FORMATS, "lm-eval"), TableError)
    if not Path(str(source).partition("#")[0]).exists():
        raise TableError(f"there is nothing at {str(source)!r}; give the file or folder to convert")
    if kind == "lm-eval":
        if target.suffix != ".csv":
            raise TableError(
                f"scores cannot be written to {str(target)!r}; its name must end in .csv"
            )
        scores = read_results_folder(source)
        write_scores(scores, target)
        return f"{len(scores.checkpoints)} checkpoints x {len(scores.tasks)} tasks"
    try:
        made = FORMATS[kind](source, target.stem)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OSError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{str(source)!r} does not follow the format {kind}: {error!r}") from None
    table = write_table(target, made)
    sizes = " x ".join(
        f"{size} {name}"
        for size, name in zip(table.value.shape, ("tasks", "configurations", "levels"), strict=True)
    )
    cut = made.notes.get(CUT)
    return sizes if cut is None else f"{sizes}; {cut}"


def _curves(name: str, metric: str, runs: Runs, source: str) -> Table:
    """Return a table of curves; tasks may have different configurations. A task with
    fewer configurations than others repeats its first one, which `Table.task` leaves out."""
    if not any(runs.values()):
        raise TableError(
            f"there are no training runs of {source}; docs/tables.md describes its files"
        )
    space = space_of_table([config for rows in runs.values() for config, _, _ in rows])
    count = max(len(rows) for rows in runs.values())
    lengths = {
        (task, row): len(value)
        for task, rows in runs.items()
        for row, (_, value, _) in enumerate(rows)
    }
    levels, longest = min(lengths.values()), max(lengths.values())
    configs = np.full((len(runs), count, len(space)), np.nan)
    value = np.full((len(runs), count, levels), np.nan)
    elapsed = np.zeros_like(value)
    for task, rows in enumerate(runs.values()):
        kept = [{key: config[key] for key in space} for config, _, _ in rows]
        configs[task] = config_rows(space, kept + kept[:1] * (count - len(kept)))
        for row, (_, found, seconds) in enumerate(rows):
            value[task, row] = found[:levels]
            elapsed[task, row] = 0.0 if seconds is None else seconds[:levels]
    timed = all(seconds is not None for rows in runs.values() for _, _, seconds in rows)
    same = (configs == configs[:1]).all()
    return Table(
        name,
        metric,
        space,
        tuple(runs),
        configs[0] if same else configs,
        value,
        "epoch",
        tuple(range(1, levels + 1)),
        elapsed if timed else None,
        notes={"source": source, **({} if levels == longest else {CUT: _cut(lengths)})},
    )


def _cut(lengths: Mapping[tuple[str, int], int]) -> str:
    """Describe why curves are shorter than some runs."""
    (task, row), least = min(lengths.items(), key=lambda item: item[1])
    return (
        f"cut to {least} of up to {max(lengths.values())} levels, because configuration {row} of"
        f" task {task!r} has no more; leave short runs out of the source to keep the others whole"
    )


def _lcbench(source: Path, name: str) -> Table:
    """Read epochs 1 to 50 of 52, as is usual: without the values before training and of the last."""
    data = json.loads(source.read_text(encoding="utf-8"))
    runs: Runs = {}
    for task, entries in data.items():
        rows = runs[str(task)] = []
        for key in sorted(entries, key=int):
            log = entries[key]["log"]
            loss = np.array(log["Train/val_cross_entropy"], dtype=float)[1:-1]
            seconds = np.array(log["time"], dtype=float)[1:-1] if "time" in log else None
            rows.append((entries[key]["config"], loss, seconds))
    return _curves(name, "validation cross-entropy", runs, "LCBench")


def _fcnet(source: Path, name: str) -> Table:
    try:
        import h5py
    except ModuleNotFoundError:
        raise TableError("FCNet files are HDF5, which needs h5py; pip install h5py") from None
    files = sorted(source.glob("*.hdf5")) if source.is_dir() else [source]
    runs: Runs = {}
    for path in files:
        with h5py.File(path, "r") as file:
            rows: list[tuple[Config, Array, Array | None]] = []
            for key in file:
                mse = np.asarray(file[key]["valid_mse"], dtype=float).mean(axis=0)
                seconds = float(np.mean(np.asarray(file[key]["runtime"], dtype=float)))
                rows.append((json.loads(key), mse, seconds * np.arange(1, len(mse) + 1) / len(mse)))
        runs[path.stem.removeprefix("fcnet_").removesuffix("_data")] = rows
    return _curves(name, "validation mean squared error, mean of the repeats", runs, "FCNet")


def _taskset(source: Path, name: str) -> Table:
    """Read the first validation loss, mean over replicas, without the value before training."""
    settings: dict[str, dict[str, Json]] = {}
    for path in source.glob("*.json"):
        for key, config in json.loads(path.read_text(encoding="utf-8")).items():
            settings[key] = config[0] if isinstance(config, list) else config
    runs: Runs = {}
    for path in sorted(source.glob("*/*.npz")):
        with np.load(path, allow_pickle=False) as file:
            names = [
                item.decode() if isinstance(item, bytes) else str(item)
                for item in file["optimizers"].tolist()
            ]
            losses = np.asarray(file["ys"], dtype=float)[..., 1].mean(axis=1)[:, 1:]
        losses[~np.isfinite(losses)] = np.nan
        runs[path.parent.name] = [
            (settings[key], row, None) for key, row in zip(names, losses, strict=True)
        ]
    return _curves(name, "validation loss, mean of the replicas", runs, "TaskSet")


def _nasbench201(source: Path, name: str) -> Table:
    """Read 100 - accuracy per epoch, mean over seeds, of the held-out split with the most epochs, and
    the seconds of training if all lines have them; the parameters are six choices of operations."""
    found: dict[tuple[str, str], list[Array]] = {}
    times: dict[tuple[str, str], list[float]] = {}
    with source.open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            run = record["dataset"], record["arch"]
            found.setdefault(run, []).append(_accuracies(record["eval_acc1es"]))
            times.setdefault(run, []).extend((record.get("train_times") or {}).values())
    timed = all(times.values())
    runs: Runs = {}
    for (task, text), seeds in found.items():
        operations = re.findall(r"\|?([\w-]+)~\d", text)
        config: Config = {f"edge{place}": operation for place, operation in enumerate(operations)}
        error = 100.0 - np.mean(seeds, axis=0)
        # Seconds of single epochs vary with the machine's load, and some are missing: their mean.
        epochs = np.arange(1, len(error) + 1)
        per_epoch = float(np.mean(times[task, text])) if timed else 0.0
        seconds: Array | None = np.array(per_epoch * epochs) if timed else None
        runs.setdefault(task, []).append((config, error, seconds))
    return _curves(name, "100 - held-out accuracy", runs, "NAS-Bench-201")


def _accuracies(found: Mapping[str, float]) -> Array:
    """Return the accuracies by epoch of the split with the most epochs; keys are SPLIT@EPOCH."""
    splits: dict[str, dict[int, float]] = {}
    for key, accuracy in found.items():
        split, _, epoch = key.partition("@")
        splits.setdefault(split, {})[int(epoch)] = float(accuracy)
    longest = max(splits.values(), key=len)
    return np.array([longest[epoch] for epoch in sorted(longest)])


def _yahpo(source: Path, name: str) -> Table:
    network = read_yahpo(source)
    configs = sobol_design(network.space, SURROGATE_CONFIGS, np.random.default_rng(0))
    parts = [NetworkCurves(network, task).arrays(configs) for task in network.tasks]
    return Table(
        name,
        "100 - validation accuracy",
        network.space,
        network.tasks,
        config_rows(network.space, configs),
        np.array([value for value, _ in parts]),
        "epoch",
        tuple(range(1, len(TRAINED_EPOCHS) + 1)),
        np.array([np.cumsum(cost, axis=1) for _, cost in parts]),
        notes={"source": f"YAHPO Gym, {network.name}"},
    )


def is_hpob(path: Path) -> bool:
    """Return True for JSON files, the format of HPO-B."""
    return path.suffix.lower() == ".json"


def hpob_table(source: str | Path, name: str = "") -> Table:
    """Return a search space of an HPO-B file as a table; ``file.json#4796`` names one of several.
    Columns that never vary are left out."""
    path, _, chosen = str(source).partition("#")
    spaces = _hpob_spaces(Path(path))
    if chosen not in spaces and (chosen or len(spaces) > 1):
        wrong = f"no search space {chosen!r}, only" if chosen else "search spaces"
        raise TableError(
            f"{path!r} has {wrong} {', '.join(spaces)}; name one, as in"
            f" {Path(path).name}#{next(iter(spaces))}"
        )
    chosen = chosen or next(iter(spaces))
    tasks = {
        task: _hpob_arrays(record, f"data set {task!r} of search space {chosen!r}")
        for task, record in spaces[chosen].items()
    }
    varying = np.flatnonzero(np.ptp(np.concatenate([x for x, _ in tasks.values()]), axis=0))
    count = max(len(y) for _, y in tasks.values())
    configs = np.zeros((len(tasks), count, len(varying)))
    value = np.full((len(tasks), count, 1), np.nan)
    for row, (x, y) in enumerate(tasks.values()):
        # Repeated rows are left out when the table is read.
        repeats = np.repeat(x[:1], count - len(x), axis=0)
        configs[row] = np.concatenate([x, repeats])[:, varying]
        value[row, : len(y), 0] = 1.0 - y
    space = Space({f"x{column}": Float(0.0, 1.0) for column in varying})
    notes = {"source": f"HPO-B, search space {chosen}"}
    name = name or f"hpob-{chosen}"
    return Table(name, "1 - accuracy", space, tuple(tasks), configs, value, notes=notes)


def _hpob_spaces(path: Path) -> Mapping[str, Mapping[str, Mapping[str, Json]]]:
    """Return the data sets of each search space of a file, each with X (n, d) and y (n,)."""
    spaces: dict[str, dict[str, dict[str, Json]]]
    try:
        spaces = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TableError(
            f"there is no file {str(path)!r}; give the path of an HPO-B file"
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TableError(f"{str(path)!r} is not JSON: {error}") from None
    try:
        whole = spaces and all(
            {"X", "y"} <= record.keys() for tasks in spaces.values() for record in tasks.values()
        )
    except AttributeError:
        whole = False
    if not whole:
        raise TableError(
            f'{str(path)!r} is not an HPO-B file; it must map spaces to data sets to {{"X": ..., "y":'
            " ...}"
        )
    return spaces


def _hpob_arrays(record: Mapping[str, Json], which: str) -> tuple[Array, Array]:
    try:
        x, y = np.asarray(record["X"], dtype=float), np.asarray(record["y"], dtype=float)
    except (TypeError, ValueError) as error:
        raise TableError(f"{which} has no X and y of numbers: {error}") from None
    y = y.reshape(len(y), -1)[:, 0] if y.ndim else y
    if x.ndim != 2 or len(x) != len(y) or not ((x >= 0.0) & (x <= 1.0)).all():
        raise TableError(
            f"{which} has X of shape {x.shape} and {len(y)} values; X must have one row in the unit"
            " cube per value"
        )
    return x, y


FORMATS: Mapping[str, Callable[[Path, str], Table]] = {
    "lcbench": _lcbench,
    "nasbench201": _nasbench201,
    "fcnet": _fcnet,
    "taskset": _taskset,
    "hpob": hpob_table,
    "yahpo": _yahpo,
}
"""The reader of each format, except for lm-eval, which gives scores."""
