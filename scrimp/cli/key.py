"""``scrimp key``: key pairs for signing what workers run."""

from pathlib import Path
from typing import Annotated

import typer

from scrimp.cli.say import echo
from scrimp.tuning.keys import PRIVATE, PUBLIC, new_pair, public_keys

__all__ = ["key_app"]

key_app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Key pairs: workers with the public key run only what was signed with the private one.",
)


@key_app.command("new")
def new_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File of the private key, to be made.")
    ],
) -> None:
    """Make a key pair: FILE, which only you may read, and FILE.pub for the workers.

    Example: scrimp key new ~/.config/scrimp/ann.key
    """
    public = new_pair(file.expanduser())
    echo(f"key {public.fingerprint}")
    echo(f"sign what you submit:       {PRIVATE}={file} scrimp run study.toml")
    echo(f"workers that insist on it:  {PUBLIC}={file}.pub scrimp worker STUDY")


@key_app.command("show")
def show_command(
    file: Annotated[Path, typer.Argument(metavar="FILE.pub", help="File of public keys.")],
) -> None:
    """Print the fingerprints of the public keys in a file; messages name keys by them.

    Example: scrimp key show ann.key.pub
    """
    for public in public_keys(file.expanduser()):
        echo(public.fingerprint)
