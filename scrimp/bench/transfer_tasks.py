"""What a transfer comparison is played on: tasks with final values, as questions and as past
studies.

A table's task is a finite pool. A surrogate's task answers for any configuration; a Sobol design of
2,048 stands for its table. So does a random forest grown on a table's task; the rows of the table
remain its scale, so regret may fall below 0.

    tasks = read_tasks("wistuba_svm.npz")
    tasks.task("A9A").regret(0.2)
    read_tasks("forest:wistuba_svm.npz").task("A9A").measure(config)
"""

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scrimp.bench.hpob import is_hpob, read_hpob
from scrimp.bench.tables import Table, read_table
from scrimp.bench.yahpo import Network, is_yahpo, read_yahpo
from scrimp.errors import TableError
from scrimp.history.events import Config
from scrimp.space.designs import sobol_design
from scrimp.space.space import Pool, Space
from scrimp.surrogates.forest import grow_forest

__all__ = ["TransferTask", "TransferTasks", "modelled", "read_tasks"]

Array = NDArray[np.float64]

DESIGN = 2048
LAST_EPOCH = (51.0,)

FOREST = "forest:"
"""Before the path of a table: random forests grown on its tasks, instead of the table itself."""


@dataclass(frozen=True, eq=False)
class TransferTask:
    """A space, a function that gives the value of a configuration (None: it failed), and all values
    of its table (C,)."""

    name: str
    space: Space
    measure: Callable[[Config], float | None]
    configs: tuple[Config, ...]
    values: Array
    features: dict[str, float]

    @cached_property
    def finite(self) -> Array:
        """The finite values, sorted."""
        found = np.sort(self.values[np.isfinite(self.values)])
        if not len(found):
            raise TableError(
                f"task {self.name!r} has no finite final value, so nothing can be found in it;"
                " leave it out"
            )
        return found

    def regret(self, value: float) -> float:
        """Min-max normalised over the finite values; 1 for what is not finite, 0 where all are
        equal."""
        low, high = float(self.finite[0]), float(self.finite[-1])
        if not math.isfinite(value):
            return 1.0
        return (value - low) / (high - low) if high > low else 0.0

    def rank(self, value: float) -> int:
        """The place of a value inside the table, 1 for the best; one more than the table has for
        what is not finite."""
        return (
            1 + int(np.searchsorted(self.finite, value))
            if math.isfinite(value)
            else len(self.values) + 1
        )


@dataclass(frozen=True, eq=False)
class TransferTasks:
    """All tasks of one file."""

    name: str
    tasks: tuple[str, ...]
    _task: Callable[[str], TransferTask]

    def task(self, name: str) -> TransferTask:
        """One of them; `TableError` when there is none of that name."""
        return self._task(name)


@lru_cache(maxsize=4)
def read_tasks(path: str | Path) -> TransferTasks:
    """The tasks of a table, of a YAHPO surrogate (its last epoch), or of one search space of an
    HPO-B file.

    Of an HPO-B file with several search spaces, ``file.json#4796`` names one. `FOREST` before a
    path asks for forests.
    """
    if str(path).startswith(FOREST):
        known = read_tasks(str(path).removeprefix(FOREST))
        return TransferTasks(
            f"{known.name}-forest",
            known.tasks,
            lru_cache(lambda name: _forest_task(known.task(name))),
        )
    name, _, chosen = str(path).partition("#")
    if is_hpob(Path(name)):
        return _hpob_tasks(Path(name), chosen)
    if is_yahpo(Path(path)):
        network = read_yahpo(Path(path))
        return TransferTasks(
            network.name, network.tasks, lru_cache(lambda name: _network_task(network, name))
        )
    table = read_table(path)
    return TransferTasks(table.name, table.tasks, lru_cache(lambda name: _table_task(table, name)))


def modelled(path: Path, surrogate: str) -> Path:
    """What to read instead of ``path`` when a ``surrogate`` shall stand for its tables: "forest",
    or "" for none."""
    if surrogate not in ("", "forest"):
        raise TableError(f"surrogate is {surrogate!r}; the one there is is forest")
    return Path(f"{FOREST}{path}") if surrogate else path


def _hpob_tasks(path: Path, chosen: str) -> TransferTasks:
    spaces = read_hpob(path)
    if not chosen and len(spaces) > 1:
        raise TableError(
            f"{str(path)!r} has search spaces {', '.join(spaces)}; name one, as in"
            f" {path.name}#{next(iter(spaces))}"
        )
    space = spaces.get(chosen or next(iter(spaces)))
    if space is None:
        raise TableError(
            f"{str(path)!r} has no search space {chosen!r}; it has {', '.join(spaces)}"
        )

    def task(name: str) -> TransferTask:
        pool, losses = space.task(name)
        return _pool_task(name, pool, losses, {})

    return TransferTasks(f"hpob-{space.name}", space.tasks, lru_cache(task))


def _table_task(table: Table, name: str) -> TransferTask:
    task = table.task(name)
    numbers = () if task.meta_features is None else task.meta_features.tolist()
    features = {
        f"f{place}": float(number) for place, number in enumerate(numbers) if math.isfinite(number)
    }
    return _pool_task(name, task.pool, np.asarray(task.final, dtype=float), features)


def _pool_task(name: str, pool: Pool, final: Array, features: dict[str, float]) -> TransferTask:
    def measure(config: Config) -> float | None:
        value = float(final[pool.index(config)])
        return value if math.isfinite(value) else None

    return TransferTask(name, pool, measure, pool.configs, final, features)


def _forest_task(task: TransferTask) -> TransferTask:
    """A task whose table is only what a forest learned from; failed rows are left out."""
    space = Space(task.space.parameters)
    configs = tuple(
        config
        for config, value in zip(task.configs, task.values, strict=True)
        if math.isfinite(value)
    )
    rows = space.to_units(configs)
    forest = grow_forest(
        rows,
        task.values[np.isfinite(task.values)],
        np.random.default_rng(zlib.crc32(task.name.encode())),
    )

    def measure(config: Config) -> float | None:
        return float(forest(space.to_units([config]))[0])

    return TransferTask(task.name, space, measure, configs, forest(rows), task.features)


def _network_task(network: Network, name: str) -> TransferTask:
    network.check_task(name)

    def values(configs: list[Config]) -> Array:
        parts = [configs[start : start + 256] for start in range(0, len(configs), 256)]
        found = [network.outputs(name, part, LAST_EPOCH)["val_accuracy"][:, 0] for part in parts]
        return np.asarray(100.0 - np.concatenate(found), dtype=float)

    def measure(config: Config) -> float | None:
        return float(values([config])[0])

    design = sobol_design(network.space, DESIGN, np.random.default_rng(0))
    return TransferTask(name, network.space, measure, tuple(design), values(design), {})
