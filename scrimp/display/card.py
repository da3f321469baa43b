"""A study in a Jupyter notebook: a card of plain HTML without scripts, in which all text is escaped,
and an output that is updated in place while a study runs.

    output = notebook_output()          # None outside a notebook
    output.show(study_card(record))

scrimp never imports IPython: in a notebook it is loaded already.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import ClassVar, Protocol

from scrimp.display.figures import number, svg_steps
from scrimp.display.study_words import (
    MAX_RUNNING_TRIALS_SHOWN,
    best_words,
    method_words,
    running_words,
    spent_words,
    states_words,
    time_words,
    waiting_words,
)
from scrimp.display.trial_columns import TableQuery, trial_table
from scrimp.space.html_table import html_table, words
from scrimp.study_log.messages import printable
from scrimp.study_log.record import StudyRecord
from scrimp.study_log.study_so_far import BEST_PATH

BOX = "border:1px solid rgba(128,128,128,.35);border-radius:6px;padding:10px 14px;max-width:860px;font-size:13px"

MAX_TRIALS_LISTED = 5
PATH_WIDTH, PATH_HEIGHT = 260, 52
"""Size of the drawn path of the best value, in pixels."""


def study_card(record: StudyRecord, answer: Sequence[str] = ()) -> str:
    """Return a card: progress, the best value and its path, its configuration, the best trials. If
    the record has the time of a run, the card shows it. The card of a selection has the sentences of
    its ``answer`` instead."""
    if record.kind == "selection":
        lines = [*(f"<div>{_escaped(line)}</div>" for line in answer), *_cells(record)]
        return _card(record, [_bar(record), *lines])
    parts = [
        _bar(record),
        f'<div style="display:flex;gap:24px;align-items:end"><div>best {_escaped(best_words(record))}</div>{_path(record)}</div>',
    ]
    if record.best is not None:
        config = record.best["params"]
        parts.append(html_table(list(config), [[number(value) for value in config.values()]]))
    parts += [f"<div>{_escaped(line)}</div>" for line in _lines(record)]
    if record.trials:
        table = trial_table(record, TableQuery(top=MAX_TRIALS_LISTED))
        listed = html_table(table.columns, table.rows)
        summary = f"the best {len(table.rows)} of {words(table.matching)} trials"
        parts.append(f"<details><summary>{summary}</summary>{listed}</details>")
    return _card(record, parts)


def _card(record: StudyRecord, parts: Iterable[str]) -> str:
    """Return a card with a title and the time of the run above its parts."""
    method = method_words(record)
    title = f"{record.name}: {record.goal} with {method}"
    time = "" if record.seconds is None else time_words(record)
    head = f'<div style="display:flex;justify-content:space-between"><b>{_escaped(title)}</b><span>{_escaped(time)}</span></div>'
    return f'<div style="{BOX}">{head}{"".join(parts)}</div>'


def _cells(record: StudyRecord) -> Iterable[str]:
    """Return the cells of a selection by state, and those under evaluation."""
    if record.counts:
        yield f"<div>{_escaped(states_words(record.counts))}</div>"
    if not record.over:
        for trial in record.history.with_status("running")[:MAX_RUNNING_TRIALS_SHOWN]:
            cell = ", ".join(f"{name} {value}" for name, value in trial.config.items())
            yield f"<div>under evaluation: {_escaped(cell)}</div>"


def _escaped(text: str) -> str:
    return escape(printable(text))


def _bar(record: StudyRecord) -> str:
    """Return a progress bar with the number of trials."""
    things = "cells" if record.kind == "selection" else "trials"
    count = f"{len(record.trials)}{'' if record.total is None else f' of {record.total}'} {things}"
    if record.done is None:
        # A selection by question has no count of cells; its answer says how much was asked.
        return "" if record.kind == "selection" else f"<div>{count}</div>"
    colour = "#2e9e5b" if record.over else "#2f7fd6"
    inner = f'<div style="background:{colour};height:6px;border-radius:3px;width:{100 * record.done:.0f}%"></div>'
    outer = f'<div style="background:rgba(128,128,128,.25);border-radius:3px;flex:1">{inner}</div>'
    return f'<div style="display:flex;gap:12px;align-items:center;margin:6px 0">{outer}<span>{count}</span></div>'


def _lines(record: StudyRecord) -> Iterable[str]:
    yield states_words(record.counts)
    if not record.over:
        for trial in record.history.with_status("running")[:MAX_RUNNING_TRIALS_SHOWN]:
            yield f"running: {running_words(record.problem, trial)}"
        if waiting := waiting_words(record):
            yield f"waiting: {waiting}"
    if record.problem.budget is not None:
        yield spent_words(record)
    yield from record.hints


def _path(record: StudyRecord) -> str:
    """Draw the best value over the budget spent, as steps."""
    path = record.history.derive(BEST_PATH)
    if len(path.points) < 2 or path.spent <= path.points[0][0]:
        return ""
    begin = path.points[0][0]
    steps = [(spent - begin, value) for spent, _, value in path.points]
    line = svg_steps(steps, path.spent - begin, (PATH_WIDTH, PATH_HEIGHT))
    return (
        f'<svg width="{PATH_WIDTH}" height="{PATH_HEIGHT}" role="img" aria-label="best value over time">'
        f'<polyline points="{line}" fill="none" stroke="#2f7fd6" stroke-width="1.5"/></svg>'
    )


class _Handle(Protocol):
    """IPython's handle of an output that can be updated."""

    def update(self, shown: object) -> None: ...


class _Html:
    """Text that a notebook renders as HTML."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "<card of a study>"


class NotebookOutput:
    """One output of the running cell. ``latest``: the number of the cell that shows a card, and the
    identity of the object that it shows, so that the same object as the last line of the cell is not
    shown again."""

    latest: ClassVar[tuple[object, int] | None] = None

    def __init__(self, display: Callable[..., _Handle]) -> None:
        self._display = display
        self._handle: _Handle | None = None

    def show(self, html: str) -> None:
        """Show ``html``, replacing what was shown before."""
        if self._handle is None:
            self._handle = self._display(_Html(html), display_id=True)
        else:
            self._handle.update(_Html(html))

    def shows(self, thing: object) -> None:
        """Remember that this output shows ``thing``."""
        NotebookOutput.latest = _cell_number(), id(thing)


def check_not_shown(thing: object) -> None:
    """Raise `NotImplementedError`, so that IPython shows ``thing``, unless it is shown."""
    if NotebookOutput.latest != (_cell_number(), id(thing)):
        raise NotImplementedError


def _cell_number() -> object:
    """Return the number of the running cell; None outside a notebook."""
    return getattr(_shell(), "execution_count", None)


def _shell() -> object:
    """Return the running shell of IPython; None without one."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def notebook_output() -> NotebookOutput | None:
    """Return an output if a notebook's kernel runs this code; None in a terminal."""
    if getattr(_shell(), "kernel", None) is None:
        return None
    from IPython.display import display

    return NotebookOutput(display)
