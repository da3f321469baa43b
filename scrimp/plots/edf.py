"""The empirical distribution of values: which share of the trials is at least as good as a value.

scrimp.plots.edf(study)                   # several studies of the same metric are compared
scrimp.plots.edf(first, second)
"""

from typing import TYPE_CHECKING

from scrimp.errors import StudyError
from scrimp.plots.axes import with_value
from scrimp.plots.style import SERIES, figure, plain, thinned
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["edf"]

MOST = 500


def edf(*studies: Study) -> "Figure":
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
        steps = thinned(
            [(value, (rank + 1) / len(values)) for rank, value in enumerate(values)], MOST
        )
        shape = {"color": SERIES[place % len(SERIES)], "shape": "hv"}
        xs, ys = [value for value, _ in steps], [share for _, share in steps]
        name = f"{plain(study.name)} ({len(values)} trials)"
        picture.add_trace(Scatter(x=xs, y=ys, mode="lines", line=shape, name=name))
    sense = "at most" if problem.sign > 0 else "at least"
    picture.update_xaxes(
        title_text=plain(problem.metric), autorange="reversed" if problem.sign < 0 else None
    )
    picture.update_yaxes(title_text=f"share of trials with a value {sense} this", range=[0, 1.03])
    title = f"Distribution of {plain(problem.metric)}"
    names = ", ".join(plain(study.name) for study in studies)
    return figure(
        picture,
        title,
        f"{title} in {names}: share of trials whose value is {sense} the one on the axis.",
    )
