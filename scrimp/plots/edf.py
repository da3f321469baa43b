"""The empirical distribution of values: which share of the trials is at least as good as a value.

scrimp.plots.edf(study)                   # several studies of the same metric are compared
scrimp.plots.edf(first, second)
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scrimp.errors import StudyError
from scrimp.plots.axes import with_value
from scrimp.plots.ranges import value_axis
from scrimp.plots.style import SERIES, figure, thinned_items, unmarked
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["edf"]

MOST = 500


def edf(*studies: Study, log: bool = False) -> "Figure":
    """One step line per study: F(v), the share of its trials whose value is at most v (at least v
    when high is good)."""
    from plotly.graph_objects import Figure, Scatter

    if not studies:
        raise StudyError("edf was given no study; give at least one")
    picture = Figure()
    problem = studies[0].history.problem
    for place, study in enumerate(studies):
        trials = with_value(study.history.trials)
        values = sorted(
            (trial.value for trial in trials if trial.value is not None), reverse=problem.sign < 0
        )
        steps = thinned_items(
            [(value, (rank + 1) / len(values)) for rank, value in enumerate(values)], MOST
        )
        shape = {"color": SERIES[place % len(SERIES)], "shape": "hv"}
        xs, ys = [value for value, _ in steps], [share for _, share in steps]
        name = f"{unmarked(study.name)} ({len(values)} trials)"
        picture.add_trace(Scatter(x=xs, y=ys, mode="lines", line=shape, name=name))
    sense = "at most" if problem.sign > 0 else "at least"
    seen = [value for trace in picture.data for value in trace.x]
    axis, outside = value_axis(seen, problem.sign, log)
    if problem.sign < 0:  # the best stands at the left
        turned = {"range": axis["range"][::-1]} if "range" in axis else {"autorange": "reversed"}
        axis = {**axis, **turned}
    picture.update_xaxes(title_text=unmarked(problem.metric), **axis)
    picture.update_yaxes(title_text=f"share of trials with a value {sense} this", range=[0, 1.03])
    title = f"Distribution of {unmarked(problem.metric)}"
    return figure(picture, title, _words(studies, sense) + outside)


def _words(studies: Sequence[Study], sense: str) -> str:
    """The middle of each distribution, and its best tenth."""
    parts = []
    for study in studies:
        problem = study.history.problem
        losses = [trial.loss for trial in study.history.trials if trial.loss is not None]
        if losses:
            tenth, middle = (problem.sign * float(q) for q in np.quantile(losses, [0.1, 0.5]))
            name = f"{unmarked(study.name)}: half" if len(studies) > 1 else "Half"
            parts.append(
                f"{name} of {len(losses)} values are {sense} {middle:.4g}, a tenth {sense} {tenth:.4g}"
            )
    return "; ".join(parts) + "." if parts else "No value was reported yet."
