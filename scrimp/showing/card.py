"""A study in a notebook: a card of plain HTML, without scripts, in which every text of a user is escaped."""

from collections.abc import Iterable
from html import escape

from scrimp.history.best_path import BEST_PATH
from scrimp.history.bounds import hints
from scrimp.history.history import History
from scrimp.history.reports import printable
from scrimp.showing.figures import number
from scrimp.showing.standing import (
    Standing,
    best_words,
    goal_words,
    method_words,
    running_words,
    saved_words,
    spent_words,
    states_words,
    waiting_words,
)
from scrimp.showing.trial_columns import TableQuery, trial_table
from scrimp.space.html_table import html_table, words

__all__ = ["study_card"]

BOX = "border:1px solid rgba(128,128,128,.35);border-radius:6px;padding:10px 14px;max-width:860px;font-size:13px"
TOP = 5
"""Trials that the card lists."""

RUNNING = 8
WIDE, HIGH = 260, 48
"""Size of the drawn path of the best value."""


def study_card(history: History, standing: Standing | None = None) -> str:
    """Where a study stands: progress, the best value as it fell, its configuration, the best trials.

    With a ``standing`` the study is being run, and the card says who runs and how long it takes.
    """
    now = Standing.of(history, 0.0) if standing is None else standing
    method = method_words(history.method)
    title = f"{history.created.name}: {goal_words(history)} with {method}"
    time = "" if standing is None else standing.time_words
    parts = [
        f'<div style="display:flex;justify-content:space-between"><b>{_said(title)}</b><span>{_said(time)}</span></div>',
        _bar(history, now),
        f'<div style="display:flex;gap:24px;align-items:end"><div>best {_said(best_words(history))}</div>{_path(history)}</div>',
    ]
    if history.best is not None:
        config = history.best[0].config
        parts.append(html_table(list(config), [[number(value) for value in config.values()]]))
    parts += [f"<div>{_said(line)}</div>" for line in _lines(history, now)]
    parts.append(_leaders(history))
    return f'<div style="{BOX}">{"".join(parts)}</div>'


def _said(text: str) -> str:
    return escape(printable(text))


def _bar(history: History, standing: Standing) -> str:
    """The share that is done, as a bar, and what is counted."""
    trials = history.totals.n_trials
    count = (
        f"{len(history.trials)} trials"
        if trials is None
        else f"{len(history.trials)} of {trials} trials"
    )
    if standing.done is None:
        return f"<div>{count}</div>"
    colour = "#2e9e5b" if standing.over else "#2f7fd6"
    inner = f'<div style="background:{colour};height:6px;border-radius:3px;width:{100 * standing.done:.0f}%"></div>'
    outer = f'<div style="background:rgba(128,128,128,.25);border-radius:3px;flex:1">{inner}</div>'
    return f'<div style="display:flex;gap:12px;align-items:center;margin:6px 0">{outer}<span>{count}</span></div>'


def _lines(history: History, standing: Standing) -> Iterable[str]:
    budgeted = history.problem.budget is not None
    yield states_words(history.counts)
    if not standing.over:
        for trial in history.with_status("running")[:RUNNING]:
            yield f"running: {running_words(history, trial)}"
        if budgeted and waiting_words(history):
            yield f"waiting: {waiting_words(history)}"
    if budgeted:
        yield saved_words(history) if standing.over else spent_words(history)
    yield from hints(history)


def _path(history: History) -> str:
    """The best value over what was spent, as a drawn line of steps."""
    path = history.derive(BEST_PATH)
    values = [value for _, _, value in path.points]
    if len(values) < 2 or path.spent <= path.points[0][0]:
        return ""
    low, high, begin = min(values), max(values), path.points[0][0]
    places = [
        ((spent - begin) / (path.spent - begin), (high - value) / (high - low))
        for spent, _, value in path.points
    ]
    corners = [f"M{WIDE * places[0][0]:.1f},{2 + HIGH * places[0][1]:.1f}"]
    for x, y in places[1:]:
        corners.append(f"H{WIDE * x:.1f}V{2 + HIGH * y:.1f}")
    line = "".join([*corners, f"H{WIDE}"])
    return (
        f'<svg width="{WIDE}" height="{HIGH + 4}" role="img" aria-label="best value over time">'
        f'<path d="{line}" fill="none" stroke="#2f7fd6" stroke-width="1.5"/></svg>'
    )


def _leaders(history: History) -> str:
    """The best trials, folded."""
    if not history.trials:
        return ""
    table = trial_table(history, TableQuery(top=TOP))
    listed = html_table(table.columns, table.rows)
    return f"<details><summary>the best {len(table.rows)} of {words(table.matching)} trials</summary>{listed}</details>"
