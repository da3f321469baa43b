"""Model families for tables of past tasks: a space each, and what a configuration of it builds.

    family = FAMILIES["svm"]
    # a classifier of scikit-learn
    family.build({"kernel": "rbf", "C": 1.0, "gamma": 0.1}, True)

A family of your own is one more entry: `Family(space, build)`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from scrimp.bench.made_data import Array
from scrimp.history.events import Config
from scrimp.json_values import Json, Scalar

__all__ = ["FAMILIES", "Family"]


def _float(name: str, low: float, high: float, **more: Json) -> dict[str, Json]:
    return {"name": name, "type": "float", "low": low, "high": high, **more}


def _log(name: str, low: float, high: float, **more: Json) -> dict[str, Json]:
    return _float(name, low, high, log=True, **more)


def _int(name: str, low: int, high: int, **more: Json) -> dict[str, Json]:
    return {"name": name, "type": "int", "low": low, "high": high, **more}


def _choice(name: str, *choices: Scalar, **more: Json) -> dict[str, Json]:
    return {"name": name, "type": "choice", "choices": list(choices), **more}


def _ordinal(name: str, *choices: Scalar, **more: Json) -> dict[str, Json]:
    return {"name": name, "type": "ordinal", "choices": list(choices), **more}


class Model(Protocol):
    """An estimator of scikit-learn, as far as it is used here."""

    def fit(self, x: Array, y: Array) -> "Model": ...

    def predict(self, x: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class Family:
    """A space, as a description, and the estimator of a configuration for classes (True) or numbers
    (False)."""

    space: tuple[Mapping[str, Json], ...]
    build: Callable[[Config, bool], Model]


def _scaled(model: Model, *before: object) -> Model:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline: Model = make_pipeline(StandardScaler(), *before, model)
    return pipeline


def _svm(config: Config, classes: bool) -> Model:
    from sklearn.svm import SVC, SVR

    return _scaled(
        (SVC if classes else SVR)(**config, max_iter=3_000)
    )  # what has not converged then has failed


def _forest(config: Config, classes: bool) -> Model:
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )

    given = dict(config)
    kind = given.pop("kind")
    pairs = {
        "forest": (RandomForestRegressor, RandomForestClassifier),
        "extra": (ExtraTreesRegressor, ExtraTreesClassifier),
    }
    model: Model = pairs[kind][classes](n_estimators=20, random_state=0, **given)
    return model


def _adaptive(config: Config, classes: bool) -> Model:
    from sklearn.ensemble import AdaBoostClassifier, AdaBoostRegressor

    model: Model = (AdaBoostClassifier if classes else AdaBoostRegressor)(**config, random_state=0)
    return model


def _boosting(config: Config, classes: bool) -> Model:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    model: Model = kind(**config, early_stopping=False, random_state=0)
    return model


def _network(config: Config, classes: bool) -> Model:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    given = dict(config)
    sizes = (given.pop("width"),) * given.pop("depth")
    kind = MLPClassifier if classes else MLPRegressor
    return _scaled(
        kind(hidden_layer_sizes=sizes, max_iter=25, n_iter_no_change=25, random_state=0, **given)
    )


def _neighbours(config: Config, classes: bool) -> Model:
    from sklearn.decomposition import PCA
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    given = dict(config)
    before = [PCA(given.pop("share"), random_state=0)] if given.pop("project") else []
    return _scaled((KNeighborsClassifier if classes else KNeighborsRegressor)(**given), *before)


def _linear(config: Config, classes: bool) -> Model:
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    given = dict(config)
    robust, scaled = given.pop("robust"), given.pop("scaled")
    losses = ("modified_huber", "log_loss") if classes else ("huber", "squared_error")
    model = (SGDClassifier if classes else SGDRegressor)(
        loss=losses[0] if robust else losses[1],
        max_iter=given.pop("epochs"),
        tol=None,
        random_state=0,
        **given,
    )
    return _scaled(model) if scaled else model


FAMILIES: Mapping[str, Family] = {
    "svm": Family(
        (
            _choice("kernel", "rbf", "linear", "poly"),
            _log("C", 1e-3, 1e3),
            _log("gamma", 1e-4, 10.0, when={"kernel": ["rbf", "poly"]}),
            _int("degree", 2, 4, when={"kernel": "poly"}),
        ),
        _svm,
    ),
    "ada-boost": Family((_int("n_estimators", 1, 40, log=True), _log("learning_rate", 0.01, 4.0)), _adaptive),
    "random-forest": Family(
        (
            _choice("kind", "forest", "extra"),
            _float("max_features", 0.05, 1.0),
            _int("min_samples_leaf", 1, 30, log=True),
            _int("max_depth", 1, 20, log=True),
            _choice("bootstrap", True, False),
            _float("max_samples", 0.1, 1.0, when={"bootstrap": True}),
        ),
        _forest,
    ),
    "gradient-boosting": Family(
        (
            _log("learning_rate", 0.005, 1.0),
            _int("max_iter", 2, 60, log=True),
            _int("max_leaf_nodes", 2, 32, log=True),
            _int("min_samples_leaf", 1, 40, log=True),
            _log("l2_regularization", 1e-4, 100.0),
            _float("max_features", 0.1, 1.0),
        ),
        _boosting,
    ),
    "mlp": Family(
        (
            _choice("solver", "adam", "sgd"),
            _log("learning_rate_init", 1e-4, 1.0),
            _float("momentum", 0.0, 0.99, when={"solver": "sgd"}),
            _log("alpha", 1e-6, 1.0),
            _ordinal("batch_size", 16, 32, 64, 128),
            _ordinal("width", 4, 8, 16, 32, 64),
            _int("depth", 1, 3),
            _choice("activation", "relu", "tanh"),
        ),
        _network,
    ),
    "k-nearest": Family((_int("n_neighbors", 1, 120, log=True), _choice("weights", "uniform", "distance"),
                         _float("p", 1.0, 4.0), _choice("project", True, False),
                         _float("share", 0.3, 0.99, when={"project": True})), _neighbours),
    "linear": Family(
        (
            _choice("robust", True, False),
            _choice("scaled", True, False),
            _choice("penalty", "l2", "l1", "elasticnet"),
            _float("l1_ratio", 0.0, 1.0, when={"penalty": "elasticnet"}),
            _log("alpha", 1e-6, 1.0),
            _choice("learning_rate", "constant", "invscaling", "adaptive"),
            _log("eta0", 1e-4, 1.0),
            _float("power_t", 0.1, 0.9, when={"learning_rate": "invscaling"}),
            _int("epochs", 3, 60, log=True),
            _choice("average", True, False),
        ),
        _linear,
    ),
}  # fmt: skip
"""The families by name: 2 to 10 parameters, mixed, most with conditions; svm, mlp, k-nearest and
linear may fail."""
