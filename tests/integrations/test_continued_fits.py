"""Budgets over iterations with ``warm_start=True``, held to scikit-learn's own warm start."""

import pickle
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import joblib
import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scrimp.integrations.continued_fits import STATES, ContinuedFit, warm_started
from scrimp.integrations.sklearn import ScrimpSearchCV

X, Y = make_classification(90, random_state=0, flip_y=0.3)
FOLDS = KFold(3)


class Counting(SGDClassifier):
    """Counts its epochs."""

    epochs: ClassVar[list[int]] = []

    def fit(self, X, y):
        Counting.epochs.append(self.max_iter)
        return super().fit(X, y)


def sgd(kind=SGDClassifier, **given):
    return kind(random_state=0, tol=None, **{"warm_start": True} | given)


def search(estimator, space, resource, **given):
    settings = {"n_trials": 3, "cv": FOLDS, "seed": 0, "method": "asha", "max_resources": 9}
    settings |= {"resource": resource, "min_resources": 1} | given
    return ScrimpSearchCV(estimator, space, **settings)


def rows_of(found):
    """Split scores by configuration and amount of the resource."""
    table = defaultdict(dict)
    for place, params in enumerate(found.cv_results_["params"]):
        others = {key: value for key, value in params.items() if key != found.resource}
        scores = [found.cv_results_[f"split{fold}_test_score"][place] for fold in range(3)]
        table[tuple(others.items())][params[found.resource]] = scores
    return table


def by_hand(estimator, resource, params, amounts, adds):
    """What scikit-learn's warm start gives, fold by fold: {amount: scores}."""
    scores = {amount: [] for amount in amounts}
    for train, test in FOLDS.split(X, Y):
        model = clone(estimator).set_params(**params)
        for before, amount in pairwise([0, *amounts]):
            model.set_params(**{resource: amount - before if adds else amount})
            model.fit(X[train], Y[train])
            scores[amount].append(model.score(X[test], Y[test]))
    return scores


ESTIMATORS = {
    "sgd": (sgd(), {"alpha": loguniform(1e-5, 1e-1)}, "max_iter", True),
    "boosting": (
        GradientBoostingClassifier(random_state=0, warm_start=True, max_depth=1, subsample=0.8),
        {"learning_rate": loguniform(1e-2, 1)},
        "n_estimators",
        False,
    ),
    "histograms": (
        HistGradientBoostingClassifier(random_state=0, warm_start=True, early_stopping=False),
        {"learning_rate": loguniform(1e-2, 1)},
        "max_iter",
        False,
    ),
    "network": (
        MLPClassifier((4,), random_state=0, warm_start=True, tol=0.0, n_iter_no_change=99),
        {"learning_rate_init": loguniform(1e-3, 1e-1)},
        "max_iter",
        True,
    ),
    "pipeline": (
        make_pipeline(StandardScaler(), sgd()),
        {"sgdclassifier__alpha": loguniform(1e-5, 1e-1)},
        "sgdclassifier__max_iter",
        True,
    ),
}


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_scores_are_those_of_a_warm_start_by_hand(name):
    estimator, space, resource, adds = ESTIMATORS[name]
    found = search(estimator, space, resource).fit(X, Y)
    table = rows_of(found)
    assert max(len(scores) for scores in table.values()) > 1  # somebody went on
    for params, scores in table.items():
        amounts = sorted(scores)
        assert scores == by_hand(estimator, resource, dict(params), amounts, adds)
    assert found.estimator is estimator
    assert type(found.best_estimator_) is type(estimator)
    whole = clone(estimator).set_params(**found.best_params_).fit(X, Y)
    np.testing.assert_array_equal(found.predict(X), whole.predict(X))
    assert STATES not in found.best_params_


def test_only_what_is_new_is_trained_and_paid_for():
    Counting.epochs = []
    found = search(sgd(Counting), {"alpha": loguniform(1e-5, 1e-1)}, "max_iter").fit(X, Y)
    spent = sum(trial.budget for trial in found.study_.trials)
    assert sum(Counting.epochs[:-1]) == 3 * spent  # three folds; the last one is the refit
    assert 3 * 9 <= spent < 4 * 9


def test_without_warm_start_each_evaluation_fits_anew():
    Counting.epochs = []
    estimator = sgd(Counting, warm_start=False)
    found = search(estimator, {"alpha": loguniform(1e-5, 1e-1)}, "max_iter").fit(X, Y)
    assert Counting.epochs[:-1] == list(np.repeat(found.cv_results_["n_resources"], 3))
    assert 3 * 9 <= sum(found.cv_results_["n_resources"]) < 4 * 9
    for params, scores in rows_of(found).items():
        for amount, splits in scores.items():
            fresh = by_hand(estimator, "max_iter", dict(params), [amount], False)
            assert splits == fresh[amount]


def test_two_jobs_find_what_one_finds():
    space = {"alpha": loguniform(1e-5, 1e-1)}
    one = search(sgd(), space, "max_iter").fit(X, Y)
    with joblib.parallel_config("threading"):
        two = search(sgd(), space, "max_iter", n_jobs=2).fit(X, Y)
    assert rows_of(one) == rows_of(two)


def test_it_reaches_other_processes(tmp_path):
    sent = pickle.loads(pickle.dumps(continued(tmp_path, 2)))  # joblib sends it unfitted
    assert sent.fit(X, Y).score(X, Y) == continued(tmp_path, 2).fit(X, Y).score(X, Y)


def test_a_search_that_lasts_keeps_its_scores_and_reads_no_file(tmp_path):
    space = {"alpha": loguniform(1e-5, 1e-1)}
    url = f"sqlite:///{tmp_path}/search.db"
    search(sgd(Counting), space, "max_iter", storage=url, n_trials=1).fit(X, Y)
    Counting.epochs = []
    more = search(sgd(Counting), space, "max_iter", storage=url, n_trials=4).fit(X, Y)
    whole = search(sgd(), space, "max_iter", n_trials=4).fit(X, Y)
    assert rows_of(more) == rows_of(whole)
    Counting.epochs = []
    again = search(sgd(Counting), space, "max_iter", storage=url, n_trials=4).fit(X, Y)
    assert Counting.epochs == [1, 1, 1, 9]  # the least, as scikit-learn wants one, and the refit
    assert rows_of(again) == rows_of(whole) and again.best_score_ == whole.best_score_
    assert not list(tmp_path.rglob("*.joblib"))


# -- one fit ---------------------------------------------------------------------------------------


def continued(folder: Path, amount: int, **given) -> ContinuedFit:
    return ContinuedFit(sgd(Counting, **given), "max_iter").set_params(
        max_iter=amount, **{STATES: str(folder)}
    )


def test_other_rows_and_other_weights_begin_anew(tmp_path):
    Counting.epochs = []
    continued(tmp_path, 2).fit(X, Y)
    continued(tmp_path, 5).fit(X, Y)
    continued(tmp_path, 5).fit(X[1:], Y[1:])
    assert Counting.epochs == [2, 3, 5]


def test_a_fit_that_was_not_told_is_not_made_again(tmp_path):
    first = continued(tmp_path, 2).fit(X, Y)
    Counting.epochs = []
    again = continued(tmp_path, 2).fit(X, Y)
    assert Counting.epochs == []
    np.testing.assert_array_equal(first.coef_, again.coef_)


def test_a_state_that_cannot_be_read_is_named_and_the_fold_fitted_anew(tmp_path):
    continued(tmp_path, 2).fit(X, Y)
    (place,) = tmp_path.iterdir()
    place.write_bytes(b"half")
    Counting.epochs = []
    with pytest.warns(UserWarning, match=f"{place.name} cannot be read.*fitted from scratch"):
        continued(tmp_path, 5).fit(X, Y)
    assert Counting.epochs == [5]


def test_whether_an_estimator_is_warm_started():
    assert warm_started(sgd(), "max_iter")
    assert not warm_started(sgd(warm_start=False), "max_iter")
    assert warm_started(make_pipeline(sgd()), "sgdclassifier__max_iter")
    assert not warm_started(make_pipeline(StandardScaler()), "standardscaler__copy")
