"""The best value so far, and every trial's own: over trials, over time, or over budget spent.

scrimp.plots.history(study, over="time")
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from scrimp.errors import StudyError
from scrimp.history.history import History
from scrimp.history.trial import Observation, Trial
from scrimp.plots.style import ACCENT, MUTED, figure, params_text, plain, thinned
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["axis_title", "best_line", "history"]

MOST = 2000
"""Points a picture shows at most; the line of the best is never thinned."""


def history(study: Study, over: str = "trials") -> "Figure":
    """Values of trials and the best feasible report so far; ``over`` is trials, time or budget."""
    seen = study.history
    reports = _reports(seen, over)
    line = _best_line(seen, reports)
    newest = {trial.id: (place, trial) for place, trial, _ in reports if trial.value is not None}
    return _drawn(study.name, seen, over, line, thinned(list(newest.values()), MOST), len(newest))


def best_line(history: History, over: str = "trials") -> list[tuple[float, float]]:
    """(place, best feasible value so far) at every improvement and at the end."""
    return _best_line(history, _reports(history, over))


def axis_title(history: History, over: str) -> str:
    """What stands at the axis."""
    unit = "evaluations" if history.problem.budget is None else history.problem.budget.units
    titles = {
        "trials": "trial",
        "time": "time since the start (seconds)",
        "budget": f"budget spent ({plain(unit)})",
    }
    return titles[over]


def _best_line(
    history: History, reports: list[tuple[float, Trial, Observation]]
) -> list[tuple[float, float]]:
    line: list[tuple[float, float]] = []
    best: float | None = None
    for place, _, point in reports:
        if point.loss is not None and point.feasible and (best is None or point.loss < best):
            best = point.loss
            line[-1 if line and line[-1][0] == place else len(line) :] = [
                (place, history.problem.sign * best)
            ]
    end = max((place for place, _, _ in reports), default=0.0)
    if line and line[-1][0] < end:
        line.append((end, line[-1][1]))
    return line


def _reports(history: History, over: str) -> list[tuple[float, Trial, Observation]]:
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
    name: str,
    history: History,
    over: str,
    line: list[tuple[float, float]],
    shown: list[tuple[float, Trial]],
    count: int,
) -> Any:
    from plotly.graph_objects import Figure, Scatter

    problem = history.problem
    picture = Figure()
    picture.add_trace(
        Scatter(
            x=[place for place, _ in shown],
            y=[trial.value for _, trial in shown],
            mode="markers",
            marker={"color": MUTED, "size": 6},
            name="trials" if count == len(shown) else f"trials ({len(shown)} of {count} shown)",
            customdata=[[trial.id, params_text(trial.config)] for _, trial in shown],
            hovertemplate="trial %{customdata[0]}: %{y}<br>%{customdata[1]}<extra></extra>",
        )
    )
    xs, ys = [place for place, _ in line], [value for _, value in line]
    shape = {"color": ACCENT, "shape": "hv", "width": 2.5}
    picture.add_trace(Scatter(x=xs, y=ys, mode="lines", line=shape, name="best so far"))
    picture.update_xaxes(title_text=axis_title(history, over))
    picture.update_yaxes(title_text=f"{plain(problem.metric)} ({problem.direction})")
    best = f"the best is {ys[-1]:.6g}" if ys else "nothing was reported yet"
    title = f"Best {plain(problem.metric)} of {plain(name)} over {over}"
    return figure(picture, title, f"{title}: {count} trials with a value, {best}.")
