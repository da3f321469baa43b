"""Fits of scikit-learn estimators with ``warm_start=True``: a larger grant of iterations continues
the previous fit.

    warm_started(SGDClassifier(warm_start=True), "max_iter")     # True
    ContinuedFit(SGDClassifier(warm_start=True), "max_iter")     # replaces the estimator

The state of each fold is a pickled file. Unpickling can run code, so states are kept in a private
folder of the search, and no file of another process or of an earlier run is read. The name is a
checksum of the rows: a fold continues from a fit on the same rows, or starts from scratch.
"""

import os
import warnings
from pathlib import Path
from typing import Any, Self

import joblib
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

STATES = "scrimp_states"
"""The parameter that passes the folder of a trial's states to a fit."""

CUMULATIVE = {"n_estimators"}


def warm_started(estimator: BaseEstimator, resource: str) -> bool:
    """True if the part of the estimator that ``resource`` belongs to has ``warm_start=True``."""
    owner = resource.rpartition("__")[0]
    params = estimator.get_params()
    return bool(params.get(f"{owner}__warm_start" if owner else "warm_start", False))


class ContinuedFit:
    """An estimator that loads the state of its fold, fits the rest of the resource, and saves the new
    state. Everything else is delegated to the estimator.

    ``n_estimators``, and ``max_iter`` of histogram boosting, are totals; any other iteration
    parameter (``max_iter`` of SGDClassifier, of MLPClassifier) is what one call of ``fit`` adds, so
    it is set to the difference.
    """

    def __init__(self, estimator: BaseEstimator, resource: str) -> None:
        self.estimator = estimator
        self.resource = resource
        self.states: str | None = None

    def __getattr__(self, name: str) -> Any:
        # Unpickling asks for attributes before there is an estimator.
        if name.startswith("__") or name == "estimator":
            raise AttributeError(name)
        return getattr(self.estimator, name)

    def __sklearn_clone__(self) -> "ContinuedFit":
        return ContinuedFit(clone(self.estimator), self.resource)

    def __sklearn_tags__(self) -> object:
        return self.estimator.__sklearn_tags__()

    def set_params(self, **params: object) -> Self:
        """Set the estimator's parameters, and the folder of the states."""
        states = params.pop(STATES, None)
        self.states = None if states is None else str(states)
        self.estimator.set_params(**params)
        return self

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: object) -> Self:
        """Fit up to the resource's value, starting from the saved state if there is one."""
        given = (X,) if y is None else (X, y)
        # The refit on all rows has no states.
        if self.states is None:
            self.estimator.fit(*given, **params)
            return self
        place = Path(self.states) / f"{joblib.hash((X, y, params))}.joblib"
        amount = self.estimator.get_params()[self.resource]
        before, fitted = _read(place, self.estimator)
        if before < amount:
            rest = amount - before if before and not self._cumulative() else amount
            fitted.set_params(**{self.resource: rest}).fit(*given, **params)
            fitted.set_params(**{self.resource: amount})
            _write(place, amount, fitted)
        self.estimator = fitted
        return self

    def _cumulative(self) -> bool:
        """True if the resource includes what earlier fits did."""
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        owner, _, name = self.resource.rpartition("__")
        part = self.estimator.get_params()[owner] if owner else self.estimator
        boosted = HistGradientBoostingClassifier | HistGradientBoostingRegressor
        return name in CUMULATIVE or isinstance(part, boosted)


def _read(place: Path, unfitted: BaseEstimator) -> tuple[float, BaseEstimator]:
    """Return the amount of the resource that a saved state has had, and its estimator; 0 and the
    unfitted one if there is no state."""
    if not place.exists():
        return 0, unfitted
    try:
        amount, fitted = joblib.load(place)
    except Exception as error:
        warnings.warn(
            f"{place} cannot be read ({type(error).__name__}: {error}); this fold is fitted from scratch",
            stacklevel=3,
        )
        return 0, unfitted
    return amount, fitted


def _write(place: Path, amount: float, fitted: BaseEstimator) -> None:
    """Save a state; the previous one remains until this one is complete."""
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_name(f"{place.name}.{os.getpid()}")
    joblib.dump((amount, fitted), partial)
    os.replace(partial, place)
