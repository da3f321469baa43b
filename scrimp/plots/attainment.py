"""What repeated studies of one problem attain: the median front, and the band between quartiles.

    scrimp.plots.attainment(*studies)                              # several seeds, two metrics
    scrimp.plots.attainment(*studies, x="val_error", y="memory_gb")

A point is attained by a study when one of its reports is at least as good in both metrics. Half of
the studies attain what lies behind the median; a quarter, or three quarters, what lies behind the
ends of the band.
"""

from typing import TYPE_CHECKING

import numpy as np

from scrimp.errors import StudyError
from scrimp.fronts.attainment import attained
from scrimp.fronts.boxes import Array
from scrimp.history.compromise import trade_off_of
from scrimp.plots.front import chosen_metrics
from scrimp.plots.style import LINE, MUTED, figure, rgba, unmarked
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure, Scatter

__all__ = ["attainment"]

LEVELS = {"best quarter": 0.25, "median": 0.5, "three quarters": 0.75}


def attainment(*studies: Study, x: str | None = None, y: str | None = None) -> "Figure":
    """The surfaces that a quarter, a half and three quarters of the studies attain over two metrics,
    the first two unless told otherwise, above the front of each study."""
    from plotly.graph_objects import Figure

    if not studies:
        raise StudyError("attainment was given no study; give several runs of one problem")
    trade_off = trade_off_of(studies[0].history, "attainment")
    across, up = chosen_metrics(trade_off, x, y)
    for study in studies:
        metrics = study.history.problem.metrics
        if any(metrics.get(name) != trade_off.metrics[name] for name in (across, up)):
            raise StudyError(
                f"study {study.name!r} does not have the metrics {across!r} and {up!r} in the same"
                " directions; give repeated studies of one problem"
            )
    signs = np.array([1.0 if trade_off.metrics[n] == "minimize" else -1.0 for n in (across, up)])
    runs = [_losses(study, across, up, signs) for study in studies]
    if not any(map(len, runs)):
        raise StudyError("none of the studies has a report with all metrics yet")
    picture = Figure()
    for study, losses in zip(studies, runs, strict=True):
        name = unmarked(study.name)
        picture.add_trace(_steps(attained([losses], 1.0) * signs, name, MUTED, 1, "dot"))
    for name, share in LEVELS.items():
        strong = name == "median"
        color = LINE if strong else rgba(LINE, 0.6)
        surface = attained(runs, share) * signs
        picture.add_trace(_steps(surface, name, color, 3 if strong else 1, "solid"))
    picture.data[-1].update(fill=None if len(picture.data[-1].x) == 0 else "tonexty")
    picture.data[-1].update(fillcolor=rgba(LINE, 0.08))
    for name, axis in ((across, picture.update_xaxes), (up, picture.update_yaxes)):
        better = {"minimize": "low", "maximize": "high"}[trade_off.metrics[name]]
        axis(title_text=f"{unmarked(name)} ({better} is good)")
    title = f"What {len(studies)} studies attain of {unmarked(across)} and {unmarked(up)}"
    corners = {name: len(attained(runs, share)) for name, share in LEVELS.items()}
    words = ", ".join(f"{name} {count}" for name, count in corners.items())
    return figure(picture, title, f"{title}; corners of the surfaces: {words}")


def _losses(study: Study, across: str, up: str, signs: Array) -> Array:
    """The two metrics of every feasible report as losses (n, 2)."""
    rows = [
        (point.metrics[across], point.metrics[up])
        for trial in study.history.trials
        for point in trial.curve
        if point.losses is not None and point.feasible
    ]
    return np.array(rows, dtype=float).reshape(-1, 2) * signs


def _steps(surface: Array, name: str, color: str, width: int, dash: str) -> "Scatter":
    from plotly.graph_objects import Scatter

    return Scatter(
        x=surface[:, 0].tolist(),
        y=surface[:, 1].tolist(),
        mode="lines+markers" if len(surface) == 1 else "lines",
        line={"shape": "hv", "color": color, "width": width, "dash": dash},
        name=name,
    )
