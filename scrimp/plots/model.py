"""The loss models that pictures rest on.

`belief_of` is the study's own Gaussian process, or the default one where its method has none: what
a decision saw. `landscape_of` is a model of what the parameters do: of losses at one and the same
budget, since losses after 1 and after 81 epochs answer different questions. That budget is the
largest one that three quarters of the trials have reached: only few and good ones get far, and from
those alone nothing could be learned of the rest. Losses are standardised, diverged ones capped.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.encoding.encoding import Encoding, encoding_of
from scrimp.errors import StudyError
from scrimp.history.history import History
from scrimp.history.trial import Trial
from scrimp.suggesters.bayesian import BayesianSuggester, Belief
from scrimp.suggesters.model_fitting import ModelSettings, loss_model
from scrimp.surrogates.surrogate import Data, FittedSurrogate
from scrimp.tuning.study import Study

__all__ = ["Landscape", "belief_of", "comparison_budget", "landscape_of"]

MOST = 500
"""Observations a landscape rests on at most: the best half and the newest half."""

SETTINGS = ModelSettings(transform="standardise")


@dataclass(frozen=True)
class Landscape:
    """A fitted model of the loss after ``budget``, and what it rests on: rows (n, d) and losses
    (n,)."""

    encoding: Encoding
    model: FittedSurrogate
    data: Data
    budget: float

    @property
    def best(self) -> NDArray[np.float64]:
        """The row (d,) of the best configuration."""
        return np.asarray(self.data.x[int(np.argmin(self.data.y))])

    def resampled(self, count: int, rng: np.random.Generator) -> list[FittedSurrogate]:
        """The same hyperparameters on ``count`` random two thirds of the observations."""
        size = max(len(self.data) * 2 // 3, min(len(self.data), 2))
        chosen = [np.sort(rng.choice(len(self.data), size, replace=False)) for _ in range(count)]
        surrogate = loss_model(self.encoding.columns, SETTINGS)
        return [
            surrogate.restore(Data(self.data.x[rows], self.data.y[rows]), self.model.state)
            for rows in chosen
        ]


def belief_of(study: Study, history: History) -> Belief:
    """What the model believes after ``history``; `StudyError` when nothing was observed."""
    _check(history)
    own = study.suggester
    suggester = own if isinstance(own, BayesianSuggester) else BayesianSuggester()
    return suggester.belief(history, history.rng("decide"))


def landscape_of(history: History, budget: float | None = None) -> Landscape:
    """The model of the loss after ``budget``; None for the comparison budget."""
    _check(history)
    space = history.problem.space
    encoding = encoding_of(space)
    budget = comparison_budget(history) if budget is None else budget
    rows = [
        (trial, loss)
        for trial in history.trials
        if (loss := _loss_at(trial, budget)) is not None and space.contains(trial.config)
    ]
    if not rows:
        raise StudyError(f"no trial has reported a value after {budget:g}; take a smaller budget")
    if len(rows) > MOST:
        best = {trial.id for trial, _ in sorted(rows, key=lambda row: row[1])[: MOST // 2]}
        rows = [
            row
            for place, row in enumerate(rows)
            if row[0].id in best or place >= len(rows) - MOST // 2
        ]
    data = Data(
        encoding.encode([trial.config for trial, _ in rows]), np.array([loss for _, loss in rows])
    )
    model = loss_model(encoding.columns, SETTINGS).fit(data, history.rng("landscape"))
    return Landscape(encoding, model, data, budget)


def comparison_budget(history: History) -> float:
    """The largest budget that at least three quarters of the trials with a value have reached."""
    reached = sorted(
        (trial.budget for trial in history.trials if trial.loss is not None), reverse=True
    )
    return reached[-(-3 * len(reached) // 4) - 1]


def _loss_at(trial: Trial, budget: float) -> float | None:
    """The loss at the first report at or beyond ``budget``."""
    return next((point.loss for point in trial.curve if point.step >= budget), None)


def _check(history: History) -> None:
    if not any(trial.loss is not None for trial in history.trials):
        raise StudyError(
            "nothing was observed by then, so there is no model to show; run trials first"
        )
