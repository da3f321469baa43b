"""Optuna studies with conditions, imported and continued, beside Optuna itself and a fresh start.

    python benchmarks/run.py continue_optuna [--seeds 10] [--past 30] [--more 15]

Each of six problems is tuned by Optuna (TPE) for some trials in a database of its own. From there
three continue with the same number of further trials: scrimp on the imported study, whose conditions
are inferred by the import; Optuna itself; and scrimp from nothing, with the space as its author would
write it. The objectives have no noise. Printed are the mean best values, the number of seeds in
which the best value improved on that of the past, and the pairwise wins.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna

import scrimp
from scrimp.formats.imports import read_results, store_results
from scrimp.formats.result_folders import ImportSettings
from scrimp.storage.memory import MemoryStorage

Params = Mapping[str, Any]


class Problem(NamedTuple):
    """A space with conditions, as its author would write it, and a value to minimize."""

    space: scrimp.Space
    value: Callable[[Params], float]


def optimizer(p: Params) -> float:
    momentum = 2.0 * (p["momentum"] - 0.9) ** 2 - 0.3 if p["opt"] == "sgd" else 0.0
    best = 1e-2 if p["opt"] == "sgd" else 1e-3
    return 0.5 * math.log10(p["lr"] / best) ** 2 + 0.1 * (math.log2(p["width"]) - 6) ** 2 + momentum


def layers(p: Params) -> float:
    units = [p[f"units_{place}"] for place in range(p["layers"])]
    wanted = (256, 128, 64, 32)
    off = sum(
        (math.log2(own) - math.log2(best)) ** 2 for own, best in zip(units, wanted, strict=False)
    )
    return 0.1 * off + 0.4 * abs(p["layers"] - 3) + 0.5 * (p["dropout"] - 0.2) ** 2


def nested(p: Params) -> float:
    if p["model"] == "linear":
        return 1.0 + 0.2 * math.log10(p["penalty"] / 0.1) ** 2
    if p["booster"] == "tree":
        return 0.05 * (p["depth"] - 6) ** 2 + 0.4 * math.log10(p["eta"] / 0.05) ** 2
    return 0.4 + 0.4 * math.log10(p["eta"] / 0.3) ** 2


def two_functions(p: Params) -> float:
    if p["which"] == "bowl":
        return 0.6 + 0.02 * ((p["u"] - 2) ** 2 + (p["v"] + 1) ** 2)
    x, y = p["x"], p["y"]
    branin = (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2
    return (branin + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10) / 10


@cache
def digits() -> tuple[np.ndarray, ...]:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    x, y = load_digits(return_X_y=True)
    return tuple(train_test_split(x / 16.0, y, train_size=500, random_state=0, stratify=y))


def error_of(model: Any) -> float:
    x, other_x, y, other_y = digits()
    return 1.0 - float(model.fit(x, y).score(other_x, other_y))


def svm(p: Params) -> float:
    from sklearn.svm import SVC

    gamma = p.get("gamma", "scale")
    return error_of(SVC(kernel=p["kernel"], C=p["C"], gamma=gamma, degree=p.get("degree", 3)))


def classifier(p: Params) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    if p["model"] == "neighbours":
        return error_of(KNeighborsClassifier(p["k"], weights=p["weights"], p=p["power"]))
    if p["model"] == "tree":
        leaf = p["min_leaf"]
        return error_of(
            DecisionTreeClassifier(max_depth=p["depth"], min_samples_leaf=leaf, random_state=0)
        )
    return error_of(LogisticRegression(C=p["C"], max_iter=200))


PROBLEMS: dict[str, Problem] = {
    "optimizer": Problem(
        scrimp.Space(
            lr=scrimp.Float(1e-5, 1e-1, log=True),
            width=scrimp.Int(8, 512, log=True),
            opt=scrimp.Categorical(["adam", "sgd"]),
            momentum=scrimp.Float(0.0, 0.99, when={"opt": "sgd"}),
        ),
        optimizer,
    ),
    "layers": Problem(
        scrimp.Space(
            dropout=scrimp.Float(0.0, 0.7),
            layers=scrimp.Int(1, 4),
            units_0=scrimp.Int(8, 512, log=True),
            **{
                f"units_{place}": scrimp.Int(
                    8, 512, log=True, when={"layers": list(range(place + 1, 5))}
                )
                for place in (1, 2, 3)
            },
        ),
        layers,
    ),
    "nested": Problem(
        scrimp.Space(
            model=scrimp.Categorical(["linear", "boosting"]),
            penalty=scrimp.Float(1e-4, 1e2, log=True, when={"model": "linear"}),
            booster=scrimp.Categorical(["tree", "line"], when={"model": "boosting"}),
            depth=scrimp.Int(1, 12, when={"booster": "tree"}),
            eta=scrimp.Float(1e-3, 1.0, log=True, when={"model": "boosting"}),
        ),
        nested,
    ),
    "two functions": Problem(
        scrimp.Space(
            which=scrimp.Categorical(["bowl", "branin"]),
            u=scrimp.Float(-5.0, 5.0, when={"which": "bowl"}),
            v=scrimp.Float(-5.0, 5.0, when={"which": "bowl"}),
            x=scrimp.Float(-5.0, 10.0, when={"which": "branin"}),
            y=scrimp.Float(0.0, 15.0, when={"which": "branin"}),
        ),
        two_functions,
    ),
    "svm on digits": Problem(
        scrimp.Space(
            kernel=scrimp.Categorical(["linear", "rbf", "poly"]),
            C=scrimp.Float(1e-3, 1e3, log=True),
            gamma=scrimp.Float(1e-5, 1e1, log=True, when={"kernel": ["rbf", "poly"]}),
            degree=scrimp.Int(2, 5, when={"kernel": "poly"}),
        ),
        svm,
    ),
    "classifier on digits": Problem(
        scrimp.Space(
            model=scrimp.Categorical(["neighbours", "tree", "logistic"]),
            k=scrimp.Int(1, 30, when={"model": "neighbours"}),
            weights=scrimp.Categorical(["uniform", "distance"], when={"model": "neighbours"}),
            power=scrimp.Int(1, 4, when={"model": "neighbours"}),
            depth=scrimp.Int(1, 20, when={"model": "tree"}),
            min_leaf=scrimp.Int(1, 20, when={"model": "tree"}),
            C=scrimp.Float(1e-4, 1e3, log=True, when={"model": "logistic"}),
        ),
        classifier,
    ),
}


def suggested(problem: Problem, trial: optuna.Trial) -> float:
    """Evaluate a trial of Optuna, which meets the conditions in the code of its objective."""
    params: dict[str, Any] = {}
    for name, parameter in problem.space.items():
        if not problem.space.conditions.exists(name, params):
            continue
        match parameter:
            case scrimp.Categorical():
                params[name] = trial.suggest_categorical(name, list(parameter.choices))
            case scrimp.Int():
                params[name] = trial.suggest_int(
                    name, parameter.low, parameter.high, log=parameter.log
                )
            case scrimp.Float():
                params[name] = trial.suggest_float(
                    name, parameter.low, parameter.high, log=parameter.log
                )
    return problem.value(params)


def continued(problem: Problem, past: int, more: int, seed: int) -> dict[str, float]:
    """Return the best value of the past and of each continuation."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "optuna.db"
        sampler = optuna.samplers.TPESampler(seed=seed)
        study = optuna.create_study(study_name="s", storage=f"sqlite:///{path}", sampler=sampler)
        objective = partial(suggested, problem)
        study.optimize(objective, n_trials=past)
        (found,) = read_results(path, ImportSettings())
        before = study.best_value
        study.optimize(objective, n_trials=more)
    # An import stores no seed, so a new study with the same trials gets one.
    storage = MemoryStorage()
    store_results(storage, "s", found, time.time())
    imported = scrimp.create_study("s", found.problem.space, storage=storage, load_if_exists=True)
    imported.optimize(lambda trial: problem.value(trial.params), n_trials=past + more)
    fresh = scrimp.create_study("fresh", problem.space, storage=storage, seed=seed)
    fresh.optimize(lambda trial: problem.value(trial.params), n_trials=more)
    return {
        "past": before,
        "scrimp, imported": imported.best_value,
        "Optuna": study.best_value,
        "scrimp, fresh": fresh.best_value,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--past", type=int, default=30)
    parser.add_argument("--more", type=int, default=15)
    chosen = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print(
        "| study | past | scrimp, imported | Optuna | scrimp, fresh | improved | against Optuna | against fresh |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, problem in PROBLEMS.items():
        rows = [continued(problem, chosen.past, chosen.more, seed) for seed in range(chosen.seeds)]
        means = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        ours, theirs, fresh = "scrimp, imported", "Optuna", "scrimp, fresh"

        def won(first: str, second: str, rows: list[dict[str, float]] = rows) -> str:
            better = sum(row[first] < row[second] for row in rows)
            return f"{better} : {sum(row[first] > row[second] for row in rows)}"

        improved = f"{sum(row[ours] < row['past'] for row in rows)} / {sum(row[theirs] < row['past'] for row in rows)}"
        cells = [name, *(f"{mean:.4f}" for mean in means.values()), improved]
        print("| " + " | ".join([*cells, won(ours, theirs), won(ours, fresh)]) + " |", flush=True)


if __name__ == "__main__":
    main()
