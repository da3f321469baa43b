"""Compare ScrimpSearchCV with the searches of scikit-learn and Optuna, by fits and by time.

    python benchmarks/run.py search_cv OUT.jsonl [SEEDS]      # resumes
    python benchmarks/run.py search_cv OUT.jsonl --table      # print ranks and times of the file

There are five data sets of scikit-learn, each with an estimator and a space, and 20 evaluations of
three folds per search. Halving spends them on 13 candidates with a ninth of the rows, five with a
third, and two with all. The score of a search is the mean over the folds of the parameters that it
returns, on all rows and with the same folds for every search.

Each evaluation is stamped with the processor time since its search began, including the time for
deciding. For the comparison by time, every search is cut where the first of the four, or
RandomizedSearchCV, has finished on that data set and seed, and answers with the best configuration
evaluated by then (halving: the best with the most rows so far).

Needs scikit-learn, optuna, optuna-integration and pandas.
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
FOLDS = 3
METHODS = ("ScrimpSearchCV", "RandomizedSearchCV", "HalvingRandomSearchCV", "OptunaSearchCV")


def problems():
    """Map each name to data, estimator and space."""
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


class Stamps:
    """A scorer that records each score of the estimator and its time."""

    def __init__(self):
        self.began = time.process_time()
        self.scores = []
        self.ends = []

    def __call__(self, estimator, features, target):
        score = estimator.score(features, target)
        self.scores.append(float(score))
        self.ends.append(time.process_time() - self.began)
        return score

    def evaluations(self):
        """Return (mean over the folds, time of the last fold) of each evaluation."""
        means = np.reshape(self.scores, (-1, FOLDS)).mean(axis=1)
        return means.tolist(), self.ends[FOLDS - 1 :: FOLDS]


def search(method, estimator, space, seed, **given):
    """Return the search object; every method gets the same number of fits."""
    if method == "ScrimpSearchCV":
        from scrimp.integrations.sklearn import ScrimpSearchCV

        return ScrimpSearchCV(estimator, space, n_trials=FITS, seed=seed, **given)
    if method == "RandomizedSearchCV":
        return RandomizedSearchCV(estimator, space, n_iter=FITS, random_state=seed, **given)
    if method == "HalvingRandomSearchCV":
        from sklearn.experimental import enable_halving_search_cv  # noqa: F401
        from sklearn.model_selection import HalvingRandomSearchCV

        return HalvingRandomSearchCV(
            estimator,
            space,
            n_candidates=13,
            factor=3,
            min_resources="exhaust",
            return_train_score=False,  # Optuna's default is True, which scores twice
            random_state=seed,
            **given,
        )
    from optuna.logging import ERROR, set_verbosity
    from optuna_integration import OptunaSearchCV

    set_verbosity(ERROR)
    ranges = {name: as_optuna(value) for name, value in space.items()}
    return OptunaSearchCV(estimator, ranges, n_trials=FITS, random_state=seed, **given)


def as_optuna(given):
    """Return the same range as a distribution of Optuna."""
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
    """Run every problem, seed and method that is not in the file yet."""
    done = {(row["data"], row["method"], row["seed"]) for row in rows_of(out)}
    for method in METHODS:  # first imports are not timed
        features, target, estimator, space = problems()["iris"]
        search(method, estimator, space, 0, cv=2).fit(features, target)
    for seed in range(seeds):
        for data, (features, target, estimator, space) in problems().items():
            kind = KFold if data == "diabetes" else StratifiedKFold
            folds = kind(FOLDS, shuffle=True, random_state=seed)
            for method in METHODS:
                if (data, method, seed) in done:
                    continue
                stamps = Stamps()
                asked = search(method, estimator, space, seed, cv=folds, scoring=stamps)
                found = asked.fit(features, target)
                spent = time.process_time() - stamps.began

                def whole(params, data=(features, target), estimator=estimator, folds=folds):
                    return cross_val_score(
                        clone(estimator).set_params(**params), *data, cv=folds
                    ).mean()

                row = {"data": data, "method": method, "seed": seed, "cpu_seconds": spent}
                row["score"] = float(whole(found.best_params_))
                row["means"], row["ends"] = stamps.evaluations()
                if method == "HalvingRandomSearchCV":
                    row["resources"] = found.cv_results_["n_resources"].tolist()
                    row["whole"] = [float(whole(each)) for each in found.cv_results_["params"]]
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(f"{data} {method} seed {seed}: {row['score']:.4f}", flush=True)


def score_at(row, seconds):
    """Return the score of a search's answer after so many seconds; -inf before its first."""
    done = [place for place, end in enumerate(row["ends"]) if end <= seconds]
    if not done:
        return -np.inf
    resources = row.get("resources", [1] * len(row["ends"]))
    most = max(resources[place] for place in done)
    best = max((place for place in done if resources[place] == most), key=row["means"].__getitem__)
    return row.get("whole", row["means"])[best]


def rows_of(out):
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def table(out):
    """Print mean scores, ranks and times.

    The average rank (1 is best, ties averaged) is given for equal fits and for equal time.
    """
    rows = defaultdict(dict)
    for row in rows_of(out):
        rows[row["data"], row["seed"]][row["method"]] = row
    whole = {key: found for key, found in rows.items() if len(found) == len(METHODS)}
    first = {key: min(row["ends"][-1] for row in found.values()) for key, found in whole.items()}
    random = {key: found["RandomizedSearchCV"]["ends"][-1] for key, found in whole.items()}
    names = list(dict.fromkeys(data for data, _ in whole))
    heads = ["rank, same fits", "time of the first", "random's time", "evaluations in it"]
    heads.append("CPU seconds")
    print(f"{len(whole)} searches each")
    print(f"| search | {' | '.join([*names, *heads])} |")
    print("|---" * (len(names) + 6) + "|")
    fits = {key: ranks(found, lambda row: row["score"]) for key, found in whole.items()}
    timed = [
        {
            key: ranks(found, lambda row, cut=cuts[key]: score_at(row, cut))
            for key, found in whole.items()
        }
        for cuts in (first, random)
    ]
    for place, method in enumerate(METHODS):
        own = {key: found[method] for key, found in whole.items()}
        cells = [
            f"{np.mean([row['score'] for (data, _), row in own.items() if data == name]):.4f}"
            for name in names
        ]
        for by_key in (fits, *timed):
            cells.append(f"{np.mean([rank[place] for rank in by_key.values()]):.2f}")
        within = [sum(end <= random[key] for end in row["ends"]) for key, row in own.items()]
        cells.append(f"{np.mean(within):.1f}")
        cells.append(f"{np.mean([row['cpu_seconds'] for row in own.values()]):.2f}")
        print(f"| {method} | {' | '.join(cells)} |")


def ranks(found, score):
    """Return the rank of each method, the highest score first."""
    return rankdata([-score(found[method]) for method in METHODS])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    warnings.simplefilter("ignore")
    place = Path(sys.argv[1])
    if "--table" not in sys.argv:
        run(place, int(sys.argv[2]) if len(sys.argv) > 2 else 10)
    table(place)
