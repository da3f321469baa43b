"""Several metrics side by side: every trial a line through what it reached in each.

scrimp.plots.trade_offs(study)
"""

from typing import TYPE_CHECKING

from scrimp.history.compromise import trade_off_of
from scrimp.plots.style import ACCENT, MUTED, TEXT, figure, thinned_items, unmarked
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["trade_offs"]

MOST = 1000
"""Lines of dominated trials shown at most."""


def trade_offs(study: Study) -> "Figure":
    """One axis per metric, the good end at the top; reports of the front are coloured, the newest
    reports of other trials are grey."""
    from plotly.graph_objects import Figure, Parcoords

    history = study.history
    trade_off = trade_off_of(history, "trade_offs")
    front = [point for _, point in history.front]
    ahead = {trial.id for trial, _ in history.front}
    others = [
        trial.curve[-1]
        for trial in history.trials
        if trial.id not in ahead and trial.curve and trial.curve[-1].losses is not None
    ]
    shown = [*thinned_items(others, MOST), *front]  # the front on top
    axes: list[dict[str, object]] = []
    for name, way in trade_off.metrics.items():
        values = [point.metrics[name] or 0.0 for point in shown]
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        ends = [low, high] if way == "maximize" else [high, low]
        axes.append({"label": unmarked(name, 24), "values": values, "range": ends})
    line = {
        "color": [0.0] * (len(shown) - len(front)) + [1.0] * len(front),
        "colorscale": [[0.0, MUTED], [1.0, ACCENT]],
        "cmin": 0.0,
        "cmax": 1.0,
    }
    picture = Figure(
        Parcoords(dimensions=axes, line=line, labelfont={"color": TEXT}, tickfont={"color": TEXT})
    )
    listed = ", ".join(unmarked(name) for name in trade_off.names)
    words = f"{len(front)} reports of the front and {len(others)} other trials as lines through"
    figure(picture, "Metrics side by side", f"{words} {listed}; the top is good on every axis")
    return picture.update_layout(margin={"l": 80, "r": 40, "t": 100, "b": 40})
