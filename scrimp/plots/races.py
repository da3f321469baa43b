"""Pictures of a selection by question: survivors, scores, tasks that discriminate, answers saved.

scrimp.plots.selection_race(selection)
scrimp.plots.selection_scores(selection)
scrimp.plots.selection_tasks(selection)
scrimp.plots.selection_saved(selection)
"""

from typing import TYPE_CHECKING

import numpy as np

from scrimp.checkpoint_selection.question_policy import (
    RaceFold,
    is_race,
    race_of,
    recommend_race,
    stated,
)
from scrimp.checkpoint_selection.question_race import QuestionRace
from scrimp.checkpoint_selection.selection import Selection
from scrimp.errors import StudyError
from scrimp.plots import style
from scrimp.plots.selections import FIGURE_HEIGHT
from scrimp.plots.style import figure, trace, unmarked

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

RACE_TICKS = [digit * 10**power for power in range(5) for digit in (1, 2, 5)]
"""Numbers of checkpoints on the logarithmic axis; Plotly would write 20 as a bare 2."""


def _race(selection: Selection) -> tuple[RaceFold, QuestionRace]:
    """Return the race of a selection by question; `StudyError` without one or without answers."""
    if not is_race(selection.history):
        raise StudyError(
            f"selection {selection.name!r} measures whole benchmarks; this figure is for selections by"
            ' question, with tasks={"arc": 1172}'
        )
    fold, state = race_of(selection.history)
    if not state.race.counts.any():
        raise StudyError(
            f"selection {selection.name!r} has no answers yet; ask and tell some first"
        )
    return fold, state.race


def selection_race(selection: Selection) -> "Figure":
    """Return the number of checkpoints in the race over the answers asked, with those that left."""
    from plotly.graph_objects import Figure

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


def selection_scores(selection: Selection) -> "Figure":
    """Return the score of every checkpoint on common questions, with the 90 % interval of its
    difference from those in the race."""
    from plotly.graph_objects import Figure

    fold, race = _race(selection)
    statement = stated(selection.history, fold, race)
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
    low, high = sorted(sign * end for end in statement.interval)
    title = f"{leader}: {sign * statement.score:.4f}, 90 % interval {low:.4f} to {high:.4f}"
    sure = recommend_race(selection.history).sure_text
    return figure(picture, title, f"{title}; {sure}. Bars: 90 % intervals on common questions.")


def selection_tasks(selection: Selection) -> "Figure":
    """Return how much each task tells about the checkpoints: the spread of their scores beside the
    noise of one answer, and the share of the answers it got."""
    from plotly.graph_objects import Bar
    from plotly.subplots import make_subplots

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


def selection_saved(selection: Selection) -> "Figure":
    """Return the answers asked and those saved, by checkpoint."""
    from plotly.graph_objects import Bar, Figure

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
