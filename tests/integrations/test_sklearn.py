"""`ScrimpSearchCV` held to what scikit-learn's own searches do."""

import pickle
from typing import ClassVar

import joblib
import numpy as np
import pytest
from scipy.stats import loguniform, randint

import scrimp
from scrimp.errors import StudyError

sklearn = pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, RandomizedSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import estimator_checks
from sklearn.utils.fixes import parse_version

from scrimp.integrations.sklearn import ScrimpSearchCV

X, Y = load_iris(return_X_y=True)
SPACE = {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-3, 1e1)}


def search(**given):
    settings = {"n_trials": 5, "cv": 3, "seed": 0, "method": "random"} | given
    return ScrimpSearchCV(SVC(), SPACE, **settings)


class Counting(ClassifierMixin, BaseEstimator):
    """Counts its fits, and fails where told."""

    fits: ClassVar[list[float]] = []

    def __init__(self, value=0.0, broken=2.0):
        self.value = value
        self.broken = broken

    def fit(self, X, y):
        Counting.fits.append(self.value)
        if self.value > self.broken:
            raise ValueError("too large")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def score(self, X, y):
        return -((self.value - 0.3) ** 2)


class Looking(SVC):
    """Pickles the search that fits it."""

    owner: ClassVar[ScrimpSearchCV]

    def fit(self, X, y):
        pickle.dumps(Looking.owner)
        return super().fit(X, y)


def test_it_has_what_a_randomized_search_has():
    ours = search(return_train_score=True).fit(X, Y)
    theirs = RandomizedSearchCV(
        SVC(), SPACE, n_iter=5, cv=3, random_state=0, return_train_score=True
    )
    theirs.fit(X, Y)
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    for key, values in theirs.cv_results_.items():
        assert type(ours.cv_results_[key]) is type(values), key
        assert len(ours.cv_results_[key]) == 5
    fitted = {name for name in vars(theirs) if name.endswith("_") and not name.startswith("_")}
    assert fitted <= {name for name in vars(ours) if name.endswith("_")}
    assert ours.best_params_ == ours.cv_results_["params"][ours.best_index_]
    assert ours.best_score_ == max(ours.cv_results_["mean_test_score"])
    assert ours.score(X, Y) == ours.best_estimator_.score(X, Y)
    again = clone(SVC()).set_params(**ours.best_params_).fit(X, Y)
    np.testing.assert_array_equal(ours.predict(X), again.predict(X))


def test_scores_are_those_of_cross_validation():
    from sklearn.model_selection import cross_val_score

    ours = search().fit(X, Y)
    for params, mean in zip(
        ours.cv_results_["params"], ours.cv_results_["mean_test_score"], strict=True
    ):
        assert mean == pytest.approx(cross_val_score(SVC(**params), X, Y, cv=3).mean())
        assert any(trial.value == pytest.approx(mean) for trial in ours.study_.trials)


def test_the_default_method_learns_where_the_best_is():
    Counting.fits = []
    ours = ScrimpSearchCV(Counting(), {"value": scrimp.Float(-1, 1)}, n_trials=14, cv=2, seed=0)
    ours.fit(X, Y)
    assert abs(ours.best_params_["value"] - 0.3) < 0.02
    assert len(Counting.fits) == 2 * 14 + 1  # two folds, and the refit


def test_pipelines_objects_and_several_metrics():
    pipeline = make_pipeline(StandardScaler(), SVC())
    space = {"svc__C": loguniform(1e-2, 1e2), "standardscaler": [MinMaxScaler(), "passthrough"]}
    ours = ScrimpSearchCV(
        pipeline,
        space,
        n_trials=4,
        cv=3,
        seed=1,
        scoring=["accuracy", "f1_macro"],
        refit="f1_macro",
    ).fit(X, Y)
    assert ours.multimetric_ and ours.study_.metric == "f1_macro"
    assert {"mean_test_accuracy", "rank_test_f1_macro"} <= set(ours.cv_results_)
    assert type(ours.best_params_["standardscaler"]) in (MinMaxScaler, str)
    with pytest.raises(StudyError, match="refit='accuracy'"):
        ScrimpSearchCV(pipeline, space, scoring=["accuracy", "f1_macro"], refit=False).fit(X, Y)


def test_groups_reach_the_folds():
    groups = np.arange(len(Y)) % 5
    ours = search(cv=GroupKFold(5)).fit(X, Y, groups=groups)
    assert ours.n_splits_ == 5
    with pytest.raises(ValueError, match="groups"):
        search(cv=GroupKFold(5)).fit(X, Y)


def test_metadata_is_routed():
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        estimator = LogisticRegression(max_iter=1000).set_fit_request(sample_weight=True)
        estimator.set_score_request(sample_weight=True)
        ours = ScrimpSearchCV(
            estimator, {"C": loguniform(0.1, 10)}, n_trials=2, cv=2, seed=0, method="random"
        )
        ours.fit(X, Y, sample_weight=np.ones(len(Y)))
        with pytest.raises(TypeError, match="unexpected"):
            ours.fit(X, Y, nonsense=1)


def test_regression_without_a_target_of_classes():
    x = np.random.default_rng(0).normal(size=(40, 3))
    ours = ScrimpSearchCV(Ridge(), {"alpha": loguniform(1e-3, 10)}, n_trials=3, cv=2, seed=0)
    assert ours.fit(x, x @ [1.0, 2.0, 3.0]).best_score_ > 0.9


def test_two_jobs_find_what_one_finds():
    one = search().fit(X, Y)
    with joblib.parallel_config("threading"):
        two = search(n_jobs=2).fit(X, Y)
    assert sorted(one.cv_results_["mean_test_score"]) == sorted(two.cv_results_["mean_test_score"])


def test_it_is_pickled_without_its_study():  # joblib sends it to worker processes during the fit
    Looking.owner = ScrimpSearchCV(Looking(), SPACE, n_trials=1, cv=2, error_score="raise")
    fitted = Looking.owner.fit(X, Y)
    assert fitted.study_.trials
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict(X), fitted.predict(X))


# -- storage ---------------------------------------------------------------------------------------


def test_a_search_goes_on_where_it_was(tmp_path):
    Counting.fits = []
    url = f"sqlite:///{tmp_path}/search.db"
    settings = {"cv": 2, "seed": 0, "storage": url}
    space = {"value": scrimp.Float(-1, 1)}
    first = ScrimpSearchCV(Counting(), space, n_trials=3, **settings).fit(X, Y)
    assert len(Counting.fits) == 7
    more = ScrimpSearchCV(Counting(), space, n_trials=5, **settings).fit(X, Y)
    assert len(Counting.fits) == 7 + 2 * 2 + 1
    assert more.cv_results_["params"][:3] == first.cv_results_["params"]
    whole = ScrimpSearchCV(Counting(), space, n_trials=5, cv=2, seed=0).fit(X, Y)
    for key in ("param_value", "mean_test_score", "std_test_score", "rank_test_score"):
        np.testing.assert_allclose(
            np.asarray(more.cv_results_[key], float), np.asarray(whole.cv_results_[key], float)
        )
    Counting.fits = []
    done = ScrimpSearchCV(Counting(), space, n_trials=5, **settings).fit(X, Y)
    assert (
        len(Counting.fits) == 3
    )  # the best once more, since scikit-learn wants one, and the refit
    assert done.best_params_ == more.best_params_ and len(done.cv_results_["params"]) == 5


def test_other_data_are_another_study(tmp_path):
    url = f"sqlite:///{tmp_path}/search.db"
    search(storage=url).fit(X, Y)
    search(storage=url).fit(X[:100], Y[:100])
    assert len(list(scrimp.studies(url))) == 2


def test_a_trial_that_was_cut_short_is_evaluated_first(tmp_path):
    url = f"sqlite:///{tmp_path}/search.db"
    first = search(storage=url, study_name="s", n_trials=2).fit(X, Y)
    left = scrimp.load_study("s", storage=url).ask()
    more = search(storage=url, study_name="s", n_trials=3).fit(X, Y)
    assert more.cv_results_["params"][2] == left.config
    assert more.cv_results_["params"][:2] == first.cv_results_["params"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"cv": 5}, "was searched with cv=StratifiedKFold.n_splits=3.*search has cv=.*n_splits=5"),
        ({"scoring": "f1_macro"}, "searched with scoring=None, .* scoring=f1_macro; use the same"),
        ({"scoring": ["accuracy"], "refit": "accuracy"}, "metric"),
        ({"return_train_score": True}, "return_train_score=False, .* return_train_score=True"),
    ],
)
def test_other_scores_are_refused_before_a_fit(tmp_path, monkeypatch, changed, words):
    url = f"sqlite:///{tmp_path}/search.db"
    search(storage=url, study_name="s", n_trials=2).fit(X, Y)
    fits = []
    monkeypatch.setattr(SVC, "fit", lambda *given, **named: fits.append(1))
    with pytest.raises(StudyError, match=words):
        search(storage=url, study_name="s", n_trials=4, **changed).fit(X, Y)
    assert fits == []


def test_the_same_folds_and_scorer_are_recognized(tmp_path):
    url = f"sqlite:///{tmp_path}/search.db"
    for trials in (1, 2):
        splitter = StratifiedKFold(2, shuffle=True, random_state=np.random.RandomState(0))
        settings = {"cv": splitter, "scoring": lambda estimator, X, y: 0.5}
        found = search(storage=url, study_name="s", n_trials=trials, **settings).fit(X, Y)
    assert len(found.cv_results_["params"]) == 2


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_fits_that_fail_count_and_do_not_win():
    ours = ScrimpSearchCV(
        Counting(broken=0.5), {"value": scrimp.Float(-1, 1)}, n_trials=8, cv=2, seed=0
    ).fit(X, Y)
    failed = np.isnan(ours.cv_results_["mean_test_score"])
    assert failed.any() and not failed.all()
    assert ours.study_.history.counts["failed"] == failed.sum()
    assert ours.best_params_["value"] <= 0.5
    assert len(ours.cv_results_["params"]) == 8


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_never_fits_is_told_as_scikit_learn_tells_it():
    ours = ScrimpSearchCV(
        Counting(broken=-2), {"value": scrimp.Float(-1, 1)}, n_trials=8, cv=2, seed=0
    )
    with pytest.raises(ValueError, match="too large"):
        ours.fit(X, Y)
    assert ours.study_.history.counts["failed"] == 3


@pytest.mark.parametrize("count", [0, -1, 2.5, True])
def test_counts_that_are_none_are_refused(count):
    with pytest.raises(StudyError, match=r"n_trials is .*; it must be a positive integer"):
        search(n_trials=count).fit(X, Y)


def test_resources_are_checked():
    with pytest.raises(StudyError, match="'n_samples' or a parameter of SVC"):
        search(resource="epochs").fit(X, Y)
    with pytest.raises(StudyError, match="max_resources is missing"):
        search(resource="max_iter").fit(X, Y)
    with pytest.raises(StudyError, match="belong to a resource"):
        search(max_resources=9).fit(X, Y)


# -- resources -------------------------------------------------------------------------------------


def test_samples_as_a_resource():
    x, y = make_classification(270, random_state=0)
    space = {"max_depth": randint(1, 9), "min_samples_leaf": randint(1, 40)}
    ours = ScrimpSearchCV(
        DecisionTreeClassifier(random_state=0), space, n_trials=4, cv=3, seed=0,
        resource="n_samples", method="asha",
    ).fit(x, y)  # fmt: skip
    given = ours.cv_results_["n_resources"]
    assert given.min() == 10 and given.max() == 270
    assert 4 * 270 <= given.sum() < 5 * 270  # what four full evaluations spend
    assert given[ours.best_index_] == 270
    assert len(ours.study_.trials) > 4


class Rows(DecisionTreeClassifier):
    """Counts the rows of its fits."""

    seen: ClassVar[list[int]] = []

    def fit(self, X, y):
        Rows.seen.append(len(X))
        return super().fit(X, y)


def test_a_fit_sees_its_share_of_the_training_rows():
    Rows.seen = []
    x, y = make_classification(270, random_state=0)
    settings = {"n_trials": 2, "cv": 3, "seed": 0, "resource": "n_samples", "method": "asha"}
    ours = ScrimpSearchCV(Rows(random_state=0), {"max_depth": randint(1, 9)}, **settings).fit(x, y)
    shares = ours.cv_results_["n_resources"] / 270
    expected = [np.ceil(share * 180) for share in shares for _ in range(3)]
    assert Rows.seen == [*expected, 270]  # two thirds are for training; the refit takes all


def test_an_iteration_parameter_as_a_resource(tmp_path):
    settings = {
        "cv": 2, "seed": 0, "resource": "max_iter", "max_resources": 27, "method": "asha",
        "storage": f"sqlite:///{tmp_path}/s.db",
    }  # fmt: skip
    estimator = LogisticRegression(tol=10.0)
    space = {"C": loguniform(1e-2, 1e2)}
    ours = ScrimpSearchCV(estimator, space, n_trials=3, **settings).fit(X, Y)
    assert ours.best_params_["max_iter"] == 27
    np.testing.assert_array_equal(
        [params["max_iter"] for params in ours.cv_results_["params"]],
        ours.cv_results_["n_resources"],
    )
    more = ScrimpSearchCV(estimator, space, n_trials=4, **settings).fit(X, Y)
    rows = len(ours.cv_results_["params"])
    assert len(more.cv_results_["params"]) > rows
    assert sorted(more.cv_results_["n_resources"][:rows]) == sorted(ours.cv_results_["n_resources"])


# -- scikit-learn's own checks ---------------------------------------------------------------------


def checks():
    estimator = ScrimpSearchCV(
        LogisticRegression(max_iter=20), {"C": [0.1, 1.0]}, n_trials=2, cv=2, seed=0,
        method="random", error_score="raise",
    )  # fmt: skip
    if parse_version(sklearn.__version__) < parse_version("1.6"):
        every = estimator_checks.check_estimator(estimator, generate_only=True)
        # Old versions cannot construct a search with two arguments.
        found = [pair for pair in every if "default_constructible" not in str(pair[1])]
    else:
        found = estimator_checks.estimator_checks_generator(estimator, legacy=True)
    for checked, check in found:
        yield pytest.param(checked, check, id=str(getattr(check, "func", check).__name__))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_estimator_checks(estimator, check):
    check(estimator)


SCRIPT = """
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.model_selection import RandomizedSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

X, y = load_iris(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
search = RandomizedSearchCV(
    make_pipeline(StandardScaler(), SVC()),
    {"svc__C": loguniform(1e-2, 1e3), "svc__gamma": loguniform(1e-4, 1e1)},
    n_iter=8,
    cv=3,
    scoring="accuracy",
    random_state=0,
)
search.fit(X_train, y_train)
rows = len(search.cv_results_["params"])
accuracy = search.score(X_test, y_test)
"""

CHANGES = {
    "from sklearn.model_selection import RandomizedSearchCV, train_test_split": (
        "from sklearn.model_selection import train_test_split;"
        " from scrimp.integrations.sklearn import ScrimpSearchCV"
    ),
    "search = RandomizedSearchCV(": "search = ScrimpSearchCV(",
    "    n_iter=8,": "    n_trials=8,",
    "    random_state=0,": "    seed=0,",
}
"""What the page of integrations says; at most five lines."""


def test_a_script_of_twenty_lines_works_after_four_of_them_change() -> None:
    lines = SCRIPT.strip().splitlines()
    changed = [CHANGES.get(line, line) for line in lines]
    assert sum(old != new for old, new in zip(lines, changed, strict=True)) == 4
    for text in ("\n".join(lines), "\n".join(changed)):
        seen: dict[str, object] = {}
        exec(text, seen)
        assert seen["rows"] == 8 and float(str(seen["accuracy"])) > 0.85
    assert type(seen["search"]).__name__ == "ScrimpSearchCV"


def test_the_text_of_a_search_holds_no_password() -> None:
    search = ScrimpSearchCV(SVC(), {}, storage="postgresql://ann:secret@db/hpo")
    assert "secret" not in repr(search) and "ann@db/hpo" in repr(search)
    assert search.storage == "postgresql://ann:secret@db/hpo"
