"""Run Syne Tune 0.13 on a table of training runs: MOBSTER, Hyper-Tune, DyHPO and ASHA.

    .venvs/syne-tune/bin/python benchmarks/run.py syne_tables TABLE.npz --method mobster-joint --task adult --out peers.jsonl

Four workers train rows of the table in a small simulator; the clock advances by the cost of each
level, as in `scrimp bench curves`. Syne Tune's tuner and backend are not used, so only the
scheduler is timed: CPU seconds of `suggest` and of every `on_trial_*` call, one thread. It searches
the same pool of configurations. Each run is one JSON object in the format of `scrimp bench curves`.
"""

import argparse
import heapq
import json
import logging
import os
import time
from datetime import datetime
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

logging.disable(logging.WARNING)  # before the import, which logs much

import numpy as np  # noqa: E402
from syne_tune.backend.trial_status import Trial  # noqa: E402
from syne_tune.config_space import choice, lograndint, loguniform, ordinal, randint, uniform  # noqa: E402
from syne_tune.optimizer.baselines import ASHA, MOBSTER, DyHPO, HyperTune  # noqa: E402

SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
MAKERS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "asha": (ASHA, {"type": "promotion"}, {}),
    "mobster-joint": (MOBSTER, {"type": "promotion"}, {"model": "gp_multitask"}),
    "mobster-indep": (MOBSTER, {"type": "promotion"}, {"model": "gp_independent"}),
    "hypertune-indep": (HyperTune, {"type": "promotion"}, {"model": "gp_independent"}),
    "hypertune-joint": (HyperTune, {"type": "promotion"}, {"model": "gp_multitask"}),
    "dyhpo": (DyHPO, {}, {}),
}


def domain(parameter: Any) -> Any:
    """Return the Syne Tune domain of one described parameter."""
    match parameter["type"]:
        case "float":
            return (loguniform if parameter["log"] else uniform)(
                parameter["low"], parameter["high"]
            )
        case "int":
            return (lograndint if parameter["log"] else randint)(
                parameter["low"], parameter["high"]
            )
        case "ordinal":
            return ordinal(parameter["choices"], kind="equal")
    return choice(parameter["choices"])


class Runs:
    """Rows of one task: configurations, and values and costs by level."""

    def __init__(self, path: Path, task: str) -> None:
        table = np.load(path, allow_pickle=False)
        meta = json.loads(str(table["meta"]))
        index = table["tasks"].tolist().index(task)
        self.space = meta["space"]
        raw = table["configs"][index] if table["configs"].ndim == 3 else table["configs"]
        self.configs = [self._config(row) for row in raw]
        self.value = table["value"][index].astype(float)
        if "elapsed" in table or "end" in table:
            raise SystemExit(
                "this comparison reads tables of unit cost and equal length, such as lcbench and taskset"
            )
        self.levels = self.value.shape[1]
        found = np.isfinite(self.value)
        lowest = np.where(found, self.value, np.inf).min(axis=1)
        self.best, self.median = float(lowest.min()), float(np.median(lowest[np.isfinite(lowest)]))
        self.row = {self.key(config): row for row, config in enumerate(self.configs)}

    def _config(self, row: Any) -> dict[str, Any]:
        config: dict[str, Any] = {}
        for parameter, value in zip(self.space, row, strict=True):
            if "choices" in parameter:
                config[parameter["name"]] = parameter["choices"][int(value)]
            else:
                config[parameter["name"]] = (
                    round(value) if parameter["type"] == "int" else float(value)
                )
        return config

    def key(self, config: dict[str, Any]) -> tuple[Any, ...]:
        """Return a key that tells configurations apart."""
        return tuple(config[parameter["name"]] for parameter in self.space)


class Simulation:
    """Workers on a virtual clock, one epoch at a time."""

    def __init__(
        self, runs: Runs, method: str, seed: int, workers: int, increment: int | None
    ) -> None:
        maker, settings, search = MAKERS[method]
        if method == "dyhpo" and increment is not None:
            settings = {**settings, "rung_increment": increment}
        space = {parameter["name"]: domain(parameter) for parameter in runs.space}
        options = {**search, "debug_log": False, "restrict_configurations": runs.configs}
        self.scheduler = maker(
            {**space, "epochs": runs.levels}, metric="value", mode="min", resource_attr="epoch",
            max_resource_attr="epochs", random_seed=seed, search_options=options, **settings
        )  # fmt: skip
        self.runs, self.workers = runs, workers
        self.trials: dict[int, tuple[Trial, int, int]] = {}  # trial, row, epochs done
        self.seconds, self.decisions, self.clock = 0.0, 0, 0.0

    def timed(self, call: Any, *arguments: Any) -> Any:
        """Return the result of a call of the scheduler and add its CPU seconds to the total."""
        began = time.process_time()
        result = call(*arguments)
        self.seconds += time.process_time() - began
        return result

    def start(self) -> int | None:
        """Return the trial that a free worker takes up; None when the scheduler has none."""
        suggestion = self.timed(self.scheduler.suggest, len(self.trials))
        if suggestion is None:
            return None
        self.decisions += 1
        if suggestion.spawn_new_trial_id:
            number = len(self.trials)
            trial = Trial(number, suggestion.config, datetime(2024, 1, 1))
            self.trials[number] = (trial, self.runs.row[self.runs.key(suggestion.config)], 0)
            self.timed(self.scheduler.on_trial_add, trial)
            return number
        number = int(suggestion.checkpoint_trial_id)
        if suggestion.config is not None:
            old = self.trials[number]
            self.trials[number] = (
                Trial(number, suggestion.config, old[0].creation_time),
                old[1],
                old[2],
            )
        return number

    def step(self, number: int) -> tuple[float | None, bool]:
        """Train a trial for one epoch; return its value, and True when it continues."""
        trial, row, done = self.trials[number]
        value = float(self.runs.value[row, done])
        self.trials[number] = (trial, row, done + 1)
        if not np.isfinite(value):
            self.timed(self.scheduler.on_trial_error, trial)
            return None, False
        result = {"value": value, "epoch": done + 1, "elapsed_time": self.clock}
        answer = self.timed(self.scheduler.on_trial_result, trial, result)
        if done + 1 == self.runs.levels:
            self.timed(self.scheduler.on_trial_complete, trial, result)
            return value, False
        if answer != "CONTINUE":
            self.timed(self.scheduler.on_trial_remove, trial)
        return value, answer == "CONTINUE"

    def run(self, limit: float) -> list[list[float]]:
        """Return improvements as [spent, regret] until the clock reaches ``limit``."""
        trace: list[list[float]] = []
        busy: list[tuple[float, int]] = []
        while True:
            while len(busy) < self.workers:
                number = self.start()
                if number is None:
                    break
                heapq.heappush(busy, (self.clock + 1.0, number))
            if not busy or busy[0][0] > limit + 1e-9:
                return trace
            self.clock, number = heapq.heappop(busy)
            value, goes_on = self.step(number)
            if value is not None:
                regret = (value - self.runs.best) / (self.runs.median - self.runs.best)
                if not trace or regret < trace[-1][1]:
                    trace.append([self.clock / limit, regret])
            if goes_on:
                heapq.heappush(busy, (self.clock + 1.0, number))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--method", choices=sorted(MAKERS), required=True)
    parser.add_argument("--task", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fulls", type=int, default=20)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument(
        "--increment", type=int, default=None, help="of DyHPO's rungs; 2 by its own default"
    )
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    runs = Runs(given.table, given.task)
    simulation = Simulation(runs, given.method, given.seed, given.workers, given.increment)
    trace = simulation.run(given.fulls * runs.levels / given.workers)
    at = [
        next((r for spent, r in reversed(trace) if spent <= share + 1e-9), 1.0) for share in SHARES
    ]
    record = {
        "suite": "curves", "table": given.table.stem, "task": given.task, "method": f"syne-tune:{given.method}",
        "seed": given.seed, "size": given.fulls, "workers": given.workers,
        "decision_seconds": simulation.seconds, "decisions": simulation.decisions,
        "trials": len(simulation.trials), "spent": list(SHARES), "regret": at, "trace": trace,
    }  # fmt: skip
    with given.out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
