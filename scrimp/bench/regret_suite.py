"""``scrimp bench functions`` and ``scrimp bench tables``: regret after each trial, on test functions
with known minima and on the final values of tables, which are pools searched without replacement.

    run_function(Cell("functions", "functions", "branin", "gp", seed=0, size=50))["regret"][-1]
    cells = table_cells(Path("fcnet.npz"), ["gp", "random"], ["all"], seeds=10, trials=100)
    run_table(cells[0])["regret"][-1]

``scrimp bench speed`` times one decision: CPU seconds on one thread. A study over six parameters holds
n - 1 observations of Hartmann 6; it is asked once and told the value, then timed: each repeat is one
ask, with a refit from the recorded hyperparameters, after one newly told value. Asks between refits,
where only the factor grows, are timed separately.

    run_speed(Cell("speed", "speed", "hartmann6", "gp", seed=0, size=100))["ask_seconds"]
"""

import statistics
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from scrimp.bench.formulas import FORMULAS, Formula, Recorder, speed_data
from scrimp.bench.results import Cell, Run, Summary, comparison
from scrimp.bench.runner import SMALL_SPACE, check_methods, play_study, study_of
from scrimp.bench.tables import TaskTable, described_space, read_table
from scrimp.checks import check_known
from scrimp.errors import TableError
from scrimp.json_values import Config, Json
from scrimp.space.space import Space
from scrimp.storage.memory import MemoryStorage
from scrimp.storage.store import EventStore
from scrimp.study.studies import create_study
from scrimp.study.study import Study
from scrimp.study_log.decision_record import DecisionRecord, Modelled
from scrimp.study_log.events import BudgetGranted, Decided, Event, Reported, TrialAdded
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Trial


def function_cells(
    methods: list[str], names: list[str], seeds: int, trials: int, workers: int = 1
) -> list[Cell]:
    """Return every run of a comparison; `TableError` for an unknown function."""
    check_known("test function", names, FORMULAS, TableError)
    check_methods(methods, Problem(SMALL_SPACE))
    tasks = [Cell("functions", "functions", name, size=trials, workers=workers) for name in names]
    return comparison(tasks, methods, seeds)


def run_function(cell: Cell) -> dict[str, Json]:
    """Run one method on one function: the regret of the best configuration after each trial."""
    formula = FORMULAS[cell.task]
    return _played(cell, formula, described_space(formula.space))


def _played(cell: Cell, formula: Formula, space: Space) -> dict[str, Json]:
    recorder = Recorder(formula, cell.seed)
    study = study_of(cell, space, noisy=formula.noise > 0)
    trials = int(min(cell.size, space.size))
    seconds, asks = play_study(study, recorder.measure, trials, cell.workers)
    return cell.result(seconds, asks, **padded(recorder.regret, cell.size))


def padded(regret: list[float | None], size: int) -> dict[str, Json]:
    """Return ``at`` 1, ..., ``size`` and the regrets; one that ended early keeps its last one."""
    last = regret[-1] if regret else None
    return {"at": list(range(1, size + 1)), "regret": regret + [last] * (size - len(regret))}


def chosen_tasks(known: tuple[str, ...], tasks: list[str]) -> list[str]:
    """Return the named tasks, or all of them."""
    return list(known) if tasks == ["all"] else tasks


def table_cells(
    path: Path, methods: list[str], tasks: list[str], seeds: int, trials: int
) -> list[Cell]:
    """Return every run of a comparison; `TableError` for a task that the table does not have."""
    table = read_table(path)
    names = chosen_tasks(table.tasks, tasks)
    for name in names:
        table.task(name)
    check_methods(methods, Problem(SMALL_SPACE))
    cells = [Cell("tables", table.name, name, size=trials, source=str(path)) for name in names]
    return comparison(cells, methods, seeds)


def run_table(cell: Cell) -> dict[str, Json]:
    """Run one method on one task: lowest final value so far minus the lowest of the table."""
    task = _task(cell.source, cell.task)

    def final(config: Config) -> float:
        return float(task.final[task.pool.index(config)])

    return _played(cell, Formula(task.name, (), task.best, final), task.pool)


@lru_cache(maxsize=8)
def _task(path: str, name: str) -> TaskTable:
    return read_table(path).task(name)


TIMED_ASKS = 5
"""Number of timed asks, the same for all peers: the minimum of more would be lower."""

FORMULA = FORMULAS["hartmann6"]


def speed_cells(methods: list[str], sizes: list[int]) -> list[Cell]:
    """Return one run per method and number of observations."""
    for size in sizes:
        if size < 2:
            raise TableError(
                f"size {size} is too small to time a decision; give at least 2 observations"
            )
    check_methods(methods, Problem(SMALL_SPACE))
    tasks = [Cell("speed", "speed", "hartmann6", size=size) for size in sizes]
    return comparison(tasks, methods, seeds=1)


def run_speed(cell: Cell) -> dict[str, Json]:
    """Time `TIMED_ASKS` asks with a refit, then up to as many without one: their CPU seconds with
    ``n`` observations, the configurations proposed, and the acquisition value of the first."""
    storage = MemoryStorage()
    space = described_space(FORMULA.space)
    study = create_study("speed", space, method=cell.method, storage=storage, seed=cell.seed)
    store = storage.open("speed")
    store.append(_observations(cell.size - 1))
    _tell(study, study.ask())
    refits, proposals, reached = [], [], []
    for _ in range(TIMED_ASKS):
        _let_refit(study, store)
        trial, seconds = _timed_ask(study)
        refits.append(seconds)
        proposals.append(trial.config)
        reason = study.history.recorded.reason
        reached.append(reason.score if isinstance(reason, Modelled) else None)
        _tell(study, trial)
    between = _between_refits(study)
    return cell.result(
        sum(refits) + sum(between),
        len(refits) + len(between),
        n=cell.size,
        ask_seconds=min(refits),
        ask_seconds_median=statistics.median(refits),
        between_refits_seconds=min(between) if between else None,
        acquisition=reached[0],
        repeats=TIMED_ASKS,
        proposals=proposals,
    )


def _observations(count: int) -> list[Event]:
    """Return the events of trials that were measured before."""
    events: list[Event] = []
    for number, (point, value) in enumerate(zip(*speed_data(count), strict=True)):
        config = {f"x{k + 1}": float(x) for k, x in enumerate(point)}
        events.append(TrialAdded(trial=number, config=config))
        events.append(BudgetGranted(trial=number, budget=1.0))
        events.append(Reported(trial=number, step=1.0, metrics={"value": float(value)}))
    return events


def _timed_ask(study: Study) -> tuple[Trial, float]:
    start = time.process_time()
    trial = study.ask()
    return trial, time.process_time() - start


def _tell(study: Study, trial: Trial) -> None:
    study.tell(trial, FORMULA.evaluate(trial.config))


def _let_refit(study: Study, store: EventStore) -> None:
    """Make a refit due, which starts from the recorded fit."""
    history = study.history
    recorded = history.recorded.fit
    if recorded is not None:
        aged = {name: replace(record, n=0) for name, record in recorded.items()}
        number, record = history.decisions - 1, DecisionRecord(fit=aged)
        store.append([Decided(decision=number, seen=history.length, record=record)])


def _between_refits(study: Study) -> list[float]:
    """Return the seconds of the asks until the next refit; none for methods that record no fit."""
    recorded = study.history.recorded.fit
    seconds: list[float] = []
    while recorded is not None and len(seconds) < TIMED_ASKS:
        trial, taken = _timed_ask(study)
        if study.history.recorded.fit != recorded:
            break
        seconds.append(taken)
        _tell(study, trial)
    return seconds


def speed_summary(records: Sequence[Run]) -> Summary:
    """Summarize milliseconds of an ask, with a refit and between, and the acquisition."""
    header = ["method", "n", "ask ms", "median ms", "between refits ms", "acquisition"]
    rows = [
        [
            record["method"],
            str(record["n"]),
            f"{1e3 * record['ask_seconds']:.2f}",
            f"{1e3 * record['ask_seconds_median']:.2f}",
            _or_dash(record["between_refits_seconds"], 1e3),
            _or_dash(record["acquisition"], 1.0),
        ]
        for record in records
    ]
    return header, rows


def _or_dash(value: float | None, scale: float) -> str:
    return "-" if value is None else f"{scale * value:.3f}"
