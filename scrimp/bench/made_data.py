"""Small learning tasks out of data that scikit-learn carries or makes: nothing is downloaded.

    # at most 300 rows to train on, and as many to judge by
    split("digits", rows=300, seed=0)

Flowers, wines, tumours, digits and diabetes are measurements; tasks that a function of scikit-learn
makes are named after it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import TableError
from scrimp.json_values import Json

__all__ = ["CLASSIFICATION", "REGRESSION", "Split", "need_sklearn", "split"]

Array = NDArray[Any]
Pair = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Split:
    """A task: rows to train on and rows to judge by, and whether targets are classes 0, 1, ... or
    numbers."""

    name: str
    classification: bool
    x: Array
    y: Array
    x_valid: Array
    y_valid: Array

    @property
    def features(self) -> list[float]:
        """Descriptors: log rows, log columns, classes (0: numbers), share of the commonest, of the
        first principal direction."""
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


def need_sklearn() -> None:
    """`TableError` with the remedy where scikit-learn is not installed."""
    try:
        import sklearn  # noqa: F401
    except ModuleNotFoundError:
        raise TableError(
            "making tables trains models of scikit-learn, which is not installed; pip install"
            " 'scrimp[bench]'"
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


def _digits(keep: tuple[int, ...]) -> Pair:
    x, y = _carried("digits")
    chosen = np.isin(y, keep)
    return x[chosen], np.searchsorted(keep, y[chosen])


def _relabelled(name: str, rule: Callable[[Array], Array]) -> Callable[[], Pair]:
    def make() -> Pair:
        x, y = _carried(name)
        return x, rule(y)

    return make


def _part(name: str, columns: slice) -> Callable[[], Pair]:
    def make() -> Pair:
        x, y = _carried(name)
        return x[:, columns], y

    return make


def _spoilt(name: str, pixels: float, labels: float) -> Callable[[], Pair]:
    """Noise of that standard deviation on every column, and a share of the labels drawn at
    random."""

    def make() -> Pair:
        x, y = _carried(name)
        rng = np.random.default_rng(7)
        wrong = rng.random(len(y)) < labels
        return x + pixels * rng.standard_normal(x.shape), np.where(wrong, rng.permutation(y), y)

    return make


def _foretold(name: str, column: int) -> Callable[[], Pair]:
    """One column from all the others."""

    def make() -> Pair:
        x, _ = _carried(name)
        return np.delete(x, column, axis=1), x[:, column]

    return make


def _classes(**settings: Json) -> Callable[[], Pair]:
    return _made("classification", n_samples=700, **settings)


CLASSIFICATION: Mapping[str, Callable[[], Pair]] = {
    "digits": lambda: _carried("digits"),
    "breast-cancer": lambda: _carried("breast_cancer"),
    "wine": lambda: _carried("wine"),
    "iris": lambda: _carried("iris"),
    "digits-noisy-labels": _spoilt("digits", 0.0, 0.2),
    "digits-noisy-pixels": _spoilt("digits", 5.0, 0.0),
    "digits-parity": _relabelled("digits", lambda y: y % 2),
    "digits-above-4": _relabelled("digits", lambda y: (y > 4).astype(int)),
    "digits-3-5-8-9": lambda: _digits((3, 5, 8, 9)),
    "digits-1-4-7": lambda: _digits((1, 4, 7)),
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
"""Tasks with classes, by name."""

REGRESSION: Mapping[str, Callable[[], Pair]] = {
    "diabetes": lambda: _carried("diabetes"),
    "friedman-1": _made("friedman1", n_samples=600, noise=1.0),
    "friedman-2": _made("friedman2", n_samples=600, noise=50.0),
    "friedman-3": _made("friedman3", n_samples=600, noise=0.1),
    "regression-sparse": _made(
        "regression", n_samples=600, n_features=40, n_informative=6, noise=20.0
    ),
    "swiss-roll": _made("swiss_roll", n_samples=600, noise=1.0),
    "s-curve": _made("s_curve", n_samples=600, noise=0.3),
    "wine-alcohol": _foretold("wine", 0),
    "tumour-texture": _foretold("breast_cancer", 1),
    "petal-width": _foretold("iris", 3),
}
"""Tasks with numbers, by name."""


def split(name: str, rows: int, seed: int) -> Split:
    """The task of that name, shuffled by the seed: half of it, at most ``rows``, to train, and as
    many to judge.

    Numbers to foretell are standardised.
    """
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
