"""Values over one parameter at a time, coloured by the number of the trial.

scrimp.plots.slice(study, ["lr", "layers"])
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scrimp.history.history import History
from scrimp.plots.axes import check_parameters, is_numeric, labels, order, with_value
from scrimp.plots.ranges import value_axis
from scrimp.plots.ranking import trial_ranks
from scrimp.plots.style import SCALE, config_lines, figure, short_value, thinned_items, unmarked
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["MOST_PANELS", "slice"]

MOST = 1000

MOST_PANELS = 8
"""Parameters shown unless they are named: the first ones."""


def slice(
    study: Study,
    parameters: Sequence[str] | None = None,
    columns: int = 3,
    *,
    log: bool = False,
) -> "Figure":
    """One panel per parameter, so many beside each other; trials in which it does not exist are
    left out of its panel."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    history = study.history
    space = history.problem.space
    names = check_parameters(space, parameters, MOST_PANELS)
    lines = -(-len(names) // max(columns, 1))
    columns = -(-len(names) // lines)  # rows as even as they can be
    picture = make_subplots(
        rows=lines, cols=columns, shared_yaxes=True, vertical_spacing=0.32 / lines
    )
    known = with_value(history.trials)
    shown = thinned_items(known, MOST)
    for place, name in enumerate(names):
        there = [trial for trial in shown if name in trial.config]
        marker = {"color": [trial.id for trial in there], "coloraxis": "coloraxis", "size": 6}
        trace = Scatter(
            x=labels(space[name], [trial.config[name] for trial in there]),
            y=[trial.value for trial in there],
            mode="markers",
            marker=marker,
            name=unmarked(name),
            showlegend=False,
            meta={"trials": True},
            customdata=[[trial.id, config_lines(trial.config)] for trial in there],
            hovertemplate="trial %{customdata[0]}: %{y}<br>%{customdata[1]}<extra></extra>",
        )
        row, column = place // columns + 1, place % columns + 1
        picture.add_trace(trace, row, column)
        picture.update_xaxes(title_text=unmarked(name), row=row, col=column, **order(space[name]))
        if column == 1:
            picture.update_yaxes(title_text=unmarked(history.problem.metric), row=row, col=1)
    bar = {"colorscale": [list(stop) for stop in SCALE], "colorbar": {"title": {"text": "trial"}}}
    picture.update_layout(coloraxis=bar, height=150 + 260 * lines)
    values = [trial.value for trial in known if trial.value is not None]
    axis, outside = value_axis(values, history.problem.sign, log)
    picture.update_yaxes(**axis)
    title = f"{unmarked(history.problem.metric)} over each parameter"
    part = "" if len(shown) == len(known) else f" {len(shown)} of {len(known)} trials are shown."
    return figure(picture, title, _words(history, names) + part + outside)


def _words(history: History, names: Sequence[str]) -> str:
    """Where the best tenth of the trials lies, for the two parameters that it narrows down most."""
    place = trial_ranks(history)
    best = sorted(place, key=lambda short_value: place[short_value])[: max(len(place) // 10, 3)]
    space = history.problem.space
    found = []
    for name in names:
        parameter = space[name]
        given = [history.trials[n].config[name] for n in best if name in history.trials[n].config]
        if is_numeric(parameter) and len(given) == len(best):
            low, high = min(given), max(given)
            width = float(parameter.to_unit(high) - parameter.to_unit(low))
            found.append(
                (width, f"{unmarked(name)} from {short_value(low)} to {short_value(high)}")
            )
    narrow = [words for width, words in sorted(found) if width < 0.75][:2]
    if not narrow:
        return f"The best {len(best)} of {len(place)} trials are spread over the whole range."
    return f"The best {len(best)} of {len(place)} trials have {' and '.join(narrow)}."
