"""Pictures of studies with several metrics: the front, its growth, and what repeated studies attain.

    scrimp.plots.front(study)                      # two metrics against each other
    scrimp.plots.front(study, "val_error", "memory_gb")
    scrimp.plots.front_history(study, over="budget")
    scrimp.plots.attainment(first, second, third)
    scrimp.plots.trade_offs(study)                 # any number of metrics

Steps show the front after a quarter, a half and three quarters of the reports: everything above and
to the right of a step (for minimized metrics) was dominated by then.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import cast

import numpy as np
from plotly.graph_objects import Figure, Scatter

from scrimp.errors import StudyError
from scrimp.fronts.dominance import attained
from scrimp.fronts.hypervolume import Array, hypervolume
from scrimp.plots import style
from scrimp.plots.progress import Over, placed_reports, x_axis
from scrimp.plots.style import figure, short_value, trace, unmarked
from scrimp.study.study import Study
from scrimp.study_log.compromise import knee_of, reference_of, several_metrics
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem, dominates
from scrimp.study_log.standings import Front, with_report
from scrimp.study_log.trial import Observation, Trial

MAX_DOMINATED = 2000
"""Dominated reports shown at most; the front is never thinned."""

STAGE_SHARES = (0.25, 0.5, 0.75)
"""Shares of the reports after which earlier fronts are drawn."""

Pair = tuple[Trial, Observation]


def front(study: Study, x: str | None = None, y: str | None = None, *, log: bool = False) -> Figure:
    """Return reports as dots over two metrics (default: the first two): on the front, dominated or
    infeasible, with the knee and earlier fronts as steps. ``log`` makes both axes logarithmic."""
    history = study.history
    problem = several_metrics(history, "front")
    across, up = chosen_metrics(problem, x, y)
    known = _reports(history)
    best = {(trial.id, point.step) for trial, point in history.front}
    groups: dict[str, list[Pair]] = {"infeasible": [], "dominated": [], "front": []}
    for trial, point in known:
        if point.counted is not None:
            on = "front" if (trial.id, point.step) in best else "dominated"
            groups[on if point.feasible else "infeasible"].append((trial, point))
    picture = Figure()
    for share in STAGE_SHARES:
        picture.add_trace(_attained(history, known[: int(share * len(known))], across, up, share))
    for name, pairs in groups.items():
        shown = pairs if name == "front" else style.thinned_items(pairs, MAX_DOMINATED)
        picture.add_trace(_dots(history, name, shown, across, up))
    knee = knee_of(history)
    if knee is not None:
        picture.add_trace(_dots(history, "knee", [knee], across, up))
    outside = ""
    for metric, update in ((across, picture.update_xaxes), (up, picture.update_yaxes)):
        values = [
            [float(point.metrics[metric] or 0.0) for _, point in pairs] for pairs in groups.values()
        ]
        sign, drawn = style.metric_sign(problem, metric), [*chain.from_iterable(values)]
        axis, beyond = style.value_axis(drawn, sign, log, kept=values[-1])
        outside += beyond and f" {unmarked(metric)}:{beyond}"
        update(title_text=style.metric_title(problem, metric), **axis)
    words = f"{len(groups['front'])} reports on the front of {unmarked(across)} and {unmarked(up)}"
    others = "" if len(problem.names) == 2 else f", of {len(problem.names)} metrics"
    words += f"{others}; {len(groups['dominated'])} are dominated."
    return figure(picture, f"Front of {unmarked(across)} and {unmarked(up)}", words + outside)


def chosen_metrics(problem: Problem, x: str | None, y: str | None) -> tuple[str, str]:
    """Return the two metrics to show."""
    across = problem.names[0] if x is None else x
    up = next(name for name in problem.names if name != across) if y is None else y
    for name in (across, up):
        if name not in problem.names:
            raise StudyError(
                f"{name!r} is not a metric of the study; choose two of {', '.join(problem.names)}"
            )
    if across == up:
        raise StudyError(f"both axes are {across!r}; choose two metrics")
    return across, up


LOOKS = {
    "infeasible": {"color": style.FAILED, "symbol": "diamond-open", "size": 7},
    "dominated": {"color": style.MUTED, "size": 5},
    "front": {"color": style.LINE, "size": 9},
    "knee": {"color": style.ACCENT, "symbol": "circle-open", "size": 16, "line": {"width": 2}},
}


def _dots(history: History, name: str, pairs: Sequence[Pair], across: str, up: str) -> Scatter:
    """Return reports of one kind as dots with hover texts."""
    best = history.front
    return trace(
        [(point.metrics[across], point.metrics[up]) for _, point in pairs],
        "markers",
        name=name,
        marker=LOOKS[name],
        cliponaxis=False,
        text=[_hover(history, best, trial, point) for trial, point in pairs],
        hovertemplate="%{text}<extra></extra>",
        meta={"trials": True},
        customdata=[trial.id for trial, _ in pairs],
    )


def _hover(history: History, best: Sequence[Pair], trial: Trial, point: Observation) -> str:
    """Return a hover text, with up to three trials that dominate the report."""
    problem, own = history.problem, point.counted
    values = style.config_lines({name: point.metrics.get(name) for name in problem.metrics})
    above = dict.fromkeys(
        str(other.id)
        for other, report in best
        if own is not None and report.counted is not None and dominates(report.counted, own)
    )
    by = f"<br>dominated by trial {', '.join([*above][:3])}" if above else ""
    after = style.after_words(problem, point.step)
    return f"trial {trial.id}{after}<br>{values}{by}<br>{style.config_lines(trial.config)}"


def _attained(
    history: History, reports: Sequence[Pair], across: str, up: str, share: float
) -> Scatter:
    """Return the front after the first part of the reports, as steps."""
    signs = np.array([style.metric_sign(history.problem, name) for name in (across, up)])
    surface = attained([_losses(reports, across, up, signs)], 1.0) * signs
    color = style.rgba(style.LINE, 0.25 + 0.5 * share)
    steps = _steps(surface, f"after {share:.0%}", color, 1, "dot")
    return steps.update(mode="lines", hoverinfo="skip")


def _losses(reports: Iterable[Pair], across: str, up: str, signs: Array) -> Array:
    """Return the two metrics of every feasible report as losses (n, 2)."""
    rows = [
        (point.metrics[across], point.metrics[up])
        for _, point in reports
        if point.counted is not None and point.feasible
    ]
    return np.array(rows, dtype=float).reshape(-1, 2) * signs


def _reports(history: History) -> list[Pair]:
    return [(trial, point) for trial in history.trials for point in trial.curve]


def front_history(study: Study, over: Over = "trials") -> Figure:
    """Return the hypervolume of the front over trials, time or budget (``over``), measured from the
    study's reference point, or from a point just beyond today's front."""
    history = study.history
    problem = several_metrics(history, "hypervolume")
    line = _growth(history, over)
    look = {"line": {"shape": "hv", "color": style.LINE}, "marker": {"size": 5}}
    picture = Figure(trace(line, "lines+markers", name="hypervolume", **look))
    picture.update_xaxes(**x_axis(history, over, (place for place, _ in line)))
    picture.update_yaxes(title_text="hypervolume (higher is better)")
    corner = problem.values(reference_of(history))
    where = ", ".join(f"{unmarked(name)} {short_value(value)}" for name, value in corner.items())
    words = "Nothing is on the front yet"
    if line:
        words = f"The hypervolume of the front is {line[-1][1]:.4g}"
    return figure(picture, f"Hypervolume over {over}", f"{words}, measured from {where}")


def _growth(history: History, over: Over) -> list[tuple[float, float]]:
    """Return (place, hypervolume so far) at every change of the front and at the end."""
    corner = reference_of(history)
    line: list[tuple[float, float]] = []
    known: Front = []
    reports = placed_reports(history, over)
    for place, trial, point in reports:
        now = with_report(known, point, trial.id) if point.feasible else known
        if now is not known:
            known = now
            grown = hypervolume(np.array([losses for losses, _, _ in known], dtype=float), corner)
            line.append((place, grown))
    end = max((place for place, _, _ in reports), default=0.0)
    if line and line[-1][0] < end:
        line.append((end, line[-1][1]))
    return line


LEVELS = {"best quarter": 0.25, "median": 0.5, "three quarters": 0.75}


def attainment(*studies: Study, x: str | None = None, y: str | None = None) -> Figure:
    """Return the surfaces that a quarter, a half and three quarters of the studies attain over two
    metrics (default: the first two), above the front of each study."""
    if not studies:
        raise StudyError("attainment was given no study; give several runs of one problem")
    problem = several_metrics(studies[0].history, "attainment")
    across, up = chosen_metrics(problem, x, y)
    for study in studies:
        metrics = study.history.problem.metrics
        if any(metrics.get(name) != problem.metrics[name] for name in (across, up)):
            raise StudyError(
                f"study {study.name!r} does not have the metrics {across!r} and {up!r} in the same"
                " directions; give repeated studies of one problem"
            )
    signs = np.array([style.metric_sign(problem, name) for name in (across, up)])
    runs = [_losses(_reports(study.history), across, up, signs) for study in studies]
    if not any(map(len, runs)):
        raise StudyError("none of the studies has a report with all metrics yet")
    picture = Figure()
    for study, losses in zip(studies, runs, strict=True):
        name = unmarked(study.name)
        picture.add_trace(_steps(attained([losses], 1.0) * signs, name, style.MUTED, 1, "dot"))
    for name, share in LEVELS.items():
        strong = name == "median"
        color = style.LINE if strong else style.rgba(style.LINE, 0.6)
        surface = attained(runs, share) * signs
        picture.add_trace(_steps(surface, name, color, 3 if strong else 1, "solid"))
    filled = None if len(picture.data[-1].x) == 0 else "tonexty"
    picture.data[-1].update(fill=filled, fillcolor=style.rgba(style.LINE, 0.08))
    picture.update_xaxes(title_text=style.metric_title(problem, across))
    picture.update_yaxes(title_text=style.metric_title(problem, up))
    title = f"Fronts of {unmarked(across)} and {unmarked(up)}, attained by {len(studies)} studies"
    corners = {name: len(attained(runs, share)) for name, share in LEVELS.items()}
    words = ", ".join(f"{name} {count}" for name, count in corners.items())
    return figure(picture, title, f"{title}; corners of the surfaces: {words}")


def _steps(surface: Array, name: str, color: str, width: int, dash: str) -> Scatter:
    line = {"shape": "hv", "color": color, "width": width, "dash": dash}
    mode = "lines+markers" if len(surface) == 1 else "lines"
    return trace(surface.tolist(), mode, line=line, name=name)


MAX_DOMINATED_LINES = 1000


def trade_offs(study: Study) -> Figure:
    """Return one axis per metric with the better end at the top: the front in colour, the last
    reports of other trials in grey."""
    history = study.history
    problem = several_metrics(history, "trade_offs")
    front = [point for _, point in history.front]
    ahead = {trial.id for trial, _ in history.front}
    others = [
        trial.curve[-1]
        for trial in history.trials
        if trial.id not in ahead and trial.curve and trial.curve[-1].counted is not None
    ]
    # The front is drawn last, on top.
    shown = [*style.thinned_items(others, MAX_DOMINATED_LINES), *front]
    axes: list[dict[str, object]] = []
    for name, way in problem.metrics.items():
        values = [point.metrics[name] or 0.0 for point in shown]
        height = style.value_dimension(values, style.metric_sign(problem, name))
        ends = cast("list[float]", height["range"])
        ends = ends if way == "maximize" else ends[::-1]
        axes.append({"label": unmarked(name, 24), **height, "range": ends})
    line = {
        "color": [0.0] * (len(shown) - len(front)) + [1.0] * len(front),
        "colorscale": [[0.0, style.MUTED], [1.0, style.LINE]],
        "cmin": 0.0,
        "cmax": 1.0,
    }
    listed = ", ".join(unmarked(name) for name in problem.names)
    words = f"{len(front)} reports of the front and {len(others)} other trials as lines through"
    words += f" {listed}; up is better on every axis"
    return style.parallel_axes(axes, line, "Metrics side by side", words)
