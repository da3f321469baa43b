"""Train on a virtual clock under a scheduler of several objectives.

scrimp and, in their own environments, its peers run in this loop. A level of training costs one
unit. Peers receive training runs over a pipe from the process that holds them
(`compare_front_budgets`):

    first line in     {"space": [...], "names": [...], "levels": 50, "limit": 1000, "workers": 4}
    out, in, ...      {"config": {...}}, {"run": [[...], ...]}        losses of each level
    last line out     {"reports": [[spent, [...]], ...], "seconds": ..., "trials": ...}
"""

import argparse
import heapq
import json
import sys
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

Config = dict[str, Any]
Run = Sequence[Sequence[float]]
"""Losses of each level; a failed level has a NaN and is the last."""


class FrontScheduler(Protocol):
    """A study that minimises several objectives."""

    def start(self) -> tuple[Hashable, Config, int] | None:
        """Return the work of a free worker, or None.

        It is a handle, the configuration, and the number of levels already trained.
        """

    def report(self, handle: Any, level: int, losses: Sequence[float]) -> bool:
        """Take in the losses after a level; return True when the worker continues this run."""

    def fail(self, handle: Any) -> None:
        """Record that the run failed."""

    def end(self, handle: Any, goes_on: bool) -> None:
        """Record that the run has no further level; ``goes_on`` is the answer to its last report."""


class Workers:
    """Workers that run a study; ``reports`` has all losses with the levels spent until then."""

    def __init__(self, scheduler: FrontScheduler, run_of: Callable[[Config], Run]) -> None:
        self.scheduler, self.run_of = scheduler, run_of
        self.runs: dict[Hashable, Run] = {}
        self.reports: list[tuple[int, list[float]]] = []
        self.seconds = 0.0

    def timed(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a call of the scheduler and add its CPU seconds to the total."""
        began = time.process_time()
        result = call(*arguments)
        self.seconds += time.process_time() - began
        return result

    def play(self, limit: int, workers: int) -> None:
        """Train until ``limit`` levels are spent or nothing is left to do."""
        spent, clock, order = 0, 0, 0
        busy: list[tuple[int, int, Any, int]] = []
        while spent < limit:
            while len(busy) < workers and (chosen := self.timed(self.scheduler.start)) is not None:
                handle, config, done = chosen
                if handle not in self.runs:
                    self.runs[handle] = self.run_of(config)
                order += 1
                heapq.heappush(busy, (clock + 1, order, handle, done))
            if not busy:
                return
            clock, _, handle, done = heapq.heappop(busy)
            spent += 1
            if self._step(handle, done, spent):
                order += 1
                heapq.heappush(busy, (clock + 1, order, handle, done + 1))

    def _step(self, handle: Any, done: int, spent: int) -> bool:
        run = self.runs[handle]
        losses = [float(loss) for loss in run[done]]
        if any(loss != loss for loss in losses):
            self.timed(self.scheduler.fail, handle)
            return False
        self.reports.append((spent, losses))
        goes_on = bool(self.timed(self.scheduler.report, handle, done + 1, losses))
        if done + 1 < len(run):
            return goes_on
        self.timed(self.scheduler.end, handle, goes_on)
        return False


MakeScheduler = Callable[[Sequence[dict[str, Any]], Sequence[str], int, int], FrontScheduler]
"""A function from space, names of the losses, levels and seed to a scheduler."""


def main(make: MakeScheduler) -> None:
    """Run the command line of one peer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    out, sys.stdout = sys.__stdout__, sys.stderr  # some peers print

    def exchange(message: Any) -> Any:
        print(json.dumps(message), file=out, flush=True)
        return json.loads(sys.stdin.readline())

    task = json.loads(sys.stdin.readline())
    scheduler = make(task["space"], task["names"], task["levels"], seed)
    workers = Workers(scheduler, lambda config: exchange({"config": config})["run"])
    workers.play(task["limit"], task["workers"])
    end = {
        "reports": workers.reports,
        "seconds": workers.seconds,
        "trials": len(workers.runs),
    }
    print(json.dumps(end), file=out, flush=True)
