"""Training runs for comparisons: rows of a table, or a surrogate, with the scale of their regret.

A level costs its elapsed seconds, or one unit; a level at which a run fails costs the median over
the task. A *full* training is the mean over configurations of the cost to the end of their run.
Regret is 0 at the best value there is, and 1 at the median over configurations of the best value
along their run; runs without any finite value are left out.

    task = table_curves(read_table("lcbench.npz"), "adult")
    task.curves.curve(config), task.scale.full, task.scale.regret(0.31)
"""

import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrimp.bench.curve_model import (
    KINDS,
    CurveModel,
    Function,
    GPMean,
    Quality,
    Scale,
    SurrogateCurves,
    fit_curve_model,
    is_curve_model,
    read_curve_model,
)
from scrimp.bench.tables import Table, read_table
from scrimp.bench.yahpo import Network, is_yahpo, read_yahpo
from scrimp.checks import check_known
from scrimp.errors import TableError
from scrimp.executors.simulated import Curve, SimulatedCurves
from scrimp.json_values import Config
from scrimp.space.space import Pool, Space
from scrimp.study_log.problem import Budget
from scrimp.surrogates.forest import Forest
from scrimp.surrogates.surrogate import Array

DESIGN_CONFIGS = 2_048
"""Number of Sobol configurations that represent a continuous space."""

MODEL_DESIGN = 4_096
"""Number of Sobol configurations for a `CurveModel`, which is faster to evaluate."""

TRAINED_EPOCHS = tuple(range(2, 52))
"""The epochs at which the LCBench network was trained well; level k is epoch k + 1."""


@dataclass(frozen=True, eq=False)
class CurveTask:
    """One task: its space, its budget, its training runs, and the scale of its regret.

    ``budget`` is None if only whole trainings are known; ``timed`` if costs are seconds."""

    space: Space
    budget: Budget | None
    curves: SimulatedCurves
    scale: Scale
    timed: bool = True


@dataclass(frozen=True, eq=False)
class TableCurves(SimulatedCurves):
    """Rows of a task: values and costs (C, L), NaN where a run fails, and lengths (C,)."""

    pool: Pool
    levels: tuple[float, ...]
    value: Array
    cost: Array
    end: NDArray[np.int64]

    def curve(self, config: Config) -> Curve:
        """The row of ``config``."""
        row = self.pool.index(config)
        end = int(self.end[row])
        return Curve(tuple(self.value[row, :end].tolist()), tuple(self.cost[row, :end].tolist()))


def table_curves(table: Table, name: str) -> CurveTask:
    """Return a task of a table as a pool of training runs."""
    task = table.task(name)
    if table.unit is None and task.elapsed is None:
        raise TableError(
            f"table {table.name!r} has final values only, without seconds; compare on it with"
            " 'scrimp bench tables'"
        )
    inside = np.arange(task.value.shape[1]) < task.end[:, None]
    value = np.where(inside, task.value, np.nan)
    if task.elapsed is None:
        cost = np.ones_like(value)
    else:
        steps = np.diff(task.elapsed, axis=1, prepend=0.0)
        known = inside & np.isfinite(value) & np.isfinite(steps)
        cost = np.where(known, steps, np.median(steps[known]))
    if not np.isfinite(value).any():
        raise TableError(f"task {name!r} of table {table.name!r} has no finite value; leave it out")
    scale = Scale.of(value, np.where(inside, cost, np.nan))
    levels = table.levels
    budget = None if table.unit is None else Budget(table.unit, levels[0], levels[-1])
    curves = TableCurves(task.pool, levels, value, cost, task.end)
    return CurveTask(task.pool, budget, curves, scale, timed=task.elapsed is not None)


@dataclass(frozen=True, eq=False)
class NetworkCurves(SurrogateCurves):
    """Runs of the LCBench network: 100 - val_accuracy; costs by ``time``, or units."""

    network: Network
    task: str
    unit_cost: bool = False
    levels = tuple(float(level) for level in range(1, len(TRAINED_EPOCHS) + 1))

    def arrays(self, configs: Sequence[Config]) -> tuple[Array, Array]:
        """Values and costs of each level, (n, 50) each."""
        found = self.network.outputs(self.task, configs, TRAINED_EPOCHS)
        value = 100.0 - found["val_accuracy"].astype(float)
        if self.unit_cost:
            return value, np.ones_like(value)
        seconds = np.maximum.accumulate(np.maximum(found["time"].astype(float), 0.0), axis=1)
        return value, np.diff(seconds, axis=1, prepend=0.0)


def network_curves(
    network: Network, task: str, unit_cost: bool = False, folder: Path | None = None
) -> CurveTask:
    """Return a task of a surrogate as training runs; its scale is cached in ``folder``."""
    network.check_task(task)
    curves = NetworkCurves(network, task, unit_cost)
    name = f"{network.name}-{task}{'-unit-cost' if unit_cost else ''}"
    scale = _kept(folder, name, lambda: curves.measured(network.space, DESIGN_CONFIGS))
    return CurveTask(network.space, Budget("epoch", 1, len(TRAINED_EPOCHS)), curves, scale)


def model_curves(
    model: CurveModel, folder: Path | None = None, scale: Scale | None = None
) -> CurveTask:
    """Return a surrogate as runs without noise; its scale is given or cached in ``folder``."""
    if scale is None:
        scale = _kept(folder, model.name, lambda: model.measured(model.space, MODEL_DESIGN))
    budget = Budget(model.unit, model.levels[0], model.levels[-1])
    return CurveTask(model.space, budget, model, scale)


@dataclass(frozen=True, eq=False)
class NoisyCurves(SimulatedCurves):
    """Runs whose every report is multiplied by 1 + ``noise`` times a standard normal draw; the draws
    depend on the seed and the configuration. The scale of regret remains that of ``runs``."""

    runs: SimulatedCurves
    levels: tuple[float, ...]
    noise: float
    seed: int

    def curve(self, config: Config) -> Curve:
        """The run of ``config``, with its noise."""
        run = self.runs.curve(config)
        text = json.dumps(sorted(config.items()), default=str)
        draws = np.random.default_rng([self.seed, zlib.crc32(text.encode())]).standard_normal(
            len(run.values)
        )
        return Curve(tuple((np.array(run.values) * (1.0 + self.noise * draws)).tolist()), run.costs)


def _kept(folder: Path | None, name: str, measure: Callable[[], Scale]) -> Scale:
    """Read the scale from its file in ``folder``; if there is none, measure it and write it there."""
    if folder is None:
        return measure()
    path = folder / f"{name}.scale.json"
    if path.exists():
        return Scale(**json.loads(path.read_text(encoding="utf-8")))
    scale = measure()
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(asdict(scale)), encoding="utf-8")
    # Other processes may read the file meanwhile.
    draft.replace(path)
    return scale


FITTED_FORMAT = "fitted-curves-1"

_CLASSES: dict[str, type[Any]] = {"forest": Forest, "gp": GPMean}
_PLAIN_FIELDS = ("name", "metric", "unit", "levels", "log", "failing")
"""Fields of a surrogate that are kept as they are."""


@dataclass(frozen=True, eq=False)
class KeptSurrogate:
    """A surrogate, its quality on held-out runs, and the scale of its regret."""

    model: CurveModel
    quality: Quality
    scale: Scale


def kept_surrogate(table: Table, task: str, kind: str, folder: Path | None) -> KeptSurrogate:
    """Return the surrogate in ``folder``, or fit one and save it there unless it is None. The file is
    named by the data too, since another table may have the same name."""
    name = re.sub(r"[^\w.-]+", "_", f"{table.name}-{task}-{kind}")
    row = table.tasks.index(task) if task in table.tasks else 0
    configs = table.configs if table.configs.ndim == 2 else table.configs[row]
    mark = zlib.crc32(table.value[row].tobytes(), zlib.crc32(configs.tobytes()))
    path = None if folder is None else folder / f"{name}-{mark:08x}.surrogate.npz"
    found = None if path is None else _read(path, kind)
    if found is None:
        model, quality = fit_curve_model(table, task, kind)
        found = KeptSurrogate(model, quality, model_curves(model).scale)
        if path is not None:
            _write(path, found)
    return found


def fit_note(task: str, kept: KeptSurrogate) -> str:
    """Return a line about the quality of the surrogate."""
    quality = kept.quality
    failing = ""
    if quality.failing is not None:
        failing = f", accuracy of failures {quality.failing:.2f} (0.5 is chance)"
    return (
        f"{task}: held-out final values R2 {quality.r2:.2f}, rank correlation"
        f" {quality.rank_correlation:.2f}{failing}; best {kept.scale.best:.4g}, of the table"
        f" {quality.best:.4g}"
    )


def _write(path: Path, kept: KeptSurrogate) -> None:
    model = kept.model
    functions: dict[str, Function | None] = {
        **{f"score.{place}": score for place, score in enumerate(model.scores)},
        **{name: getattr(model, name) for name in ("cost", "end", "survived")},
    }
    there = {name: function for name, function in functions.items() if function is not None}
    arrays = {
        f"{name}.{field.name}": np.asarray(getattr(function, field.name))
        for name, function in there.items()
        for field in fields(function)  # type: ignore[arg-type]  # every kind of function is a dataclass
    }
    meta = {
        "format": FITTED_FORMAT,
        "functions": list(there),
        "space": model.space.to_json(),
        "quality": asdict(kept.quality),
        "scale": asdict(kept.scale),
        **{name: getattr(model, name) for name in _PLAIN_FIELDS},
    }
    draft = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(
        draft,
        meta=json.dumps(meta),
        mean_curve=model.mean_curve,
        components=model.components,
        **arrays,  # type: ignore[arg-type]
    )
    draft.replace(path)


def _read(path: Path, kind: str) -> KeptSurrogate | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(str(arrays["meta"]))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    if meta.get("format") != FITTED_FORMAT:
        return None
    made = _CLASSES[kind]
    functions = {}
    for name in meta["functions"]:
        given = [arrays[f"{name}.{field.name}"] for field in fields(made)]
        functions[name] = made(*(array if array.ndim else float(array) for array in given))
    model = CurveModel(
        **{**{name: meta[name] for name in _PLAIN_FIELDS}, "levels": tuple(meta["levels"])},
        space=Space.from_json(meta["space"]),
        mean_curve=arrays["mean_curve"],
        components=arrays["components"],
        scores=tuple(each for name, each in functions.items() if name.startswith("score.")),
        cost=functions.get("cost"),
        end=functions.get("end"),
        survived=functions.get("survived"),
    )
    return KeptSurrogate(model, Quality(**meta["quality"]), Scale(**meta["scale"]))


UNIT_COST = ":unit-cost"
"""Suffix of the name of a table whose levels cost one unit each."""

RELATIVE_NOISE = 0.005
"""Relative noise of every report of a surrogate without noise of its own."""


@dataclass(frozen=True, eq=False)
class CurveFile:
    """The tasks of one file.

    ``noise`` is the relative noise of reports. ``check`` raises `TableError` for a task that the
    file does not have; ``task`` returns one; ``note`` describes the quality of a task's surrogate,
    if it has one.
    """

    name: str
    tasks: tuple[str, ...]
    noise: float
    check: Callable[[str], object]
    task: Callable[[str], CurveTask]
    note: Callable[[str], str] = lambda _: ""


@lru_cache(maxsize=8)
def open_curves(path: str | Path, unit_cost: bool = False, folder: Path | None = None) -> CurveFile:
    """Return the tasks of the file at ``path``; ``folder`` caches the scales of surrogates.
    `TableError` if it is neither a table nor a surrogate."""
    kind, _, fitted_to = str(path).partition(":") if is_modelled(path) else ("", "", path)
    if not kind and is_yahpo(path):
        network = read_yahpo(path)
        name = network.name + UNIT_COST * unit_cost
        make = lru_cache(maxsize=64)(lambda task: network_curves(network, task, unit_cost, folder))
        return CurveFile(name, network.tasks, 0.0, network.check_task, make)
    if unit_cost:
        raise TableError(f"{str(fitted_to)!r} has its own costs of levels; leave out --unit-cost")
    if not kind and is_curve_model(path):
        model = read_curve_model(path)
        make = lru_cache(maxsize=1)(lambda _: model_curves(model, folder))
        only, where = (model.name,), f"in surrogate {model.name!r}"
        return CurveFile(
            model.name,
            only,
            RELATIVE_NOISE,
            lambda task: check_known("task", [task], only, TableError, where),
            make,
        )
    table = read_table(fitted_to)
    if not kind:
        make = lru_cache(maxsize=64)(lambda task: table_curves(table, task))
        return CurveFile(table.name, table.tasks, 0.0, table.task, make)
    kept = lru_cache(maxsize=64)(lambda task: kept_surrogate(table, task, kind, folder))
    return CurveFile(
        f"{table.name}-{kind}",
        table.tasks,
        RELATIVE_NOISE,
        table.task,
        lambda task: model_curves(kept(task).model, scale=kept(task).scale),
        lambda task: fit_note(task, kept(task)),
    )


def is_modelled(path: str | Path) -> bool:
    """Return True if surrogates replace the table at ``path`` (see `modelled_curves`)."""
    return str(path).startswith(tuple(f"{kind}:" for kind in KINDS))


def modelled_curves(path: Path, kind: str) -> Path:
    """Return the path that names surrogates of ``kind`` for a table; ``path`` for ""."""
    if not kind:
        return path
    check_known("surrogate", [kind], KINDS, TableError)
    if is_yahpo(path) or is_curve_model(path):
        raise TableError(f"{str(path)!r} is a surrogate already; leave out --surrogate {kind}")
    return Path(f"{kind}:{path}")
