"""How commands print tables and long lines: as wide as the terminal, tab-separated in a pipe.

Texts of studies are never read as markup, and no word is broken.
"""

import os
import shutil
import textwrap
from collections.abc import Iterable, Sequence

from scrimp.cli.say import echo
from scrimp.history.history import History
from scrimp.history.reports import printable
from scrimp.showing.figures import number
from scrimp.showing.trial_columns import TableQuery, TrialTable, fitted, padded_lines, trial_table

__all__ = ["print_rows", "print_trials", "say", "width"]

TOP = 20
"""Trials that a terminal lists unless it is told a number."""

COLOURS = {
    "failed": "red",
    "stale": "red",
    "running": "cyan",
    "paused": "yellow",
    "stopped": "yellow",
    "completed": "green",
}


def width() -> int | None:
    """How many columns the terminal has; None in a pipe."""
    return shutil.get_terminal_size().columns if os.isatty(1) else None


def say(text: str, indent: int = 0) -> None:
    """Print a line; on a terminal it goes on in the next one, between words."""
    shown, wide = printable(text), width()
    begin = " " * indent
    if wide is None or len(begin) + len(shown) <= wide:
        echo(begin + shown)
        return
    for line in textwrap.wrap(
        shown,
        max(wide, 20),
        initial_indent=begin,
        subsequent_indent=begin + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    ):
        echo(line)


def print_trials(history: History, query: TableQuery) -> None:
    """The trials that ``query`` asks for: on a terminal one line each, with the columns that fit."""
    wide = width()
    if wide is None:
        table = trial_table(history, query)
        for row in (table.columns, *table.rows):
            echo("\t".join(row))
        return
    limited = TableQuery(query.top or TOP, query.sort, query.status, query.columns)
    table = fitted(trial_table(history, limited), wide)
    if len(table.rows) < table.matching:
        first = "the best" if limited.sort == "best" else "the first"
        all_ = table.matching
        say(f"{first} {len(table.rows)} of {all_} trials (--top {all_} shows all):")
    _print_aligned(padded_lines(table), _state_column(table))
    if table.left_out:
        say(f"no room for {', '.join(table.left_out)} (--columns chooses, --json has all)")


def print_rows(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A small table of anything."""
    cells = [tuple(printable(number(cell, 6)) for cell in row) for row in rows]
    table = TrialTable(tuple(map(printable, header)), tuple(cells), len(cells))
    if width() is None:
        for row in (table.columns, *table.rows):
            echo("\t".join(row))
    else:
        _print_aligned(padded_lines(table), None)


def _state_column(table: TrialTable) -> int | None:
    return table.columns.index("status") if "status" in table.columns else None


def _print_aligned(lines: Sequence[Sequence[str]], state: int | None) -> None:
    """Header in bold, states in their colours, one line each."""
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=True)
    for place, cells in enumerate(lines):
        text = Text(style="bold" if place == 0 else "")
        for column, cell in enumerate(cells):
            colour = COLOURS.get(cell.strip(), "") if column == state else ""
            text.append(cell, colour)
            text.append("" if column == len(cells) - 1 else "  ")
        text.rstrip()
        console.print(text, soft_wrap=True)
