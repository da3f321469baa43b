"""ScrimpSearchCV beside the searches that scikit-learn users have, with the same number of fits.

    python benchmarks/search_cv.py OUT.jsonl [SEEDS]      # goes on where it was
    python benchmarks/search_cv.py OUT.jsonl --table      # ranks and times of what is there

Five data sets of scikit-learn, each with an estimator and a space; 20 evaluations of three folds
per search. Halving spends them on 13 candidates with a ninth of the rows, five with a third, two
with all. The score of a search is the mean over the folds of the parameters it returns, on all
rows and for everyone the same folds, which the searches used as well. Needs scikit-learn, optuna,
optuna-integration and pandas.
"""

import json
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.stats import loguniform, randint, rankdata, uniform
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
)
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingRegressor
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import KFold, RandomizedSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

FITS = 20
METHODS = ("ScrimpSearchCV", "RandomizedSearchCV", "HalvingRandomSearchCV", "OptunaSearchCV")


def problems():
    """Name -> data, estimator, space."""
    scale = StandardScaler
    svc = {"svc__C": loguniform(1e-2, 1e3), "svc__gamma": loguniform(1e-5, 1e1)}
    sgd = SGDClassifier(random_state=0, max_iter=30, tol=None, learning_rate="adaptive")
    digits, labels = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(digits))[:600]
    return {
        "iris": (
            *load_iris(return_X_y=True),
            make_pipeline(scale(), sgd),
            {
                "sgdclassifier__alpha": loguniform(1e-6, 1e0),
                "sgdclassifier__eta0": loguniform(1e-4, 1e1),
                "sgdclassifier__penalty": ["l2", "l1", "elasticnet"],
                "sgdclassifier__loss": ["hinge", "log_loss", "modified_huber"],
            },
        ),
        "wine": (
            *load_wine(return_X_y=True),
            ExtraTreesClassifier(n_estimators=15, random_state=0),
            {
                "max_features": uniform(0.05, 0.95),
                "min_samples_leaf": randint(1, 20),
                "max_depth": randint(1, 12),
                "ccp_alpha": loguniform(1e-4, 1e-1),
            },
        ),
        "breast_cancer": (*load_breast_cancer(return_X_y=True), make_pipeline(scale(), SVC()), svc),
        "digits": (digits[rows], labels[rows], make_pipeline(scale(), SVC()), svc),
        "diabetes": (
            *load_diabetes(return_X_y=True),
            GradientBoostingRegressor(n_estimators=30, random_state=0),
            {
                "learning_rate": loguniform(1e-2, 1e0),
                "max_depth": randint(1, 7),
                "subsample": uniform(0.3, 0.7),
                "min_samples_leaf": randint(1, 40),
                "max_features": uniform(0.1, 0.9),
            },
        ),
    }


def search(method, estimator, space, folds, seed):
    """The search object, with the same number of fits whoever it is."""
    if method == "ScrimpSearchCV":
        from scrimp.integrations.sklearn import ScrimpSearchCV

        return ScrimpSearchCV(estimator, space, n_trials=FITS, cv=folds, seed=seed, refit=True)
    if method == "RandomizedSearchCV":
        return RandomizedSearchCV(estimator, space, n_iter=FITS, cv=folds, random_state=seed)
    if method == "HalvingRandomSearchCV":
        from sklearn.experimental import enable_halving_search_cv  # noqa: F401
        from sklearn.model_selection import HalvingRandomSearchCV

        return HalvingRandomSearchCV(
            estimator,
            space,
            n_candidates=13,
            factor=3,
            min_resources="exhaust",
            cv=folds,
            random_state=seed,
        )
    from optuna.logging import ERROR, set_verbosity
    from optuna_integration import OptunaSearchCV

    set_verbosity(ERROR)
    given = {name: as_optuna(value) for name, value in space.items()}
    return OptunaSearchCV(estimator, given, n_trials=FITS, cv=folds, random_state=seed)


def as_optuna(given):
    """The same range as a distribution of Optuna."""
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if isinstance(given, list):
        return CategoricalDistribution(given)
    low, high = given.support()
    if given.dist.name == "randint":
        return IntDistribution(int(low), int(high))
    return FloatDistribution(float(low), float(high), log=given.dist.name == "loguniform")


def run(out, seeds):
    """Every problem, seed and method that is not in the file yet."""
    done = {(row["data"], row["method"], row["seed"]) for row in rows_of(out)}
    for seed in range(seeds):
        for data, (features, target, estimator, space) in problems().items():
            regression = data == "diabetes"
            folds = (KFold if regression else StratifiedKFold)(3, shuffle=True, random_state=seed)
            for method in METHODS:
                if (data, method, seed) in done:
                    continue
                began = time.perf_counter(), time.process_time()
                found = search(method, estimator, space, folds, seed).fit(features, target)
                ended = time.perf_counter(), time.process_time()
                best = clone(estimator).set_params(**found.best_params_)
                score = cross_val_score(best, features, target, cv=folds).mean()
                row = {"data": data, "method": method, "seed": seed, "score": float(score)}
                row |= {"seconds": ended[0] - began[0], "cpu_seconds": ended[1] - began[1]}
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(f"{data} {method} seed {seed}: {score:.4f}", flush=True)


def rows_of(out):
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def table(out):
    """Mean scores per data set, average rank (1 is best, ties averaged), CPU seconds."""
    scores = defaultdict(dict)
    seconds = defaultdict(list)
    for row in rows_of(out):
        scores[row["data"], row["seed"]][row["method"]] = row["score"]
        seconds[row["method"]].append(row["cpu_seconds"])
    whole = {key: found for key, found in scores.items() if len(found) == len(METHODS)}
    names = list(dict.fromkeys(data for data, _ in whole))
    print(f"| search | {' | '.join(names)} | average rank | CPU seconds |")
    print("|---" * (len(names) + 3) + "|")
    ranks = {key: rankdata([-found[method] for method in METHODS]) for key, found in whole.items()}
    for place, method in enumerate(METHODS):
        means = [
            np.mean([found[method] for (data, _), found in whole.items() if data == name])
            for name in names
        ]
        rank = np.mean([rank[place] for rank in ranks.values()])
        cells = " | ".join(f"{mean:.4f}" for mean in means)
        print(f"| {method} | {cells} | {rank:.2f} | {np.mean(seconds[method]):.2f} |")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    warnings.simplefilter("ignore")
    place = Path(sys.argv[1])
    if "--table" not in sys.argv:
        run(place, int(sys.argv[2]) if len(sys.argv) > 2 else 10)
    table(place)
