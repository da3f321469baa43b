"""Small learning tasks from the data sets and generators of scikit-learn; nothing is downloaded.

    # at most 300 rows to train on, and as many to validate
    split("digits", rows=300, seed=0)

Flowers, wines, tumours, digits and diabetes are measurements; generated tasks are named after their
function in scikit-learn.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import TableError
from scrimp.json_values import Config, Json
from scrimp.space.parameter import Categorical, Float, Int, Ordinal
from scrimp.space.space import Space

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

Array = NDArray[Any]
Pair = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Split:
    """A task: rows for training and validation, with classes 0, 1, ... or numbers as targets."""

    name: str
    classification: bool
    x: Array
    y: Array
    x_valid: Array
    y_valid: Array

    @property
    def features(self) -> list[float]:
        """Descriptors: log rows, log columns, number of classes (0 for numbers), share of the most
        common class, share of variance along the first principal direction."""
        centred = (self.x - self.x.mean(axis=0)) / np.maximum(self.x.std(axis=0), 1e-12)
        variances = np.linalg.svd(centred, compute_uv=False) ** 2
        counts = np.unique(self.y, return_counts=True)[1] if self.classification else np.zeros(0)
        common = float(counts.max() / counts.sum()) if self.classification else 0.0
        first = float(variances[0] / variances.sum())
        return [
            float(np.log(len(self.x))),
            float(np.log(self.x.shape[1])),
            float(len(counts)),
            common,
            first,
        ]


def need_sklearn(what: str = "making tables trains models") -> None:
    """Raise `TableError` if scikit-learn is not installed."""
    try:
        import sklearn  # noqa: F401
    except ModuleNotFoundError:
        raise TableError(
            f"{what} of scikit-learn, which is not installed; pip install 'scrimp[bench]'"
        ) from None


def _carried(name: str) -> Pair:
    from sklearn import datasets

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return np.asarray(x, dtype=float), np.asarray(y)


def _made(name: str, **settings: Json) -> Callable[[], Pair]:
    def make() -> Pair:
        from sklearn import datasets

        x, y, *_ = getattr(datasets, f"make_{name}")(random_state=7, **settings)
        return np.asarray(x, dtype=float), np.asarray(y)

    return make


def _changed(name: str, change: Callable[[Array, Array], Pair]) -> Callable[[], Pair]:
    """Return a maker of the data set with other columns or targets."""
    return lambda: change(*_carried(name))


def _relabelled(name: str, rule: Callable[[Array], Array]) -> Callable[[], Pair]:
    return _changed(name, lambda x, y: (x, rule(y)))


def _part(name: str, columns: slice) -> Callable[[], Pair]:
    return _changed(name, lambda x, y: (x[:, columns], y))


def _column(name: str, column: int) -> Callable[[], Pair]:
    """Return a maker of the task to predict one column from all others."""
    return _changed(name, lambda x, y: (np.delete(x, column, axis=1), x[:, column]))


def _digits(*keep: int) -> Callable[[], Pair]:
    def change(x: Array, y: Array) -> Pair:
        chosen = np.isin(y, keep)
        return x[chosen], np.searchsorted(keep, y[chosen])

    return _changed("digits", change)


def _noisy(name: str, pixels: float, labels: float) -> Callable[[], Pair]:
    """Return a maker with noise on every column and a share of labels drawn at random."""

    def change(x: Array, y: Array) -> Pair:
        rng = np.random.default_rng(7)
        wrong = rng.random(len(y)) < labels
        return x + pixels * rng.standard_normal(x.shape), np.where(wrong, rng.permutation(y), y)

    return _changed(name, change)


def _classes(**settings: Json) -> Callable[[], Pair]:
    return _made("classification", n_samples=700, **settings)


CLASSIFICATION: Mapping[str, Callable[[], Pair]] = {
    "digits": partial(_carried, "digits"),
    "breast-cancer": partial(_carried, "breast_cancer"),
    "wine": partial(_carried, "wine"),
    "iris": partial(_carried, "iris"),
    "digits-noisy-labels": _noisy("digits", 0.0, 0.2),
    "digits-noisy-pixels": _noisy("digits", 5.0, 0.0),
    "digits-parity": _relabelled("digits", lambda y: y % 2),
    "digits-above-4": _relabelled("digits", lambda y: (y > 4).astype(int)),
    "digits-3-5-8-9": _digits(3, 5, 8, 9),
    "digits-1-4-7": _digits(1, 4, 7),
    "digits-upper-half": _part("digits", slice(0, 32)),
    "breast-cancer-means": _part("breast_cancer", slice(0, 10)),
    "breast-cancer-errors": _part("breast_cancer", slice(10, 20)),
    "diabetes-high": _relabelled("diabetes", lambda y: (y > 140).astype(int)),
    "diabetes-thirds": _relabelled("diabetes", lambda y: np.digitize(y, (100, 180))),
    "wine-six-columns": _part("wine", slice(0, 6)),
    "moons": _made("moons", n_samples=600, noise=0.3),
    "circles": _made("circles", n_samples=600, noise=0.15, factor=0.6),
    "blobs": _made("blobs", n_samples=600, centers=6, n_features=5, cluster_std=4.0),
    "hastie": _made("hastie_10_2", n_samples=700),
    "gaussian-quantiles": _made("gaussian_quantiles", n_samples=600, n_features=6, n_classes=3),
    "classification-wide": _classes(n_features=60, n_informative=6, n_redundant=4, flip_y=0.05),
    "classification-redundant": _classes(
        n_features=20, n_informative=4, n_redundant=14, flip_y=0.02
    ),
    "classification-rare": _classes(
        n_features=12, n_informative=5, weights=[0.9, 0.1], flip_y=0.02
    ),
    "classification-clusters": _classes(
        n_features=10, n_informative=6, n_classes=4, n_clusters_per_class=2
    ),
}

REGRESSION: Mapping[str, Callable[[], Pair]] = {
    "diabetes": partial(_carried, "diabetes"),
    "friedman-1": _made("friedman1", n_samples=600, noise=1.0),
    "friedman-2": _made("friedman2", n_samples=600, noise=50.0),
    "friedman-3": _made("friedman3", n_samples=600, noise=0.1),
    "regression-sparse": _made(
        "regression", n_samples=600, n_features=40, n_informative=6, noise=20.0
    ),
    "swiss-roll": _made("swiss_roll", n_samples=600, noise=1.0),
    "s-curve": _made("s_curve", n_samples=600, noise=0.3),
    "wine-alcohol": _column("wine", 0),
    "tumour-texture": _column("breast_cancer", 1),
    "petal-width": _column("iris", 3),
}


def split(name: str, rows: int, seed: int) -> Split:
    """Return the task of that name, shuffled by the seed: half of it, at most ``rows``, for training,
    and as many for validation. Numeric targets are standardised."""
    classification = name in CLASSIFICATION
    x, y = (CLASSIFICATION if classification else REGRESSION)[name]()
    if classification:
        y = np.unique(y, return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(len(x))
    count = min(rows, len(x) // 2)
    train, valid = order[:count], order[count : 2 * count]
    if not classification:
        y = (y - y[train].mean()) / y[train].std()
    return Split(name, classification, x[train], y[train], x[valid], y[valid])


@dataclass(frozen=True, eq=False)
class Family:
    """A space, and the estimator of a configuration for classes (True) or numbers."""

    space: Space
    build: "Callable[[Config, bool], BaseEstimator]"


def _estimator(
    module: str, stem: str, config: Config, classes: bool, **fixed: Json
) -> "BaseEstimator":
    """Return ``<stem>Classifier`` or ``<stem>Regressor`` of a module of scikit-learn."""
    kind = f"{stem}{'Classifier' if classes else 'Regressor'}"
    return getattr(importlib.import_module(f"sklearn.{module}"), kind)(**config, **fixed)


def _scaled(model: "BaseEstimator", *before: "BaseEstimator") -> "BaseEstimator":
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), *before, model)


def _svm(config: Config, classes: bool) -> "BaseEstimator":
    """Build a machine that fails if it has not converged after 3,000 iterations."""
    from sklearn.svm import SVC, SVR

    return _scaled((SVC if classes else SVR)(**config, max_iter=3_000))


def _forest(config: Config, classes: bool) -> "BaseEstimator":
    given = {**config, "n_estimators": 20, "random_state": 0}
    stem = {"forest": "RandomForest", "extra": "ExtraTrees"}[given.pop("kind")]
    return _estimator("ensemble", stem, given, classes)


def _network(config: Config, classes: bool) -> "BaseEstimator":
    given = {**config, "max_iter": 25, "n_iter_no_change": 25, "random_state": 0}
    given["hidden_layer_sizes"] = (given.pop("width"),) * given.pop("depth")
    return _scaled(_estimator("neural_network", "MLP", given, classes))


def _neighbours(config: Config, classes: bool) -> "BaseEstimator":
    from sklearn.decomposition import PCA

    given = dict(config)
    before = [PCA(given.pop("share"), random_state=0)] if given.pop("project") else []
    return _scaled(_estimator("neighbors", "KNeighbors", given, classes), *before)


def _linear(config: Config, classes: bool) -> "BaseEstimator":
    given = {**config, "max_iter": config["epochs"], "tol": None, "random_state": 0}
    del given["epochs"]
    losses = ("modified_huber", "log_loss") if classes else ("huber", "squared_error")
    given["loss"] = losses[0] if given.pop("robust") else losses[1]
    scaled = given.pop("scaled")
    model = _estimator("linear_model", "SGD", given, classes)
    return _scaled(model) if scaled else model


FAMILIES: Mapping[str, Family] = {
    "svm": Family(
        Space(
            kernel=Categorical(["rbf", "linear", "poly"]),
            C=Float(1e-3, 1e3, log=True),
            gamma=Float(1e-4, 10.0, log=True, when={"kernel": ["rbf", "poly"]}),
            degree=Int(2, 4, when={"kernel": "poly"}),
        ),
        _svm,
    ),
    "ada-boost": Family(
        Space(n_estimators=Int(1, 40, log=True), learning_rate=Float(0.01, 4.0, log=True)),
        partial(_estimator, "ensemble", "AdaBoost", random_state=0),
    ),
    "random-forest": Family(
        Space(
            kind=Categorical(["forest", "extra"]),
            max_features=Float(0.05, 1.0),
            min_samples_leaf=Int(1, 30, log=True),
            max_depth=Int(1, 20, log=True),
            bootstrap=Categorical([True, False]),
            max_samples=Float(0.1, 1.0, when={"bootstrap": True}),
        ),
        _forest,
    ),
    "gradient-boosting": Family(
        Space(
            learning_rate=Float(0.005, 1.0, log=True),
            max_iter=Int(2, 60, log=True),
            max_leaf_nodes=Int(2, 32, log=True),
            min_samples_leaf=Int(1, 40, log=True),
            l2_regularization=Float(1e-4, 100.0, log=True),
            max_features=Float(0.1, 1.0),
        ),
        partial(
            _estimator, "ensemble", "HistGradientBoosting", early_stopping=False, random_state=0
        ),
    ),
    "mlp": Family(
        Space(
            solver=Categorical(["adam", "sgd"]),
            learning_rate_init=Float(1e-4, 1.0, log=True),
            momentum=Float(0.0, 0.99, when={"solver": "sgd"}),
            alpha=Float(1e-6, 1.0, log=True),
            batch_size=Ordinal([16, 32, 64, 128]),
            width=Ordinal([4, 8, 16, 32, 64]),
            depth=Int(1, 3),
            activation=Categorical(["relu", "tanh"]),
        ),
        _network,
    ),
    "k-nearest": Family(
        Space(
            n_neighbors=Int(1, 120, log=True),
            weights=Categorical(["uniform", "distance"]),
            p=Float(1.0, 4.0),
            project=Categorical([True, False]),
            share=Float(0.3, 0.99, when={"project": True}),
        ),
        _neighbours,
    ),
    "linear": Family(
        Space(
            robust=Categorical([True, False]),
            scaled=Categorical([True, False]),
            penalty=Categorical(["l2", "l1", "elasticnet"]),
            l1_ratio=Float(0.0, 1.0, when={"penalty": "elasticnet"}),
            alpha=Float(1e-6, 1.0, log=True),
            learning_rate=Categorical(["constant", "invscaling", "adaptive"]),
            eta0=Float(1e-4, 1.0, log=True),
            power_t=Float(0.1, 0.9, when={"learning_rate": "invscaling"}),
            epochs=Int(3, 60, log=True),
            average=Categorical([True, False]),
        ),
        _linear,
    ),
}
"""Families with 2 to 10 mixed parameters; svm, mlp, k-nearest and linear may fail."""
