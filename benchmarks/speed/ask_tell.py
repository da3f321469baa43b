"""Measure the cost of ask and tell on durable storage: random search over 10 parameters.

    python benchmarks/run.py ask_tell sqlite [--pairs 300]         # one process on SQLite, and Optuna 5
    python benchmarks/run.py ask_tell postgres [--seconds 10]      # 32 processes, and bare psycopg
    python benchmarks/run.py ask_tell journal [--workers 8]        # on journals, and Optuna 5
    python benchmarks/run.py ask_tell open [--trials 100000]       # open a large study and ask it

Optuna runs in `.venvs/optuna`. The bare psycopg script does the minimum for a shared total: one
transaction numbers a trial and stores its configuration, a second one stores its value. Both run in
turn against the same private server, which is durable (``--fsync off`` leaves the disk out).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environments import python, script_command

NAMES = [f"p{number}" for number in range(10)]


def scrimp_pairs(url: str, pairs: int) -> dict[str, float]:
    """Return CPU and wall seconds of one ask and tell in scrimp."""
    import scrimp

    space = scrimp.Space(**{name: scrimp.Float(0, 1) for name in NAMES})
    study = scrimp.create_study("ask-tell", space, method="random", storage=url, seed=0)
    return timed(lambda: study.tell(study.ask(), 0.5), pairs)


def optuna_pairs(url: str, pairs: int) -> dict[str, float]:
    """Return CPU and wall seconds of one ask and tell in Optuna."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=url, sampler=optuna.samplers.RandomSampler(seed=0))
    space = {name: optuna.distributions.FloatDistribution(0, 1) for name in NAMES}
    return timed(lambda: study.tell(study.ask(space), 0.5), pairs)


def timed(pair: Any, pairs: int) -> dict[str, float]:
    for _ in range(10):
        pair()
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(pairs):
        pair()
    return {
        "cpu": (time.process_time() - cpu) / pairs,
        "wall": (time.perf_counter() - wall) / pairs,
    }


def sqlite(pairs: int) -> None:
    """Run scrimp and Optuna one after the other, each in a process and interpreter of its own."""
    interpreters = {
        "scrimp": Path(sys.executable),
        "optuna": python("optuna"),
    }
    for name, interpreter in interpreters.items():
        if not interpreter.exists():
            print(f"{name:<8} not installed: python benchmarks/run.py environments {name}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            options = [f"--url=sqlite:///{folder}/pairs.db", f"--pairs={pairs}"]
            command = script_command(interpreter, "ask_tell", f"{name}-pairs", *options)
            found = json.loads(
                subprocess.run(command, capture_output=True, text=True, check=True).stdout
            )
        print(
            f"{name:<8} {found['cpu'] * 1e3:8.2f} ms CPU {found['wall'] * 1e3:8.2f} ms wall per"
            " pair"
        )


@dataclass(frozen=True)
class Work:
    """The pairs of one worker: seconds that each took and the ask of each, CPU seconds of all and of
    the server, and how many decisions were repeated."""

    took: list[float]
    asks: list[float]
    cpu: float
    repeated: int = 0
    server: float = 0.0


def scrimp_worker(url: str, seconds: float) -> Work:
    import scrimp
    from scrimp.study import ledger

    study, decide, decided = scrimp.load_study("ask-tell", storage=url), ledger.next_decision, [0]

    def watched(*arguments: Any) -> Any:
        decided[0] += 1
        return decide(*arguments)

    ledger.next_decision = watched
    work = counted(study.ask, lambda trial: study.tell(trial, 0.5), seconds)
    return replace(work, repeated=decided[0] - len(work.took) - 1)


def bare_worker(url: str, seconds: float) -> Work:
    """Do two bare transactions per pair."""
    import psycopg

    rng = np.random.default_rng()
    with psycopg.connect(url, autocommit=True) as connection:

        def ask() -> int:
            config = json.dumps(dict(zip(NAMES, rng.random(10).tolist(), strict=True)))
            with connection.transaction():
                numbered = connection.execute(
                    "UPDATE bare_study SET trials = trials + 1 RETURNING trials"
                ).fetchone()
                assert numbered is not None
                connection.execute("INSERT INTO bare_trials VALUES (%s, %s)", (numbered[0], config))
            return int(numbered[0])

        def tell(trial: int) -> None:
            connection.execute("UPDATE bare_trials SET value = %s WHERE id = %s", (0.5, trial))

        return counted(ask, tell, seconds)


def optuna_worker(path: str, seconds: float) -> Work:
    """Ask and tell Optuna on its journal."""
    import optuna
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = optuna.storages.JournalStorage(JournalFileBackend(path))
    sampler = optuna.samplers.RandomSampler()
    study = optuna.create_study(
        study_name="ask-tell", storage=storage, sampler=sampler, load_if_exists=True
    )

    def ask() -> Any:
        trial = study.ask()
        for name in NAMES:
            trial.suggest_float(name, 0, 1)
        return trial

    return counted(ask, lambda trial: study.tell(trial, 0.5), seconds)


def counted(ask: Callable[[], Any], tell: Callable[[Any], Any], seconds: float) -> Work:
    """Work for the time, from the moment that all workers are ready."""
    tell(ask())
    print("ready", flush=True)
    sys.stdin.readline()
    took: list[float] = []
    asks: list[float] = []
    now = time.monotonic()
    end, cpu = now + seconds, time.process_time()
    while now < end:
        begin, trial = now, ask()
        asks.append(time.monotonic() - begin)
        tell(trial)
        now = time.monotonic()
        took.append(now - begin)
    return Work(took, asks, time.process_time() - cpu)


def together(
    kind: str, url: str, workers: int, seconds: float, server: Callable[[], float]
) -> Work:
    """Let several workers work at the same time. ``server`` returns the CPU seconds of a server."""
    interpreter = python("optuna") if kind == "optuna-worker" else sys.executable
    command = script_command(interpreter, "ask_tell", kind, f"--url={url}", f"--seconds={seconds}")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    running = [subprocess.Popen(command, text=True, **pipes) for _ in range(workers)]  # type: ignore[call-overload]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    before = server()
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    work = joined([Work(**json.loads(process.communicate()[0])) for process in running])
    return replace(work, server=server() - before)


def joined(all_work: Sequence[Work]) -> Work:
    took, asks = (
        [seconds for work in all_work for seconds in getattr(work, name)]
        for name in ("took", "asks")
    )
    cpu, repeated, server = (
        sum(getattr(work, name) for work in all_work) for name in ("cpu", "repeated", "server")
    )
    return Work(took, asks, cpu, repeated, server)


def in_turns(
    places: Mapping[str, str],
    workers: int,
    seconds: float,
    server: Callable[[], float] = float,
) -> None:
    """Let each kind of worker work twice, in turns, so that other load affects all; print what they
    did."""
    found: dict[str, list[Work]] = {kind: [] for kind in places}
    for _ in range(2):
        for kind, place in places.items():
            found[kind].append(together(f"{kind}-worker", place, workers, seconds / 2, server))
    for kind, parts in found.items():
        work = joined(parts)
        pairs = len(work.took)
        median, high = np.percentile(work.asks, [50, 99]) * 1e3
        print(
            f"{workers} workers: {kind} {pairs / seconds:.0f} pairs/s,"
            f" an ask {median:.1f} ms in the median, {high:.1f} ms at the 99th percentile,"
            f" {work.cpu / pairs * 1e3:.2f} ms CPU per pair of a worker and"
            f" {work.server / pairs * 1e3:.2f} ms of a server;"
            f" {work.repeated} decisions repeated",
            flush=True,
        )


def journal(workers: int, seconds: float) -> None:
    """Compare scrimp and Optuna, each on a journal of its own."""
    import scrimp

    with tempfile.TemporaryDirectory() as folder:
        places = {"scrimp": f"journal:///{folder}/pairs", "optuna": f"{folder}/optuna.log"}
        space = scrimp.Space(**{name: scrimp.Float(0, 1) for name in NAMES})
        scrimp.create_study("ask-tell", space, method="random", storage=places["scrimp"], seed=0)
        in_turns(places, workers, seconds)


def postgres(workers: int, seconds: float, fsync: str) -> None:
    """Compare scrimp and the bare script on one server."""
    import psycopg

    import scrimp
    from tests.tools.postgres_server import PrivateServer

    with PrivateServer(f"fsync={fsync}") as server:
        url = server.url("pairs")
        space = scrimp.Space(**{name: scrimp.Float(0, 1) for name in NAMES})
        scrimp.create_study("ask-tell", space, method="random", storage=url, seed=0)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE bare_study (trials bigint)")
            connection.execute("INSERT INTO bare_study VALUES (0)")
            connection.execute(
                "CREATE TABLE bare_trials (id bigint PRIMARY KEY, config text, value float8)"
            )
        in_turns({"bare": url, "scrimp": url}, workers, seconds, server.cpu_seconds)


def large(trials: int) -> None:
    """Print the CPU seconds to open a large study and to ask it for the first time.

    Later pairs are compared with those of an empty study.
    """
    import scrimp
    from scrimp.study_log.events import BudgetGranted, Decided, Event, Reported, TrialAdded

    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/large.db"
        space = scrimp.Space(**{name: scrimp.Float(0, 1) for name in NAMES})
        study = scrimp.create_study("large", space, method="random", storage=url, seed=0)
        rows = np.random.default_rng(0).random((trials, len(NAMES))).tolist()
        for begin in range(0, trials, 5000):
            batch: list[Event] = []
            for trial in range(begin, min(begin + 5000, trials)):
                config = dict(zip(NAMES, rows[trial], strict=True))
                batch += [
                    Decided(decision=trial, seen=1 + 4 * trial),
                    TrialAdded(trial=trial, config=config),
                ]
                batch += [
                    BudgetGranted(trial=trial, budget=1.0),
                    Reported(trial=trial, step=1.0, metrics={"value": 0.5}),
                ]
            study._ledger.store.append(batch)
        marks = [time.process_time()]
        study = scrimp.load_study("large", storage=url)
        marks.append(time.process_time())
        study.tell(study.ask(), 0.5)
        marks.append(time.process_time())
        empty = scrimp.create_study("empty", space, method="random", storage=url, seed=0)
        pairs: dict[str, list[float]] = {"large": [], "empty": []}
        for _ in range(5):  # in turns, so that other load affects both
            pairs["large"].append(timed(lambda: study.tell(study.ask(), 0.5), 100)["cpu"])
            pairs["empty"].append(timed(lambda: empty.tell(empty.ask(), 0.5), 100)["cpu"])
        opened, first = np.diff(marks)
        print(f"{trials} trials: opened in {opened:.2f} s, first pair {first:.2f} s CPU")
        print(
            ", ".join(
                f"{name} study {min(times) * 1e3:.2f} ms CPU per pair"
                for name, times in pairs.items()
            )
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what")
    parser.add_argument("--url", default="")
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=32)
    parser.add_argument("--fsync", default="on")
    parser.add_argument("--trials", type=int, default=100_000)
    options = parser.parse_args()
    match options.what:
        case "sqlite":
            sqlite(options.pairs)
        case "postgres":
            postgres(options.workers, options.seconds, options.fsync)
        case "journal":
            journal(options.workers, options.seconds)
        case "open":
            large(options.trials)
        case "scrimp-pairs" | "optuna-pairs":
            run = {"scrimp-pairs": scrimp_pairs, "optuna-pairs": optuna_pairs}[options.what]
            print(json.dumps(run(options.url, options.pairs)))
        case "scrimp-worker" | "bare-worker" | "optuna-worker":
            workers = {"scrimp": scrimp_worker, "bare": bare_worker, "optuna": optuna_worker}
            work = workers[options.what.removesuffix("-worker")]
            print(json.dumps(asdict(work(options.url, options.seconds))))
        case other:
            parser.error(f"{other!r} is not one of sqlite, postgres, journal, open")


if __name__ == "__main__":
    main()
