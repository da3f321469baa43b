"""What the model believes over two parameters, the others held at the best configuration.

scrimp.plots.contour(study, "lr", "layers")
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from scrimp.errors import StudyError
from scrimp.history.history import History
from scrimp.history.trial import Trial
from scrimp.json_values import Scalar
from scrimp.plots.axes import check_parameters, is_numeric, labels, order, with_value
from scrimp.plots.model import Landscape, landscape_of
from scrimp.plots.ranges import value_span
from scrimp.plots.style import (
    ACCENT,
    AREA,
    config_lines,
    figure,
    short_value,
    thinned_items,
    unmarked,
)
from scrimp.space.space import Space
from scrimp.tuning.study import Study
from scrimp.tuning.threads import one_thread

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure, Scatter

__all__ = ["contour", "pair_of"]

POINTS = 41
MOST = 500


@one_thread()
def contour(study: Study, x: str | None = None, y: str | None = None) -> "Figure":
    """The posterior mean of the metric over ``x`` and ``y``, the first two numeric parameters for
    None, and the trials."""
    from plotly.graph_objects import Contour, Figure, Heatmap

    history = study.history
    problem, space = history.problem, history.problem.space
    first, second = pair_of(space, x, y)
    landscape = landscape_of(history)
    across, up, mean = _surface(landscape, space, (first, second))
    numeric = is_numeric(space[first]) and is_numeric(space[second])
    colours = {
        "colorscale": AREA,
        "reversescale": problem.direction == "minimize",
        "colorbar": {"title": {"text": unmarked(problem.metric, 20)}},
        "name": "posterior mean",
    }
    heights = problem.sign * mean
    span = value_span(heights.ravel().tolist(), problem.sign)
    if span is not None:  # a few corners must not take all the colours
        colours |= {"zmin": span[0], "zmax": span[1]}
    surface = Contour(
        x=across, y=up, z=heights, contours={"showlines": False}, ncontours=24, **colours
    )
    picture = Figure(surface if numeric else Heatmap(x=across, y=up, z=heights, **colours))
    there = [
        trial
        for trial in with_value(history.trials)
        if first in trial.config and second in trial.config
    ]
    for trace in _marks(history, there, (first, second)):
        picture.add_trace(trace)
    picture.update_xaxes(title_text=unmarked(first), **order(space[first]))
    picture.update_yaxes(title_text=unmarked(second), **order(space[second]))
    at = (
        ""
        if problem.budget is None
        else f" after {unmarked(problem.budget.amount(landscape.budget))}"
    )
    title = f"Model of {unmarked(problem.metric)} over {unmarked(first)} and {unmarked(second)}{at}"
    row, column = np.unravel_index(int(np.argmin(mean)), mean.shape)
    good = f"{unmarked(first)} = {short_value(across[column])} and {unmarked(second)} = {short_value(up[row])}"
    words = f"The model of {len(there)} trials expects the best {unmarked(problem.metric)}{at} near"
    others = (
        "" if len(space.searched) == 2 else "; the other parameters are those of the best trial"
    )
    return figure(picture, title, f"{words} {good}{others}.")


def _marks(history: History, there: list[Trial], names: tuple[str, str]) -> "Iterator[Scatter]":
    """The trials that have both parameters, and the best one among them."""
    from plotly.graph_objects import Scatter

    space, (first, second) = history.problem.space, names

    def at(trials: list[Trial]) -> dict[str, object]:
        return {
            "x": labels(space[first], [trial.config[first] for trial in trials]),
            "y": labels(space[second], [trial.config[second] for trial in trials]),
            "mode": "markers",
        }

    shown = thinned_items(there, MOST)
    yield Scatter(
        **at(shown),
        marker={"color": "white", "size": 7, "line": {"color": "#22262d", "width": 1}},
        name="trials",
        meta={"trials": True},
        customdata=[[trial.id, trial.value, config_lines(trial.config)] for trial in shown],
        hovertemplate="trial %{customdata[0]}: %{customdata[1]}<br>%{customdata[2]}<extra></extra>",
    )
    best = None if history.best is None else history.best[0]
    if best is not None and first in best.config and second in best.config:
        star = {"color": ACCENT, "symbol": "star", "size": 15}
        star |= {"line": {"color": "white", "width": 1}}
        yield Scatter(**at([best]), marker=star, name="best", meta={"trial": best.id})


def pair_of(space: Space, x: str | None = None, y: str | None = None) -> tuple[str, str]:
    """The parameters across and up; for None the first numeric ones that are left."""
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
) -> tuple[list[Scalar], list[Scalar], np.ndarray]:
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
