"""Which tasks of a selection move together along the run.

scrimp.plots.selection_correlations(selection)
"""

from typing import TYPE_CHECKING

import numpy as np

from scrimp.plots.style import SCALE, figure, unmarked
from scrimp.selection.selection import Selection
from scrimp.surrogates.surrogate import Array

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["selection_correlations"]


def selection_correlations(selection: Selection, kernel: bool = False) -> "Figure":
    """Tasks by tasks: the correlation of their scores over the checkpoints, as the model expects
    it; alike tasks stand together.

    ``kernel=True``: that of the fitted covariance alone, which for ``ei-icm`` is its K_t.
    """
    from plotly.graph_objects import Figure, Heatmap

    matrix = selection.task_correlations(kernel=kernel)
    order = _together(matrix)
    names = [unmarked(selection.tasks[place]) for place in order]
    picture = Figure(
        Heatmap(
            z=matrix[np.ix_(order, order)],
            x=names,
            y=names,
            zmin=-1.0,
            zmax=1.0,
            zmid=0.0,
            colorscale=[list(stop) for stop in SCALE],
            colorbar={"title": {"text": "correlation"}},
            hovertemplate="%{y} and %{x}: %{z:.2f}<extra></extra>",
        )
    )
    picture.update_xaxes(type="category", showgrid=False, automargin=True)
    picture.update_yaxes(type="category", showgrid=False, automargin=True, autorange="reversed")
    picture.update_layout(height=max(360, 200 + 18 * len(names)))
    title = f"How {len(names)} tasks move together along the run"
    return figure(
        picture, title, f"{title}{_extremes(matrix, [unmarked(task) for task in selection.tasks])}."
    )


def _extremes(matrix: Array, names: list[str]) -> str:
    """The pair most alike and the pair least alike, in words."""
    first, second = np.triu_indices(len(names), 1)
    if not len(first):
        return ""
    values = matrix[first, second]
    most, least = int(np.argmax(values)), int(np.argmin(values))
    pairs = [
        f"{names[first[place]]} and {names[second[place]]} ({values[place]:.2f})"
        for place in (most, least)
    ]
    return f"; most alike are {pairs[0]}, least {pairs[1]}"


def _together(matrix: Array) -> list[int]:
    """An order in which alike tasks are neighbours: by their place along the main direction of the
    matrix."""
    _, vectors = np.linalg.eigh(matrix)
    return [int(place) for place in np.argsort(vectors[:, -1], kind="stable")]
