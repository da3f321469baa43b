"""What every peer is put through on training runs: workers on a virtual clock, inside the peer's
own environment.

The peer's process knows its optimizer alone. Runs come from the process that started it, which
holds the surrogate: a line with a configuration goes out, a line with the values of its whole run
comes back (`compare_surrogate.py` is the other end).

    first line in     {"space": [...], "levels": 50, "limit": 250, "workers": 4}
    out, in, ...      {"config": {...}}, {"values": [...]}
    last line out     {"trace": [[clock, value], ...], "seconds": ..., "decisions": ...}

With ``--live`` it answers to somebody who trains for real instead, without a clock (`serve`).

One level costs one unit of the clock. ``seconds`` are the CPU seconds of the peer's own calls. A
peer is a class with the methods of `CurvePeer`; `main` drives it.
"""

import argparse
import heapq
import json
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

Config = dict[str, Any]
Slice = tuple[Any, Config, int]


class CurvePeer(Protocol):
    """One study of a peer's optimizer, minimising."""

    def start(self) -> Slice | None:
        """What a free worker does: the peer's handle, the configuration, the levels it has behind
        it; None for nothing."""

    def report(self, handle: Any, level: int, value: float) -> bool:
        """Take the value after a level in; whether the worker goes on with this run."""


MakeCurvePeer = Callable[[str, list[Any], int, int], CurvePeer]
"""Method, space, levels and seed to a peer."""


def answer_to(message: Any) -> Any:
    """One line out, one line in."""
    print(json.dumps(message), flush=True)
    return json.loads(sys.stdin.readline())


class Workers:
    """Runs on a virtual clock, one level at a time; calls of the peer are timed."""

    def __init__(self, make: Callable[[], CurvePeer], levels: int) -> None:
        self.seconds, self.decisions = 0.0, 0
        self.peer, self.levels = self.timed(make), levels
        self.curves: dict[str, list[float]] = {}

    def timed(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a call whose CPU seconds are added up."""
        began = time.process_time()
        result = call(*arguments)
        self.seconds += time.process_time() - began
        return result

    def curve(self, config: Config) -> list[float]:
        """The values of the run of ``config``."""
        key = json.dumps(config, sort_keys=True)
        if key not in self.curves:
            self.curves[key] = answer_to({"config": config})["values"]
        return self.curves[key]

    def run(self, limit: float, workers: int) -> list[tuple[float, float]]:
        """(clock, value) of every report that is better than all before."""
        clock, trace = 0.0, []
        busy: list[tuple[float, int, Any, list[float], int]] = []
        while True:
            while len(busy) < workers:
                chosen = self.timed(self.peer.start)
                if chosen is None:
                    break
                self.decisions += 1
                handle, config, done = chosen
                heapq.heappush(
                    busy, (clock + 1.0, self.decisions, handle, self.curve(config), done)
                )
            if not busy or busy[0][0] > limit + 1e-9:
                return trace
            clock, order, handle, values, done = heapq.heappop(busy)
            if not trace or values[done] < trace[-1][1]:
                trace.append((clock, values[done]))
            goes_on = self.timed(self.peer.report, handle, done + 1, values[done])
            if goes_on and done + 1 < self.levels:
                heapq.heappush(busy, (clock + 1.0, order, handle, values, done + 1))


def serve(peer: CurvePeer) -> None:
    """Answer line by line: what a free worker does, and whether a run goes on (`real_training.py`
    is the other end)."""
    handles: list[Any] = []
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if "report" in message:
            number, level, value = message["report"]
            answer: dict[str, Any] = {"goes_on": peer.report(handles[number], level, value)}
        else:
            chosen = peer.start()
            answer = {"handle": None}
            if chosen is not None:
                handle, config, done = chosen
                if handle not in handles:
                    handles.append(handle)
                answer = {"handle": handles.index(handle), "config": config, "done": done}
        print(json.dumps(answer), flush=True)


def main(make: MakeCurvePeer, methods: list[str]) -> None:
    """The command line of one peer."""
    parser = argparse.ArgumentParser(
        description="One peer on training runs that another process holds."
    )
    parser.add_argument("--method", choices=methods, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--live", action="store_true", help="answer to somebody who trains, one line at a time"
    )
    given = parser.parse_args()
    task = json.loads(sys.stdin.readline())
    if given.live:
        serve(make(given.method, task["space"], task["levels"], given.seed))
        return
    workers = Workers(
        lambda: make(given.method, task["space"], task["levels"], given.seed), task["levels"]
    )
    trace = workers.run(task["limit"], task["workers"])
    print(
        json.dumps({"trace": trace, "seconds": workers.seconds, "decisions": workers.decisions}),
        flush=True,
    )
