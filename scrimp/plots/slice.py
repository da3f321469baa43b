"""Values over one parameter at a time, coloured by the number of the trial.

scrimp.plots.slice(study, ["lr", "layers"])
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scrimp.plots.axes import check_parameters, labels, order, with_value
from scrimp.plots.style import SCALE, figure, params_text, plain, thinned
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["slice"]

MOST = 1000


def slice(study: Study, parameters: Sequence[str] | None = None, columns: int = 3) -> "Figure":
    """One panel per parameter, so many beside each other; trials in which it does not exist are
    left out of its panel."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    history = study.history
    space = history.problem.space
    names = check_parameters(space, parameters, 8)
    lines = -(-len(names) // max(columns, 1))
    columns = -(-len(names) // lines)  # rows as even as they can be
    picture = make_subplots(
        rows=lines, cols=columns, shared_yaxes=True, vertical_spacing=0.32 / lines
    )
    known = with_value(history.trials)
    shown = thinned(known, MOST)
    for place, name in enumerate(names):
        there = [trial for trial in shown if name in trial.config]
        marker = {"color": [trial.id for trial in there], "coloraxis": "coloraxis", "size": 6}
        trace = Scatter(
            x=labels(space[name], [trial.config[name] for trial in there]),
            y=[trial.value for trial in there],
            mode="markers",
            marker=marker,
            name=plain(name),
            showlegend=False,
            customdata=[[trial.id, params_text(trial.config)] for trial in there],
            hovertemplate="trial %{customdata[0]}: %{y}<br>%{customdata[1]}<extra></extra>",
        )
        row, column = place // columns + 1, place % columns + 1
        picture.add_trace(trace, row, column)
        picture.update_xaxes(title_text=plain(name), row=row, col=column, **order(space[name]))
        if column == 1:
            picture.update_yaxes(title_text=plain(history.problem.metric), row=row, col=1)
    bar = {"colorscale": [list(stop) for stop in SCALE], "colorbar": {"title": {"text": "trial"}}}
    picture.update_layout(coloraxis=bar, height=150 + 260 * lines)
    title = f"Slices of {plain(study.name)}"
    listed = ", ".join(plain(name) for name in names)
    part = f"{len(shown)} of {len(known)} trials"
    return figure(
        picture, title, f"{title}: {plain(history.problem.metric)} over {listed} for {part}."
    )
