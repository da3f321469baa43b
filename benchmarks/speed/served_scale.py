"""Time of pages and of ask + tell on a server with many studies, many trials and many workers.

    python benchmarks/run.py served_scale --studies 1000 --trials 900 --large 100000 --workers 200

One private PostgreSQL in a temporary folder holds ``--studies`` studies of ``--trials`` trials and one
of ``--large`` trials; ``--url`` names another database, which keeps what it has. One `scrimp serve` is
before it. Three parts are measured, each over HTTP with one client:

- pages of studies that were never looked at, and again;
- the large study, page by page, over the pages and over ``GET /api/study``;
- the same pages while ``--workers`` threads ask and tell, one pair every ``--pace`` seconds on average
  each, in ``--busy`` of the studies, through ``POST /api/ask`` and ``/api/tell``.
"""

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import scrimp
from benchmarks.speed.dashboard_load import trial_events
from benchmarks.speed.served_ask_tell import cpu_seconds, free_port
from scrimp.storage.open import open_storage

LARGE = "large"
BATCH = 5000
TABLE_ROWS = 100
API_TRIALS = 1000


def fill(url: str, studies: int, trials: int, large: int) -> None:
    """Store the studies, those of ``--trials`` trials first."""
    space = scrimp.Space({f"x{place}": scrimp.Float(0, 1) for place in range(4)})
    storage, draw = open_storage(url), random.Random(0)
    known = set(storage.names())
    for name, count in [*((f"team/s{n}", trials) for n in range(studies)), (LARGE, large)]:
        if name in known:
            continue
        created = scrimp.create_study(name, space, method="random", storage="memory://", seed=0)
        store = storage.create(name, [created.history.created])
        for begin in range(0, count, BATCH):
            numbers = range(begin, min(begin + BATCH, count))
            store.append([event for number in numbers for event in trial_events(number, draw)])
    storage.close()


@contextmanager
def database(url: str | None) -> Iterator[str]:
    """Yield the address of a database; by default a private one, which is removed afterwards."""
    if url is not None:
        yield url
        return
    from tests.tools.postgres_server import PrivateServer

    with PrivateServer("fsync=on") as server:
        yield server.url()


class Client:
    """One connection with a token."""

    def __init__(self, port: int, token: str) -> None:
        self._line = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        self._headers = {"authorization": f"Bearer {token}"}

    def get(self, path: str) -> bytes:
        """Return a page; one that is not ready is asked for again."""
        while True:
            self._line.request("GET", path, headers=self._headers)
            answer = self._line.getresponse()
            body = answer.read()
            if answer.status == 200 and b"read for the first time" not in body:
                return body
            if answer.status not in (200, 202):
                raise RuntimeError(f"{path}: {answer.status} {body[:300]!r}")
            time.sleep(0.02)

    def post(self, name: str, **body: object) -> dict:
        """Call an operation; again, if the server has closed a connection that rested."""
        headers = {**self._headers, "idempotency-key": uuid.uuid4().hex}
        for _ in range(3):
            try:
                self._line.request("POST", f"/api/{name}", json.dumps(body), headers)
                return json.loads(self._line.getresponse().read())
            except (http.client.HTTPException, OSError):
                self._line.close()
        raise RuntimeError("the server closed three connections")


def milliseconds(client: Client, path: str) -> float:
    """Return the time of one answer."""
    began = time.perf_counter()
    client.get(path)
    return 1000 * (time.perf_counter() - began)


def paths(draw: random.Random, studies: int, large: int) -> dict[str, str]:
    """Return one address of each kind."""
    name = f"team/s{draw.randrange(studies)}"
    pages = max(large // TABLE_ROWS, 1)
    return {
        "list of studies": f"/?page={1 + draw.randrange(max(studies // 50, 1))}",
        "study": f"/study?name={name}",
        "table": f"/table?name={name}&page={1 + draw.randrange(9)}",
        "trial": f"/trial?study={name}&number={draw.randrange(100)}",
        "large study": f"/study?name={LARGE}",
        "large study, summary": f"/summary?name={LARGE}",
        "large study, table": f"/table?name={LARGE}&page={1 + draw.randrange(pages)}",
        "large study, table by a parameter": f"/table?name={LARGE}&sort=x0&page=3",
        "large study, filter": f"/table?name={LARGE}&text=x0%3C0.{draw.randrange(1, 10)}",
        "large study, /api/study": f"/api/study?study={LARGE}&start={draw.randrange(large)}",
    }


def show(title: str, found: dict[str, list[float]]) -> None:
    """Print median and largest time of each kind."""
    print(f"\n{title:40} {'median':>9} {'95 %':>9} {'longest':>9} {'answers':>8}")
    for kind, times in found.items():
        times.sort()
        late = times[int(0.95 * len(times))]
        print(
            f"{kind:40} {times[len(times) // 2]:6.0f} ms {late:6.0f} ms {times[-1]:6.0f} ms"
            f" {len(times):8}",
            flush=True,
        )


def rounds(client: Client, given: argparse.Namespace, draw: random.Random) -> dict:
    """Time some rounds of all kinds of pages."""
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(given.rounds):
        for kind, path in paths(draw, given.busy, given.large).items():
            found[kind].append(milliseconds(client, path))
    return found


def read_all(client: Client, large: int) -> None:
    """Read the large study in parts."""
    began, slowest, seen = time.perf_counter(), 0.0, 0
    for start in range(0, large, API_TRIALS):
        then = time.perf_counter()
        path = f"/api/study?study={LARGE}&start={start}&count={API_TRIALS}"
        seen += len(json.loads(client.get(path))["facts"]["trials"])
        slowest = max(slowest, time.perf_counter() - then)
    took = time.perf_counter() - began
    print(
        f"\n{seen} trials in parts of {API_TRIALS}: {took:.1f} s, the slowest {1000 * slowest:.0f} ms"
    )


def work(port: int, token: str, given: argparse.Namespace, over: threading.Event) -> list[float]:
    """Ask and tell from many threads until ``over``; return the milliseconds of each pair."""
    found: list[float] = []

    def one(number: int) -> None:
        draw, client = random.Random(number), Client(port, token)
        study = f"team/s{number % given.busy}"
        while not over.wait(draw.uniform(0, 2 * given.pace)):
            began = time.perf_counter()
            trial = client.post("ask", study=study)["trials"][0]
            client.post("tell", study=study, trial=trial["id"], value=draw.random())
            found.append(1000 * (time.perf_counter() - began))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(given.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def workers_main(given: argparse.Namespace) -> None:
    """Be the process with the workers, for ``--seconds``."""
    over = threading.Event()
    threading.Timer(given.seconds, over.set).start()
    print(json.dumps(work(given.port, os.environ["SCRIMP_TOKEN"], given, over)))


def under_load(client: Client, server: int, given: argparse.Namespace, port: int) -> None:
    """Time pages while the workers work."""
    words = [sys.executable, "-m", "benchmarks.speed.served_scale", "--port", str(port)]
    for name in ("workers", "busy", "pace", "seconds"):
        words += [f"--{name}", str(getattr(given, name))]
    used, draw, began = cpu_seconds(server), random.Random(2), time.monotonic()
    workers = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    found: dict[str, list[float]] = defaultdict(list)
    while time.monotonic() - began < given.seconds:
        for kind, path in paths(draw, given.busy, given.large).items():
            time.sleep(0.2)
            found[kind].append(milliseconds(client, path))
    pairs = sorted(json.loads(workers.communicate()[0]))
    used = cpu_seconds(server) - used
    show(f"pages with {given.workers} workers", found)
    print(
        f"{len(pairs)} pairs of ask + tell: median {pairs[len(pairs) // 2]:.1f} ms, 99th percentile"
        f" {pairs[int(0.99 * len(pairs))]:.1f} ms; {used:.1f} s of CPU time of the server in"
        f" {time.monotonic() - began:.0f} s"
    )


def main() -> None:
    """Fill the database, start the server, and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=900)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--busy", type=int, default=20)
    parser.add_argument("--pace", type=float, default=2.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--url")
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.port:
        workers_main(given)
        return
    with tempfile.TemporaryDirectory() as folder, database(given.url) as url:
        began = time.monotonic()
        fill(url, given.studies, given.trials, given.large)
        print(f"filled in {time.monotonic() - began:.0f} s", flush=True)
        file, port = Path(folder) / "tokens.json", free_port()
        scrimp_words = [sys.executable, "-m", "scrimp"]
        made = [*scrimp_words, "token", "new", "--role", "own", "--tokens", str(file)]
        token = subprocess.run(made, capture_output=True, text=True, check=True).stdout.strip()
        os.environ["SCRIMP_TOKEN"] = token
        words = ["serve", "--port", str(port), "--storage", url, "--tokens", str(file)]
        server = subprocess.Popen([*scrimp_words, *words], stdout=subprocess.DEVNULL)
        try:
            while True:
                try:
                    milliseconds(Client(port, token), "/static/style.css")
                    break
                except OSError:
                    time.sleep(0.2)
            client = Client(port, token)
            first = paths(random.Random(0), given.studies, given.large)
            show("first look", {k: [milliseconds(client, path)] for k, path in first.items()})
            rounds(client, given, random.Random(1))
            show("pages", rounds(client, given, random.Random(1)))
            read_all(client, given.large)
            under_load(client, server.pid, given, port)
            print(f"memory of the server: {_memory(server.pid):.0f} MB")
        finally:
            server.kill()
            server.wait()


def _memory(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
