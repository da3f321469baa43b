"""What the model believes over two parameters, the others held at the best configuration.

scrimp.plots.contour(study, "lr", "layers")
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from scrimp.errors import StudyError
from scrimp.plots.axes import check_parameters, is_numeric, labels, order, with_value
from scrimp.plots.model import Landscape, landscape_of
from scrimp.plots.style import ACCENT, SCALE, figure, params_text, plain, thinned
from scrimp.space.space import Space
from scrimp.tuning.study import Study
from scrimp.tuning.threads import one_thread

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["contour"]

POINTS = 41
MOST = 500


@one_thread()
def contour(study: Study, x: str | None = None, y: str | None = None) -> "Figure":
    """The posterior mean of the metric over ``x`` and ``y``, the first two numeric parameters for
    None, and the trials."""
    from plotly.graph_objects import Contour, Figure, Heatmap, Scatter

    history = study.history
    problem, space = history.problem, history.problem.space
    first, second = _pair(space, x, y)
    landscape = landscape_of(history)
    across, up, mean = _surface(landscape, space, (first, second))
    numeric = is_numeric(space[first]) and is_numeric(space[second])
    colours = {
        "colorscale": [list(stop) for stop in SCALE],
        "reversescale": problem.direction == "minimize",
        "colorbar": {"title": {"text": plain(problem.metric, 20)}},
        "name": "posterior mean",
    }
    heights = problem.sign * mean
    surface = Contour(
        x=across, y=up, z=heights, contours={"showlines": False}, ncontours=24, **colours
    )
    picture = Figure(surface if numeric else Heatmap(x=across, y=up, z=heights, **colours))
    there = [
        trial
        for trial in with_value(history.trials)
        if first in trial.config and second in trial.config
    ]
    shown = thinned(there, MOST)
    picture.add_trace(
        Scatter(
            x=labels(space[first], [trial.config[first] for trial in shown]),
            y=labels(space[second], [trial.config[second] for trial in shown]),
            mode="markers",
            marker={"color": "white", "size": 7, "line": {"color": "#22262d", "width": 1}},
            name="trials",
            customdata=[[trial.id, trial.value, params_text(trial.config)] for trial in shown],
            hovertemplate=(
                "trial %{customdata[0]}: %{customdata[1]}<br>%{customdata[2]}<extra></extra>"
            ),
        )
    )
    if (
        history.best is not None
        and first in history.best[0].config
        and second in history.best[0].config
    ):
        config = history.best[0].config
        place = {
            "x": labels(space[first], [config[first]]),
            "y": labels(space[second], [config[second]]),
        }
        star = {
            "color": ACCENT,
            "symbol": "star",
            "size": 15,
            "line": {"color": "white", "width": 1},
        }
        picture.add_trace(Scatter(**place, mode="markers", marker=star, name="best"))
    picture.update_xaxes(title_text=plain(first), **order(space[first]))
    picture.update_yaxes(title_text=plain(second), **order(space[second]))
    at = (
        "" if problem.budget is None else f" after {plain(problem.budget.amount(landscape.budget))}"
    )
    title = f"Model of {plain(problem.metric)} over {plain(first)} and {plain(second)}{at}"
    return figure(
        picture,
        title,
        f"{title}: posterior mean, {len(there)} trials, the others held at the best one.",
    )


def _pair(space: Space, x: str | None, y: str | None) -> tuple[str, str]:
    given = [name for name in (x, y) if name is not None]
    check_parameters(space, given)
    others = sorted(
        (name for name in space.searched if name not in given),
        key=lambda name: not is_numeric(space[name]),
    )
    names = [*given, *others][:2]
    if len(set(names)) < 2:
        raise StudyError(
            "a contour needs two different parameters; use scrimp.plots.surrogate for a single one"
        )
    if y is not None and x is None:
        names.reverse()
    return names[0], names[1]


def _surface(
    landscape: Landscape, space: Space, names: tuple[str, str]
) -> tuple[list[Any], list[Any], np.ndarray]:
    """Values along both axes, and the posterior mean of the loss (len(y), len(x)) in its own
    units."""
    encoding, model = landscape.encoding, landscape.model
    columns = [space.searched.index(name) for name in names]
    listed = [encoding.columns[column].values for column in columns]
    units = [
        np.linspace(0.0, 1.0, POINTS) if values is None else np.array(values) for values in listed
    ]
    rows = np.repeat(landscape.best[None, :], len(units[0]) * len(units[1]), axis=0)
    rows[:, columns[0]] = np.tile(units[0], len(units[1]))
    rows[:, columns[1]] = np.repeat(units[1], len(units[0]))
    mean = model.target_units(model.mean(encoding.domain.snap(rows))[:, 0]).reshape(
        len(units[1]), len(units[0])
    )
    across, up = (
        labels(space[name], space[name].from_units(place))
        for name, place in zip(names, units, strict=True)
    )
    return across, up, mean
