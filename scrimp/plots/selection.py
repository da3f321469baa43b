"""Pictures of a selection: what was evaluated, what the model believes of each checkpoint, and how
sure it became.

scrimp.plots.selection_grid(selection)
scrimp.plots.selection_curve(selection, tasks=["mmlu", "gsm8k"])
scrimp.plots.selection_confidence(selection)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import StudyError
from scrimp.history.events import Noted
from scrimp.history.history import History
from scrimp.plots.style import (
    ACCENT,
    AREA,
    BAND,
    FAILED,
    LINE,
    MUTED,
    SERIES,
    figure,
    thinned_items,
    unmarked,
)
from scrimp.selection.cell_policy import believed_means, pending_cells, recommendation, score_table
from scrimp.selection.score_table import Checkpoint, ScoreTable
from scrimp.selection.selection import Selection
from scrimp.surrogates.surrogate import Array

if TYPE_CHECKING:  # loading them takes their time
    from plotly.graph_objects import Figure

    from scrimp.selection.recommendation import Recommendation

__all__ = ["selection_confidence", "selection_curve", "selection_grid"]

MOST_TASKS = 8
MOST_MOMENTS = 40


@dataclass(frozen=True)
class _Belief:
    """The table, the answer, and what the method's model says of every cell and every mean."""

    table: ScoreTable
    answer: "Recommendation"
    cells: Array  # (K, J)
    means: Array  # (K,)
    spread: Array  # (K,), standard deviations of the means
    order: list[int]  # rows in the order of the run

    @property
    def labels(self) -> list[Checkpoint]:
        """The checkpoints in this order: steps as numbers, names as text."""
        names = [self.table.checkpoints[row] for row in self.order]
        return (
            [unmarked(name) for name in names]
            if any(isinstance(name, str) for name in names)
            else names
        )


def selection_grid(selection: Selection) -> "Figure":
    """Checkpoints by tasks: colour is the expected score relative to the task, dots are cells that
    were evaluated."""
    from plotly.graph_objects import Figure, Heatmap

    history = selection.history
    belief = _belief(history)
    table, order = belief.table, belief.order
    centred = (belief.cells - belief.cells.mean(axis=0)) * np.sign(
        table.weights
    )  # higher is better
    shades = (centred / np.maximum(centred.std(axis=0), 1e-12))[order].T
    columns = [unmarked(str(label)) for label in belief.labels]
    rows = [unmarked(task) for task in table.tasks]
    picture = Figure(
        Heatmap(
            z=shades,
            x=columns,
            y=rows,
            customdata=belief.cells[order].T,
            colorscale=AREA,
            zmid=0.0,
            colorbar={"title": {"text": "relative to<br>the task"}},
            hovertemplate="%{y} of checkpoint %{x}: %{customdata:.4g} expected<extra></extra>",
        )
    )
    pending = np.zeros(table.shape, dtype=bool)
    for cell in pending_cells(history):
        pending[table.cell(*cell)] = True
    kinds = (
        ("measured", table.seen, "circle", "#ffffff"),
        ("failed", table.failed, "x", FAILED),
        ("under evaluation", pending, "circle", "rgba(255, 255, 255, 0.35)"),
    )
    for name, mask, symbol, colour in kinds:
        _add_cells(picture, belief, mask, name, {"symbol": symbol, "color": colour, "size": 7})
    picture.update_xaxes(
        title_text="checkpoint", type="category", showgrid=False, range=[-0.5, len(columns) - 0.5]
    )
    picture.update_yaxes(
        title_text="task",
        automargin=True,
        type="category",
        showgrid=False,
        range=[-0.5, len(rows) - 0.5],
    )
    picture.update_layout(height=max(360, 200 + 18 * len(rows)), showlegend=True)
    done = int(table.seen.sum())
    title = f"{done} of {table.scores.size} cells evaluated"
    answer = unmarked(belief.answer.checkpoint)
    return figure(picture, title, f"{title}; the answer is checkpoint {answer}. Bright is good.")


def _add_cells(
    picture: "Figure",
    belief: _Belief,
    mask: NDArray[np.bool_],
    name: str,
    marker: dict[str, object],
) -> None:
    from plotly.graph_objects import Scatter

    if not mask.any():
        return
    table = belief.table
    cells = np.argwhere(mask).tolist()
    picture.add_trace(
        Scatter(
            x=[unmarked(str(table.checkpoints[row])) for row, _ in cells],
            y=[unmarked(table.tasks[column]) for _, column in cells],
            mode="markers",
            marker={**marker, "line": {"width": 1, "color": "rgba(0, 0, 0, 0.6)"}},
            name=name,
            customdata=[float(table.scores[row, column]) for row, column in cells],
            hovertemplate=f"%{{y}} of checkpoint %{{x}}: {name} %{{customdata:.4g}}<extra></extra>",
        )
    )


def selection_curve(selection: Selection, tasks: Sequence[str] | None = None) -> "Figure":
    """The mean score of every checkpoint with a band of two standard deviations; below it single
    tasks, a few by default."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    belief = _belief(selection.history)
    table, order = belief.table, belief.order
    unknown = [task for task in tasks or () if task not in table.tasks]
    if unknown:
        raise StudyError(
            f"there is no task {unknown[0]!r}; known are {', '.join(table.tasks[:12])}"
        )
    shown = list(tasks) if tasks else thinned_items(table.tasks, MOST_TASKS)
    picture = make_subplots(
        rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.09, row_heights=[0.55, 0.45]
    )
    mean, spread, xs = belief.means[order], belief.spread[order], belief.labels
    edge = {"x": xs, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    picture.add_trace(Scatter(y=(mean + 2 * spread).tolist(), showlegend=False, **edge), 1, 1)
    band = {"fill": "tonexty", "fillcolor": BAND, "name": "two standard deviations"}
    picture.add_trace(Scatter(y=(mean - 2 * spread).tolist(), **band, **edge), 1, 1)
    mode = "lines" if table.steps is not None else "markers"
    picture.add_trace(
        Scatter(x=xs, y=mean.tolist(), mode=mode, line={"color": LINE}, name="mean score"), 1, 1
    )
    best = order.index(table.checkpoints.index(belief.answer.checkpoint))
    mark = {"color": ACCENT, "size": 11, "symbol": "star"}
    picture.add_trace(
        Scatter(x=[xs[best]], y=[float(mean[best])], mode="markers", marker=mark, name="answer"),
        1,
        1,
    )
    for place, task in enumerate(shown):
        _add_task(picture, belief, task, SERIES[place % len(SERIES)], mode)
    picture.update_yaxes(title_text="mean score", row=1, col=1)
    picture.update_yaxes(title_text="score of a task", row=2, col=1)
    picture.update_xaxes(title_text="checkpoint", row=2, col=1)
    picture.update_layout(height=640)
    score = belief.answer.expected_score
    title = f"Checkpoint {unmarked(belief.answer.checkpoint)}"
    title += "" if score is None else f", mean score {score:.4g}"
    drawn = figure(
        picture,
        title,
        f"{title}; {int(table.seen.sum())} of {table.scores.size} cells were evaluated.",
    )
    return drawn.update_layout(
        legend={"orientation": "v", "x": 1.02, "xanchor": "left", "y": 1.0, "yanchor": "top"}
    )


def _add_task(picture: "Figure", belief: _Belief, task: str, colour: str, mode: str) -> None:
    from plotly.graph_objects import Scatter

    table, order = belief.table, belief.order
    column, xs, name = table.tasks.index(task), belief.labels, unmarked(task)
    believed_means = belief.cells[order, column].tolist()
    picture.add_trace(
        Scatter(
            x=xs,
            y=believed_means,
            mode=mode,
            line={"color": colour, "width": 1.5},
            name=name,
            legendgroup=name,
        ),
        2,
        1,
    )
    seen = [place for place, row in enumerate(order) if table.seen[row, column]]
    picture.add_trace(
        Scatter(
            x=[xs[place] for place in seen],
            y=[float(table.scores[order[place], column]) for place in seen],
            mode="markers",
            marker={"color": colour, "size": 7},
            legendgroup=name,
            showlegend=False,
            name=f"{name}, measured",
        ),
        2,
        1,
    )


def selection_confidence(selection: Selection) -> "Figure":
    """How sure the answer was after so many cells: the probability that it is as good as best, and
    the expected loss."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    moments = _moments(selection.history)
    if not moments:
        raise StudyError(
            f"selection {selection.name!r} has no stated confidence yet; measure cells, by a method"
            " with a model such as kg"
        )
    cells = [cell for cell, _ in moments]
    texts = [f"checkpoint {unmarked(answer.checkpoint)}" for _, answer in moments]
    picture = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.09)
    for row, (name, colour, values) in enumerate(
        (
            ("probability best", LINE, [answer.probability_best for _, answer in moments]),
            ("expected loss", ACCENT, [answer.expected_loss for _, answer in moments]),
        ),
        start=1,
    ):
        line = {"color": colour}
        hover = "%{text}: %{y:.3g} after %{x} cells<extra></extra>"
        trace = Scatter(
            x=cells,
            y=values,
            text=texts,
            mode="lines+markers",
            line=line,
            name=name,
            hovertemplate=hover,
        )
        picture.add_trace(trace, row, 1)
        picture.update_yaxes(title_text=name, rangemode="tozero", row=row, col=1)
    changed = [place for place in range(1, len(texts)) if texts[place] != texts[place - 1]]
    for place in changed:
        picture.add_vline(x=cells[place], line={"color": MUTED, "dash": "dot", "width": 1})
    picture.update_yaxes(range=[0, 1.02], row=1, col=1)
    picture.update_xaxes(title_text="cells evaluated", row=2, col=1)
    picture.update_layout(height=560, showlegend=False)
    last = moments[-1][1]
    title = f"Within {last.tolerance:g} of the best with probability {last.probability_best:.2f}"
    words = (
        f"{title}; expected loss {last.expected_loss:.2g} after {cells[-1]} cells. Dotted: the"
        " answer changed."
    )
    return figure(picture, title, words)


def _moments(history: History) -> list[tuple[int, "Recommendation"]]:
    """Cells measured and the answer of the time, at some of the decisions and at the end, once
    there is confidence."""
    ends = [event.seen for event in history.events if isinstance(event, Noted)]
    found: dict[int, Recommendation] = {}
    for end in thinned_items([*(end for end in ends if end > 1), history.length], MOST_MOMENTS):
        then = History.of(history.events[:end])
        answer = recommendation(then)
        if answer.probability_best is not None:
            found[int(score_table(then).seen.sum())] = answer
    return sorted(found.items())


def _belief(history: History) -> _Belief:
    """What the scores so far say; without a model, or without scores, the measured numbers
    alone."""
    from scrimp.selection.posterior import posterior_of

    table, answer, means = score_table(history), recommendation(history), believed_means(history)
    order = (
        list(range(table.shape[0]))
        if table.steps is None
        else np.argsort(table.steps, kind="stable").tolist()
    )
    if means is None:
        counts = np.maximum(table.seen.sum(axis=0), 1)
        level = np.where(table.seen, table.scores, 0.0).sum(axis=0) / counts
        cells = np.where(table.seen, table.scores, level)
        return _Belief(table, answer, cells, cells @ table.weights, np.zeros(table.shape[0]), order)
    belief = posterior_of(means)
    return _Belief(table, answer, belief.mean, belief.average_mean, belief.average_std, order)
