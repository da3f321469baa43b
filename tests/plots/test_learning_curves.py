"""Observed curves are those of the log; predicted ones come from the method through one hook."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.methods import named_methods as catalog
from scrimp.methods.own_methods import MethodEntry
from scrimp.methods.policy import Scheduled
from scrimp.plots.style import ACCENT
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.study_log.events import BudgetGranted, Reported, TrialAdded
from scrimp.study_log.history import History
from scrimp.suggesters.suggester import ForecastPoints
from scrimp.suggesters.untried_configs import RandomSuggester
from scrimp.surrogates.forecast import ForecastColumn


def observed(picture: Any) -> dict[int, list[tuple[float, float]]]:
    return {
        trace.meta["trial"]: list(zip(trace.x, trace.y, strict=True))
        for trace in picture.data
        if trace.meta is not None and "trial" in trace.meta
    }


def test_lines_are_the_reported_values(staged: scrimp.Study) -> None:
    picture = scrimp.plots.curves(staged)
    for number, line in observed(picture).items():
        trial = staged.trials[number]
        assert line == [(point.step, point.metrics["val_error"]) for point in trial.curve]
    assert staged.best_trial.id in observed(picture)
    assert picture.layout.xaxis.title.text == "epochs"


def test_the_best_is_on_top_and_stands_out(staged: scrimp.Study) -> None:
    lines = [trace for trace in scrimp.plots.curves(staged).data if trace.meta is not None]
    best = lines[-1]
    assert best.meta["trial"] == staged.best_trial.id and best.line.color == ACCENT
    assert all(line.line.width < best.line.width for line in lines[:-1])
    order = [staged.trials[line.meta["trial"]].best for line in lines]
    assert order == sorted(order, reverse=True)  # type: ignore[type-var]


def test_the_legend_has_an_entry_for_each_state(staged: scrimp.Study) -> None:
    picture = scrimp.plots.curves(staged)
    entries = [trace for trace in picture.data if trace.showlegend]
    groups = {trace.legendgroup for trace in picture.data}
    assert {trace.name for trace in entries} == groups == {"paused", "completed"}


def test_every_metric_has_a_curve() -> None:
    budget = scrimp.Budget("epoch", 1, 3)
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("m", space, budget=budget, method="random", storage="memory://")
    trial = study.ask()
    for step in (1, 2, 3):
        study.report(trial, step=step, value=1 / step, speed=10 * step)
    picture = scrimp.plots.curves(study, metric="speed")
    assert observed(picture) == {0: [(1, 10), (2, 20), (3, 30)]}
    assert picture.layout.yaxis.title.text == "speed"
    with pytest.raises(StudyError, match="no metric 'speeed'"):
        scrimp.plots.curves(study, metric="speeed")


def test_named_trials_alone(staged: scrimp.Study) -> None:
    assert set(observed(scrimp.plots.curves(staged, trials=[4, 2]))) == {2, 4}
    with pytest.raises(StudyError, match="no trial 99"):
        scrimp.plots.curves(staged, trials=[99])


@dataclass(frozen=True)
class Prophet(Scheduled):
    """ASHA with a curve model that believes in 1 / step."""

    scheduler: Any = field(default_factory=AsynchronousHalving)
    suggester: Any = field(default_factory=RandomSuggester)

    def forecast(
        self, history: History, points: ForecastPoints, rng: np.random.Generator
    ) -> Sequence[ForecastColumn]:
        losses, variances = 1 / points.budgets, np.full(len(points.budgets), 0.05**2)
        return [ForecastColumn("score", losses, variances, np.negative, lambda: np.diag(variances))]


def test_forecasts_of_the_method_are_drawn_in_the_users_direction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "test_prophet", SimpleNamespace(Prophet=Prophet))
    monkeypatch.setattr(catalog, "_METHODS", catalog._METHODS.copy())
    catalog.register_method("test-prophet", MethodEntry(policy="test_prophet:Prophet"))
    study = scrimp.create_study(
        "p",
        scrimp.Space(x=scrimp.Float(0, 1)),
        direction="maximize",
        metric="score",
        budget=scrimp.Budget("epoch", 1, 9),
        method="test-prophet",
        storage="memory://",
        seed=0,
    )
    for _ in range(4):
        trial = study.ask()
        for step in range(int(trial.budget) + 1, int(trial.granted) + 1):
            study.report(trial, step=step, score=trial.params["x"])
    picture = scrimp.plots.curves(study)
    paused = {trial.id: trial for trial in study.trials if trial.status == "paused"}
    means = {
        trace.meta["forecast"]: trace
        for trace in picture.data
        if trace.meta and "forecast" in trace.meta
    }
    assert set(means) == set(paused)
    for number, trace in means.items():
        assert trace.x[0] >= paused[number].budget and trace.x[-1] == pytest.approx(9.0)
        assert np.allclose(trace.y, -1 / np.array(trace.x))  # losses turned into scores
    assert "predicted continuations" in picture.layout.meta["alternative"]
    # A report that scrimp would not have written has no continuation on a logarithmic axis.
    planted = len(study.trials)
    study._ledger.append(
        [
            TrialAdded(trial=planted, config={"x": 0.5}),
            BudgetGranted(trial=planted, budget=1.0),
            Reported(trial=planted, step=0.0, metrics={"score": 1.0}),
        ]
    )
    again = scrimp.plots.curves(study).data
    assert {trace.meta["forecast"] for trace in again if "forecast" in (trace.meta or {})} == set(
        paused
    )
