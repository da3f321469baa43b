"""Training runs for comparisons: rows of a table, or a surrogate; with what one random full
training is worth.

Cost of a level: its elapsed seconds, or one unit; a level at which a run fails costs the median
over the task. A *full* training is the mean over configurations of the cost to the end of their
run. Regret is measured between the best value there is (0) and the median over configurations of
the best along their run (1); runs without any finite value have none.

    task = table_curves(read_table("lcbench.npz"), "adult")
    task.curves.curve(config), task.scale.full, task.scale.regret(0.31)
"""

import json
import os
import zlib
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scrimp.bench.curve_model import CurveModel
from scrimp.bench.tables import Table
from scrimp.bench.yahpo import Network
from scrimp.errors import TableError
from scrimp.executors.simulated import Curve, SimulatedCurves
from scrimp.history.events import Config
from scrimp.history.problem import Budget
from scrimp.space.designs import sobol_design
from scrimp.space.space import Pool, Space

__all__ = [
    "CurveTask",
    "ModelCurves",
    "NetworkCurves",
    "NoisyCurves",
    "Scale",
    "SurrogateCurves",
    "TableCurves",
    "model_curves",
    "network_curves",
    "noisy",
    "table_curves",
]

Array = NDArray[np.float64]

DESIGN = 2_048
"""Sobol configurations that stand for all of a continuous space."""

MODEL_DESIGN = 4_096
"""The same for a `CurveModel`, which is quick to ask."""

CHUNK = 64  # configurations evaluated at once: keeps the network's layers in the cache

EPOCHS = tuple(range(2, 52))
"""The epochs at which the LCBench network was trained well; level k is epoch k + 1."""


@dataclass(frozen=True)
class Scale:
    """The best value there is, the median over configurations of the best along their run, and the
    cost of a full run."""

    best: float
    median: float
    full: float

    def regret(self, value: float) -> float:
        """0 for the best there is, 1 for the median full training."""
        return (value - self.best) / (self.median - self.best) if self.median > self.best else 0.0

    def value(self, regret: float) -> float:
        """The value that has this regret."""
        return self.best + regret * (self.median - self.best)


@dataclass(frozen=True, eq=False)
class CurveTask:
    """One task to tune on: where to search, how runs go, and how results are measured."""

    space: Space
    budget: Budget
    curves: SimulatedCurves
    scale: Scale


@dataclass(frozen=True, eq=False)
class TableCurves(SimulatedCurves):
    """The rows of a task: values and costs (C, L), NaN where a run fails, and the number of levels
    of each run (C,)."""

    pool: Pool
    steps: tuple[float, ...]
    value: Array
    cost: Array
    end: NDArray[np.int64]

    @property
    def levels(self) -> tuple[float, ...]:
        """The budgets of the table."""
        return self.steps

    def curve(self, config: Config) -> Curve:
        """The row of ``config``."""
        row = self.pool.index(config)
        end = int(self.end[row])
        return Curve(tuple(self.value[row, :end].tolist()), tuple(self.cost[row, :end].tolist()))


def table_curves(table: Table, name: str) -> CurveTask:
    """A task of a table as a pool of training runs."""
    task = table.task(name)
    if table.unit is None:
        raise TableError(
            f"table {table.name!r} has final values only; compare on it with 'scrimp bench tables'"
        )
    inside = np.arange(task.value.shape[1]) < task.end[:, None]
    value = np.where(inside, task.value, np.nan)
    if task.elapsed is None:
        cost = np.ones_like(value)
    else:
        steps = np.diff(task.elapsed, axis=1, prepend=0.0)
        known = inside & np.isfinite(value) & np.isfinite(steps)
        cost = np.where(known, steps, np.median(steps[known]))
    found = np.isfinite(value)
    if not found.any():
        raise TableError(f"task {name!r} of table {table.name!r} has no finite value; leave it out")
    lowest = np.where(found, value, np.inf).min(axis=1)
    full = float(np.where(inside, cost, 0.0).sum(axis=1).mean())
    scale = Scale(float(lowest.min()), float(np.median(lowest[np.isfinite(lowest)])), full)
    levels = tuple(float(level) for level in table.levels)
    budget = Budget(table.unit, levels[0], levels[-1])
    return CurveTask(
        task.pool, budget, TableCurves(task.pool, levels, value, cost, task.end), scale
    )


class SurrogateCurves(SimulatedCurves):
    """Runs that can be asked of any configuration of a continuous space."""

    @abstractmethod
    def arrays(self, configs: list[Config]) -> tuple[Array, Array]:
        """Values and costs of each level, (n, L) each."""

    def curve(self, config: Config) -> Curve:
        """The predicted run of ``config``."""
        value, cost = self.arrays([config])
        return Curve(tuple(value[0].tolist()), tuple(cost[0].tolist()))

    def measured(self, space: Space, count: int) -> Scale:
        """Best, median and full training over ``count`` Sobol configurations."""
        configs = sobol_design(space, count, np.random.default_rng(0))
        parts = [
            self.arrays(configs[start : start + CHUNK]) for start in range(0, len(configs), CHUNK)
        ]
        lowest = np.concatenate(
            [np.where(np.isnan(value), np.inf, value).min(axis=1) for value, _ in parts]
        )
        full = np.concatenate([cost.sum(axis=1) for _, cost in parts]).mean()
        return Scale(
            float(lowest.min()), float(np.median(lowest[np.isfinite(lowest)])), float(full)
        )


@dataclass(frozen=True, eq=False)
class NetworkCurves(SurrogateCurves):
    """Runs as the LCBench network predicts them: 100 - val_accuracy; cost by the running maximum of
    ``time``, or units."""

    network: Network
    task: str
    unit_cost: bool = False

    @property
    def levels(self) -> tuple[float, ...]:
        """1 to 50."""
        return tuple(float(level) for level in range(1, len(EPOCHS) + 1))

    def arrays(self, configs: list[Config]) -> tuple[Array, Array]:
        """Values and costs of each level, (n, 50) each."""
        found = self.network.outputs(self.task, configs, EPOCHS)
        value = 100.0 - found["val_accuracy"].astype(float)
        if self.unit_cost:
            return value, np.ones_like(value)
        seconds = np.maximum.accumulate(np.maximum(found["time"].astype(float), 0.0), axis=1)
        return value, np.diff(seconds, axis=1, prepend=0.0)


def network_curves(
    network: Network, task: str, unit_cost: bool = False, folder: Path | None = None
) -> CurveTask:
    """A task of a surrogate as training runs; its scale is kept in ``folder``, where one is
    given."""
    network.check_task(task)
    curves = NetworkCurves(network, task, unit_cost)
    kept = (
        None
        if folder is None
        else folder / f"{network.name}-{task}{'-unit-cost' if unit_cost else ''}.scale.json"
    )
    scale = _kept(kept, lambda: curves.measured(network.space, DESIGN))
    return CurveTask(network.space, Budget("epoch", 1, len(EPOCHS)), curves, scale)


@dataclass(frozen=True, eq=False)
class ModelCurves(SurrogateCurves):
    """Runs as a `CurveModel` predicts them."""

    model: CurveModel

    @property
    def levels(self) -> tuple[float, ...]:
        """Those of the file."""
        return self.model.levels

    def arrays(self, configs: list[Config]) -> tuple[Array, Array]:
        """Values and costs of each level, (n, L) each; a level after the end of its run costs
        nothing."""
        runs = self.model.runs(configs)
        inside = np.arange(runs.value.shape[1]) < runs.end[:, None]
        return runs.value, np.where(inside, runs.cost[:, None], 0.0)

    def curve(self, config: Config) -> Curve:
        """The predicted run of ``config``, to its end."""
        value, cost = self.arrays([config])
        end = int(np.count_nonzero(cost[0]))
        return Curve(tuple(value[0, :end].tolist()), tuple(cost[0, :end].tolist()))


def model_curves(
    model: CurveModel, folder: Path | None = None, scale: Scale | None = None
) -> CurveTask:
    """A surrogate as training runs without noise; its scale, where it is not given, is kept in
    ``folder``, if there is one."""
    curves = ModelCurves(model)
    if scale is None:
        kept = None if folder is None else folder / f"{model.name}.scale.json"
        scale = _kept(kept, lambda: curves.measured(model.space, MODEL_DESIGN))
    return CurveTask(
        model.space, Budget(model.unit, model.levels[0], model.levels[-1]), curves, scale
    )


@dataclass(frozen=True, eq=False)
class NoisyCurves(SimulatedCurves):
    """Runs whose every report is off by a factor 1 + ``noise`` * a standard normal draw; a seed
    gives a configuration one run."""

    runs: SimulatedCurves
    noise: float
    seed: int

    @property
    def levels(self) -> tuple[float, ...]:
        """The budgets of the runs."""
        return self.runs.levels

    def curve(self, config: Config) -> Curve:
        """The run of ``config``, with its noise."""
        run = self.runs.curve(config)
        text = json.dumps(sorted(config.items()), default=str)
        draws = np.random.default_rng([self.seed, zlib.crc32(text.encode())]).standard_normal(
            len(run.values)
        )
        return Curve(tuple((np.array(run.values) * (1.0 + self.noise * draws)).tolist()), run.costs)


def noisy(task: CurveTask, noise: float, seed: int) -> CurveTask:
    """The same task with noise in every report; its scale remains that of the runs without."""
    return replace(task, curves=NoisyCurves(task.curves, noise, seed))


def _kept(path: Path | None, measure: Callable[[], Scale]) -> Scale:
    """What the file holds, or else what is measured now and written there."""
    if path is not None and path.exists():
        return Scale(**json.loads(path.read_text(encoding="utf-8")))
    scale = measure()
    if path is not None:
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(asdict(scale)), encoding="utf-8")
        draft.replace(path)  # several processes may write it, never half of it
    return scale
