"""Learning curves as they were observed, and how the method's curve model expects the open ones to
go on.

scrimp.plots.curves(study)                    # the best and the newest trials
scrimp.plots.curves(study, trials=[3, 17])
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from scrimp.errors import ScrimpError, StudyError
from scrimp.history.history import History
from scrimp.history.trial import Trial
from scrimp.plots.axes import powers
from scrimp.plots.style import MUTED, STATUS, figure, params_text, plain, rgba
from scrimp.policies.policy import Forecast
from scrimp.tuning.deciding import policy_of
from scrimp.tuning.study import Study
from scrimp.tuning.threads import one_thread

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["curves"]

MOST = 60
"""Curves shown unless the trials are named: half of them the best ones, half the newest."""

FORECASTS = 4
"""Open trials whose continuation is shown: the best ones."""

STEPS = 24


def curves(study: Study, trials: Sequence[int] | None = None) -> "Figure":
    """Values over budget, one line per trial; dashed with a band where a model predicts how a
    paused or running one goes on."""
    history = study.history
    chosen = _chosen(history, trials)
    open_trials = sorted(
        (
            trial
            for trial in chosen
            if trial.status in ("paused", "running") and trial.loss is not None
        ),
        key=lambda trial: trial.loss or 0.0,
    )[:FORECASTS]
    return _drawn(study.name, history, chosen, _forecasts(history, open_trials))


def _chosen(history: History, trials: Sequence[int] | None) -> list[Trial]:
    if trials is not None:
        for number in trials:
            if not 0 <= number < len(history.trials):
                raise StudyError(
                    f"there is no trial {number}; the study has {len(history.trials)}, counted"
                    " from 0"
                )
        return [history.trials[number] for number in trials]
    reported = [
        trial for trial in history.trials if any(point.loss is not None for point in trial.curve)
    ]
    best = sorted(reported, key=lambda trial: np.inf if trial.loss is None else trial.loss)[
        : MOST // 2
    ]
    return [
        history.trials[number]
        for number in sorted({trial.id for trial in [*best, *reported[-MOST // 2 :]]})
    ]


def _forecasts(history: History, trials: Sequence[Trial]) -> Mapping[int, Forecast]:
    """What the method's own curve model believes; nothing where it has none, or where it cannot be
    fitted now."""
    if not trials or history.problem.budget is None:
        return {}
    begin, full = min(trial.budget for trial in trials), history.problem.full_budget
    steps = [float(step) for step in np.geomspace(begin, full, STEPS)]
    try:
        policy = policy_of(history)
        with one_thread():
            return policy.forecast(
                history, [trial.id for trial in trials], steps, history.rng("forecast")
            )
    except ScrimpError:
        return {}


def _drawn(
    name: str, history: History, chosen: Sequence[Trial], forecasts: Mapping[int, Forecast]
) -> Any:
    from plotly.graph_objects import Figure

    problem = history.problem
    picture = Figure()
    named: set[str] = set()
    for trial in chosen:
        first = trial.id == next(iter(forecasts), None)
        for trace in _forecast_traces(problem.sign, trial, forecasts.get(trial.id), first):
            picture.add_trace(trace)
        picture.add_trace(_observed(problem.sign, trial, trial.status not in named))
        named.add(trial.status)
    unit = "budget" if problem.budget is None else f"budget ({plain(problem.budget.units)})"
    picture.update_xaxes(title_text=unit)
    if problem.budget is not None and problem.full_budget > 20 * problem.budget.minimum:
        picture.update_xaxes(type="log", **powers(problem.budget.minimum, problem.full_budget))
    picture.update_yaxes(title_text=f"{plain(problem.metric)} ({problem.direction})")
    title = f"Learning curves of {plain(name)}"
    shown = f"{len(chosen)} of {len(history.trials)} trials"
    predicted = f", with predicted continuations of {len(forecasts)}" if forecasts else ""
    return figure(
        picture, title, f"{title}: {plain(problem.metric)} over budget for {shown}{predicted}."
    )


def _observed(sign: float, trial: Trial, legend: bool) -> Any:
    from plotly.graph_objects import Scatter

    points = [point for point in trial.curve if point.loss is not None]
    colour = STATUS[trial.status]
    return Scatter(
        x=[point.step for point in points],
        y=[sign * point.loss for point in points if point.loss is not None],
        mode="lines+markers",
        line={"color": rgba(colour, 0.75), "width": 1.5},
        marker={"color": colour, "size": 5},
        name=trial.status,
        legendgroup=trial.status,
        showlegend=legend,
        meta={"trial": trial.id},
        hovertemplate=(
            f"trial {trial.id}: %{{y}} at %{{x}}<br>{params_text(trial.config)}<extra></extra>"
        ),
    )


def _forecast_traces(
    sign: float, trial: Trial, forecast: Forecast | None, legend: bool
) -> list[Any]:
    from plotly.graph_objects import Scatter

    if forecast is None:
        return []
    colour = STATUS[trial.status] if trial.status != "paused" else MUTED
    places = [place for place, step in enumerate(forecast.steps) if step >= trial.budget]

    def along(values: Sequence[float]) -> list[float]:
        return [sign * values[place] for place in places]

    steps = [forecast.steps[place] for place in places]
    edge = {
        "x": steps,
        "mode": "lines",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return [
        Scatter(y=along(forecast.high), **edge),
        Scatter(
            y=along(forecast.low),
            fill="tonexty",
            fillcolor=rgba(colour, 0.15),
            meta={"band": trial.id},
            **edge,
        ),
        Scatter(
            x=steps,
            y=along(forecast.mean),
            mode="lines",
            line={"color": colour, "dash": "dash", "width": 1.5},
            name="predicted",
            legendgroup="predicted",
            showlegend=legend,
            meta={"forecast": trial.id},
            hovertemplate=f"trial {trial.id}: %{{y:.4g}} expected at %{{x:.4g}}<extra></extra>",
        ),
    ]
