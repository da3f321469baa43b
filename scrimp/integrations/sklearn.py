"""`ScrimpSearchCV`: hyperparameter search for scikit-learn, in the place of `RandomizedSearchCV`.

    search = ScrimpSearchCV(SVC(), {"C": loguniform(1e-2, 1e3)}, n_trials=30, cv=5, seed=0)
    search.fit(X, y)
    search.best_params_, search.best_score_, search.predict(X_new)

scikit-learn does what it does in its own searches: folds, scorers, parallel fits, routed metadata,
``cv_results_`` and the refit. Which parameters come next is asked of a study, a batch at a time, so
that ``n_jobs`` processes have work. With a durable ``storage``, a search that was cut short goes on
where it was: rows of earlier runs are in ``cv_results_``, and are not fitted again.

With ``resource="n_samples"``, or an iteration parameter such as ``"n_estimators"``, poor
configurations get little of it, as in `HalvingRandomSearchCV`: each evaluation fits with as much as
it is granted, and all of them together spend what ``n_trials`` full evaluations would. An estimator
with ``warm_start=True`` goes on from the fits that it had, fold by fold; any other is fitted anew.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

try:
    import joblib
    from sklearn.base import is_classifier
    from sklearn.model_selection import check_cv
    from sklearn.model_selection._search import BaseSearchCV
except ModuleNotFoundError as error:
    raise ImportError(
        f"ScrimpSearchCV needs {error.name}, not installed here; pip install 'scrimp[sklearn]'"
    ) from None

from numpy.typing import ArrayLike

from scrimp.checks import is_whole
from scrimp.errors import StudyError
from scrimp.history.problem import Budget
from scrimp.integrations.continued_fits import STATES, ContinuedFit, warm_started
from scrimp.integrations.foreign_space import space_of
from scrimp.integrations.search_rows import Fold, Results, SearchRows
from scrimp.integrations.search_talk import Evaluate, SearchTalk, TalkSettings
from scrimp.integrations.subsampled_folds import SubsampledFolds
from scrimp.space.space import Space
from scrimp.tuning.catalog import Method
from scrimp.tuning.studies import create_study

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.model_selection import BaseCrossValidator

__all__ = ["ScrimpSearchCV"]

Scoring = str | Callable[..., float] | Sequence[str] | Mapping[str, Callable[..., float]] | None
"""What scikit-learn takes for ``scoring``."""

STEPS = 27  # the first grant of a resource is a 27th of all, three rungs below it


class ScrimpSearchCV(BaseSearchCV):  # type: ignore[misc]
    """A search over ``space`` by Bayesian optimization, with the interface of scikit-learn's own.

    ``space`` is a `scrimp.Space`, or a mapping from names to parameters of scrimp, lists, or
    distributions of scipy.stats; names of nested parameters are written with ``__``. ``method`` is
    any method of scrimp; left out, ``auto``, and ``mobster-joint`` with a resource. ``storage`` is
    a URL such as ``"sqlite:///search.db"``; the study in it is called ``study_name``, or after the
    estimator and the data. The study is `study_` after the fit.

    With several ``scoring`` metrics, ``refit`` names the one to optimize. ``n_trials`` counts
    configurations; with a ``resource``, full evaluations' worth of it.
    """

    estimator: "BaseEstimator"

    def __init__(  # noqa: PLR0913 - the front door, with the names of scikit-learn
        self,
        estimator: "BaseEstimator",
        space: Space | Mapping[str, object],
        *,
        n_trials: int = 30,
        method: str | Method | Mapping[str, object] | None = None,
        resource: str | None = None,
        min_resources: int | None = None,
        max_resources: int | None = None,
        storage: str = "memory://",
        study_name: str | None = None,
        seed: int | None = None,
        scoring: Scoring = None,
        n_jobs: int | None = None,
        refit: bool | str | Callable[..., int] = True,
        cv: "int | BaseCrossValidator | Iterable[tuple[ArrayLike, ArrayLike]] | None" = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: float | Literal["raise"] = np.nan,
        return_train_score: bool = False,
    ) -> None:
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.space = space
        self.n_trials = n_trials
        self.method = method
        self.resource = resource
        self.min_resources = min_resources
        self.max_resources = max_resources
        self.storage = storage
        self.study_name = study_name
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: object) -> "ScrimpSearchCV":
        """Search, and fit the best configuration on all of the data; ``params`` are routed as
        scikit-learn routes them."""
        if not is_whole(self.n_trials, least=1):
            raise StudyError(f"n_trials is {self.n_trials!r}; it must be a positive integer")
        self._data = X, y
        estimator = self.estimator
        if self._continued():
            self.estimator = ContinuedFit(estimator, str(self.resource))
        try:
            super().fit(X, y, **params)
        finally:
            self.estimator = estimator
            del self._data
        refitted = vars(self).get("best_estimator_")
        if isinstance(refitted, ContinuedFit):
            self.best_estimator_ = refitted.estimator
        return self

    def __getstate__(self) -> dict[str, object]:
        """A search is pickled for its worker processes and by users: without the study, which
        stays in its storage, and without the data."""
        state: dict[str, object] = super().__getstate__()
        return {
            key: value for key, value in state.items() if key not in ("study_", "_data", "_rows")
        }

    def _run_search(self, evaluate_candidates: Evaluate) -> None:
        """What scikit-learn calls to have candidates evaluated."""
        space, labels = space_of(self.space)
        self.study_ = create_study(
            self.study_name or self._name(),
            space,
            metric=self._metric(),
            direction="maximize",
            budget=self._budget(),
            method=self.method or ("auto" if self.resource is None else "mobster-joint"),
            storage=self.storage,
            load_if_exists=True,
            seed=self.seed,
        )
        parameter = None if self.resource == "n_samples" else self.resource
        self._rows = SearchRows()
        settings = TalkSettings(
            labels,
            parameter,
            isinstance(self.estimator, ContinuedFit),
            self.n_jobs,
            self._subsampled if self.resource == "n_samples" else None,
            self._formatted,
        )
        SearchTalk(self.study_, evaluate_candidates, self._rows, settings).run(self.n_trials)

    def _continued(self) -> bool:
        """Whether fits go on from the ones before."""
        if self.resource in (None, "n_samples"):
            return False
        return warm_started(self.estimator, str(self.resource))

    def _subsampled(self, grant: float) -> SubsampledFolds:
        """The folds with a grant of rows."""
        rows = self.max_resources or np.shape(self._data[0])[0]
        classes = is_classifier(self.estimator)
        whole = check_cv(self.cv, self._data[1], classifier=classes)
        return SubsampledFolds(whole, grant / rows, self.seed)

    def _metric(self) -> str:
        """The scorer to optimize: the one that chooses what is refitted."""
        several = isinstance(self.scoring, list | tuple | set | Mapping)
        if several and not isinstance(self.refit, str):
            raise StudyError(
                f"refit is {self.refit!r} with several metrics; name the one to optimize, such as"
                f" refit={next(iter(self.scoring))!r}"
            )
        return self.refit if isinstance(self.refit, str) else "score"

    def _name(self) -> str:
        """After the estimator; in a storage that lasts, after the data too, so that searches on
        other data are other studies."""
        name = type(self.estimator).__name__
        return name if self.storage == "memory://" else f"{name}-{joblib.hash(self._data)[:8]}"

    def _budget(self) -> Budget | None:
        """From a 27th of the resource to all of it, unless told otherwise."""
        if self.resource is None:
            if self.min_resources is not None or self.max_resources is not None:
                raise StudyError(
                    "min_resources and max_resources belong to a resource; name it, such as"
                    " resource='n_samples'"
                )
            return None
        if self.resource != "n_samples" and self.resource not in self.estimator.get_params():
            raise StudyError(
                f"resource is {self.resource!r}; it must be 'n_samples' or a parameter of"
                f" {type(self.estimator).__name__}"
            )
        rows = np.shape(self._data[0])[0] if self.resource == "n_samples" else None
        highest = self.max_resources or rows
        if highest is None:
            raise StudyError(
                f"max_resources is missing; say how many {self.resource} a full training has"
            )
        return Budget(self.resource, self.min_resources or max(1, highest // STEPS), highest)

    def _format_results(
        self,
        candidate_params: Sequence[dict[str, object]],
        n_splits: int,
        out: Sequence[Fold],
        more_results: Mapping[str, Sequence[float]] | None = None,
    ) -> Results:
        """The newest rows alone, as long as the search goes on: formatting all of them after each
        evaluation would take time that grows with the square of their number."""
        self._rows.evaluated = candidate_params, n_splits, out, more_results
        results: Results = super()._format_results(*self._rows.untold(hidden=STATES))
        return results

    def _formatted(self) -> Results:
        """``cv_results_``: rows of earlier runs stand before those of this one, and failed ones
        after them."""
        results: Results = super()._format_results(*self._rows.joined(hidden=STATES))
        return results

    @staticmethod
    def _select_best_index(refit: object, refit_metric: str, results: Results) -> int:
        """With a resource, the best of those that had the most of it: scores on little of it are
        no match for them."""
        if callable(refit) or "n_resources" not in results:
            return int(BaseSearchCV._select_best_index(refit, refit_metric, results))
        scores = np.nan_to_num(results[f"mean_test_{refit_metric}"], nan=-np.inf)
        most = results["n_resources"] == results["n_resources"].max()
        return int(np.where(most, scores, -np.inf).argmax())
