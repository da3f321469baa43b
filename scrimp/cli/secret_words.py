"""The dashboard's secrets: from a file or a variable, never from an argument, and never one that is
easily guessed."""

import os
import secrets
from pathlib import Path

from scrimp.errors import StudyError

__all__ = ["READ", "SHORTEST", "WRITE", "given_secret", "made_up"]

WRITE = "SCRIMP_DASHBOARD_TOKEN"
"""The variable with the secret of those who may change things on the pages."""

READ = "SCRIMP_DASHBOARD_READ_TOKEN"
"""The variable with the secret of those who may only look."""

SHORTEST = 16
"""Characters of a secret at least."""

LONGEST = 10_000
"""Bytes of a secret's file that are read."""

REMEDY = "`openssl rand -hex 24` makes a good one; leave it out, and one is made up and printed"


def made_up() -> str:
    """A secret that nobody can guess."""
    return secrets.token_urlsafe(24)


def given_secret(variable: str, file: Path | None) -> str | None:
    """The secret in ``file``, else in the variable; None for neither. An empty, short or odd one is
    refused."""
    if file is not None:
        try:
            with file.open("rb") as content:
                words = content.read(LONGEST).decode("utf-8", "replace").strip()
            return _checked(words, f"the secret in {str(file)!r}")
        except OSError as error:
            raise StudyError(
                f"cannot read the secret from {str(file)!r}: {error.strerror}; {REMEDY}"
            ) from None
    text = os.environ.get(variable)
    return None if text is None else _checked(text, f"the secret in {variable}")


def _checked(text: str, what: str) -> str:
    if not text:
        raise StudyError(f"{what} is empty, so it would keep nobody out; {REMEDY}")
    if not text.isascii() or not text.isprintable() or not set(text).isdisjoint(" \"'&#%+;,<>\\"):
        raise StudyError(
            f"{what} holds a character that a link or a header may change; use letters, digits and"
            f" -._~ only; {REMEDY}"
        )
    if len(text) < SHORTEST:
        raise StudyError(
            f"{what} has {len(text)} characters, which can be guessed; use at least {SHORTEST};"
            f" {REMEDY}"
        )
    return text
