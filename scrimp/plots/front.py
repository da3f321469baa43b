"""The trade-off of a study of several metrics: the front, what it dominates, and how it grew.

    scrimp.plots.front(study)                      # two metrics against each other
    scrimp.plots.front(study, "val_error", "memory_gb")
    scrimp.plots.front_history(study, over="budget")

What repeated studies attain is a figure of its own, `attainment`.

Bands are what was attained after a quarter, a half and three quarters of the reports: everything
above and to the right of a step (for metrics of which low is good) was dominated by then.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scrimp.errors import StudyError
from scrimp.fronts.hypervolume import hypervolume
from scrimp.history.compromise import knee_of, reference_of, trade_off_of
from scrimp.history.history import History
from scrimp.history.standings import Front, with_report
from scrimp.history.trade_off import TradeOff, dominates
from scrimp.history.trial import Observation, Trial
from scrimp.plots.history import Over, axis_title, placed_reports
from scrimp.plots.style import (
    ACCENT,
    FAILED,
    LINE,
    MUTED,
    config_lines,
    figure,
    rgba,
    short_value,
    thinned_items,
    unmarked,
)
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure, Scatter

__all__ = ["chosen_metrics", "front", "front_history"]

MOST = 2000
"""Dominated reports shown at most; the front is never thinned."""

STAGES = (0.25, 0.5, 0.75)
"""After which shares of the reports the steps are drawn that were attained by then."""

Pair = tuple[Trial, Observation]


def front(study: Study, x: str | None = None, y: str | None = None) -> "Figure":
    """Reports as dots over two metrics, the first two unless told otherwise: on the front, dominated
    or infeasible, with the knee and the steps that were attained on the way."""
    from plotly.graph_objects import Figure

    history = study.history
    trade_off = trade_off_of(history, "front")
    across, up = chosen_metrics(trade_off, x, y)
    known = [(trial, point) for trial in history.trials for point in trial.curve]
    best = {(trial.id, point.step) for trial, point in history.front}
    groups: dict[str, list[Pair]] = {"infeasible": [], "dominated": [], "front": []}
    for trial, point in known:
        if point.losses is not None:
            on = "front" if (trial.id, point.step) in best else "dominated"
            groups[on if point.feasible else "infeasible"].append((trial, point))
    picture = Figure()
    for share in STAGES:
        picture.add_trace(_attained(history, known[: int(share * len(known))], across, up, share))
    for name, pairs in groups.items():
        shown = pairs if name == "front" else thinned_items(pairs, MOST)
        picture.add_trace(_dots(history, name, shown, across, up))
    knee = knee_of(history)
    if knee is not None:
        picture.add_trace(_dots(history, "knee", [knee], across, up))
    for name, axis in ((across, picture.update_xaxes), (up, picture.update_yaxes)):
        better = {"minimize": "low", "maximize": "high"}[trade_off.metrics[name]]
        axis(title_text=f"{unmarked(name)} ({better} is good)")
    words = f"{len(groups['front'])} reports on the front of {unmarked(across)} and {unmarked(up)}"
    others = "" if len(trade_off.names) == 2 else f", of {len(trade_off.names)} metrics"
    words += f"{others}; {len(groups['dominated'])} are dominated"
    return figure(picture, f"Front of {unmarked(across)} and {unmarked(up)}", words)


def chosen_metrics(trade_off: TradeOff, x: str | None, y: str | None) -> tuple[str, str]:
    """The two metrics to show."""
    across = trade_off.names[0] if x is None else x
    up = next(name for name in trade_off.names if name != across) if y is None else y
    for name in (across, up):
        if name not in trade_off.names:
            raise StudyError(
                f"{name!r} is no metric of the study; choose two of {', '.join(trade_off.names)}"
            )
    if across == up:
        raise StudyError(f"both axes are {across!r}; choose two metrics")
    return across, up


LOOKS = {
    "infeasible": {"color": FAILED, "symbol": "diamond-open", "size": 7},
    "dominated": {"color": MUTED, "size": 5},
    "front": {"color": LINE, "size": 9},
    "knee": {"color": ACCENT, "symbol": "circle-open", "size": 16, "line": {"width": 2}},
}


def _dots(history: History, name: str, pairs: Sequence[Pair], across: str, up: str) -> "Scatter":
    """Reports of one kind, each with its trial and what it says."""
    from plotly.graph_objects import Scatter

    best = history.front
    return Scatter(
        x=[point.metrics[across] for _, point in pairs],
        y=[point.metrics[up] for _, point in pairs],
        mode="markers",
        name=name,
        marker=LOOKS[name],
        text=[_hover(history, best, trial, point) for trial, point in pairs],
        hovertemplate="%{text}<extra></extra>",
        customdata=[trial.id for trial, _ in pairs],
    )


def _hover(history: History, best: Sequence[Pair], trial: Trial, point: Observation) -> str:
    """The trial, its metrics, its configuration, and who dominates it."""
    budget = history.problem.budget
    after = "" if budget is None else f" after {budget.amount(point.step)}"
    values = "<br>".join(
        f"{unmarked(name)} = {short_value(point.metrics.get(name))}"
        for name in history.problem.metrics
    )
    beaten = ", ".join(str(number) for number in _dominating(best, point)[:3])
    by = f"<br>dominated by trial {beaten}" if beaten else ""
    return f"trial {trial.id}{after}<br>{values}{by}<br>{config_lines(trial.config)}"


def _dominating(best: Sequence[Pair], point: Observation) -> list[int]:
    """The trials of the front that dominate a report."""
    own = point.losses
    found = (
        trial.id
        for trial, other in best
        if own is not None and other.losses is not None and dominates(other.losses, own)
    )
    return list(dict.fromkeys(found))


def _attained(
    history: History, reports: Sequence[Pair], across: str, up: str, share: float
) -> "Scatter":
    """The steps below which nothing was found in the first part of the reports."""
    from plotly.graph_objects import Scatter

    trade_off = trade_off_of(history, "front")
    signs = dict(zip(trade_off.names, trade_off.signs, strict=True))
    places = trade_off.names.index(across), trade_off.names.index(up)
    rows = {
        (point.losses[places[0]], point.losses[places[1]])
        for _, point in reports
        if point.losses is not None and point.feasible
    }
    steps: list[tuple[float, float]] = []
    for row in sorted(rows):
        if not steps or row[1] < steps[-1][1]:
            steps.append(row)
    return Scatter(
        x=[signs[across] * first for first, _ in steps],
        y=[signs[up] * second for _, second in steps],
        mode="lines",
        line={"shape": "hv", "color": rgba(LINE, 0.25 + 0.5 * share), "dash": "dot", "width": 1},
        name=f"after {share:.0%}",
        hoverinfo="skip",
    )


def front_history(study: Study, over: Over = "trials") -> "Figure":
    """The volume that the front dominates, as it grew; ``over`` is trials, time or budget. It is
    measured from the study's reference, or from a little beyond the front as it is now."""
    from plotly.graph_objects import Figure, Scatter

    history = study.history
    trade_off = trade_off_of(history, "hypervolume")
    line = _growth(history, over)
    picture = Figure(
        Scatter(
            x=[place for place, _ in line],
            y=[value for _, value in line],
            mode="lines+markers",
            line={"shape": "hv", "color": LINE},
            marker={"size": 5},
            name="hypervolume",
        )
    )
    picture.update_xaxes(title_text=axis_title(history, over))
    picture.update_yaxes(title_text="hypervolume (high is good)")
    corner = trade_off.values(reference_of(history))
    where = ", ".join(f"{unmarked(name)} {short_value(value)}" for name, value in corner.items())
    words = f"The front dominates {line[-1][1]:.4g}" if line else "Nothing is on the front yet"
    return figure(picture, f"Hypervolume over {over}", f"{words}, measured from {where}")


def _growth(history: History, over: Over) -> list[tuple[float, float]]:
    """(place, hypervolume so far) at every change of the front and at the end."""
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
