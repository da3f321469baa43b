"""Learning curves as they were observed, and how the method's curve model expects the open ones to
go on.

scrimp.plots.curves(study)                    # the best and the newest trials
scrimp.plots.curves(study, trials=[3, 17])
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from scrimp.errors import ScrimpError
from scrimp.history.history import History
from scrimp.history.trial import STATUSES, Trial
from scrimp.plots.axes import powers
from scrimp.plots.metrics import check_metric, metric_limits
from scrimp.plots.ranges import value_axis
from scrimp.plots.ranking import FEW, chosen_trials, line_colours
from scrimp.plots.rungs import SYMBOLS
from scrimp.plots.style import FAILED, LINE, MUTED, STATUS, config_lines, figure, rgba, unmarked
from scrimp.policies.policy import Forecast
from scrimp.tuning.deciding import policy_of
from scrimp.tuning.study import Study
from scrimp.tuning.threads import one_thread

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure, Scatter

__all__ = ["curves"]

MOST = 60
"""Curves shown unless the trials are named: half of them the best ones, half the newest."""

FORECASTS = 4
"""Open trials whose continuation is shown: the best ones."""

STEPS = 24

ASTRAY = 6.0
"""How far a run goes astray before the axis is cut: all curves begin far from where they end."""


def curves(
    study: Study,
    trials: Sequence[int] | None = None,
    *,
    metric: str | None = None,
    log: bool = False,
) -> "Figure":
    """Values over budget, one line per trial, the better the stronger, the best on top; dashed with
    a band where a model predicts how a paused or running one goes on.

    ``metric``: another reported metric; ``log``: a logarithmic axis of values.
    """
    history = study.history
    chosen = chosen_trials(history, trials, MOST)
    metric = history.problem.metric if metric is None else metric
    check_metric(history, metric)
    if metric != history.problem.metric:
        return _drawn(history, chosen, {}, metric, log)
    open_trials = sorted(
        (
            trial
            for trial in chosen
            if trial.status in ("paused", "running") and trial.loss is not None
        ),
        key=lambda trial: trial.loss or 0.0,
    )[:FORECASTS]
    return _drawn(history, chosen, _forecasts(history, open_trials), metric, log)


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
    history: History,
    chosen: Sequence[Trial],
    forecasts: Mapping[int, Forecast],
    metric: str,
    log: bool,
) -> "Figure":
    from plotly.graph_objects import Figure

    problem, colours = history.problem, line_colours(history, chosen)
    picture = Figure()
    best = None if history.best is None else history.best[0].id
    for trial in chosen:
        first = trial.id == next(iter(forecasts), None)
        for trace in _forecast_traces(problem.sign, trial, forecasts.get(trial.id), first):
            picture.add_trace(trace)
        picture.add_trace(_observed(metric, trial, colours[trial.id], trial.id == best))
    for trace in _entries({trial.status for trial in chosen}):
        picture.add_trace(trace)
    limits = metric_limits(problem.constraints.get(metric))
    for limit in limits:
        picture.add_hline(y=limit, line={"color": FAILED, "dash": "dash", "width": 1.5})
    unit = "budget" if problem.budget is None else unmarked(problem.budget.units)
    picture.update_xaxes(title_text=unit)
    if problem.budget is not None and problem.full_budget > 20 * problem.budget.minimum:
        picture.update_xaxes(type="log", **powers(problem.budget.minimum, problem.full_budget))
    heights = [
        value
        for trial in chosen
        for point in trial.curve
        if (value := point.metrics.get(metric)) is not None
    ]
    own = metric == problem.metric
    sign = problem.sign if own else 1.0
    axis, outside = value_axis([*heights, *limits], sign, log, ASTRAY)
    better = f" ({'low' if problem.sign > 0 else 'high'} is good)" if own else ""
    picture.update_yaxes(title_text=f"{unmarked(metric)}{better}", **axis)
    words = _words(history, chosen, forecasts, metric)
    title = "Learning curve" if len(chosen) == 1 else "Learning curves"
    return figure(picture, title if own else f"{title}: {unmarked(metric)}", words + outside)


def _words(
    history: History, chosen: Sequence[Trial], forecasts: Mapping[int, Forecast], metric: str
) -> str:
    """What the picture shows, in words."""
    shown = f"{len(chosen)} of {len(history.trials)} trials"
    budget, best = history.problem.budget, history.best
    if len(chosen) <= FEW:
        named = ", ".join(f"trial {trial.id}" for trial in chosen)
        words = f"{unmarked(metric)} of {named}"
    else:
        words = f"{unmarked(metric)} of {shown}; the stronger a line, the better its trial"
    if best is not None and budget is not None and any(best[0].id == t.id for t in chosen):
        words += f"; orange: trial {best[0].id}, the best, after {unmarked(budget.amount(best[0].budget))}"
    predicted = ", ".join(str(number) for number in forecasts)
    return f"{words}.{f' Dashed: predicted continuations of {predicted}.' if forecasts else ''}"


def _observed(metric: str, trial: Trial, colour: str, best: bool) -> "Scatter":
    from plotly.graph_objects import Scatter

    values = [(point.step, point.metrics.get(metric)) for point in trial.curve]
    points = [(step, value) for step, value in values if value is not None]
    symbols = ["circle"] * (len(points) - 1) + [SYMBOLS[trial.status]]
    sizes = [4] * (len(points) - 1) + [9 if best else 7]
    return Scatter(
        x=[step for step, _ in points],
        y=[value for _, value in points],
        mode="lines+markers",
        line={"color": colour, "width": 3 if best else 1.5},
        marker={"color": colour, "size": sizes, "symbol": symbols, "line": {"width": 0}},
        name=f"trial {trial.id}",
        legendgroup=trial.status,
        showlegend=False,
        meta={"trial": trial.id},
        hovertemplate=f"trial {trial.id}, {trial.status}: %{{y}} at %{{x}}<br>"
        f"{config_lines(trial.config)}<extra></extra>",
    )


def _entries(statuses: Collection[str]) -> "list[Scatter]":
    """The legend: which mark ends the line of a trial in which state; a click hides them."""
    from plotly.graph_objects import Scatter

    return [
        Scatter(
            x=[None],
            y=[None],
            mode="lines+markers",
            line={"color": LINE, "width": 1.5},
            marker={"color": LINE, "size": 8, "symbol": SYMBOLS[status]},
            name=status,
            legendgroup=status,
            showlegend=True,
        )
        for status in STATUSES
        if status in statuses
    ]


def _forecast_traces(
    sign: float, trial: Trial, forecast: Forecast | None, legend: bool
) -> "list[Scatter]":
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
