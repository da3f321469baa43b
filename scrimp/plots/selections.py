"""Pictures of a checkpoint selection: evaluated cells, predicted scores, confidence, correlations; of
one by question: survivors, scores, tasks that discriminate, answers saved.

scrimp.plots.selection_curve(selection, tasks=["mmlu", "gsm8k"])
scrimp.plots.selection_race(selection)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from plotly.graph_objects import Bar, Figure, Heatmap, Scatter
from plotly.subplots import make_subplots

from scrimp.checkpoint_selection.cell_policy import (
    believed_means,
    pending_cells,
    recommendation,
    score_table,
)
from scrimp.checkpoint_selection.posterior import posterior_of
from scrimp.checkpoint_selection.question_policy import (
    RaceFold,
    interval_of,
    is_race,
    race_of,
    recommend_race,
    stated,
)
from scrimp.checkpoint_selection.question_race import QuestionRace
from scrimp.checkpoint_selection.recommendation import Recommendation
from scrimp.checkpoint_selection.score_table import Checkpoint, ScoreTable
from scrimp.checkpoint_selection.selection import Selection
from scrimp.errors import StudyError
from scrimp.plots import style
from scrimp.plots.style import figure, trace, unmarked
from scrimp.study_log.events import Decided
from scrimp.study_log.history import History
from scrimp.surrogates.surrogate import Array

FIGURE_HEIGHT = 560
"""Height of the figures in pixels, alike so that two fill a row of the dashboard."""

MAX_MOMENTS = 40
MAX_NUMBERED_TASKS = 15
"""Tasks up to which the correlations are written into the map."""


@dataclass(frozen=True)
class _Belief:
    """The score table, the answer, and the model's prediction of every cell and every mean."""

    table: ScoreTable
    answer: Recommendation
    cells: Array  # (K, J)
    means: Array  # (K,)
    spread: Array  # (K,), standard deviations of the means
    order: list[int]  # rows in the order of the run

    @property
    def labels(self) -> list[Checkpoint]:
        """Return the checkpoints in this order: steps as numbers, names as text."""
        names = [self.table.checkpoints[row] for row in self.order]
        text = any(isinstance(name, str) for name in names)
        return [unmarked(name) for name in names] if text else names


def selection_grid(selection: Selection) -> Figure:
    """Return checkpoints by tasks: the colour is the expected score relative to the task, dots are
    evaluated cells."""
    history = selection.history
    belief = _belief(history)
    table, order = belief.table, belief.order
    pending = sorted({table.cell(*cell) for cell in pending_cells(history)})
    # Higher is better, also for tasks that are minimized.
    centred = (belief.cells - belief.cells.mean(axis=0)) * np.sign(table.weights)
    shades = (centred / np.maximum(centred.std(axis=0), 1e-12))[order].T
    columns = [unmarked(str(label)) for label in belief.labels]
    rows = [unmarked(task) for task in table.tasks]
    map_of_scores = Heatmap(
        z=shades,
        x=columns,
        y=rows,
        zmid=0.0,
        colorscale=style.AREA,
        colorbar={"title": {"text": "relative to<br>the task"}},
        customdata=belief.cells[order].T,
        hovertemplate="%{y} of checkpoint %{x}: %{customdata:.4g} expected<extra></extra>",
    )
    kinds = (
        ("measured", np.argwhere(table.seen).tolist(), "circle", "#ffffff"),
        ("failed", np.argwhere(table.failed).tolist(), "x", style.FAILED),
        ("under evaluation", pending, "circle", "rgba(255, 255, 255, 0.35)"),
    )
    picture = Figure([map_of_scores, *(_cells(table, *kind) for kind in kinds if kind[1])])
    axis = {"type": "category", "showgrid": False}
    picture.update_xaxes(title_text="checkpoint", range=[-0.5, len(columns) - 0.5], **axis)
    picture.update_yaxes(title_text="task", automargin=True, range=[-0.5, len(rows) - 0.5], **axis)
    picture.update_layout(height=max(FIGURE_HEIGHT, 200 + 18 * len(rows)), showlegend=True)
    done = int(table.seen.sum())
    title = f"{done} of {table.scores.size} cells evaluated"
    answer = f"the answer is checkpoint {unmarked(belief.answer.checkpoint)}"
    return figure(picture, title, f"{title}; {answer}. Brighter is better.")


def _cells(
    table: ScoreTable, name: str, cells: Sequence[tuple[int, int]], symbol: str, colour: str
) -> Scatter:
    """Return marks on cells (row, column) of the table."""
    outline = {"width": 1, "color": "rgba(0, 0, 0, 0.6)"}
    return trace(
        [(unmarked(str(table.checkpoints[k])), unmarked(table.tasks[j])) for k, j in cells],
        "markers",
        marker={"symbol": symbol, "color": colour, "size": 7, "line": outline},
        name=name,
        customdata=[float(table.scores[row, column]) for row, column in cells],
        hovertemplate=f"%{{y}} of checkpoint %{{x}}: {name} %{{customdata:.4g}}<extra></extra>",
    )


def selection_curve(selection: Selection, tasks: Sequence[str] | None = None) -> Figure:
    """Return the mean score of every checkpoint with a band of two standard deviations, and below it
    single tasks, all by default."""
    belief = _belief(selection.history)
    table, order = belief.table, belief.order
    unknown = [task for task in tasks or () if task not in table.tasks]
    if unknown:
        raise StudyError(f"there is no task {unknown[0]!r}; known: {', '.join(table.tasks[:12])}")
    shown = list(tasks or table.tasks)
    picture = make_subplots(
        rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.09, row_heights=[0.55, 0.45]
    )
    mean, spread, xs = belief.means[order], belief.spread[order], belief.labels
    mode = "lines" if table.steps is not None else "markers"
    points = list(zip(xs, mean.tolist(), strict=True))
    best = order.index(table.checkpoints.index(belief.answer.checkpoint))
    star = {"color": style.ACCENT, "size": 11, "symbol": "star"}
    low, high = (mean - 2 * spread).tolist(), (mean + 2 * spread).tolist()
    above = [
        *style.band(xs, low, high, style.BAND, name="two standard deviations"),
        trace(points, mode, line={"color": style.LINE}, name="mean score"),
        trace([points[best]], "markers", marker=star, name="answer"),
    ]
    picture.add_traces(above, rows=1, cols=1)
    for place, task in enumerate(shown):
        traces = _task_traces(belief, task, style.series_line(place, width=1.5), mode)
        picture.add_traces(traces, rows=2, cols=1)
    picture.update_yaxes(title_text="mean score", row=1, col=1)
    picture.update_yaxes(title_text="score of a task", row=2, col=1)
    picture.update_xaxes(title_text="checkpoint", row=2, col=1)
    picture.update_layout(height=max(FIGURE_HEIGHT, 160 + 19 * len(shown)))
    score = belief.answer.expected_score
    title = f"Checkpoint {unmarked(belief.answer.checkpoint)}"
    title += "" if score is None else f", mean score {score:.4g}"
    words = f"{title}; {int(table.seen.sum())} of {table.scores.size} cells were evaluated."
    if len(shown) < len(table.tasks):
        words += f" {len(shown)} of {len(table.tasks)} tasks are shown."
    legend = {"orientation": "v", "x": 1.02, "xanchor": "left", "y": 1.0, "yanchor": "top"}
    return figure(picture, title, words).update_layout(legend=legend)


def _task_traces(belief: _Belief, task: str, line: dict[str, object], mode: str) -> list[Scatter]:
    """Return the predicted scores of a task, and the measured ones."""
    table, order = belief.table, belief.order
    column, xs, name = table.tasks.index(task), belief.labels, unmarked(task)
    predicted = zip(xs, belief.cells[order, column].tolist(), strict=True)
    measured = [
        (x, float(table.scores[row, column]))
        for x, row in zip(xs, order, strict=True)
        if table.seen[row, column]
    ]
    dots = {"color": line["color"], "size": 6}
    hidden = {"showlegend": False, "name": f"{name}, measured"}
    return [
        trace(predicted, mode, line=line, name=name, legendgroup=name),
        trace(measured, "markers", marker=dots, legendgroup=name, **hidden),
    ]


def selection_confidence(selection: Selection) -> Figure:
    """Return the probability that the answer is as good as the best, and its expected loss, over the
    number of evaluated cells."""
    moments = _moments(selection.history)
    if not moments:
        raise StudyError(
            f"selection {selection.name!r} has no stated confidence yet; evaluate cells with a method"
            " that has a model, such as kg"
        )
    cells = [cell for cell, _ in moments]
    texts = [f"checkpoint {unmarked(answer.checkpoint)}" for _, answer in moments]
    picture = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.09)
    hover = {"text": texts, "hovertemplate": "%{text}: %{y:.3g} after %{x} cells<extra></extra>"}
    panels = {
        "probability best": [answer.probability_best for _, answer in moments],
        "expected loss": [answer.expected_loss for _, answer in moments],
    }
    for row, (name, values) in enumerate(panels.items(), start=1):
        look = {"line": {"color": style.LINE}, "name": name, **hover}
        picture.add_trace(trace(zip(cells, values, strict=True), "lines+markers", **look), row, 1)
        picture.update_yaxes(title_text=name, rangemode="tozero", row=row, col=1)
    for cell, (before, text) in zip(cells[1:], pairwise(texts), strict=True):
        if text != before:
            picture.add_vline(x=cell, line={"color": style.MUTED, "dash": "dot", "width": 1})
    picture.update_yaxes(range=[0, 1.02], row=1, col=1)
    picture.update_xaxes(title_text="cells evaluated", row=2, col=1, **style.count_axis(cells))
    picture.update_layout(height=FIGURE_HEIGHT, showlegend=False)
    last = moments[-1][1]
    title = f"Within {last.tolerance:g} of the best with probability {last.probability_text}"
    loss = f"expected loss {last.loss_text} after {cells[-1]} cells"
    return figure(picture, title, f"{title}; {loss}. Dotted: the answer changed.")


def _moments(history: History) -> list[tuple[int, Recommendation]]:
    """Return evaluated cells and the answer at some decisions and at the end, with a confidence."""
    ends = [event.seen for event in history.events if isinstance(event, Decided)]
    found: dict[int, Recommendation] = {}
    shown = [*(end for end in ends if end > 1), history.length]
    for end in style.thinned_items(shown, MAX_MOMENTS):
        then = History.of(history.events[:end])
        answer = recommendation(then)
        if answer.probability_best is not None:
            found[int(score_table(then).seen.sum())] = answer
    return sorted(found.items())


def _belief(history: History) -> _Belief:
    """Return the model's view of the scores so far; without a model or scores, the measured numbers."""
    table, answer, means = score_table(history), recommendation(history), believed_means(history)
    steps = np.arange(table.shape[0]) if table.steps is None else table.steps
    order = np.argsort(steps, kind="stable").tolist()
    if means is None:
        counts = np.maximum(table.seen.sum(axis=0), 1)
        level = np.where(table.seen, table.scores, 0.0).sum(axis=0) / counts
        cells = np.where(table.seen, table.scores, level)
        return _Belief(table, answer, cells, cells @ table.weights, np.zeros(table.shape[0]), order)
    belief = posterior_of(means)
    return _Belief(table, answer, belief.mean, belief.average_mean, belief.average_std, order)


def selection_correlations(selection: Selection, kernel: bool = False) -> Figure:
    """Return the correlation of tasks over the checkpoints, as the model expects it, with similar
    tasks next to each other.

    ``kernel=True`` shows the fitted covariance alone, which for ``ei-icm`` is its K_t.
    """
    matrix = selection.task_correlations(kernel=kernel)
    # By the first eigenvector, similar tasks are next to each other.
    order = np.argsort(np.linalg.eigh(matrix)[1][:, -1], kind="stable").tolist()
    names = [unmarked(selection.tasks[place]) for place in order]
    shown = matrix[np.ix_(order, order)]
    picture = Figure(
        Heatmap(
            z=shown,
            x=names,
            y=names,
            zmin=max(np.floor(10.0 * float(shown.min())) / 10.0 - 0.1, -1.0),
            zmax=1.0,
            colorscale=style.AREA,
            colorbar={"title": {"text": "correlation"}},
            texttemplate="%{z:.2f}" if len(names) <= MAX_NUMBERED_TASKS else "",
            hovertemplate="%{y} and %{x}: %{z:.2f}<extra></extra>",
        )
    )
    picture.update_xaxes(type="category", showgrid=False, automargin=True)
    picture.update_yaxes(type="category", showgrid=False, automargin=True, autorange="reversed")
    picture.update_layout(height=max(FIGURE_HEIGHT, 200 + 18 * len(names)))
    title = f"Correlation of {len(names)} tasks along the run"
    extremes = _extremes(matrix, [unmarked(task) for task in selection.tasks])
    return figure(picture, title, f"{title}{extremes}.")


def _extremes(matrix: Array, names: list[str]) -> str:
    """Return the most and the least correlated pair, as text."""
    first, second = np.triu_indices(len(names), 1)
    if not len(first):
        return ""
    values = matrix[first, second]
    highest, lowest = (
        f"{names[first[place]]} and {names[second[place]]} ({values[place]:.2f})"
        for place in (np.argmax(values), np.argmin(values))
    )
    return f"; highest for {highest}, lowest for {lowest}"


RACE_TICKS = [digit * 10**power for power in range(5) for digit in (1, 2, 5)]
"""Numbers of checkpoints on the logarithmic axis; Plotly would write 20 as a bare 2."""


def _race(selection: Selection) -> tuple[RaceFold, QuestionRace]:
    """Return the race of a selection by question; `StudyError` without one or without answers."""
    if not is_race(selection.history):
        raise StudyError(
            f"selection {selection.name!r} measures whole benchmarks; this figure is for selections by"
            ' question, with tasks={"arc": 1172}'
        )
    fold, race = race_of(selection.history)
    if not race.counts.any():
        raise StudyError(
            f"selection {selection.name!r} has no answers yet; ask and tell some first"
        )
    return fold, race


def selection_race(selection: Selection) -> Figure:
    """Return the number of checkpoints in the race over the answers asked, with those that left."""
    fold, race = _race(selection)
    steps, gone = _survivors(fold, race)
    picture = Figure()
    look = {"line": {"color": style.LINE, "shape": "hv"}, "name": "in the race"}
    picture.add_trace(trace(steps, "lines", **look))
    look = {"marker": {"color": style.MUTED, "size": 9, "symbol": "x"}, "name": "eliminated"}
    look |= {"text": [names for _, _, names in gone], "hovertemplate": "%{text}<extra></extra>"}
    picture.add_trace(trace([(x, y) for x, y, _ in gone], "markers", **look))
    picture.update_xaxes(title_text="answers asked", rangemode="tozero")
    picture.update_yaxes(title_text="checkpoints in the race", type="log", tickvals=RACE_TICKS)
    picture.update_layout(height=FIGURE_HEIGHT)
    leader = unmarked(fold.checkpoints[race.leader])
    title = f"{len(race.alive)} of {len(fold.checkpoints)} checkpoints in the race, {leader} leads"
    return figure(picture, title, f"{title}, after {int(race.counts.sum()):,} answers.")


def _survivors(
    fold: RaceFold, race: QuestionRace
) -> tuple[list[tuple[int, int]], list[tuple[int, int, str]]]:
    """Return answers and survivors after every round, and who left where."""
    answers, steps, gone = 0, [(0, len(race.past_rounds[0].rows))], []
    before = np.zeros(len(race.sizes), np.intp)
    for number, each in enumerate(race.past_rounds):
        done = np.minimum(race.counts[each.rows], each.upto)
        answers += int((done - np.minimum(done, before)).sum())
        before = each.upto
        stay = race.past_rounds[min(number + 1, len(race.past_rounds) - 1)].rows
        left = [unmarked(fold.checkpoints[row]) for row in each.rows if row not in stay]
        steps.append((answers, len(stay)))
        if left:
            more = f" and {len(left) - 12} more" if len(left) > 12 else ""
            gone.append((answers, len(stay), f"eliminated: {', '.join(left[:12])}{more}"))
    return steps, gone


def selection_scores(selection: Selection) -> Figure:
    """Return the score of every checkpoint on common questions, with the 90 % interval of its
    difference from those in the race."""
    fold, race = _race(selection)
    statement = stated(selection.history, race)
    sign = fold.signs[0] if len(set(fold.signs)) == 1 else 1.0
    level = statement.score - statement.mean[statement.row]
    spread = 1.645 * np.sqrt(np.maximum(np.diag(statement.covariance), 0.0))
    asked = race.counts.sum(1)
    picture = Figure()
    out = np.setdiff1d(np.arange(len(asked)), race.alive)
    colours = ((race.alive, style.LINE, "in the race"), (out, style.MUTED, "eliminated"))
    for shown, colour, name in colours:
        shown = shown[asked[shown] > 0]
        points = [
            (unmarked(fold.checkpoints[r]), sign * (level + statement.mean[r])) for r in shown
        ]
        look = {
            "marker": {"color": colour, "size": 8},
            "error_y": {"type": "data", "array": spread[shown], "color": colour, "thickness": 1},
            "customdata": [int(asked[row]) for row in shown],
            "hovertemplate": "%{x}: %{y:.4f} from %{customdata} answers<extra></extra>",
        }
        picture.add_trace(trace(points, "markers", name=name, **look))
    star = {"color": style.ACCENT, "size": 13, "symbol": "star"}
    leader = unmarked(fold.checkpoints[statement.row])
    best = [(leader, sign * statement.score)]
    picture.add_trace(trace(best, "markers", marker=star, name="answer"))
    names = [unmarked(name) for name, count in zip(fold.checkpoints, asked, strict=True) if count]
    picture.update_xaxes(title_text="checkpoint", type="category", categoryarray=names)
    picture.update_yaxes(title_text="score")
    picture.update_layout(height=FIGURE_HEIGHT)
    low, high = sorted(sign * end for end in interval_of(fold, race, statement))
    title = f"{leader}: {sign * statement.score:.4f}, 90 % interval {low:.4f} to {high:.4f}"
    sure = recommend_race(selection.history).sure_text
    return figure(picture, title, f"{title}; {sure}. Bars: 90 % intervals on common questions.")


def selection_tasks(selection: Selection) -> Figure:
    """Return how much each task tells about the checkpoints: the spread of their scores beside the
    noise of one answer, and the share of the answers it got."""
    fold, race = _race(selection)
    names = [unmarked(task) for task in fold.tasks]
    first = race.past_rounds[0].rows
    spread = []
    for task in range(len(names)):
        rows = first[race.counts[first, task] > 0]
        count = int(race.counts[rows, task].min()) if len(rows) else 0
        means = race.book.block(rows, task, count).mean(1) if count else np.zeros(1)
        variance = means.var() - race.noise[task] / max(count, 1)
        spread.append(float(np.sqrt(max(variance, 0.0))))
    picture = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.09)
    noise = np.sqrt(race.noise)
    for name, values, colour in (
        ("spread of the checkpoints", spread, style.SERIES[1]),
        ("noise of one answer", noise, style.MUTED),
    ):
        picture.add_trace(Bar(x=names, y=values, name=name, marker={"color": colour}), 1, 1)
    shares = 100.0 * race.counts.sum(0) / max(int(race.counts.sum()), 1)
    bars = Bar(x=names, y=shares, name="share of answers", marker={"color": style.LINE})
    picture.add_trace(bars, 2, 1)
    picture.update_yaxes(title_text="score", row=1, col=1)
    picture.update_yaxes(title_text="% of answers", row=2, col=1)
    picture.update_xaxes(type="category", automargin=True)
    picture.update_layout(height=FIGURE_HEIGHT)
    ratio = np.array(spread) / np.maximum(noise, 1e-12)
    most, least = names[int(ratio.argmax())], names[int(ratio.argmin())]
    title = f"{most} discriminates most"
    return figure(picture, title, f"{title}, {least} least, for one answer.")


def selection_saved(selection: Selection) -> Figure:
    """Return the answers asked and those saved, by checkpoint."""
    fold, race = _race(selection)
    names = [unmarked(name) for name in fold.checkpoints]
    asked, total = race.counts.sum(1), int(race.sizes.sum())
    picture = Figure()
    for name, values, colour in (
        ("asked", asked, style.LINE),
        ("saved", total - asked, style.rgba(style.MUTED, 0.35)),
    ):
        picture.add_trace(Bar(x=names, y=values, name=name, marker={"color": colour}))
    picture.update_layout(height=FIGURE_HEIGHT, barmode="stack")
    picture.update_xaxes(title_text="checkpoint", type="category")
    picture.update_yaxes(title_text="answers")
    share = 100.0 * float(asked.sum()) / (total * len(names))
    title = f"{100.0 - share:.3g} % of {total * len(names):,} answers saved"
    return figure(picture, title, f"{title}; {int(asked.sum()):,} were asked.")
