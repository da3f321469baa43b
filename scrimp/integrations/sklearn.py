"""`ScrimpSearchCV`: hyperparameter search for scikit-learn, a replacement of `RandomizedSearchCV`.

    search = ScrimpSearchCV(SVC(), {"C": loguniform(1e-2, 1e3)}, n_trials=30, cv=5, seed=0)
    search.fit(X, y)
    search.best_params_, search.best_score_, search.predict(X_new)

scikit-learn does the same as in its own searches: folds, scorers, parallel fits, routed metadata,
``cv_results_`` and the refit. A study chooses the parameters, in batches that keep ``n_jobs``
processes busy. With a durable ``storage``, an interrupted search resumes: rows of earlier runs are
in ``cv_results_``, and are not fitted again.

With ``resource="n_samples"``, or an iteration parameter such as ``"n_estimators"``, poor
configurations get less of it, as in `HalvingRandomSearchCV`: each evaluation fits with its grant,
and all of them together spend what ``n_trials`` full evaluations would. An estimator with
``warm_start=True`` continues its previous fit in each fold; any other is fitted from scratch.
"""

import copy
import math
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scrimp.checks import is_whole
from scrimp.errors import StudyError
from scrimp.integrations.extras import extra
from scrimp.integrations.foreign_space import Labels, objects_of, space_of
from scrimp.methods.named_methods import Method
from scrimp.space.space import Space
from scrimp.storage.open import without_secrets
from scrimp.study.decisions import misfit
from scrimp.study.studies import create_study
from scrimp.study.study import Study
from scrimp.study.workers import open_trials
from scrimp.study_log.problem import Budget
from scrimp.study_log.trial import Trial

with extra("sklearn", "ScrimpSearchCV"):
    import joblib
    from sklearn.base import is_classifier
    from sklearn.model_selection import check_cv
    from sklearn.model_selection._search import BaseSearchCV

    from scrimp.integrations.continued_fits import STATES, ContinuedFit, warm_started

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.model_selection import BaseCrossValidator


@dataclass(frozen=True)
class SubsampledFolds:
    """Folds whose training part is cut to a share of its rows, always the same rows."""

    folds: "BaseCrossValidator"
    share: float
    seed: int | None

    def get_n_splits(self, *args: object, **params: object) -> int:
        """Return the number of folds."""
        return int(self.folds.get_n_splits(*args, **params))

    def split(
        self, X: ArrayLike, y: ArrayLike | None = None, **params: object
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the reduced training rows and the test rows of each fold."""
        for number, (train, test) in enumerate(self.folds.split(X, y, **params)):
            order = np.random.default_rng([self.seed or 0, number]).permutation(train)
            yield order[: max(1, math.ceil(self.share * len(train)))], test


Results = dict[str, NDArray[np.float64]]
"""The columns of ``cv_results_``."""
Fold = dict[str, float | dict[str, float]]
"""Times and scores of one fold; scores by name if there are several metrics."""
Evaluated = tuple[
    Sequence[dict[str, object]], int, Sequence[Fold], Mapping[str, Sequence[float]] | None
]
"""Candidates, number of folds, the results of all folds, further columns."""
FOLD = re.compile(r"split(\d+)_(test|train)_(.+)")


@dataclass(frozen=True)
class SearchRow:
    """An evaluation: its parameters, its resources, and the result of each fold."""

    params: dict[str, object]
    resources: float
    fits: list[Fold]


@dataclass
class SearchRows:
    """The rows that scikit-learn does not have: evaluations of earlier runs, and those with only
    failed fits, which have no folds. ``evaluated`` is what scikit-learn has; the study was told its
    first ``told`` rows. With ``repeats``, it is a repeated evaluation of an earlier run, which is not
    shown.
    """

    earlier: list[SearchRow] = field(default_factory=list)
    failed: list[SearchRow] = field(default_factory=list)
    evaluated: Evaluated | None = None
    told: int = 0
    repeats: bool = False

    def untold(self) -> Evaluated:
        """Return the rows that the study has not been told."""
        assert self.evaluated is not None
        candidates, n_splits, out, more = self.evaluated
        rest = {key: values[self.told :] for key, values in (more or {}).items()}
        return _shown(candidates[self.told :]), n_splits, out[self.told * n_splits :], rest

    def joined(self) -> Evaluated:
        """Return all rows for scikit-learn to format: earlier ones, those of this run, failed ones."""
        assert self.evaluated is not None
        candidates, n_splits, out, more = self.evaluated
        blank = blank_fold(out[0])
        # Rows of another shape were not written by this search.
        shape = [_scores(blank)] * n_splits
        rows = [row for row in self.earlier if list(map(_scores, row.fits)) == shape]
        if not self.repeats:
            resources = (more or {}).get("n_resources", [1.0] * len(candidates))
            fits = (list(out[first : first + n_splits]) for first in range(0, len(out), n_splits))
            rows += map(SearchRow, candidates, resources, fits)
        rows += [replace(row, fits=[blank] * n_splits) for row in self.failed]
        return (
            _shown([row.params for row in rows]),
            n_splits,
            [fit for row in rows for fit in row.fits],
            {"n_resources": [row.resources for row in rows]} if more else {},
        )


def _shown(params: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """Return the parameters without the folder of a trial's states."""
    return [{key: value for key, value in one.items() if key != STATES} for one in params]


def blank_fold(fit: Fold) -> Fold:
    """Return the fold of a failed fit, in the shape of another fold.

    >>> blank_fold({"fit_time": 1.0, "test_scores": {"accuracy": 1.0}})
    {'fit_time': nan, 'test_scores': {'accuracy': nan}}
    """
    return {
        key: dict.fromkeys(value, math.nan) if isinstance(value, Mapping) else math.nan
        for key, value in fit.items()
    }


def _scores(fit: Fold) -> dict[str, list[str]]:
    """Return the names of the scores in a fold."""
    return {
        key: sorted(scores) if isinstance(scores := fit[key], Mapping) else []
        for key in ("test_scores", "train_scores")
        if key in fit
    }


def stored_folds(metrics: Mapping[str, float | None]) -> list[Fold]:
    """Return the folds in the metrics of a report.

    >>> stored_folds({"split0_test_score": 0.5, "mean_fit_time": 2.0, "mean_score_time": 1.0})
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


Evaluate = Callable[..., Results]

MAX_FIRST_FAILURES = 3
"""A search ends after this many failures without a success."""


@dataclass
class SearchTalk:
    """The exchange between a study and the function that evaluates candidates.

    ``resource`` is the parameter of the estimator that grants set; None for rows of the data or no
    budget. With ``continued``, a fit continues the previous one. ``folds`` returns the folds of a
    grant; None for those of the search. ``formatted`` returns the results of all rows, while
    ``evaluate`` returns those of the newest only.
    """

    study: Study
    evaluate: Evaluate
    rows: SearchRows
    labels: Labels
    formatted: Callable[[], Results]
    resource: str | None = None
    continued: bool = False
    n_jobs: int | None = None
    folds: Callable[[float], object] | None = None
    results: Results = field(default_factory=dict, init=False)
    states: Path = field(init=False)

    def run(self, n_trials: int) -> None:
        """Ask, evaluate and tell until what ``n_trials`` full evaluations cost is spent."""
        waiting = open_trials(self.study)
        self.rows.earlier += self._earlier()
        full = 1.0 if self.study.budget is None else self.study.budget.maximum
        spent, count = self._spent_before(full), 1
        with tempfile.TemporaryDirectory(prefix="scrimp-folds-") as folder:
            self.states = Path(folder)
            while spent < n_trials * full - 1e-9:
                room = math.ceil((n_trials * full - spent) / full)
                batch = waiting or self.study.ask(min(count, room))
                waiting = []
                spent += sum(self._price(trial) for trial in batch)
                for grant in sorted({trial.granted for trial in batch}):
                    alike = [trial for trial in batch if trial.granted == grant]
                    self._evaluate_alike(alike, grant)
                count = max(1, joblib.effective_n_jobs(self.n_jobs) // self._fold_count())
            if not self.results:
                self._repeat_one()
        self.results.update(self.formatted())

    def _earlier(self) -> list[SearchRow]:
        """Return the evaluations of earlier runs, from the metrics in the log. Trials that do not fit
        the space are left out: the best row is refitted."""
        return [
            SearchRow(self._candidate(trial, point.step), point.step, folds)
            for trial in self.study.trials
            if not misfit(self.study.history, trial)
            for point in trial.curve
            if (folds := stored_folds(point.metrics))
        ]

    def _spent_before(self, full: float) -> float:
        """Return what earlier runs spent; a failed trial counts as a full one."""
        spent = sum(trial.status == "failed" for trial in self.study.trials) * full
        if self.continued:
            return spent + sum(trial.budget for trial in self.study.trials)
        return spent + sum(row.resources if self.study.budget else 1.0 for row in self.rows.earlier)

    def _price(self, trial: Trial) -> float:
        """Return the cost of evaluating a trial up to its grant."""
        if self.study.budget is None:
            return 1.0
        return trial.granted - (trial.budget if self.continued else 0.0)

    def _fold_count(self) -> int:
        """Return the number of folds; 1 before the first evaluation."""
        return max(
            (int(found[1]) + 1 for key in self.results if (found := FOLD.fullmatch(key))), default=1
        )

    def _evaluate_alike(self, trials: list[Trial], grant: float) -> None:
        """Evaluate and tell trials of the same grant."""
        candidates = [self._candidate(trial, grant) for trial in trials]
        if self.continued:
            for trial, params in zip(trials, candidates, strict=True):
                params[STATES] = str(self.states / str(trial.id))
        try:
            self.results = self._scored(candidates, grant)
        except ValueError as error:
            # scikit-learn raises this if every fit of the batch failed.
            if "fits failed" not in str(error):
                raise
            self.rows.failed += [SearchRow(params, int(grant), []) for params in candidates]
            reason = str(error).strip().splitlines()[-1]
            for trial in trials:
                self.study.tell(trial, state="failed", message=reason)
            tried = self.results or self.rows.earlier
            if not tried and len(self.rows.failed) >= MAX_FIRST_FAILURES:
                raise
            return
        for place, trial in enumerate(trials):
            self._tell(trial, place)
        self.rows.told += len(trials)

    def _scored(self, candidates: list[dict[str, object]], grant: float) -> Results:
        """Evaluate candidates, and return the results."""
        given: dict[str, object] = {}
        if self.study.budget is not None:
            given["more_results"] = {"n_resources": [int(grant)] * len(candidates)}
        if self.folds is not None:
            given["cv"] = self.folds(grant)
        return self.evaluate(candidates, **given)

    def _candidate(self, trial: Trial, grant: float) -> dict[str, object]:
        """Return the parameters for the estimator."""
        own = {} if self.resource is None else {self.resource: int(grant)}
        return objects_of(trial.config, self.labels) | own

    def _tell(self, trial: Trial, place: int) -> None:
        """Tell the study one of the newest rows, with everything that a later run needs to show it."""
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
            message = f"the mean score over the folds is {score}; see scikit-learn's warnings"
            self.study.tell(trial, state="failed", message=message)
        budget = self.study.budget
        if self.continued and budget is not None and trial.granted >= budget.maximum:
            shutil.rmtree(self.states / str(trial.id), ignore_errors=True)

    def _repeat_one(self) -> None:
        """Repeat the evaluation with the least resources, which is not shown: scikit-learn needs one
        although earlier runs evaluated everything."""
        if not self.rows.earlier:
            raise StudyError(
                f"all {len(self.study.trials)} trials of study {self.study.name!r} failed; increase"
                " n_trials, or use another study_name"
            )
        least = min(self.rows.earlier, key=lambda row: row.resources)
        self.rows.repeats = True
        self.results = self._scored([least.params], least.resources)


Scoring = str | Callable[..., float] | Sequence[str] | Mapping[str, Callable[..., float]] | None
"""The types of scikit-learn's ``scoring``."""

PROTOCOL = "scikit-learn"
"""The attribute of a study that says how its scores were computed."""

FIRST_GRANT_DIVISOR = 27
"""The first grant of a resource is 1/27 of it: three rungs below the full one."""


class ScrimpSearchCV(BaseSearchCV):  # type: ignore[misc]
    """A search over ``space`` by Bayesian optimization, with the interface of scikit-learn's own.

    ``space`` is a `scrimp.Space`, or a mapping from names to parameters of scrimp, lists, or
    distributions of scipy.stats; nested parameters are named with ``__``. ``method`` is any method
    of scrimp; the default is ``auto``, with a resource ``mobster-joint``. ``storage`` is a URL such
    as ``"sqlite:///search.db"``; the study in it is called ``study_name``, by default after the
    estimator and the data. After the fit, the study is `study_`.

    With several ``scoring`` metrics, ``refit`` names the one to optimize. ``n_trials`` is the number
    of configurations; with a ``resource``, the cost in full evaluations.
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
        """Search, and fit the best configuration on all data; scikit-learn routes ``params``."""
        if not is_whole(self.n_trials, least=1):
            raise StudyError(f"n_trials is {self.n_trials!r}; it must be a positive integer")
        self._data = X, y
        estimator = self.estimator
        iterates = self.resource not in (None, "n_samples")
        if iterates and warm_started(estimator, str(self.resource)):
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

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        shown = copy.copy(self)
        shown.storage = without_secrets(self.storage)
        return str(BaseSearchCV.__repr__(shown, N_CHAR_MAX))

    def __getstate__(self) -> dict[str, object]:
        """Leave out the study, which is in its storage, and the data."""
        state: dict[str, object] = super().__getstate__()
        return {
            key: value for key, value in state.items() if key not in ("study_", "_data", "_rows")
        }

    def _run_search(self, evaluate_candidates: Evaluate) -> None:
        """Called by scikit-learn with the function that evaluates candidates."""
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
        self._check_protocol()
        by_rows = self.resource == "n_samples"
        self._rows = SearchRows()
        SearchTalk(
            self.study_,
            evaluate_candidates,
            self._rows,
            labels,
            self._formatted,
            resource=None if by_rows else self.resource,
            continued=isinstance(self.estimator, ContinuedFit),
            n_jobs=self.n_jobs,
            folds=self._subsampled if by_rows else None,
        ).run(self.n_trials)

    def _check_protocol(self) -> None:
        """Record how scores are computed in the study; `StudyError` if an earlier search of it
        computed them in another way, because scores would not be comparable."""
        cv = self.cv
        if not isinstance(cv, Iterator | Sequence):
            cv = check_cv(cv, self._data[1], classifier=is_classifier(self.estimator))
        given = {
            "cv": f"{len(cv)} folds" if isinstance(cv, Sequence) else _text(cv),
            "scoring": _text(self.scoring),
            "return_train_score": _text(self.return_train_score),
        }
        known = self.study_.user_attrs.get(PROTOCOL)
        if known is None:
            self.study_.set_user_attr(PROTOCOL, given)
        elif known != given:
            before = known if isinstance(known, Mapping) else {}
            name = next((name for name in given if before.get(name) != given[name]), "cv")
            raise StudyError(
                f"study {self.study_.name!r} was searched with {name}={before.get(name)}, and this"
                f" search has {name}={given[name]}; use the same, or another study_name"
            )

    def _subsampled(self, grant: float) -> SubsampledFolds:
        """Return the folds with a grant of rows."""
        rows = self.max_resources or np.shape(self._data[0])[0]
        classes = is_classifier(self.estimator)
        whole = check_cv(self.cv, self._data[1], classifier=classes)
        return SubsampledFolds(whole, grant / rows, self.seed)

    def _metric(self) -> str:
        """Return the name of the metric to optimize, the one that chooses the refit."""
        several = isinstance(self.scoring, list | tuple | set | Mapping)
        if several and not isinstance(self.refit, str):
            raise StudyError(
                f"refit is {self.refit!r} with several metrics; name the one to optimize, such as"
                f" refit={next(iter(self.scoring))!r}"
            )
        return self.refit if isinstance(self.refit, str) else "score"

    def _name(self) -> str:
        """Return the default name of the study; in a durable storage it depends on the data, so that
        searches on other data are other studies."""
        name = type(self.estimator).__name__
        return name if self.storage == "memory://" else f"{name}-{joblib.hash(self._data)[:8]}"

    def _budget(self) -> Budget | None:
        """Return the budget; by default from 1/27 of the resource to all of it."""
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
                f"max_resources is missing; give the {self.resource} of a full training"
            )
        return Budget(
            self.resource, self.min_resources or max(1, highest // FIRST_GRANT_DIVISOR), highest
        )

    def _format_results(
        self,
        candidate_params: Sequence[dict[str, object]],
        n_splits: int,
        out: Sequence[Fold],
        more_results: Mapping[str, Sequence[float]] | None = None,
    ) -> Results:
        """Format only the newest rows during the search: formatting all of them after each evaluation
        would take time quadratic in their number."""
        self._rows.evaluated = candidate_params, n_splits, out, more_results
        results: Results = super()._format_results(*self._rows.untold())
        return results

    def _formatted(self) -> Results:
        """Return ``cv_results_``: rows of earlier runs, then of this one, then failed ones."""
        results: Results = super()._format_results(*self._rows.joined())
        return results

    @staticmethod
    def _select_best_index(refit: object, refit_metric: str, results: Results) -> int:
        """Return the best row, among those with the most of a resource."""
        if callable(refit) or "n_resources" not in results:
            return int(BaseSearchCV._select_best_index(refit, refit_metric, results))
        scores = np.nan_to_num(results[f"mean_test_{refit_metric}"], nan=-np.inf)
        most = results["n_resources"] == results["n_resources"].max()
        return int(np.where(most, scores, -np.inf).argmax())


def _text(value: object) -> str:
    """Return a value as text that is the same in every process."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_text(value[name])}" for name in sorted(value))
    if isinstance(value, list | tuple | set):
        return ", ".join(sorted(map(str, value)))
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))
