"""``scrimp bench curves``: methods on training runs, replayed by several workers on a virtual
clock.

The clock ends after ``fulls`` full trainings shared by the workers; ``spent`` is its share, so
idling costs. Regret is that of the best value reported so far: 0 is perfect, 1 is one random full
training, and 1 stands before the first finite report.

    cells = curve_cells(Path("lcbench.npz"), ["asha", "dehb"], ["all"], seeds=5)
    # at 0.1, 0.25, 0.5, 0.75 and 1.0 of the budget
    run_curves(cells[0])["regret"]
"""

import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from scrimp.bench.curve_files import UNIT_COST, is_modelled, open_curves
from scrimp.bench.curve_tasks import CurveTask, noisy
from scrimp.bench.kept_studies import kept_at
from scrimp.bench.results import Cell
from scrimp.bench.table_suite import chosen_tasks
from scrimp.executors.simulated import Delays, Simulated
from scrimp.history.events import Reported, StudyChanged
from scrimp.history.history import History
from scrimp.history.limits import Totals
from scrimp.history.problem import Problem
from scrimp.json_values import Json
from scrimp.policies.policy import Decision, Policy, Verdict
from scrimp.storage.memory import MemoryStorage
from scrimp.storage.store import Storage
from scrimp.transfer.past import Past
from scrimp.tuning.catalog import Method, build_policy, choose, parse_method
from scrimp.tuning.ledger import Ledger
from scrimp.tuning.stopping import Seconds
from scrimp.tuning.studies import beginning, storage_at
from scrimp.tuning.tuner import Tuner, TunerSettings

__all__ = [
    "SHARES",
    "CurveSuiteSettings",
    "Timed",
    "curve_cells",
    "fit_notes",
    "improving_reports",
    "own_seed",
    "play_curves",
    "regret_at",
    "run_curves",
    "training_runs",
]

SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
"""Where regret is read off, as shares of the budget."""

METRIC = "value"


@dataclass(frozen=True)
class CurveSuiteSettings:
    """How long, with how many workers, in units of levels or of seconds; ``folder`` keeps what a
    surrogate is measured by."""

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
    """Every run of a comparison, seeds outermost; `TableError` for a task that the file does not
    have."""
    chosen = settings or CurveSuiteSettings()
    runs = open_curves(path, chosen.unit_cost, chosen.folder)
    names = chosen_tasks(runs.tasks, tasks)
    for name in names:
        runs.check(name)
    folder = "" if chosen.folder is None else str(chosen.folder)
    return [
        Cell(
            "curves",
            runs.name,
            name,
            method,
            seed,
            chosen.fulls,
            chosen.workers,
            source=str(path),
            folder=folder,
        )
        for seed in range(seeds)
        for name in names
        for method in methods
    ]


def fit_notes(cells: Sequence[Cell]) -> Iterator[str]:
    """Fits the surrogates that these runs need, where they need some, and says of each how good it
    is."""
    for source, folder, task in dict.fromkeys(
        (cell.source, cell.folder, cell.task) for cell in cells
    ):
        note = open_curves(source, folder=Path(folder)).note(task) if is_modelled(source) else ""
        if note:
            yield note


def run_curves(cell: Cell) -> dict[str, Json]:
    """One method on one task."""
    task = training_runs(cell)
    policy = Timed(cell.method, task, own_seed(cell))
    name, url = kept_at(cell, task.space)
    history = play_curves(task, policy, cell, name, storage_at(url))
    trace = improving_reports(history, task, cell.size * task.scale.full / cell.workers)
    regret = [regret_at(trace, share) for share in SHARES]
    return {
        **cell.head(),
        "decision_seconds": policy.seconds,
        "decisions": history.decisions,
        "trials": len(history.trials),
        "spent": list(SHARES),
        "regret": regret,
        "value": [task.scale.value(number) for number in regret],
        "trace": [list(point) for point in trace],
    }


def training_runs(cell: Cell) -> CurveTask:
    """The task of a cell, with the noise of its file drawn for this cell."""
    runs = open_curves(
        cell.source, cell.table.endswith(UNIT_COST), Path(cell.folder) if cell.folder else None
    )
    task = runs.task(cell.task)
    return noisy(task, runs.noise, own_seed(cell)) if runs.noise else task


def own_seed(cell: Cell) -> int:
    """A seed for this task alone: the same draws on every task would make ten seeds on many tasks
    ten draws, not many."""
    return zlib.crc32(f"{cell.task}/{cell.seed}".encode())


class Timed(Policy):
    """A method on a task, with what it may learn from the ``past``; the CPU seconds of its
    decisions and reviews are summed."""

    def __init__(
        self, method: str | Method, task: CurveTask, seed: int, past: Past | None = None
    ) -> None:
        self.problem = Problem(task.space, metric=METRIC, budget=task.budget, seed=seed)
        self.method, self.reason = choose(self.problem, parse_method(method))
        self.seconds = 0.0
        self._policy = build_policy(self.problem, self.method, past)

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """What the method decides."""
        began = time.process_time()
        decision = self._policy.decide(history, rng)
        self.seconds += time.process_time() - began
        return decision

    def outline(self, history: History, rng: np.random.Generator) -> Decision:
        """What the method says without a configuration."""
        return self._policy.outline(history, rng)

    def review(self, history: History, trial: int) -> Verdict:
        """What the method says to a report."""
        began = time.process_time()
        verdict = self._policy.review(history, trial)
        self.seconds += time.process_time() - began
        return verdict


def play_curves(
    task: CurveTask, policy: Timed, cell: Cell, name: str = "bench", storage: Storage | None = None
) -> History:
    """The whole study, played through on the virtual clock; in a storage of its own unless one is
    given."""
    record = {**policy.method.to_json(), "reason": policy.reason}
    created = msgspec.structs.replace(beginning(name, policy.problem, record), time=0.0)
    limit = cell.size * task.scale.full / cell.workers
    executor = Simulated(task.curves, METRIC, cell.workers, Delays(limit=limit))
    told = StudyChanged(totals=Totals(timeout=limit))  # methods may plan for the end
    ledger = Ledger((storage or MemoryStorage()).create(name, [created, told]), executor.clock)
    Tuner(ledger, policy, executor, TunerSettings(until=Seconds(limit), leases=False)).run()
    return ledger.history


def improving_reports(history: History, task: CurveTask, limit: float) -> list[tuple[float, float]]:
    """(spent, regret) at every report that is better than all before."""
    trace: list[tuple[float, float]] = []
    for event in history.events:
        value = event.metrics.get(METRIC) if isinstance(event, Reported) else None
        if value is not None:
            regret = task.scale.regret(value)
            if not trace or regret < trace[-1][1]:
                trace.append((event.time / limit, regret))
    return trace


def regret_at(trace: list[tuple[float, float]], share: float) -> float:
    """The regret after that share of the budget; 1 before the first report."""
    return next((regret for spent, regret in reversed(trace) if spent <= share + 1e-9), 1.0)
