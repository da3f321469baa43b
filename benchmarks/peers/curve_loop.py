"""Drive a peer on training runs: workers on a virtual clock, in the peer's own environment.

The process of the peer has the optimizer only. Training runs come from the process that started it
and holds the surrogate (`compare_surrogate`): this side sends a line with a configuration and
receives a line with the values of its whole run.

    first line in     {"space": [...], "levels": 50, "limit": 250, "workers": 4}
    out, in, ...      {"config": {...}}, {"values": [...]}
    last line out     {"trace": [[clock, value], ...], "seconds": ..., "decisions": ...}

With ``--live`` it has no clock and serves a process that trains models (`serve`).

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
    """A study of a peer's optimizer, which minimises."""

    def start(self) -> Slice | None:
        """Return the work of a free worker, or None.

        It is the peer's handle, the configuration, and the number of levels already trained.
        """

    def report(self, handle: Any, level: int, value: float) -> bool:
        """Take in the value after a level; return True when the worker continues this run."""


MakeCurvePeer = Callable[[str, list[Any], int, int], CurvePeer]
"""A function from method, space, levels and seed to a peer."""


def answer_to(message: Any) -> Any:
    """Write one line and read one line."""
    print(json.dumps(message), flush=True)
    return json.loads(sys.stdin.readline())


class Workers:
    """Workers that train on a virtual clock, one level at a time; calls of the peer are timed."""

    def __init__(self, make: Callable[[], CurvePeer], levels: int) -> None:
        self.seconds, self.decisions = 0.0, 0
        self.peer, self.levels = self.timed(make), levels
        self.curves: dict[str, list[float]] = {}

    def timed(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a call and add its CPU seconds to the total."""
        began = time.process_time()
        result = call(*arguments)
        self.seconds += time.process_time() - began
        return result

    def curve(self, config: Config) -> list[float]:
        """Return the values of the run of ``config``."""
        key = json.dumps(config, sort_keys=True)
        if key not in self.curves:
            self.curves[key] = answer_to({"config": config})["values"]
        return self.curves[key]

    def run(self, limit: float, workers: int) -> list[tuple[float, float]]:
        """Return (clock, value) of every report that is better than all before."""
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
    """Answer requests line by line: work for a free worker, and whether a run continues.

    `real_training` is the other end.
    """
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
    """Run the command line of one peer."""
    parser = argparse.ArgumentParser(
        description="One peer on training runs that another process holds."
    )
    parser.add_argument("--method", choices=methods, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--live", action="store_true", help="serve a process that trains models, one line at a time"
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
