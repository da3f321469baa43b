"""The live display of a run, as wide as the terminal.

    digits  minimize error  freeze-thaw                       12 s, about 5 s left
    ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╸──────────────    24 of 30 configurations
    best     0.0209  trial 19 after 18 epochs                      █▆▄▃▂▂▁▁▁▁▁▁
             learning_rate=0.004525  hidden=128  layers=3  activation=tanh
    running  trial 23  epoch 4 of 9  error 0.0412
    waiting  12 at 1, 5 at 3, 2 at 9
    spent    87 epochs

Names and messages are shown as text, never interpreted as markup.
"""

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, TextIO

from scrimp.display.figures import number, shortened_text, sparkline
from scrimp.display.study_words import (
    MAX_RUNNING_TRIALS_SHOWN,
    best_words,
    cells_words,
    failure_line,
    method_words,
    running_words,
    spent_words,
    states_words,
    time_words,
    waiting_words,
)
from scrimp.study_log.messages import printable
from scrimp.study_log.record import StudyRecord
from scrimp.study_log.study_so_far import BEST_PATH

if TYPE_CHECKING:  # loading it takes a while
    from rich.text import Text


LABEL_COLUMNS = 9
MAX_SPARKLINE_COLUMNS, MIN_SPARKLINE_COLUMNS = 40, 6
"""Width of the sparkline, which is left out where it does not fit."""


def on_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is shown on a terminal. A process may have none: a service whose
    output is closed, or a program without a console on Windows."""
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):  # what a program put in its place, or a closed one
        return False


def screen(record: StudyRecord, width: int, left: str = "") -> list["Text"]:
    """Return the display as lines of at most ``width`` columns; ``left`` describes the improvement
    that a stop rule still expects."""
    time = [(time_words(record), "dim")]
    if record.kind == "selection":
        return [_ends([(cells_words(record), "")], time, width)]
    title = f"{record.name}  {record.goal}  {method_words(record)}"
    kept = max(width - len(time[0][0]) - 2, 12)
    lines = [
        _ends([(shortened_text(title, kept), "bold")], time, width),
        _progress(record, width),
        *_best(record, width),
        _line("trials", states_words(record.counts), width),
    ]
    if record.limits.halt and not record.over:
        words = (
            f"the study is {record.limits.halt}; resume it on the dashboard or by study.resume()"
        )
        lines.append(_line("", words, width, "yellow"))
    for trial in record.history.with_status("failed")[-1:]:
        lines.append(_line("failed", failure_line(trial), width, "red"))
    if not record.over:
        lines += _running(record, width)
    waiting = "" if record.over else waiting_words(record)
    if waiting:
        lines.append(_line("waiting", waiting, width, "yellow"))
    if record.problem.budget is not None:
        # The label already says "spent".
        lines.append(_line("spent", spent_words(record).replace(" spent", "", 1), width))
    if left:
        lines.append(_line("left", left, width))
    for hint in record.hints if record.over else ():
        for part in wrap(hint, max(width - LABEL_COLUMNS, 20)):
            lines.append(_line("", part, width, "yellow"))
    return lines


def _text(*parts: tuple[str, str]) -> "Text":
    from rich.text import Text

    built = Text(no_wrap=True, overflow="ellipsis")
    for words, style in parts:
        built.append(printable(words), style)
    return built


def _line(label: str, words: str, width: int, style: str = "") -> "Text":
    """Return a label with its text, on one line."""
    shown = shortened_text(words, width - LABEL_COLUMNS)
    return _text((f"{label:<{LABEL_COLUMNS}}", "bold"), (shown, style))


def _ends(left: Sequence[tuple[str, str]], right: Sequence[tuple[str, str]], width: int) -> "Text":
    """Return a line with text at both ends; without room for both, the right one is left out."""
    used = sum(len(words) for words, _ in (*left, *right))
    if used + 2 <= width:
        return _text(*left, (" " * (width - used), ""), *right)
    text = _text(*left)
    text.truncate(width, overflow="ellipsis")
    return text


def _progress(record: StudyRecord, width: int) -> "Text":
    """Return the progress bar with the count that it shows."""
    totals, budget, begun = record.limits.totals, record.problem.budget, len(record.trials)
    if totals.budget is not None and budget is not None:
        words = f"{record.spent:g} of {budget.amount(totals.budget)}"
    elif totals.n_trials is None:
        words = f"{begun} trials"
    elif budget is None:
        ended = begun - record.counts.get("running", 0) - record.counts.get("stale", 0)
        words = f"{ended} of {totals.n_trials} trials"
    else:
        words = f"{begun} of {totals.n_trials} configurations begun"
    if record.done is None:
        return _text((words, ""))
    full, rest = bar(record.done, max(width - len(words) - 2, 5))
    colour = "green" if record.over else "cyan"
    return _text((full, colour), (rest, "bright_black"), ("  ", ""), (words, "bold"))


def bar(share: float, width: int) -> tuple[str, str]:
    """Return the done part of a progress bar, and the rest.

    >>> bar(0.5, 5)
    ('━━╸', '──')
    """
    halves = round(max(min(share, 1.0), 0.0) * width * 2)
    done = "━" * (halves // 2) + "╸" * (halves % 2)
    return done, "─" * (width - len(done))


def _best(record: StudyRecord, width: int) -> list["Text"]:
    """Return the best value with a sparkline of its improvement, and its configuration."""
    words = best_words(record)
    if record.best is None:
        return [_line("best", words, width)]
    value, _, where = words.partition("  ")
    path = record.history.derive(BEST_PATH)
    room = min(max(width - LABEL_COLUMNS - len(words) - 3, 0), MAX_SPARKLINE_COLUMNS)
    drawn = ""
    if room >= MIN_SPARKLINE_COLUMNS and len(path.points) > 1:
        drawn = sparkline([(spent, height) for spent, _, height in path.points], path.spent, room)
    left = [(f"{'best':<{LABEL_COLUMNS}}", "bold"), (value, "bold green"), (f"  {where}", "")]
    shown = (f"{name}={number(value)}" for name, value in record.best["params"].items())
    config = _filled(shown, "  ", width - LABEL_COLUMNS)
    return [
        _ends(left, [(drawn, "green")], width),
        *(_line("", part, width, "dim") for part in config),
    ]


def _running(record: StudyRecord, width: int) -> list["Text"]:
    """Return the running trials with their progress, as many to a line as fit."""
    running = record.history.with_status("running")
    words = [running_words(record.problem, trial) for trial in running[:MAX_RUNNING_TRIALS_SHOWN]]
    if len(running) > MAX_RUNNING_TRIALS_SHOWN:
        words.append(f"and {len(running) - MAX_RUNNING_TRIALS_SHOWN} more")
    lines = _filled(words, "  ·  ", width - LABEL_COLUMNS)
    return [
        _line("" if place else "running", line, width, "cyan") for place, line in enumerate(lines)
    ]


def _filled(parts: Iterable[str], separator: str, width: int) -> list[str]:
    """Return the parts in lines of ``width`` columns that break between parts only."""
    lines: list[str] = []
    for part in parts:
        shown = shortened_text(part, width)
        if lines and len(lines[-1]) + len(separator) + len(shown) <= width:
            lines[-1] += f"{separator}{shown}"
        else:
            lines.append(shown)
    return lines
