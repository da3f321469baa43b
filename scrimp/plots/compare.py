"""The best value so far of several studies, over trials, over time or over budget.

scrimp.plots.compare(first, second, over="budget")
"""

from typing import TYPE_CHECKING

from scrimp.errors import StudyError
from scrimp.plots.history import Over, axis_title, best_line
from scrimp.plots.ranges import value_axis
from scrimp.plots.style import SERIES, figure, unmarked
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["compare"]


def compare(*studies: Study, over: Over = "trials", log: bool = False) -> "Figure":
    """One line per study; they should have the same metric and direction."""
    from plotly.graph_objects import Figure, Scatter

    if not studies:
        raise StudyError("compare was given no study; give at least one")
    picture = Figure()
    for place, study in enumerate(studies):
        line = best_line(study.history, over)
        shape = {
            "color": SERIES[place % len(SERIES)],
            "shape": "hv",
            "dash": "solid" if place < len(SERIES) else "dot",
        }
        xs, ys = [where for where, _, _ in line], [value for _, value, _ in line]
        picture.add_trace(Scatter(x=xs, y=ys, mode="lines", line=shape, name=unmarked(study.name)))
    problem = studies[0].history.problem
    picture.update_xaxes(title_text=axis_title(studies[0].history, over))
    seen = [value for trace in picture.data for value in trace.y]
    axis, outside = value_axis(seen, problem.sign, log)
    better = "low" if problem.sign > 0 else "high"
    picture.update_yaxes(title_text=f"best {unmarked(problem.metric)} ({better} is good)", **axis)
    title = (
        f"Best {unmarked(problem.metric)} of {len(studies)}"
        f" {'study' if len(studies) == 1 else 'studies'} over {over}"
    )
    ends = "; ".join(
        f"{trace.name} {trace.y[-1]:.6g}" if trace.y else f"{trace.name} nothing"
        for trace in picture.data
    )
    return figure(picture, title, f"{title}: {ends}.{outside}")
