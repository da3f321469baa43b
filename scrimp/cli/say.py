"""How the command speaks: without control characters of others, and without anybody's password.

Names of studies, messages of failures and lines of logs come from whoever wrote them. Escape
sequences in them could move the cursor, set the title or type keys, so they never reach the
terminal.
"""

import shlex
from collections.abc import Sequence

import typer

from scrimp.history.reports import printable
from scrimp.storage.open import without_secrets

__all__ = ["command_to_copy", "echo"]


def echo(text: str, err: bool = False) -> None:
    """Print lines; tabs stay, other control characters do not."""
    lines = ("\t".join(printable(cell) for cell in line.split("\t")) for line in text.split("\n"))
    typer.echo("\n".join(lines), err=err)


def command_to_copy(words: Sequence[str]) -> str:
    """A command that people may copy; passwords in URLs are left out, with a word on where they
    belong.

    >>> command_to_copy(["scrimp", "run", "a b.toml", "--storage=postgresql://ann:secret@db/hpo"])
    "scrimp run 'a b.toml' --storage=postgresql://ann@db/hpo (with the password in PGPASSWORD or
    ~/.pgpass)"
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
