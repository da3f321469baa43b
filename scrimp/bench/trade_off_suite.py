"""``scrimp bench objectives``: methods on problems with several objectives, formulas and tables.

Losses are brought to the true front's extent, 0 for its best and 1 for its worst, and hypervolumes
are measured from 1.1 in every objective:

    regret after n trials = 1 - hypervolume of what was found / hypervolume of the true front

No method is told the front or the reference. A table gives each task with its final value, its run
time where it has one, and the number of weights where its space has the widths of layers; its true
front is that of all its rows. A table of a full grid is searched as its space, any other as a pool.
A YAHPO surrogate gives validation error, cross-entropy and run time; its front is the best that
thousands of configurations came to, random ones and then changes of the best, so a regret may be a
little below zero.

    run_trade_off(Cell("objectives", "formulas", "zdt1", "gp", seed=0, size=60))["regret"][-1]
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from scrimp.bench.described_space import described_space
from scrimp.bench.function_suite import stretched
from scrimp.bench.kept_studies import kept_at
from scrimp.bench.results import Cell
from scrimp.bench.tables import Table, TaskTable, read_table
from scrimp.bench.trade_off_formulas import TRADE_OFFS
from scrimp.bench.yahpo import Network, is_yahpo, read_yahpo
from scrimp.errors import StudyError, TableError
from scrimp.fronts.boxes import Array
from scrimp.fronts.dominance import non_dominated
from scrimp.fronts.hypervolume import hypervolume
from scrimp.history.events import Config
from scrimp.history.problem import AtMost, Direction
from scrimp.json_values import Json
from scrimp.space.space import Pool, Space
from scrimp.tuning.studies import create_study

__all__ = [
    "FrontMeter",
    "FrontQuestion",
    "question_of",
    "run_trade_off",
    "table_objectives",
    "trade_off_cells",
    "weights_of",
]

FORMULAS_TABLE = "formulas"
BEYOND = 1.1
"""The reference in every objective, where 1 is the worst of the true front."""

SAMPLED = 2048
ROUNDS = 12
"""Random configurations of a surrogate, and how often as many changes of the best are tried, for
the front that stands for the true one."""

YAHPO_EPOCHS = 51
"""A full training of the surrogate of LCBench."""

THINNED = 400
"""Points of a true front of three objectives or more that its hypervolume is taken of."""


def _two_layers(config: Config) -> int:
    first, second = int(config["n_units_1"]), int(config["n_units_2"])
    return first + first * second + second


def _funnel(config: Config) -> float:
    """Layers that narrow evenly from the widest to none, as those of LCBench do."""
    layers, widest = int(config["num_layers"]), float(config["max_units"])
    widths = [widest * (1.0 - k / (layers + 1)) for k in range(layers + 1)]
    return sum(first * second for first, second in pairwise(widths))


WEIGHTS: tuple[tuple[tuple[str, ...], Callable[[Config], float]], ...] = (
    (("n_units_1", "n_units_2"), _two_layers),
    (("width", "depth"), lambda config: int(config["depth"]) * int(config["width"]) ** 2),
    (("width", "layers"), lambda config: int(config["layers"]) * int(config["width"]) ** 2),
    (("num_layers", "max_units"), _funnel),
)
"""How many weights a network has, by the parameters that say it; without inputs and outputs, whose
number a table does not say."""


class FrontMeter:
    """The regrets of one run, by the true front (k, m)."""

    def __init__(self, front: Array) -> None:
        self.ideal, nadir = front.min(axis=0), front.max(axis=0)
        self.extent = np.where(nadir > self.ideal, nadir - self.ideal, 1.0)
        self.reference = np.full(front.shape[1], BEYOND)
        self.best = hypervolume(self._scaled(_spread(front)), self.reference)
        self.found: list[Array] = []
        self.regret: list[float | None] = []

    def add(self, losses: Array | None) -> None:
        """One more trial; None where it failed or violates a constraint."""
        last = self.regret[-1] if self.regret else 1.0
        if losses is None:
            self.regret.append(last)
            return
        self.found.append(self._scaled(losses))
        kept = np.array(self.found)
        self.found = list(kept[non_dominated(kept)])
        volume = hypervolume(np.array(self.found), self.reference)
        self.regret.append(1.0 - volume / self.best)

    def _scaled(self, losses: Array) -> Array:
        scaled: Array = (losses - self.ideal) / self.extent
        return scaled


def _spread(front: Array) -> Array:
    """The front itself, or every k-th of its points where boxes of all would be too many."""
    return front if front.shape[1] == 2 else front[:: max(1, len(front) // THINNED)]


@dataclass(frozen=True, eq=False)
class FrontQuestion:
    """What is played: a space, what a configuration gives (None: it failed), and the true front."""

    space: Space
    measure: Callable[[Config], tuple[list[float], list[float]] | None]
    front: Array
    constraints: int = 0


def trade_off_cells(
    methods: list[str], names: list[str], tables: list[Path], seeds: int, trials: int
) -> list[Cell]:
    """Every run of a comparison, seeds outermost, so that an interrupted one is still balanced."""
    for name in names:
        if name not in TRADE_OFFS:
            raise TableError(
                f"there is no problem {name!r} of several objectives; there are"
                f" {', '.join(TRADE_OFFS)}"
            )
    tasks = [(FORMULAS_TABLE, name, "") for name in names]
    for path in tables:
        table = read_yahpo(path) if is_yahpo(path) else read_table(path)
        tasks += [(table.name, task, str(path)) for task in table.tasks]
        if isinstance(table, Table):
            table_objectives(table.task(table.tasks[0]))  # says now that it has one objective only
    return [
        Cell("objectives", table, name, method, seed, trials, source=source)
        for seed in range(seeds)
        for table, name, source in tasks
        for method in methods
    ]


def run_trade_off(cell: Cell) -> dict[str, Json]:
    """One method on one problem: the regret after each trial."""
    question = question_of(cell.source, cell.task)
    meter = FrontMeter(question.front)
    metrics: dict[str, Direction] = {
        f"f{k + 1}": "minimize" for k in range(question.front.shape[1])
    }
    limits = [f"c{k + 1}" for k in range(question.constraints)]
    name, storage = kept_at(cell, question.space)
    study = create_study(
        name,
        question.space,
        metrics=metrics,
        constraints={limit: AtMost(0.0) for limit in limits},
        method=cell.method,
        storage=storage,
        seed=cell.seed,
    )
    seconds, asks = 0.0, 0
    while asks < cell.size:
        start = time.process_time()
        try:
            trial = study.ask()
        except StudyError:  # nothing is left to try
            break
        seconds, asks = seconds + time.process_time() - start, asks + 1
        found = question.measure(trial.config)
        if found is None:
            study.tell(trial, state="failed")
            meter.add(None)
            continue
        losses, violations = found
        study.tell(trial, _report(metrics, losses) | _report(limits, violations))
        meter.add(np.array(losses) if all(v <= 0 for v in violations) else None)
    return {
        **cell.head(),
        "decision_seconds": seconds,
        "decisions": asks,
        **stretched(meter.regret, cell.size),
    }


def _report(names: "list[str] | Mapping[str, Direction]", values: list[float]) -> dict[str, float]:
    return dict(zip(names, values, strict=True))


@lru_cache(maxsize=64)
def question_of(source: str, task: str) -> FrontQuestion:
    """The problem called ``task``: a formula, or what the file ``source`` has by that name."""
    if source and is_yahpo(source):
        return _of_network(read_yahpo(source), task)
    if source:
        return _of_table(read_table(source).task(task))
    formula = TRADE_OFFS[task]
    return FrontQuestion(
        described_space(formula.space), formula.evaluate, formula.front, formula.constraints
    )


def _of_table(task: TaskTable) -> FrontQuestion:
    losses = table_objectives(task)

    def measure(config: Config) -> tuple[list[float], list[float]] | None:
        row = losses[task.pool.index(config)]
        return (row.tolist(), []) if np.isfinite(row).all() else None

    known = losses[np.isfinite(losses).all(axis=1)]
    return FrontQuestion(_searched(task.pool), measure, known[non_dominated(known)])


def _searched(pool: Pool) -> Space:
    """The pool, or its whole space where it holds every configuration of it."""
    conditional = any(parameter.when for parameter in pool.values())
    every = math.prod(parameter.size for parameter in pool.values())
    return Space(pool.parameters) if len(pool.configs) == every and not conditional else pool


def _of_network(network: Network, task: str) -> FrontQuestion:
    """Validation error, cross-entropy and logarithm of the run time after a full training."""
    full = [float(YAHPO_EPOCHS)]

    def losses(configs: Sequence[Config]) -> Array:
        found = network.outputs(task, configs, full)
        error, entropy, seconds = (
            found[name][:, 0].astype(np.float64)
            for name in ("val_accuracy", "val_cross_entropy", "time")
        )
        return np.column_stack([100.0 - error, entropy, np.log10(np.maximum(seconds, 1e-3))])

    front = _searched_front(network.space, losses)
    return FrontQuestion(network.space, lambda config: (losses([config])[0].tolist(), []), front)


def _searched_front(space: Space, losses: Callable[[Sequence[Config]], Array]) -> Array:
    """The front of random configurations and of mixtures and changes of the best among them."""
    rng = np.random.default_rng(0)
    units = rng.random((SAMPLED, len(space)))
    best, front = np.empty((0, len(space))), np.empty((0, 0))
    for _ in range(ROUNDS + 1):
        columns = [p.from_units(own) for p, own in zip(space.values(), units.T, strict=True)]
        configs = [dict(zip(space, row, strict=True)) for row in zip(*columns, strict=True)]
        found = losses(configs)
        together = np.vstack([found, front]) if len(front) else found
        kept = non_dominated(together)
        best, front = np.vstack([units, best])[kept], together[kept]
        first, second = best[rng.integers(len(best), size=(2, SAMPLED))]
        mixed = np.where(rng.random(first.shape) < 0.5, first, second)
        steps = rng.normal(0.0, 0.1, mixed.shape) * (rng.random(mixed.shape) < 0.3)
        units = np.clip(mixed + steps, 0.0, 1.0)
    return front


def table_objectives(task: TaskTable) -> Array:
    """The losses of every row (C, m): final value, logarithm of the run time where the table has
    one, and of the number of weights where the space says it."""
    columns = [task.final]
    if task.elapsed is not None:
        seconds = task.elapsed[np.arange(len(task.end)), task.end - 1]
        columns.append(np.log10(np.where(seconds > 0, seconds, math.nan)))
    weights = weights_of(task.pool, task.pool.configs)
    if weights is not None:
        columns.append(np.log10(weights))
    if len(columns) == 1:
        raise TableError(
            f"the table of {task.name!r} has neither run times nor the widths of layers, so it has"
            " one objective only; leave it out"
        )
    return np.column_stack(columns)


def weights_of(space: Space, configs: Sequence[Config]) -> Array | None:
    """How many weights networks have, (n,), where the space says it."""
    counted = next((count for names, count in WEIGHTS if set(names) <= set(space)), None)
    return None if counted is None else np.array([float(counted(config)) for config in configs])
