"""`ScrimpSearchCV`: hyperparameter search for scikit-learn, in the place of `RandomizedSearchCV`.

    search = ScrimpSearchCV(SVC(), {"C": loguniform(1e-2, 1e3)}, n_trials=30, cv=5, seed=0)
    search.fit(X, y)
    search.best_params_, search.best_score_, search.predict(X_new)

scikit-learn does what it does in its own searches: folds, scorers, parallel fits, routed metadata,
``cv_results_`` and the refit. Which parameters come next is asked of a study, a batch at a time, so
that ``n_jobs`` processes have work. With a durable ``storage``, a search that was cut short goes on
where it was: rows of earlier runs are in ``cv_results_``, and are not fitted again.

With ``resource="n_samples"``, or an iteration parameter such as ``"n_estimators"``, poor
configurations get little of it, as in `HalvingRandomSearchCV`: each evaluation fits anew with as
much as it is granted, and all of them together spend what ``n_trials`` full evaluations would.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

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
from scrimp.history.trial import Trial
from scrimp.integrations.foreign_space import Labels, objects_of, space_of
from scrimp.integrations.subsampled_folds import SubsampledFolds
from scrimp.space.space import Space
from scrimp.tuning.catalog import Method
from scrimp.tuning.studies import create_study
from scrimp.tuning.study import Study

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.model_selection import BaseCrossValidator

__all__ = ["ScrimpSearchCV"]

Results = dict[str, Any]
Scoring = str | Callable[..., float] | Sequence[str] | Mapping[str, Callable[..., float]] | None
"""What scikit-learn takes for ``scoring``."""
Evaluate = Callable[..., Results]

ALIKE = 3  # failures before anything worked that end a search
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
        try:
            super().fit(X, y, **params)
        finally:
            del self._data
        return self

    def __getstate__(self) -> dict[str, object]:
        """A search is pickled for its worker processes and by users: without the study, which
        stays in its storage, and without the data."""
        state: dict[str, object] = super().__getstate__()
        return {key: value for key, value in state.items() if key not in ("study_", "_data")}

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
        search = _Search(self, self.study_, labels, evaluate_candidates)
        self._earlier = search.earlier()
        self._failed: list[tuple[dict[str, object], float]] = []
        search.run(self.n_trials)

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
        self, candidate_params: Any, n_splits: int, out: Any, more: Any = None
    ) -> Results:
        """Rows of earlier runs stand before those of this one, and failed ones after them."""
        self._formatted = candidate_params, n_splits, out, more
        nothing = [_nothing(out[0])] * n_splits
        failed = [_Row(params, resources, nothing) for params, resources in self._failed]
        params = [row.params for row in self._earlier]
        params += [*candidate_params, *(row.params for row in failed)]
        fits = [fit for row in self._earlier for fit in row.fits]
        fits += [*out, *(fit for row in failed for fit in row.fits)]
        joined = {
            key: [row.resources for row in self._earlier]
            + [*values, *(row.resources for row in failed)]
            for key, values in (more or {}).items()
        }
        results: Results = super()._format_results(params, n_splits, fits, joined)
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


@dataclass(frozen=True)
class _Row:
    """An evaluation: its parameters, its resources, what each fold gave."""

    params: dict[str, object]
    resources: float
    fits: list[dict[str, Any]]


@dataclass
class _Search:
    """The conversation between a study and ``evaluate_candidates``."""

    owner: ScrimpSearchCV
    study: Study
    labels: Labels
    evaluate: Evaluate
    results: Results = field(default_factory=dict)

    def earlier(self) -> list[_Row]:
        """What earlier runs evaluated, by the metrics that were told."""
        rows = []
        for trial in self.study.trials:
            for point in trial.curve:
                splits = _stored_folds(point.metrics)
                if splits:
                    params = self._candidate(trial, point.step)
                    rows.append(_Row(params, point.step, splits))
        return rows

    def run(self, n_trials: int) -> None:
        """Ask, evaluate, tell, until as much was spent as ``n_trials`` full evaluations spend."""
        budget = self.study.budget
        full = 1.0 if budget is None else budget.maximum
        spent = sum(row.resources if budget else 1.0 for row in self.owner._earlier)
        spent += sum(trial.status == "failed" for trial in self.study.trials) * full
        waiting = [trial for trial in self.study.trials if trial.status == "running"]
        count = 1
        while spent < n_trials * full - 1e-9:
            room = math.ceil((n_trials * full - spent) / full)
            batch = waiting or self.study.ask(min(count, room))
            waiting = []
            for grant in sorted({trial.granted for trial in batch}):
                self._evaluate_alike([trial for trial in batch if trial.granted == grant], grant)
            spent += sum(trial.granted if budget else 1.0 for trial in batch)
            count = max(1, joblib.effective_n_jobs(self.owner.n_jobs) // self._folds())
        if not self.results:
            self._repeat_best()
        elif self.owner._failed:  # after the last rows were formatted
            self.results.update(self.owner._format_results(*self.owner._formatted))

    def _folds(self) -> int:
        """The number of folds, once one evaluation is there."""
        return max(
            (int(found[1]) + 1 for key in self.results if (found := FOLD.fullmatch(key))), default=1
        )

    def _evaluate_alike(self, trials: list[Trial], grant: float) -> None:
        """Evaluate and tell trials of the same grant."""
        candidates = [self._candidate(trial, grant) for trial in trials]
        try:
            self.results = self._scored(candidates, grant)
        except ValueError as error:  # scikit-learn: every fit of the batch failed
            if "fits failed" not in str(error):
                raise
            self.owner._failed += [(params, int(grant)) for params in candidates]
            reason = str(error).strip().splitlines()[-1]
            for trial in trials:
                self.study.tell(trial, state="failed", message=reason)
            if not self.results and not self.owner._earlier and len(self.owner._failed) >= ALIKE:
                raise
            return
        first = len(self.owner._earlier) + len(self.owner._formatted[0]) - len(trials)
        for place, trial in enumerate(trials, start=first):
            self._tell(trial, place)

    def _scored(self, candidates: list[dict[str, object]], grant: float) -> Results:
        """The results so far, with these candidates."""
        if self.study.budget is None:
            return self.evaluate(candidates)
        more = {"n_resources": [int(grant)] * len(candidates)}
        if self.owner.resource != "n_samples":
            return self.evaluate(candidates, more_results=more)
        classes = is_classifier(self.owner.estimator)
        whole = check_cv(self.owner.cv, self.owner._data[1], classifier=classes)
        folds = SubsampledFolds(whole, grant / self.study.budget.maximum, self.owner.seed)
        return self.evaluate(candidates, cv=folds, more_results=more)

    def _candidate(self, trial: Trial, grant: float) -> dict[str, object]:
        """Parameters for the estimator."""
        params = objects_of(trial.config, self.labels)
        if self.owner.resource in (None, "n_samples"):
            return params
        return {**params, str(self.owner.resource): int(grant)}

    def _tell(self, trial: Trial, place: int) -> None:
        """Tell one row of the results, with all that a later run needs to show it."""
        metrics = {
            key: float(values[place])
            for key, values in self.results.items()
            if FOLD.fullmatch(key) or key in ("mean_fit_time", "mean_score_time")
        }
        score = float(self.results[f"mean_test_{self.study.metric}"][place])
        if math.isfinite(score):
            finite = {key: value for key, value in metrics.items() if math.isfinite(value)}
            self.study.tell(trial, {**finite, self.study.metric: score})
        else:
            message = f"the mean score over the folds is {score}; scikit-learn warned why"
            self.study.tell(trial, state="failed", message=message)

    def _repeat_best(self) -> None:
        """All was evaluated by earlier runs: scikit-learn wants one evaluation, so the best one is
        made again, in the place of its row."""
        rows, metric = self.owner._earlier, self.study.metric
        if not rows:
            raise StudyError(
                f"all {len(self.study.trials)} trials of study {self.study.name!r} failed; ask for"
                " more with n_trials, or take another study_name"
            )
        most = max(row.resources for row in rows)
        best = max(
            (row for row in rows if row.resources == most),
            key=lambda row: float(np.mean([_score(fit, metric) for fit in row.fits])),
        )
        rows.remove(best)
        self.results = self._scored([best.params], best.resources)


def _nothing(fit: Mapping[str, Any]) -> dict[str, Any]:
    """A fold of a fit that failed, in the shape of another fold.

    >>> _nothing({"fit_time": 1.0, "test_scores": {"accuracy": 1.0}})
    {'fit_time': nan, 'test_scores': {'accuracy': nan}}
    """
    return {
        key: dict.fromkeys(value, math.nan) if isinstance(value, Mapping) else math.nan
        for key, value in fit.items()
    }


def _score(fit: Mapping[str, Any], metric: str) -> float:
    """A fold's score by the metric in question."""
    scores = fit["test_scores"]
    return float(scores[metric] if isinstance(scores, Mapping) else scores)


FOLD = re.compile(r"split(\d+)_(test|train)_(.+)")


def _stored_folds(metrics: Mapping[str, float | None]) -> list[dict[str, Any]]:
    """What scikit-learn keeps of each fold, from the metrics of a report.

    >>> _stored_folds({"split0_test_score": 0.5, "mean_fit_time": 2.0, "mean_score_time": 1.0})
    [{'fit_time': 2.0, 'score_time': 1.0, 'test_scores': 0.5}]
    """
    found: dict[int, dict[str, dict[str, float]]] = {}
    for key, value in metrics.items():
        if (parts := FOLD.fullmatch(key)) is not None and value is not None:
            scores = found.setdefault(int(parts[1]), {}).setdefault(f"{parts[2]}_scores", {})
            scores[parts[3]] = value
    times = {name: metrics.get(f"mean_{name}") or 0.0 for name in ("fit_time", "score_time")}
    return [
        {
            **times,
            **{
                kind: by_name.get("score", by_name) if len(by_name) == 1 else by_name
                for kind, by_name in found[fold].items()
            },
        }
        for fold in sorted(found)
    ]
