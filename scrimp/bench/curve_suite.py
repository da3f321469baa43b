"""``scrimp bench curves`` and `scrimp.simulate`: methods on training runs, replayed by several
workers on a virtual clock.

The clock ends after ``fulls`` full trainings shared by the workers; ``spent`` is its share, so
idling costs. Regret is that of the best value reported so far: 0 is perfect, 1 is one random full
training, and it is 1 before the first finite report.

    cells = curve_cells(Path("lcbench.npz"), ["asha", "dehb"], ["all"], seeds=5)
    # at 0.1, 0.25, 0.5, 0.75 and 1.0 of the budget
    run_curves(cells[0])["regret"]
    scrimp.simulate("lcbench.npz", "mobster-joint", task="adult", workers=4, fulls=20, seed=0)
"""

import time
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from scrimp.bench.curve_tasks import UNIT_COST, CurveTask, NoisyCurves, is_modelled, open_curves
from scrimp.bench.regret_suite import chosen_tasks
from scrimp.bench.results import (
    Cell,
    Run,
    Summary,
    average_ranks,
    by_method,
    comparison,
    final_regrets,
    paired_interval,
    with_interval,
)
from scrimp.bench.runner import SMALL_SPACE, check_methods, kept_at
from scrimp.checks import is_positive, is_whole
from scrimp.errors import StudyError, TableError
from scrimp.executors.simulated import Delays, Simulated
from scrimp.json_values import Json
from scrimp.methods.named_methods import Method, build_policy, check_method, choose, parse_method
from scrimp.methods.policy import Decision, Policy
from scrimp.schedulers.scheduler import Verdict
from scrimp.storage.memory import MemoryStorage
from scrimp.storage.store import Storage
from scrimp.study.ledger import Ledger
from scrimp.study.stopping import MaxSeconds
from scrimp.study.studies import beginning, load_study, storage_at
from scrimp.study.study import Study
from scrimp.study.tuner import Tuner, TunerSettings
from scrimp.study_log.events import Reported, StudyChanged
from scrimp.study_log.history import History
from scrimp.study_log.limits import Totals
from scrimp.study_log.problem import Budget, Problem
from scrimp.transfer.past import Past

BUDGET_SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
"""Fractions of the budget at which regret is measured."""

METRIC = "value"


@dataclass(frozen=True)
class CurveSuiteSettings:
    """Length, workers, and costs in units or seconds; ``folder`` caches scales of surrogates."""

    fulls: int = 20
    workers: int = 4
    unit_cost: bool = False
    folder: Path | None = None


def curve_cells(
    path: Path,
    methods: list[str],
    tasks: list[str],
    seeds: int,
    settings: CurveSuiteSettings | None = None,
) -> list[Cell]:
    """Return every run of a comparison; `TableError` for a task that the file does not have."""
    chosen = settings or CurveSuiteSettings()
    runs = open_curves(path, chosen.unit_cost, chosen.folder)
    names = chosen_tasks(runs.tasks, tasks)
    for name in names:
        runs.check(name)
    if not is_modelled(path) and names and runs.task(names[0]).budget is None:
        raise TableError(
            f"table {runs.name!r} has final values only; compare on it with 'scrimp bench tables'"
        )
    check_methods(methods, Problem(SMALL_SPACE, budget=Budget("level", 1, 27)))
    folder = "" if chosen.folder is None else str(chosen.folder)
    shared = Cell(
        "curves",
        runs.name,
        "",
        size=chosen.fulls,
        workers=chosen.workers,
        source=str(path),
        folder=folder,
    )
    return comparison([replace(shared, task=name) for name in names], methods, seeds)


def fit_notes(cells: Sequence[Cell]) -> Iterator[str]:
    """Fit the surrogates that these runs need; yield a line about the quality of each."""
    for source, folder, task in dict.fromkeys(
        (cell.source, cell.folder, cell.task) for cell in cells
    ):
        note = open_curves(source, folder=Path(folder)).note(task) if is_modelled(source) else ""
        if note:
            yield note


def run_curves(cell: Cell) -> dict[str, Json]:
    """Run one method on one task: ``regret`` and ``value`` at each share of the budget ``spent``, the
    number of trials, and ``trace``, the pairs (spent, regret) at every improvement."""
    task = training_runs(cell)
    policy = Timed(cell.method, task, own_seed(cell))
    name, url = kept_at(cell, task.space)
    history = play_curves(task, policy, cell, name, storage_at(url))
    trace = improving_reports(history, task, cell.size * task.scale.full / cell.workers)
    regret = [regret_at(trace, share) for share in BUDGET_SHARES]
    return cell.result(
        policy.seconds,
        history.decisions,
        trials=len(history.trials),
        spent=list(BUDGET_SHARES),
        regret=regret,
        value=[task.scale.value(number) for number in regret],
        trace=[list(point) for point in trace],
    )


def training_runs(cell: Cell) -> CurveTask:
    """Return the task of a cell, with the noise of its file drawn for this cell."""
    runs = open_curves(
        cell.source, cell.table.endswith(UNIT_COST), Path(cell.folder) if cell.folder else None
    )
    task = runs.task(cell.task)
    if not runs.noise:
        return task
    drawn = NoisyCurves(task.curves, task.curves.levels, runs.noise, own_seed(cell))
    return replace(task, curves=drawn)


def own_seed(cell: Cell) -> int:
    """Return a seed that depends on the task, so that tasks do not share their draws."""
    return zlib.crc32(f"{cell.task}/{cell.seed}".encode())


class Timed(Policy):
    """A method on a task, with the CPU seconds of its decisions and reviews."""

    def __init__(
        self, method: str | Method, task: CurveTask, seed: int, past: Past | None = None
    ) -> None:
        self.problem = Problem(task.space, {METRIC: "minimize"}, budget=task.budget, seed=seed)
        self.method, self.reason = choose(self.problem, parse_method(method))
        self.seconds = 0.0
        self._policy = build_policy(self.problem, self.method, past)

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """Return the method's decision."""
        began = time.process_time()
        decision = self._policy.decide(history, rng)
        self.seconds += time.process_time() - began
        return decision

    def outline(self, history: History, rng: np.random.Generator) -> Decision:
        """Return the method's answer without a configuration."""
        return self._policy.outline(history, rng)

    def review(self, history: History, trial: int) -> Verdict:
        """Return the method's answer to a report."""
        began = time.process_time()
        verdict = self._policy.review(history, trial)
        self.seconds += time.process_time() - began
        return verdict


def play_curves(
    task: CurveTask,
    policy: Timed,
    cell: Cell,
    name: str = "bench",
    storage: Storage | None = None,
    limit: float | None = None,
) -> History:
    """Run a whole study on the virtual clock, in memory unless a storage is given; return its
    history. Methods are told the time limit, so that they can plan for the end: ``limit``, or that
    of the full trainings of the cell."""
    record = {**policy.method.to_json(), "reason": policy.reason}
    created = msgspec.structs.replace(beginning(name, policy.problem, record), time=0.0)
    limit = cell.size * task.scale.full / cell.workers if limit is None else limit
    executor = Simulated(task.curves, METRIC, cell.workers, Delays(limit=limit))
    told = StudyChanged(totals=Totals(timeout=limit))
    ledger = Ledger((storage or MemoryStorage()).create(name, [created, told]), executor.clock)
    Tuner(ledger, policy, executor, TunerSettings(stop=MaxSeconds(limit), leases=False)).run()
    return ledger.history


def improving_reports(history: History, task: CurveTask, limit: float) -> list[tuple[float, float]]:
    """Return (spent, regret) at every report that is better than all before."""
    trace: list[tuple[float, float]] = []
    for event in history.events:
        value = event.metrics.get(METRIC) if isinstance(event, Reported) else None
        if value is not None:
            regret = task.scale.regret(value)
            if not trace or regret < trace[-1][1]:
                trace.append((event.time / limit, regret))
    return trace


def regret_at(trace: list[tuple[float, float]], share: float) -> float:
    """Return the regret after that share of the budget; 1 before the first report."""
    return next((regret for spent, regret in reversed(trace) if spent <= share + 1e-9), 1.0)


BASELINE = "asha"
GRID = np.linspace(0.0, 1.0, 1_001)[1:]


def mean_trace(records: Sequence[Run]) -> NDArray[np.float64]:
    """Return the mean regret after each thousandth of the budget (1000,); 1 before a report."""
    total = np.zeros_like(GRID)
    for record in records:
        spent, regret = np.array([(0.0, 1.0), *record["trace"]]).T
        total += regret[np.searchsorted(spent, GRID + 1e-9, side="right") - 1]
    return total / len(records)


def share_to_reach(records: Sequence[Run], goal: float) -> float | None:
    """Return the share of the budget that reaches a mean regret of ``goal``; None if never."""
    reached = np.flatnonzero(mean_trace(records) <= goal + 1e-12)
    return float(GRID[reached[0]]) if len(reached) else None


def curve_summary(records: Sequence[Run]) -> Summary:
    """Summarize methods by regret, rank, share to reach ASHA's final regret, and seconds."""
    own = by_method(records)
    ranks = average_ranks(final_regrets(records))
    baseline = next((method for method in own if method.lower() == BASELINE), "")
    goal = float(_regrets(own[baseline])[:, -1].mean()) if baseline else None
    header = [
        "method",
        *(f"at {share:g}" for share in records[0]["spent"]),
        "rank",
        "reaches asha at",
        "speed-up",
        "s deciding",
        "- asha",
    ]
    rows = []
    for method, runs in own.items():
        reached = None if goal is None else share_to_reach(runs, goal)
        compared = goal is not None and method != baseline
        rows.append(
            [
                method,
                *(f"{regret:.4f}" for regret in _regrets(runs).mean(axis=0)),
                f"{ranks[method]:.2f}" if ranks else "-",
                "-" if reached is None else f"{reached:.3f}",
                "-" if reached is None else f"{1 / reached:.2f}x",
                f"{np.mean([run['decision_seconds'] for run in runs]):.3f}",
                _difference(runs, own[baseline]) if compared else "-",
            ]
        )
    return header, rows


def _regrets(records: Sequence[Run]) -> NDArray[np.float64]:
    """Return the regrets (runs, shares)."""
    return np.array([record["regret"] for record in records], dtype=float)


def _difference(first: Sequence[Run], second: Sequence[Run]) -> str:
    """Return the final regret minus ASHA's, means of each task paired; '-' without a common task."""
    means = [_task_means(records) for records in (first, second)]
    tasks = [task for task in means[0] if task in means[1]]
    if not tasks:
        return "-"
    ours, theirs = ([own[task] for task in tasks] for own in means)
    return with_interval(*paired_interval(ours, theirs), "+.3f")


def _task_means(records: Sequence[Run]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], list[Run]] = {}
    for record in records:
        found.setdefault((record["table"], record["task"]), []).append(record)
    return {task: float(_regrets(runs)[:, -1].mean()) for task, runs in found.items()}


def simulate(  # noqa: PLR0913 - a front door: every argument is a keyword a user may want
    table: str | Path,
    method: str | Method | Mapping[str, object] = "auto",
    *,
    task: str | None = None,
    workers: int = 4,
    fulls: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    unit_cost: bool = False,
    name: str | None = None,
    storage: str | Storage = "memory://",
) -> Study:
    """Run ``method`` on a ``task`` of a table with budgets or seconds, or of a surrogate of training
    runs; return the finished study. It is the run of ``scrimp bench curves`` with the same arguments:
    hours of several workers in a moment, with virtual times in its log.

    Trials that run when the time is up are stopped.

    Args:
        table: File of a benchmark table or a surrogate.
        method: A name, with settings, or a `Method`.
        task: Task of the table; may be left out if there is only one.
        workers: Trials at the same time.
        fulls: Full trainings that all workers together spend; 20 by default.
        seconds: Time limit of the virtual clock, instead of ``fulls``.
        seed: Seed of all random choices.
        unit_cost: Every level of a surrogate costs one unit instead of its seconds.
        name: Name of the study.
        storage: Storage of the study.
    """
    if seconds is not None and fulls is not None:
        raise StudyError("fulls and seconds are both given; give one of them, as the length")
    if seconds is not None and not is_positive(seconds):
        raise StudyError(f"seconds is {seconds!r}; it must be a positive number")
    fulls = 20 if fulls is None else fulls
    for label, value in (("workers", workers), ("fulls", fulls)):
        if not is_whole(value, 1):
            raise StudyError(f"{label} is {value!r}; it must be a whole number of at least 1")
    chosen, runs = parse_method(method), open_curves(table, unit_cost)
    if task is None and len(runs.tasks) > 1:
        raise TableError(
            f"{str(table)!r} has {len(runs.tasks)} tasks; choose one, such as"
            f" task={runs.tasks[0]!r}"
        )
    which = runs.tasks[0] if task is None else task
    runs.check(which)
    called = name if name is not None else f"{runs.name}/{which}/{chosen.name}/{seed}"
    cell = Cell("curves", runs.name, which, chosen.name, seed, fulls, workers, source=str(table))
    replayed, place = training_runs(cell), storage_at(storage)
    if seconds is not None and (unit_cost or not replayed.timed):
        raise TableError(
            f"the levels of {runs.name!r} cost one unit each, not seconds; give the length as fulls="
        )
    timed = Timed(chosen, replayed, own_seed(cell))
    for words in check_method(timed.problem, timed.method):
        warnings.warn(words, stacklevel=2)
    play_curves(replayed, timed, cell, called, place, seconds)
    return load_study(called, storage=place)
