"""Every metric that was reported, a panel each: over the budget, or over trials without budgets.

scrimp.plots.metrics(study)                    # the best and the newest trials
scrimp.plots.metrics(study, trials=[3, 17])
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scrimp.errors import StudyError
from scrimp.history.history import History
from scrimp.history.problem import AtLeast, AtMost, Constraint
from scrimp.history.trial import Trial
from scrimp.plots.ranking import chosen_trials, line_colours
from scrimp.plots.style import FAILED, config_lines, figure, thinned_items, unmarked
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["check_metric", "metric_limits", "metrics", "reported_metrics"]

LINES = 24
"""Trials shown unless they are named: half of them the best ones, half the newest."""

DOTS = 1000
MOST = 12
"""Metrics shown at most."""


def metrics(study: Study, trials: Sequence[int] | None = None, columns: int = 3) -> "Figure":
    """One panel per reported metric, so many beside each other; limits of constraints are dashed."""
    from plotly.subplots import make_subplots

    history = study.history
    names = reported_metrics(history)[:MOST]
    lines = max(-(-len(names) // max(columns, 1)), 1)
    columns = max(-(-len(names) // lines), 1)
    picture = make_subplots(
        rows=lines,
        cols=columns,
        subplot_titles=[unmarked(name, 30) for name in names],
        vertical_spacing=0.26 / lines,
        horizontal_spacing=0.18 / columns,
    )
    shown = chosen_trials(history, trials, LINES if history.problem.budget else DOTS)
    for place, name in enumerate(names):
        where = (place // columns + 1, place % columns + 1)
        _add_metric(picture, history, name, shown, where)
        for limit in metric_limits(history.problem.constraints.get(name)):
            picture.add_hline(
                y=limit,
                line={"color": FAILED, "dash": "dash", "width": 1},
                row=where[0],
                col=where[1],
            )
    unit = "trial" if history.problem.budget is None else unmarked(history.problem.budget.units)
    for column in range(1, columns + 1):
        picture.update_xaxes(title_text=unit, row=lines, col=column)
    picture.update_annotations(font_size=12)
    picture.update_layout(height=130 + 210 * lines, showlegend=False)
    count = f"{len(shown)} of {len(history.trials)} trials"
    words = (
        f"{len(names)} reported metrics of {count}: {', '.join(unmarked(name) for name in names)}."
    )
    return figure(picture, "Every reported metric", words + _limit_words(history))


def reported_metrics(history: History) -> list[str]:
    """The names of all metrics that the last reports of trials carry, the study's own first."""
    names = dict.fromkeys([history.problem.metric])
    for trial in history.trials:
        if trial.last is not None:
            names.update(dict.fromkeys(trial.last.metrics))
    return list(names)


def check_metric(history: History, metric: str) -> None:
    """`StudyError` unless it was reported."""
    names = reported_metrics(history)
    if metric not in names:
        raise StudyError(f"no metric {metric!r} was reported; there are {', '.join(names)}")


def metric_limits(rule: Constraint | None) -> list[float]:
    """Where a constraint ends: one value, or two around a wanted one."""
    if rule is None:
        return []
    if isinstance(rule, AtMost | AtLeast):
        return [rule.limit]
    return [rule.value - rule.tolerance, rule.value + rule.tolerance]


def _limit_words(history: History) -> str:
    return " Dashed: the limits that must hold." if history.problem.constraints else ""


def _add_metric(
    picture: "Figure", history: History, name: str, shown: Sequence[Trial], where: tuple[int, int]
) -> None:
    from plotly.graph_objects import Scatter

    colours = line_colours(history, shown)
    if history.problem.budget is None:
        last = [(trial, _last(trial, name)) for trial in thinned_items(shown, DOTS)]
        there = [(trial, value) for trial, value in last if value is not None]
        picture.add_trace(
            Scatter(
                x=[trial.id for trial, _ in there],
                y=[value for _, value in there],
                mode="markers",
                marker={"color": [colours[trial.id] for trial, _ in there], "size": 6},
                name=unmarked(name),
                meta={"trials": True},
                customdata=[[trial.id, config_lines(trial.config)] for trial, _ in there],
                hovertemplate="trial %{customdata[0]}: %{y}<br>%{customdata[1]}<extra></extra>",
            ),
            *where,
        )
        return
    for trial in shown:
        points = [(point.step, point.metrics.get(name)) for point in trial.curve]
        known = [(step, value) for step, value in points if value is not None]
        colour = colours[trial.id]
        picture.add_trace(
            Scatter(
                x=[step for step, _ in known],
                y=[value for _, value in known],
                mode="lines+markers" if len(known) < 30 else "lines",
                line={"color": colour, "width": 1.5},
                marker={"color": colour, "size": 4},
                name=f"trial {trial.id}",
                meta={"trial": trial.id},
                hovertemplate=f"trial {trial.id}: %{{y}} at %{{x}}<extra></extra>",
            ),
            *where,
        )


def _last(trial: Trial, name: str) -> float | None:
    value = None if trial.last is None else trial.last.metrics.get(name)
    return None if value is None or not math.isfinite(value) else value
