"""Options and variables that are gone, with what took their place: whoever relied on them must not
believe to be safe."""

import os
from typing import Annotated

import typer

from scrimp.errors import StudyError

__all__ = ["DASHBOARD", "KEYS", "TokenOption", "refuse_token"]

TokenOption = Annotated[
    str | None, typer.Option("--token", hidden=True, help="Gone; see docs/security.md.")
]

KEYS = (
    "make a key pair with `scrimp key new FILE`, name FILE in SCRIMP_PRIVATE_KEY for `scrimp run`"
    " and FILE.pub in SCRIMP_PUBLIC_KEY for `scrimp worker`"
)
DASHBOARD = (
    "the dashboard has a secret of its own: put it into SCRIMP_DASHBOARD_TOKEN, or into a file for"
    " --token-file"
)


def refuse_token(given: str | None, remedy: str) -> None:
    """`StudyError` when somebody gives a token on the command line, or in the variable that once
    held the one for everything."""
    if given is not None:
        raise StudyError(
            f"--token is gone, since everybody on this machine can read a command line; {remedy}"
        )
    if "SCRIMP_TOKEN" in os.environ:
        raise StudyError(
            "SCRIMP_TOKEN is set, and one token no longer stands for everything; unset it, and"
            f" {remedy}"
        )
