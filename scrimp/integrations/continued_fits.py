"""Fits of scikit-learn that go on where the fit before ended: what a larger grant of iterations
means to an estimator with ``warm_start=True``.

    warm_started(SGDClassifier(warm_start=True), "max_iter")     # True
    ContinuedFit(SGDClassifier(warm_start=True), "max_iter")     # in the estimator's place

The state of every fold is a file in a folder that the search made for itself alone: reading it runs
what it says, so none is read that another process or an earlier one left. Its name is a checksum of
the rows, so a fold goes on from a fit on the very same rows or begins anew.
"""

import os
import warnings
from pathlib import Path
from typing import Any, Self

import joblib
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

__all__ = ["STATES", "ContinuedFit", "warm_started"]

STATES = "scrimp_states"  # the parameter that tells a fit the folder of its trial's states
WHOLE = {"n_estimators"}  # parameters that count what earlier fits did


def warm_started(estimator: BaseEstimator, resource: str) -> bool:
    """Whether the part of the estimator that ``resource`` belongs to has ``warm_start=True``."""
    owner = resource.rpartition("__")[0]
    params = estimator.get_params()
    return bool(params.get(f"{owner}__warm_start" if owner else "warm_start", False))


class ContinuedFit:
    """An estimator that takes up the state of its fold, adds what is missing of the resource, and
    keeps the new state. In everything else it is the estimator.

    ``n_estimators``, and ``max_iter`` of histogram boosting, say how many there are to be in the
    end; any other iteration parameter (``max_iter`` of SGDClassifier, of MLPClassifier) says how
    many a call of ``fit`` adds, and gets the difference.
    """

    def __init__(self, estimator: BaseEstimator, resource: str) -> None:
        self.estimator = estimator
        self.resource = resource
        self.states: str | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "estimator":  # asked for while it is unpickled
            raise AttributeError(name)
        return getattr(self.estimator, name)

    def __sklearn_clone__(self) -> "ContinuedFit":
        return ContinuedFit(clone(self.estimator), self.resource)

    def __sklearn_tags__(self) -> object:
        return self.estimator.__sklearn_tags__()

    def set_params(self, **params: object) -> Self:
        """Set the estimator's parameters, and the folder of the states, which is none of them."""
        states = params.pop(STATES, None)
        self.states = None if states is None else str(states)
        self.estimator.set_params(**params)
        return self

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: object) -> Self:
        """Fit up to the resource's value, from the state that there is."""
        given = (X,) if y is None else (X, y)
        if self.states is None:  # the refit on all rows
            self.estimator.fit(*given, **params)
            return self
        place = Path(self.states) / f"{joblib.hash((X, y, params))}.joblib"
        amount = self.estimator.get_params()[self.resource]
        before, fitted = _read(place, self.estimator)
        if before < amount:
            rest = amount - before if before and not self._counts_all() else amount
            fitted.set_params(**{self.resource: rest}).fit(*given, **params)
            fitted.set_params(**{self.resource: amount})
            _write(place, amount, fitted)
        self.estimator = fitted
        return self

    def _counts_all(self) -> bool:
        """Whether the resource counts what earlier fits did."""
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        owner, _, name = self.resource.rpartition("__")
        part = self.estimator.get_params()[owner] if owner else self.estimator
        boosted = HistGradientBoostingClassifier | HistGradientBoostingRegressor
        return name in WHOLE or isinstance(part, boosted)


def _read(place: Path, unfitted: BaseEstimator) -> tuple[float, BaseEstimator]:
    """How much of the resource a state has had, and its estimator; nothing and the unfitted one
    where there is none."""
    if not place.exists():
        return 0, unfitted
    try:
        amount, fitted = joblib.load(place)
    except Exception as error:
        warnings.warn(
            f"{place} cannot be read ({type(error).__name__}: {error}); this fold is fitted anew",
            stacklevel=3,
        )
        return 0, unfitted
    return amount, fitted


def _write(place: Path, amount: float, fitted: BaseEstimator) -> None:
    """Keep a state; the one before stays until this one is whole."""
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_name(f"{place.name}.{os.getpid()}")
    joblib.dump((amount, fitted), partial)
    os.replace(partial, place)
