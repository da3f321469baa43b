"""``scrimp bench speed``: what one decision costs, in CPU seconds of one thread.

A study over six parameters holds n - 1 observations of Hartmann 6; it is asked once and told the
value, then timed: each repeat is one ask, with a refit from the recorded hyperparameters, after one
newly told value. Asks between refits, where only the factor grows, are timed apart.

    run_speed(Cell("speed", "speed", "hartmann6", "gp", seed=0, size=100))["ask_seconds"]
"""

import statistics
import time

from msgspec.structs import replace

from scrimp.bench.described_space import described_space
from scrimp.bench.formulas import FORMULAS, speed_data
from scrimp.bench.results import Cell
from scrimp.errors import TableError
from scrimp.history.events import BudgetGranted, Event, Noted, Reported, TrialAdded
from scrimp.history.notes import Modelled, Notes
from scrimp.history.trial import Trial
from scrimp.json_values import Json
from scrimp.storage.memory import MemoryStorage
from scrimp.storage.store import EventStore
from scrimp.tuning.studies import create_study
from scrimp.tuning.study import Study

__all__ = ["run_speed", "speed_cells"]

REPEATS = 5  # as many as peers get: the least of more would be lower
FORMULA = FORMULAS["hartmann6"]


def speed_cells(methods: list[str], sizes: list[int]) -> list[Cell]:
    """One run per method and number of observations."""
    for size in sizes:
        if size < 2:
            raise TableError(
                f"size {size} is too small to time a decision; give at least 2 observations"
            )
    return [
        Cell("speed", "speed", "hartmann6", method, 0, size) for size in sizes for method in methods
    ]


def run_speed(cell: Cell) -> dict[str, Json]:
    """Time `REPEATS` asks with a refit, then up to as many without one."""
    storage = MemoryStorage()
    space = described_space(FORMULA.space)
    study = create_study("speed", space, method=cell.method, storage=storage, seed=cell.seed)
    store = storage.open("speed")
    store.append(_observations(cell.size - 1))
    _tell(study, study.ask())
    refits, proposals, reached = [], [], []
    for _ in range(REPEATS):
        _let_refit(study, store)
        trial, seconds = _timed_ask(study)
        refits.append(seconds)
        proposals.append(trial.config)
        reached.append(_score(study))
        _tell(study, trial)
    between = _between_refits(study)
    return {
        **cell.head(),
        "n": cell.size,
        "decision_seconds": sum(refits) + sum(between),
        "decisions": len(refits) + len(between),
        "ask_seconds": min(refits),
        "ask_seconds_median": statistics.median(refits),
        "between_refits_seconds": min(between) if between else None,
        "acquisition": reached[0],
        "repeats": REPEATS,
        "proposals": proposals,
    }


def _observations(count: int) -> list[Event]:
    """Trials that were measured before, as the log records them."""
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


def _score(study: Study) -> float | None:
    """The acquisition value that the newest decision reached; None without one."""
    reason = study.history.notes.reason
    return reason.score if isinstance(reason, Modelled) else None


def _let_refit(study: Study, store: EventStore) -> None:
    """Age the recorded fit: it remains the start of the next one, which is now due."""
    history = study.history
    recorded = history.notes.fit
    if recorded is not None:
        aged = {name: replace(record, n=0) for name, record in recorded.items()}
        store.append(
            [Noted(decision=history.decisions - 1, seen=history.length, notes=Notes(fit=aged))]
        )


def _between_refits(study: Study) -> list[float]:
    """Seconds of the asks that follow until the next refit; none for methods that keep no fit."""
    recorded = study.history.notes.fit
    seconds: list[float] = []
    while recorded is not None and len(seconds) < REPEATS:
        trial, taken = _timed_ask(study)
        if study.history.notes.fit != recorded:
            break
        seconds.append(taken)
        _tell(study, trial)
    return seconds
