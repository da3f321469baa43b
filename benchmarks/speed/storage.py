"""Measure the cost of storage in CPU and wall time: opening a study, deciding and telling.

    python benchmarks/run.py storage [URL ...] [--trials 25000] [--repeats 300]

Each URL gets a study of ``--trials`` trials (4 events each), which is deleted afterwards. `open`
reads, decodes and folds the log; `ask` reads new events and appends a decision of 3 events; `tell`
appends one durable report. The last line is the lower bound: a bare sqlite3 script with the same
settings that writes one row per transaction.
"""

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.storage.open import open_storage
from scrimp.study_log.decision_record import DecisionRecord, InBracket
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Event,
    Reported,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem

PROBLEM = Problem(Space({f"p{number}": Float(0, 1) for number in range(10)}))
CONFIG = {f"p{number}": 0.0123456789 * number for number in range(10)}


def decision(trial: int, seen: int) -> list[Event]:
    return [
        Decided(
            decision=trial, seen=seen, notes=DecisionRecord(grant=InBracket(0)), time=1e9 + trial
        ),
        TrialAdded(trial=trial, config=CONFIG, time=1e9 + trial),
        BudgetGranted(trial=trial, budget=1.0, worker="host:1", time=1e9 + trial),
    ]


def result(trial: int) -> Event:
    return Reported(trial=trial, step=1.0, metrics={"value": 0.1234 * trial}, time=1e9 + trial)


def measured(name: str, action: Callable[[], object], times: int = 1) -> None:
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(times):
        action()
    cpu, wall = (time.process_time() - cpu) / times, (time.perf_counter() - wall) / times
    print(f"  {name:<28}{cpu * 1e3:10.3f} ms CPU {wall * 1e3:10.3f} ms wall")


def run(url: str, trials: int, repeats: int) -> None:
    storage = open_storage(url)
    print(f"{storage.url}: {4 * trials + 1:,} events")
    store = storage.create(
        "benchmark", [StudyCreated(name="benchmark", problem=PROBLEM.to_json(), method={})]
    )
    for trial in range(trials):  # every decision has its number, as in a real study
        if trial % 5000 == 0:
            batch: list[Event] = []
        batch += [*decision(trial, 1 + 4 * trial), result(trial)]
        if trial % 5000 == 4999 or trial == trials - 1:
            store.append(batch)
    history = History.of(store.read())
    next_trial = trials

    def ask() -> None:
        nonlocal history, next_trial
        history = history.with_events(store.read(history.length))
        store.append(decision(next_trial, history.length), decision=next_trial)
        next_trial += 1

    def tell() -> None:
        nonlocal told
        store.append([result(told)])
        told += 1

    told = trials
    measured("open (read, decode, fold)", lambda: History.of(store.read()))
    measured("ask (read news, append 3)", ask, repeats)
    measured("tell (append 1)", tell, repeats)
    measured("poll (nothing new)", lambda: store.read(4 * trials + 1 + 4 * repeats), repeats)
    storage.delete("benchmark")
    storage.close()


def floor(folder: Path, repeats: int) -> None:
    connection = sqlite3.connect(folder / "floor.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, value TEXT)")

    def write() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows (value) VALUES (?)", ("x" * 200,))
        connection.execute("COMMIT")

    print("floor")
    measured("bare sqlite3, 1 row", write, repeats)
    connection.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("urls", nargs="*")
    parser.add_argument("--trials", type=int, default=25_000)
    parser.add_argument("--repeats", type=int, default=300)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for place in arguments.urls or ["memory://", f"sqlite:///{scratch}/scrimp.db"]:
            run(place, arguments.trials, arguments.repeats)
        floor(Path(scratch), arguments.repeats)
