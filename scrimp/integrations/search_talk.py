"""The conversation between a study and scikit-learn's ``evaluate_candidates``: ask, evaluate, tell."""

import math
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import joblib

from scrimp.errors import StudyError
from scrimp.history.trial import Trial
from scrimp.integrations.continued_fits import STATES
from scrimp.integrations.foreign_space import Labels, objects_of
from scrimp.integrations.search_rows import FOLD, Results, SearchRow, SearchRows, stored_folds
from scrimp.tuning.study import Study

__all__ = ["Evaluate", "SearchTalk", "TalkSettings"]

Evaluate = Callable[..., Results]

ALIKE = 3  # failures before anything worked that end a search


@dataclass(frozen=True)
class TalkSettings:
    """What a conversation is about.

    ``resource`` is a parameter of the estimator that grants set, None for rows of the data or no
    budget; ``continued`` says whether fits go on from the ones before; ``folds`` gives the folds of
    a grant, or None for those of the search. ``formatted`` makes the results of all rows; what
    `Evaluate` returns are those of the newest alone.
    """

    labels: Labels
    resource: str | None
    continued: bool
    n_jobs: int | None
    folds: Callable[[float], object] | None
    formatted: Callable[[], Results]


@dataclass
class SearchTalk:
    """A study, the function that evaluates candidates, and the rows that only the study knows."""

    study: Study
    evaluate: Evaluate
    rows: SearchRows
    settings: TalkSettings
    results: Results = field(default_factory=dict)
    states: Path = field(init=False)

    def run(self, n_trials: int) -> None:
        """Ask, evaluate, tell, until as much was spent as ``n_trials`` full evaluations spend."""
        with tempfile.TemporaryDirectory(prefix="scrimp-folds-") as folder:  # for its owner alone
            self.states = Path(folder)
            self._run(n_trials)

    def _run(self, n_trials: int) -> None:
        self.rows.earlier += self._earlier()
        budget = self.study.budget
        full = 1.0 if budget is None else budget.maximum
        spent = self._spent_before(full)
        waiting = [trial for trial in self.study.trials if trial.status == "running"]
        count = 1
        while spent < n_trials * full - 1e-9:
            room = math.ceil((n_trials * full - spent) / full)
            batch = waiting or self.study.ask(min(count, room))
            waiting = []
            spent += sum(self._price(trial) for trial in batch)
            for grant in sorted({trial.granted for trial in batch}):
                self._evaluate_alike([trial for trial in batch if trial.granted == grant], grant)
            count = max(1, joblib.effective_n_jobs(self.settings.n_jobs) // self._folds())
        if not self.results:
            self._repeat_one()
        self.results.update(self.settings.formatted())

    def _earlier(self) -> list[SearchRow]:
        """What earlier runs evaluated, by the metrics that were told."""
        return [
            SearchRow(self._candidate(trial, point.step), point.step, folds)
            for trial in self.study.trials
            for point in trial.curve
            if (folds := stored_folds(point.metrics))
        ]

    def _spent_before(self, full: float) -> float:
        """What earlier runs spent; a trial that failed counts as a full one."""
        spent = sum(trial.status == "failed" for trial in self.study.trials) * full
        if self.settings.continued:
            return spent + sum(trial.budget for trial in self.study.trials)
        return spent + sum(row.resources if self.study.budget else 1.0 for row in self.rows.earlier)

    def _price(self, trial: Trial) -> float:
        """What evaluating a trial up to its grant takes."""
        if self.study.budget is None:
            return 1.0
        return trial.granted - (trial.budget if self.settings.continued else 0.0)

    def _folds(self) -> int:
        """The number of folds, once one evaluation is there."""
        return max(
            (int(found[1]) + 1 for key in self.results if (found := FOLD.fullmatch(key))), default=1
        )

    def _evaluate_alike(self, trials: list[Trial], grant: float) -> None:
        """Evaluate and tell trials of the same grant."""
        candidates = [self._candidate(trial, grant) for trial in trials]
        if self.settings.continued:
            for trial, params in zip(trials, candidates, strict=True):
                params[STATES] = str(self.states / str(trial.id))
        try:
            self.results = self._scored(candidates, grant)
        except ValueError as error:  # scikit-learn: every fit of the batch failed
            if "fits failed" not in str(error):
                raise
            self.rows.failed += [(params, int(grant)) for params in candidates]
            reason = str(error).strip().splitlines()[-1]
            for trial in trials:
                self.study.tell(trial, state="failed", message=reason)
            if not self.results and not self.rows.earlier and len(self.rows.failed) >= ALIKE:
                raise
            return
        for place, trial in enumerate(trials):
            self._tell(trial, place)
        self.rows.told += len(trials)

    def _scored(self, candidates: list[dict[str, object]], grant: float) -> Results:
        """The results so far, with these candidates."""
        if self.study.budget is None:
            return self.evaluate(candidates)
        more = {"n_resources": [int(grant)] * len(candidates)}
        if self.settings.folds is None:
            return self.evaluate(candidates, more_results=more)
        return self.evaluate(candidates, cv=self.settings.folds(grant), more_results=more)

    def _candidate(self, trial: Trial, grant: float) -> dict[str, object]:
        """Parameters for the estimator."""
        params = objects_of(trial.config, self.settings.labels)
        if self.settings.resource is None:
            return params
        return {**params, self.settings.resource: int(grant)}

    def _tell(self, trial: Trial, place: int) -> None:
        """Tell one of the newest rows, with all that a later run needs to show it."""
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
        budget = self.study.budget
        if self.settings.continued and budget is not None and trial.granted >= budget.maximum:
            shutil.rmtree(self.states / str(trial.id), ignore_errors=True)  # it is at its end

    def _repeat_one(self) -> None:
        """All was evaluated by earlier runs: scikit-learn wants one evaluation, so the one with the
        least resources is made again, and not shown."""
        if not self.rows.earlier:
            raise StudyError(
                f"all {len(self.study.trials)} trials of study {self.study.name!r} failed; ask for"
                " more with n_trials, or take another study_name"
            )
        least = min(self.rows.earlier, key=lambda row: row.resources)
        self.rows.repeats = True
        self.results = self._scored([least.params], least.resources)
