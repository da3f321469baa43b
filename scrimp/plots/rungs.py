"""Who was promoted, paused, stopped or failed, and when: the budget of every trial over time.

scrimp.plots.rungs(study)
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scrimp.history.events import BudgetGranted
from scrimp.history.history import History
from scrimp.history.trial import STATUSES, Trial
from scrimp.plots.style import STATUS, figure, unmarked
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["SYMBOLS", "rung_counts", "rungs"]

MOST = 400
"""Trials shown at most: those that came furthest, then the newest."""

APART = 0.06
"""Names of rungs on the axis are at least this share of it apart."""

SYMBOLS = {
    "running": "triangle-right",
    "paused": "circle-open",
    "completed": "star",
    "stopped": "square-open",
    "failed": "x",
    "stale": "diamond-open",
}


def rungs(study: Study) -> "Figure":
    """One line per trial from its start through its reports, a marker where it stands, and the
    granted budgets as rungs."""
    from plotly.graph_objects import Figure, Scatter

    history = study.history
    shown = sorted(
        sorted(history.trials, key=lambda trial: (-trial.budget, -trial.id))[:MOST],
        key=lambda t: t.id,
    )
    began = history.created.time
    picture = Figure()
    for status in STATUSES:
        group = [trial for trial in shown if trial.status == status and trial.started is not None]
        if not group:
            continue
        lines = [_line(trial, began) for trial in group]
        xs = [x for line in lines for x in [*(place for place, _ in line), None]]
        ys = [y for line in lines for y in [*(height for _, height in line), None]]
        colour, name = STATUS[status], f"{status} ({len(group)})"
        thin = {"color": colour, "width": 1}
        picture.add_trace(
            Scatter(
                x=xs,
                y=ys,
                mode="lines",
                line=thin,
                hoverinfo="skip",
                legendgroup=status,
                showlegend=False,
            )
        )
        picture.add_trace(
            Scatter(
                x=[line[-1][0] for line in lines],
                y=[line[-1][1] for line in lines],
                mode="markers",
                marker={"color": colour, "symbol": SYMBOLS[status], "size": 9},
                name=name,
                legendgroup=status,
                meta={"trials": True},
                customdata=[trial.id for trial in group],
                hovertemplate=f"trial %{{customdata}}, {status} at %{{y}}<extra></extra>",
            )
        )
    return _finished(picture, history, len(shown))


def _line(trial: Trial, began: float) -> list[tuple[float, float]]:
    assert trial.started is not None
    start = (trial.started - began, 0.0)
    return [start, *((point.time - began, point.step) for point in trial.curve)]


def _finished(picture: "Figure", history: History, shown: int) -> "Figure":
    problem = history.problem
    levels = [row["budget"] for row in rung_counts(history)]
    unit = "" if problem.budget is None else f" ({unmarked(problem.budget.units)})"
    picture.update_xaxes(title_text="time since the start (seconds)")
    picture.update_yaxes(title_text=f"budget{unit}", rangemode="tozero")
    picture.update_yaxes(tickvals=_apart(levels))
    reached = "; ".join(
        f"{row['reached']} trials reached {row['budget']:g}" for row in rung_counts(history)
    )
    part = (
        "" if shown == len(history.trials) else f", {shown} of {len(history.trials)} trials shown"
    )
    words = f"{(reached or 'no trial has started').capitalize()}{part}."
    return figure(picture, "Rungs over time", words)


def _apart(levels: Sequence[float]) -> list[float]:
    """The levels that can be read beside each other on an axis from zero, the highest first of all.

    >>> _apart([1.0, 2.0, 9.0, 27.0])
    [2.0, 9.0, 27.0]
    """
    kept: list[float] = []
    for level in reversed(levels):
        if not kept or kept[-1] - level >= APART * levels[-1]:
            kept.append(level)
    return kept[::-1]


def rung_counts(history: History) -> list[dict[str, float]]:
    """One row per budget that was ever granted: how many trials reached it, and how many of them
    are there in which state."""
    levels = sorted({event.budget for event in history.events if isinstance(event, BudgetGranted)})
    reached = dict.fromkeys(levels, 0)
    here: dict[float, dict[str, int]] = {level: defaultdict(int) for level in levels}
    for trial in history.trials:
        passed = [level for level in levels if trial.budget >= level]
        for level in passed:
            reached[level] += 1
        if trial.status == "running" and trial.granted in here:
            here[trial.granted]["running"] += 1
        elif passed and trial.status != "running":
            here[passed[-1]][trial.status] += 1
    return [
        {
            "budget": level,
            "reached": reached[level],
            **{status: here[level][status] for status in STATUSES},
        }
        for level in levels
    ]
