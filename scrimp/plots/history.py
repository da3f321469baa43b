"""The best value so far, and every trial's own: over trials, over time, or over budget spent.

scrimp.plots.history(study, over="time")
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

from scrimp.errors import StudyError
from scrimp.history.history import History
from scrimp.history.reports import headline
from scrimp.history.trial import Observation, Trial
from scrimp.plots.metrics import check_metric, metric_limits
from scrimp.plots.ranges import value_axis
from scrimp.plots.style import (
    ACCENT,
    FAILED,
    LINE,
    MUTED,
    config_lines,
    figure,
    thinned_items,
    unmarked,
)
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure, Scatter

__all__ = ["Over", "axis_title", "best_line", "history", "placed_reports"]

Over = Literal["trials", "time", "budget"]
"""What runs along the axis."""

MOST = 2000
"""Points a picture shows at most; the line of the best is never thinned."""

BROKEN = "breaks a constraint"
MARKERS = {
    "partly trained": {"color": MUTED, "size": 5},
    "trials": {"color": LINE, "size": 6},
    BROKEN: {"color": FAILED, "symbol": "diamond-open", "size": 7},
}
"""How dots look: the less a value says, the quieter."""


def history(
    study: Study, over: Over = "trials", *, metric: str | None = None, log: bool = False
) -> "Figure":
    """Values of trials and the best feasible report so far; ``over`` is trials, time or budget.

    ``metric``: another reported metric, with the limit of its constraint; ``log``: a logarithmic
    axis of values.
    """
    seen = study.history
    reports = placed_reports(seen, over)
    newest = {trial.id: (place, trial) for place, trial, _ in reports if trial.value is not None}
    if metric is not None and metric != seen.problem.metric:
        check_metric(seen, metric)
        return _other(seen, over, list(newest.values()), metric, log)
    return _drawn(seen, over, _best_line(seen, reports), list(newest.values()), log)


def best_line(history: History, over: Over = "trials") -> list[tuple[float, float, int]]:
    """(place, best feasible value so far, its trial) at every improvement and at the end."""
    return _best_line(history, placed_reports(history, over))


def axis_title(history: History, over: Over) -> str:
    """What stands at the axis."""
    unit = "evaluations" if history.problem.budget is None else history.problem.budget.units
    titles = {
        "trials": "trial",
        "time": "time since the start (seconds)",
        "budget": f"budget spent ({unmarked(unit)})",
    }
    return titles[over]


def _best_line(
    history: History, reports: list[tuple[float, Trial, Observation]]
) -> list[tuple[float, float, int]]:
    line: list[tuple[float, float, int]] = []
    best: float | None = None
    for place, trial, point in reports:
        if point.loss is not None and point.feasible and (best is None or point.loss < best):
            best = point.loss
            line[-1 if line and line[-1][0] == place else len(line) :] = [
                (place, history.problem.sign * best, trial.id)
            ]
    end = max((place for place, _, _ in reports), default=0.0)
    if line and line[-1][0] < end:
        line.append((end, *line[-1][1:]))
    return line


def placed_reports(history: History, over: Over) -> list[tuple[float, Trial, Observation]]:
    """All reports with their place on the axis, in order."""
    if over == "trials":
        return [
            (float(trial.id), trial, point) for trial in history.trials for point in trial.curve
        ]
    found = sorted(
        (
            (point.time, trial.id, place)
            for trial in history.trials
            for place, point in enumerate(trial.curve)
        ),
    )
    in_order = [
        (time, history.trials[number], history.trials[number].curve[place])
        for time, number, place in found
    ]
    if over == "time":
        began = history.created.time
        return [(time - began, trial, point) for time, trial, point in in_order]
    if over == "budget":
        return list(_by_budget(in_order))
    raise StudyError(f"over is {over!r}; it must be 'trials', 'time' or 'budget'")


def _by_budget(
    reports: list[tuple[float, Trial, Observation]],
) -> Iterator[tuple[float, Trial, Observation]]:
    """Each report at the budget that all trials together had used by then."""
    spent, used = 0.0, dict[int, float]()
    for _, trial, point in reports:
        spent += max(point.step - used.get(trial.id, 0.0), 0.0)
        used[trial.id] = max(point.step, used.get(trial.id, 0.0))
        yield spent, trial, point


def _drawn(
    history: History,
    over: Over,
    line: list[tuple[float, float, int]],
    known: list[tuple[float, Trial]],
    log: bool,
) -> "Figure":
    from plotly.graph_objects import Figure, Scatter

    problem = history.problem
    picture = Figure()
    for trace in _dots(history, known, lambda trial: trial.value):
        picture.add_trace(trace)
    failures = _failures(history, over)
    if failures is not None:
        picture.add_trace(failures)
        picture.update_layout(
            yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
        )
    picture.add_trace(
        Scatter(
            x=[place for place, _, _ in line],
            y=[value for _, value, _ in line],
            mode="lines",
            line={"color": ACCENT, "shape": "hv", "width": 2.5},
            name="best so far",
            meta={"trials": True},
            customdata=[number for _, _, number in line],
            hovertemplate="best so far: %{y}, by trial %{customdata}<extra></extra>",
        )
    )
    heights = [trial.value for _, trial in known if trial.value is not None]
    axis, outside = value_axis([*heights, *(value for _, value, _ in line)], problem.sign, log)
    picture.update_xaxes(title_text=axis_title(history, over))
    picture.update_layout(yaxis={"title": {"text": _label(history)}, **axis})
    title = f"Best {unmarked(problem.metric)} over {over}"
    return figure(picture, title, _words(history, line, len(known)) + outside)


def _label(history: History) -> str:
    better = "low" if history.problem.sign > 0 else "high"
    return f"{unmarked(history.problem.metric)} ({better} is good)"


def _words(history: History, line: list[tuple[float, float, int]], count: int) -> str:
    """What the picture shows, in words."""
    metric, failed = unmarked(history.problem.metric), history.counts["failed"]
    if not line:
        nothing = "no feasible value" if count else "nothing"
        return f"{nothing} was reported yet{f'; {failed} trials failed' if failed else ''}.".capitalize()
    _, best, number = line[-1]
    since = len(history.trials) - 1 - number
    words = f"The best {metric} is {best:.6g}, by trial {number}"
    words += f"; the {since} trials after it brought nothing better" if since > 2 else ""
    first = line[0][1]
    words += f". It began at {first:.6g}" if first != best else ""
    words += f"; {failed} of {len(history.trials)} trials failed" if failed else ""
    thinned_out = f" {MOST} of {count} values are shown." if count > MOST else ""
    return f"{words}.{thinned_out}"


def _dots(
    history: History, known: list[tuple[float, Trial]], height: Callable[[Trial], float | None]
) -> "Iterator[Scatter]":
    """Trials as dots: fully trained, partly trained, and those that break a constraint."""
    from plotly.graph_objects import Scatter

    full, staged = history.problem.full_budget, history.problem.budget is not None
    groups: dict[str, list[tuple[float, Trial]]] = {"partly trained": [], "trials": [], BROKEN: []}
    for place, trial in thinned_items(known, MOST):
        held = trial.last is not None and trial.last.feasible
        part = staged and trial.budget < full
        groups["partly trained" if held and part else "trials" if held else BROKEN].append(
            (place, trial)
        )
    for name, group in groups.items():
        if not group:
            continue
        yield Scatter(
            x=[place for place, _ in group],
            y=[height(trial) for _, trial in group],
            mode="markers",
            marker=MARKERS[name],
            name="fully trained" if name == "trials" and staged else name,
            meta={"trials": True},
            customdata=[[trial.id, config_lines(trial.config)] for _, trial in group],
            hovertemplate="trial %{customdata[0]}: %{y}<br>%{customdata[1]}<extra></extra>",
        )


def _failures(history: History, over: Over) -> "Scatter | None":
    """Crosses at the foot of the picture, where trials failed; None without any, and over budget,
    where failures have no place."""
    from plotly.graph_objects import Scatter

    failed = [trial for trial in history.with_status("failed") if trial.value is None]
    if not failed or over == "budget":
        return None
    began = history.created.time
    shown = thinned_items(sorted(failed, key=lambda trial: trial.id), MOST)
    return Scatter(
        x=[trial.id if over == "trials" else (trial.ended or began) - began for trial in shown],
        y=[0.015] * len(shown),
        yaxis="y2",
        mode="markers",
        marker={
            "color": FAILED,
            "symbol": "x-thin",
            "size": 7,
            "line": {"color": FAILED, "width": 2},
        },
        name="failed",
        meta={"trials": True},
        customdata=[[trial.id, unmarked(headline(trial.message), 90)] for trial in shown],
        hovertemplate="trial %{customdata[0]} failed: %{customdata[1]}<extra></extra>",
    )


def _other(
    history: History, over: Over, known: list[tuple[float, Trial]], metric: str, log: bool
) -> "Figure":
    """Another metric than the study's own: its last values, and what must hold of it."""
    from plotly.graph_objects import Figure

    def height(trial: Trial) -> float | None:
        return None if trial.last is None else trial.last.metrics.get(metric)

    there = [(place, trial) for place, trial in known if height(trial) is not None]
    picture = Figure(list(_dots(history, there, height)))
    limits = metric_limits(history.problem.constraints.get(metric))
    for limit in limits:
        picture.add_hline(y=limit, line={"color": FAILED, "dash": "dash", "width": 1.5})
    values = [value for _, trial in there if (value := height(trial)) is not None]
    axis, outside = value_axis([*values, *limits], 1.0, log)
    picture.update_xaxes(title_text=axis_title(history, over))
    picture.update_layout(yaxis={"title": {"text": unmarked(metric)}, **axis})
    held = (
        f" Dashed: its limit, {' and '.join(f'{limit:g}' for limit in limits)}." if limits else ""
    )
    span = f", from {min(values):.4g} to {max(values):.4g}" if values else ""
    words = f"The last {unmarked(metric)} of {len(values)} trials{span}."
    return figure(picture, f"{unmarked(metric)} over {over}", words + held + outside)
