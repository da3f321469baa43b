"""The live display of a run on a terminal, as wide as the terminal is.

    digits  minimize error  freeze-thaw                       12 s, about 5 s left
    ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╸──────────────    24 of 30 configurations
    best     0.0209  trial 19 after 18 epochs                      █▆▄▃▂▂▁▁▁▁▁▁
             learning_rate=0.004525  hidden=128  layers=3  activation=tanh
    running  trial 23  epoch 4 of 9  error 0.0412
    waiting  12 at 1, 5 at 3, 2 at 9
    spent    87 epochs

Names and messages of others are shown as text, never read as markup.
"""

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from scrimp.history.best_path import BEST_PATH
from scrimp.history.bounds import hints
from scrimp.history.history import History
from scrimp.history.reports import printable
from scrimp.json_values import Config
from scrimp.showing.figures import number, shortened_text, sparkline
from scrimp.showing.standing import (
    Standing,
    best_words,
    failure_line,
    goal_words,
    method_words,
    running_words,
    saved_words,
    spent_words,
    states_words,
    waiting_words,
)

if TYPE_CHECKING:  # loading it takes a while
    from rich.text import Text

__all__ = ["NAMED", "bar", "screen"]

NAMED = 8
"""Running trials that are named."""

LABEL = 9
"""Columns of the labels on the left."""


def screen(history: History, standing: Standing, width: int) -> list["Text"]:
    """What the display shows, as lines of at most ``width`` columns."""
    if history.is_selection:
        return [_selection(history, standing, width)]
    lines = [_title(history, standing, width), _progress(history, standing, width)]
    lines += _best(history, width)
    budgeted = history.problem.budget is not None
    lines.append(_line("trials", states_words(history.counts), width))
    if history.limits.halt and not standing.over:
        words = f"the study is {history.limits.halt}; the dashboard or study.resume() lets it go on"
        lines.append(_line("", words, width, "yellow"))
    for trial in history.with_status("failed")[-1:]:
        lines.append(_line("failed", failure_line(trial), width, "red"))
    if standing.over:
        saved = saved_words(history).replace(" spent", "", 1)  # the line begins with the word
        lines += [_line("spent", saved, width)] if saved else []
        said = (part for hint in hints(history) for part in wrap(hint, max(width - LABEL, 20)))
        return [*lines, *(_line("", part, width, "yellow") for part in said)]
    lines += _running(history, width)
    waiting = waiting_words(history) if budgeted else ""
    if waiting:
        lines.append(_line("waiting", waiting, width, "yellow"))
    return (
        [*lines, _line("spent", spent_words(history).removesuffix(" spent"), width)]
        if budgeted
        else lines
    )


def _text(*parts: tuple[str, str]) -> "Text":
    from rich.text import Text

    built = Text(no_wrap=True, overflow="ellipsis")
    for words, style in parts:
        built.append(printable(words), style)
    return built


def _line(label: str, words: str, width: int, style: str = "") -> "Text":
    """A label and what it says, on one line."""
    return _text((f"{label:<{LABEL}}", "bold"), (shortened_text(words, width - LABEL), style))


def _ends(left: Sequence[tuple[str, str]], right: Sequence[tuple[str, str]], width: int) -> "Text":
    """Something at either end of a line; the right end goes first where there is no room for both."""
    used = sum(len(words) for words, _ in (*left, *right))
    if used + 2 > width:
        return _text(*left) if sum(len(words) for words, _ in left) <= width else _cut(left, width)
    return _text(*left, (" " * (width - used), ""), *right)


def _cut(parts: Sequence[tuple[str, str]], width: int) -> "Text":
    text = _text(*parts)
    text.truncate(width, overflow="ellipsis")
    return text


def _title(history: History, standing: Standing, width: int) -> "Text":
    time = standing.time_words
    kept = max(width - len(time) - 2, 12)
    title = f"{history.created.name}  {goal_words(history)}  {method_words(history.method)}"
    parts = [(shortened_text(title, kept), "bold")]
    return _ends(parts, [(time, "dim")], width)


def _progress(history: History, standing: Standing, width: int) -> "Text":
    """The bar, and what it counts."""
    totals, budget = history.totals, history.problem.budget
    trials, total = totals.n_trials, totals.budget
    begun = len(history.trials)
    if total is not None and budget is not None:
        words = f"{history.spent:g} of {budget.amount(total)}"
    elif trials is not None and budget is None:
        ended = begun - history.counts["running"] - history.counts["stale"]
        words = f"{ended} of {trials} trials"
    elif trials is not None:
        words = f"{begun} of {trials} configurations begun"
    else:
        words = f"{begun} trials"
    if standing.done is None:
        return _text((words, ""))
    room = max(width - len(words) - 2, 5)
    full, rest = bar(standing.done, room)
    colour = "green" if standing.over else "cyan"
    return _text((full, colour), (rest, "bright_black"), ("  ", ""), (words, "bold"))


def bar(share: float, width: int) -> tuple[str, str]:
    """The part of a bar that is done, and the rest.

    >>> bar(0.5, 5)
    ('━━╸', '──')
    """
    halves = round(max(min(share, 1.0), 0.0) * width * 2)
    done = "━" * (halves // 2) + "╸" * (halves % 2)
    return done, "─" * (width - len(done))


def _best(history: History, width: int) -> list["Text"]:
    """The best value, how it came about, and its configuration."""
    words = best_words(history)
    found = history.best
    if found is None:
        return [_line("best", words, width)]
    value, _, where = words.partition("  ")
    path = history.derive(BEST_PATH)
    room = min(max(width - LABEL - len(words) - 3, 0), 40)
    drawn = sparkline([(spent, height) for spent, _, height in path.points], path.spent, room)
    left = [(f"{'best':<{LABEL}}", "bold"), (value, "bold green"), (f"  {where}", "")]
    lines = [_ends(left, [(drawn if room >= 6 and len(path.points) > 1 else "", "green")], width)]
    return lines + [
        _line("", part, width, "dim") for part in _wrapped(found[0].config, width - LABEL)
    ]


def _wrapped(config: Config, width: int) -> list[str]:
    """A configuration in lines that break between parameters only."""
    lines: list[str] = []
    for name, value in config.items():
        word = shortened_text(f"{name}={number(value)}", width)
        if lines and len(lines[-1]) + 2 + len(word) <= width:
            lines[-1] += f"  {word}"
        else:
            lines.append(word)
    return lines


def _running(history: History, width: int) -> list["Text"]:
    """Who runs, how far they are, and their newest values: as many to a line as fit."""
    running = history.with_status("running")
    words = [running_words(history, trial) for trial in running[:NAMED]]
    if len(running) > NAMED:
        words.append(f"and {len(running) - NAMED} more")
    lines: list[str] = []
    for part in words:
        if lines and len(lines[-1]) + 5 + len(part) <= width - LABEL:
            lines[-1] += f"  ·  {part}"
        else:
            lines.append(part)
    return [
        _line("" if place else "running", line, width, "cyan") for place, line in enumerate(lines)
    ]


def _selection(history: History, standing: Standing, width: int) -> "Text":
    """A selection of checkpoints: the score of a single cell says little."""
    cells = f"{states_words(history.counts)}, of {history.problem.space.size:g} cells"
    return _ends([(cells, "")], [(standing.time_words, "dim")], width)
