"""Printing for commands: no control characters from others' texts, no passwords, no broken words.

Anyone who can write to the storage chooses names of studies, messages of failures and lines of
logs. Escape sequences in them could move the cursor, set the title or type keys, so they never
reach the terminal.
"""

import os
import shlex
import shutil
import textwrap
from collections.abc import Sequence

import typer

from scrimp.storage.open import without_secrets
from scrimp.study_log.messages import printable


def echo(text: str, err: bool = False) -> None:
    """Print lines without control characters, tabs excepted."""
    lines = ("\t".join(printable(cell) for cell in line.split("\t")) for line in text.split("\n"))
    typer.echo("\n".join(lines), err=err)


def command_to_copy(words: Sequence[str]) -> str:
    """Return a command that can be copied: without passwords, and with a remark on where those
    belong.

    >>> command_to_copy(["scrimp", "run", "a b.toml", "--storage=postgresql://ann:secret@db/hpo"])
    "scrimp run 'a b.toml' --storage=postgresql://ann@db/hpo   (with the password in PGPASSWORD or ~/.pgpass)"
    """
    shown = [_without_secrets(word) for word in words]
    remark = "" if shown == list(words) else "   (with the password in PGPASSWORD or ~/.pgpass)"
    return shlex.join(shown) + remark


def _without_secrets(word: str) -> str:
    option, equals, url = word.partition("=") if word.startswith("-") else ("", "", word)
    scheme, separator, _ = url.partition("://")
    if not separator or not scheme.isalnum():
        return word
    bare, _, options = url.partition("?")
    kept = [
        part
        for part in options.split("&")
        if part and "password" not in part.partition("=")[0].lower()
    ]
    return option + equals + without_secrets(bare) + ("?" if kept else "") + "&".join(kept)


def width() -> int | None:
    """Return the number of columns of the terminal; None in a pipe."""
    return shutil.get_terminal_size().columns if os.isatty(1) else None


def say(text: str, indent: int = 0) -> None:
    """Print a line; on a terminal, wrap it between words."""
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
