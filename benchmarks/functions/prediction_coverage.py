"""Measure how often the intervals of `study.predict` hold the true value, on formulas and tables.

    python benchmarks/run.py prediction_coverage --seeds 5
    python benchmarks/run.py prediction_coverage --seeds 2 --curves lcbench.npz cnn_cifar10.npz --finals xgboost.npz

*Formulas and tables of final values*: `gp`, 40 trials by ask and tell. "next": each configuration
that the method chose after its first ten, predicted just before its value was told. "anywhere": 200
configurations drawn at random, after all trials. *Tables of learning curves*: `mobster-joint`,
`hypertune-indep`, `dyhpo` and `freeze-thaw` on four simulated workers, 15 full trainings. "begun":
trials that ended early, at the full budget. "anywhere": 200 rows of the table that were never tried,
at the full budget. For freeze-thaw the true value is the lowest of the curve, which it predicts.

The intervals are `Predictions.interval(0.5)` and `interval(0.9)`, so noise counts. Ideal shares are
0.50 and 0.90; "better half" counts the configurations whose true value is below the median of its
row. The last column is the mean absolute error of the mean by the standard deviation of the true
values: how much the model knows at all.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

import scrimp
from scrimp.bench.formulas import FORMULAS
from scrimp.bench.tables import TaskTable, described_space, read_table
from scrimp.json_values import Config
from scrimp.study.predict import Predictions

SHARES = (0.5, 0.9)
CURVE_METHODS = ("mobster-joint", "hypertune-indep", "dyhpo", "freeze-thaw")
Result = tuple[str, Predictions, np.ndarray]
"""The row of the table, predictions, and true values (k,)."""


def finals(
    label: str, space: scrimp.Space, value_of, drawn: list[Config], seed: int
) -> Iterator[Result]:
    """Tune by ask and tell; yield predictions of chosen and of drawn configurations."""
    study = scrimp.create_study("s", space, method="gp", storage="memory://", seed=seed)
    for number in range(40):
        trial = study.ask()
        value = value_of(trial.params)
        if number >= 10 and np.isfinite(value):
            yield f"{label} | gp | next", study.predict(trial.params), np.array([value])
        if np.isfinite(value):
            study.tell(trial, value)
        else:
            study.tell(trial, state="failed")
    truth = np.array([value_of(config) for config in drawn])
    known = np.isfinite(truth)
    chosen = [config for config, good in zip(drawn, known, strict=True) if good]
    yield f"{label} | gp | anywhere", study.predict(chosen), truth[known]


def curves(path: str, task: TaskTable, label: str, method: str, seed: int) -> Iterator[Result]:
    """Simulate a study; yield predictions of begun and of untried configurations."""
    study = scrimp.simulate(path, method, task=task.name, workers=4, fulls=15, seed=seed)
    truth = np.nanmin(task.value, axis=1) if method == "freeze-thaw" else task.final
    truth = np.where(np.isfinite(task.final), truth, np.nan)
    place_of = {task.pool.key(config): place for place, config in enumerate(task.pool.configs)}
    tried = {place_of[task.pool.key(trial.params)]: trial for trial in study.trials}
    full = study.budget.maximum if study.budget else 1.0
    begun = [p for p, t in tried.items() if 0 < t.budget < full and np.isfinite(truth[p])]
    rng = np.random.default_rng(seed)
    untried = [p for p in range(len(truth)) if p not in tried and np.isfinite(truth[p])]
    anywhere = rng.permutation(untried)[:200].tolist()
    for kind, places in (("begun", begun), ("anywhere", anywhere)):
        if places:
            found = study.predict([task.pool.configs[place] for place in places])
            yield f"{label} | {method} | {kind}", found, truth[places]


def played(arguments: argparse.Namespace) -> Iterator[Result]:
    """All runs that were asked for."""
    for seed in range(arguments.seeds):
        for name in arguments.formulas:
            formula, noise = FORMULAS[name], np.random.default_rng(2000 + seed)
            space = described_space(list(formula.space))
            drawn = space.sample(200, np.random.default_rng(1000 + seed))

            def measured(config: Config, formula=formula, noise=noise) -> float:
                return formula.evaluate(config) + formula.noise * float(noise.standard_normal())

            yield from finals(name, space, measured, drawn, seed)
        for path in arguments.finals:
            table = read_table(path)
            for task in map(table.task, table.tasks[: arguments.tasks]):
                values = {
                    task.pool.key(c): v for c, v in zip(task.pool.configs, task.final, strict=True)
                }
                rng = np.random.default_rng(1000 + seed)
                drawn = [task.pool.configs[p] for p in rng.permutation(len(values))[:200]]
                value_of = lambda config, values=values, pool=task.pool: values[pool.key(config)]  # noqa: E731
                yield from finals(table.name, task.pool, value_of, drawn, seed)
        for path in arguments.curves:
            table = read_table(path)
            for task in map(table.task, table.tasks[: arguments.tasks]):
                for method in CURVE_METHODS:
                    yield from curves(path, task, table.name, method, seed)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--formulas", nargs="*", default=["branin", "hartmann6", "mixed"])
    parser.add_argument("--finals", nargs="*", default=[], metavar="TABLE.npz")
    parser.add_argument("--curves", nargs="*", default=[], metavar="TABLE.npz")
    parser.add_argument("--tasks", type=int, default=3, help="tasks of each table at most")
    rows: dict[str, list[np.ndarray]] = defaultdict(list)
    for label, found, truth in played(parser.parse_args()):
        held = []
        for share in SHARES:
            low, high = found.interval(share)
            held.append((low[:, 0] <= truth) & (truth <= high[:, 0]))
        rows[label].append(np.stack([*held, np.abs(found.mean[:, 0] - truth), truth], axis=1))
    print(
        "| problem | method | configurations | predicted | in 50 % | in 90 % | better half |"
        " error / spread |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for label, parts in rows.items():
        all_of = np.concatenate(parts)
        within, error, truth = all_of[:, :2].mean(axis=0), all_of[:, 2].mean(), all_of[:, 3]
        better = all_of[truth <= np.median(truth), 1].mean()
        print(
            f"| {label} | {len(all_of)} | {within[0]:.2f} | {within[1]:.2f} | {better:.2f} |"
            f" {error / truth.std():.2f} |"
        )


if __name__ == "__main__":
    main()
