"""Requests per second of the dashboard's pages, for a study of many trials.

    python benchmarks/run.py dashboard_load --trials 20000 --seconds 4

Four clients ask for one page at a time while the study does not change. A column shows the first
answer, which may sort or draw, apart from the others. ``--live`` adds a finished trial before every
first answer, as a running study does.
"""

import argparse
import http.client
import math
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import scrimp
from scrimp.storage.open import open_storage
from scrimp.study_log.events import BudgetGranted, Decided, Event, Reported, TrialAdded

PAGES = {
    "list of studies": "/",
    "study": "/study?name=s",
    "table by a parameter": "/table?name=s&sort=x0&page=3",
    "filter": "/table?name=s&text=x0%3C0.5",
    "search": "/table?name=s&text=word",
    "summary": "/summary?name=s",
    "trial": "/trial?study=s&number=77",
    "history as JSON": "/figure?study=s&name=history",
}
CLIENTS = 4


def trial_events(number: int, draw: random.Random) -> list[Event]:
    """Return the events of one finished trial."""
    config = {f"x{place}": draw.random() for place in range(4)}
    value, now = (config["x0"] - 0.3) ** 2 + config["x1"], 1.7e9 + number
    return [
        Decided(decision=number, seen=1 + 4 * number),
        TrialAdded(trial=number, config=config, time=now),
        BudgetGranted(trial=number, budget=1.0, time=now),
        Reported(trial=number, step=1.0, metrics={"value": value}, time=now + 1),
    ]


def grown_study(url: str, trials: int) -> Iterator[None]:
    """Store a study of ``trials`` trials; every further step adds one."""
    space = scrimp.Space({f"x{place}": scrimp.Float(0, 1) for place in range(4)})
    first = scrimp.create_study("s", space, method="random", storage="memory://", seed=0)
    store, draw = open_storage(url).create("s", [first.history.created]), random.Random(0)
    for begin in range(0, trials, 5000):
        numbers = range(begin, min(begin + 5000, trials))
        store.append([event for number in numbers for event in trial_events(number, draw)])
    yield
    while True:
        store.append(trial_events(trials, draw))
        trials += 1
        yield


def answer(port: int, path: str) -> float:
    """Return the seconds until the whole page is there."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    connection.close()
    return time.perf_counter() - began if response.status == 200 else float("nan")


def rate(port: int, path: str, seconds: float) -> float:
    """Return the answers per second to several clients."""
    count, end = [0] * CLIENTS, time.perf_counter() + seconds

    def ask(client: int) -> None:
        while time.perf_counter() < end:
            answer(port, path)
            count[client] += 1

    threads = [threading.Thread(target=ask, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(count) / seconds


def main() -> None:
    """Print one line per page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--live", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/s.db"
        growing = grown_study(url, given.trials)
        next(growing)
        scrimp_command = str(Path(sys.executable).with_name("scrimp"))
        words = ["dashboard", "--no-token", "--port", "0", "--storage", url]
        with subprocess.Popen(
            [scrimp_command, *words], stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            port = int(
                server.stdout.readline().strip().rstrip("/").rpartition(":")[2].split("/")[0]
            )
            while math.isnan(answer(port, PAGES["summary"])):
                time.sleep(0.2)  # the log is being read
            for path in PAGES.values():
                answer(port, path)
            for name, path in PAGES.items():
                if given.live:
                    next(growing)
                first = answer(port, path)
                steady = rate(port, path, given.seconds)
                print(
                    f"{name:22} first {1000 * first:7.0f} ms   {steady:7.1f} per second", flush=True
                )
            server.terminate()


if __name__ == "__main__":
    main()
