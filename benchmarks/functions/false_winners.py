"""Measure how often a verdict names a false winner, and the runs that it needs, on real noise.

NAS-Bench-201 has many pairs of architectures that are the same network, trained separately: they
show what a second training gives. Each network with two trainings or more is a configuration here.
Its true value is their mean, and a run adds a residual of a network of similar value.

A study tries some configurations once each; `study.verdict(confirm=...)` then decides which runs to
repeat. It is compared with the habit of running the three best and the default with five seeds each
and trusting the lowest mean.
"""

import argparse
import json
import logging
from collections import defaultdict
from pathlib import Path

import numpy as np

import scrimp
from scrimp.json_values import Config

NEAR = 100
"""Residuals of the networks closest in value that a run is drawn from."""


def network(operations: tuple[str, ...]) -> str:
    """Return the network of a cell: the same text for cells that are the same network."""
    edges = {1: ((0, 0),), 2: ((1, 0), (2, 1)), 3: ((3, 0), (4, 1), (5, 2))}
    nodes = {0: "0"}
    for node, incoming in edges.items():
        parts = []
        for place, source in incoming:
            operation = operations[place]
            if operation == "none" or not nodes[source]:
                continue
            through = nodes[source]
            parts.append(through if operation == "skip_connect" else f"({through})@{operation}")
        nodes[node] = "+".join(sorted(parts))
    return nodes[3]


class Trainings:
    """Networks that were trained at least twice, with their mean errors and residuals."""

    def __init__(self, table: Path, task: int) -> None:
        data = np.load(table)
        meta = json.loads(str(data["meta"]))
        names = [parameter["name"] for parameter in meta["space"]]
        choices = meta["space"][0]["choices"]
        values = data["value"][task, :, 0].astype(float)
        same: dict[str, list[int]] = defaultdict(list)
        cells = [tuple(choices[int(place)] for place in row) for row in data["configs"]]
        for row, cell in enumerate(cells):
            same[network(cell)].append(row)
        groups = [rows for rows in same.values() if len(rows) > 1]
        self.task = str(data["tasks"][task])
        self.mean = np.array([values[rows].mean() for rows in groups])
        self.configs = [dict(zip(names, cells[rows[0]], strict=True)) for rows in groups]
        space = scrimp.Space(**{name: scrimp.Categorical(choices) for name in names})
        self.space = scrimp.Pool(space, self.configs)
        self.place = {self.space.key(config): k for k, config in enumerate(self.configs)}
        owner = np.repeat(np.arange(len(groups)), [len(rows) for rows in groups])
        size = np.array([len(groups[k]) for k in owner])
        residual = values[np.concatenate(groups)] - self.mean[owner]
        self._residual = residual * np.sqrt(size / (size - 1))
        self._of = self.mean[owner]
        self._order = np.argsort(self._of)

    def true(self, config: Config) -> float:
        """Return the mean error of a network."""
        return float(self.mean[self.place[self.space.key(config)]])

    def run(self, config: Config, rng: np.random.Generator) -> float:
        """Return the error of one more training."""
        mean = self.true(config)
        middle = int(np.searchsorted(self._of[self._order], mean))
        low = min(max(middle - NEAR // 2, 0), len(self._order) - NEAR)
        return mean + float(self._residual[self._order[low + int(rng.integers(NEAR))]])


def play(trainings: Trainings, method: str, trials: int, runs: int, seed: int) -> dict[str, object]:
    """Return the outcome of one study: by verdict, and by five seeds each."""
    rng = np.random.default_rng([seed, 1])
    study = scrimp.create_study(
        "s", trainings.space, method=method, storage="memory://", seed=seed, noisy=False
    )
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, trainings.run(trial.params, rng))
    first = sorted(study.trials, key=lambda trial: trial.value)[:3]
    compared = {trial.id: trial for trial in [*first, study.trials[0]]}
    means = {
        number: np.mean([trainings.run(trial.config, rng) for _ in range(5)])
        for number, trial in compared.items()
    }
    truths = {number: trainings.true(trial.config) for number, trial in compared.items()}
    chosen = min(means, key=lambda number: means[number])
    before = study.verdict()
    verdict = study.verdict(confirm=lambda params, _: trainings.run(params, rng), runs=runs)
    best = trainings.true(verdict.best.params)
    false = any(trainings.true(rival.params) < best for rival in verdict.rivals)
    everything = [trainings.true(trial.config) for trial in study.trials]
    return {
        "task": trainings.task,
        "method": method,
        "seed": seed,
        "stated_before": before.probability_better,
        "true_before": trainings.true(before.best.params) < trainings.true(before.runner_up.params),
        "noise": verdict.noise,
        "stated": verdict.probability_better,
        "settled": verdict.settled,
        "false": verdict.settled and false,
        "runs": verdict.confirmed,
        "loss": best - min(everything),
        "five_runs": 5 * len(means),
        "five_false": truths[chosen] > min(truths.values()),
        "five_loss": truths[chosen] - min(everything),
    }


def main() -> None:
    """Play all studies and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path, help="nasbench201_final.npz")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--method", default="random")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    for task in (0, 1):
        trainings = Trainings(options.table, task)
        found = []
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            found.append(play(trainings, options.method, options.trials, options.runs, seed))
            if options.out is not None:
                with options.out.open("a") as file:
                    file.write(json.dumps(found[-1]) + "\n")

        def rate(name: str, among: list[dict[str, object]] = found) -> float:
            return float(np.mean([float(str(float(row[name]))) for row in among] or [np.nan]))

        settled = [row for row in found if row["settled"]]
        print(
            f"{trainings.task}: settled {rate('settled'):.2f}, false winners {rate('false'):.3f} of"
            f" all and {rate('false', settled):.3f} of settled, runs {rate('runs'):.1f}, loss"
            f" {rate('loss'):.3f}; five seeds each: false {rate('five_false'):.3f}, runs"
            f" {rate('five_runs'):.1f}, loss {rate('five_loss'):.3f}; before: stated"
            f" {rate('stated_before'):.2f}, true {rate('true_before'):.2f}"
        )


if __name__ == "__main__":
    main()
