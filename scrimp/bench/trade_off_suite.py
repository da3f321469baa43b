"""``scrimp bench objectives``: methods on problems with several objectives, formulas and tables.

Losses are scaled to the true front, 0 for its best and 1 for its worst, and hypervolumes are
measured from 1.1 in every objective:

    regret after n trials = 1 - hypervolume of what was found / hypervolume of the true front

No method knows the front or the reference. The objectives of a table are the final value, the run
time if it has one, and the number of weights if its space has the widths of layers; its true front
is that of all its rows. A table of a full grid is searched as its space, any other as a pool. The
objectives of a YAHPO surrogate are validation error, cross-entropy and run time; its front is the
best of thousands of configurations, random ones and then changes of the best, so a regret may be
slightly below zero.

    run_trade_off(Cell("objectives", "formulas", "zdt1", "gp", seed=0, size=60))["regret"][-1]
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from scrimp.bench.regret_suite import padded
from scrimp.bench.results import (
    Cell,
    Regrets,
    Run,
    Summary,
    comparison,
    final_regrets,
    rank_rows,
    ranks_by_run,
    regret_summary,
)
from scrimp.bench.runner import SMALL_SPACE, check_methods, play_study, study_of
from scrimp.bench.tables import Table, TaskTable, described_space, read_table
from scrimp.bench.trade_off_formulas import TRADE_OFFS
from scrimp.bench.yahpo import Network, is_yahpo, read_yahpo
from scrimp.checks import check_known
from scrimp.errors import TableError
from scrimp.fronts.dominance import non_dominated
from scrimp.fronts.hypervolume import Array, hypervolume
from scrimp.json_values import Config, Json
from scrimp.space.space import Pool, Space
from scrimp.study_log.constraints import AtMost
from scrimp.study_log.problem import Direction, Problem

FORMULAS_TABLE = "formulas"
REFERENCE_LOSS = 1.1
"""The reference in every objective, where 1 is the worst of the true front."""

CONFIGS_PER_ROUND = 2048
IMPROVEMENT_ROUNDS = 12
"""Random configurations of a surrogate, and the number of rounds with as many changes of the best,
for the front that replaces the true one."""

YAHPO_EPOCHS = 51
MAX_FRONT_POINTS = 400
"""Number of points for the hypervolume of a true front of three objectives or more."""


def _two_layers(config: Config) -> int:
    first, second = int(config["n_units_1"]), int(config["n_units_2"])
    return first + first * second + second


def _funnel(config: Config) -> float:
    """Return the weights of layers that narrow evenly, as in LCBench."""
    layers, widest = int(config["num_layers"]), float(config["max_units"])
    widths = [widest * (1.0 - k / (layers + 1)) for k in range(layers + 1)]
    return sum(first * second for first, second in pairwise(widths))


WEIGHTS: tuple[tuple[tuple[str, ...], Callable[[Config], float]], ...] = (
    (("n_units_1", "n_units_2"), _two_layers),
    (("width", "depth"), lambda config: int(config["depth"]) * int(config["width"]) ** 2),
    (("width", "layers"), lambda config: int(config["layers"]) * int(config["width"]) ** 2),
    (("num_layers", "max_units"), _funnel),
)
"""Number of weights of a network by the parameters that determine it, without those of inputs and
outputs, whose sizes are not in a table."""


class FrontMeter:
    """The regrets of one run, measured by the true front (k, m)."""

    def __init__(self, front: Array) -> None:
        self.ideal, nadir = front.min(axis=0), front.max(axis=0)
        self.extent = np.where(nadir > self.ideal, nadir - self.ideal, 1.0)
        self.reference = np.full(front.shape[1], REFERENCE_LOSS)
        # Boxes of all points would be too many with three objectives or more.
        step = 1 if front.shape[1] == 2 else max(1, len(front) // MAX_FRONT_POINTS)
        self.best = hypervolume(self._scaled(front[::step]), self.reference)
        self.found: list[Array] = []
        self.regret: list[float | None] = []

    def add(self, losses: Array | None) -> None:
        """Add the losses of a trial; None if it failed or violates a constraint."""
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


@dataclass(frozen=True, eq=False)
class FrontQuestion:
    """A benchmark problem: a space, a function that returns losses and violations of a configuration
    (None if it failed), and the true front."""

    space: Space
    measure: Callable[[Config], tuple[list[float], list[float]] | None]
    front: Array
    constraints: int = 0


def trade_off_cells(
    methods: list[str], names: list[str], tables: list[Path], seeds: int, trials: int
) -> list[Cell]:
    """Return every run; `TableError` for an unknown problem or a table of one objective."""
    check_known("problem", names, TRADE_OFFS, TableError, "of several objectives")
    check_methods(methods, Problem(SMALL_SPACE, {"f1": "minimize", "f2": "minimize"}))
    tasks = [Cell("objectives", FORMULAS_TABLE, name, size=trials) for name in names]
    for path in tables:
        table = read_yahpo(path) if is_yahpo(path) else read_table(path)
        tasks += [
            Cell("objectives", table.name, task, size=trials, source=str(path))
            for task in table.tasks
        ]
        if isinstance(table, Table):
            table_objectives(table.task(table.tasks[0]))
    return comparison(tasks, methods, seeds)


def run_trade_off(cell: Cell) -> dict[str, Json]:
    """Run one method on one problem: the regret after each trial."""
    question = question_of(cell.source, cell.task)
    meter = FrontMeter(question.front)
    metrics: dict[str, Direction] = {
        f"f{k + 1}": "minimize" for k in range(question.front.shape[1])
    }
    limits = [f"c{k + 1}" for k in range(question.constraints)]
    constraints = {limit: AtMost(0.0) for limit in limits}
    study = study_of(cell, question.space, metrics=metrics, constraints=constraints)

    def measure(config: Config) -> dict[str, float] | None:
        found = question.measure(config)
        if found is None:
            meter.add(None)
            return None
        losses, violations = found
        meter.add(np.array(losses) if all(v <= 0 for v in violations) else None)
        return dict(zip([*metrics, *limits], [*losses, *violations], strict=True))

    seconds, asks = play_study(study, measure, cell.size)
    return cell.result(seconds, asks, **padded(meter.regret, cell.size))


@lru_cache(maxsize=64)
def question_of(source: str, task: str) -> FrontQuestion:
    """Return the problem ``task``: of the file ``source``, or a formula if there is no file."""
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
    """Return the pool, or its space if the pool has every configuration of it."""
    conditional = any(parameter.when for parameter in pool.values())
    every = math.prod(parameter.size for parameter in pool.values())
    return Space(pool.parameters) if len(pool.configs) == every and not conditional else pool


def _of_network(network: Network, task: str) -> FrontQuestion:
    """Return the problem of a surrogate: error, cross-entropy and log of the run time."""
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
    """Return the front of random configurations, and of mixtures and changes of the best."""
    rng = np.random.default_rng(0)
    units = rng.random((CONFIGS_PER_ROUND, len(space)))
    best, front = np.empty((0, len(space))), np.empty((0, 0))
    for _ in range(IMPROVEMENT_ROUNDS + 1):
        columns = [p.from_units(own) for p, own in zip(space.values(), units.T, strict=True)]
        configs = [dict(zip(space, row, strict=True)) for row in zip(*columns, strict=True)]
        found = losses(configs)
        together = np.vstack([found, front]) if len(front) else found
        kept = non_dominated(together)
        best, front = np.vstack([units, best])[kept], together[kept]
        first, second = best[rng.integers(len(best), size=(2, CONFIGS_PER_ROUND))]
        mixed = np.where(rng.random(first.shape) < 0.5, first, second)
        steps = rng.normal(0.0, 0.1, mixed.shape) * (rng.random(mixed.shape) < 0.3)
        units = np.clip(mixed + steps, 0.0, 1.0)
    return front


def table_objectives(task: TaskTable) -> Array:
    """Return the losses of every row (C, m): final value, logarithm of the run time if the table has
    one, and logarithm of the number of weights if the space determines it."""
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
    """Return the numbers of weights (n,); None if the space does not determine them."""
    counted = next((count for names, count in WEIGHTS if set(names) <= set(space)), None)
    return None if counted is None else np.array([float(counted(config)) for config in configs])


RANKED_TRIALS = (30, 60, 100)


def trade_off_summary(records: Sequence[Run]) -> Summary:
    """Summarize tasks by methods: the mean regret of the hypervolume after as many trials as every
    method has; then the average rank at each moment and its distance to the best, with a 95%
    interval over problems, among runs of all methods that are long enough."""
    if not records:
        return ["regret of hypervolume"], []
    longest: dict[str, int] = {}
    for record in records:
        longest[record["method"]] = max(record["size"], longest.get(record["method"], 0))
    common = min(longest.values())
    header, rows = regret_summary(_as_after(records, common), ranked=False)
    for moment in RANKED_TRIALS:
        if places := ranks_by_problem(final_regrets(_as_after(records, moment))):
            count = len(next(iter(places.values())))
            labels = f"rank at {moment}, {count} problems", f"behind at {moment}"
            rows += rank_rows(places, header[1:], labels)
    return [f"regret of hypervolume after {common}", *header[1:]], rows


def ranks_by_problem(regrets: Regrets) -> dict[str, list[float]]:
    """Return each method's rank among all on each problem, averaged over the seeds that all of them
    have; empty without any.

    >>> ranks_by_problem({"a": {("t", "zdt1", 0): 0.1}, "b": {("t", "zdt1", 0): 0.2}})
    {'a': [1.0], 'b': [2.0]}
    """
    problems: dict[tuple[str, str], list[Array]] = {}
    for (table, task, _), places in ranks_by_run(regrets).items():
        problems.setdefault((table, task), []).append(places)
    means = np.array([np.mean(own, axis=0) for own in problems.values()])
    return dict(zip(regrets, means.T.tolist(), strict=True)) if problems else {}


def _as_after(records: Sequence[Run], moment: int) -> list[Run]:
    """Return the runs of at least ``moment`` trials as they were then, the last of each cell; tasks
    of tables are named with their table."""
    found: dict[tuple[str, str, int], Run] = {}
    for record in records:
        if record["size"] >= moment:
            table, task = record["table"], record["task"]
            name = task if table == FORMULAS_TABLE else f"{table} {task}"
            key = (record["method"], name, record["seed"])
            found[key] = {**record, "regret": record["regret"][:moment], "task": name}
    return list(found.values())
