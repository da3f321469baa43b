"""Learning curves and other reports over training: `curves` with predicted continuations, `rungs`
over time, and `metrics`, one panel per reported metric.

    scrimp.plots.curves(study)                    # the best and the newest trials
    scrimp.plots.curves(study, trials=[3, 17])
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from plotly.graph_objects import Figure, Scatter

from scrimp.errors import ScrimpError, StudyError
from scrimp.plots import style
from scrimp.plots.style import figure, trace, unmarked
from scrimp.study.study import Study
from scrimp.study_log.constraints import AtLeast, AtMost, Constraint
from scrimp.study_log.events import Annotated, BudgetGranted, Event, Reported
from scrimp.study_log.fold import Fold
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import STATUSES, Trial

MAX_CURVES = 60
"""Curves shown by default: half of them of the best trials, half of the newest."""

FORECAST_TRIALS = 4
"""Paused or running trials whose predicted continuation is shown: the best ones."""

FORECAST_STEPS = 24

MAX_STRETCH = 6.0
"""The axis is cut only where diverged runs would make it this many times as long. Larger than for
final values, because every curve starts far from where it ends."""


def curves(
    study: Study,
    trials: Sequence[int] | None = None,
    *,
    metric: str | None = None,
    log: bool = False,
) -> Figure:
    """Return values over budget, one line per trial: the better the trial, the stronger its line.
    Dashed lines with a band are predicted continuations of paused and running trials.

    ``metric`` shows another reported metric; ``log`` makes the value axis logarithmic.
    """
    history = study.history
    chosen = style.chosen_trials(history, trials, MAX_CURVES)
    problem, colours = history.problem, style.line_colours(history, chosen)
    metric = check_metric(history, metric)
    own = metric == problem.metric
    forecasts = _forecasts(study, chosen) if own else {}
    best = None if history.best is None else history.best[0].id
    picture = Figure()
    for trial in chosen:
        picture.add_traces(forecasts.get(trial.id, []))
        picture.add_trace(_observed(metric, trial, colours[trial.id], trial.id == best))
    picture.add_traces(_entries({trial.status for trial in chosen}))
    limits = add_limits(picture, problem.constraints.get(metric))
    unit = "budget" if problem.budget is None else unmarked(problem.budget.units)
    steps = (point.step for trial in chosen for point in trial.curve)
    picture.update_xaxes(title_text=unit, **style.count_axis(steps))
    if problem.budget is not None and problem.full_budget > 20 * problem.budget.minimum:
        ticks = style.powers(problem.budget.minimum, problem.full_budget)
        picture.update_xaxes(type="log", **ticks)
    heights = [value for trial in chosen for _, value in _points(trial, metric)]
    sign = problem.sign if own else 1.0
    axis, outside = style.value_axis([*heights, *limits], sign, log, MAX_STRETCH)
    picture.update_yaxes(title_text=style.metric_title(problem, metric), **axis)
    words = _words(history, chosen, forecasts, metric)
    title = "Learning curve" if len(chosen) == 1 else "Learning curves"
    return figure(picture, title if own else f"{title}: {unmarked(metric)}", words + outside)


def _forecasts(study: Study, chosen: Sequence[Trial]) -> dict[int, list[Scatter]]:
    """Return the continuations that the method's own curve model predicts for the best open trials,
    by trial; empty if it has none or cannot fit one."""
    # A planted report may be of step 0.
    open_ones = [t for t in chosen if t.status in ("paused", "running") and t.budget > 0]
    trials = [trial for trial in open_ones if trial.loss is not None]
    trials = sorted(trials, key=lambda trial: trial.loss or 0.0)[:FORECAST_TRIALS]
    if not trials or study.budget is None:
        return {}
    at = [np.geomspace(trial.budget, study.budget.maximum, FORECAST_STEPS) for trial in trials]
    configs = [trial.config for trial in trials for _ in range(FORECAST_STEPS)]
    try:
        found = study.predict(configs, np.concatenate(at).tolist())
    except ScrimpError:
        return {}
    values = np.stack([found.mean[:, 0], *found.columns[0].band(2.0)])
    own = zip(trials, at, np.split(values, len(trials), axis=1), strict=True)
    return {
        trial.id: _forecast(trial, steps.tolist(), band.tolist(), trial is trials[0])
        for trial, steps, band in own
    }


def _forecast(
    trial: Trial, steps: list[float], values: list[list[float]], legend: bool
) -> list[Scatter]:
    """Return a predicted continuation: ``values`` are its mean and the ends of its band."""
    colour, (mean, low, high) = style.STATUS[trial.status], values
    return [
        *style.band(steps, low, high, style.rgba(colour, 0.15), meta={"band": trial.id}),
        trace(
            zip(steps, mean, strict=True),
            "lines",
            line={"color": colour, "dash": "dash", "width": 1.5},
            name="predicted",
            legendgroup="predicted",
            showlegend=legend,
            meta={"forecast": trial.id},
            hovertemplate=f"trial {trial.id}: %{{y:.4g}} expected at %{{x:.4g}}<extra></extra>",
        ),
    ]


def _words(
    history: History, chosen: Sequence[Trial], forecasts: Collection[int], metric: str
) -> str:
    """Return the text alternative."""
    best = history.best
    shown = ", ".join(f"trial {trial.id}" for trial in chosen)
    if len(chosen) > style.MAX_OWN_COLOURS:
        shown = f"{len(chosen)} of {len(history.trials)} trials; stronger lines are better trials"
    words = f"{unmarked(metric)} of {shown}"
    if best is not None and any(best[0].id == trial.id for trial in chosen):
        after = style.after_words(history.problem, best[1].step)
        words += f"; orange: trial {best[0].id}, the best{after and ','}{after}"
    predicted = ", ".join(str(number) for number in forecasts)
    return f"{words}.{f' Dashed: predicted continuations of {predicted}.' if forecasts else ''}"


def _observed(metric: str, trial: Trial, colour: str, best: bool) -> Scatter:
    points = _points(trial, metric)
    symbols = ["circle"] * (len(points) - 1) + [SYMBOLS[trial.status]]
    sizes = [4] * (len(points) - 1) + [9 if best else 7]
    return trace(
        points,
        "lines+markers",
        line={"color": colour, "width": 3 if best else 1.5},
        marker={"color": colour, "size": sizes, "symbol": symbols, "line": {"width": 0}},
        name=f"trial {trial.id}",
        legendgroup=trial.status,
        showlegend=False,
        meta={"trial": trial.id},
        hovertemplate=f"trial {trial.id}, {trial.status}: %{{y}} at %{{x}}<br>"
        f"{style.config_lines(trial.config)}<extra></extra>",
    )


def _points(trial: Trial, metric: str) -> list[tuple[float, float]]:
    """Return the steps of a trial and its values of a metric there."""
    values = ((point.step, point.metrics.get(metric)) for point in trial.curve)
    return [(step, value) for step, value in values if value is not None]


def _entries(statuses: Collection[str]) -> list[Scatter]:
    """Return a legend of the marks that end the lines, by status; a click hides them."""
    return [
        trace(
            [(None, None)],
            "lines+markers",
            # The marks alone: colours show the rank of a trial.
            line={"color": style.MUTED, "width": 1.5},
            marker={"color": style.MUTED, "size": 8, "symbol": SYMBOLS[status]},
            name=status,
            legendgroup=status,
            showlegend=True,
        )
        for status in STATUSES
        if status in statuses
    ]


MAX_RUNG_TRIALS = 400
"""Trials shown at most: those with most training first, then the newest."""

MIN_LABEL_GAP = 0.06
"""Labels of rungs are at least this share of the axis apart."""

SYMBOLS = {
    "running": "triangle-right",
    "paused": "circle-open",
    "completed": "star",
    "stopped": "square-open",
    "failed": "x",
    "stale": "diamond-open",
}


def rungs(study: Study) -> Figure:
    """Return one line per trial over time, from its start through its reports, with the granted
    budgets as rungs and a marker for its status."""
    history = study.history
    shown = sorted(history.trials, key=lambda t: (-t.budget, -t.id))[:MAX_RUNG_TRIALS]
    shown.sort(key=lambda trial: trial.id)
    began = history.created.time
    picture = Figure()
    for status in STATUSES:
        group = [trial for trial in shown if trial.status == status and trial.started is not None]
        if not group:
            continue
        lines = [
            [((trial.started or began) - began, 0.0)]
            + [(point.time - began, point.step) for point in trial.curve]
            for trial in group
        ]
        # None between two trials ends the line of the first.
        joined = [point for line in lines for point in (*line, (None, None))]
        thin = {"line": {"color": style.STATUS[status], "width": 1}, "hoverinfo": "skip"}
        ends = trace(
            [line[-1] for line in lines],
            "markers",
            marker={"color": style.STATUS[status], "symbol": SYMBOLS[status], "size": 9},
            name=f"{status} ({len(group)})",
            legendgroup=status,
            meta={"trials": True},
            customdata=[trial.id for trial in group],
            hovertemplate=f"trial %{{customdata}}, {status} at %{{y}}<extra></extra>",
        )
        paths = trace(joined, "lines", legendgroup=status, showlegend=False, **thin)
        picture.add_traces([paths, ends])
    problem, rows = history.problem, rung_counts(history)
    unit = "" if problem.budget is None else f" ({unmarked(problem.budget.units)})"
    picture.update_xaxes(title_text="time since the start (seconds)")
    ticks = _apart([row["budget"] for row in rows])
    picture.update_yaxes(title_text=f"budget{unit}", rangemode="tozero", tickvals=ticks)
    reached = "; ".join(f"{row['reached']} trials reached {row['budget']:g}" for row in rows)
    count = len(history.trials)
    part = "" if len(shown) == count else f", {len(shown)} of {count} trials shown"
    words = f"{reached or 'No trial has started'}{part}."
    return figure(picture, "Rungs over time", words)


def _apart(levels: Sequence[float]) -> list[float]:
    """Return the levels whose labels do not overlap on an axis from zero, keeping the highest.

    >>> _apart([1.0, 2.0, 9.0, 27.0])
    [2.0, 9.0, 27.0]
    """
    kept: list[float] = []
    for level in reversed(levels):
        if not kept or kept[-1] - level >= MIN_LABEL_GAP * levels[-1]:
            kept.append(level)
    return kept[::-1]


def rung_counts(history: History) -> list[dict[str, float]]:
    """Return one row per granted budget: how many trials reached it, and their counts by status."""
    return history.remember("rungs", lambda: _rung_counts(history))


def _rung_counts(history: History) -> list[dict[str, float]]:
    levels = sorted({event.budget for event in history.events if isinstance(event, BudgetGranted)})
    rows = {
        level: {"budget": level, "reached": 0, **dict.fromkeys(STATUSES, 0)} for level in levels
    }
    for trial in history.trials:
        passed = [level for level in levels if trial.budget >= level]
        for level in passed:
            rows[level]["reached"] += 1
        if trial.status == "running" and trial.granted in rows:
            rows[trial.granted]["running"] += 1
        elif passed and trial.status != "running":
            rows[passed[-1]][trial.status] += 1
    return list(rows.values())


MAX_METRIC_LINES = 24
"""Trials shown by default: half of them the best, half the newest."""

MAX_METRIC_DOTS = 1000
MAX_METRICS = 12


def metrics(
    study: Study, trials: Sequence[int] | None = None, columns: int = 3, *, log: bool = False
) -> Figure:
    """Return one panel per reported metric; limits of constraints are dashed. ``log`` makes the axes
    of metrics with positive values logarithmic."""
    history = study.history
    names = reported_metrics(history)[:MAX_METRICS]
    specs = style.panel_grid(len(names), columns)
    lines = len(specs)
    titles = [unmarked(name, 30) for name in names]
    spacing = {"vertical_spacing": 0.26 / lines, "horizontal_spacing": 0.18 / len(specs[0])}
    picture = style.panels(specs, subplot_titles=titles, **spacing)
    problem = history.problem
    most = MAX_METRIC_LINES if problem.budget else MAX_METRIC_DOTS
    shown = style.chosen_trials(history, trials, most)
    unit = "trial" if problem.budget is None else unmarked(problem.budget.units)
    outside = ""
    for (row, column), name in zip(style.panel_places(specs), names, strict=True):
        drawn = _metric_traces(history, name, shown)
        picture.add_traces(drawn, rows=row, cols=column)
        limits = add_limits(picture, problem.constraints.get(name), row=row, col=column)
        values, sign = [y for one in drawn for y in one.y], style.metric_sign(problem, name)
        logs = log and all(value > 0 for value in values)
        axis, beyond = style.value_axis(values, sign, logs, MAX_STRETCH, kept=limits)
        outside += beyond and f" {unmarked(name)}:{beyond}"
        picture.update_yaxes(row=row, col=column, **axis)
        ticks = style.count_axis(x for one in drawn for x in one.x)
        title = {"title_text": unit} if row == lines else {}
        picture.update_xaxes(row=row, col=column, **ticks, **title)
    picture.update_annotations(font_size=12)
    picture.update_layout(height=130 + 210 * lines, showlegend=False)
    count = f"{len(shown)} of {len(history.trials)} trials"
    listed = ", ".join(unmarked(name) for name in names)
    words = f"{len(names)} reported metrics of {count}: {listed}."
    dashed = " Dashed: the limits of constraints." if problem.constraints else ""
    return figure(picture, "Every reported metric", words + dashed + outside)


def reported_metrics(history: History) -> list[str]:
    """Return the names of all reported metrics, the study's own first."""
    return list(dict.fromkeys([history.problem.metric, *history.derive(NamesSoFar())[0]]))


Names = dict[str, None]


@dataclass(frozen=True)
class NamesSoFar(Fold[tuple[Names, Names]]):
    """The names of the metrics reported and of the attributes given to trials so far, in order."""

    kinds = (Reported, Annotated)

    def begin(self, problem: Problem) -> tuple[Names, Names]:
        """Return no names."""
        return {}, {}

    def step(
        self, state: tuple[Names, Names], event: Event, before: Trial | None, trial: Trial | None
    ) -> None:
        """Add the names of one event."""
        metrics, attributes = state
        if isinstance(event, Reported) and not event.metrics.keys() <= metrics.keys():
            metrics.update(dict.fromkeys(event.metrics))
        elif isinstance(event, Annotated) and event.trial is not None:
            attributes.update(dict.fromkeys(event.attributes))


def check_metric(history: History, metric: str | None) -> str:
    """Return the metric, None meaning the first; raise `StudyError` unless it was reported."""
    names = reported_metrics(history)
    if metric is not None and metric not in names:
        raise StudyError(f"no metric {metric!r} was reported; there are {', '.join(names)}")
    return history.problem.metric if metric is None else metric


def add_limits(picture: Figure, rule: Constraint | None, **where: int) -> list[float]:
    """Draw the limits of a metric's constraint as dashed lines, and return them."""
    limits: list[float] = []
    if isinstance(rule, AtMost | AtLeast):
        limits = [rule.limit]
    elif rule is not None:
        limits = [rule.value - rule.tolerance, rule.value + rule.tolerance]
    for limit in limits:
        line = {"color": style.FAILED, "dash": "dash", "width": 1.5}
        picture.add_hline(y=limit, line=line, **where)
    return limits


def _metric_traces(history: History, name: str, shown: Sequence[Trial]) -> list[Scatter]:
    """Return the curves of a metric, or without budgets the last value of each trial."""
    colours = style.line_colours(history, shown)
    if history.problem.budget is None:
        last = [(t, style.finite_value(t.last, name)) for t in shown if t.last is not None]
        there = [(t, t.id, value) for t, value in last if value is not None]
        dots = {"color": [colours[trial.id] for trial, _, _ in there], "size": 6}
        return [style.trial_dots(there, unmarked(name), dots)]
    return [
        trace(
            known := _points(trial, name),
            "lines+markers" if len(known) < 30 else "lines",
            line={"color": colours[trial.id], "width": 1.5},
            marker={"color": colours[trial.id], "size": 4},
            name=f"trial {trial.id}",
            meta={"trial": trial.id},
            hovertemplate=f"trial {trial.id}: %{{y}} at %{{x}}<extra></extra>",
        )
        for trial in shown
    ]
